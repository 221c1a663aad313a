//! [`TChan`]: an unbounded channel with several ends to read from.

use crate::engine::{Engine, Versioned};
use crate::stop::Tried;
use crate::transaction::Tx;
use crate::var::TVar;
use crate::variable::identity;
use std::fmt;
use std::sync::Arc;

/// An unbounded channel, for transactions. Its values may go to several readers. `read` waits while
/// there is no value.
///
/// A channel has an end to write to and an end to read from. A [duplicate](TChan::dup) has the same
/// end to write to, and an end of its own to read from; so each of the two gets all values that are
/// written from then on. Clones are handles to the same channel: a value that one of them reads is
/// gone for the others. [`TQueue`](crate::TQueue) is faster where each value has one reader.
///
/// The channel is a list of variables. A `read` and a `write` have no variable in common while
/// there is a value to read, so neither is in the way of the other.
///
/// # Paper
/// [HMP05 §5] has the variables and `retry`; this is a channel made of them.
///
/// # Complexity
/// A value is in memory once, and until each end has read it. It takes a variable and a node.
///
/// # Examples
/// ```
/// use selvedge::stm::{TChan, atomically};
///
/// selvedge::run(async {
///     let news = TChan::new_broadcast();
///     let mut readers = Vec::new();
///     for _ in 0..3 {
///         let own = atomically(|tx| news.dup(tx)).await;
///         readers.push(selvedge::spawn(atomically(move |tx| own.read(tx))));
///     }
///     atomically(|tx| news.write(tx, 7)).await;
///     for reader in readers {
///         assert_eq!(reader.await.unwrap(), 7);
///     }
/// })?;
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
pub struct TChan<T: Send + Sync + 'static, E: Engine = Versioned> {
    /// The place of the next value to read. `None` for a channel that is only written.
    read: Option<TVar<Place<T, E>, E>>,
    /// The place of the next value to be written.
    write: TVar<Place<T, E>, E>,
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

impl<T: Send + Sync + 'static> TChan<T> {
    /// A channel without values.
    pub fn new() -> TChan<T> {
        TChan::made(None, true)
    }

    /// A channel that is only written. Its
    /// [duplicates](TChan::dup) read. So no value stays in memory for a reader that does not exist.
    pub fn new_broadcast() -> TChan<T> {
        TChan::made(None, false)
    }

    /// As [`new`](TChan::new), with a name. Reports of waiting threads call the ends of the channel
    /// and of its duplicates by the name: see [`TVar::named`].
    pub fn named(name: impl Into<Arc<str>>) -> TChan<T> {
        TChan::made(Some(name.into()), true)
    }

    /// As [`new_broadcast`](TChan::new_broadcast), with a [name](TChan::named).
    pub fn named_broadcast(name: impl Into<Arc<str>>) -> TChan<T> {
        TChan::made(Some(name.into()), false)
    }
}

impl<T: Send + Sync + 'static, E: Engine> TChan<T, E> {
    pub(crate) fn made(name: Option<Arc<str>>, is_read: bool) -> TChan<T, E> {
        let place = Place(TVar::made(None, None));
        let read = is_read.then(|| TVar::made(name.clone(), place.clone()));
        TChan { read, write: TVar::made(name, place) }
    }

    /// A channel with the same end to write to, which reads from this place on.
    fn reading_from(&self, place: Place<T, E>) -> TChan<T, E> {
        TChan { read: Some(TVar::made(self.write.name(), place)), write: self.write.clone() }
    }

    /// A channel with the same end to write to, with an own end to read from, which begins here: it
    /// reads the values that are written from now on.
    ///
    /// # Errors
    /// As [`TVar::read`].
    #[doc(alias = "dupTChan")]
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn dup(&self, tx: &Tx<E>) -> Tried<TChan<T, E>> {
        Ok(self.reading_from(self.write.read(tx)?.clone()))
    }

    /// A channel with the same end to write to, with an own end to read from, which begins where
    /// this one stands: it reads the values that this one has not read, and the values that are
    /// written from now on. `clone` is another handle to the same end.
    ///
    /// # Errors
    /// As [`TVar::read`].
    ///
    /// # Panics
    /// If this channel is [only written](TChan::new_broadcast).
    #[doc(alias = "cloneTChan")]
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn dup_from_here(&self, tx: &Tx<E>) -> Tried<TChan<T, E>> {
        Ok(self.reading_from(self.end().read(tx)?.clone()))
    }

    /// Adds a value at the end.
    ///
    /// # Errors
    /// As [`TVar::read`].
    ///
    /// # Complexity
    /// Four allocations; one read and two writes.
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn write(&self, tx: &Tx<E>, value: T) -> Tried<()> {
        let place = self.write.read(tx)?;
        let next = Place(TVar::made(None, None));
        place.0.write(tx, Some(Filled { value, next: next.clone() }));
        self.write.write(tx, next);
        Ok(())
    }

    /// Adds a value at the front of this end, so that it is the next to be read here. No other end
    /// gets it.
    ///
    /// # Errors
    /// As [`TVar::read`].
    ///
    /// # Panics
    /// If this channel is [only written](TChan::new_broadcast).
    ///
    /// # Complexity
    /// Three allocations; one read and one write.
    #[doc(alias = "unGetTChan")]
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn unget(&self, tx: &Tx<E>, value: T) -> Tried<()> {
        let next = self.end().read(tx)?.clone();
        self.end().write(tx, Place(TVar::made(None, Some(Filled { value, next }))));
        Ok(())
    }

    /// Takes a clone of the next value; retries while there is none.
    ///
    /// # Errors
    /// As [`TVar::read`] and [`Tx::retry`].
    ///
    /// # Panics
    /// If this channel is [only written](TChan::new_broadcast).
    ///
    /// # Complexity
    /// One allocation, and the clone; two reads and one write.
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn read(&self, tx: &Tx<E>) -> Tried<T>
    where
        T: Clone,
    {
        tx.some_or_retry(self.try_read(tx)?)
    }

    /// Takes a clone of the next value, if there is one.
    ///
    /// # Errors
    /// As [`TVar::read`].
    ///
    /// # Panics
    /// If this channel is [only written](TChan::new_broadcast).
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn try_read(&self, tx: &Tx<E>) -> Tried<Option<T>>
    where
        T: Clone,
    {
        let Some(filled) = self.filled(tx)? else { return Ok(None) };
        self.end().write(tx, filled.next.clone());
        Ok(Some(filled.value.clone()))
    }

    /// A reference to the next value, which stays; retries while there is none.
    ///
    /// # Errors
    /// As [`TVar::read`] and [`Tx::retry`].
    ///
    /// # Panics
    /// If this channel is [only written](TChan::new_broadcast).
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn peek<'tx>(&self, tx: &'tx Tx<E>) -> Tried<&'tx T> {
        tx.some_or_retry(self.try_peek(tx)?)
    }

    /// A reference to the next value, which stays, if there is one.
    ///
    /// # Errors
    /// As [`TVar::read`].
    ///
    /// # Panics
    /// If this channel is [only written](TChan::new_broadcast).
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn try_peek<'tx>(&self, tx: &'tx Tx<E>) -> Tried<Option<&'tx T>> {
        Ok(self.filled(tx)?.map(|filled| &filled.value))
    }

    /// Whether there is no value to read.
    ///
    /// # Errors
    /// As [`TVar::read`].
    ///
    /// # Panics
    /// If this channel is [only written](TChan::new_broadcast).
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn is_empty(&self, tx: &Tx<E>) -> Tried<bool> {
        Ok(self.filled(tx)?.is_none())
    }

    fn end(&self) -> &TVar<Place<T, E>, E> {
        self.read.as_ref().expect("a channel of new_broadcast is only written; its duplicates read")
    }

    fn filled<'tx>(&self, tx: &'tx Tx<E>) -> Tried<Option<&'tx Filled<T, E>>> {
        Ok(self.end().read(tx)?.0.read(tx)?.as_ref())
    }
}

identity!([T: Send + Sync + 'static, E: Engine] TChan<T, E>, handle => (&handle.read, &handle.write));

impl<T: Send + Sync + 'static, E: Engine> Default for TChan<T, E> {
    /// A channel without values.
    fn default() -> Self {
        TChan::made(None, true)
    }
}

impl<T: Send + Sync + 'static, E: Engine> Clone for TChan<T, E> {
    /// Another handle to the same channel.
    fn clone(&self) -> Self {
        TChan { read: self.read.clone(), write: self.write.clone() }
    }
}

impl<T: Send + Sync + 'static, E: Engine> fmt::Debug for TChan<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TChan").field("is_only_written", &self.read.is_none()).finish_non_exhaustive()
    }
}
