//! The state of a stack: its sockets, which frame is for which of them, and when each is to be
//! looked at again.
//!
//! smoltcp looks at every socket of a set at each turn. Here each socket is a set of its own, so a
//! turn concerns one socket: the frame is for it ([`Cargo`]), its time has come (`timers`), or a
//! thread has used it.
//!
//! `connections.rs` has the stages of a connection, `growing.rs` its buffers, `turns.rs` what a
//! turn of its socket does, `limits.rs` how long it waits for its peer, `paths.rs` how long its
//! packets may be, `sending.rs` what goes to the wire, `recovery.rs` what is lost, `control.rs` how
//! much goes and when, `looping.rs` what goes to the stack itself,
//! `listeners.rs` the listeners, `admission.rs` and `cookies.rs` what they do with segments of
//! strangers, `workshop.rs` sockets that are made in the middle of a connection, `datagrams.rs` the
//! UDP sockets, and `addresses.rs` the ports and routes.

mod addresses;
mod admission;
mod bbr;
mod congestion;
mod connections;
mod control;
mod cookies;
mod datagrams;
mod delivery;
mod flight;
mod growing;
mod limits;
mod listen_queue;
mod listeners;
mod looping;
mod paths;
mod recovery;
mod round_trips;
mod says;
mod sending;
mod slow_start;
mod turns;
mod workshop;

use crate::flow::{Cargo, SocketPair};
use crate::frames::Frames;
use crate::options::StackOptions;
use crate::waiters::SocketWaiters;
use addresses::EPHEMERAL;
pub(crate) use addresses::PICKED_PORT;
pub(crate) use connections::SocketTurn;
use connections::StackConnection;
use cookies::SynCookies;
use foldhash::quality::FixedState;
use listen_queue::{Admission, ListenQueue};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::socket::{AnySocket, tcp};
use smoltcp::time::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use workshop::Workshop;

/// How long a socket is silent at most because the Ethernet address of its peer is not known.
const SILENCE: Duration = Duration::from_secs(1);
/// How soon a socket is looked at again that has something to do now.
const SOON: Duration = Duration::from_millis(1);

pub(crate) struct StackEngine {
    pub(crate) interface: Interface,
    pub(crate) frames: Frames,
    /// The frames that the stack has sent to itself.
    own_frames: VecDeque<Vec<u8>>,
    /// For frames that are for no socket.
    nothing: SocketSet<'static>,
    workshop: Workshop,
    cookies: SynCookies,
    /// The longest packets to hosts behind narrow ways; see `paths.rs`.
    paths: BTreeMap<IpAddr, u16>,
    /// In boxes, because a part of the map's places is empty. The seed of the hash is the stack's
    /// secret, because strangers choose their ports.
    connections: HashMap<SocketPair, Box<StackConnection>, FixedState>,
    listeners: BTreeMap<SocketAddr, ListenQueue>,
    datagrams: BTreeMap<SocketAddr, OwnSocket>,
    timers: BTreeSet<(Instant, TimerOwner)>,
    next_port: u16,
    options: StackOptions,
    /// How many connections have something that their peers have not acknowledged.
    unsettled: usize,
    /// The bytes that connections without an owner could not send.
    lost: u64,
    /// The threads that wait until no connection is unsettled.
    finishing: Arc<SocketWaiters>,
    /// Until when a stack that the program has dropped goes on.
    ends_at: Option<Instant>,
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
        let woken = Arc::default();
        StackEngine {
            interface,
            frames,
            own_frames: VecDeque::new(),
            nothing: SocketSet::new(Vec::new()),
            workshop: Workshop::new(&options, now),
            cookies: SynCookies::new(options.secret),
            paths: BTreeMap::new(),
            connections: HashMap::with_hasher(FixedState::with_seed(options.secret)),
            listeners: BTreeMap::new(),
            datagrams: BTreeMap::new(),
            timers: BTreeSet::new(),
            next_port: EPHEMERAL.start() + ((options.seed >> 7) % ports) as u16,
            options,
            unsettled: 0,
            lost: 0,
            finishing: SocketWaiters::new(&woken),
            ends_at: None,
            woken,
            broken: None,
        }
    }

    /// Takes a frame that has come.
    pub(crate) fn take(&mut self, frame: Vec<u8>, now: Instant) {
        let cargo = Cargo::of(&frame);
        self.frames.came = Some(frame);
        match cargo {
            Cargo::Segment(flow, head) => {
                let admission = match self.connections.contains_key(&flow) {
                    true => Admission::Begun,
                    false => self.admit(flow, &head, now),
                };
                match admission {
                    Admission::Begun => return self.turn_connection(flow, Some(head), now),
                    Admission::Full => {
                        self.frames.came = None;
                        return;
                    }
                    Admission::None => {}
                }
            }
            Cargo::Datagram { to, .. } => {
                if let Some(to) = self.bound(&self.datagrams, to) {
                    return self.turn_datagrams(to, now);
                }
            }
            Cargo::Unreachable { flow, sequence, why } => self.unreachable(flow, sequence, why, now),
            Cargo::TooLong { flow, sequence, most } => self.path_is_narrow(flow, sequence, most),
            Cargo::Neighbor | Cargo::Other => {}
        }
        self.interface.poll(now, &mut self.frames, &mut self.nothing);
        self.frames.send_made();
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
        self.seat_of(set, handle)
    }

    fn seat_of(&self, set: SocketSet<'static>, handle: SocketHandle) -> OwnSocket {
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

    /// Lets a socket send what it has to send, and notes when it is to be looked at again.
    fn turn(&mut self, owner: TimerOwner, now: Instant) {
        match owner {
            TimerOwner::Connection(flow) => self.turn_connection(flow, None, now),
            TimerOwner::Datagrams(address) => self.turn_datagrams(address, now),
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
        Waker::from(self.finishing.clone()).wake();
    }
}

/// For the fuzz target and its test.
impl StackEngine {
    /// How many connections there are.
    pub(crate) fn count(&self) -> usize {
        self.connections.len()
    }

    /// Checks what always holds between two turns.
    ///
    /// # Panics
    /// If it does not.
    pub(crate) fn check(&self) {
        let unsettled = self.connections.values().filter(|c| c.unacknowledged > 0).count();
        assert_eq!(self.unsettled, unsettled, "connections that wait for their peers");
        let connections = self.connections.iter();
        let timers = connections.map(|(flow, c)| (c.seat.timer, TimerOwner::Connection(*flow)));
        let sockets = self.datagrams.iter();
        let timers = timers.chain(sockets.map(|(at, seat)| (seat.timer, TimerOwner::Datagrams(*at))));
        let timers: BTreeSet<_> = timers.filter_map(|(at, owner)| Some((at?, owner))).collect();
        assert_eq!(self.timers, timers, "timers and their owners");
        self.connections.values().for_each(|connection| connection.recovery.check());
        for queue in self.listeners.values() {
            assert!(queue.half_open <= self.options.half_open, "half-open connections");
            let most = self.options.backlog + self.options.half_open;
            assert!(queue.ready.len() <= most, "a listener's connections");
        }
    }
}

impl OwnSocket {
    /// Lets the socket take the frame that has come and send what it has to send, and returns when
    /// it has more to do.
    fn poll(&mut self, interface: &mut Interface, frames: &mut Frames, now: Instant) -> Option<Instant> {
        interface.poll(now, frames, &mut self.set);
        interface.poll_at(now, &self.set).map(|at| at.max(now + SOON))
    }

    /// Sets the timer of the socket anew.
    fn set_timer(
        &mut self,
        timers: &mut BTreeSet<(Instant, TimerOwner)>,
        owner: TimerOwner,
        next: Option<Instant>,
    ) {
        if next != self.timer {
            if let Some(old) = self.timer {
                timers.remove(&(old, owner));
            }
            timers.extend(next.map(|at| (at, owner)));
            self.timer = next;
        }
    }

    /// The socket of a connection.
    fn socket(&mut self) -> &mut tcp::Socket<'static> {
        self.set.get_mut(self.handle)
    }
}
