//! Why a graph over ranks did not end well: [`DistributedError`], [`StuckRanks`], and
//! [`DistributedStepError`], which a step returns.
//!
//! `outcome.rs` makes the errors of a run, the same on every rank.

use selvedge_cnc::GraphError;
use std::error::Error;
use std::fmt;

/// The most lines that a report prints; all are in the value.
const LINES_MAX: usize = 20;

/// Why a graph over ranks did not end well. All ranks get the same error of a run.
#[non_exhaustive]
pub enum DistributedError {
    /// No step of any rank can run any more, and some wait for items that no step has put.
    Stuck(StuckRanks),
    /// Steps failed: the ranks with their faults, in order.
    Failed(Vec<(usize, String)>),
    /// What one rank did alone failed: its environment, or a call of its own graph.
    Local(GraphError),
    /// The run was cancelled on one rank.
    Cancelled,
    /// The ranks have not defined the same collections: what this rank and another one have
    /// defined.
    Mismatch(String),
    /// A message could not be sent or received, as when a rank has ended.
    Message(selvedge_mpi::Error),
}

/// The steps of all ranks that wait for items which were never put.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StuckRanks {
    /// The missing items, by rank, collection and key.
    pub items: Vec<MissingOnRank>,
}

/// An item for which steps of one rank wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingOnRank {
    /// The rank of the steps.
    pub rank: usize,
    /// The name of the collection.
    pub collection: String,
    /// The key.
    pub key: String,
    /// Whether it was put. Then the steps wait to be the last ones of the rank that get it.
    pub was_put: bool,
    /// The name and the tag of each step that waits for it, in order.
    pub steps: Vec<(String, String)>,
    /// The other rank that should have put it, if the collection names one.
    pub producer: Option<usize>,
}

/// What a step may do wrong in a graph over ranks, beside what it may do wrong in any graph.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DistributedStepError {
    /// A collection names a rank for a key or a tag that there is not.
    NoSuchRank {
        /// The name of the collection.
        collection: String,
        /// The key or the tag.
        key: String,
        /// The rank.
        rank: usize,
        /// The number of ranks.
        ranks: usize,
    },
    /// A step got an item after it had put something for another rank. It may run again, so it gets
    /// first.
    GetAfterPut {
        /// The name of the collection of the item.
        collection: String,
        /// The key.
        key: String,
    },
}

impl fmt::Display for DistributedStepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DistributedStepError::NoSuchRank { collection, key, rank, ranks } => {
                write!(f, "{collection}[{key}] is for rank {rank}, and there are {ranks} ranks")
            }
            DistributedStepError::GetAfterPut { collection, key } => {
                write!(f, "got item {collection}[{key}] after it had put for another rank; ")?;
                f.write_str("it may run again, so it must get first")
            }
        }
    }
}

impl Error for DistributedStepError {}

impl fmt::Display for StuckRanks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps: usize = self.items.iter().map(|item| item.steps.len()).sum();
        write!(f, "{steps} steps wait for items")?;
        if self.items.iter().all(|item| !item.was_put) {
            f.write_str(" that no step has put")?;
        }
        let lines = self.items.iter().flat_map(|item| item.steps.iter().map(move |step| (item, step)));
        for (item, (step, tag)) in lines.take(LINES_MAX) {
            write!(f, "\n  rank {}: item {}[{}]", item.rank, item.collection, item.key)?;
            if item.was_put {
                f.write_str(", which was put and has other gets left")?;
            } else if let Some(producer) = item.producer {
                write!(f, ", which rank {producer} should have put")?;
            }
            write!(f, ": step {step}({tag})")?;
        }
        if steps > LINES_MAX { write!(f, "\n  and {} more", steps - LINES_MAX) } else { Ok(()) }
    }
}

impl fmt::Display for DistributedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DistributedError::Stuck(stuck) => stuck.fmt(f),
            DistributedError::Failed(faults) => {
                for (at, (rank, fault)) in faults.iter().take(LINES_MAX).enumerate() {
                    write!(f, "{}rank {rank}: {fault}", if at == 0 { "" } else { "\n  also " })?;
                }
                match faults.len().saturating_sub(LINES_MAX) {
                    0 => Ok(()),
                    more => write!(f, "\n  and {more} more"),
                }
            }
            DistributedError::Local(error) => error.fmt(f),
            DistributedError::Cancelled => f.write_str("the run was cancelled"),
            DistributedError::Mismatch(text) => f.write_str(text),
            DistributedError::Message(error) => error.fmt(f),
        }
    }
}

/// The report, so that a `main` that returns the error prints it.
impl fmt::Debug for DistributedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for DistributedError {}

impl From<selvedge_mpi::Error> for DistributedError {
    fn from(error: selvedge_mpi::Error) -> DistributedError {
        DistributedError::Message(error)
    }
}

impl From<GraphError> for DistributedError {
    fn from(error: GraphError) -> DistributedError {
        DistributedError::Local(error)
    }
}
