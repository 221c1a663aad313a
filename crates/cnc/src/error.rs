//! The errors of a run: [`GraphError`], which `Graph::run` returns, and [`StepFault`], one fault of
//! one step.
//!
//! The operations of a step return [`Halted`], and the step passes it on with `?`. `Halted(None)`
//! says that the `StepContext` already knows the reason: a missed item, or a fault.
//! `Halted(Some(..))` has an error of the program. `StepContext::fault`, `StepContext::double_put`
//! and `Core::left_over` make the faults.
//!
//! `faults.rs` has the order in which `Graph` reports the faults.

use crate::faults::{DoublePut, FaultOrder};
use crate::stuck::Stuck;
use std::any::Any;
use std::error::Error;
use std::fmt;

/// The most lines that a report prints; all are in the value.
pub(crate) const LINES_MAX: usize = 20;

/// Why a step stops before its end: an item is not there yet, or an error.
///
/// A step hands it on with `?`. Errors of the program's become one.
///
/// # Examples
/// ```
/// use selvedge::cnc::StepResult;
///
/// fn number(text: &str) -> StepResult<u32> {
///     Ok(text.parse()?)
/// }
/// assert!(number("seven").is_err());
/// ```
pub struct Halted(pub(crate) Option<Box<Box<dyn Error + Send + Sync>>>);

/// What a step returns, and the operations of a step.
pub type StepResult<T = ()> = Result<T, Halted>;

impl<E: Error + Send + Sync + 'static> From<E> for Halted {
    #[cold]
    fn from(error: E) -> Halted {
        Halted(Some(Box::new(Box::new(error))))
    }
}

impl fmt::Debug for Halted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(error) => write!(f, "Halted({error})"),
            None => f.write_str("Halted"),
        }
    }
}

/// Why a run did not end well.
///
/// # Examples
/// ```
/// use selvedge::cnc::{self, GraphError, schedulers::OneByOne};
///
/// let error = cnc::graph(|graph| {
///     let tags = graph.tags::<u32>("numbers");
///     let items = graph.items::<u32, u32>("squares");
///     graph.prescribe(tags, "square", move |n, step| {
///         let before = *step.get(items, n - 1)?;
///         step.put(items, n, before + 2 * n - 1)
///     });
///     graph.initialize(|env| env.put_tag(tags, 7))?;
///     graph.run(&OneByOne).map(|_| ())
/// });
/// let Err(GraphError::Stuck(stuck)) = error else { panic!("the item 6 is never put") };
/// assert_eq!(stuck.items[0].key, "6");
/// assert_eq!(stuck.items[0].steps, [("square".into(), "7".into())]);
/// ```
///
/// # Paper
/// [NCM11 §2]: a second put is a dynamic error.
///
/// # Differences
/// 1. The paper leaves open what a get does that is never satisfied, and how an error reaches the
///    caller.
#[non_exhaustive]
pub enum GraphError {
    /// No step can run any more, but some wait for items that no step has put, or to take items
    /// that have other gets left.
    Stuck(Stuck),
    /// A step failed, or the environment. The first fault is the smallest one. Each later run
    /// reports the faults too; then a [`FaultCause::Error`] has only the text of the error.
    Failed(Vec<StepFault>),
    /// The run was cancelled by a [`Canceller`](crate::Canceller).
    Cancelled,
}

/// A step that failed, with its tag, and why.
///
/// Faults are sorted by cause, collection, key, step and tag.
#[derive(Debug)]
pub struct StepFault {
    pub(crate) order: FaultOrder,
    /// The two puts of a double put.
    pub(crate) puts: Option<DoublePut>,
    pub(crate) why: FaultCause,
}

/// The cause of a [`StepFault`].
#[derive(Debug)]
#[non_exhaustive]
pub enum FaultCause {
    /// An item was put twice. The two steps are sorted. If more steps have put the item, there is a
    /// fault for the first of them with each other one.
    ///
    /// If the collection [allows equal values](crate::Items::equal_allowed), the item is
    /// determined, and the steps are not: which value comes first depends on the schedule.
    ///
    /// Of a counted collection in pages, the step that comes second in time is named alone, and the
    /// other name is empty, because a page that was given back has forgotten its puts. Which step
    /// comes second may depend on the schedule.
    DoublePut {
        /// The name of the collection.
        collection: String,
        /// The key.
        key: String,
        /// The name and the tag of both steps. The tag is `..` if it does not fit in a word.
        steps: [(String, String); 2],
    },
    /// A step panicked. A panic after the step has missed an item is none: the step runs again when
    /// the item is there. The panic hook, which prints the message, is called all the same.
    Panicked(String),
    /// A step returned an error of the program's.
    Error(Box<dyn Error + Send + Sync>),
    /// A counted item was got more often than its count says.
    ///
    /// A step that comes too late while others with a get have not ended waits for them, because
    /// one of them may be cancelled. It is told when all of them have ended, or when no step is
    /// ready.
    ///
    /// The item is determined. The schedule decides which of the steps with a get comes too late.
    /// That step is named here, and does not go on.
    OverGet {
        /// The name of the collection.
        collection: String,
        /// The key.
        key: String,
    },
    /// The run has ended, and a counted item was got less often than its count says.
    LeftOver {
        /// The name of the collection.
        collection: String,
        /// The key.
        key: String,
        /// The number of gets that are left.
        gets: u32,
    },
    /// A key is outside of the extent of its collection.
    Outside {
        /// The name of the collection.
        collection: String,
        /// The key.
        key: String,
    },
    /// A step that may run again got an item after it had put one. Get first, or take an
    /// [async step](crate::Graph::prescribe_async).
    GetAfterPut {
        /// The name of the collection.
        collection: String,
        /// The key.
        key: String,
    },
    /// A step got or took an item that it had not [declared](crate::Graph::prescribe_depends) so.
    Undeclared {
        /// The name of the collection.
        collection: String,
        /// The key.
        key: String,
    },
    /// A step took an item that has no count.
    NotCounted {
        /// The name of the collection.
        collection: String,
        /// The key.
        key: String,
    },
    /// The environment got an item that is not there.
    NotThere {
        /// The name of the collection.
        collection: String,
        /// The key.
        key: String,
    },
    /// An async step waits for something that is no item.
    Foreign,
}

impl StepFault {
    /// The name of the step, or of the environment. For a [`FaultCause::LeftOver`], the step that
    /// has put the item. For a [`FaultCause::DoublePut`], the first of the two.
    pub fn step(&self) -> &str {
        &self.order.step
    }

    /// The tag of the step.
    pub fn tag(&self) -> &str {
        &self.order.tag
    }

    /// The cause.
    pub fn why(&self) -> &FaultCause {
        &self.why
    }
}

/// What a panic said.
pub(crate) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a text".into())
}

impl fmt::Display for StepFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |f: &mut fmt::Formatter<'_>| write!(f, "step {}({}) ", self.order.step, self.order.tag);
        match &self.why {
            FaultCause::DoublePut { collection, key, steps: [(one, tag), (other, other_tag)] } => {
                write!(f, "item {collection}[{key}] was put twice: by step {one}({tag}) and by ")?;
                if other.is_empty() {
                    return f.write_str("a step before it");
                }
                write!(f, "step {other}({other_tag})")
            }
            FaultCause::Panicked(text) => at(f).and_then(|()| write!(f, "panicked: {text}")),
            FaultCause::Error(error) => at(f).and_then(|()| write!(f, "failed: {error}")),
            FaultCause::OverGet { collection, key } => {
                at(f)?;
                write!(f, "got item {collection}[{key}] once more than its count says")
            }
            FaultCause::LeftOver { collection, key, gets } => {
                write!(f, "item {collection}[{key}], put by step {}({}), ", self.order.step, self.order.tag)?;
                write!(f, "has a count for {gets} more gets")
            }
            FaultCause::Outside { collection, key } => {
                at(f)?;
                write!(f, "named item {collection}[{key}], which is outside of the extent of the collection")
            }
            FaultCause::GetAfterPut { collection, key } => {
                at(f)?;
                write!(
                    f,
                    "got item {collection}[{key}] after it had put; it may run again, so it must get first"
                )
            }
            FaultCause::Undeclared { collection, key } => {
                at(f).and_then(|()| write!(f, "got item {collection}[{key}], which it has not declared"))
            }
            FaultCause::NotCounted { collection, key } => {
                at(f).and_then(|()| write!(f, "took item {collection}[{key}], which has no count"))
            }
            FaultCause::NotThere { collection, key } => {
                at(f).and_then(|()| write!(f, "got item {collection}[{key}], which is not there"))
            }
            FaultCause::Foreign => at(f).and_then(|()| f.write_str("waits for something that is no item")),
        }
    }
}

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GraphError::Stuck(stuck) => stuck.fmt(f),
            GraphError::Cancelled => f.write_str("the run was cancelled"),
            GraphError::Failed(faults) => {
                for (at, fault) in faults.iter().take(LINES_MAX).enumerate() {
                    write!(f, "{}{fault}", if at == 0 { "" } else { "\n  also: " })?;
                }
                match faults.len().saturating_sub(LINES_MAX) {
                    0 => Ok(()),
                    more => write!(f, "\n  and {more} more"),
                }
            }
        }
    }
}

/// The report, so that a `main` that returns the error prints it.
impl fmt::Debug for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for GraphError {}

impl StepFault {
    /// The same fault again. An error of the program's becomes its text.
    pub(crate) fn again(&self) -> StepFault {
        StepFault { order: self.order.clone(), puts: self.puts.clone(), why: self.why.again() }
    }
}

impl FaultCause {
    fn again(&self) -> FaultCause {
        let both = |collection: &String, key: &String| (collection.clone(), key.clone());
        match self {
            FaultCause::DoublePut { collection, key, steps } => {
                let (collection, key) = both(collection, key);
                FaultCause::DoublePut { collection, key, steps: steps.clone() }
            }
            FaultCause::Panicked(text) => FaultCause::Panicked(text.clone()),
            FaultCause::Error(error) => FaultCause::Error(error.to_string().into()),
            FaultCause::OverGet { collection, key } => {
                let (collection, key) = both(collection, key);
                FaultCause::OverGet { collection, key }
            }
            FaultCause::LeftOver { collection, key, gets } => {
                let (collection, key) = both(collection, key);
                FaultCause::LeftOver { collection, key, gets: *gets }
            }
            FaultCause::Outside { collection, key } => {
                let (collection, key) = both(collection, key);
                FaultCause::Outside { collection, key }
            }
            FaultCause::GetAfterPut { collection, key } => {
                let (collection, key) = both(collection, key);
                FaultCause::GetAfterPut { collection, key }
            }
            FaultCause::Undeclared { collection, key } => {
                let (collection, key) = both(collection, key);
                FaultCause::Undeclared { collection, key }
            }
            FaultCause::NotCounted { collection, key } => {
                let (collection, key) = both(collection, key);
                FaultCause::NotCounted { collection, key }
            }
            FaultCause::NotThere { collection, key } => {
                let (collection, key) = both(collection, key);
                FaultCause::NotThere { collection, key }
            }
            FaultCause::Foreign => FaultCause::Foreign,
        }
    }

    pub(crate) const DOUBLE_PUT: u8 = 0;
    pub(crate) const LEFT_OVER: u8 = 20;

    /// The number of the cause, by which reports sort faults first.
    pub(crate) fn cause(&self) -> u8 {
        match self {
            FaultCause::DoublePut { .. } => FaultCause::DOUBLE_PUT,
            FaultCause::Panicked(_) => 1,
            FaultCause::Error(_) => 2,
            FaultCause::Outside { .. } => 3,
            FaultCause::GetAfterPut { .. } => 4,
            FaultCause::Undeclared { .. } => 5,
            FaultCause::NotCounted { .. } => 6,
            FaultCause::OverGet { .. } => 7,
            FaultCause::NotThere { .. } => 8,
            FaultCause::Foreign => 9,
            FaultCause::LeftOver { .. } => FaultCause::LEFT_OVER,
        }
    }
}
