//! The connections of a stack and their stages, from the first segment to the last
//! acknowledgement.

use super::recovery::LossRecovery;
use super::says::StackSays;
use super::workshop::Standing;
use super::{OwnSocket, SOON, StackEngine, TimerOwner};
use crate::flow::{OpeningOptions, SocketPair, StackSegment};
use crate::frames::{Frames, LONGEST_PACKET};
use crate::segments::{SegmentChange, rewrite};
use crate::tcp_options::TcpOptions;
use crate::waiters::SocketWaiters;
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::time::Instant;
use smoltcp::wire::TcpSeqNumber;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Waker;

pub(super) struct StackConnection {
    pub(super) seat: OwnSocket,
    pub(super) stage: ConnectionStage,
    pub(super) options: Arc<TcpOptions>,
    /// When the last segment came.
    pub(super) heard: Instant,
    /// When the stage began, or when the peer was first waited for, or took something, last.
    pub(super) since: Instant,
    /// The sequence number of the first segment that has gone.
    pub(super) opening: Option<TcpSeqNumber>,
    /// The sequence number after the last that has gone.
    pub(super) sent_to: TcpSeqNumber,
    /// The sequence number that the peer waits for, as it said last.
    pub(super) wanted: TcpSeqNumber,
    /// Up to which one the peer has room.
    pub(super) room_to: TcpSeqNumber,
    /// Up to which one of the peer's this end has offered room, and by how many bits it shifts
    /// that.
    pub(super) offered_to: TcpSeqNumber,
    pub(super) own_shift: u8,
    /// By how many bits the peer shifts the windows that it tells.
    pub(super) shift: u8,
    /// When the first segment went, until it is answered, or goes again.
    pub(super) opened: Option<Instant>,
    /// What the socket has said last.
    pub(super) says: Option<StackSays>,
    /// The longest packet to the peer; see `paths.rs`.
    pub(super) path: u16,
    /// What the peer's first segment said, for a new socket; see `growing.rs`.
    pub(super) first: Option<OpeningOptions>,
    /// Whether the peer's first segment has come, so that `reads_at` is known.
    pub(super) knows_peer: bool,
    /// The sequence number of the byte that the program reads next.
    pub(super) reads_at: TcpSeqNumber,
    /// What it knows of losses.
    pub(super) recovery: LossRecovery,
    /// By how much the numbers of the connection are ahead of those of its socket.
    pub(super) offset: i32,
    /// When the program used the socket last.
    pub(super) used: Instant,
    /// More than half of the buffer for reading was full.
    pub(super) was_full: bool,
    /// A writer waits until the buffer for writing is empty, and grows.
    pub(super) wants_room: bool,
    /// How much waits for the peer's acknowledgement; see `limits.rs`.
    pub(super) unacknowledged: usize,
    /// Why the connection is over, if the program did not end it.
    pub(super) ended: Option<ErrorKind>,
}

/// Which part of the program a connection belongs to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ConnectionStage {
    /// To the listener with this address; the handshake goes on.
    HalfOpen(SocketAddr),
    /// To a `TcpStream`; a thread waits there for the handshake.
    Connecting,
    /// To a listener, and the next `accept` there takes it; or to a `TcpStream`.
    Open,
    /// To no part: it lives until its last bytes are acknowledged.
    Orphan,
}

/// When a socket is to send what it has, after something was done with it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SocketTurn {
    Now,
    /// Now, if half of its buffer for reading was full. If not, the peer has room enough, and the
    /// next segment that goes tells it of more.
    IfFull,
    /// When more is written, or by its timer.
    Soon,
}

impl StackConnection {
    pub(super) fn new(
        seat: OwnSocket,
        stage: ConnectionStage,
        options: Arc<TcpOptions>,
        recovery: LossRecovery,
        now: Instant,
    ) -> Box<StackConnection> {
        let (heard, since) = (now, now);
        let (sent_to, wanted, room_to) = (TcpSeqNumber(0), TcpSeqNumber(0), TcpSeqNumber(0));
        let (opening, unacknowledged, ended) = (None, 0, None);
        Box::new(StackConnection {
            seat,
            stage,
            options,
            heard,
            since,
            opening,
            sent_to,
            wanted,
            unacknowledged,
            room_to,
            shift: 0,
            offered_to: TcpSeqNumber(0),
            own_shift: 0,
            opened: None,
            says: None,
            path: LONGEST_PACKET as u16,
            first: None,
            knows_peer: false,
            reads_at: TcpSeqNumber(0),
            recovery,
            offset: 0,
            used: now,
            was_full: false,
            wants_room: false,
            ended,
        })
    }

    /// The connection is this far, although its handshake was not seen: `own` was the number of the
    /// stack's first segment, and `start` is that of the first byte of its socket.
    pub(super) fn stand(&mut self, standing: Standing, own: TcpSeqNumber, start: TcpSeqNumber) {
        self.knows_peer = true;
        self.first = Some(standing.opening).filter(|_| self.options.grows());
        self.shift = standing.opening.shift.unwrap_or(0);
        self.reads_at = standing.reads_at;
        self.recovery.open(standing.opening);
        let (window, shift) = self.options.first_window();
        self.offered_to = standing.reads_at + usize::from(window);
        self.own_shift = standing.opening.shift.map_or(0, |_| shift);
        self.opening = Some(own);
        (self.sent_to, self.wanted, self.room_to) = (own + 1, own, own);
        self.offset = (own + 1).0.wrapping_sub(start.0);
    }

    pub(super) fn orphan(&mut self, now: Instant) {
        self.stage = ConnectionStage::Orphan;
        self.since = now;
    }

    /// Notes what the segment that has come says, also if smoltcp will drop it. A window that ends
    /// before that of an earlier segment is an older one that comes late: the segment gets the
    /// earlier end.
    ///
    /// smoltcp takes each window for the newest. When an old one without room comes after all that
    /// was sent, and what was sent is lost, smoltcp sends nothing more.
    ///
    /// An end behind more bytes than this end has room for is cut off, as these are: smoltcp would
    /// take it, and lose the bytes. smoltcp itself sends such segments when it repeats one at once.
    pub(super) fn note_heard(&mut self, head: StackSegment, frames: &mut Frames, now: Instant) {
        if head.synchronizes {
            self.keep_opening(head);
            self.shift = head.opening.shift.unwrap_or(0);
        }
        let Some(frame) = &mut frames.came else { return };
        let bytes = head.length - usize::from(head.ends).min(head.length);
        if head.ends && !head.synchronizes && head.sequence + bytes > self.offered_to {
            rewrite(frame, SegmentChange::WithoutEnd);
        }
        let Some(wanted) = head.acknowledges else { return };
        if wanted < self.wanted || wanted > self.sent_to {
            return;
        }
        let shift = if head.synchronizes { 0 } else { self.shift };
        let room_to = wanted + (usize::from(head.window) << shift);
        let advances = wanted > self.wanted;
        let repeats = !advances && head.length == 0 && room_to == self.room_to;
        if advances && let Some(went) = self.opened.take() {
            self.recovery.shook_hands(now - went);
        }
        self.recovery.heard(wanted, head.selected, (advances, repeats), &mut frames.spare, now);
        if advances || room_to > self.room_to {
            self.wanted = wanted;
            self.room_to = self.room_to.max(room_to);
        }
        if self.room_to > room_to && self.room_to - room_to >= 1 << shift {
            let window = (self.room_to - wanted) >> shift;
            rewrite(frame, SegmentChange::Window(window.min(0xFFFF) as u16));
        }
    }

    /// Ends a connection when its first segment has no answer, without a word to the peer.
    pub(super) fn give_up(&mut self, why: ErrorKind) {
        let none = || SocketBuffer::new(Vec::new());
        *self.seat.socket() = Socket::new(none(), none());
        self.ended = Some(why);
        Waker::from(self.seat.waiters.clone()).wake();
    }
}

impl StackEngine {
    /// Moves a connection to its next stage.
    pub(super) fn settle(&mut self, flow: SocketPair, now: Instant) {
        let Some(connection) = self.connections.get_mut(&flow) else { return };
        let state = connection.seat.socket().state();
        match (connection.stage, state) {
            (ConnectionStage::HalfOpen(_), State::SynReceived) => {}
            (ConnectionStage::HalfOpen(listener), State::Closed | State::Listen) => {
                self.forget(flow);
                if let Some(backlog) = self.listeners.get_mut(&listener) {
                    backlog.half_open -= 1;
                }
            }
            (ConnectionStage::HalfOpen(listener), _) => {
                connection.stage = ConnectionStage::Open;
                connection.since = now;
                if let Some(backlog) = self.listeners.get_mut(&listener) {
                    backlog.half_open -= 1;
                    backlog.ready.push_back(flow);
                    Waker::from(backlog.waiters.clone()).wake();
                }
            }
            (ConnectionStage::Connecting, State::SynSent | State::SynReceived) => {}
            (ConnectionStage::Connecting, _) => {
                connection.stage = ConnectionStage::Open;
                connection.since = now;
            }
            (ConnectionStage::Orphan, State::Closed) => self.forget(flow),
            (ConnectionStage::Open | ConnectionStage::Orphan, _) => {}
        }
    }

    fn forget(&mut self, flow: SocketPair) {
        let Some(connection) = self.connections.remove(&flow) else { return };
        let StackConnection { seat, unacknowledged, .. } = *connection;
        if let Some(at) = seat.timer {
            self.timers.remove(&(at, TimerOwner::Connection(flow)));
        }
        self.count_unsettled(unacknowledged, 0);
        // Wakers that are left are dropped outside of the lock.
        Waker::from(seat.waiters).wake();
    }

    /// Does something with the socket of a connection, which then gets this turn. `f` gets the
    /// error of what the socket cannot do any more.
    pub(crate) fn with_tcp<R>(
        &mut self,
        flow: SocketPair,
        turn: SocketTurn,
        now: Instant,
        f: impl FnOnce(&mut Socket<'static>, ErrorKind, &Arc<SocketWaiters>) -> R,
    ) -> Option<R> {
        let owner = TimerOwner::Connection(flow);
        let connection = self.connections.get_mut(&flow)?;
        let over = connection.ended.unwrap_or(ErrorKind::ConnectionReset);
        let waiters = connection.seat.waiters.clone();
        let socket = connection.seat.socket();
        let unread = socket.recv_queue();
        let has_room = !connection.was_full && unread * 2 < socket.recv_capacity();
        let result = f(socket, over, &waiters);
        connection.reads_at += unread - connection.seat.socket().recv_queue();
        connection.used = now;
        match turn {
            SocketTurn::IfFull if has_room => {}
            SocketTurn::Soon => {
                let soon = connection.seat.timer.map_or(now + SOON, |at| at.min(now + SOON));
                connection.seat.set_timer(&mut self.timers, owner, Some(soon));
            }
            SocketTurn::IfFull | SocketTurn::Now => {
                self.grow(flow, now);
                self.turn(owner, now);
            }
        }
        Some(result)
    }

    /// Looks at the socket of a connection, and changes nothing that its peer would have to know.
    pub(crate) fn look_at<R>(
        &mut self,
        flow: SocketPair,
        f: impl FnOnce(&mut Socket<'static>, &Arc<SocketWaiters>) -> R,
    ) -> Option<R> {
        let connection = self.connections.get_mut(&flow)?;
        let waiters = connection.seat.waiters.clone();
        Some(f(connection.seat.socket(), &waiters))
    }

    /// Changes the options of a connection.
    pub(crate) fn with_options(
        &mut self,
        flow: SocketPair,
        now: Instant,
        change: impl FnOnce(TcpOptions) -> TcpOptions,
    ) -> io::Result<()> {
        let connection = self.connections.get_mut(&flow).ok_or(ErrorKind::NotConnected)?;
        connection.options = Arc::new(change(TcpOptions::clone(&connection.options)));
        connection.options.apply(connection.seat.socket());
        connection.heard = now;
        self.turn(TimerOwner::Connection(flow), now);
        Ok(())
    }

    /// The entry of a new connection.
    ///
    /// Its sequence numbers begin where RFC 6528 says: at a keyed hash of its ends and a clock,
    /// added to the number of smoltcp, from which a stranger could learn the next one.
    pub(super) fn connection_of(
        &self,
        flow: SocketPair,
        (seat, stage): (OwnSocket, ConnectionStage),
        options: Arc<TcpOptions>,
        now: Instant,
    ) -> Box<StackConnection> {
        let heads = if flow.local.is_ipv4() { 40 } else { 60 };
        let recovery = LossRecovery::new(options.congestion, (LONGEST_PACKET - heads) as u16, now);
        let mut connection = StackConnection::new(seat, stage, options, recovery, now);
        let mut hash = DefaultHasher::new();
        (!self.options.secret, flow).hash(&mut hash);
        connection.offset = (hash.finish() as i32).wrapping_add((now.total_micros() / 4) as i32);
        connection.path = self.path_to(flow.peer);
        connection
    }

    /// Begins a connection to a peer, from a port of which the wire `takes` the frames.
    pub(crate) fn connect(
        &mut self,
        peer: SocketAddr,
        options: Option<TcpOptions>,
        takes: impl Fn(SocketPair) -> bool,
        now: Instant,
    ) -> io::Result<SocketPair> {
        let options = options.map_or_else(|| self.options.tcp.clone(), Arc::new);
        let local = self.source_for(peer)?;
        let local = self.free_port(local, |engine, local| {
            engine.connections.contains_key(&SocketPair { local, peer })
                || !takes(SocketPair { local, peer })
                || engine.bound(&engine.listeners, local).is_some()
        })?;
        let mut socket = options.socket(options.begins_with());
        let refused = |error| io::Error::new(ErrorKind::InvalidInput, format!("{peer}: {error}"));
        socket.connect(self.interface.context(), peer, local).map_err(refused)?;
        let (flow, seat) = (SocketPair { local, peer }, self.seat(socket));
        let connection = self.connection_of(flow, (seat, ConnectionStage::Connecting), options, now);
        self.connections.insert(flow, connection);
        self.turn(TimerOwner::Connection(flow), now);
        Ok(flow)
    }

    /// A router or the peer says that a segment did not arrive. It ends a connection that has heard
    /// nothing else yet; to an open one it may be a passing trouble, or a lie.
    pub(super) fn unreachable(
        &mut self,
        flow: SocketPair,
        sequence: TcpSeqNumber,
        why: ErrorKind,
        now: Instant,
    ) {
        if let Some(connection) = self.connections.get_mut(&flow)
            && connection.seat.socket().state() == State::SynSent
            && connection.opening == Some(sequence)
        {
            connection.give_up(why);
            let came = self.frames.came.take();
            self.turn(TimerOwner::Connection(flow), now);
            self.frames.came = came;
        }
    }

    /// A `TcpStream` has gone. A reset tells the peer if bytes of it were not read.
    pub(crate) fn release(&mut self, flow: SocketPair, now: Instant) {
        let Some(connection) = self.connections.get_mut(&flow) else { return };
        connection.orphan(now);
        let socket = connection.seat.socket();
        if socket.can_recv() {
            if socket.state() != State::Closed {
                self.lost += socket.send_queue() as u64;
            }
            socket.abort();
        } else {
            socket.close();
        }
        self.turn(TimerOwner::Connection(flow), now);
    }
}
