//! [`WireError`]: why a value was not written or read.
//!
//! The serialiser and both deserialisers give it.

use serde::{de, ser};
use std::fmt::{self, Display};

/// Why a value was not written or read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WireError(String);

impl WireError {
    pub(super) fn new(text: impl Into<String>) -> WireError {
        WireError(text.into())
    }
}

impl Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WireError {}

impl ser::Error for WireError {
    fn custom<T: Display>(text: T) -> WireError {
        WireError(text.to_string())
    }
}

impl de::Error for WireError {
    fn custom<T: Display>(text: T) -> WireError {
        WireError(text.to_string())
    }
}
