//! A kernel in memory: descriptors, an epoll set, and a network whose weather is drawn from a seed.
//!
//! It behaves as Linux does where programs can tell, above all at the edges: an epoll set reports a socket once when something has
//! become true of it, a short read means that nothing is left, a short write that there is no room, and both are followed by an edge
//! when that changes. So what is simulated is not only a program's own logic but the event loop under it.
//!
//! Nothing happens by itself: what the network is going to do stands in a calendar, and `epoll_wait` moves the virtual clock on to the
//! next entry.

use super::Conditions;
use crate::sys::SocketOption;
use rustix::event::epoll::{Event, EventData, EventFlags};
use rustix::io::{Errno, Result};
use rustix::net::{AddressFamily, Shutdown, SocketAddrAny, SocketAddrUnix};
use selvedge_core::{Time, VirtualClock};
use selvedge_sched::Random;
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::mem::{self, MaybeUninit};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A simulated descriptor's number, which the real kernel takes for none: negative, with the kernel's generation above
/// these bits, so that a descriptor that outlives its kernel is not taken for one of the next.
const NUMBER_BITS: u32 = 20;
/// Of the generation that no kernel has, so that -1 and `AT_FDCWD` are no simulated descriptors.
const NO_GENERATION: u32 = (1 << (31 - NUMBER_BITS)) - 1;
/// Below it are numbers that a simulated program's real descriptors (its files) may have too.
const NUMBER_MIN: usize = 512;

/// The number of a simulated descriptor; `None` if it is a real one, or none at all.
#[inline]
pub(crate) fn number(fd: RawFd) -> Option<usize> {
    let bits = fd as u32;
    let simulated = fd < 0 && bits << 1 >> (NUMBER_BITS + 1) != NO_GENERATION;
    simulated.then_some((bits & ((1 << NUMBER_BITS) - 1)) as usize)
}

thread_local! {
    static KERNEL: RefCell<Option<Kernel>> = const { RefCell::new(None) };
    /// Whether this OS thread has one.
    static HERE: Cell<bool> = const { Cell::new(false) };
}

/// Whether this OS thread has a simulated kernel.
pub(crate) fn is_here() -> bool {
    HERE.get()
}

/// The simulated kernel of this OS thread; `BADF` if it has none.
pub(crate) fn with<T>(call: impl FnOnce(&mut Kernel) -> Result<T>) -> Result<T> {
    KERNEL.with_borrow_mut(|kernel| kernel.as_mut().map_or(Err(Errno::BADF), call))
}

/// Closes a simulated descriptor; without effect if its kernel is gone.
#[cold]
pub(crate) fn close(fd: RawFd) {
    // The thread-local may be gone already when an OS thread ends.
    let _ = KERNEL.try_with(|kernel| {
        if let Some(kernel) = kernel.borrow_mut().as_mut() {
            kernel.close(fd);
        }
    });
}

/// Makes the calls of this OS thread go to a simulated kernel.
pub(super) fn install(kernel: Kernel) {
    KERNEL.set(Some(kernel));
    HERE.set(true);
    super::faults::DISTURBED.fetch_add(1, Ordering::SeqCst);
}

/// Gives the OS thread back to the real kernel.
pub(super) fn uninstall() -> Option<Kernel> {
    super::faults::DISTURBED.fetch_sub(1, Ordering::SeqCst);
    HERE.set(false);
    KERNEL.take()
}

/// Numbers what descriptors stand for. A number is never used again, so what the calendar holds for one that is gone concerns nobody.
type Id = u32;

#[derive(Debug)]
pub(crate) struct Kernel {
    generation: u32,
    conditions: Conditions,
    random: Random,
    /// By number, from `NUMBER_MIN` on.
    descriptors: Vec<Option<Id>>,
    /// The indices of those that are closed: the lowest is used next, as in Linux.
    free: BTreeSet<usize>,
    open: usize,
    objects: Vec<Option<Object>>,
    epolls: Vec<Id>,
    /// Who is to be found at an address.
    names: BTreeMap<Name, Vec<Id>>,
    next_port: u16,
    calendar: BinaryHeap<Reverse<Entry>>,
    entries: u64,
    /// Of everything that happens.
    digest: u64,
}

#[derive(Debug)]
struct Object {
    kind: Kind,
    /// Its descriptors.
    numbers: Vec<usize>,
}

#[derive(Debug)]
enum Kind {
    Epoll(Epoll),
    /// Neither connected nor listening yet.
    Socket(Socket),
    Listener(Listener),
    Stream(Box<Stream>),
}

#[derive(Debug, Default)]
struct Epoll {
    members: BTreeMap<usize, Member>,
    /// Those that have something to report, in the order of their edges.
    edges: VecDeque<usize>,
}

#[derive(Debug)]
struct Member {
    data: u64,
    interest: EventFlags,
    queued: bool,
}

#[derive(Debug)]
struct Socket {
    family: AddressFamily,
    name: Option<Name>,
    shares_port: bool,
    lingers: bool,
}

/// Where a socket is to be found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Internet(SocketAddr),
    Path(Vec<u8>),
    Unnamed,
}

#[derive(Debug)]
struct Listener {
    name: Name,
    backlog: VecDeque<Id>,
    backlog_max: usize,
    shares_port: bool,
}

#[derive(Debug)]
struct Stream {
    local: Name,
    remote: Name,
    peer: Id,
    state: State,
    /// What has arrived; of which so much was read already.
    arrived: Vec<u8>,
    read: usize,
    /// How much may be unread here and on the way here.
    window: usize,
    on_the_way: usize,
    /// When the last of what is on the way here arrives.
    arrives: Time,
    /// Until then everything on the way here stands still.
    stalled: Time,
    /// The peer's end has arrived.
    ended: bool,
    read_shut: bool,
    write_shut: bool,
    error: Option<Errno>,
    /// A send was told to wait, and is to have an edge.
    wants_room: bool,
    /// Nothing may be sent until a `Room` comes.
    full: bool,
    room_comes: bool,
    lingers: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Connecting,
    Connected,
    /// Reset, refused, or never connected.
    Broken,
}

#[derive(Debug)]
struct Entry {
    at: Time,
    /// Distinguishes those of the same time.
    number: u64,
    what: Happening,
}

#[derive(Debug)]
enum Happening {
    /// `from` asks to be connected.
    Knock { from: Id, tries: u32 },
    /// The connection is there.
    Connected { to: Id },
    /// There will be none.
    Refused { to: Id, errno: Errno },
    /// Bytes arrive.
    Segment { to: Id, from: Id, bytes: Vec<u8> },
    /// The end of what the peer sends arrives.
    End { to: Id },
    /// The connection breaks.
    Reset { to: Id },
    /// There may be room to send.
    Room { to: Id },
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.number == other.number
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// How long a client waits for an answer before it knocks again, and how often it does.
const KNOCK_AGAIN: Duration = Duration::from_secs(1);
const KNOCKS_MAX: u32 = 6;

impl Kernel {
    pub(super) fn new(seed: u64, conditions: Conditions) -> Kernel {
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
            next_port: 32_768,
            calendar: BinaryHeap::new(),
            entries: 0,
            digest: 0,
        }
    }

    /// How many descriptors are open.
    pub(super) fn open(&self) -> usize {
        self.open
    }

    /// A digest of everything that happened.
    pub(super) fn digest(&self) -> u64 {
        self.digest
    }

    fn note(&mut self, what: u64) {
        self.digest = (self.digest.rotate_left(23) ^ what).wrapping_mul(0x9e37_79b9_7f4a_7c15);
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

    fn object(&mut self, id: Id) -> Option<&mut Object> {
        self.objects.get_mut(id as usize)?.as_mut()
    }

    fn stream(&mut self, id: Id) -> Option<&mut Stream> {
        match self.object(id) {
            Some(Object { kind: Kind::Stream(stream), .. }) => Some(stream),
            _ => None,
        }
    }

    fn stream_at(&mut self, fd: RawFd) -> Result<(Id, &mut Stream)> {
        let id = self.id(fd)?;
        Ok((id, self.stream(id).ok_or(Errno::NOTCONN)?))
    }

    fn add(&mut self, kind: Kind) -> Id {
        self.objects.push(Some(Object { kind, numbers: Vec::new() }));
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
            if let Some(Object { kind: Kind::Epoll(epoll), .. }) = self.object(epoll) {
                epoll.members.remove(&number);
            }
        }
        if !last {
            return;
        }
        match self.objects[id as usize].take().map(|object| object.kind) {
            Some(Kind::Epoll(_)) => self.epolls.retain(|&epoll| epoll != id),
            Some(Kind::Socket(socket)) => self.forget(socket.name.as_ref(), id),
            Some(Kind::Listener(listener)) => {
                self.forget(Some(&listener.name), id);
                for waiting in listener.backlog {
                    if let Some(peer) = self.stream(waiting).map(|stream| stream.peer) {
                        self.objects[waiting as usize] = None;
                        self.reset(peer);
                    }
                }
            }
            Some(Kind::Stream(stream)) => {
                self.forget(Some(&stream.local), id);
                let unread = stream.unread() > 0;
                match stream.state {
                    State::Broken => {}
                    State::Connected if stream.lingers || unread => self.reset(stream.peer),
                    State::Connected if stream.write_shut => {}
                    State::Connected => self.end(stream.peer),
                    State::Connecting => self.reset(stream.peer),
                }
            }
            None => unreachable!("looked up above"),
        }
    }

    fn forget(&mut self, name: Option<&Name>, id: Id) {
        if let Some(name) = name
            && let Some(ids) = self.names.get_mut(name)
        {
            ids.retain(|&other| other != id);
            if ids.is_empty() {
                self.names.remove(name);
            }
        }
    }

    pub(crate) fn duplicate(&mut self, fd: RawFd) -> Result<RawFd> {
        let id = self.id(fd)?;
        self.has_descriptor_left()?;
        Ok(self.describe(id))
    }

    /// Whether a call is interrupted before it has done anything.
    pub(crate) fn interrupt(&mut self) -> Result<()> {
        if self.random.happens(self.conditions.interrupted) { Err(Errno::INTR) } else { Ok(()) }
    }

    // Files: they are real, but the disk may be slow, and may fail.

    /// How long a call that may block takes.
    pub(crate) fn disk_delay(&mut self) -> Duration {
        let range = self.conditions.disk_delay.clone();
        self.drawn(range)
    }

    /// How many bytes of a file a call may transfer.
    pub(crate) fn disk(&mut self) -> Result<usize> {
        if self.random.happens(self.conditions.disk_error) {
            return Err(Errno::IO);
        }
        let short = self.random.happens(self.conditions.disk_short);
        Ok(if short { 1 + self.random.below(4096) as usize } else { usize::MAX })
    }

    /// Whether what is asked of a file is in memory.
    pub(crate) fn is_cached(&mut self) -> bool {
        !self.random.happens(self.conditions.disk_cold)
    }

    // Sockets.

    pub(crate) fn socket(&mut self, family: AddressFamily) -> Result<RawFd> {
        self.has_descriptor_left()?;
        let socket = Socket { family, name: None, shares_port: false, lingers: false };
        let id = self.add(Kind::Socket(socket));
        Ok(self.describe(id))
    }

    pub(crate) fn socket_pair(&mut self) -> Result<(RawFd, RawFd)> {
        self.has_descriptor_left()?;
        let (one, other) = self.connect_pair(Name::Unnamed, Name::Unnamed, State::Connected);
        let (one, other) = (self.describe(one), self.describe(other));
        if self.open > self.conditions.descriptors_max {
            self.close(one);
            self.close(other);
            return Err(Errno::MFILE);
        }
        Ok((one, other))
    }

    /// Two streams that are each other's peers.
    fn connect_pair(&mut self, local: Name, remote: Name, state: State) -> (Id, Id) {
        let first = self.objects.len() as Id;
        let one = Stream::new(local.clone(), remote.clone(), first + 1, state, self.window());
        let other = Stream::new(remote, local, first, State::Connected, self.window());
        (self.add(Kind::Stream(Box::new(one))), self.add(Kind::Stream(Box::new(other))))
    }

    fn window(&mut self) -> usize {
        let Range { start, end } = self.conditions.window;
        start.max(1) + self.random.below((end - start).max(1) as u64) as usize
    }

    pub(crate) fn set_option(&mut self, fd: RawFd, option: SocketOption) -> Result<()> {
        let id = self.id(fd)?;
        match (&mut self.object(id).expect("a descriptor's object is there").kind, option) {
            (Kind::Epoll(_), _) => return Err(Errno::NOTSOCK),
            (Kind::Socket(socket), SocketOption::ReusePort(yes)) => socket.shares_port = yes,
            (Kind::Socket(socket), SocketOption::Linger(time)) => {
                socket.lingers = time == Some(Duration::ZERO);
            }
            (Kind::Stream(stream), SocketOption::Linger(time)) => {
                stream.lingers = time == Some(Duration::ZERO);
            }
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn bind(&mut self, fd: RawFd, address: &SocketAddrAny) -> Result<()> {
        let id = self.id(fd)?;
        let name = self.named(Name::of(address)?);
        let Some(Object { kind: Kind::Socket(socket), .. }) = self.object(id) else {
            return Err(Errno::INVAL);
        };
        if socket.name.is_some() {
            return Err(Errno::INVAL);
        }
        let shares = socket.shares_port;
        let others = self.names.get(&name).cloned().unwrap_or_default();
        let all_share = others.iter().all(|&other| match &self.objects[other as usize] {
            Some(Object { kind: Kind::Listener(listener), .. }) => listener.shares_port,
            Some(Object { kind: Kind::Socket(socket), .. }) => socket.shares_port,
            _ => false,
        });
        if !(others.is_empty() || shares && all_share) {
            return Err(Errno::ADDRINUSE);
        }
        self.names.entry(name.clone()).or_default().push(id);
        if let Some(Object { kind: Kind::Socket(socket), .. }) = self.object(id) {
            socket.name = Some(name);
        }
        Ok(())
    }

    /// A name with a port, if it had none.
    fn named(&mut self, name: Name) -> Name {
        match name {
            Name::Internet(address) if address.port() == 0 => {
                self.next_port = self.next_port.checked_add(1).unwrap_or(32_768);
                Name::Internet(SocketAddr::new(address.ip(), self.next_port))
            }
            name => name,
        }
    }

    pub(crate) fn listen(&mut self, fd: RawFd, backlog: i32) -> Result<()> {
        let id = self.id(fd)?;
        let object = self.object(id).expect("a descriptor's object is there");
        let Kind::Socket(socket) = &object.kind else { return Err(Errno::INVAL) };
        let (name, shares_port) = (socket.name.clone().ok_or(Errno::INVAL)?, socket.shares_port);
        let backlog_max = backlog.max(0) as usize + 1;
        object.kind = Kind::Listener(Listener { name, backlog: VecDeque::new(), backlog_max, shares_port });
        Ok(())
    }

    pub(crate) fn accept(&mut self, fd: RawFd) -> Result<(RawFd, Option<SocketAddrAny>)> {
        let id = self.id(fd)?;
        let Some(Object { kind: Kind::Listener(listener), .. }) = self.object(id) else {
            return Err(Errno::INVAL);
        };
        let Some(&next) = listener.backlog.front() else { return Err(Errno::AGAIN) };
        self.has_descriptor_left()?;
        let fails = self.random.happens(self.conditions.accept_fails);
        let broken = fails && self.random.below(2) == 0;
        if fails && !broken {
            const FULL: [Errno; 4] = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
            return Err(FULL[self.random.below(4) as usize]);
        }
        if let Some(Object { kind: Kind::Listener(listener), .. }) = self.object(id) {
            listener.backlog.pop_front();
        }
        if broken {
            let peer = self.stream(next).map(|stream| stream.peer);
            self.objects[next as usize] = None;
            peer.into_iter().for_each(|peer| self.reset(peer));
            return Err(Errno::CONNABORTED);
        }
        let peer = self.stream(next).expect("a backlog is of streams").remote.address();
        Ok((self.describe(next), peer))
    }

    /// Who listens at an address: what is bound to it, or to any address with its port.
    fn listener(&mut self, name: &Name) -> Option<Id> {
        let any = match name {
            Name::Internet(address) => {
                let port = address.port();
                let v4 = Name::Internet((Ipv4Addr::UNSPECIFIED, port).into());
                let v6 = Name::Internet((Ipv6Addr::UNSPECIFIED, port).into());
                if address.is_ipv4() { vec![v4, v6] } else { vec![v6] }
            }
            _ => Vec::new(),
        };
        let found: Vec<Id> = [name.clone()]
            .iter()
            .chain(&any)
            .filter_map(|name| self.names.get(name))
            .flatten()
            .copied()
            .filter(|&id| matches!(&self.objects[id as usize], Some(Object { kind: Kind::Listener(_), .. })))
            .collect();
        match found.len() {
            0 => None,
            many => Some(found[self.random.below(many as u64) as usize]),
        }
    }

    /// Whether a listener took a new connection into its backlog.
    fn enqueue(&mut self, listener: Id, stream: Id) -> bool {
        let Some(Object { kind: Kind::Listener(queue), .. }) = self.object(listener) else { return false };
        if queue.backlog.len() >= queue.backlog_max {
            return false;
        }
        queue.backlog.push_back(stream);
        self.edge(listener);
        true
    }

    pub(crate) fn connect(&mut self, fd: RawFd, address: &SocketAddrAny) -> Result<()> {
        let id = self.id(fd)?;
        let remote = Name::of(address)?;
        let window = self.window();
        let Some(Object { kind: Kind::Socket(socket), .. }) = self.object(id) else {
            return Err(match self.stream(id).map(|stream| stream.state) {
                Some(State::Connecting) => Errno::ALREADY,
                Some(_) => Errno::ISCONN,
                None => Errno::INVAL,
            });
        };
        let (family, bound, lingers) = (socket.family, socket.name.clone(), socket.lingers);
        if family == AddressFamily::UNIX {
            let listener = self.listener(&remote).ok_or(Errno::CONNREFUSED)?;
            let server = Stream::new(remote.clone(), Name::Unnamed, id, State::Connected, window);
            let server = self.add(Kind::Stream(Box::new(server)));
            if !self.enqueue(listener, server) {
                self.objects[server as usize] = None;
                return Err(Errno::AGAIN);
            }
            let window = self.window();
            let stream = Stream::new(Name::Unnamed, remote, server, State::Connected, window);
            self.object(id).expect("as above").kind = Kind::Stream(Box::new(stream));
            return Ok(());
        }
        let host = if family == AddressFamily::INET {
            IpAddr::V4(Ipv4Addr::LOCALHOST)
        } else {
            IpAddr::V6(Ipv6Addr::LOCALHOST)
        };
        let local = bound.unwrap_or_else(|| self.named(Name::Internet(SocketAddr::new(host, 0))));
        let mut stream = Stream::new(local, remote, Id::MAX, State::Connecting, window);
        stream.lingers = lingers;
        self.object(id).expect("as above").kind = Kind::Stream(Box::new(stream));
        self.later(Happening::Knock { from: id, tries: 1 });
        Err(Errno::INPROGRESS)
    }

    pub(crate) fn socket_error(&mut self, fd: RawFd) -> Result<Result<()>> {
        let id = self.id(fd)?;
        let error = self.stream(id).and_then(|stream| stream.error.take());
        Ok(error.map_or(Ok(()), Err))
    }

    pub(crate) fn local_address(&mut self, fd: RawFd) -> Result<SocketAddrAny> {
        let id = self.id(fd)?;
        let name = match &self.object(id).expect("a descriptor's object is there").kind {
            Kind::Epoll(_) => return Err(Errno::NOTSOCK),
            Kind::Socket(socket) => socket.name.clone().unwrap_or(Name::Unnamed),
            Kind::Listener(listener) => listener.name.clone(),
            Kind::Stream(stream) => stream.local.clone(),
        };
        name.address().ok_or(Errno::INVAL)
    }

    pub(crate) fn peer_address(&mut self, fd: RawFd) -> Result<Option<SocketAddrAny>> {
        let (_, stream) = self.stream_at(fd)?;
        match stream.state {
            State::Connected => Ok(stream.remote.address()),
            _ => Err(Errno::NOTCONN),
        }
    }

    pub(crate) fn recv(&mut self, fd: RawFd, room: usize) -> Result<Vec<u8>> {
        let (id, stream) = self.stream_at(fd)?;
        if stream.unread() == 0 || room == 0 {
            return match stream.error.take() {
                Some(error) => Err(error),
                None if stream.state == State::Connecting => Err(Errno::NOTCONN),
                None if stream.ended || stream.read_shut || stream.state == State::Broken || room == 0 => {
                    Ok(Vec::new())
                }
                None => Err(Errno::AGAIN),
            };
        }
        let bytes = stream.take(room);
        let peer = stream.peer;
        self.note(u64::from(id) << 32 | bytes.len() as u64);
        if self.stream(peer).is_some_and(|sender| sender.wants_room && !sender.room_comes) {
            self.room_comes(peer);
        }
        Ok(bytes)
    }

    /// There will be room for a sender, when it hears of it.
    fn room_comes(&mut self, sender: Id) {
        if let Some(stream) = self.stream(sender) {
            stream.room_comes = true;
        }
        self.later(Happening::Room { to: sender });
    }

    pub(crate) fn send(&mut self, fd: RawFd, bytes: &[u8]) -> Result<usize> {
        let (id, stream) = self.stream_at(fd)?;
        if let Some(error) = stream.error.take() {
            return Err(error);
        }
        match stream.state {
            State::Connecting => return Err(Errno::AGAIN),
            State::Broken => return Err(Errno::PIPE),
            State::Connected if stream.write_shut => return Err(Errno::PIPE),
            State::Connected => {}
        }
        if bytes.is_empty() {
            return Ok(0);
        }
        let (peer, full) = (stream.peer, stream.full);
        // To a peer that is gone everything can be sent, once; the answer is a reset.
        let room = self.stream(peer).map_or(usize::MAX, |peer| peer.room());
        let mut sent = if full { 0 } else { bytes.len().min(room) };
        if sent > 1 && self.random.happens(self.conditions.short_write) {
            sent = 1 + self.random.below(sent as u64 - 1) as usize;
            self.stream(id).expect("as above").full = true;
            self.room_comes(id);
        }
        if sent < bytes.len() {
            self.stream(id).expect("as above").wants_room = true;
        }
        if sent == 0 {
            return Err(Errno::AGAIN);
        }
        self.note(u64::from(id) << 32 | sent as u64 | 1 << 31);
        let mut rest = &bytes[..sent];
        while !rest.is_empty() {
            let Range { start, end } = self.conditions.segment;
            let length = start.max(1) + self.random.below((end - start).max(1) as u64) as usize;
            let (segment, others) = rest.split_at(length.min(rest.len()));
            rest = others;
            let at = self.arrival(peer, segment.len());
            let what = Happening::Segment { to: peer, from: id, bytes: segment.to_vec() };
            self.enter(at, what);
        }
        Ok(sent)
    }

    pub(crate) fn shutdown(&mut self, fd: RawFd, how: Shutdown) -> Result<()> {
        let (id, stream) = self.stream_at(fd)?;
        if stream.state != State::Connected {
            return Err(Errno::NOTCONN);
        }
        let peer = stream.peer;
        if matches!(how, Shutdown::Read | Shutdown::Both) {
            stream.read_shut = true;
        }
        let writes = matches!(how, Shutdown::Write | Shutdown::Both);
        if writes && !mem::replace(&mut stream.write_shut, true) {
            self.end(peer);
        }
        self.edge(id);
        Ok(())
    }

    // The network.

    fn drawn(&mut self, range: Range<Duration>) -> Duration {
        let span = range.end.saturating_sub(range.start).as_nanos() as u64;
        range.start + Duration::from_nanos(self.random.below(span.max(1)))
    }

    fn enter(&mut self, at: Time, what: Happening) {
        self.entries += 1;
        self.calendar.push(Reverse(Entry { at, number: self.entries, what }));
    }

    fn later(&mut self, what: Happening) {
        let range = self.conditions.delay.clone();
        let at = Time::now() + self.drawn(range);
        self.enter(at, what);
    }

    /// When what is sent now arrives: not before what was sent before.
    fn arrival(&mut self, to: Id, bytes: usize) -> Time {
        let range = self.conditions.delay.clone();
        let mut at = Time::now() + self.drawn(range);
        let stalls = self.random.happens(self.conditions.stalled);
        let stall = if stalls {
            self.drawn(Duration::from_secs(1)..Duration::from_secs(120))
        } else {
            Duration::ZERO
        };
        if let Some(stream) = self.stream(to) {
            stream.stalled = stream.stalled.max(if stalls { at + stall } else { Time::default() });
            at = at.max(stream.arrives).max(stream.stalled);
            stream.arrives = at;
            stream.on_the_way += bytes;
        }
        at
    }

    /// Sends a stream the end of what it can read.
    fn end(&mut self, to: Id) {
        let at = self.arrival(to, 0);
        self.enter(at, Happening::End { to });
    }

    fn reset(&mut self, to: Id) {
        let at = self.arrival(to, 0);
        self.enter(at, Happening::Reset { to });
    }

    /// Something happens.
    fn happen(&mut self, what: Happening) {
        match what {
            Happening::Knock { from, tries } => self.knock(from, tries),
            Happening::Connected { to } => {
                self.note(u64::from(to) | 1 << 40);
                if let Some(stream) = self.stream(to)
                    && stream.state == State::Connecting
                {
                    stream.state = State::Connected;
                    self.edge(to);
                }
            }
            Happening::Refused { to, errno } => self.break_off(to, errno),
            Happening::Segment { to, from, bytes } => {
                self.note(u64::from(to) << 32 | bytes.len() as u64 | 3 << 30);
                let Some(stream) = self.stream(to) else { return self.reset(from) };
                stream.on_the_way -= bytes.len();
                if stream.state == State::Connected {
                    stream.arrived.extend_from_slice(&bytes);
                    self.edge(to);
                }
            }
            Happening::End { to } => {
                self.note(u64::from(to) | 2 << 40);
                if let Some(stream) = self.stream(to)
                    && stream.state == State::Connected
                {
                    stream.ended = true;
                    self.edge(to);
                }
            }
            Happening::Reset { to } => self.break_off(to, Errno::CONNRESET),
            Happening::Room { to } => {
                let Some(stream) = self.stream(to) else { return };
                stream.full = false;
                stream.room_comes = false;
                let (peer, wanted) = (stream.peer, stream.wants_room);
                let room = self.stream(peer).map_or(usize::MAX, |peer| peer.room());
                if wanted && room > 0 {
                    self.stream(to).expect("as above").wants_room = false;
                    self.edge(to);
                }
            }
        }
    }

    fn break_off(&mut self, id: Id, errno: Errno) {
        self.note(u64::from(id) | 3 << 40);
        if let Some(stream) = self.stream(id)
            && stream.state != State::Broken
        {
            // An end that was read leaves nothing to be told but that writing is over.
            stream.error = Some(errno);
            stream.state = State::Broken;
            self.edge(id);
        }
    }

    /// A client's wish to be connected arrives.
    fn knock(&mut self, from: Id, tries: u32) {
        let window = self.window();
        let Some(client) = self.stream(from) else { return };
        let (client_name, server_name) = (client.local.clone(), client.remote.clone());
        let refused = self.random.happens(self.conditions.refused);
        let Some(listener) = self.listener(&server_name).filter(|_| !refused) else {
            return self.later(Happening::Refused { to: from, errno: Errno::CONNREFUSED });
        };
        let server = Stream::new(server_name, client_name, from, State::Connected, window);
        let server = self.add(Kind::Stream(Box::new(server)));
        if !self.enqueue(listener, server) {
            self.objects[server as usize] = None;
            let (at, what) = match tries < KNOCKS_MAX {
                true => (KNOCK_AGAIN * (1 << (tries - 1)), Happening::Knock { from, tries: tries + 1 }),
                false => (KNOCK_AGAIN, Happening::Refused { to: from, errno: Errno::TIMEDOUT }),
            };
            return self.enter(Time::now() + at, what);
        }
        self.stream(from).expect("as above").peer = server;
        let at = self.arrival(from, 0);
        self.enter(at, Happening::Connected { to: from });
        if self.random.happens(self.conditions.reset) {
            let range = Duration::ZERO..self.conditions.delay.end * 20;
            for to in [from, server] {
                let at = Time::now() + self.drawn(range.clone());
                self.enter(at, Happening::Reset { to });
            }
        }
    }

    // Readiness.

    /// Something has become true of an object: its descriptors are to be reported.
    fn edge(&mut self, id: Id) {
        let Some(object) = self.object(id) else { return };
        let numbers = object.numbers.clone();
        for epoll in self.epolls.clone() {
            if let Some(Object { kind: Kind::Epoll(epoll), .. }) = self.object(epoll) {
                numbers.iter().for_each(|&number| epoll.edge(number));
            }
        }
    }

    /// What is true of a descriptor.
    fn state(&mut self, number: usize) -> EventFlags {
        let Some(id) = self.descriptors.get(number - NUMBER_MIN).copied().flatten() else {
            return EventFlags::empty();
        };
        let has_room = match self.stream(id) {
            Some(stream) if stream.full => false,
            Some(stream) => {
                let peer = stream.peer;
                self.stream(peer).is_none_or(|peer| peer.room() > 0)
            }
            None => false,
        };
        match self.object(id).map(|object| &object.kind) {
            Some(Kind::Listener(listener)) if !listener.backlog.is_empty() => EventFlags::IN,
            Some(Kind::Stream(stream)) => stream.flags(has_room),
            _ => EventFlags::empty(),
        }
    }

    pub(crate) fn epoll_create(&mut self) -> Result<RawFd> {
        self.has_descriptor_left()?;
        let id = self.add(Kind::Epoll(Epoll::default()));
        self.epolls.push(id);
        Ok(self.describe(id))
    }

    fn epoll(&mut self, set: RawFd) -> Result<&mut Epoll> {
        let id = self.id(set)?;
        match self.object(id) {
            Some(Object { kind: Kind::Epoll(epoll), .. }) => Ok(epoll),
            _ => Err(Errno::INVAL),
        }
    }

    /// A real descriptor is never ready here.
    pub(crate) fn epoll_add(&mut self, set: RawFd, fd: RawFd, data: u64, interest: EventFlags) -> Result<()> {
        let Some(number) = number(fd) else { return Ok(()) };
        self.id(fd)?;
        let is_ready = self.state(number).intersects(interest | EventFlags::HUP | EventFlags::ERR);
        let epoll = self.epoll(set)?;
        if epoll.members.contains_key(&number) {
            return Err(Errno::EXIST);
        }
        epoll.members.insert(number, Member { data, interest, queued: false });
        if is_ready {
            epoll.edge(number);
        }
        Ok(())
    }

    pub(crate) fn epoll_delete(&mut self, set: RawFd, fd: RawFd) -> Result<()> {
        let Some(number) = number(fd) else { return Ok(()) };
        self.epoll(set)?.members.remove(&number).map(|_| ()).ok_or(Errno::NOENT)
    }

    /// Moves the clock on until something is to be reported, or for `timeout`; how many events there are.
    ///
    /// # Errors
    /// `DEADLK` if that would be for ever.
    pub(crate) fn epoll_wait(
        &mut self,
        set: RawFd,
        events: &mut [MaybeUninit<Event>],
        timeout: Option<Duration>,
    ) -> Result<usize> {
        let limit = timeout.map(|timeout| Time::now() + timeout);
        loop {
            while let Some(Reverse(next)) = self.calendar.peek()
                && next.at <= Time::now()
            {
                let Some(Reverse(entry)) = self.calendar.pop() else { break };
                self.happen(entry.what);
            }
            let reported = self.report(set, events)?;
            if reported > 0 || limit.is_some_and(|limit| limit <= Time::now()) {
                return Ok(reported);
            }
            let next = self.calendar.peek().map(|Reverse(entry)| entry.at);
            match next.into_iter().chain(limit).min() {
                Some(until) => VirtualClock::advance(until),
                None => return Err(Errno::DEADLK),
            }
        }
    }

    fn report(&mut self, set: RawFd, events: &mut [MaybeUninit<Event>]) -> Result<usize> {
        let mut reported = 0;
        while reported < events.len() {
            let Some(number) = self.epoll(set)?.edges.pop_front() else { break };
            let Some(member) = self.epoll(set)?.members.get_mut(&number) else { continue };
            member.queued = false;
            let (data, interest) = (member.data, member.interest);
            let flags = self.state(number) & (interest | EventFlags::HUP | EventFlags::ERR);
            if !flags.is_empty() {
                events[reported].write(Event { flags, data: EventData::new_u64(data) });
                reported += 1;
            }
        }
        Ok(reported)
    }
}

impl Epoll {
    fn edge(&mut self, number: usize) {
        if let Some(member) = self.members.get_mut(&number)
            && !mem::replace(&mut member.queued, true)
        {
            self.edges.push_back(number);
        }
    }
}

impl Stream {
    fn new(local: Name, remote: Name, peer: Id, state: State, window: usize) -> Stream {
        Stream {
            local,
            remote,
            peer,
            state,
            arrived: Vec::new(),
            read: 0,
            window,
            on_the_way: 0,
            arrives: Time::default(),
            stalled: Time::default(),
            ended: false,
            read_shut: false,
            write_shut: false,
            error: None,
            wants_room: false,
            full: false,
            room_comes: false,
            lingers: false,
        }
    }

    /// How much may be sent to it.
    fn room(&self) -> usize {
        self.window.saturating_sub(self.unread() + self.on_the_way)
    }

    fn unread(&self) -> usize {
        self.arrived.len() - self.read
    }

    fn take(&mut self, most: usize) -> Vec<u8> {
        let taken = self.arrived[self.read..][..most.min(self.unread())].to_vec();
        self.read += taken.len();
        if self.read == self.arrived.len() {
            self.arrived.clear();
            self.read = 0;
        }
        taken
    }

    fn flags(&self, has_room: bool) -> EventFlags {
        match self.state {
            State::Connecting => EventFlags::empty(),
            State::Broken => {
                let error = if self.error.is_some() { EventFlags::ERR } else { EventFlags::empty() };
                EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::HUP | error
            }
            State::Connected => {
                let mut flags = EventFlags::empty();
                let ended = self.ended || self.read_shut;
                flags.set(EventFlags::IN, ended || self.unread() > 0);
                flags.set(EventFlags::RDHUP, ended);
                flags.set(EventFlags::OUT, has_room || self.write_shut);
                flags.set(EventFlags::HUP, ended && self.write_shut);
                flags
            }
        }
    }
}

impl Name {
    fn of(address: &SocketAddrAny) -> Result<Name> {
        if let Ok(address) = SocketAddr::try_from(address.clone()) {
            return Ok(Name::Internet(address));
        }
        let unix = SocketAddrUnix::try_from(address.clone()).map_err(|_| Errno::AFNOSUPPORT)?;
        Ok(unix.path().map_or(Name::Unnamed, |path| Name::Path(path.to_bytes().to_vec())))
    }

    fn address(&self) -> Option<SocketAddrAny> {
        match self {
            Name::Internet(address) => Some((*address).into()),
            Name::Path(path) => Some(SocketAddrUnix::new(&path[..]).ok()?.into()),
            Name::Unnamed => Some(SocketAddrUnix::new_unnamed().into()),
        }
    }
}
