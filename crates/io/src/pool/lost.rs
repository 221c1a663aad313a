//! `Lost`: the error of a call on the blocking pool that came to no result, because it panicked or
//! because no OS thread could be started. `Blocking` (`call.rs`) makes it; `From` turns it into an
//! `io::Error` for the callers in this crate.

use std::any::Any;
use std::fmt;

/// A call on the blocking pool came to no result.
pub struct Lost {
    cause: LostCause,
}

enum LostCause {
    Panicked(Box<dyn Any + Send>),
    NoThread(String),
}

impl Lost {
    pub(super) fn panicked(payload: Box<dyn Any + Send>) -> Lost {
        Lost { cause: LostCause::Panicked(payload) }
    }

    pub(super) fn no_thread(error: &std::io::Error) -> Lost {
        Lost { cause: LostCause::NoThread(error.to_string()) }
    }

    /// Whether the call panicked.
    pub fn is_panic(&self) -> bool {
        matches!(self.cause, LostCause::Panicked(_))
    }

    /// The payload of the panic, to resume it with; `Err(self)` if the call did not panic.
    pub fn into_panic(self) -> Result<Box<dyn Any + Send>, Lost> {
        match self.cause {
            LostCause::Panicked(payload) => Ok(payload),
            cause => Err(Lost { cause }),
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            LostCause::Panicked(payload) => {
                let text = payload.downcast_ref::<&str>().copied();
                let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
                write!(f, "a call on the blocking pool panicked: {}", text.unwrap_or("(no message)"))
            }
            LostCause::NoThread(error) => write!(f, "the blocking pool cannot start an OS thread: {error}"),
        }
    }
}

impl fmt::Debug for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lost({self})")
    }
}

impl std::error::Error for Lost {}

impl From<Lost> for std::io::Error {
    fn from(lost: Lost) -> std::io::Error {
        std::io::Error::other(lost.to_string())
    }
}
