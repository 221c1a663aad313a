//! A [`FlowSource`] as one [`Source`], which keeps what its consumer has not taken yet.
//!
//! `FlowSource::pull` makes a [`Reading`] for several iteratees that read the source in turn: an
//! iteratee may be finished in the middle of a chunk, and the rest of the chunk is for the next
//! one. `FlowSource::into_source` makes the same a source without stages. `join.rs` and `drain.rs`
//! take their items from a `Reading` too.

use crate::role::{FlowSource, Source, Upstream};
use selvedge_pipeline::{Consume, Item, Iteratee, StageError, Store, Transduce, Unchanged, Upcoming};
use std::fmt;

/// A source with its stages, for a holder that reads it piece by piece. See [`FlowSource::pull`].
pub struct Reading<A: ?Sized, B: Item + ?Sized, S, T> {
    upstream: Upstream<A, B, S, T>,
    /// The last items that came.
    items: B::Store,
    /// How many of `items` have been taken.
    taken: usize,
    /// What comes after `items`: the end, or a failure.
    over: Option<Result<(), StageError>>,
}

impl<A, B, S, T> FlowSource<A, B, S, T>
where
    A: Item + ?Sized,
    B: Item<Store: Send> + ?Sized,
    S: Source<A>,
    T: Transduce<A, B> + Send,
{
    /// The source for a holder that reads it piece by piece, with an iteratee for each piece: a
    /// protocol in which what comes next depends on what has come.
    ///
    /// # Examples
    /// ```
    /// use selvedge::pipeline::{from_chunks, read};
    /// use selvedge::flow::made;
    ///
    /// let replies = selvedge::run_local(async {
    ///     // A reply of Redis: `$4` says that four bytes follow.
    ///     let mut stream = made(from_chunks(["$4\r\nwa", "rp\r\n+OK\r\n"])).pull();
    ///     let head = stream.read(read::line()).await?.unwrap_or_default();
    ///     let length: usize = String::from_utf8_lossy(&head[1..]).trim_end().parse()?;
    ///     let text = stream.read(read::exactly(length)).await?;
    ///     stream.read(read::line()).await?;
    ///     let status = stream.read(read::line()).await?;
    ///     stream.close().await;
    ///     Ok::<_, Box<dyn std::error::Error + Send + Sync>>((text, status))
    /// });
    /// assert_eq!(replies.unwrap().unwrap(), (Some(b"warp".to_vec()), Some(b"+OK\r".to_vec())));
    /// ```
    pub fn pull(self) -> Reading<A, B, S, T> {
        let upstream = Upstream::new(self.source, self.stages.into_stage());
        Reading { upstream, items: B::Store::default(), taken: 0, over: None }
    }

    /// The same items, as a source without stages. Its [`Source`] runs the stages, in the thread
    /// that asks for the items.
    ///
    /// Such a source can be [`boxed`](FlowSource::boxed), and a [`Source`] of your own can take its
    /// [`Source`].
    ///
    /// # Complexity
    /// A copy of the items.
    ///
    /// # Examples
    /// ```
    /// use selvedge::pipeline::{collect, from_iter, lift121};
    /// use selvedge::flow::{BoxedFlowSource, made};
    ///
    /// fn numbers(squares: bool) -> BoxedFlowSource<u64> {
    ///     let numbers = made(from_iter(1..4));
    ///     match squares {
    ///         true => (numbers >> lift121(|n: &u64| n * n)).into_source().boxed(),
    ///         false => numbers.boxed(),
    ///     }
    /// }
    ///
    /// let squares = selvedge::run_local(async { (numbers(true) >> collect()).run().await });
    /// assert_eq!(squares.unwrap().unwrap(), [1, 4, 9]);
    /// ```
    pub fn into_source(self) -> FlowSource<B, B, Reading<A, B, S, T>, Unchanged> {
        FlowSource::new(self.pull())
    }
}

impl<A, B, S, T> Reading<A, B, S, T>
where
    A: Item + ?Sized,
    B: Item + ?Sized,
    S: Source<A>,
    T: Transduce<A, B>,
{
    /// Feeds the items that follow to an iteratee, until it is finished. The rest of the stream
    /// stays for the next call. [`read`](selvedge_pipeline::read) has iteratees for
    /// this.
    ///
    /// It waits only if the iteratee wants more than has come.
    ///
    /// # Errors
    /// The failure of the iteratee, of the source, or of a stage. After a failure of the source or
    /// of a stage the stream has ended.
    ///
    /// # Cancellation
    /// The items that the iteratee has taken are lost.
    pub async fn read<I: Consume<B>>(&mut self, iteratee: Iteratee<B, I>) -> Result<I::Result, StageError> {
        let mut fed = iteratee.feed();
        while !fed.is_finished() && self.fill().await? {
            self.taken += fed.put_some(self.items.chunk(self.taken..self.items.count()));
        }
        fed.try_end()
    }

    /// Waits for items, if all have been taken. `false` at the end.
    pub(crate) async fn fill(&mut self) -> Result<bool, StageError> {
        if self.taken < self.items.count() {
            return Ok(true);
        }
        self.items.clear();
        self.taken = 0;
        if self.over.is_none() {
            match self.upstream.fill(&mut self.items).await {
                Ok(true) => {}
                Ok(false) => self.over = Some(Ok(())),
                Err(failure) => self.over = Some(Err(failure)),
            }
        }
        if self.items.count() > 0 {
            return Ok(true);
        }
        // `fill` of an upstream that is not over has put an item into `items`.
        self.over.replace(Ok(())).unwrap_or(Ok(())).map(|()| false)
    }

    /// The next item, as far as it is known without waiting.
    pub(crate) fn upcoming(&self) -> Upcoming<'_, B> {
        match &self.over {
            _ if self.taken < self.items.count() => Upcoming::Item(self.items.at(self.taken)),
            Some(Ok(())) => Upcoming::Ended,
            _ => Upcoming::Unknown,
        }
    }

    /// Takes the next `count` items, which are known.
    pub(crate) fn take(&mut self, count: usize) {
        self.taken += count;
    }

    /// Closes the source, and waits until that has happened.
    pub async fn close(self) {
        self.upstream.close().await;
    }
}

impl<A, B, S, T> Reading<A, B, S, T>
where
    A: Item + ?Sized,
    B: Item<Store: Send> + ?Sized,
    S: Source<A>,
    T: Transduce<A, B> + Send,
{
    /// What is left, as the source of a pipeline.
    ///
    /// # Examples
    /// ```
    /// use selvedge::pipeline::{count, from_chunks, group_by, line, read};
    /// use selvedge::flow::made;
    ///
    /// let rows = selvedge::run_local(async {
    ///     let mut stream = made(from_chunks(["head\n1\n2\n"])).pull();
    ///     stream.read(read::line()).await?;
    ///     (stream.rest() >> group_by(line()) >> count()).run().await
    /// });
    /// assert_eq!(rows.unwrap().unwrap(), 2);
    /// ```
    pub fn rest(self) -> FlowSource<B, B, Reading<A, B, S, T>, Unchanged> {
        FlowSource::new(self)
    }
}

impl<A, B, S, T> Source<B> for Reading<A, B, S, T>
where
    A: Item + ?Sized,
    B: Item<Store: Send> + ?Sized,
    S: Source<A>,
    T: Transduce<A, B> + Send,
{
    async fn next(&mut self) -> Result<Option<B::Chunk<'_>>, StageError> {
        if !self.fill().await? {
            return Ok(None);
        }
        let begin = std::mem::replace(&mut self.taken, self.items.count());
        Ok(Some(self.items.chunk(begin..self.taken)))
    }

    fn is_prompt(&self) -> bool {
        self.upstream.is_prompt()
    }

    async fn close(self) {
        self.upstream.close().await;
    }
}

impl<A: ?Sized, B: Item + ?Sized, S, T> fmt::Debug for Reading<A, B, S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reading").field("over", &self.over).finish_non_exhaustive()
    }
}
