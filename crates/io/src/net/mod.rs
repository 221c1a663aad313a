//! Sockets: TCP, UDP and Unix.
//!
//! A connection is a [`Stream`]. [`TcpStream`] and [`UnixStream`] are streams of a known address
//! family, and the listeners hand them out. [`NonBlocking`](crate::NonBlocking) makes every call
//! here of a non-blocking call. A request on a kept-alive connection costs one `recv` and one
//! `send`, and no other system call.

mod accept;
mod addresses;
mod bind;
mod connect;
mod sendfile;
mod stream;
mod tcp;
mod udp;
mod unix;
mod unix_datagram;

#[doc(hidden)]
pub use addresses::Places;
pub use addresses::ToSocketAddrs;
pub use bind::bind;
pub use connect::connect;
pub use stream::Stream;
pub use tcp::{ListenOptions, TcpListener, TcpStream, resolve};
pub use udp::UdpSocket;
pub use unix::{UnixListener, UnixStream};
pub use unix_datagram::UnixDatagram;
