//! `StageError`: why a pipeline stopped. It tells which stage has failed, at which item and why.
//!
//! A stage that has failed breaks and keeps its failure. Its caller then asks `failure` and does
//! not end the next stage. The failure does not depend on the cuts of the input into chunks, but
//! for `gunzip`. How much `gunzip` and `unzstd` yield before a failure depends on the cuts.

use crate::item::place::StreamPlace;
use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// Why a pipeline stopped: the stage that failed, the number of the item at which it failed, the
/// place in the stage's stream, and the cause.
///
/// A stage that fails puts nothing more into the next stage, and that stage is not ended: it is
/// dropped as it is. What is upstream is not called again.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{fold, from_chunks, group_by, line, try_lift121};
///
/// let number = try_lift121(|line: &[u8]| String::from_utf8_lossy(line).parse::<i32>());
/// let sum = fold(0, |sum: &mut i32, n: &i32| *sum += n);
/// let failed = (from_chunks(["12\n3x\n4"]) >> group_by(line()) >> number.named("number") >> sum)
///     .try_run()
///     .unwrap_err();
/// assert_eq!((failed.stage(), failed.item(), failed.offset()), ("number", 2, 2));
/// assert_eq!(failed.to_string(), "number: item 2, offset 2: invalid digit found in string");
/// ```
#[derive(Clone)]
pub struct StageError {
    inner: Box<ErrorParts>,
}

#[derive(Clone)]
struct ErrorParts {
    stage: Cow<'static, str>,
    place: StreamPlace,
    /// Where the section of a stage around it begins.
    section: Option<StreamPlace>,
    cause: Arc<dyn Error + Send + Sync>,
}

/// The failure of two neighbours that lies first in the stream. `cut` says that the downstream one
/// had broken before the upstream one failed: see `chain.rs`.
pub(crate) fn first_failure<'a>(
    up: Option<&'a StageError>,
    down: Option<&'a StageError>,
    cut: bool,
) -> Option<&'a StageError> {
    down.or(if cut { None } else { up })
}

impl StageError {
    /// The stage `stage` has failed, for the reason `cause`.
    pub fn new(
        stage: impl Into<Cow<'static, str>>,
        place: StreamPlace,
        cause: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> StageError {
        let inner = ErrorParts { stage: stage.into(), place, section: None, cause: Arc::from(cause.into()) };
        StageError { inner: Box::new(inner) }
    }

    /// The name of the stage: its function, or what
    /// [`Transducer::named`](crate::Transducer::named) says.
    pub fn stage(&self) -> &str {
        &self.inner.stage
    }

    /// The number of the item at which the stage failed. The first one is 1.
    ///
    /// A parser counts the records that it makes. All other stages count the items that they take.
    /// A source counts the items that it has made.
    pub fn item(&self) -> u64 {
        self.inner.place.items + 1
    }

    /// Where the stage failed: the number of elements before that place. A byte is an element, and
    /// a list has several.
    ///
    /// A parser counts in the stream that it reads, to the very byte that is wrong. All other
    /// stages count the elements of the items before.
    pub fn offset(&self) -> u64 {
        self.inner.place.elements
    }

    /// The section in the course of which the stage failed, if the stage stands in a
    /// [`foreach`](crate::foreach) or in a [`located`](crate::located()): how many sections and how
    /// many elements lie before it, in the stream that the `foreach` or the `located` takes. If
    /// several of them stand around the stage, it is the outermost one.
    ///
    /// [`item`](StageError::item) and [`offset`](StageError::offset) are counted in the stream
    /// of the stage itself. A stage of a `foreach` begins to count anew with each section.
    pub fn section(&self) -> Option<StreamPlace> {
        self.inner.section
    }

    /// The same failure, in the [section](StageError::section) that begins at `place`. A supply
    /// or a stage of your own that begins stages anew for each section tells it so.
    pub fn within(&self, place: StreamPlace) -> StageError {
        let mut within = self.clone();
        within.inner.section = Some(place);
        within
    }

    /// What the stage says about it.
    pub fn cause(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.inner.cause
    }

    /// The same failure under another name, as
    /// [`Transducer::named`](crate::Transducer::named) makes it.
    pub fn renamed(&self, name: impl Into<Cow<'static, str>>) -> StageError {
        let mut renamed = self.clone();
        renamed.inner.stage = name.into();
        renamed
    }
}

impl fmt::Display for StageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (stage, item, offset) = (self.stage(), self.item(), self.offset());
        write!(f, "{stage}: item {item}, offset {offset}")?;
        if let Some(StreamPlace { items, elements }) = self.section() {
            write!(f, ", in section {} at offset {elements}", items + 1)?;
        }
        write!(f, ": {}", self.inner.cause)
    }
}

impl fmt::Debug for StageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StageError({self})")
    }
}

impl Error for StageError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.inner.cause)
    }
}
