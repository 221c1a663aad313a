//! `BlockingError`: the error of a call on the blocking pool that came to no result, because it
//! panicked or because no OS thread could be started. `Blocking` (`call.rs`) makes it; `From` turns
//! it into an `io::Error` for the callers in this crate.

use std::any::Any;
use std::fmt;

/// A call on the blocking pool came to no result.
pub struct BlockingError {
    cause: BlockingCause,
}

enum BlockingCause {
    Panicked(Box<dyn Any + Send>),
    NoThread(String),
}

impl BlockingError {
    pub(super) fn panicked(payload: Box<dyn Any + Send>) -> BlockingError {
        BlockingError { cause: BlockingCause::Panicked(payload) }
    }

    pub(super) fn no_thread(error: &std::io::Error) -> BlockingError {
        BlockingError { cause: BlockingCause::NoThread(error.to_string()) }
    }

    /// Whether the call panicked.
    pub fn is_panic(&self) -> bool {
        matches!(self.cause, BlockingCause::Panicked(_))
    }

    /// The payload of the panic, to resume it with; `Err(self)` if the call did not panic.
    pub fn into_panic(self) -> Result<Box<dyn Any + Send>, BlockingError> {
        match self.cause {
            BlockingCause::Panicked(payload) => Ok(payload),
            cause => Err(BlockingError { cause }),
        }
    }
}

impl fmt::Display for BlockingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            BlockingCause::Panicked(payload) => {
                let text = payload.downcast_ref::<&str>().copied();
                let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
                write!(f, "a call on the blocking pool panicked: {}", text.unwrap_or("(no message)"))
            }
            BlockingCause::NoThread(error) => {
                write!(f, "the blocking pool cannot start an OS thread: {error}")
            }
        }
    }
}

impl fmt::Debug for BlockingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlockingError({self})")
    }
}

impl std::error::Error for BlockingError {}

impl From<BlockingError> for std::io::Error {
    fn from(lost: BlockingError) -> std::io::Error {
        std::io::Error::other(lost.to_string())
    }
}
