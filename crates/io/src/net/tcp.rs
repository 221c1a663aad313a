//! TCP: `TcpListener` with its `ListenOptions`, `TcpStream`, and `resolve`, the look-up of a host
//! name on the blocking pool.
//!
//! Accepting is in `accept.rs`, and a connection's reading and writing is in `stream.rs`. The web
//! server and the load generator set their listeners up with `ListenOptions`; `connect.rs` and
//! programs connect with `TcpStream::connect`.

use super::accept::Acceptor;
use super::stream::{Stream, connected};
use crate::NonBlocking;
use crate::error::doing;
use crate::pool::Lane;
use crate::sys::{self, Fd, SocketOption};
use crate::wait_reason::with_reason;
use rustix::io::Errno;
use rustix::net::AddressFamily;
use selvedge_core::Time;
use selvedge_core::observe::{Object, WaitReason};
use std::io;
use std::net::SocketAddr;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

/// A TCP socket that accepts connections.
///
/// # Examples
/// ```
/// use selvedge::{round_robin_over, spawn};
/// use selvedge::EventLoop;
/// use selvedge::net::{TcpListener, TcpStream};
///
/// round_robin_over(&mut EventLoop::new()?, async {
///     let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
///     let address = listener.local_addr();
///     let greeter = spawn(async move {
///         let (stream, _) = listener.accept().await?;
///         stream.write_all(b"hello").await
///     });
///     let stream = TcpStream::connect(address).await.unwrap();
///     let mut greeting = [0; 5];
///     stream.read_exact(&mut greeting).await.unwrap();
///     assert_eq!(&greeting, b"hello");
///     greeter.await.unwrap().unwrap();
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Paper
/// [LZ07 Figure 11]: `sock_accept`.
#[derive(Debug)]
pub struct TcpListener {
    acceptor: Acceptor,
    local: SocketAddr,
}

impl TcpListener {
    /// Listens at an address, with the defaults of [`ListenOptions`].
    ///
    /// # Errors
    /// With the address in the message: in use, not of this host, not permitted.
    pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
        ListenOptions::new().bind(address)
    }

    /// Takes over a listening TCP socket, and puts it into non-blocking mode. The socket is, for
    /// example, one that systemd has bound for this program.
    ///
    /// # Errors
    /// If the descriptor is no TCP socket that listens.
    ///
    /// # Examples
    /// ```
    /// use selvedge::net::TcpListener;
    ///
    /// let bound = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let address = bound.local_addr()?;
    /// assert_eq!(TcpListener::from_fd(bound.into())?.local_addr(), address);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn from_fd(fd: OwnedFd) -> io::Result<TcpListener> {
        let invalid = || io::Error::new(io::ErrorKind::InvalidInput, "no TCP socket that listens");
        if !rustix::net::sockopt::socket_acceptconn(&fd)? {
            return Err(invalid());
        }
        let local = SocketAddr::try_from(rustix::net::getsockname(&fd)?).map_err(|_| invalid())?;
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(TcpListener { acceptor: Acceptor::new(Fd::from(fd)), local })
    }

    /// Waits for the next connection, and returns it with the peer's address.
    ///
    /// A connection that its peer broke off before is skipped. When the process or the system has
    /// run out of descriptors or memory, `accept` pauses until some are free again, for 5 ms at
    /// first and 200 ms at most.
    ///
    /// # Errors
    /// Only errors that waiting does not remove, with the address in the message.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (fd, peer) = self.acceptor.accept(self.local).await?;
        let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
        let peer = match peer {
            Some(peer) => peer,
            None => address_of(sys::peer_address(&fd).ok().flatten())?,
        };
        Ok((TcpStream { stream: Stream::tcp(NonBlocking::assume(fd), peer) }, peer))
    }

    /// The address at which the listener listens, with the port that the system chose if port 0 was
    /// asked for.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// How many times `accept` has paused because descriptors or memory had run out.
    pub fn pauses(&self) -> u64 {
        self.acceptor.pauses()
    }

    /// Another listener on the same socket, for another event loop. Of the loops that wait, the
    /// kernel wakes one per connection (`EPOLLEXCLUSIVE`). The caller must call this before the
    /// first `accept`.
    ///
    /// A thread in a loop that was woken must go on accepting until no connection is left, as a
    /// loop around `accept` does, because the kernel does not tell the other loops of the same
    /// connection.
    ///
    /// With [`reuse_port`](ListenOptions::reuse_port), and so a socket for each loop, the kernel
    /// spreads connections more evenly. With a shared socket no connection waits for a busy loop
    /// while another loop is idle.
    ///
    /// # Errors
    /// If the process has no descriptors left.
    pub fn share(&self) -> io::Result<TcpListener> {
        Ok(TcpListener { acceptor: self.acceptor.share()?, local: self.local })
    }
}

impl AsFd for TcpListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.acceptor.as_fd()
    }
}

/// The options with which a [`TcpListener`] is made.
///
/// # Examples
/// ```
/// use selvedge::net::ListenOptions;
///
/// let options = ListenOptions::new().reuse_port(true);
/// let one = options.bind("127.0.0.1:0".parse()?)?;
/// let another = options.bind(one.local_addr())?;
/// assert_eq!(another.local_addr(), one.local_addr());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ListenOptions {
    backlog: i32,
    reuse_port: bool,
    nodelay: bool,
    only_v6: Option<bool>,
}

impl Default for ListenOptions {
    fn default() -> ListenOptions {
        ListenOptions { backlog: 4096, reuse_port: false, nodelay: true, only_v6: None }
    }
}

impl ListenOptions {
    /// The defaults: a backlog of 4,096, `TCP_NODELAY`, one socket per port.
    pub fn new() -> ListenOptions {
        ListenOptions::default()
    }

    /// How many connections that are not yet accepted the kernel keeps. The kernel reduces the
    /// number to `net.core.somaxconn`.
    pub fn backlog(mut self, connections: i32) -> ListenOptions {
        self.backlog = connections;
        self
    }

    /// Whether several sockets may listen at the address: one for each event loop, so that the
    /// kernel spreads the connections over them. All of them must be made with this option.
    pub fn reuse_port(mut self, yes: bool) -> ListenOptions {
        self.reuse_port = yes;
        self
    }

    /// Whether accepted connections send small packets at once (`TCP_NODELAY`, which they inherit).
    /// Programs that write whole messages should leave this on.
    pub fn nodelay(mut self, yes: bool) -> ListenOptions {
        self.nodelay = yes;
        self
    }

    /// Whether a socket at an IPv6 address leaves IPv4 to other sockets. Without a choice the
    /// system's default holds (`net.ipv6.bindv6only`), which is usually no.
    pub fn only_v6(mut self, yes: bool) -> ListenOptions {
        self.only_v6 = Some(yes);
        self
    }

    /// Makes the listener.
    ///
    /// # Errors
    /// As for [`TcpListener::bind`].
    pub fn bind(&self, address: SocketAddr) -> io::Result<TcpListener> {
        let listen = || -> io::Result<TcpListener> {
            let fd = tcp_socket(address)?;
            sys::set_option(&fd, SocketOption::ReuseAddress(true))?;
            if self.reuse_port {
                sys::set_option(&fd, SocketOption::ReusePort(true))?;
            }
            if let (SocketAddr::V6(_), Some(only)) = (address, self.only_v6) {
                sys::set_option(&fd, SocketOption::OnlyV6(only))?;
            }
            sys::set_option(&fd, SocketOption::NoDelay(self.nodelay))?;
            sys::bind(&fd, &address.into())?;
            sys::listen(&fd, self.backlog)?;
            let local = address_of(Some(sys::local_address(&fd)?))?;
            Ok(TcpListener { acceptor: Acceptor::new(fd), local })
        };
        listen().map_err(doing(format_args!("bind {address}")))
    }
}

/// A TCP connection: a [`Stream`] with TCP's own options.
#[derive(Debug)]
pub struct TcpStream {
    stream: Stream,
}

impl TcpStream {
    /// Connects to an address. Small packets are sent at once (`TCP_NODELAY`).
    ///
    /// # Errors
    /// With the address in the message: refused, unreachable, timed out after the system's own
    /// time-out, which is minutes.
    pub async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
        TcpStream::connect_until(address, None).await
    }

    /// Connects to an address, or gives up at a point in time.
    ///
    /// # Errors
    /// As for [`connect`](Self::connect), and `TimedOut` at `deadline`.
    pub async fn connect_before(address: SocketAddr, deadline: Time) -> io::Result<TcpStream> {
        TcpStream::connect_until(address, Some(deadline)).await
    }

    async fn connect_until(address: SocketAddr, deadline: Option<Time>) -> io::Result<TcpStream> {
        let connect = async {
            let io = NonBlocking::assume(tcp_socket(address)?);
            sys::set_option(&io, SocketOption::NoDelay(true))?;
            match sys::connect(&io, &address.into()) {
                Ok(()) => {}
                Err(Errno::INPROGRESS | Errno::INTR) => {
                    io.set_write_deadline(deadline);
                    connected(&io).await?;
                }
                Err(error) => return Err(error.into()),
            }
            io.set_write_deadline(None);
            Ok(TcpStream { stream: Stream::tcp(io, address) })
        };
        connect.await.map_err(doing(format_args!("connect to {address}")))
    }

    /// A connection to `peer` that a kernel beside the real one has made
    /// ([`install_beside`](crate::sys::interposed::install_beside)). The value owns the descriptor.
    ///
    /// # Panics
    /// If the number is that of a real descriptor.
    #[doc(hidden)]
    pub fn of_kernel_beside(fd: RawFd, peer: SocketAddr) -> TcpStream {
        TcpStream { stream: Stream::tcp(NonBlocking::assume(sys::beside(fd)), peer) }
    }

    /// The address of this end.
    ///
    /// # Errors
    /// None for a live connection.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        address_of(Some(sys::local_address(self)?))
    }

    /// The address of the other end.
    ///
    /// # Errors
    /// `NotConnected` when the connection is broken.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        address_of(sys::peer_address(self)?)
    }

    /// Sets whether small packets are sent at once (`TCP_NODELAY`).
    ///
    /// # Errors
    /// None for a live connection.
    pub fn set_nodelay(&self, yes: bool) -> io::Result<()> {
        Ok(sys::set_option(self, SocketOption::NoDelay(yes))?)
    }

    /// What closing does with bytes that are still to be sent: `None`, the default, lets the system
    /// send them in the background; zero discards them and resets the connection.
    ///
    /// # Errors
    /// None for a live connection.
    pub fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        Ok(sys::set_option(self, SocketOption::Linger(linger))?)
    }
}

impl Deref for TcpStream {
    type Target = Stream;

    #[inline]
    fn deref(&self) -> &Stream {
        &self.stream
    }
}

impl From<TcpStream> for Stream {
    fn from(tcp: TcpStream) -> Stream {
        tcp.stream
    }
}

impl AsFd for TcpStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// The addresses of `host:port`. An OS thread of the blocking pool asks the system's resolver. A
/// text that is an address is the answer itself, and is not looked up. In a simulated world each
/// name stands for 127.0.0.1.
///
/// # Errors
/// With the name in the message: unknown, or without a port.
pub async fn resolve(host_and_port: &str) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host_and_port.parse() {
        return Ok(vec![address]);
    }
    let name = host_and_port.to_owned();
    let reason = || WaitReason { call: "look up", object: Object::Name(host_and_port.into()) };
    let found = with_reason(reason, Lane::Lookups.run(move || sys::resolve(&name))).await;
    found.map_err(io::Error::from).flatten().map_err(doing(format_args!("look up {host_and_port}")))
}

fn tcp_socket(address: SocketAddr) -> io::Result<Fd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    Ok(sys::socket(family)?)
}

pub(super) fn address_of(address: Option<rustix::net::SocketAddrAny>) -> io::Result<SocketAddr> {
    let address = address.ok_or(io::ErrorKind::NotConnected)?;
    SocketAddr::try_from(address).map_err(|_| io::Error::other("not an Internet address"))
}
