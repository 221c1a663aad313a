//! Connections of a stack, with the methods of the kernel's in `selvedge_io::net`.

use crate::engine::{SocketTurn, StackEngine};
use crate::flow::SocketPair;
use crate::stack::{Stack, broken};
use crate::tcp_options::TcpOptions;
use crate::waiters::SocketWaiters;
use selvedge_io::io::{Read, Write};
use smoltcp::socket::tcp::{RecvError, SendError, Socket, State};
use smoltcp::time::Instant;
use std::fmt;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

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
        TcpListener::bind_with_options(stack, address, None)
    }

    /// Listens as [`bind`](Self::bind) does. The connections get these options instead of the
    /// stack's.
    ///
    /// # Errors
    /// Those of [`bind`](Self::bind).
    pub fn bind_with_options(
        stack: &Stack,
        address: SocketAddr,
        options: impl Into<Option<TcpOptions>>,
    ) -> io::Result<TcpListener> {
        let options = options.into();
        let address = stack.operate(|engine, _| engine.listen(address, options))?;
        Ok(TcpListener { stack: stack.clone(), address })
    }

    /// Waits for the next connection that has completed its handshake.
    ///
    /// # Errors
    /// That of the wire, if it is broken.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let flow = poll_fn(|cx| {
            self.stack.poll(cx, |engine, _, waker| match engine.accept(self.address, waker) {
                Some(flow) => Some(Ok(flow)),
                None => engine.broken.map(|kind| Err(broken(kind))),
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
    /// `ConnectionRefused` if the peer refuses, `TimedOut` if it does not answer in the
    /// [time](TcpOptions::connect_limit), `HostUnreachable` if no host on the wire has the address
    /// or a router says so, `NetworkUnreachable` if the stack has no gateway or a router knows no
    /// way, and `AddrNotAvailable` if the stack has no address of the family.
    pub async fn connect(stack: &Stack, peer: SocketAddr) -> io::Result<TcpStream> {
        TcpStream::connect_with_options(stack, peer, None).await
    }

    /// Connects as [`connect`](Self::connect) does, with these options instead of the stack's.
    ///
    /// # Errors
    /// Those of [`connect`](Self::connect).
    pub async fn connect_with_options(
        stack: &Stack,
        peer: SocketAddr,
        options: impl Into<Option<TcpOptions>>,
    ) -> io::Result<TcpStream> {
        let options = options.into();
        let takes = |flow: SocketPair| stack.takes(flow.local, Some(flow.peer));
        let flow = stack.operate(|engine, now| engine.connect(peer, options, takes, now))?;
        let stream = TcpStream::new(stack, flow);
        poll_fn(|cx| {
            stream.attempt(cx, |socket, over| match socket.state() {
                State::SynSent | State::SynReceived => None,
                State::Closed => Some(Err(no_connection(peer, over))),
                _ => Some(Ok(())),
            })
        })
        .await?;
        Ok(stream)
    }

    /// Makes an attempt, which gets the error of a connection that is over. If it gives nothing,
    /// the thread waits for the socket.
    fn attempt<R>(
        &self,
        cx: &Context<'_>,
        f: impl FnOnce(&mut Socket<'static>, ErrorKind) -> Option<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        self.attempt_to_write(cx, 0, f)
    }

    /// As `attempt`, for a write of this many bytes: it waits while the buffer is about to grow.
    fn attempt_to_write<R>(
        &self,
        cx: &Context<'_>,
        bytes: usize,
        f: impl FnOnce(&mut Socket<'static>, ErrorKind) -> Option<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        self.stack.poll(cx, |engine, now, waker| {
            let grows = engine.make_room(self.flow, bytes, now);
            let result = engine.with_tcp(self.flow, SocketTurn::Now, now, |socket, over, waiters| {
                let result = if grows { None } else { f(socket, over) };
                if result.is_none() {
                    register(socket, waiters, waker, true);
                }
                result
            });
            outcome(result, engine)
        })
    }

    /// Reads the bytes that are there, but at least one, and returns how many; 0 at the end.
    ///
    /// # Errors
    /// `ConnectionReset` if the peer has reset the connection, and `TimedOut` if it has not
    /// answered for the [time](TcpOptions::peer_limit) it has.
    pub async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        poll_fn(|cx| self.attempt(cx, |socket, over| self.came(socket.recv_slice(buffer), over))).await
    }

    /// What a read has brought; `None` if nothing is there. `over` is the error of a connection
    /// that is over.
    fn came(&self, read: Result<usize, RecvError>, over: ErrorKind) -> Option<io::Result<usize>> {
        match read {
            Ok(0) if self.read_shut.load(Relaxed) => Some(Ok(0)),
            Ok(0) => None,
            Ok(read) => Some(Ok(read)),
            Err(RecvError::Finished) => Some(Ok(0)),
            Err(RecvError::InvalidState) if self.read_shut.load(Relaxed) => Some(Ok(0)),
            Err(RecvError::InvalidState) => Some(Err(over.into())),
        }
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
    /// `BrokenPipe` after [`shutdown`](Self::shutdown), and the errors of
    /// [`read`](Self::read) if the connection is over.
    pub async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        poll_fn(|cx| {
            self.attempt_to_write(cx, bytes.len(), |socket, over| match socket.send_slice(bytes) {
                Ok(0) => None,
                Ok(written) => Some(Ok(written)),
                Err(_) => Some(Err(self.unwritable(over).into())),
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

    /// Waits until bytes or the end have come, so that a connection at rest needs no buffer of its
    /// thread.
    ///
    /// # Errors
    /// That of the wire, if it is broken. The next read tells of a connection that is over.
    pub async fn readable(&self) -> io::Result<()> {
        poll_fn(|cx| {
            self.attempt(cx, |socket, _| {
                let shut = self.read_shut.load(Relaxed);
                (socket.can_recv() || !socket.may_recv() || shut).then_some(Ok(()))
            })
        })
        .await
    }

    /// What can be done without waiting, for a caller that is not a thread. `waker` is woken when
    /// that changes: when bytes or the end have come, and, if the caller `writes`, when there is
    /// more room.
    pub(crate) fn watch(&self, waker: &Waker, writes: bool) -> StreamState {
        // To clone a waker and to drop one may run any code, so both happen outside of the lock.
        let mut waker = Some(waker.clone());
        let state = self.stack.operate(|engine, _| {
            let broken = engine.broken.is_some();
            engine.look_at(self.flow, |socket, waiters| {
                register(socket, waiters, &mut waker, writes);
                let over = broken || !socket.is_active();
                StreamState {
                    reads: over || socket.can_recv() || !socket.may_recv() || self.read_shut.load(Relaxed),
                    read_end: over || !socket.may_recv(),
                    writes: over || socket.can_send() || !socket.may_send(),
                    over,
                }
            })
        });
        state.unwrap_or(StreamState { reads: true, read_end: true, writes: true, over: true })
    }

    /// Reads the bytes that are there, at most `room` of them, without waiting: nothing at the end,
    /// and `None` if nothing is there.
    pub(crate) fn read_now(&self, room: usize) -> io::Result<Option<Vec<u8>>> {
        self.now(|engine, now| {
            engine.with_tcp(self.flow, SocketTurn::IfFull, now, |socket, over, _| {
                let mut bytes = vec![0; room.min(socket.recv_queue())];
                let read = self.came(socket.recv_slice(&mut bytes), over)?;
                Some(read.map(|_| bytes))
            })
        })
    }

    /// Writes as many of `bytes` as there is room for, without waiting, and returns how many;
    /// `None` if that is none. If it is not all of them, `waker` is woken when there is more room.
    /// If `more` follows at once, the bytes wait for it.
    pub(crate) fn write_now(&self, bytes: &[u8], more: bool, waker: &Waker) -> io::Result<Option<usize>> {
        self.write_by(bytes.len(), more, waker, |socket| socket.send_slice(bytes))
    }

    /// As [`write_now`](Self::write_now), with the bytes that `fill` puts into the free places of
    /// the buffer, `count` at most: it returns how many. Its error is the outer one.
    pub(crate) fn fill_now<E>(
        &self,
        count: usize,
        waker: &Waker,
        mut fill: impl FnMut(&mut [u8]) -> Result<usize, E>,
    ) -> Result<io::Result<Option<usize>>, E> {
        let mut failed = None;
        let written = self.write_by(count, false, waker, |socket| {
            let mut filled = 0;
            // The free places may lie at the end of the buffer and at its beginning.
            while filled < count {
                let some = socket.send(|free| {
                    let most = free.len().min(count - filled);
                    let some = fill(&mut free[..most]).unwrap_or_else(|error| {
                        failed = Some(error);
                        0
                    });
                    (some, some)
                })?;
                filled += some;
                if some == 0 {
                    break;
                }
            }
            Ok(filled)
        });
        failed.map_or(Ok(written), Err)
    }

    /// Writes what `write` puts into the buffer, `wanted` bytes at most.
    fn write_by(
        &self,
        wanted: usize,
        more: bool,
        waker: &Waker,
        write: impl FnOnce(&mut Socket<'static>) -> Result<usize, SendError>,
    ) -> io::Result<Option<usize>> {
        let mut waker = Some(waker.clone());
        let turn = if more { SocketTurn::Soon } else { SocketTurn::Now };
        self.now(|engine, now| {
            let grows = engine.make_room(self.flow, wanted, now);
            engine.with_tcp(self.flow, turn, now, |socket, over, waiters| {
                let written = if grows { Ok(0) } else { write(socket) };
                if written.is_ok_and(|written| written < wanted) {
                    register(socket, waiters, &mut waker, true);
                }
                match written {
                    Ok(0) if wanted > 0 => None,
                    Ok(written) => Some(Ok(written)),
                    Err(_) => Some(Err(self.unwritable(over).into())),
                }
            })
        })
    }

    /// How many bytes were written that the peer has not acknowledged.
    pub(crate) fn unacknowledged(&self) -> usize {
        self.stack
            .operate(|engine, _| engine.look_at(self.flow, |socket, _| socket.send_queue()))
            .unwrap_or(0)
    }

    /// Makes an attempt, and does not wait if it gives nothing.
    fn now<R>(
        &self,
        attempt: impl FnOnce(&mut StackEngine, Instant) -> Option<Option<io::Result<R>>>,
    ) -> io::Result<Option<R>> {
        let result = self.stack.operate(|engine, now| outcome(attempt(engine, now), engine));
        result.transpose()
    }

    /// The error of a write to a socket that takes no more; `over` is that of its connection.
    fn unwritable(&self, over: ErrorKind) -> ErrorKind {
        if self.write_shut.load(Relaxed) { ErrorKind::BrokenPipe } else { over }
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
            engine.with_tcp(self.flow, SocketTurn::Now, now, |socket, _, waiters| {
                let open = socket.is_active();
                if write {
                    socket.close();
                }
                if read {
                    Waker::from(waiters.clone()).wake();
                }
                open
            })
        });
        if open == Some(true) { Ok(()) } else { Err(ErrorKind::NotConnected.into()) }
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
        self.change(|options| options.nodelay(yes))
    }

    /// As [`TcpOptions::keep_alive`], from now on.
    ///
    /// # Errors
    /// `NotConnected` if the connection is over.
    pub fn set_keep_alive(&self, rest: Option<Duration>) -> io::Result<()> {
        self.change(|options| options.keep_alive(rest))
    }

    /// As [`TcpOptions::peer_limit`], from now on.
    ///
    /// # Errors
    /// `NotConnected` if the connection is over.
    pub fn set_peer_limit(&self, limit: Option<Duration>) -> io::Result<()> {
        self.change(|options| options.peer_limit(limit))
    }

    fn change(&self, change: impl FnOnce(TcpOptions) -> TcpOptions) -> io::Result<()> {
        self.stack.operate(|engine, now| engine.with_options(self.flow, now, change))
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
            Err(error) if error.kind() == ErrorKind::NotConnected => Ok(()),
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

/// The outcome of an attempt; `None` if its caller is to wait. The attempt itself gives `None` for
/// a connection that is gone.
fn outcome<R>(attempt: Option<Option<io::Result<R>>>, engine: &StackEngine) -> Option<io::Result<R>> {
    match (attempt, engine.broken) {
        (Some(Some(result)), _) => Some(result),
        (Some(None), None) => None,
        (Some(None), Some(kind)) => Some(Err(broken(kind))),
        (None, _) => Some(Err(ErrorKind::NotConnected.into())),
    }
}

/// What can be done with a stream without waiting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamState {
    /// Bytes have come, or the end.
    pub(crate) reads: bool,
    pub(crate) read_end: bool,
    /// There is room, or a write fails.
    pub(crate) writes: bool,
    /// The connection is over.
    pub(crate) over: bool,
}

/// Makes a socket wake `waker` when bytes have come or it has ended, and, if its thread `writes`,
/// when it has more room.
fn register(
    socket: &mut Socket<'static>,
    waiters: &Arc<SocketWaiters>,
    waker: &mut Option<Waker>,
    writes: bool,
) {
    waiters.add(waker);
    let waker = waiters.clone().into();
    socket.register_recv_waker(&waker);
    if writes {
        socket.register_send_waker(&waker);
    }
}

/// Why there is no connection to a peer.
fn no_connection(peer: SocketAddr, why: ErrorKind) -> io::Error {
    let message = match why {
        ErrorKind::ConnectionRefused => "refuses the connection",
        ErrorKind::TimedOut => "does not answer",
        ErrorKind::HostUnreachable => "is no host that can be reached",
        ErrorKind::NetworkUnreachable => "is in a network that cannot be reached",
        _ => "has ended the connection",
    };
    io::Error::new(why, format!("{peer} {message}"))
}
