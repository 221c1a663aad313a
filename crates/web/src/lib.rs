//! Web applications: a [`Router`] of `async` functions, with typed arguments.
//!
//! ```
//! use selvedge::web::{Json, Path, Query, Router, testing::get};
//!
//! #[derive(serde::Deserialize)]
//! struct Page {
//!     #[serde(default)]
//!     skip: usize,
//! }
//!
//! async fn weaves(Path(thread): Path<String>, Query(page): Query<Page>) -> Json<Vec<String>> {
//!     let weaves = ["plain", "twill", "satin"].iter().skip(page.skip);
//!     Json(weaves.map(|weave| format!("{thread}, {weave}")).collect())
//! }
//!
//! selvedge::run_local(async {
//!     let router = Router::new().get("/threads/{thread}/weaves", weaves);
//!     // Without a socket; `web::serve` has one.
//!     let answer = get(&router, "/threads/wool/weaves?skip=2").await;
//!     assert_eq!(answer.text(), r#"["wool, satin"]"#);
//! })?;
//! # Ok::<(), selvedge::RunError>(())
//! ```
//!
//! | for | there is |
//! |---|---|
//! | which function answers | [`Router`] |
//! | arguments of such functions | [`Path`], [`Query`], [`State`], [`Json`], [`Form`], [`Multipart`], [`Cookies`], `Bytes`, `String`, `HeaderMap`, `Request`, ... |
//! | what they return | all that is [`IntoResponse`]: [`Json`], [`Html`], [`Redirect`], [`EventStream`], [`SetCookie`], `Result`, ... |
//! | connections that stay | [`WebSocketUpgrade`], [`EventStream`] |
//! | what wraps handlers | [`Layer`], [`Layered`], [`TimeLimit`], [`BodyLimit`] |
//! | files beneath | [`StaticFiles`], [`FileTree`] |
//! | other places, and what the server counts | [`RedirectTo`], [`StatusPage`], [`PrometheusText`] |
//! | serving | [`Server`] on all processors, [`serve()`] in a thread, [`Site`](selvedge_http::Site) |
//! | tests without sockets | [`testing`] |
//!
//! A handler is a thread of ours while it runs: it may sleep, take an `MVar`, run a transaction,
//! open a connection. It stays on one OS thread, so it may keep an `Rc`.

// # For readers of the source
//
// Read `endpoint.rs` (functions with arguments), `extract.rs` (the arguments), `router.rs`.
// `fields.rs` reads names with values by serde, for paths, queries and forms alike. `parameters.rs`
// compares a type with the names of a route. The parsers (`multipart.rs`, `cookies.rs`) do no I/O,
// and `fuzz.rs` has the properties that hold of them. `server.rs` runs an application on all
// processors. `websocket.rs` gives `tungstenite` two buffers for a stream, and moves their bytes
// itself.

#![doc(test(attr(deny(warnings), allow(dead_code))))]
#![forbid(unsafe_code)]

mod body_limit;
mod cookies;
mod endpoint;
mod events;
mod extract;
mod fields;
#[doc(hidden)]
pub mod fuzz;
mod json;
mod layer;
mod multipart;
mod parameters;
mod rejection;
mod reply;
mod router;
mod serve;
mod server;
pub mod testing;
mod time_limit;
mod tree;
mod websocket;

pub use body_limit::{BODY_BYTES_MAX, BodyLimit};
pub use cookies::{Cookies, SameSite, SetCookie};
pub use endpoint::Endpoint;
pub use events::{EventOut, EventStream, ServerEvent};
pub use extract::{Context, Form, FromParts, FromRequest, Path, Query, State, ViaParts, ViaRequest};
pub use json::Json;
pub use layer::{Layer, Layered, Layering, Next};
pub use multipart::{FormPart, Multipart};
pub use rejection::Rejection;
pub use reply::{Html, Redirect};
pub use router::Router;
pub use serve::serve;
pub use server::Server;
pub use time_limit::TimeLimit;
pub use tree::FileTree;
pub use websocket::{Message, SocketError, WebSocket, WebSocketUpgrade};

#[doc(no_inline)]
pub use selvedge_handler::{
    Body, BodyError, Bytes, Caller, DynHandler, Handler, HeaderMap, HeaderName, HeaderValue, IntoResponse,
    Method, Out, Request, Response, ResponsePart, StatusCode, Upgraded, Uri, header,
};
#[doc(no_inline)]
pub use selvedge_http::{Metrics, PrometheusText, RedirectTo, StaticFiles, StatusPage};

/// The guide's page runs as printed.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/web.md")]
pub struct Guide;
