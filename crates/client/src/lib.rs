//! An HTTP/1.1 client.
//!
//! [`Client`] sends requests over a pool of connections, by TCP and by Unix sockets. Bodies are
//! streams in both directions: a piece is read from the connection when the program asks for it,
//! and the request's body is asked for a piece when the server has taken the piece before.
//!
//! | for | there is |
//! |---|---|
//! | a request in one line, with redirects | [`Client::get`] and its like |
//! | a body that is made while it is sent | [`Client::send`], with any [`http_body::Body`] |
//! | the answer's body | [`AnswerBody::next`], [`read_all`](AnswerBody::read_all), [`text`](AnswerBody::text) |
//! | a head that is passed on as it came | [`Client::get_plain`] |
//! | interim answers | [`OnInterim`] |
//! | another protocol on the connection (`Upgrade`) | [`AnswerBody::into_upgraded`] |
//! | time limits of each phase, the size of the pool | [`Builder`] |
//!
//! # What is not sent twice
//! A server may close a kept connection at the moment when a request is sent. Such a request is
//! sent once more, on a new connection, if its method is idempotent and its body is small or empty.
//! In every other case the program decides: [`Error::is_connect`], [`Error::is_unanswered`].
//!
//! # What is refused
//! An answer of a length that two readers could see differently is an
//! [error](Error::is_malformed), and its connection is closed. So a proxy on this client never
//! passes such an answer on.
//!
//! # Layers
//! `answer_head`, `request_head` and `redirect` do no I/O. `outgoing_request` and `answer_body` are
//! the two directions of one exchange, `exchange` puts them together, `pool` keeps connections
//! between exchanges.

// # For readers of the source
//
// A request goes through `client.rs` (which connection), `exchange.rs` (one request and its
// answer), `outgoing_request.rs` and `answer_body.rs`. A request may still be on its way when its
// answer begins, so `AnswerBody` takes the `OutgoingRequest` along and polls it while the caller
// reads. `plain.rs` has requests and answers with heads that stay bytes, in the room of
// `read_room.rs`; `field_line.rs` finds the lines of such an answer.
//
// Invariant: the framing of a request is the client's, whatever fields the caller gives
// (`get_plain` takes a head that has none). An answer
// that two readers could frame differently is an error, and so is a byte that comes on a connection
// before its request.

#![doc(test(attr(deny(warnings), allow(dead_code))))]
#![forbid(unsafe_code)]

mod address;
mod answer_body;
mod answer_head;
mod client;
mod error;
mod exchange;
mod field_line;
#[doc(hidden)]
pub mod fuzz;
mod outgoing_request;
mod plain;
mod pool;
mod read_room;
mod redirect;
mod request_body;
mod request_builder;
mod request_head;
mod shared;
mod switched;

pub use address::Address;
pub use answer_body::AnswerBody;
pub use client::{Builder, Client};
pub use error::Error;
pub use exchange::OnInterim;
pub use field_line::{FieldLine, TakeFields};
pub use plain::{PlainReply, WholeAnswer};
pub use pool::ConnectionPool;
pub use read_room::ReadRoom;
pub use request_body::RequestBody;
pub use request_builder::RequestBuilder;
pub use switched::Switched;

#[doc(no_inline)]
pub use bytes::Bytes;
#[doc(no_inline)]
pub use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
