//! [`TBQueue`]: a bounded queue.

use crate::cells::{CellNode, Cells};
use crate::engine::{Engine, Versioned};
use crate::queues::queue;
use crate::stop::Tried;
use crate::transaction::Tx;
use crate::variable::identity;
use crate::word::TWord;
use std::fmt;
use std::sync::Arc;

/// A queue of a bounded length, for transactions: `pop` waits while it is empty, and `push` while
/// it is full.
///
/// Clones are handles to the same queue. It is a ring of variables, with an index for each end. A
/// `push` and a `pop` have no variable in common while the queue is neither empty nor full, so
/// neither is in the way of the other: a `push` sees that the queue is full by the variable that it
/// is going to fill.
///
/// # Paper
/// [HMP05 §5] has the variables and `retry`; this is a queue made of them.
///
/// # Complexity
/// The ring is allocated at once: 56 bytes for each value that the queue can hold.
///
/// # Examples
/// ```
/// use selvedge::stm::{TBQueue, atomically};
///
/// selvedge::run(async {
///     let queue = TBQueue::new(2);
///     let full = queue.clone();
///     let pushes = selvedge::spawn(async move {
///         for n in 1..=3 {
///             atomically(|tx| full.push(tx, n)).await; // the third waits for a pop
///         }
///     });
///     let sum = atomically(|tx| Ok(queue.pop(tx)? + queue.pop(tx)?)).await;
///     pushes.await.unwrap();
///     assert_eq!((sum, atomically(|tx| queue.pop(tx)).await), (3, 3));
/// })?;
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
pub struct TBQueue<T: Send + Sync + 'static, E: Engine = Versioned> {
    ring: Arc<QueueRing<T, E>>,
}

/// The values lie from `first` up to `next`, around the end of the ring. If these are equal, the
/// ring is full if there is a value, and empty if there is none.
struct QueueRing<T: Send + Sync + 'static, E: Engine> {
    /// The place of the first value.
    first: TWord<usize, E>,
    /// The place of the next value to come.
    next: TWord<usize, E>,
    cells: Cells<Option<CellNode<T>>, E>,
}

impl<T: Send + Sync + 'static, E: Engine> QueueRing<T, E> {
    #[inline]
    fn after(&self, place: usize) -> usize {
        if place + 1 == self.cells.len() { 0 } else { place + 1 }
    }

    #[inline]
    fn before(&self, place: usize) -> usize {
        if place == 0 { self.cells.len() - 1 } else { place - 1 }
    }

    /// The first value and its place.
    #[inline]
    fn first<'tx>(&self, tx: &'tx Tx<E>) -> Tried<(usize, Option<&'tx T>)> {
        let first = self.first.read(tx)?;
        Ok((first, self.cells.read(tx, first)?))
    }

    /// Empties the first place.
    #[inline]
    fn remove(&self, tx: &Tx<E>, first: usize) {
        self.cells.write(tx, first, None);
        self.first.write(tx, self.after(first));
    }

    fn len(&self, tx: &Tx<E>) -> Tried<usize> {
        let ((first, value), next) = (self.first(tx)?, self.next.read(tx)?);
        Ok(match next.checked_sub(first) {
            Some(0) if value.is_some() => self.cells.len(),
            Some(len) => len,
            None => self.cells.len() - first + next,
        })
    }
}

impl<T: Send + Sync + 'static> TBQueue<T> {
    /// An empty queue for at most this number of values.
    ///
    /// # Panics
    /// If the capacity is 0.
    pub fn new(capacity: usize) -> TBQueue<T> {
        TBQueue::made(None, capacity)
    }

    /// As [`new`](TBQueue::new), with a name. Reports of waiting threads call the ends of the queue
    /// by the name, and its places `NAME[0]` and so on (`NAME`, if there is one): see
    /// [`TVar::named`](crate::TVar::named).
    ///
    /// # Complexity
    /// As [`TVar::named`](crate::TVar::named), three times, whatever the capacity is. The names of
    /// the places are made when a report shows them.
    ///
    /// # Panics
    /// If the capacity is 0.
    pub fn named(name: impl Into<Arc<str>>, capacity: usize) -> TBQueue<T> {
        TBQueue::made(Some(name.into()), capacity)
    }
}

impl<T: Send + Sync + 'static, E: Engine> TBQueue<T, E> {
    pub(crate) fn made(name: Option<Arc<str>>, capacity: usize) -> TBQueue<T, E> {
        assert!(capacity > 0, "a queue without room is always full");
        let (first, next) = (TWord::made(name.clone(), 0), TWord::made(name.clone(), 0));
        let cells = Cells::new((), capacity, name, || None);
        TBQueue { ring: Arc::new(QueueRing { first, next, cells }) }
    }

    /// Adds a value at the end; retries while the queue is full.
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read) and [`Tx::retry`].
    ///
    /// # Complexity
    /// One allocation; two reads and two writes.
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn push(&self, tx: &Tx<E>, value: T) -> Tried<()> {
        let ring = &*self.ring;
        let next = ring.next.read(tx)?;
        tx.check(ring.cells.read(tx, next)?.is_none())?;
        ring.cells.write(tx, next, Some(CellNode(value)));
        ring.next.write(tx, ring.after(next));
        Ok(())
    }

    /// Adds a value at the end, if the queue is not full. Else gives the value back.
    ///
    /// # Errors
    /// The outer ones are those of [`TVar::read`](crate::TVar::read).
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn try_push(&self, tx: &Tx<E>, value: T) -> Tried<Result<(), T>> {
        match self.is_full(tx)? {
            true => Ok(Err(value)),
            false => self.push(tx, value).map(Ok),
        }
    }

    /// Adds a value at the front, so that it is the next to be taken; retries while the queue is
    /// full.
    ///
    /// # Errors
    /// As [`push`](TBQueue::push).
    ///
    /// # Complexity
    /// As [`push`](TBQueue::push). It is in the way of each [`pop`](TBQueue::pop).
    #[doc(alias = "unGetTBQueue")]
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn unget(&self, tx: &Tx<E>, value: T) -> Tried<()> {
        let ring = &*self.ring;
        let first = ring.before(ring.first.read(tx)?);
        tx.check(ring.cells.read(tx, first)?.is_none())?;
        ring.cells.write(tx, first, Some(CellNode(value)));
        ring.first.write(tx, first);
        Ok(())
    }

    /// Takes a clone of the first value, if the queue is not empty.
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn try_pop(&self, tx: &Tx<E>) -> Tried<Option<T>>
    where
        T: Clone,
    {
        let (first, value) = self.ring.first(tx)?;
        Ok(value.map(|value| {
            self.ring.remove(tx, first);
            value.clone()
        }))
    }

    /// A reference to the first value, which stays, if the queue is not empty.
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn try_peek<'tx>(&self, tx: &'tx Tx<E>) -> Tried<Option<&'tx T>> {
        Ok(self.ring.first(tx)?.1)
    }

    /// Takes clones of all values, in their order, and leaves the queue empty.
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    ///
    /// # Complexity
    /// Linear in the number of values. It is in the way of each operation on the queue.
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn flush(&self, tx: &Tx<E>) -> Tried<Vec<T>>
    where
        T: Clone,
    {
        let mut values = Vec::new();
        while let Some(value) = self.try_pop(tx)? {
            values.push(value);
        }
        Ok(values)
    }

    /// The number of values in the queue.
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    ///
    /// # Complexity
    /// Three reads. Each `push` and each `pop` is in its way.
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn len(&self, tx: &Tx<E>) -> Tried<usize> {
        self.ring.len(tx)
    }

    /// The number of values that the queue can hold.
    pub fn capacity(&self) -> usize {
        self.ring.cells.len()
    }

    /// Whether the queue is full.
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn is_full(&self, tx: &Tx<E>) -> Tried<bool> {
        let next = self.ring.next.read(tx)?;
        Ok(self.ring.cells.read(tx, next)?.is_some())
    }
}

queue!(TBQueue, ring, "The clone; two reads and two writes. Nothing is allocated.");

impl<T: Send + Sync + 'static, E: Engine> fmt::Debug for TBQueue<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TBQueue").field("capacity", &self.capacity()).finish_non_exhaustive()
    }
}
