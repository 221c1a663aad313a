//! The state of a stack: its sockets, which frame is for which of them, and when each is to be
//! looked at again.
//!
//! smoltcp looks at every socket of a set at each turn. Here each socket is a set of its own, so a
//! turn concerns one socket: the frame is for it ([`Cargo`]), its time has come (`timers`), or a
//! thread has used it.
//!
//! `connections.rs` has the stages of a connection and the listeners, `datagrams.rs` the UDP
//! sockets, and `addresses.rs` the ports.

mod addresses;
mod connections;
mod datagrams;

use crate::flow::{Cargo, SocketPair};
use crate::frames::Frames;
use crate::options::StackOptions;
use crate::waiters::SocketWaiters;
use addresses::EPHEMERAL;
use connections::{ListenQueue, StackConnection};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::socket::{AnySocket, tcp};
use smoltcp::time::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::task::Waker;

/// How long a socket is silent at most because the Ethernet address of its peer is not known.
const SILENCE: Duration = Duration::from_secs(1);
/// How soon a socket is looked at again that has something to do now.
const SOON: Duration = Duration::from_millis(1);

pub(crate) struct StackEngine {
    pub(crate) interface: Interface,
    pub(crate) frames: Frames,
    /// For frames that are for no socket.
    nothing: SocketSet<'static>,
    connections: BTreeMap<SocketPair, StackConnection>,
    listeners: BTreeMap<SocketAddr, ListenQueue>,
    datagrams: BTreeMap<SocketAddr, OwnSocket>,
    timers: BTreeSet<(Instant, TimerOwner)>,
    next_port: u16,
    options: StackOptions,
    pub(crate) woken: Arc<Mutex<Vec<Waker>>>,
    /// Why no more frames come.
    pub(crate) broken: Option<io::ErrorKind>,
}

/// Which socket a timer is for.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum TimerOwner {
    Connection(SocketPair),
    Datagrams(SocketAddr),
}

/// A socket in a set of its own.
struct OwnSocket {
    set: SocketSet<'static>,
    handle: SocketHandle,
    waiters: Arc<SocketWaiters>,
    timer: Option<Instant>,
}

impl StackEngine {
    pub(crate) fn new(options: StackOptions, now: Instant) -> StackEngine {
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
        StackEngine {
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
                if opens
                    && !self.connections.contains_key(&flow)
                    && let Some(listener) = self.bound(&self.listeners, flow.local)
                    && !self.begin(flow, listener)
                {
                    return;
                }
                self.frames.came = Some(frame);
                if self.connections.contains_key(&flow) {
                    return self.turn(TimerOwner::Connection(flow), now);
                }
            }
            Cargo::Datagram { to } => {
                self.frames.came = Some(frame);
                if let Some(to) = self.bound(&self.datagrams, to) {
                    return self.turn(TimerOwner::Datagrams(to), now);
                }
            }
            Cargo::Other => self.frames.came = Some(frame),
        }
        self.interface.poll(now, &mut self.frames, &mut self.nothing);
        // The frame may have told an Ethernet address for which sockets are silent.
        let silent = self.timers.iter().take_while(|(at, _)| *at <= now + SILENCE);
        let silent: Vec<TimerOwner> = silent.map(|(_, owner)| *owner).collect();
        for owner in silent {
            self.turn(owner, now);
        }
    }

    fn seat(&self, socket: impl AnySocket<'static>) -> OwnSocket {
        let mut set = SocketSet::new(Vec::with_capacity(1));
        let handle = set.add(socket);
        OwnSocket { set, handle, waiters: SocketWaiters::new(&self.woken), timer: None }
    }

    /// Looks at the sockets that have a timer which has expired.
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
    fn turn(&mut self, owner: TimerOwner, now: Instant) {
        let seat = match owner {
            TimerOwner::Connection(flow) => self.connections.get_mut(&flow).map(|c| &mut c.seat),
            TimerOwner::Datagrams(address) => self.datagrams.get_mut(&address),
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
        if let TimerOwner::Connection(flow) = owner {
            self.settle(flow);
        }
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

impl OwnSocket {
    /// The socket of a connection.
    fn socket(&mut self) -> &mut tcp::Socket<'static> {
        self.set.get_mut(self.handle)
    }
}
