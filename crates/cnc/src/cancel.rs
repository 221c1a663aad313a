//! Ends before the end: [`Canceller`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A wish of the whole program: stop the run.
#[derive(Clone, Debug)]
pub struct Canceller(pub(crate) Arc<AtomicBool>);

impl Canceller {
    /// Has the run end: steps that have begun come to their end, and no others begin.
    ///
    /// # Examples
    /// ```
    /// use selvedge::cnc::{self, GraphError, schedulers::OneByOne};
    ///
    /// let end = cnc::graph(|graph| {
    ///     let tags = graph.tags::<u64>("numbers");
    ///     let canceller = graph.canceller();
    ///     graph.prescribe(tags, "count for ever", move |n, step| {
    ///         if n == 1_000 {
    ///             canceller.cancel();
    ///         }
    ///         step.put_tag(tags, n + 1)
    ///     });
    ///     graph.initialize(|env| env.put_tag(tags, 0))?;
    ///     graph.run(&OneByOne).map(|_| ())
    /// });
    /// assert!(matches!(end, Err(GraphError::Cancelled)));
    /// ```
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
