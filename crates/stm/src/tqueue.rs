//! [`TQueue`]: an unbounded queue.

use crate::cells::{CellNode, Cells};
use crate::engine::{Engine, Versioned};
use crate::queues::queue;
use crate::stop::Tried;
use crate::transaction::Tx;
use crate::var::TVar;
use crate::variable::identity;
use crate::word::TWord;
use std::fmt;
use std::sync::Arc;

/// An unbounded queue, for transactions: `pop` waits while it is empty.
///
/// Clones are handles to the same queue. It is a list of segments with eight variables each, with
/// an index for each end. A `push` and a `pop` have no variable in common while the queue is not
/// empty, so neither is in the way of the other.
///
/// # Paper
/// [HMP05 §5] has the variables and `retry`; this is a queue made of them.
///
/// # Complexity
/// A value takes 56 bytes and a node. An empty queue has one segment, and takes about 750 bytes.
///
/// # Examples
/// ```
/// use selvedge::stm::{TQueue, atomically};
///
/// selvedge::run(async {
///     let queue = TQueue::new();
///     let taker = queue.clone();
///     let sum = selvedge::spawn(atomically(move |tx| Ok(taker.pop(tx)? + taker.pop(tx)?)));
///     for n in [3, 4] {
///         atomically(|tx| queue.push(tx, n)).await;
///     }
///     assert_eq!(sum.await.unwrap(), 7); // both at one moment
/// })?;
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
pub struct TQueue<T: Send + Sync + 'static, E: Engine = Versioned> {
    ends: Arc<QueueEnds<T, E>>,
}

struct QueueEnds<T: Send + Sync + 'static, E: Engine> {
    /// The place of the first value in the first segment.
    first: TWord<usize, E>,
    first_segment: TVar<Segment<T, E>, E>,
    /// The place of the next value to come in the last segment.
    next: TWord<usize, E>,
    last_segment: TVar<Segment<T, E>, E>,
}

/// The places of some values. A place is empty before its value has come and after it was taken.
struct Segment<T: Send + Sync + 'static, E: Engine> {
    cells: Places<T, E>,
}

type Places<T, E> = Cells<Option<CellNode<Queued<T, E>>>, E>;

/// A value. The last value of a segment contains the following segment. So the `push` that adds a
/// segment and the `pop` that leaves one touch no further variable.
struct Queued<T: Send + Sync + 'static, E: Engine> {
    value: T,
    following: Option<Segment<T, E>>,
}

/// The number of places in a segment.
const PLACES: usize = 8;

impl<T: Send + Sync + 'static, E: Engine> Segment<T, E> {
    fn new() -> Segment<T, E> {
        Segment { cells: Cells::new((), PLACES, None, || None) }
    }

    fn fill(&self, tx: &Tx<E>, place: usize, value: T, following: Option<Segment<T, E>>) {
        self.cells.write(tx, place, Some(CellNode(Queued { value, following })));
    }
}

impl<T: Send + Sync + 'static, E: Engine> Clone for Segment<T, E> {
    fn clone(&self) -> Self {
        Segment { cells: self.cells.clone() }
    }
}

impl<T: Send + Sync + 'static> TQueue<T> {
    /// An empty queue.
    pub fn new() -> TQueue<T> {
        TQueue::made(None)
    }

    /// An empty queue with a name. Reports of waiting
    /// threads call the ends of the queue by the name: see [`TVar::named`].
    pub fn named(name: impl Into<Arc<str>>) -> TQueue<T> {
        TQueue::made(Some(name.into()))
    }
}

impl<T: Send + Sync + 'static, E: Engine> TQueue<T, E> {
    pub(crate) fn made(name: Option<Arc<str>>) -> TQueue<T, E> {
        let segment = Segment::new();
        let ends = QueueEnds {
            first: TWord::made(name.clone(), 0),
            first_segment: TVar::made(name.clone(), segment.clone()),
            next: TWord::made(name.clone(), 0),
            last_segment: TVar::made(name, segment),
        };
        TQueue { ends: Arc::new(ends) }
    }

    /// Adds a value at the end.
    ///
    /// # Errors
    /// As [`TVar::read`].
    ///
    /// # Complexity
    /// One allocation; two reads and two writes. Each eighth push makes a segment: two allocations
    /// more, and one write.
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn push(&self, tx: &Tx<E>, value: T) -> Tried<()> {
        let (place, segment) = (self.ends.next.read(tx)?, self.ends.last_segment.read(tx)?);
        if place + 1 < PLACES {
            segment.fill(tx, place, value, None);
            self.ends.next.write(tx, place + 1);
        } else {
            let following = Segment::new();
            segment.fill(tx, place, value, Some(following.clone()));
            self.ends.last_segment.write(tx, following);
            self.ends.next.write(tx, 0);
        }
        Ok(())
    }

    /// Adds values at the end, in their order.
    ///
    /// # Errors
    /// As [`TVar::read`].
    ///
    /// # Complexity
    /// Two reads and two writes; and for each value one allocation and one write, as for
    /// [`push`](TQueue::push). So it takes less than a `push` for each.
    ///
    /// # Examples
    /// ```
    /// use selvedge::stm::{TQueue, atomically_blocking};
    ///
    /// let queue = TQueue::new();
    /// atomically_blocking(|tx| queue.push_all(tx, ["warp", "weft"]));
    /// assert_eq!(atomically_blocking(|tx| queue.flush(tx)), ["warp", "weft"]);
    /// ```
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn push_all(&self, tx: &Tx<E>, values: impl IntoIterator<Item = T>) -> Tried<()> {
        let (next, last) = (self.ends.next.read(tx)?, self.ends.last_segment.read(tx)?);
        let (mut place, mut made) = (next, None);
        for value in values {
            let segment = made.as_ref().unwrap_or(last);
            if place + 1 < PLACES {
                segment.fill(tx, place, value, None);
                place += 1;
            } else {
                let following = Segment::new();
                segment.fill(tx, place, value, Some(following.clone()));
                (place, made) = (0, Some(following));
            }
        }
        let is_changed = made.is_some() || place != next;
        if let Some(segment) = made {
            self.ends.last_segment.write(tx, segment);
        }
        if is_changed {
            self.ends.next.write(tx, place);
        }
        Ok(())
    }

    /// Adds a value at the front, so that it is the next to be taken.
    ///
    /// # Errors
    /// As [`TVar::read`].
    ///
    /// # Complexity
    /// As [`push`](TQueue::push). It is in the way of each [`pop`](TQueue::pop).
    #[doc(alias = "unGetTQueue")]
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn unget(&self, tx: &Tx<E>, value: T) -> Tried<()> {
        let (first, segment) = (self.ends.first.read(tx)?, self.ends.first_segment.read(tx)?);
        if first > 0 {
            segment.fill(tx, first - 1, value, None);
            self.ends.first.write(tx, first - 1);
        } else {
            let before = Segment::new();
            before.fill(tx, PLACES - 1, value, Some(segment.clone()));
            self.ends.first_segment.write(tx, before);
            self.ends.first.write(tx, PLACES - 1);
        }
        Ok(())
    }

    /// Takes a clone of the first value, if the queue is not empty.
    ///
    /// # Errors
    /// As [`TVar::read`].
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn try_pop(&self, tx: &Tx<E>) -> Tried<Option<T>>
    where
        T: Clone,
    {
        let (place, segment) = (self.ends.first.read(tx)?, self.ends.first_segment.read(tx)?);
        let Some(queued) = segment.cells.read(tx, place)? else { return Ok(None) };
        segment.cells.write(tx, place, None);
        match &queued.following {
            None => self.ends.first.write(tx, place + 1),
            Some(following) => {
                self.ends.first_segment.write(tx, following.clone());
                self.ends.first.write(tx, 0);
            }
        }
        Ok(Some(queued.value.clone()))
    }

    /// A reference to the first value, which stays, if the queue is not empty.
    ///
    /// # Errors
    /// As [`TVar::read`].
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn try_peek<'tx>(&self, tx: &'tx Tx<E>) -> Tried<Option<&'tx T>> {
        let (place, segment) = (self.ends.first.read(tx)?, self.ends.first_segment.read(tx)?);
        Ok(segment.cells.read(tx, place)?.map(|queued| &queued.value))
    }

    /// Takes clones of all values, in their order, and leaves the queue empty.
    ///
    /// # Errors
    /// As [`TVar::read`].
    ///
    /// # Complexity
    /// The clones; one read for each value, and one write for each eighth and for a few more. It is
    /// in the way of each [`pop`](TQueue::pop), and of a [`push`](TQueue::push) that commits while
    /// it runs.
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn flush(&self, tx: &Tx<E>) -> Tried<Vec<T>>
    where
        T: Clone,
    {
        let mut values = Vec::new();
        self.flush_into(tx, &mut values)?;
        Ok(values)
    }

    /// As [`flush`](TQueue::flush), into a vector that loses its former content. A thread that
    /// flushes again and again so allocates no memory.
    ///
    /// # Errors
    /// As [`TVar::read`]. The vector then has any of the values.
    ///
    /// # Examples
    /// ```
    /// use selvedge::stm::{TQueue, atomically_blocking};
    ///
    /// let queue = TQueue::new();
    /// atomically_blocking(|tx| queue.push_all(tx, ["warp", "weft"]));
    /// let mut values = vec!["old"];
    /// atomically_blocking(|tx| queue.flush_into(tx, &mut values));
    /// assert_eq!(values, ["warp", "weft"]);
    /// ```
    ///
    /// # Complexity
    /// As [`flush`](TQueue::flush).
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn flush_into(&self, tx: &Tx<E>, values: &mut Vec<T>) -> Tried<()>
    where
        T: Clone,
    {
        values.clear();
        let first = self.ends.first.read(tx)?;
        let first_segment = self.ends.first_segment.read(tx)?;
        let (mut begin, mut place, mut segment) = (first, first, first_segment);
        while let Some(queued) = segment.cells.read(tx, place)? {
            values.push(queued.value.clone());
            place += 1;
            if let Some(following) = &queued.following {
                // The segments are to be freed one by one, and not each by the one before it.
                segment.cells.write(tx, place - 1, None);
                (begin, place, segment) = (0, 0, following);
            }
        }
        (begin..place).for_each(|taken| segment.cells.write(tx, taken, None));
        if !std::ptr::eq(segment, first_segment) {
            self.ends.first_segment.write(tx, segment.clone());
        }
        if place != first {
            self.ends.first.write(tx, place);
        }
        Ok(())
    }

    /// The number of values.
    ///
    /// # Errors
    /// As [`TVar::read`].
    ///
    /// # Complexity
    /// One read for each value. A program that asks often counts in a variable of its own.
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn len(&self, tx: &Tx<E>) -> Tried<usize> {
        let (mut place, mut segment) = (self.ends.first.read(tx)?, self.ends.first_segment.read(tx)?);
        let mut len = 0;
        while let Some(queued) = segment.cells.read(tx, place)? {
            len += 1;
            (place, segment) = match &queued.following {
                None => (place + 1, segment),
                Some(following) => (0, following),
            };
        }
        Ok(len)
    }
}

queue!(TQueue, ends, "The clone; three reads and two writes. Each eighth pop allocates once.");

impl<T: Send + Sync + 'static, E: Engine> Default for TQueue<T, E> {
    /// An empty queue.
    fn default() -> Self {
        TQueue::made(None)
    }
}

impl<T: Send + Sync + 'static, E: Engine> fmt::Debug for TQueue<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TQueue").finish_non_exhaustive()
    }
}
