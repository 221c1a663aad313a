//! How the body of a transaction ends without a value: [`Stop`] and [`Abort`].

use std::fmt;

/// The result of an operation in a transaction. The body hands the error on with `?`.
///
/// The compiler warns where a `?` is forgotten, and says so: an operation that
/// loses its error has perhaps not happened, and its transaction goes on.
/// ```compile_fail
/// # // no code: the error is a lint's
/// use selvedge::stm::{TWord, atomically_blocking};
///
/// let (from, to) = (TWord::new(10_u32), TWord::new(0_u32));
/// atomically_blocking(|tx| {
///     from.modify(tx, |sum| sum - 3);
///     to.modify(tx, |sum| sum + 3)
/// });
/// ```
/// An error of another type is no end of a body. [`try_atomically`](crate::try_atomically) has
/// bodies that end with `Abort::Error`:
/// ```compile_fail,E0277
/// use selvedge::stm::{TVar, atomically_blocking};
///
/// let text = TVar::new("12".to_string());
/// atomically_blocking(|tx| Ok(text.read(tx)?.parse::<u32>()?));
/// ```
pub type Tried<T> = Result<T, Stop>;

/// The attempt ends without effect: the transaction retries, or another one was in its way.
///
/// A body hands it on. A body that drops a [retry](crate::Tx::retry) goes on as if it had not
/// retried. A body that drops a conflict and returns a value is run again all the same.
///
/// It is no error of a program, and never leaves the transaction. So it does not implement
/// [`Error`](std::error::Error): within a `Box<dyn Error>` it would be lost to the transaction.
/// ```compile_fail,E0277
/// use selvedge::stm::{TVar, Tx};
///
/// fn stock(tx: &Tx, var: &TVar<u32>) -> Result<u32, Box<dyn std::error::Error>> {
///     Ok(*var.read(tx)?)
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "the body of a transaction hands it on"]
pub struct Stop(pub(crate) StopReason);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopReason {
    Retry,
    Conflict,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            StopReason::Retry => "the transaction waits for a variable to change",
            StopReason::Conflict => "another transaction was in the way",
        })
    }
}

/// The end of a body that may give up with an error: see [`try_atomically`](crate::try_atomically).
///
/// The error within it is what the transaction returns. `Abort` itself is no error, as [`Stop`] is
/// none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Abort<X> {
    /// The attempt ends, as in every transaction.
    Stop(Stop),
    /// The transaction is given up with this error, and has no effect.
    Error(X),
}

impl<X> From<Stop> for Abort<X> {
    fn from(stop: Stop) -> Abort<X> {
        Abort::Stop(stop)
    }
}

impl<X: fmt::Display> fmt::Display for Abort<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Abort::Stop(stop) => stop.fmt(f),
            Abort::Error(error) => error.fmt(f),
        }
    }
}

/// What a branch of [`Tx::or_else`](crate::Tx::or_else) may end with: [`Stop`] or [`Abort`].
///
/// ```compile_fail,E0277
/// use selvedge::stm::{TWord, atomically_blocking};
///
/// let stock = TWord::new(1_u32);
/// atomically_blocking(|tx| {
///     let first = |_: &_| stock.read(tx).map_err(|_| "no stock");
///     Ok(tx.or_else(first, |_| Ok(0)))
/// });
/// ```
#[diagnostic::on_unimplemented(
    message = "a branch of a transaction cannot end with `{Self}`",
    label = "the branch returns `Result<_, {Self}>`",
    note = "a branch returns `Tried<R>`, or `Result<R, Abort<X>>` in `try_atomically`; `Abort::Error` wraps an error of the program"
)]
pub trait Ending: sealed::Ending + From<Stop> {}

pub(crate) mod sealed {
    #[expect(unnameable_types, reason = "the two errors of bodies are the only ones")]
    pub trait Ending {
        /// Whether it is a retry.
        fn is_retry(&self) -> bool;
    }
}

impl Ending for Stop {}

impl sealed::Ending for Stop {
    fn is_retry(&self) -> bool {
        self.0 == StopReason::Retry
    }
}

impl<X> Ending for Abort<X> {}

impl<X> sealed::Ending for Abort<X> {
    fn is_retry(&self) -> bool {
        matches!(self, Abort::Stop(stop) if stop.is_retry())
    }
}
