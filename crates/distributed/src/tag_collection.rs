//! Tag collections over ranks: the handle [`DistributedTags`], and what it refers to.
//!
//! A tag goes to one rank, which `compute_on` names, and runs the steps of the collection there. So
//! a memoised collection remembers each tag on one rank. A range is cut before (`ranges.rs`), and
//! its parts go to the ranks that `compute_on` names for them.

use crate::error::DistributedStepError;
use crate::item_collection::PutScope;
use crate::outbox::Outbox;
use selvedge_cnc::{ItemKey, StepResult, TagCol};
use selvedge_mpi::{Message, Tag};
use std::fmt;
use std::sync::Arc;

/// A handle of a tag collection of all ranks.
///
/// The handle is a copy of references, and belongs to one graph.
pub struct DistributedTags<'g, T> {
    pub(crate) local: TagCol<'g, T>,
    pub(crate) shared: &'g TagsOfRanks<T>,
}

impl<T> Clone for DistributedTags<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for DistributedTags<'_, T> {}

impl<'g, T> DistributedTags<'g, T> {
    /// The tags that go to this rank. A step that the graph of this rank prescribes for them runs
    /// here: see [`DistributedGraph::local`](crate::DistributedGraph::local).
    pub fn local(&self) -> TagCol<'g, T> {
        self.local
    }
}

impl<T> fmt::Debug for DistributedTags<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DistributedTags({})", self.local.name())
    }
}

/// Calls the function with each rank to which a tag or a part of it goes.
pub(crate) type TagPlacement<T> =
    Box<dyn Fn(T, &mut dyn FnMut(usize, T) -> StepResult) -> StepResult + Send + Sync>;

/// What a rank knows of a collection.
pub(crate) struct TagsOfRanks<T> {
    pub(crate) rank: usize,
    pub(crate) ranks: usize,
    pub(crate) placement: TagPlacement<T>,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) tag: Tag,
}

impl<T: ItemKey + Message> TagsOfRanks<T> {
    /// Puts a tag; `put_here` puts what is for this rank. True if something was put for another
    /// rank. The name is that of the collection.
    pub(crate) fn put(
        &self,
        name: &str,
        tag: T,
        scope: PutScope,
        mut put_here: impl FnMut(T) -> StepResult,
    ) -> StepResult<bool> {
        let ranks = self.ranks;
        let mut has_sent = false;
        (self.placement)(tag, &mut |rank, tag| {
            if rank >= ranks {
                let (collection, key) = (name.to_string(), format!("{tag:?}"));
                return Err(DistributedStepError::NoSuchRank { collection, key, rank, ranks }.into());
            }
            if rank == self.rank {
                return put_here(tag);
            }
            if scope == PutScope::AllRanks {
                self.outbox.put(rank, self.tag, tag);
                has_sent = true;
            }
            Ok(())
        })?;
        Ok(has_sent)
    }
}
