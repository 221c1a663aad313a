//! [`TQueue`]: an unbounded queue.

use crate::engine::{Engine, Versioned};
use crate::transaction::{Tried, Tx};
use crate::var::TVar;
use std::fmt;

/// An unbounded queue, for transactions: `pop` waits while it is empty.
///
/// Clones are handles to the same queue. It is a list of variables, with a variable for each end. A
/// `push` and a `pop` have no variable in common while the queue is not empty, so neither is in the
/// way of the other.
///
/// # Paper
/// [HMP05 §5] has the variables and `retry`; this is a queue made of them.
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
/// # Ok::<(), selvedge::Failure>(())
/// ```
pub struct TQueue<T: Send + Sync + 'static, E: Engine = Versioned> {
    /// The place of the first value.
    first: TVar<Place<T, E>, E>,
    /// The place of the next value to come.
    next: TVar<Place<T, E>, E>,
}

/// The place of one value, which is empty as long as the value has not come.
struct Place<T: Send + Sync + 'static, E: Engine>(TVar<Option<Filled<T, E>>, E>);

struct Filled<T: Send + Sync + 'static, E: Engine> {
    value: T,
    next: Place<T, E>,
}

impl<T: Send + Sync + 'static, E: Engine> Clone for Place<T, E> {
    fn clone(&self) -> Self {
        Place(self.0.clone())
    }
}

impl<T: Send + Sync + 'static> TQueue<T> {
    /// An empty queue, for transactions of the default engine.
    #[expect(clippy::new_without_default, reason = "a queue is made on purpose, as each variable is")]
    pub fn new() -> TQueue<T> {
        TQueue::with_engine()
    }
}

impl<T: Send + Sync + 'static, E: Engine> TQueue<T, E> {
    /// An empty queue, for transactions of the engine `E`.
    pub fn with_engine() -> TQueue<T, E> {
        let place = Place(TVar::with_engine(None));
        TQueue { first: TVar::with_engine(place.clone()), next: TVar::with_engine(place) }
    }

    /// Adds a value at the end.
    ///
    /// # Errors
    /// As [`TVar::read`].
    ///
    /// # Complexity
    /// Four allocations.
    pub fn push(&self, tx: &Tx<E>, value: T) -> Tried<()> {
        let place = self.next.read(tx)?;
        let next = Place(TVar::with_engine(None));
        place.0.write(tx, Some(Filled { value, next: next.clone() }));
        self.next.write(tx, next);
        Ok(())
    }

    /// Takes a clone of the first value, which leaves the queue; retries while the queue is empty.
    ///
    /// # Errors
    /// As [`TVar::read`] and [`Tx::retry`].
    ///
    /// # Complexity
    /// One allocation, and the clone.
    pub fn pop(&self, tx: &Tx<E>) -> Tried<T>
    where
        T: Clone,
    {
        let filled = self.filled(tx)?;
        self.first.write(tx, filled.next.clone());
        Ok(filled.value.clone())
    }

    /// A reference to the first value, which stays; retries while the queue is empty.
    ///
    /// # Errors
    /// As [`TVar::read`] and [`Tx::retry`].
    pub fn peek<'tx>(&self, tx: &'tx Tx<E>) -> Tried<&'tx T> {
        Ok(&self.filled(tx)?.value)
    }

    /// Takes a clone of the first value, if the queue is not empty.
    ///
    /// # Errors
    /// As [`TVar::read`].
    pub fn try_pop(&self, tx: &Tx<E>) -> Tried<Option<T>>
    where
        T: Clone,
    {
        tx.or_else(|tx| self.pop(tx).map(Some), |_| Ok(None))
    }

    /// Whether the queue is empty.
    ///
    /// # Errors
    /// As [`TVar::read`].
    pub fn is_empty(&self, tx: &Tx<E>) -> Tried<bool> {
        Ok(self.first.read(tx)?.0.read(tx)?.is_none())
    }

    fn filled<'tx>(&self, tx: &'tx Tx<E>) -> Tried<&'tx Filled<T, E>> {
        match self.first.read(tx)?.0.read(tx)? {
            Some(filled) => Ok(filled),
            None => tx.retry(),
        }
    }
}

impl<T: Send + Sync + 'static, E: Engine> Clone for TQueue<T, E> {
    /// Another handle to the same queue.
    fn clone(&self) -> Self {
        TQueue { first: self.first.clone(), next: self.next.clone() }
    }
}

impl<T: Send + Sync + 'static, E: Engine> fmt::Debug for TQueue<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TQueue").finish_non_exhaustive()
    }
}
