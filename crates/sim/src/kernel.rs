//! A kernel in memory: descriptors, an epoll set, a network, a disk and signals.
//! [`World`](crate::World) installs it under the event loop, and a seed determines its delays and
//! errors.
//!
//! It behaves as Linux does where a program can see the difference, above all at the edges: an
//! epoll set reports a socket once when a state of the socket begins; a short read means that
//! nothing is left, and a short write that there is no room; an edge follows when that changes. So
//! the simulation runs the real event loop, not only the program's own logic.
//!
//! Nothing happens by itself. The calendar holds the events to come, and `epoll_wait` moves the
//! virtual clock to the next of them.
//!
//! This file has the kernel's descriptors. `objects.rs` says what descriptors stand for, and
//! `calendar.rs` what may happen. The files that make the calls lie beside them.

mod arrivals;
mod calendar;
mod datagrams;
mod files;
mod id;
mod network;
mod objects;
mod pipes;
mod readiness;
mod signals;
mod socket_name;
mod sockets;
mod stream;

use crate::digest::Digest;
use crate::disk::tree::{Ino, Tree};
use crate::{Conditions, Random};
use calendar::{CalendarEntry, Happening};
use id::Id;
use objects::{
    Datagrams, Epoll, KernelObject, ListeningSocket, Member, ObjectKind, OpenInode, PIPE_BUF, Peer, Pipe,
    PipeEnd, Socket, Subscription,
};
use rustix::event::epoll::{Event, EventData, EventFlags};
use rustix::io::{Errno, Result};
use rustix::net::{AddressFamily, Shutdown, SocketAddrAny};
use selvedge_core::{Time, VirtualClock};
use selvedge_io::sys::SocketOption;
use selvedge_io::sys::interposed::{NO_GENERATION, NUMBER_BITS, number};
use selvedge_io::sys::kernel::{
    DatagramCalls, EpollCalls, FileCalls, KernelCalls, PipeCalls, SignalCalls, SocketCalls,
};
use socket_name::SocketName;
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use stream::{StreamSocket, StreamState};

/// The lowest number of a simulated descriptor. The real descriptors of a program may have the
/// numbers below it.
const NUMBER_MIN: usize = 512;

#[derive(Debug)]
pub(crate) struct Kernel {
    generation: u32,
    conditions: Conditions,
    random: Random,
    /// The object of each descriptor, by the descriptor's number less `NUMBER_MIN`.
    descriptors: Vec<Option<Id>>,
    /// The indices of closed descriptors. The kernel uses the lowest next, as Linux does.
    free: BTreeSet<usize>,
    open: usize,
    objects: Vec<Option<KernelObject>>,
    epolls: Vec<Id>,
    /// The sockets and listeners that are bound to an address.
    names: BTreeMap<SocketName, Vec<Id>>,
    /// The datagram sockets that are bound to an address.
    receivers: BTreeMap<SocketName, Vec<Id>>,
    next_port: u16,
    disk: Tree,
    /// The difference between the disk's clock and the world's clock, in nanoseconds.
    boot: u64,
    pipes: Vec<Option<Pipe>>,
    /// The pipes of the FIFOs that are open.
    fifos: BTreeMap<Ino, Id>,
    calendar: BinaryHeap<Reverse<CalendarEntry>>,
    /// The scheduler chooses which of the due entries happens next, so `epoll_wait` lets none
    /// happen.
    leaves_arrivals: bool,
    entries: u64,
    /// The digest of everything that happens.
    digest: Digest,
}

/// How long a client waits for an answer before it asks again to be connected, and how often it
/// asks.
const KNOCK_AGAIN: Duration = Duration::from_secs(1);
const KNOCKS_MAX: u32 = 6;

impl Kernel {
    pub(super) fn new(seed: u64, conditions: Conditions, mut disk: Tree) -> Kernel {
        disk.limit(conditions.disk_bytes);
        static GENERATIONS: AtomicU32 = AtomicU32::new(0);
        let generation = GENERATIONS.fetch_add(1, Ordering::Relaxed) % NO_GENERATION;
        Kernel {
            generation,
            conditions,
            random: Random::new(seed),
            descriptors: Vec::new(),
            free: BTreeSet::new(),
            open: 0,
            objects: Vec::new(),
            epolls: Vec::new(),
            names: BTreeMap::new(),
            receivers: BTreeMap::new(),
            next_port: 32_768,
            boot: disk.now().saturating_sub(Time::now().as_nanos()),
            disk,
            pipes: Vec::new(),
            fifos: BTreeMap::new(),
            calendar: BinaryHeap::new(),
            leaves_arrivals: false,
            entries: 0,
            digest: Digest::default(),
        }
    }

    /// From now on the scheduler chooses the order of the due entries, by [`Arrivals`].
    pub(super) fn leave_arrivals(&mut self) {
        self.leaves_arrivals = true;
    }

    /// How many descriptors are open.
    pub(super) fn left_open(&self) -> usize {
        self.open
    }

    /// The disk as it is now.
    pub(super) fn into_disk(self) -> Tree {
        self.disk
    }

    /// The digest of everything that happened.
    pub(super) fn digest(&self) -> u64 {
        self.digest.value()
    }

    fn note(&mut self, what: u64) {
        self.digest.add(what);
    }

    // Descriptors.

    fn id(&self, fd: RawFd) -> Result<Id> {
        let number = number(fd).ok_or(Errno::BADF)?;
        let index = number.checked_sub(NUMBER_MIN).ok_or(Errno::BADF)?;
        if self.raw(number) != fd {
            return Err(Errno::BADF);
        }
        self.descriptors.get(index).copied().flatten().ok_or(Errno::BADF)
    }

    fn raw(&self, number: usize) -> RawFd {
        (1 << 31 | self.generation << NUMBER_BITS | number as u32) as RawFd
    }

    fn object(&mut self, id: Id) -> Option<&mut KernelObject> {
        self.objects.get_mut(id as usize)?.as_mut()
    }

    fn stream(&mut self, id: Id) -> Option<&mut StreamSocket> {
        match self.object(id) {
            Some(KernelObject { kind: ObjectKind::Stream(stream), .. }) => Some(stream),
            _ => None,
        }
    }

    fn stream_at(&mut self, fd: RawFd) -> Result<(Id, &mut StreamSocket)> {
        let id = self.id(fd)?;
        Ok((id, self.stream(id).ok_or(Errno::NOTCONN)?))
    }

    fn add(&mut self, kind: ObjectKind) -> Id {
        self.objects.push(Some(KernelObject { kind, numbers: Vec::new() }));
        self.objects.len() as Id - 1
    }

    fn has_descriptor_left(&self) -> Result<()> {
        if self.open < self.conditions.descriptors_max { Ok(()) } else { Err(Errno::MFILE) }
    }

    /// Gives an object one more descriptor.
    fn describe(&mut self, id: Id) -> RawFd {
        let index = self.free.pop_first().unwrap_or(self.descriptors.len());
        if index == self.descriptors.len() {
            self.descriptors.push(None);
        }
        self.descriptors[index] = Some(id);
        self.open += 1;
        let number = index + NUMBER_MIN;
        self.object(id).expect("just looked up or added").numbers.push(number);
        self.raw(number)
    }

    fn forget(&mut self, name: Option<&SocketName>, id: Id) {
        if let Some(name) = name
            && let Some(ids) = self.names.get_mut(name)
        {
            ids.retain(|&other| other != id);
            if ids.is_empty() {
                self.names.remove(name);
            }
        }
    }
}

impl KernelCalls for Kernel {
    fn close(&mut self, fd: RawFd) {
        let Ok(id) = self.id(fd) else { return };
        let number = number(fd).expect("it has an object");
        self.descriptors[number - NUMBER_MIN] = None;
        self.free.insert(number - NUMBER_MIN);
        self.open -= 1;
        let object = self.object(id).expect("a descriptor's object is there");
        object.numbers.retain(|&n| n != number);
        let last = object.numbers.is_empty();
        for epoll in self.epolls.clone() {
            if let Some(KernelObject { kind: ObjectKind::Epoll(epoll), .. }) = self.object(epoll) {
                epoll.members.remove(&number);
            }
        }
        if !last {
            return;
        }
        match self.objects[id as usize].take().map(|object| object.kind) {
            Some(ObjectKind::Epoll(_)) => self.epolls.retain(|&epoll| epoll != id),
            Some(ObjectKind::Socket(socket)) => self.forget(socket.name.as_ref(), id),
            Some(ObjectKind::Listener(listener)) => {
                self.forget(Some(&listener.name), id);
                for waiting in listener.backlog {
                    if let Some(peer) = self.stream(waiting).map(|stream| stream.peer) {
                        self.objects[waiting as usize] = None;
                        self.reset(peer);
                    }
                }
            }
            Some(ObjectKind::Stream(stream)) => {
                self.forget(Some(&stream.local), id);
                let unread = stream.unread() > 0;
                match stream.state {
                    StreamState::Broken => {}
                    StreamState::Connected if stream.lingers || unread => self.reset(stream.peer),
                    StreamState::Connected if stream.write_shut => {}
                    StreamState::Connected => self.end(stream.peer),
                    StreamState::Connecting => self.reset(stream.peer),
                }
            }
            Some(ObjectKind::Datagrams(socket)) => self.close_datagrams(id, &socket),
            Some(ObjectKind::File(opened)) => self.close_file(&opened),
            Some(ObjectKind::Pipe(end)) => self.close_end(id, &end),
            Some(ObjectKind::Signals(_)) => {}
            None => unreachable!("looked up above"),
        }
    }

    fn duplicate(&mut self, fd: RawFd) -> Result<RawFd> {
        let id = self.id(fd)?;
        self.has_descriptor_left()?;
        Ok(self.describe(id))
    }

    /// Draws whether a signal interrupts a call before the call has any effect.
    fn interrupt(&mut self) -> Result<()> {
        if self.random.happens(self.conditions.interrupted) { Err(Errno::INTR) } else { Ok(()) }
    }

    fn datagrams(&mut self) -> Result<&mut dyn DatagramCalls> {
        Ok(self)
    }

    fn pipes(&mut self) -> Result<&mut dyn PipeCalls> {
        Ok(self)
    }

    fn files(&mut self) -> Result<&mut dyn FileCalls> {
        Ok(self)
    }

    fn signals(&mut self) -> Result<&mut dyn SignalCalls> {
        Ok(self)
    }
}
