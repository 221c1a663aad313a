//! [`RanksError`]: which ranks of a run have failed, and why ([`Cause`]).
//!
//! `running.rs` makes it out of the ends of the ranks.

use selvedge_core::Exception;
use std::error::Error;
use std::fmt;
use std::process::ExitStatus;

/// Some ranks of a program failed.
pub struct RanksError<E> {
    /// The ranks that failed, with the reason, in the order in which they failed. The first one may
    /// be the reason why the others failed.
    pub ranks: Vec<(usize, Cause<E>)>,
}

/// Why a rank failed.
pub enum Cause<E> {
    /// Its body returned an error.
    Error(E),
    /// Its body panicked, or threw an exception.
    Exception(Exception),
    /// The engine did not start or did not end.
    Engine(Box<dyn Error + Send + Sync>),
    /// Its process, which the run had started, ended with this status.
    Process(ExitStatus),
    /// Ranks that it has [spawned](crate::Communicator::spawn) failed, which the text names.
    Spawned(String),
}

impl<E> RanksError<E> {
    /// The rank that failed first.
    pub fn rank(&self) -> usize {
        self.ranks[0].0
    }

    /// Why it failed.
    pub fn cause(&self) -> &Cause<E> {
        &self.ranks[0].1
    }
}

impl<E: fmt::Display> fmt::Display for Cause<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Error(error) => error.fmt(f),
            Cause::Exception(exception) => exception.fmt(f),
            Cause::Engine(error) => error.fmt(f),
            Cause::Process(status) => write!(f, "its process ended with {status}"),
            Cause::Spawned(text) => write!(f, "of the ranks that it spawned, {text}"),
        }
    }
}

impl<E: fmt::Display> fmt::Display for RanksError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} has failed: {}", self.rank(), self.cause())?;
        for (rank, cause) in &self.ranks[1..] {
            write!(f, "\n  then rank {rank}: {cause}")?;
        }
        Ok(())
    }
}

impl<E: fmt::Display> fmt::Debug for Cause<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Writes what `Display` writes, because a `main` that returns a `Result` prints its error with
/// `Debug`.
impl<E: fmt::Display> fmt::Debug for RanksError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<E: fmt::Display> Error for RanksError<E> {}
