//! [`TSem`]: a semaphore.

use crate::engine::{Engine, Versioned};
use crate::stop::Tried;
use crate::transaction::Tx;
use crate::variable::identity;
use crate::word::TWord;
use std::fmt;
use std::sync::Arc;

/// A semaphore, for transactions: `wait` takes a unit, and retries while there is none.
///
/// Clones are handles to the same semaphore. The waiting transactions are not served in the order
/// of their arrival: each of them runs again, and one is first. A unit that a transaction has taken
/// is not given back by a drop; [`signal`](TSem::signal) gives it back. An attempt without effect
/// takes nothing.
///
/// # Paper
/// [HMP05 §5] has the variables and `retry`; this is a counter made of them.
///
/// # Complexity
/// The semaphore is one [`TWord`], which each operation reads and writes. So all of its
/// transactions are in each other's way. Nothing is allocated.
///
/// # Examples
/// ```
/// use selvedge::stm::{TSem, atomically};
///
/// selvedge::run(async {
///     let printers = TSem::new(1);
///     let shared = printers.clone();
///     let both = selvedge::spawn(atomically(move |tx| {
///         shared.wait(tx)?;
///         shared.wait(tx) // both or none
///     }));
///     atomically(|tx| printers.signal(tx)).await;
///     both.await.unwrap();
///     assert_eq!(printers.available_now(), 0);
/// })?;
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
pub struct TSem<E: Engine = Versioned> {
    units: TWord<u64, E>,
}

impl TSem {
    /// A semaphore with this number of units.
    pub fn new(units: u64) -> TSem {
        TSem::made(None, units)
    }

    /// A semaphore with this number of units and a name.
    /// Reports of waiting threads show the name: see [`TVar::named`](crate::TVar::named).
    pub fn named(name: impl Into<Arc<str>>, units: u64) -> TSem {
        TSem::made(Some(name.into()), units)
    }
}

impl<E: Engine> TSem<E> {
    pub(crate) fn made(name: Option<Arc<str>>, units: u64) -> TSem<E> {
        TSem { units: TWord::made(name, units) }
    }

    /// Takes a unit; retries while there is none.
    ///
    /// # Errors
    /// As [`TWord::read`] and [`Tx::retry`].
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn wait(&self, tx: &Tx<E>) -> Tried<()> {
        let units = self.units.read(tx)?;
        tx.check(units > 0)?;
        self.units.write(tx, units - 1);
        Ok(())
    }

    /// Takes a unit, if there is one, and tells whether there was.
    ///
    /// # Errors
    /// As [`TWord::read`].
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn try_wait(&self, tx: &Tx<E>) -> Tried<bool> {
        let units = self.units.read(tx)?;
        if units > 0 {
            self.units.write(tx, units - 1);
        }
        Ok(units > 0)
    }

    /// Gives a unit back, or adds one.
    ///
    /// # Errors
    /// As [`TWord::read`].
    ///
    /// # Panics
    /// If the number of units does not fit a `u64`.
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn signal(&self, tx: &Tx<E>) -> Tried<()> {
        self.signal_n(tx, 1)
    }

    /// Gives this number of units back, or adds them.
    ///
    /// # Errors
    /// As [`TWord::read`].
    ///
    /// # Panics
    /// If the number of units does not fit a `u64`.
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn signal_n(&self, tx: &Tx<E>, n: u64) -> Tried<()> {
        self.units.modify(tx, |units| units.checked_add(n).expect("a semaphore has at most u64::MAX units"))
    }

    /// The number of units that can be taken.
    ///
    /// # Errors
    /// As [`TWord::read`].
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn available(&self, tx: &Tx<E>) -> Tried<u64> {
        self.units.read(tx)
    }

    /// The number of units that can be taken at this moment, outside of a transaction.
    pub fn available_now(&self) -> u64 {
        self.units.read_now()
    }
}

identity!([E: Engine] TSem<E>, handle => &handle.units);

impl<E: Engine> Clone for TSem<E> {
    /// Another handle to the same semaphore.
    fn clone(&self) -> Self {
        TSem { units: self.units.clone() }
    }
}

impl<E: Engine> fmt::Debug for TSem<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TSem").field("available", &self.available_now()).finish()
    }
}
