//! The state of a stack: its sockets, which frame is for which of them, and when each is to be
//! looked at again.
//!
//! smoltcp looks at every socket of a set at each turn. Here each socket is a set of its own, so a
//! turn concerns one socket: the one that the frame is for ([`Cargo`]), whose time has come
//! (`timers`), or that a thread has used.

use crate::flow::{Cargo, Flow};
use crate::frames::Frames;
use crate::options::StackOptions;
use crate::waiters::Waiters;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::socket::{tcp, udp};
use smoltcp::time::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::task::Waker;

/// How long a socket is silent at most because the Ethernet address of its peer is not known.
const SILENCE: Duration = Duration::from_secs(1);
/// How soon a socket is looked at again that has something to do now.
const SOON: Duration = Duration::from_millis(1);
/// The ports of sockets that asked for none.
const EPHEMERAL: std::ops::RangeInclusive<u16> = 49152..=65535;

pub(crate) struct Engine {
    pub(crate) interface: Interface,
    pub(crate) frames: Frames,
    /// For frames that are for no socket.
    nothing: SocketSet<'static>,
    connections: BTreeMap<Flow, Connection>,
    listeners: BTreeMap<SocketAddr, Backlog>,
    datagrams: BTreeMap<SocketAddr, Seat>,
    timers: BTreeSet<(Instant, Owner)>,
    next_port: u16,
    options: StackOptions,
    pub(crate) woken: Arc<Mutex<Vec<Waker>>>,
    /// Why no more frames come.
    pub(crate) broken: Option<io::ErrorKind>,
}

/// Which socket a timer is for.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Owner {
    Connection(Flow),
    Datagrams(SocketAddr),
}

/// A socket in a set of its own.
struct Seat {
    set: SocketSet<'static>,
    handle: SocketHandle,
    waiters: Arc<Waiters>,
    timer: Option<Instant>,
}

struct Connection {
    seat: Seat,
    stage: Stage,
}

/// Which part of the program a connection belongs to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    /// To the listener with this address; the handshake goes on.
    HalfOpen(SocketAddr),
    /// To a listener, whose next `accept` takes it, or to a `TcpStream`.
    Open,
    /// To no part: it lives until its last bytes are acknowledged.
    Orphan,
}

struct Backlog {
    half_open: usize,
    ready: VecDeque<Flow>,
    waiters: Arc<Waiters>,
}

fn in_use(address: SocketAddr) -> io::Error {
    io::Error::new(io::ErrorKind::AddrInUse, format!("{address} is in use"))
}

impl Engine {
    pub(crate) fn new(options: StackOptions, now: Instant) -> Engine {
        let mut config = Config::new(options.hardware.into());
        config.random_seed = options.seed;
        let mut frames = Frames::default();
        let mut interface = Interface::new(config, &mut frames, now);
        interface.update_ip_addrs(|addresses| addresses.extend(options.addresses.iter().copied()));
        for gateway in &options.gateways {
            // There is room: the table has two routes, one for each family.
            let _ = match *gateway {
                IpAddr::V4(address) => interface.routes_mut().add_default_ipv4_route(address),
                IpAddr::V6(address) => interface.routes_mut().add_default_ipv6_route(address),
            };
        }
        let ports = u64::from(EPHEMERAL.end() - EPHEMERAL.start());
        Engine {
            interface,
            frames,
            nothing: SocketSet::new(Vec::new()),
            connections: BTreeMap::new(),
            listeners: BTreeMap::new(),
            datagrams: BTreeMap::new(),
            timers: BTreeSet::new(),
            next_port: EPHEMERAL.start() + ((options.seed >> 7) % ports) as u16,
            options,
            woken: Arc::default(),
            broken: None,
        }
    }

    /// Takes a frame that has come.
    pub(crate) fn take(&mut self, frame: Vec<u8>, now: Instant) {
        match Cargo::of(&frame) {
            Cargo::Segment { flow, opens } => {
                if opens && !self.connections.contains_key(&flow) {
                    if let Some(listener) = self.bound(&self.listeners, flow.local) {
                        if !self.begin(flow, listener) {
                            return;
                        }
                    }
                }
                self.frames.came = Some(frame);
                if self.connections.contains_key(&flow) {
                    return self.turn(Owner::Connection(flow), now);
                }
            }
            Cargo::Datagram { to } => {
                self.frames.came = Some(frame);
                if let Some(to) = self.bound(&self.datagrams, to) {
                    return self.turn(Owner::Datagrams(to), now);
                }
            }
            Cargo::Other => self.frames.came = Some(frame),
        }
        self.interface.poll(now, &mut self.frames, &mut self.nothing);
        // The frame may have told an Ethernet address for which sockets are silent.
        let silent = self.timers.iter().take_while(|(at, _)| *at <= now + SILENCE);
        let silent: Vec<Owner> = silent.map(|(_, owner)| *owner).collect();
        for owner in silent {
            self.turn(owner, now);
        }
    }

    /// The address at which `address` is served: itself, or that of all addresses.
    fn bound<T>(&self, table: &BTreeMap<SocketAddr, T>, address: SocketAddr) -> Option<SocketAddr> {
        let all = SocketAddr::new(all_addresses(address), address.port());
        [address, all].into_iter().find(|address| table.contains_key(address))
    }

    /// Makes the socket of a connection that a peer asks for; false if the listener has no room.
    fn begin(&mut self, flow: Flow, listener: SocketAddr) -> bool {
        let Some(backlog) = self.listeners.get_mut(&listener) else { return false };
        let full = backlog.half_open + backlog.ready.len() >= self.options.backlog;
        if full || backlog.half_open >= self.options.half_open {
            return false;
        }
        backlog.half_open += 1;
        let mut socket = self.new_socket();
        // The address has a port, and the socket is new: these are all its conditions.
        let listens = socket.listen(flow.local);
        debug_assert!(listens.is_ok());
        let seat = self.seat(socket);
        self.connections.insert(flow, Connection { seat, stage: Stage::HalfOpen(listener) });
        true
    }

    fn new_socket(&self) -> tcp::Socket<'static> {
        let buffer = || tcp::SocketBuffer::new(vec![0; self.options.buffer]);
        let mut socket = tcp::Socket::new(buffer(), buffer());
        socket.set_timeout(Some(Duration::from_secs(60)));
        socket
    }

    fn seat(&self, socket: impl smoltcp::socket::AnySocket<'static>) -> Seat {
        let mut set = SocketSet::new(Vec::with_capacity(1));
        let handle = set.add(socket);
        Seat { set, handle, waiters: Waiters::new(&self.woken), timer: None }
    }

    /// Looks at the sockets whose time has come.
    pub(crate) fn expire(&mut self, now: Instant) {
        while let Some(&(at, owner)) = self.timers.first() {
            if at > now {
                return;
            }
            self.turn(owner, now);
        }
    }

    pub(crate) fn next_timer(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Lets a socket take the frame that has come and send what it has to send, and notes when it
    /// is to be looked at again.
    fn turn(&mut self, owner: Owner, now: Instant) {
        let seat = match owner {
            Owner::Connection(flow) => self.connections.get_mut(&flow).map(|c| &mut c.seat),
            Owner::Datagrams(address) => self.datagrams.get_mut(&address),
        };
        let Some(seat) = seat else {
            // The socket has gone, and its timer goes too.
            self.timers.retain(|(_, other)| *other != owner);
            return;
        };
        self.interface.poll(now, &mut self.frames, &mut seat.set);
        let next = self.interface.poll_at(now, &seat.set).map(|at| at.max(now + SOON));
        if next != seat.timer {
            if let Some(old) = seat.timer {
                self.timers.remove(&(old, owner));
            }
            self.timers.extend(next.map(|at| (at, owner)));
            seat.timer = next;
        }
        if let Owner::Connection(flow) = owner {
            self.settle(flow);
        }
    }

    /// Moves a connection to its next stage.
    fn settle(&mut self, flow: Flow) {
        let Some(connection) = self.connections.get_mut(&flow) else { return };
        let state = connection.seat.set.get::<tcp::Socket<'_>>(connection.seat.handle).state();
        match (connection.stage, state) {
            (Stage::HalfOpen(_), tcp::State::SynReceived) => {}
            (Stage::HalfOpen(listener), tcp::State::Closed | tcp::State::Listen) => {
                self.forget(flow);
                if let Some(backlog) = self.listeners.get_mut(&listener) {
                    backlog.half_open -= 1;
                }
            }
            (Stage::HalfOpen(listener), _) => {
                connection.stage = Stage::Open;
                connection.seat.socket().set_timeout(None);
                if let Some(backlog) = self.listeners.get_mut(&listener) {
                    backlog.half_open -= 1;
                    backlog.ready.push_back(flow);
                    Waker::from(backlog.waiters.clone()).wake();
                }
            }
            (Stage::Orphan, tcp::State::Closed) => self.forget(flow),
            (Stage::Open | Stage::Orphan, _) => {}
        }
    }

    fn forget(&mut self, flow: Flow) {
        if let Some(Connection { seat, .. }) = self.connections.remove(&flow) {
            if let Some(at) = seat.timer {
                self.timers.remove(&(at, Owner::Connection(flow)));
            }
        }
    }

    /// Does something with the socket of a connection, and lets it send.
    pub(crate) fn with_tcp<R>(
        &mut self,
        flow: Flow,
        now: Instant,
        f: impl FnOnce(&mut tcp::Socket<'static>, &Arc<Waiters>) -> R,
    ) -> Option<R> {
        let seat = &mut self.connections.get_mut(&flow)?.seat;
        let waiters = seat.waiters.clone();
        let result = f(seat.socket(), &waiters);
        self.turn(Owner::Connection(flow), now);
        Some(result)
    }

    /// Begins a connection to a peer.
    pub(crate) fn connect(&mut self, peer: SocketAddr, now: Instant) -> io::Result<Flow> {
        let unreachable = || {
            let message = format!("{peer}: the stack has no address of this family");
            io::Error::new(io::ErrorKind::AddrNotAvailable, message)
        };
        let local = self.interface.get_source_address(&peer.ip().into()).ok_or_else(unreachable)?;
        let local = self.free_port(local.into(), |engine, local| {
            engine.connections.contains_key(&Flow { local, peer })
                || engine.bound(&engine.listeners, local).is_some()
        })?;
        let mut socket = self.new_socket();
        let refused = |error| io::Error::new(io::ErrorKind::InvalidInput, format!("{peer}: {error}"));
        socket.connect(self.interface.context(), peer, local).map_err(refused)?;
        let (flow, seat) = (Flow { local, peer }, self.seat(socket));
        self.connections.insert(flow, Connection { seat, stage: Stage::Open });
        self.turn(Owner::Connection(flow), now);
        Ok(flow)
    }

    /// A `TcpStream` has gone. A peer whose bytes were not read is told so by a reset.
    pub(crate) fn release(&mut self, flow: Flow, now: Instant) {
        let Some(connection) = self.connections.get_mut(&flow) else { return };
        connection.stage = Stage::Orphan;
        let socket = connection.seat.socket();
        if socket.can_recv() {
            socket.abort();
        } else {
            socket.close();
        }
        socket.set_timeout(Some(Duration::from_secs(60)));
        self.turn(Owner::Connection(flow), now);
    }

    pub(crate) fn listen(&mut self, address: SocketAddr) -> io::Result<SocketAddr> {
        let address = self.free_address(address, |engine, at| engine.listeners.contains_key(&at))?;
        let waiters = Waiters::new(&self.woken);
        self.listeners.insert(address, Backlog { half_open: 0, ready: VecDeque::new(), waiters });
        Ok(address)
    }

    /// The next connection of a listener; if there is none, the waker waits for it.
    pub(crate) fn accept(&mut self, listener: SocketAddr, waker: &Waker) -> Option<Flow> {
        let backlog = self.listeners.get_mut(&listener)?;
        let flow = backlog.ready.pop_front();
        if flow.is_none() {
            backlog.waiters.add(waker);
        }
        flow
    }

    /// A `TcpListener` has gone: its connections that no thread has accepted are reset.
    pub(crate) fn unlisten(&mut self, listener: SocketAddr, now: Instant) {
        let ready = self.listeners.remove(&listener).map(|backlog| backlog.ready);
        let unaccepted = self.connections.iter().filter(|(_, c)| c.stage == Stage::HalfOpen(listener));
        let mut flows: Vec<Flow> = unaccepted.map(|(flow, _)| *flow).collect();
        flows.extend(ready.into_iter().flatten());
        for flow in flows {
            if let Some(connection) = self.connections.get_mut(&flow) {
                connection.stage = Stage::Orphan;
                connection.seat.socket().abort();
            }
            self.turn(Owner::Connection(flow), now);
        }
    }

    pub(crate) fn bind(&mut self, address: SocketAddr) -> io::Result<SocketAddr> {
        let address = self.free_address(address, |engine, at| engine.datagrams.contains_key(&at))?;
        let buffer = || {
            let bytes = vec![0; self.options.buffer.max(2048)];
            udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; 64], bytes)
        };
        let mut socket = udp::Socket::new(buffer(), buffer());
        // The port is not 0, and the socket is new: these are all its conditions.
        let bound = socket.bind(address.port());
        debug_assert!(bound.is_ok());
        let seat = self.seat(socket);
        self.datagrams.insert(address, seat);
        Ok(address)
    }

    pub(crate) fn with_udp<R>(
        &mut self,
        address: SocketAddr,
        now: Instant,
        f: impl FnOnce(&mut udp::Socket<'static>, &Arc<Waiters>) -> R,
    ) -> Option<R> {
        let seat = self.datagrams.get_mut(&address)?;
        let waiters = seat.waiters.clone();
        let result = f(seat.set.get_mut(seat.handle), &waiters);
        self.turn(Owner::Datagrams(address), now);
        Some(result)
    }

    pub(crate) fn unbind(&mut self, address: SocketAddr) {
        if let Some(Seat { timer: Some(at), .. }) = self.datagrams.remove(&address) {
            self.timers.remove(&(at, Owner::Datagrams(address)));
        }
    }

    /// `address` with a port, if it is the stack's and free.
    fn free_address(
        &mut self,
        address: SocketAddr,
        taken: impl Fn(&Engine, SocketAddr) -> bool,
    ) -> io::Result<SocketAddr> {
        if !address.ip().is_unspecified() && !self.interface.has_ip_addr(address.ip()) {
            let message = format!("{address} is no address of the stack");
            return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, message));
        }
        if address.port() == 0 {
            return self.free_port(address.ip(), taken);
        }
        if taken(self, address) { Err(in_use(address)) } else { Ok(address) }
    }

    fn free_port(
        &mut self,
        address: IpAddr,
        taken: impl Fn(&Engine, SocketAddr) -> bool,
    ) -> io::Result<SocketAddr> {
        for _ in EPHEMERAL {
            let at = SocketAddr::new(address, self.next_port);
            self.next_port = self.next_port.checked_add(1).unwrap_or(*EPHEMERAL.start());
            if !taken(self, at) {
                return Ok(at);
            }
        }
        Err(in_use(SocketAddr::new(address, 0)))
    }

    /// No more frames come: every waiting thread hears of it.
    pub(crate) fn fail(&mut self, error: io::ErrorKind) {
        self.broken = Some(error);
        let sockets = self.connections.values().map(|c| &c.seat.waiters);
        let sockets = sockets.chain(self.datagrams.values().map(|seat| &seat.waiters));
        for waiters in sockets.chain(self.listeners.values().map(|backlog| &backlog.waiters)) {
            Waker::from(waiters.clone()).wake();
        }
    }
}

impl Seat {
    /// The socket of a connection.
    fn socket(&mut self) -> &mut tcp::Socket<'static> {
        self.set.get_mut(self.handle)
    }
}

fn all_addresses(address: SocketAddr) -> IpAddr {
    match address {
        SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    }
}
