//! The HTTP/1.1 engine, and a server of static files on it.
//!
//! # Threads
//!
//! [`Site`] serves a directory ([`DocumentRoot`]) as one worker does: a thread per connection, a
//! cache, buffers, a clock and a part of the access log ([`LogFile`]). [`Site::serve_tcp`] accepts
//! connections and starts their threads until [`Stop`] is requested; [`Site::drain`] then lets
//! requests in flight finish. Each worker, an OS thread with a scheduler and an event loop, has a
//! site of its own; nothing is shared between them but the log file.
//!
//! A request for a file in the cache is one `recv` and one `send` (or `send` and `sendfile`), and
//! allocates nothing.
//!
//! # Engine
//!
//! The other modules do no I/O. They take bytes as slices, and give decisions and bytes. So a test
//! can split the bytes at every place and needs no socket. A connection uses them for one request
//! in this order:
//!
//! 1. [`request::parse`] takes one request head from the front of the read buffer, or says that
//!    more is needed, or which status refuses it;
//! 2. [`body::Decoder`] consumes the request body behind it;
//! 3. [`target::resolve`] turns the path into a name relative to the served directory;
//! 4. [`representation::Representation`], the description of one file with its heads prebuilt,
//!    answers the request: conditions ([`conditional`]), ranges ([`range`]), head bytes into the
//!    write buffer, and which bytes of the file follow; [`error_page`] writes the replies that have
//!    no file;
//! 5. [`log::Lines::put`] writes the line of the access log.
//!
//! [`coding`] has bodies as stages of a [pipeline](selvedge_pipeline).
//!
//! **Invariants.** Nothing of the engine owns a descriptor, allocates per request on the plain path
//! (no ranges), or panics on any input. A message that two readers of RFC 9112 could frame
//! differently is refused and its connection closed.

// # For readers of the source
//
// `connection` knows the protocol and no directory. A `Responder` (`responder.rs`) takes each
// request and gives the reply at once, or names the `Handler` that answers; `connection/run.rs`
// runs that handler in the thread of its connection. `Files` (`files.rs`) is the responder of a
// directory, `Routed` (`routed.rs`) that of a site with routes, and `Front` that of a site. `Site`
// puts connections and files together, so it knows both, and neither knows it. A site with files
// elsewhere has a `FileStore` (`file_store.rs`); `zip_store.rs` is one. A large file reaches the
// socket through `Stream::try_send_file`. Names are looked up with `fs::Handle`.
//
// `Routed` asks the table of a `Routing`, applies the rules of the route, and answers. A call that
// may block is a question: the connection has it answered on the blocking pool, and then asks
// `Routed` again. A route with a handler has the same rules around it (`routed/guarded.rs`). Fields
// are changed in the head after it is written (`routed/fields.rs`), so the prebuilt heads stay. A
// `ConnectionGate` is what a connection passes before its first request.
//
// With a `BlockCache` in its `Config` a site reads files past the page cache. A read must wait, and
// a responder must not, so a handler answers for all files then: `StaticFiles`, or `DirectRoutes`
// (`direct_routes.rs`) in front of `Routed`. `file_body.rs` makes their bodies of blocks.
//
// A reply is logged when it is gone. Its line is drafted with the reply, and kept if all replies
// leave at once. Otherwise the draft is taken back, and the request, which still lies in the input,
// is parsed again (`connection/unlogged.rs`). An exchange counts the bytes that the kernel has
// taken. If the connection is broken, it subtracts the bytes that the client has not acknowledged.
// A client that must make room is given up when it has acknowledged nothing for a time.
//
// Invariants:
// - The half that decides does no I/O, has no unsafe code, and panics on no input.
// - A message that two readers could frame differently is refused, and its connection closed. So is
//   the connection of a client that was answered while it waited to be told to send a body.
// - A file that is not regular is never opened for reading, and an opened file lies below the root.
// - A site of one directory runs no code of routes, rules or counters.

#![doc(test(attr(deny(warnings), allow(dead_code))))]
#![forbid(unsafe_code)]

mod access_log;
mod block_cache;
pub mod body;
mod cache;
pub mod coding;
pub mod conditional;
mod config;
mod connection;
mod counted;
pub mod date;
mod decimal;
mod direct_routes;
mod document_root;
pub mod error_page;
mod file_body;
mod file_store;
mod files;
pub mod framing_fields;
mod front;
#[doc(hidden)]
pub mod fuzz;
mod gate;
pub mod log;
mod log_format;
mod lost_lines;
mod metrics;
pub mod mime;
mod own_page;
mod plain;
pub mod range;
mod redirect_to;
mod reload;
pub mod representation;
pub mod request;
mod responder;
pub mod response;
mod routed;
mod routing;
mod site;
mod static_files;
pub mod status;
mod status_page;
mod stop;
pub mod target;
pub mod trailers;
mod worker;
#[cfg(feature = "zip")]
mod zip_store;

pub use access_log::{BACKLOG_MAX, LogFile, Rotation};
pub use block_cache::{BlockCache, BlockCounts};
pub use config::{Config, HandlerLimits};
pub use document_root::DocumentRoot;
pub use file_store::{FileStore, StoredContent, StoredFile, answer_from};
pub use gate::ConnectionGate;
pub use log_format::{LogFormat, LogFormatError, OwnFormat};
pub use metrics::{Metrics, OwnMetric};
pub use redirect_to::RedirectTo;
pub use reload::Reload;
pub use routed::MakeHandler;
pub use routing::{Routing, RoutingError};
pub use site::{Routes, Site};
pub use static_files::StaticFiles;
pub use status_page::{PrometheusText, StatusPage};
pub use stop::Stop;
#[cfg(feature = "zip")]
pub use zip_store::{UNPACKED_BYTES_MAX, ZipStore};

#[doc(inline)]
pub use selvedge_handler::{
    Body, BodyError, Bytes, Caller, ContentType, DynHandler, FieldLines, Handler, HeaderMap, HeaderName,
    HeaderValue, IntoResponse, LazyCaller, Method, Mount, Placeholder, PlainAnswer, PlainCall, PlainContent,
    PlainOutcome, PlainRequest, Request, Response, Severity, StatusCode, Upgraded, Uri, WithoutServer,
    header, report, report_to,
};
