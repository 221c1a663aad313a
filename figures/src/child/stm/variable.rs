//! [`Variable`]: a number in a variable, for programs that compare kinds of variables and engines.

use selvedge_stm::{Engine, TVar, TWord, Tried, Tx};

/// A shared number, for the transactions of one engine.
pub(super) trait Variable: Clone + Send + Sync + 'static {
    type Engine: Engine;
    fn new(value: u64) -> Self;
    fn read(&self, tx: &Tx<Self::Engine>) -> Tried<u64>;
    fn write(&self, tx: &Tx<Self::Engine>, value: u64);
    fn now(&self) -> u64;
}

impl<E: Engine> Variable for TWord<u64, E> {
    type Engine = E;

    fn new(value: u64) -> Self {
        TWord::with_engine(value)
    }

    #[inline]
    fn read(&self, tx: &Tx<E>) -> Tried<u64> {
        TWord::read(self, tx)
    }

    #[inline]
    fn write(&self, tx: &Tx<E>, value: u64) {
        TWord::write(self, tx, value);
    }

    fn now(&self) -> u64 {
        self.read_now()
    }
}

impl<E: Engine> Variable for TVar<u64, E> {
    type Engine = E;

    fn new(value: u64) -> Self {
        TVar::with_engine(value)
    }

    #[inline]
    fn read(&self, tx: &Tx<E>) -> Tried<u64> {
        TVar::read(self, tx).copied()
    }

    #[inline]
    fn write(&self, tx: &Tx<E>, value: u64) {
        TVar::write(self, tx, value);
    }

    fn now(&self) -> u64 {
        self.read_now(|value| *value)
    }
}
