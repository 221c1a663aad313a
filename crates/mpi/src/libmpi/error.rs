//! [`MpiError`]: a call of the library that failed, with the name of the call; and
//! [`MpiErrorClass`], the kind of failure, which means the same under each library.
//!
//! `calls.rs` makes them. `family.rs` has the numbers that the libraries give to the classes.

use std::fmt;

/// A kind of failure that MPI tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MpiErrorClass {
    /// The buffer's address.
    Buffer,
    /// A count, or a size that does not fit into the library's integers.
    Count,
    /// A type of data.
    Type,
    /// A tag.
    Tag,
    /// A communicator.
    Comm,
    /// A rank that the communicator does not have.
    Rank,
    /// A request.
    Request,
    /// The root of a collective call.
    Root,
    /// A group.
    Group,
    /// The operation of a reduction, or one that is not defined for the numbers' kind.
    Op,
    /// A topology.
    Topology,
    /// The dimensions of a topology.
    Dims,
    /// Another argument.
    Arg,
    /// The library does not know the cause.
    Unknown,
    /// A message is longer than the room that its receiver gave it.
    Truncate,
    /// An error with a text of its own.
    Other,
    /// The library found itself in a wrong state.
    Intern,
    /// The errors are in the statuses.
    InStatus,
    /// The request is not done, and has not failed.
    Pending,
    /// A port.
    Port,
    /// A service that has not been published.
    Name,
    /// The publishing of a service.
    Service,
    /// The start of further ranks.
    Spawn,
    /// There is no memory left.
    NoMem,
    /// The library does not have the operation.
    UnsupportedOperation,
    /// A rank has been ended by `MPI_Abort`.
    ProcAborted,
    /// A rank is dead.
    ProcFailed,
    /// A rank is dead from which a receive with any source may wait.
    ProcFailedPending,
    /// A rank has revoked the communicator.
    Revoked,
    /// A class without a name here, by the library's number.
    Unlisted(i32),
}

/// A call of the MPI library that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MpiError {
    /// The call by its name in MPI's standard, as `MPI_Isend`.
    pub call: &'static str,
    /// What failed.
    pub class: MpiErrorClass,
    /// The library's own number. 0 if the call was refused before it reached the library.
    pub code: i32,
    /// The library's words, and what was asked for.
    pub text: String,
}

impl MpiError {
    /// A call that is refused before it reaches the library.
    pub(super) fn refused(call: &'static str, class: MpiErrorClass, text: String) -> MpiError {
        MpiError { call, class, code: 0, text }
    }

    /// Whether it tells that a rank is dead.
    pub(super) fn tells_of_a_death(&self) -> bool {
        matches!(self.class, MpiErrorClass::ProcFailed | MpiErrorClass::ProcFailedPending)
    }

    /// What a call gave, or nothing if it could not be because a rank is dead.
    pub(super) fn unless_dead<R>(result: Result<R, MpiError>) -> Result<Option<R>, MpiError> {
        match result {
            Err(error) if error.tells_of_a_death() => Ok(None),
            other => other.map(Some),
        }
    }

    /// Puts what was asked for behind the library's words.
    pub(super) fn about(mut self, what: impl fmt::Display) -> MpiError {
        self.text = format!("{} ({what})", self.text);
        self
    }
}

impl fmt::Display for MpiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.call, self.text)
    }
}

impl std::error::Error for MpiError {}
