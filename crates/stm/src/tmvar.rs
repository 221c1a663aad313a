//! [`TMVar`]: a variable that is full or empty.

use crate::engine::{Engine, Versioned};
use crate::stop::Tried;
use crate::transaction::Tx;
use crate::var::TVar;
use crate::variable::identity;
use std::fmt;
use std::sync::Arc;

/// A variable that is full or empty, for transactions: `take` waits while it is empty, and `put`
/// while it is full.
///
/// Clones are handles to the same variable. The waiting transactions are not served in the order of
/// their arrival: each of them runs again, and one is first.
///
/// # Paper
/// [HMP05 §5] has the variables and `retry`; this is an MVar ([Del §4.1]) made of them.
///
/// # Examples
/// ```
/// use selvedge::stm::{TMVar, atomically};
///
/// selvedge::run(async {
///     let (left, right) = (TMVar::empty(), TMVar::empty());
///     let forks = (left.clone(), right.clone());
///     let eats = selvedge::spawn(atomically(move |tx| {
///         Ok((forks.0.take(tx)?, forks.1.take(tx)?)) // both or none
///     }));
///     atomically(|tx| left.put(tx, 1)).await;
///     atomically(|tx| right.put(tx, 2)).await;
///     assert_eq!(eats.await.unwrap(), (1, 2));
/// })?;
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
pub struct TMVar<T: Send + Sync + 'static, E: Engine = Versioned> {
    value: TVar<Option<T>, E>,
}

impl<T: Send + Sync + 'static> TMVar<T> {
    /// An empty variable.
    pub fn empty() -> TMVar<T> {
        TMVar::made(None, None)
    }

    /// A full variable.
    pub fn full(value: T) -> TMVar<T> {
        TMVar::made(None, Some(value))
    }

    /// A variable with a name, which is full if there is a value. Reports of waiting threads show
    /// the name: see [`TVar::named`].
    pub fn named(name: impl Into<Arc<str>>, value: Option<T>) -> TMVar<T> {
        TMVar::made(Some(name.into()), value)
    }
}

impl<T: Send + Sync + 'static, E: Engine> TMVar<T, E> {
    pub(crate) fn made(name: Option<Arc<str>>, value: Option<T>) -> TMVar<T, E> {
        TMVar { value: TVar::made(name, value) }
    }

    /// A reference to the value, which stays; retries while the variable is empty.
    ///
    /// # Errors
    /// As [`TVar::read`] and [`Tx::retry`].
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn read<'tx>(&self, tx: &'tx Tx<E>) -> Tried<&'tx T> {
        tx.some_or_retry(self.value.read(tx)?.as_ref())
    }

    /// Takes a clone of the value, and leaves the variable empty; retries while it is empty. The
    /// value itself stays until no transaction can have a reference to it.
    ///
    /// # Errors
    /// As [`TVar::read`] and [`Tx::retry`].
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn take(&self, tx: &Tx<E>) -> Tried<T>
    where
        T: Clone,
    {
        let value = self.read(tx)?.clone();
        self.value.write(tx, None);
        Ok(value)
    }

    /// Fills the variable; retries while it is full.
    ///
    /// # Errors
    /// As [`TVar::read`] and [`Tx::retry`].
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn put(&self, tx: &Tx<E>, value: T) -> Tried<()> {
        let is_empty = self.value.read(tx)?.is_none();
        tx.check(is_empty)?;
        self.value.write(tx, Some(value));
        Ok(())
    }

    /// Takes a clone of the value, if the variable is full.
    ///
    /// # Errors
    /// As [`TVar::read`].
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn try_take(&self, tx: &Tx<E>) -> Tried<Option<T>>
    where
        T: Clone,
    {
        let value = self.value.read(tx)?.clone();
        if value.is_some() {
            self.value.write(tx, None);
        }
        Ok(value)
    }

    /// A reference to the value, which stays, if the variable is full.
    ///
    /// # Errors
    /// As [`TVar::read`].
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn try_read<'tx>(&self, tx: &'tx Tx<E>) -> Tried<Option<&'tx T>> {
        Ok(self.value.read(tx)?.as_ref())
    }

    /// Replaces the value, and gives a reference to the old one; retries while the variable is
    /// empty.
    ///
    /// # Errors
    /// As [`TVar::read`] and [`Tx::retry`].
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn swap<'tx>(&self, tx: &'tx Tx<E>, value: T) -> Tried<&'tx T> {
        let old = self.read(tx)?;
        self.value.write(tx, Some(value));
        Ok(old)
    }

    /// Fills the variable, whether it is empty or full.
    pub fn write(&self, tx: &Tx<E>, value: T) {
        self.value.write(tx, Some(value));
    }

    /// Whether the variable is empty.
    ///
    /// # Errors
    /// As [`TVar::read`].
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn is_empty(&self, tx: &Tx<E>) -> Tried<bool> {
        Ok(self.value.read(tx)?.is_none())
    }

    /// Fills the variable, if it is empty, and tells whether it was.
    ///
    /// # Errors
    /// As [`TVar::read`].
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn try_put(&self, tx: &Tx<E>, value: T) -> Tried<bool> {
        let is_empty = self.value.read(tx)?.is_none();
        if is_empty {
            self.value.write(tx, Some(value));
        }
        Ok(is_empty)
    }
}

identity!([T: Send + Sync + 'static, E: Engine] TMVar<T, E>, handle => &handle.value);

impl<T: Send + Sync + 'static, E: Engine> Default for TMVar<T, E> {
    /// An empty variable.
    fn default() -> Self {
        TMVar::made(None, None)
    }
}

impl<T: Send + Sync + 'static, E: Engine> Clone for TMVar<T, E> {
    /// Another handle to the same variable.
    fn clone(&self) -> Self {
        TMVar { value: self.value.clone() }
    }
}

impl<T: Send + Sync + fmt::Debug + 'static, E: Engine> fmt::Debug for TMVar<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.read_now(|value| f.debug_tuple("TMVar").field(value).finish())
    }
}
