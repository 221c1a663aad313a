//! Pipelines that a holder steps from outside: `Pulling` for a generator, `Feeding` for an
//! iteratee, `StepByStep` for a transducer. The holder waits between two calls, because stages
//! never wait.
//!
//! A chunk may hold more than an iteratee wants. `Feeding::put_some` tells how much was taken, and
//! `Pulling::read` keeps the rest for the next iteratee.

use crate::error::StageError;
use crate::item::{FINISHED, Flow, Item, Store};
use crate::role::{Generator, Iteratee, Keep, Transducer, or_panic, result};
use crate::stage::{Consume, Generate, Transduce};
use std::fmt;
use std::marker::PhantomData;
use std::ops::ControlFlow;

impl<B: Item + ?Sized, G: Generate<B>> Generator<B, G> {
    /// The generator for a holder that takes its items when they are wanted.
    pub fn pull(self) -> Pulling<B, G> {
        Pulling { generator: Some(self.stage), items: B::Store::default(), taken: 0, failure: None }
    }
}

/// A generator for a holder that takes its items when they are wanted. See [`Generator::pull`].
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_iter, lift121};
///
/// let mut squares = (from_iter([1, 2, 3]) >> lift121(|n: &u32| n * n)).pull();
/// assert_eq!(squares.next_chunk(), Some(&[1, 4, 9][..]));
/// assert_eq!(squares.next_chunk(), None);
/// ```
pub struct Pulling<B: Item + ?Sized, G> {
    generator: Option<G>,
    items: B::Store,
    /// How many of `items` have been taken.
    taken: usize,
    failure: Option<StageError>,
}

impl<B: Item + ?Sized, G: Generate<B>> Pulling<B, G> {
    /// Some items that follow, or `None` at the end, which may be a [`failure`](Pulling::failure).
    pub fn next_chunk(&mut self) -> Option<B::Chunk<'_>> {
        if !self.fill() {
            return None;
        }
        let begin = std::mem::replace(&mut self.taken, self.items.count());
        Some(self.items.chunk(begin..self.taken))
    }

    /// Generates, if all items have been taken. `false` at the end.
    fn fill(&mut self) -> bool {
        if self.taken == self.items.count() {
            self.items.clear();
            self.taken = 0;
        }
        while self.items.count() == 0 {
            let Some(generator) = &mut self.generator else { return false };
            if generator.pump(&mut Keep(&mut self.items)) != ControlFlow::Continue(true) {
                self.failure = generator.failure().cloned();
                self.generator = None;
            }
        }
        true
    }

    /// Feeds the items that follow to an iteratee, until it is finished. The rest of the stream
    /// stays for the next call. [`read`](crate::read) has iteratees for this.
    ///
    /// An iteratee takes at least one item, unless the stream has ended.
    ///
    /// # Errors
    /// The failure of the iteratee, or of the generator if the iteratee wants more items.
    ///
    /// # Examples
    /// ```
    /// use selvedge::pipeline::*;
    ///
    /// let mut stream = from_chunks(["2\nwarp\nweft\nand", " a rest"]).pull();
    /// let lines: u64 = String::from_utf8(stream.read(read::line())?.unwrap())?.parse()?;
    /// let text = stream.read(group_by(line()) >> take(lines) >> collect())?;
    /// assert_eq!(text.iter().collect::<Vec<_>>(), [b"warp", b"weft"]);
    /// assert_eq!(stream.read(count())?, 10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read<I: Consume<B>>(&mut self, iteratee: Iteratee<B, I>) -> Result<I::Result, StageError> {
        let mut fed = iteratee.feed();
        while !fed.is_finished() {
            if !self.fill() {
                if let Some(failure) = &self.failure {
                    return Err(failure.clone());
                }
                break;
            }
            self.taken += fed.put_some(self.items.chunk(self.taken..self.items.count()));
        }
        fed.try_end()
    }

    /// Why the generator has ended, if it has failed.
    pub fn failure(&self) -> Option<&StageError> {
        self.failure.as_ref()
    }
}

impl<B: Item + ?Sized, G> fmt::Debug for Pulling<B, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pulling").field("ended", &self.generator.is_none()).finish_non_exhaustive()
    }
}

impl<A: Item + ?Sized, I: Consume<A>> Iteratee<A, I> {
    /// Starts the iteratee for a holder that feeds it.
    pub fn feed(self) -> Feeding<A, I> {
        Feeding { stage: self.stage, listens: true, items: PhantomData }
    }
}

/// An iteratee for a holder that feeds it. See [`Iteratee::feed`].
///
/// The holder may wait between two chunks: it reads a socket, or takes from a Fifo.
///
/// # Examples
/// ```
/// use selvedge::Fifo;
/// use selvedge::pipeline::{count, group_by, line};
///
/// let lines = selvedge::round_robin(async {
///     let blocks = Fifo::new();
///     for block in ["warp\nwe", "ft\n"] {
///         blocks.put(block.as_bytes());
///     }
///     let mut counting = (group_by(line()) >> count()).feed();
///     for _ in 0..2 {
///         let _finished = counting.put_chunk(blocks.take().await);
///     }
///     counting.end()
/// })?;
/// assert_eq!(lines, 2);
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub struct Feeding<A: ?Sized, I> {
    stage: I,
    listens: bool,
    items: PhantomData<fn(&A)>,
}

impl<A: Item + ?Sized, I: Consume<A>> Feeding<A, I> {
    /// Feeds one item. Breaks when the iteratee is finished; later items are dropped.
    pub fn put(&mut self, item: &A) -> Flow {
        self.after(|stage| {
            stage.put(item)?;
            stage.flush()
        })
    }

    /// Feeds the items of a chunk, as [`put`](Feeding::put) of each would.
    pub fn put_chunk(&mut self, chunk: A::Chunk<'_>) -> Flow {
        self.after(|stage| stage.put_chunk(chunk))
    }

    /// Feeds the items of a chunk from its front, until the iteratee is finished. Returns how many
    /// it took. Those behind them belong to the next consumer of the stream.
    ///
    /// # Complexity
    /// A call for each item, if a transducer stands before the iteratee: it cannot tell by a chunk
    /// how much of it was wanted.
    ///
    /// # Examples
    /// ```
    /// use selvedge::pipeline::{group_by, head, line, lift121};
    ///
    /// let mut first = (group_by(line()) >> lift121(|line: &[u8]| line.len()) >> head()).feed();
    /// assert_eq!(first.put_some(b"wa"), 2);
    /// assert_eq!(first.put_some(b"rp\nweft\n"), 3);
    /// assert!(first.is_finished());
    /// assert_eq!(first.end(), Some(4));
    /// ```
    pub fn put_some(&mut self, chunk: A::Chunk<'_>) -> usize {
        let mut taken = 0;
        let _finished = self.after(|stage| {
            let (some, flow) = stage.put_some(chunk);
            taken = some;
            flow
        });
        taken
    }

    /// Whether the iteratee takes no more.
    pub fn is_finished(&self) -> bool {
        !self.listens
    }

    fn after(&mut self, put: impl FnOnce(&mut I) -> Flow) -> Flow {
        if !self.listens {
            return FINISHED;
        }
        let flow = put(&mut self.stage);
        self.listens = flow.is_continue();
        flow
    }

    /// The input has ended: the result.
    ///
    /// # Panics
    /// If a stage has failed: [`try_end`](Feeding::try_end) returns its failure.
    pub fn end(self) -> I::Result {
        or_panic(self.try_end())
    }

    /// The input has ended: the result.
    ///
    /// # Errors
    /// The failure of the first stage that has failed.
    pub fn try_end(mut self) -> Result<I::Result, StageError> {
        let _over = self.stage.finish();
        result(self.stage)
    }

    /// Why the iteratee is finished, if it has failed.
    pub fn failure(&self) -> Option<&StageError> {
        self.stage.failure()
    }
}

impl<A: ?Sized, I> fmt::Debug for Feeding<A, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feeding").field("listens", &self.listens).finish_non_exhaustive()
    }
}

impl<A: Item + ?Sized, B: Item + ?Sized, T: Transduce<A, B>> Transducer<A, B, T> {
    /// Starts the transducer for a holder that feeds it and takes what it yields.
    pub fn step(self) -> StepByStep<A, B, T> {
        StepByStep { stage: Some(self.stage), items: PhantomData, out: B::Store::default(), failure: None }
    }
}

/// A transducer for a holder that feeds it and takes what it yields. See [`Transducer::step`].
///
/// This is how a pipeline stands between two things that wait: the holder awaits a block, steps,
/// and awaits that the output is taken. The holder runs one block at a time, so the stages need no
/// queue.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{concatenate, group_by, prepend, whole_line};
///
/// let quoted = group_by(whole_line()) >> prepend(b"> ") >> concatenate();
/// let mut quoting = quoted.step();
/// assert_eq!(quoting.put_chunk(b"warp\nwe"), b"> warp\n");
/// assert_eq!(quoting.put_chunk(b"ft"), b"");
/// assert_eq!(quoting.end(), b"> weft");
/// assert!(quoting.is_finished());
/// ```
pub struct StepByStep<A: ?Sized, B: Item + ?Sized, T> {
    /// `None` when it is finished.
    stage: Option<T>,
    items: PhantomData<fn(&A)>,
    out: B::Store,
    failure: Option<StageError>,
}

impl<A: Item + ?Sized, B: Item + ?Sized, T: Transduce<A, B>> StepByStep<A, B, T> {
    /// Feeds the items of a chunk, and returns what follows from them. When the transducer is
    /// finished, nothing follows.
    pub fn put_chunk(&mut self, chunk: A::Chunk<'_>) -> B::Chunk<'_> {
        self.after(|stage, out| stage.put_chunk(chunk, out))
    }

    /// The input has ended. Returns what the transducer still has.
    pub fn end(&mut self) -> B::Chunk<'_> {
        self.after(|stage, out| {
            stage.end(out)?;
            FINISHED
        })
    }

    fn after(&mut self, put: impl FnOnce(&mut T, &mut Keep<'_, B::Store>) -> Flow) -> B::Chunk<'_> {
        self.out.clear();
        if let Some(stage) = &mut self.stage
            && put(stage, &mut Keep(&mut self.out)).is_break()
        {
            self.failure = stage.failure().cloned();
            self.stage = None;
        }
        self.out.all()
    }

    /// Whether the transducer takes no more.
    pub fn is_finished(&self) -> bool {
        self.stage.is_none()
    }

    /// Why the transducer is finished, if it has failed.
    pub fn failure(&self) -> Option<&StageError> {
        self.failure.as_ref()
    }
}

impl<A: ?Sized, B: Item + ?Sized, T> fmt::Debug for StepByStep<A, B, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepByStep").field("finished", &self.stage.is_none()).finish_non_exhaustive()
    }
}
