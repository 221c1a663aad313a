//! The bounded Fifo: [`BoundedFifo`], a queue between threads in which a thread that puts too fast
//! waits, and its two ends, [`Putter`] and [`Taker`].
//!
//! The programs of users call it. Its [`WaitQueue`] holds waiters of one kind at a time: threads
//! wait to put while it is full ([`Enqueue`]), and to take while it is empty ([`Dequeue`]).

use crate::blocking::wait_blocking;
use selvedge_core::{Local, Mode, Queue, Role, Shared, WaitQueue, constant};
use std::collections::VecDeque;
use std::fmt;
use std::mem;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A queue of bounded length: putting waits while it is full, taking while it is empty. Values
/// leave it first in, first out. On both sides the thread that has waited longest is served first.
///
/// With capacity 0 a value is handed over when one thread puts and another takes. A closed Fifo
/// takes no more values, and gives the values that are in it. [`ends`](BoundedFifo::ends) makes two
/// handles; when all handles of one side are gone, the Fifo is closed.
///
/// # Cancellation
/// Dropping a `put` that waits removes it from the queue, and drops the value. Dropping a `take`
/// that waits removes it from the queue. If a value had been handed to that `take`, the value goes
/// to the next taker that waits, or back to the front, where it does not count against the
/// capacity. Values that other threads have taken in between have then come before it.
///
/// # Complexity
/// One critical section for each operation.
///
/// # Examples
/// ```
/// use selvedge::{round_robin, spawn_local};
/// use selvedge::sync::BoundedFifo;
///
/// let words = round_robin(async {
///     let (putter, taker) = BoundedFifo::ends_local(2);
///     let putting = spawn_local(async move {
///         for word in ["warp", "weft", "selvedge"] {
///             putter.put(word).await.unwrap();
///         }
///     });
///     let mut words = vec![];
///     while let Some(word) = taker.take().await {
///         words.push(word);
///     }
///     putting.await.unwrap();
///     words
/// })?;
/// assert_eq!(words, ["warp", "weft", "selvedge"]);
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[doc(alias = "mpsc")]
#[doc(alias = "channel")]
pub struct BoundedFifo<T, M: Mode = Shared> {
    queue: WaitQueue<Contents<T>, Offer<T>, M>,
}

struct Contents<T> {
    values: VecDeque<T>,
    capacity: usize,
    closed: bool,
}

/// The payload of a waiter: the value of a putter, or the empty room of a taker. The granter takes
/// the value, or fills the room. If the Fifo is closed, it leaves the payload as it is.
struct Offer<T>(Option<T>);

/// The Fifo was closed. This gives the value back.
#[doc(alias = "SendError")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClosedError<T>(pub T);

/// Why [`BoundedFifo::try_put`] did not put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TryPutError<T> {
    /// It is full, or other threads wait to put.
    Full(T),
    /// It is closed.
    Closed(T),
}

/// Why [`BoundedFifo::try_take`] did not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TryTakeError {
    /// It is empty at present.
    Empty,
    /// It is empty, and it is closed.
    Closed,
}

impl<T> BoundedFifo<T> {
    constant! {
        /// An empty queue with room for this many values.
        pub fn new(capacity: usize) -> Self {
            BoundedFifo { queue: WaitQueue::shared(Contents { values: VecDeque::new(), capacity, closed: false }, 0) }
        }
    }

    /// The two ends of a new queue, which can be cloned. The queue is closed when all ends of one
    /// kind have been dropped. Values that are left in it then can still be taken.
    pub fn ends(capacity: usize) -> (Putter<T>, Taker<T>) {
        ends(capacity)
    }
}

impl<T> BoundedFifo<T, Local> {
    /// An empty queue with room for this many values that stays on its OS thread.
    pub fn new_local(capacity: usize) -> Self {
        BoundedFifo::with_capacity(capacity)
    }

    /// The two ends of a new queue that stays on its OS thread.
    pub fn ends_local(capacity: usize) -> (Putter<T, Local>, Taker<T, Local>) {
        ends(capacity)
    }
}

impl<T, M: Mode> BoundedFifo<T, M> {
    fn with_capacity(capacity: usize) -> Self {
        let state = Contents { values: VecDeque::new(), capacity, closed: false };
        BoundedFifo { queue: WaitQueue::new(state) }
    }

    /// Adds a value at the end, and waits for room if need be.
    ///
    /// # Errors
    /// Gives the value back if the queue is closed, also while `put` waits.
    #[track_caller]
    pub fn put(&self, value: T) -> impl Future<Output = Result<(), ClosedError<T>>> {
        let place = Location::caller();
        async move { self.queue.wait_at::<Enqueue>(Offer(Some(value)), place).await }
    }

    /// Adds a value at the end if there is room.
    ///
    /// # Errors
    /// Gives the value back.
    pub fn try_put(&self, value: T) -> Result<(), TryPutError<T>> {
        let mut slot = Offer(Some(value));
        let put = self.queue.with(|state, queue| Enqueue::attempt(state, queue, &mut slot));
        match (put, slot.0) {
            (Some(Ok(())), _) => Ok(()),
            (Some(Err(ClosedError(value))), _) => Err(TryPutError::Closed(value)),
            (None, Some(value)) => Err(TryPutError::Full(value)),
            (None, None) => unreachable!("a value that was not put is still there"),
        }
    }

    /// Adds a value at the end, and blocks this OS thread until there is room.
    ///
    /// # Errors
    /// Gives the value back if the queue is closed.
    ///
    /// # Panics
    /// When it is called within a step of a Selvedge thread.
    #[track_caller]
    pub fn put_blocking(&self, value: T) -> Result<(), ClosedError<T>> {
        wait_blocking(self.put(value))
    }

    /// Takes the first value, and waits for one if need be. `None` when the queue is closed and
    /// empty.
    #[track_caller]
    pub fn take(&self) -> impl Future<Output = Option<T>> {
        let place = Location::caller();
        async move { self.queue.wait_at::<Dequeue>(Offer(None), place).await }
    }

    /// Takes the first value if there is one.
    ///
    /// # Errors
    /// When there is no value: for now ([`Empty`](TryTakeError::Empty)), or for ever
    /// ([`Closed`](TryTakeError::Closed)).
    pub fn try_take(&self) -> Result<T, TryTakeError> {
        self.queue.with(|state, queue| match Dequeue::attempt(state, queue, &mut Offer(None)) {
            Some(Some(value)) => Ok(value),
            Some(None) => Err(TryTakeError::Closed),
            None => Err(TryTakeError::Empty),
        })
    }

    /// Takes the first value, and blocks this OS thread until there is one. `None` when the queue
    /// is closed and empty.
    ///
    /// # Panics
    /// When it is called within a step of a Selvedge thread.
    #[track_caller]
    pub fn take_blocking(&self) -> Option<T> {
        wait_blocking(self.take())
    }

    /// Lets no more values in. A thread that waits to put gets its value back, and a thread that
    /// waits to take gets `None`.
    pub fn close(&self) {
        self.queue.with(|state, queue| {
            state.closed = true;
            while !queue.is_empty() {
                queue.grant();
            }
        });
    }

    /// Whether the Fifo has been closed.
    pub fn is_closed(&self) -> bool {
        self.queue.with(|state, _| state.closed)
    }

    /// The number of values in it, without the values of threads that wait to put.
    pub fn len(&self) -> usize {
        self.queue.with(|state, _| state.values.len())
    }

    /// Whether no value is in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of values that it has room for.
    pub fn capacity(&self) -> usize {
        self.queue.with(|state, _| state.capacity)
    }
}

impl<T> Contents<T> {
    /// Hands a value to the first waiter, if that waiter is a taker.
    fn hand_over(queue: &mut Queue<'_, Offer<T>>, value: &mut Option<T>) {
        if let Some(Offer(room @ None)) = queue.front() {
            *room = value.take();
            queue.grant();
        }
    }
}

enum Enqueue {}

impl<T> Role<Contents<T>, Offer<T>> for Enqueue {
    type Output = Result<(), ClosedError<T>>;

    fn attempt(
        state: &mut Contents<T>,
        queue: &mut Queue<'_, Offer<T>>,
        Offer(value): &mut Offer<T>,
    ) -> Option<Self::Output> {
        if state.closed {
            return Some(value.take().map_or(Ok(()), |value| Err(ClosedError(value))));
        }
        Contents::hand_over(queue, value);
        // If there is room, no other thread waits to put, because each take lets the first putter
        // in.
        if state.values.len() < state.capacity {
            state.values.extend(value.take());
        }
        value.is_none().then_some(Ok(()))
    }

    fn granted(Offer(value): &mut Offer<T>) -> Self::Output {
        value.take().map_or(Ok(()), |value| Err(ClosedError(value)))
    }

    /// Nothing is to be passed on. Either a taker has taken the value, so that it was put, or the
    /// Fifo was closed. In that case the value is dropped with the future of its putter.
    fn abandoned(_: &mut Contents<T>, _: &mut Queue<'_, Offer<T>>, _: &mut Offer<T>) {}
}

enum Dequeue {}

impl<T> Role<Contents<T>, Offer<T>> for Dequeue {
    type Output = Option<T>;

    fn attempt(
        state: &mut Contents<T>,
        queue: &mut Queue<'_, Offer<T>>,
        _: &mut Offer<T>,
    ) -> Option<Self::Output> {
        let value = state.values.pop_front();
        // If a value has left, there is room for the value of the first putter that waits. If the
        // queue was empty, which happens with capacity 0, that value is for this taker.
        let mut next = None;
        if state.values.len() < state.capacity.max(usize::from(value.is_none()))
            && let Some(Offer(first @ Some(_))) = queue.front()
        {
            next = first.take();
            queue.grant();
        }
        if value.is_none() {
            return next.map(Some).or(state.closed.then_some(None));
        }
        state.values.extend(next);
        Some(value)
    }

    fn granted(Offer(value): &mut Offer<T>) -> Self::Output {
        value.take()
    }

    fn abandoned(state: &mut Contents<T>, queue: &mut Queue<'_, Offer<T>>, Offer(value): &mut Offer<T>) {
        Contents::hand_over(queue, value);
        // This value was the first when it was handed out.
        value.take().into_iter().for_each(|value| state.values.push_front(value));
    }
}

impl<T, M: Mode> fmt::Debug for BoundedFifo<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (len, capacity, closed) =
            self.queue.with(|state, _| (state.values.len(), state.capacity, state.closed));
        // Written outside of the lock, because the writer is code of the caller.
        write!(f, "BoundedFifo({len} of {capacity} values{})", if closed { ", closed" } else { "" })
    }
}

impl<T> fmt::Display for ClosedError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the Fifo is closed")
    }
}

impl<T: fmt::Debug> std::error::Error for ClosedError<T> {}

impl<T> fmt::Display for TryPutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TryPutError::Full(_) => "the Fifo is full",
            TryPutError::Closed(_) => "the Fifo is closed",
        })
    }
}

impl<T: fmt::Debug> std::error::Error for TryPutError<T> {}

impl fmt::Display for TryTakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TryTakeError::Empty => "the Fifo is empty",
            TryTakeError::Closed => "the Fifo is closed and empty",
        })
    }
}

impl std::error::Error for TryTakeError {}

/// A Fifo with the number of its handles on each side.
struct CountedFifo<T, M: Mode> {
    fifo: BoundedFifo<T, M>,
    putters: AtomicUsize,
    takers: AtomicUsize,
}

fn ends<T, M: Mode>(capacity: usize) -> (Putter<T, M>, Taker<T, M>) {
    let fifo = BoundedFifo::with_capacity(capacity);
    let ends = Arc::new(CountedFifo { fifo, putters: AtomicUsize::new(1), takers: AtomicUsize::new(1) });
    (Putter { ends: ends.clone() }, Taker { ends })
}

/// The end of a [`BoundedFifo`] where values are put. When the last putter is dropped the Fifo is
/// closed.
pub struct Putter<T, M: Mode = Shared> {
    ends: Arc<CountedFifo<T, M>>,
}

/// The end of a [`BoundedFifo`] where values are taken. When the last taker is dropped the Fifo is
/// closed, and the values in it are dropped.
pub struct Taker<T, M: Mode = Shared> {
    ends: Arc<CountedFifo<T, M>>,
}

impl<T, M: Mode> Putter<T, M> {
    /// As [`BoundedFifo::put`].
    ///
    /// # Errors
    /// Gives the value back if all takers are gone.
    #[track_caller]
    pub fn put(&self, value: T) -> impl Future<Output = Result<(), ClosedError<T>>> {
        self.ends.fifo.put(value)
    }

    /// As [`BoundedFifo::try_put`].
    ///
    /// # Errors
    /// Gives the value back.
    pub fn try_put(&self, value: T) -> Result<(), TryPutError<T>> {
        self.ends.fifo.try_put(value)
    }

    /// As [`BoundedFifo::put_blocking`].
    ///
    /// # Errors
    /// Gives the value back if all takers are gone.
    ///
    /// # Panics
    /// When it is called within a step of a Selvedge thread.
    #[track_caller]
    pub fn put_blocking(&self, value: T) -> Result<(), ClosedError<T>> {
        self.ends.fifo.put_blocking(value)
    }

    /// The Fifo itself.
    pub fn fifo(&self) -> &BoundedFifo<T, M> {
        &self.ends.fifo
    }
}

impl<T, M: Mode> Taker<T, M> {
    /// As [`BoundedFifo::take`].
    #[track_caller]
    pub fn take(&self) -> impl Future<Output = Option<T>> {
        self.ends.fifo.take()
    }

    /// As [`BoundedFifo::try_take`].
    ///
    /// # Errors
    /// When there is no value: for now, or for ever.
    pub fn try_take(&self) -> Result<T, TryTakeError> {
        self.ends.fifo.try_take()
    }

    /// As [`BoundedFifo::take_blocking`].
    ///
    /// # Panics
    /// When it is called within a step of a Selvedge thread.
    #[track_caller]
    pub fn take_blocking(&self) -> Option<T> {
        self.ends.fifo.take_blocking()
    }

    /// The Fifo itself.
    pub fn fifo(&self) -> &BoundedFifo<T, M> {
        &self.ends.fifo
    }
}

impl<T, M: Mode> Clone for Putter<T, M> {
    fn clone(&self) -> Self {
        self.ends.putters.fetch_add(1, Ordering::Relaxed);
        Putter { ends: self.ends.clone() }
    }
}

impl<T, M: Mode> Clone for Taker<T, M> {
    fn clone(&self) -> Self {
        self.ends.takers.fetch_add(1, Ordering::Relaxed);
        Taker { ends: self.ends.clone() }
    }
}

impl<T, M: Mode> Drop for Putter<T, M> {
    fn drop(&mut self) {
        // The counter need not publish the values of other putters, because they have put them
        // under the lock.
        if self.ends.putters.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.ends.fifo.close();
        }
    }
}

impl<T, M: Mode> Drop for Taker<T, M> {
    fn drop(&mut self) {
        if self.ends.takers.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.ends.fifo.close();
            // The values are dropped outside of the lock, because their destructors may call this
            // Fifo.
            drop(self.ends.fifo.queue.with(|state, _| mem::take(&mut state.values)));
        }
    }
}

impl<T, M: Mode> fmt::Debug for Putter<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Putter").field(&self.ends.fifo).finish()
    }
}

impl<T, M: Mode> fmt::Debug for Taker<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Taker").field(&self.ends.fifo).finish()
    }
}
