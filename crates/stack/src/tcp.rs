//! Connections of a stack, with the methods of the kernel's in `selvedge_io::net`.

use crate::flow::SocketPair;
use crate::stack::{Stack, broken};
use selvedge_io::io::{Read, Write};
use smoltcp::socket::tcp::{RecvError, Socket, State};
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};

/// A socket that accepts connections to a [`Stack`].
///
/// When it is dropped, the connections are reset that no thread has accepted.
pub struct TcpListener {
    stack: Stack,
    address: SocketAddr,
}

impl TcpListener {
    /// Listens at an address of the stack, or at the unspecified one for all addresses of its
    /// family. With the port 0 the stack picks one.
    ///
    /// # Errors
    /// `AddrInUse`, and `AddrNotAvailable` if the address is not the stack's.
    pub fn bind(stack: &Stack, address: SocketAddr) -> io::Result<TcpListener> {
        let address = stack.operate(|engine, _| engine.listen(address))?;
        Ok(TcpListener { stack: stack.clone(), address })
    }

    /// Waits for the next connection that has completed its handshake.
    ///
    /// # Errors
    /// That of the wire, if it is broken.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let flow = poll_fn(|cx| {
            self.stack.operate(|engine, _| match engine.accept(self.address, cx.waker()) {
                Some(flow) => Poll::Ready(Ok(flow)),
                None => engine.broken.map_or(Poll::Pending, |kind| Poll::Ready(Err(broken(kind)))),
            })
        })
        .await?;
        Ok((TcpStream::new(&self.stack, flow), flow.peer))
    }

    /// The address, with the port that was picked.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for TcpListener {
    fn drop(&mut self) {
        self.stack.operate(|engine, now| engine.unlisten(self.address, now));
    }
}

impl fmt::Debug for TcpListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("stack::TcpListener").field(&self.address).finish()
    }
}

/// A connection of a [`Stack`].
///
/// Any number of threads may use it at once. When it is dropped, the stack sends what was written
/// and then the end; if bytes have come that were not read, it resets the connection instead.
pub struct TcpStream {
    stack: Stack,
    flow: SocketPair,
    read_shut: AtomicBool,
    write_shut: AtomicBool,
}

impl TcpStream {
    fn new(stack: &Stack, flow: SocketPair) -> TcpStream {
        let (read_shut, write_shut) = (AtomicBool::new(false), AtomicBool::new(false));
        TcpStream { stack: stack.clone(), flow, read_shut, write_shut }
    }

    /// Connects to a peer on the wire or behind the stack's gateway.
    ///
    /// # Errors
    /// `ConnectionRefused` if the peer refuses, or does not answer for a minute, and
    /// `AddrNotAvailable` if the stack has no address of the family.
    pub async fn connect(stack: &Stack, peer: SocketAddr) -> io::Result<TcpStream> {
        let flow = stack.operate(|engine, now| engine.connect(peer, now))?;
        let stream = TcpStream::new(stack, flow);
        poll_fn(|cx| {
            stream.attempt(cx, |socket| match socket.state() {
                State::SynSent | State::SynReceived => None,
                State::Closed => {
                    let message = format!("{peer} refuses, or does not answer");
                    Some(Err(io::Error::new(io::ErrorKind::ConnectionRefused, message)))
                }
                _ => {
                    socket.set_timeout(None);
                    Some(Ok(()))
                }
            })
        })
        .await?;
        Ok(stream)
    }

    /// Makes an attempt; if it gives nothing, the thread waits for the socket.
    fn attempt<R>(
        &self,
        cx: &mut Context<'_>,
        f: impl FnOnce(&mut Socket<'static>) -> Option<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        self.stack.operate(|engine, now| {
            let result = engine.with_tcp(self.flow, now, |socket, waiters| {
                let result = f(socket);
                if result.is_none() {
                    waiters.add(cx.waker());
                    let waker = waiters.clone().into();
                    socket.register_recv_waker(&waker);
                    socket.register_send_waker(&waker);
                }
                result
            });
            match (result, engine.broken) {
                (Some(Some(result)), _) => Poll::Ready(result),
                (Some(None), None) => Poll::Pending,
                (Some(None), Some(kind)) => Poll::Ready(Err(broken(kind))),
                (None, _) => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
            }
        })
    }

    /// Reads the bytes that are there, but at least one, and returns how many; 0 at the end.
    ///
    /// # Errors
    /// `ConnectionReset` if the peer has reset the connection.
    pub async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        poll_fn(|cx| {
            self.attempt(cx, |socket| match socket.recv_slice(buffer) {
                Ok(0) if self.read_shut.load(Relaxed) => Some(Ok(0)),
                Ok(0) => None,
                Ok(read) => Some(Ok(read)),
                Err(RecvError::Finished) => Some(Ok(0)),
                Err(RecvError::InvalidState) if self.read_shut.load(Relaxed) => Some(Ok(0)),
                Err(RecvError::InvalidState) => Some(Err(io::ErrorKind::ConnectionReset.into())),
            })
        })
        .await
    }

    /// Reads until `buffer` is full.
    ///
    /// # Errors
    /// Those of [`read`](Self::read), and `UnexpectedEof` if the end comes before.
    pub async fn read_exact(&self, buffer: &mut [u8]) -> io::Result<()> {
        Read::read_exact(&mut &*self, buffer).await
    }

    /// Writes as many bytes as the buffer has room for, but at least one, and returns how many.
    ///
    /// # Errors
    /// `BrokenPipe` after [`shutdown`](Self::shutdown), and `ConnectionReset` if the connection is
    /// over.
    pub async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        poll_fn(|cx| {
            self.attempt(cx, |socket| match socket.send_slice(bytes) {
                Ok(0) => None,
                Ok(written) => Some(Ok(written)),
                Err(_) if self.write_shut.load(Relaxed) => Some(Err(io::ErrorKind::BrokenPipe.into())),
                Err(_) => Some(Err(io::ErrorKind::ConnectionReset.into())),
            })
        })
        .await
    }

    /// Writes all of `bytes`.
    ///
    /// # Errors
    /// Those of [`write`](Self::write).
    pub async fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        Write::write_all(&mut &*self, bytes).await
    }

    /// Ends one direction or both. The end of writing comes after all that was written.
    ///
    /// # Errors
    /// `NotConnected` if the connection is over.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        let (read, write) = (how != Shutdown::Write, how != Shutdown::Read);
        self.read_shut.fetch_or(read, Relaxed);
        self.write_shut.fetch_or(write, Relaxed);
        let open = self.stack.operate(|engine, now| {
            engine.with_tcp(self.flow, now, |socket, waiters| {
                let open = socket.is_active();
                if write {
                    socket.close();
                }
                if read {
                    std::task::Waker::from(waiters.clone()).wake();
                }
                open
            })
        });
        if open == Some(true) { Ok(()) } else { Err(io::ErrorKind::NotConnected.into()) }
    }

    /// The address of this end.
    ///
    /// # Errors
    /// None; the result is that of the kernel's sockets.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.flow.local)
    }

    /// The address of the other end.
    ///
    /// # Errors
    /// None; the result is that of the kernel's sockets.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.flow.peer)
    }

    /// Whether small writes go at once, instead of waiting for the acknowledgement of those before.
    ///
    /// # Errors
    /// `NotConnected` if the connection is over.
    pub fn set_nodelay(&self, yes: bool) -> io::Result<()> {
        let set = self.stack.operate(|engine, now| {
            engine.with_tcp(self.flow, now, |socket, _| socket.set_nagle_enabled(!yes))
        });
        set.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl Read for &TcpStream {
    fn read(&mut self, buffer: &mut [u8]) -> impl Future<Output = io::Result<usize>> + Send {
        TcpStream::read(self, buffer)
    }
}

impl Write for &TcpStream {
    fn write(&mut self, bytes: &[u8]) -> impl Future<Output = io::Result<usize>> + Send {
        TcpStream::write(self, bytes)
    }

    async fn finish(&mut self) -> io::Result<()> {
        match self.shutdown(Shutdown::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            result => result,
        }
    }
}

impl Drop for TcpStream {
    fn drop(&mut self) {
        self.stack.operate(|engine, now| engine.release(self.flow, now));
    }
}

impl fmt::Debug for TcpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SocketPair { local, peer } = &self.flow;
        f.debug_struct("stack::TcpStream").field("local", local).field("peer", peer).finish()
    }
}
