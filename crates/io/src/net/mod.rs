//! Stream sockets: TCP and Unix.
//!
//! A connection is a [`Stream`]; [`TcpStream`] and [`UnixStream`] are streams that know their address family, and the
//! listeners hand them out. Every call here is made of a non-blocking one by [`NonBlocking`](crate::NonBlocking):
//! a request on a kept-alive connection costs one `recv` and one `send`, and nothing else.

mod accept;
mod sendfile;
mod stream;
mod tcp;
mod unix;

pub use stream::Stream;
pub use tcp::{ListenOptions, TcpListener, TcpStream, resolve};
pub use unix::{UnixListener, UnixStream};
