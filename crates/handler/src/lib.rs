//! What a web application is made of: [`Request`], [`Response`], [`Body`], and [`Handler`], the
//! trait of what turns a request into a response.
//!
//! A handler is an `async fn` from a request to a response. It knows nothing of connections and of
//! versions of HTTP. Engines call it: `selvedge-http` for each request on a connection, an adapter
//! under another server, a test. While it runs, it is a thread of ours: it may sleep, take an
//! `MVar`, run a transaction, open a connection.
//!
//! # Bodies
//! A [`Body`] is bytes, a span of a file, or a stream of pieces with trailers behind them. A body
//! moves under back-pressure in both directions: the engine reads from the connection when the
//! handler asks for a piece, and asks the handler's body for a piece when the client has taken the
//! one before.
//!
//! # Beside the body
//! A [`Caller`] among the extensions of a request knows the client's address, and sends interim
//! responses (`103 Early Hints`). A response with [`Body::upgrade`] hands the connection itself to
//! the handler behind a `101 Switching Protocols`.
//!
//! # Examples
//! ```
//! use selvedge_handler::{Body, Handler, IntoResponse, Request, Response};
//!
//! async fn echo(request: Request) -> Response {
//!     match request.into_body().read_all(1 << 20).await {
//!         Ok(bytes) => Response::new(Body::from(bytes)),
//!         Err(error) => error.into_response(),
//!     }
//! }
//!
//! // Without a socket:
//! selvedge::round_robin(async {
//!     let response = Handler::call(&echo, Request::new(Body::from("warp"))).await;
//!     assert_eq!(response.into_body().read_all(100).await.unwrap(), "warp");
//! })?;
//! # Ok::<(), selvedge::RunError>(())
//! ```

// # For readers of the source
//
// Read `handler.rs`, then `body.rs`. `incoming.rs` is the slot between an engine, which reads a
// connection, and a handler, which reads a body. `producer.rs` is a body that an `async` block
// makes. `plain.rs` has requests and answers that stay bytes. `caller.rs`
// carries interim responses to the client, and the news of its departure to the handler.
// `report.rs` has the words for the operator, from all crates of the web.
//
// Invariant: a handler and its bodies know nothing of versions of HTTP and of connections. They may
// stay on one OS thread: none of them has to be `Send`.

#![doc(test(attr(deny(warnings), allow(dead_code))))]
#![forbid(unsafe_code)]

mod authenticated;
mod body;
mod body_error;
mod caller;
mod content_type;
mod handler;
mod incoming;
mod into_response;
mod mount;
mod placeholder;
mod plain;
mod producer;
mod report;
mod upgrade;
mod without_server;

pub use authenticated::Authenticated;
pub use body::{Body, FileSpan, OnUpgrade, Source};
pub use body_error::{BodyError, Cause};
pub use caller::{Caller, Interim, LazyCaller};
pub use content_type::ContentType;
pub use handler::{BoxResponse, DynHandler, Handler};
pub use incoming::{Feeder, Incoming, Wanted, incoming};
pub use into_response::{IntoResponse, ResponsePart};
pub use mount::Mount;
pub use placeholder::Placeholder;
pub use plain::{FieldLines, PlainAnswer, PlainCall, PlainContent, PlainOutcome, PlainRequest, has_content};
pub use producer::{Out, Produced};
pub use report::{Severity, report, report_to};
pub use upgrade::{Duplex, Upgraded};
pub use without_server::WithoutServer;

#[doc(no_inline)]
pub use bytes::Bytes;
#[doc(no_inline)]
pub use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};

/// A request: its method, target, fields and extensions, and its body.
pub type Request<B = Body> = http::Request<B>;

/// A response: its status, fields and extensions, and its body.
pub type Response<B = Body> = http::Response<B>;
