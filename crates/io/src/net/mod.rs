//! Sockets: TCP, UDP and Unix.
//!
//! A connection is a [`Stream`]; [`TcpStream`] and [`UnixStream`] are streams that know their address family, and the
//! listeners hand them out. Every call here is made of a non-blocking one by [`NonBlocking`](crate::NonBlocking):
//! a request on a kept-alive connection costs one `recv` and one `send`, and nothing else.

mod accept;
mod connect;
mod sendfile;
mod stream;
mod tcp;
mod udp;
mod unix;
mod unix_datagram;

pub use connect::connect;
pub use stream::Stream;
pub use tcp::{ListenOptions, TcpListener, TcpStream, resolve};
pub use udp::UdpSocket;
pub use unix::{UnixListener, UnixStream};
pub use unix_datagram::UnixDatagram;
