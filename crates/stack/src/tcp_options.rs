//! What a connection is made with.

use smoltcp::socket::tcp::{self, Socket, SocketBuffer};
use smoltcp::time::Duration as Span;
use std::time::Duration;

const LEAST_BUFFER: usize = 512;
const LARGEST_BUFFER: usize = 1 << 28;
/// The largest window that is told in bytes.
const LARGEST_UNIT_WINDOW: usize = 0xFFFF;

/// Limits and habits of a connection, or of all connections of a listener.
///
/// # Examples
/// ```
/// use selvedge::stack::{Congestion, TcpOptions};
/// use std::time::Duration;
///
/// let minute = Duration::from_secs(60);
/// let patient = TcpOptions::new().congestion(Congestion::Cubic).keep_alive(Some(minute));
/// let hasty = patient.clone().connect_limit(Duration::from_secs(5)).peer_limit(Some(minute));
/// assert_ne!(patient, hasty);
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TcpOptions {
    pub(crate) buffer: usize,
    first_buffer: usize,
    pub(crate) congestion: Congestion,
    nodelay: bool,
    pub(crate) keep_alive: Option<Duration>,
    pub(crate) peer_limit: Option<Span>,
    pub(crate) connect_limit: Span,
}

/// How a connection finds out how much its path carries.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Congestion {
    /// It sends as much as its peer has room for: for a wire of one's own.
    Unlimited,
    /// NewReno of RFC 5681: a window that grows by a segment for each round trip, and is halved by
    /// a loss.
    Reno,
    /// CUBIC of RFC 9438, which finds the window of a long and fast path again sooner.
    #[default]
    Cubic,
    /// BBR: a model of what the path carries and how long it takes, and a rate after it. A loss
    /// alone does not slow it down, so it is for paths that lose packets without being full. It
    /// sends a few segments in each millisecond. The model takes 250 bytes of a connection that has
    /// sent something, until it is at rest.
    Bbr,
}

impl Default for TcpOptions {
    fn default() -> TcpOptions {
        TcpOptions::new()
    }
}

impl TcpOptions {
    /// Buffers of 1 to 16 KiB; Cubic; no keep-alive; a minute for the handshake, and 15 minutes for
    /// each answer of the peer.
    pub fn new() -> TcpOptions {
        TcpOptions {
            buffer: 16 << 10,
            first_buffer: 1 << 10,
            congestion: Congestion::Cubic,
            nodelay: false,
            keep_alive: None,
            peer_limit: Some(Span::from_secs(15 * 60)),
            connect_limit: Span::from_secs(60),
        }
    }

    /// The most bytes of the buffer in each direction. A connection begins with
    /// [`first_buffer`](Self::first_buffer). When more than half of a buffer was full, or a write
    /// needs more, and both are empty, both grow. After ten seconds at rest 512 bytes are left for
    /// what comes, and none for what is written, until the connection is used again. Above
    /// 65,535 bytes they have this size from the first segment on, because the peer then hears once
    /// in which units windows are told. A smaller number than 512 stands for 512. A buffer of less
    /// than two segments is slow: the peer waits for each acknowledgement.
    pub fn buffer(mut self, bytes: usize) -> TcpOptions {
        self.buffer = bytes.clamp(LEAST_BUFFER, LARGEST_BUFFER);
        self
    }

    /// The bytes of the buffer in each direction at the beginning, and after a rest: 512 at least.
    ///
    /// A peer that sends more than 512 bytes at once to a connection at rest sends some of it
    /// again. A connection with a first buffer as large as its largest keeps it at rest.
    pub fn first_buffer(mut self, bytes: usize) -> TcpOptions {
        self.first_buffer = bytes.max(LEAST_BUFFER);
        self
    }

    /// The bytes of a buffer at the beginning.
    pub(crate) fn begins_with(&self) -> usize {
        if self.buffer > LARGEST_UNIT_WINDOW { self.buffer } else { self.first_buffer.min(self.buffer) }
    }

    /// Whether a connection's buffers change their size.
    pub(crate) fn grows(&self) -> bool {
        self.begins_with() < self.buffer
    }

    /// The congestion control.
    pub fn congestion(mut self, control: Congestion) -> TcpOptions {
        self.congestion = control;
        self
    }

    /// Whether small writes go at once, instead of waiting for the acknowledgement of those before.
    pub fn nodelay(mut self, yes: bool) -> TcpOptions {
        self.nodelay = yes;
        self
    }

    /// How long a connection is at rest before it asks whether its peer is still there, and how
    /// long it waits before it asks again. It ends when there was no answer for
    /// [`peer_limit`](Self::peer_limit). With `None` it never asks.
    pub fn keep_alive(mut self, rest: Option<Duration>) -> TcpOptions {
        self.keep_alive = rest.map(|rest| rest.max(Duration::from_millis(1)));
        self
    }

    /// How long the peer may be silent while it has something to acknowledge, until the connection
    /// ends with the error `TimedOut`: the user timeout of RFC 5482. A peer that has no room but
    /// says so is not silent. With `None` the connection waits for ever.
    pub fn peer_limit(mut self, limit: Option<Duration>) -> TcpOptions {
        self.peer_limit = limit.map(span);
        self
    }

    /// How long `connect` waits for the peer's answer.
    pub fn connect_limit(mut self, limit: Duration) -> TcpOptions {
        self.connect_limit = span(limit);
        self
    }

    /// The window that the first segment tells, and by how many bits later ones shift theirs, if
    /// the peer's do.
    pub(crate) fn first_window(&self) -> (u16, u8) {
        let size = self.begins_with();
        let bits = usize::BITS - size.leading_zeros();
        (size.min(LARGEST_UNIT_WINDOW) as u16, bits.saturating_sub(16) as u8)
    }

    /// A new socket with these options, and with buffers of this size.
    pub(crate) fn socket(&self, size: usize) -> Socket<'static> {
        self.socket_with(size, size)
    }

    /// A new socket for a connection at rest: it has room for what the peer may send at once, and
    /// none for what the program writes.
    pub(crate) fn resting_socket(&self) -> Socket<'static> {
        self.socket_with(LEAST_BUFFER, 0)
    }

    fn socket_with(&self, room: usize, unsent: usize) -> Socket<'static> {
        let buffer = |size| SocketBuffer::new(vec![0; size]);
        let mut socket = Socket::new(buffer(room), buffer(unsent));
        // The engine has its own.
        socket.set_congestion_control(tcp::CongestionControl::None);
        self.apply(&mut socket);
        socket
    }

    /// Gives a socket the options that can change.
    pub(crate) fn apply(&self, socket: &mut Socket<'static>) {
        socket.set_nagle_enabled(!self.nodelay);
        socket.set_keep_alive(self.keep_alive.map(span));
    }
}

/// A time as smoltcp counts it; a century stands for more.
fn span(time: Duration) -> Span {
    Span::from_micros(time.as_micros().min(100 * 366 * 86_400 * 1_000_000) as u64)
}
