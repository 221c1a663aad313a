//! Why a call failed: [`Error`] with its [`ErrorClass`], and [`CallSite`], which says where in the
//! program the call stands and on which rank it was made.
//!
//! Each public operation makes its [`CallSite`] first, and its errors from it, so that every error
//! names the operation, both sides and the source line.

use std::fmt;
use std::io;
use std::panic::Location;

/// What kind of error it is, for a program that goes on differently.
///
/// # Paper
/// [HMPI "Point-to-point communications"]: an error handler turns errors into exceptions. Here each
/// call returns a `Result`, and no handler is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[doc(alias = "MPIError")]
#[doc(alias = "commSetErrhandler")]
#[doc(alias = "commGetErrhandler")]
#[doc(alias = "errorsAreFatal")]
#[doc(alias = "errorsReturn")]
#[doc(alias = "errorsThrowExceptions")]
pub enum ErrorClass {
    /// A rank that the communicator does not have.
    #[doc(alias = "MPI_ERR_RANK")]
    Rank,
    /// A tag above [`Tag::MAX`](crate::Tag::MAX).
    #[doc(alias = "MPI_ERR_TAG")]
    Tag,
    /// A root that the communicator does not have.
    #[doc(alias = "MPI_ERR_ROOT")]
    Root,
    /// A number of values or elements that does not fit the number of ranks.
    #[doc(alias = "MPI_ERR_COUNT")]
    Count,
    /// A layout that reaches beyond its slice.
    #[doc(alias = "MPI_ERR_BUFFER")]
    Buffer,
    /// The message has more elements than the buffer of the receive.
    #[doc(alias = "MPI_ERR_TRUNCATE")]
    Truncate,
    /// The message holds a value of another type.
    #[doc(alias = "MPI_ERR_TYPE")]
    Type,
    /// The ranks do not make the same collective call, or not with the same root.
    #[doc(alias = "MPI_ERR_OTHER")]
    Mismatch,
    /// A group that is not of ranks of the communicator.
    #[doc(alias = "MPI_ERR_GROUP")]
    Group,
    /// The other rank has ended, so the message will not come, or will not be received.
    #[doc(alias = "MPI_ERR_PROC_FAILED")]
    Ended,
    /// The communicator is revoked: no call on it goes on.
    #[doc(alias = "MPIX_ERR_REVOKED")]
    #[doc(alias = "MPI_ERR_REVOKED")]
    Revoked,
    /// A function that another rank called here has panicked, or is not the function that the other
    /// rank means.
    Function,
    /// Two worlds cannot be joined: no port has the name, or the rank that joins them has ended.
    #[doc(alias = "MPI_ERR_PORT")]
    #[doc(alias = "MPI_ERR_NAME")]
    Join,
    /// The engine of the communicator cannot do it. The message says what can.
    #[doc(alias = "MPI_ERR_UNSUPPORTED_OPERATION")]
    #[doc(alias = "MPI_ERR_SPAWN")]
    Unsupported,
    /// A call of the system on a file has failed: [`Error::io_kind`] says how. Or the call is not
    /// possible on this file.
    #[doc(alias = "MPI_ERR_FILE")]
    #[doc(alias = "MPI_ERR_IO")]
    #[doc(alias = "MPI_ERR_NO_SUCH_FILE")]
    #[doc(alias = "MPI_ERR_FILE_EXISTS")]
    #[doc(alias = "MPI_ERR_ACCESS")]
    #[doc(alias = "MPI_ERR_NO_SPACE")]
    #[doc(alias = "MPI_ERR_AMODE")]
    File,
}

/// Why a call failed. Its message names the call, the source line and both sides.
#[derive(Clone)]
pub struct Error(Box<Described>);

#[derive(Clone)]
struct Described {
    class: ErrorClass,
    call: CallSite,
    text: String,
    /// The number of the system's error, if a call of the system has failed.
    errno: Option<i32>,
}

/// An operation that the program has called, on one rank.
#[derive(Debug, Clone, Copy)]
pub struct CallSite {
    /// The name of the operation.
    pub name: &'static str,
    /// Where the program calls it.
    pub place: &'static Location<'static>,
    /// The rank that calls it, in its communicator.
    pub rank: usize,
}

impl CallSite {
    #[track_caller]
    pub(crate) fn here(name: &'static str, rank: usize) -> CallSite {
        CallSite { name, place: Location::caller(), rank }
    }

    pub(crate) fn error(self, class: ErrorClass, text: impl Into<String>) -> Error {
        Error(Box::new(Described { class, call: self, text: text.into(), errno: None }))
    }
}

impl Error {
    /// The same error with the number of the system's error.
    pub(crate) fn with_errno(mut self, errno: Option<i32>) -> Error {
        self.0.errno = errno;
        self
    }

    /// The same error, as that of the call which the program made.
    pub(crate) fn in_call(mut self, call: CallSite) -> Error {
        self.0.call = call;
        self
    }
}

impl fmt::Display for CallSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on rank {} ({})", self.name, self.rank, self.place)
    }
}

impl Error {
    /// The kind of error.
    pub fn class(&self) -> ErrorClass {
        self.0.class
    }

    /// The name of the operation that failed.
    pub fn call(&self) -> &'static str {
        self.0.call.name
    }

    /// The rank on which it was called, in the communicator of the call.
    pub fn rank(&self) -> usize {
        self.0.call.rank
    }

    /// What kind of failure the system has told, on this rank or another one, if one has. A call on
    /// a [file](crate::SharedFile) fails so.
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        self.raw_os_error().map(|errno| io::Error::from_raw_os_error(errno).kind())
    }

    /// The number of the error that the system has told: `errno`.
    pub fn raw_os_error(&self) -> Option<i32> {
        self.0.errno
    }

    /// Where the program called it.
    pub fn place(&self) -> &'static Location<'static> {
        self.0.call.place
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.call, self.0.text)
    }
}

/// Writes what `Display` writes, because a `main` that returns a `Result` prints its error with
/// `Debug`.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::ErrorClass::{self, *};

    /// The class after this one. A class that is added does not compile without a place here.
    fn next(class: ErrorClass) -> Option<ErrorClass> {
        Some(match class {
            Rank => Tag,
            Tag => Root,
            Root => Count,
            Count => Buffer,
            Buffer => Truncate,
            Truncate => Type,
            Type => Mismatch,
            Mismatch => Group,
            Group => Ended,
            Ended => Revoked,
            Revoked => Function,
            Function => Join,
            Join => Unsupported,
            Unsupported => File,
            File => return None,
        })
    }

    /// The case `every_class` of the conformance suite provokes each.
    #[test]
    fn every_class_is_provoked() {
        let cases = include_str!("../tests/suite/conformance/errors.rs");
        let (_, case) = cases.split_once("every_class(2, world)").expect("the case is there");
        let classes = std::iter::successors(Some(Rank), |class| next(*class));
        let places = classes.map(|class| (class, case.find(&format!("seen.push((ErrorClass::{class:?}, "))));
        let mut last = 0;
        for (class, place) in places {
            let place = place.unwrap_or_else(|| panic!("{class:?} is not provoked"));
            assert!(place > last, "{class:?} is not in its place");
            last = place;
        }
    }
}
