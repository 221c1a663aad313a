//! `FlowSource::drain`: a source that is run to its end, also if no consumer listens.
//!
//! `close` is called when a pipeline wants no more items. So `close` takes the rest, and then
//! closes the source.

use crate::reading::Reading;
use crate::role::{FlowSource, Source};
use selvedge_pipeline::{Item, StageError, Transduce, Unchanged};

/// The source of [`FlowSource::drain`].
#[derive(Debug)]
pub struct Draining<S> {
    source: S,
    /// The source has ended, or failed.
    over: bool,
}

/// What [`FlowSource::drain`] returns.
pub type DrainedSource<A, B, S, T> = FlowSource<B, B, Draining<Reading<A, B, S, T>>, Unchanged>;

impl<A, B, S, T> FlowSource<A, B, S, T>
where
    A: Item + ?Sized,
    B: Item<Store: Send> + ?Sized,
    S: Source<A>,
    T: Transduce<A, B> + Send,
{
    /// Goes on when the stages behind it are finished, or one of them has failed: the source and
    /// its stages are run to their end, and what they yield is dropped. The pipeline gives its
    /// result after that.
    ///
    /// A peer that writes until it is done sees no connection that closes early. A source without
    /// end never ends.
    ///
    /// A failure of the source is not told when no stage listens any more. A pipeline that is
    /// dropped drains nothing.
    ///
    /// # Complexity
    /// A copy of the items.
    ///
    /// # Paper
    /// [Pipes, Listing 11]: a consumer that ends first drains its producer.
    ///
    /// # Examples
    /// ```
    /// use selvedge::pipeline::{from_iter, head};
    /// use selvedge::flow::made;
    /// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    ///
    /// static MADE: AtomicU32 = AtomicU32::new(0);
    /// let first = selvedge::run_local(async {
    ///     let numbers = from_iter((0..5000).inspect(|_| _ = MADE.fetch_add(1, Relaxed)));
    ///     (made(numbers).drain() >> head()).run().await
    /// });
    /// assert_eq!((first.unwrap().unwrap(), MADE.load(Relaxed)), (Some(0), 5000));
    /// ```
    pub fn drain(self) -> DrainedSource<A, B, S, T> {
        FlowSource::new(Draining { source: self.pull(), over: false })
    }
}

impl<B: Item + ?Sized, S: Source<B>> Source<B> for Draining<S> {
    async fn next(&mut self) -> Result<Option<B::Chunk<'_>>, StageError> {
        let next = self.source.next().await;
        self.over = !matches!(next, Ok(Some(_)));
        next
    }

    fn is_prompt(&self) -> bool {
        self.source.is_prompt()
    }

    async fn close(mut self) {
        while !self.over {
            // The items are dropped.
            self.over = !matches!(self.source.next().await, Ok(Some(_)));
        }
        self.source.close().await;
    }
}
