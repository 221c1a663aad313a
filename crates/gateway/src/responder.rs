//! The other side: a handler of this program's own, as a FastCGI application and as a CGI program.
//!
//! [`Start::detect`] finds out how the process was started. `as_cgi.rs` and `as_fastcgi.rs` run a
//! handler in the two ways, and `request.rs` makes a request of meta-variables and text of an
//! answer, for both.

mod as_cgi;
mod as_fastcgi;
mod known_length;
mod request;

pub use as_cgi::serve_cgi;
pub use as_fastcgi::{Accepts, serve_fastcgi};

use selvedge_io::net::{TcpListener, UnixListener};
use std::os::fd::AsFd;

/// How the process was started.
///
/// # Examples
/// One source for a server of its own, an application behind nginx, and a CGI program:
/// ```no_run
/// use selvedge::gateway::{Start, serve_cgi, serve_fastcgi};
/// use selvedge::http::{Config, Request, Site};
/// use selvedge::{net, spawn_local};
///
/// async fn hello(request: Request) -> String {
///     format!("hello, {}\n", request.uri().path())
/// }
///
/// #[selvedge::main(local)]
/// async fn main() -> std::io::Result<()> {
///     match Start::detect() {
///         Start::Cgi => serve_cgi(hello).await,
///         Start::FastCgi(listener) => serve_fastcgi(listener, hello).await,
///         Start::Alone => {
///             let site = Site::with_handler(hello, Config::default(), None);
///             let listener = net::bind("127.0.0.1:8080").await?;
///             loop {
///                 let (stream, peer) = listener.accept().await?;
///                 drop(spawn_local(site.serve(stream.into(), Some(peer.ip()))));
///             }
///         }
///     }
/// }
/// ```
#[derive(Debug)]
pub enum Start {
    /// By hand, or as a service: the program opens a port of its own.
    Alone,
    /// As a FastCGI application: standard input is a socket that listens.
    FastCgi(InheritedListener),
    /// As a CGI program: the environment has the variable `GATEWAY_INTERFACE`.
    Cgi,
}

/// A socket that listens, which the process was started with.
#[derive(Debug)]
pub enum InheritedListener {
    /// For TCP.
    Tcp(TcpListener),
    /// At a path.
    Unix(UnixListener),
}

impl Start {
    /// Looks at standard input and at the environment.
    pub fn detect() -> Start {
        if let Some(listener) = listener_at_standard_input() {
            Start::FastCgi(listener)
        } else if std::env::var_os("GATEWAY_INTERFACE").is_some() {
            Start::Cgi
        } else {
            Start::Alone
        }
    }
}

fn listener_at_standard_input() -> Option<InheritedListener> {
    let duplicate = || std::io::stdin().as_fd().try_clone_to_owned().ok();
    let unix = UnixListener::from_fd(duplicate()?).map(InheritedListener::Unix);
    unix.or_else(|error| TcpListener::from_fd(duplicate().ok_or(error)?).map(InheritedListener::Tcp)).ok()
}
