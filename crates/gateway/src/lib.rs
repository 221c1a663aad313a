//! What a web server does with other programs.
//!
//! | for | there is |
//! |---|---|
//! | passing requests on to other web servers | [`Proxy`], [`Upstreams`] |
//! | programs that are started for each request | [`Cgi`], [`ProgramSlots`] |
//! | applications that stay, by FastCGI | [`FastCgi`] |
//! | a handler of one's own as an application or a program | [`Start`], [`serve_fastcgi`], [`serve_cgi`] |
//! | what programs complain about | [`ErrorLog`] |
//!
//! All of them are [handlers](selvedge_handler::Handler), so they stand wherever a program's own
//! handler stands, and know nothing of connections.

// # For readers of the source
//
// `proxy.rs` sends a cleaned request (`forwarding.rs`) to the server that `upstreams.rs` picks.
// `cgi.rs` starts a program (`cgi/running.rs`). A thread of its own, the keeper, owns the child,
// and ends its process group when the connection's thread drops its end. `fastcgi.rs` talks to an
// application (`fastcgi/talk.rs`). Both make their variables by `cgi/variables.rs`, and read the
// head of the answer by `cgi/head.rs`; a body of unknown length goes through `cgi/spool.rs` first.
// `departure.rs` ends all three when the client leaves. `responder.rs` is the other side: a handler
// as a FastCGI application, or as a CGI program.
//
// Invariants:
// - No message passes through as it came: it is parsed, cleaned, and written anew.
// - A program lives no longer than its client and its time limit. No body beyond 256 KiB is in
//   memory as a whole.

#![doc(test(attr(deny(warnings), allow(dead_code))))]
#![forbid(unsafe_code)]

mod cgi;
mod departure;
mod error_log;
mod fastcgi;
mod forwarding;
#[doc(hidden)]
pub mod fuzz;
mod proxy;
mod replay;
mod responder;
mod short_way;
mod slots;
mod upstreams;

pub use cgi::Cgi;
pub use cgi::variables::Authenticated;
pub use error_log::ErrorLog;
pub use fastcgi::FastCgi;
pub use proxy::Proxy;
pub use responder::{Accepts, InheritedListener, Start, serve_cgi, serve_fastcgi};
pub use slots::ProgramSlots;
pub use upstreams::{Balance, Upstreams};
