//! The HTTP/1.1 engine.
//!
//! This half does no I/O: bytes come in as slices, decisions and bytes go out. It can therefore be tested at every
//! byte split without a socket. The order of use for one request on a connection is
//!
//! 1. [`request::parse`] takes one request head from the front of the read buffer, or says that more is needed, or
//!    which status refuses it;
//! 2. [`body::Decoder`] consumes the request body behind it;
//! 3. [`target::resolve`] turns the path into a name relative to the served directory;
//! 4. [`entry::Entry`], the description of one file with its heads prebuilt, answers the request: conditions
//!    ([`conditional`]), ranges ([`range`]), head bytes into the write buffer, and which bytes of the file follow;
//!    [`page`] writes the replies that have no file;
//! 5. [`log::combined`] writes the line of the access log.
//!
//! **Invariants.** Nothing here owns a descriptor, allocates per request on the plain path (no ranges), or panics on
//! any input. A message that two readers of RFC 9112 could frame differently is refused and its connection closed.

#![forbid(unsafe_code)]

pub mod body;
pub mod conditional;
pub mod date;
pub mod entry;
#[doc(hidden)]
pub mod fuzz;
pub mod log;
pub mod mime;
pub mod page;
pub mod range;
pub mod request;
pub mod response;
pub mod status;
pub mod target;
