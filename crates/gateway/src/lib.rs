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
