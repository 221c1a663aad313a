//! Streams of stacks as descriptors of an OS thread: [`SocketDescriptors`].
//!
//! A program that is written for the kernel's sockets gets a `selvedge_io::net::TcpStream` for a
//! stream of a stack. Its descriptor is a number of [`DescriptorKernel`], which stands beside the
//! real kernel on this OS thread (`selvedge_io::sys::interposed`). The layer of system calls passes
//! the calls on such a descriptor to it. The event loop has the descriptor in its set as it has any
//! other: it registers it once, gets an edge when a state of the stream begins, and takes the edges
//! with the events of the real kernel. So no byte and no event of a stream costs a system call, and
//! no thread stands between the stack and the program.
//!
//! An edge comes from the stack's waker of the stream, an [`EdgeWaker`]: it puts the descriptor
//! into the queue of edges. When the loop takes the edge, the kernel asks for the state of the
//! stream, and registers the waker again in the same step. So what comes after that is a new edge,
//! and what came before is in the state. The waker hears of room in the buffer for writing only
//! after a write that found too little, because each acknowledgement makes room.

use crate::tcp::TcpStream;
use rustix::event::epoll::{Event, EventData, EventFlags};
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, Result};
use rustix::net::{AddressFamily, Shutdown, SocketAddrAny};
use selvedge_io::net;
use selvedge_io::sys::SocketOption;
use selvedge_io::sys::interposed::{Installed, NO_GENERATION, NUMBER_BITS, install_beside, number};
use selvedge_io::sys::kernel::{EpollCalls, KernelCalls, SocketCalls};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, ErrorKind};
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::thread::{self, ThreadId};
use std::time::Duration;

/// The bytes of a file that are sent at a time.
const PIECE: usize = 64 << 10;

/// While a value of this type lives, streams of stacks can be descriptors of its OS thread: sockets
/// of `selvedge_io::net`, for a program that is written for these.
///
/// It is for schedulers that leave threads on their OS thread, as `per_core` does: the stack and
/// all that use the descriptors stay there.
///
/// # Examples
/// ```
/// use selvedge::net;
/// use selvedge::stack::{Loopback, SocketDescriptors, Stack, StackOptions, TcpListener, TcpStream};
///
/// async fn echo(stream: net::TcpStream) -> std::io::Result<()> {
///     let mut word = [0; 5];
///     stream.read_exact(&mut word).await?;
///     stream.write_all(&word).await
/// }
///
/// # fn main() -> Result<(), selvedge::SchedulerError> {
/// selvedge::per_core(1, |_| async {
///     let options = StackOptions::new().address([127, 0, 0, 1].into(), 8).unwrap();
///     let stack = Stack::start(options, Loopback);
///     let listener = TcpListener::bind(&stack, "127.0.0.1:80".parse().unwrap()).unwrap();
///     let descriptors = SocketDescriptors::new().unwrap();
///     let echoing = selvedge::spawn_local(async move {
///         let (stream, _peer) = listener.accept().await?;
///         echo(descriptors.describe(stream)?).await
///     });
///     let stream = TcpStream::connect(&stack, "127.0.0.1:80".parse().unwrap()).await.unwrap();
///     stream.write_all(b"cloth").await.unwrap();
///     let mut word = [0; 5];
///     stream.read_exact(&mut word).await.unwrap();
///     assert_eq!(&word, b"cloth");
///     echoing.await.unwrap().unwrap();
/// })?;
/// # Ok(())
/// # }
/// ```
pub struct SocketDescriptors {
    kernel: Rc<RefCell<DescriptorKernel>>,
    installed: Option<Installed>,
}

impl SocketDescriptors {
    /// From now on the OS thread has such descriptors. A simulated world has its own kernel, and
    /// cannot have them.
    ///
    /// # Errors
    /// If the process has no descriptors left.
    pub fn new() -> io::Result<SocketDescriptors> {
        static GENERATIONS: AtomicU32 = AtomicU32::new(0);
        let kernel = Rc::new(RefCell::new(DescriptorKernel {
            generation: GENERATIONS.fetch_add(1, Ordering::Relaxed) % NO_GENERATION,
            numbers: rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?,
            sockets: Vec::new(),
            edges: Arc::new(EdgeQueue { edges: Mutex::default(), thread: thread::current().id() }),
        }));
        Ok(SocketDescriptors { installed: Some(install_beside(kernel.clone())), kernel })
    }

    /// The stream as a socket of this OS thread. Dropping it drops the stream.
    ///
    /// # Errors
    /// If the process has no descriptors left: each stream takes one number of the kernel's.
    pub fn describe(&self, stream: TcpStream) -> io::Result<net::TcpStream> {
        let peer = stream.peer_addr()?;
        let fd = self.kernel.borrow_mut().add(Rc::new(stream))?;
        Ok(net::TcpStream::of_kernel_beside(fd, peer))
    }
}

impl Drop for SocketDescriptors {
    fn drop(&mut self) {
        let sockets = mem::take(&mut self.kernel.borrow_mut().sockets);
        if sockets.iter().any(Option::is_some) {
            // The empty kernel stays on the OS thread and refuses the descriptors that outlive
            // their streams. They must not come to the real kernel.
            self.installed.take().into_iter().for_each(mem::forget);
        }
        drop(sockets);
    }
}

impl fmt::Debug for SocketDescriptors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SocketDescriptors").finish_non_exhaustive()
    }
}

/// The kernel beside the real one.
struct DescriptorKernel {
    generation: u32,
    /// An open file. Copies of its descriptor keep the numbers.
    numbers: OwnedFd,
    /// The socket of each descriptor, by its number.
    sockets: Vec<Option<Box<DescribedSocket>>>,
    edges: Arc<EdgeQueue>,
}

struct DescribedSocket {
    stream: Rc<TcpStream>,
    /// No other descriptor of the process has its number.
    _number: OwnedFd,
    waker: Waker,
    edge: Arc<EdgeWaker>,
    member: Option<SetMember>,
    /// A write found too little room.
    wants_room: bool,
}

/// What an epoll set has of a descriptor.
#[derive(Clone, Copy)]
struct SetMember {
    set: RawFd,
    data: u64,
    interest: EventFlags,
}

/// The descriptors that have an edge, the oldest first.
struct EdgeQueue {
    edges: Mutex<VecDeque<usize>>,
    thread: ThreadId,
}

/// Puts a descriptor into the queue of edges.
struct EdgeWaker {
    number: usize,
    is_queued: AtomicBool,
    queue: Arc<EdgeQueue>,
}

impl EdgeWaker {
    /// # Panics
    /// On another OS thread: the loop of the descriptors might sleep, and would not hear of it.
    fn put(&self) {
        assert_eq!(thread::current().id(), self.queue.thread, "the stack has left its OS thread");
        // Both happen on this OS thread alone, so the order of the two does not matter.
        if !self.is_queued.swap(true, Ordering::Relaxed) {
            self.queue.edges.lock().unwrap().push_back(self.number);
        }
    }
}

impl Wake for EdgeWaker {
    fn wake(self: Arc<Self>) {
        self.put();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.put();
    }
}

impl DescribedSocket {
    /// The result of a write of `wanted` bytes.
    fn sent(&mut self, sent: io::Result<Option<usize>>, wanted: usize) -> Result<usize> {
        let sent = sent.map_err(errno)?.unwrap_or(0);
        self.wants_room = sent < wanted;
        if sent == 0 && self.wants_room { Err(Errno::AGAIN) } else { Ok(sent) }
    }

    /// The flags of the socket. From now on its waker hears of changes.
    fn state(&self) -> EventFlags {
        let state = self.stream.watch(&self.waker, self.wants_room);
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, state.reads);
        flags.set(EventFlags::RDHUP, state.read_end);
        flags.set(EventFlags::OUT, state.writes);
        flags.set(EventFlags::HUP, state.over);
        flags
    }
}

impl DescriptorKernel {
    fn add(&mut self, stream: Rc<TcpStream>) -> Result<RawFd> {
        let kept = rustix::io::fcntl_dupfd_cloexec(&self.numbers, 0)?;
        let number = kept.as_raw_fd() as usize;
        if number >= 1 << NUMBER_BITS {
            return Err(Errno::MFILE);
        }
        if number >= self.sockets.len() {
            self.sockets.resize_with((number + 1).next_power_of_two(), || None);
        }
        let edge =
            Arc::new(EdgeWaker { number, is_queued: AtomicBool::new(false), queue: self.edges.clone() });
        let (waker, member) = (edge.clone().into(), None);
        let socket = DescribedSocket { stream, _number: kept, waker, edge, member, wants_room: false };
        self.sockets[number] = Some(Box::new(socket));
        Ok((1 << 31 | self.generation << NUMBER_BITS | number as u32) as RawFd)
    }

    /// The socket of a descriptor, if this kernel has made it.
    fn socket_at(&mut self, fd: RawFd) -> Result<&mut DescribedSocket> {
        let number = number(fd).ok_or(Errno::BADF)?;
        if fd as u32 & !(1 << 31) != self.generation << NUMBER_BITS | number as u32 {
            return Err(Errno::BADF);
        }
        self.sockets.get_mut(number).and_then(Option::as_deref_mut).ok_or(Errno::BADF)
    }

    fn set_member(&mut self, set: RawFd, fd: RawFd, data: u64, interest: EventFlags) -> Result<()> {
        let socket = self.socket_at(fd)?;
        socket.member = Some(SetMember { set, data, interest });
        if socket.state().intersects(interest | EventFlags::HUP) {
            socket.edge.put();
        }
        Ok(())
    }
}

impl KernelCalls for DescriptorKernel {
    fn close(&mut self, fd: RawFd) {
        if self.socket_at(fd).is_ok() {
            let number = number(fd).expect("it has a socket");
            // The number is free again when the stream has gone.
            drop(self.sockets[number].take());
        }
    }

    fn duplicate(&mut self, fd: RawFd) -> Result<RawFd> {
        let stream = self.socket_at(fd)?.stream.clone();
        self.add(stream)
    }

    fn interrupt(&mut self) -> Result<()> {
        Ok(())
    }
}

impl SocketCalls for DescriptorKernel {
    fn socket(&mut self, _: AddressFamily) -> Result<RawFd> {
        Err(Errno::OPNOTSUPP)
    }

    fn socket_pair(&mut self) -> Result<(RawFd, RawFd)> {
        Err(Errno::OPNOTSUPP)
    }

    /// What the stack has no such option for is without effect.
    fn set_option(&mut self, fd: RawFd, option: SocketOption) -> Result<()> {
        let socket = self.socket_at(fd)?;
        match option {
            SocketOption::NoDelay(yes) => socket.stream.set_nodelay(yes).map_err(errno),
            _ => Ok(()),
        }
    }

    fn bind(&mut self, _: RawFd, _: &SocketAddrAny) -> Result<()> {
        Err(Errno::INVAL)
    }

    fn listen(&mut self, _: RawFd, _: i32) -> Result<()> {
        Err(Errno::INVAL)
    }

    fn accept(&mut self, _: RawFd) -> Result<(RawFd, Option<SocketAddrAny>)> {
        Err(Errno::INVAL)
    }

    fn connect(&mut self, _: RawFd, _: &SocketAddrAny) -> Result<()> {
        Err(Errno::ISCONN)
    }

    fn socket_error(&mut self, fd: RawFd) -> Result<Result<()>> {
        self.socket_at(fd).map(|_| Ok(()))
    }

    fn local_address(&mut self, fd: RawFd) -> Result<SocketAddrAny> {
        Ok(self.socket_at(fd)?.stream.local_addr().map_err(errno)?.into())
    }

    fn peer_address(&mut self, fd: RawFd) -> Result<Option<SocketAddrAny>> {
        Ok(Some(self.socket_at(fd)?.stream.peer_addr().map_err(errno)?.into()))
    }

    fn recv(&mut self, fd: RawFd, room: usize) -> Result<Vec<u8>> {
        self.socket_at(fd)?.stream.read_now(room).map_err(errno)?.ok_or(Errno::AGAIN)
    }

    fn send(&mut self, fd: RawFd, bytes: &[u8], more: bool) -> Result<usize> {
        let socket = self.socket_at(fd)?;
        let sent = socket.stream.write_now(bytes, more, &socket.waker);
        socket.sent(sent, bytes.len())
    }

    fn send_file(&mut self, fd: RawFd, file: BorrowedFd<'_>, from: u64, count: usize) -> Result<usize> {
        let (socket, count, mut at) = (self.socket_at(fd)?, count.min(PIECE), from);
        let mut is_end = false;
        let sent = socket.stream.fill_now(count, &socket.waker, |free| {
            let read = rustix::io::pread(file, &mut *free, at)?;
            at += read as u64;
            is_end |= read < free.len();
            Ok::<_, Errno>(read)
        })?;
        // A file that ends here has no more for a peer with room.
        let wanted = if is_end { (at - from) as usize } else { count };
        socket.sent(sent, wanted)
    }

    fn unacknowledged(&mut self, fd: RawFd) -> Result<usize> {
        Ok(self.socket_at(fd)?.stream.unacknowledged())
    }

    fn shutdown(&mut self, fd: RawFd, how: Shutdown) -> Result<()> {
        let how = match how {
            Shutdown::Read => std::net::Shutdown::Read,
            Shutdown::Write => std::net::Shutdown::Write,
            Shutdown::Both => std::net::Shutdown::Both,
        };
        self.socket_at(fd)?.stream.shutdown(how).map_err(errno)
    }
}

impl EpollCalls for DescriptorKernel {
    fn epoll_create(&mut self) -> Result<RawFd> {
        Err(Errno::OPNOTSUPP)
    }

    fn epoll_add(&mut self, set: RawFd, fd: RawFd, data: u64, interest: EventFlags) -> Result<()> {
        match self.socket_at(fd)?.member {
            Some(_) => Err(Errno::EXIST),
            None => self.set_member(set, fd, data, interest),
        }
    }

    fn epoll_modify(&mut self, set: RawFd, fd: RawFd, data: u64, interest: EventFlags) -> Result<()> {
        match self.socket_at(fd)?.member {
            Some(_) => self.set_member(set, fd, data, interest),
            None => Err(Errno::NOENT),
        }
    }

    fn epoll_delete(&mut self, _: RawFd, fd: RawFd) -> Result<()> {
        self.socket_at(fd)?.member.take().map(|_| ()).ok_or(Errno::NOENT)
    }

    /// The edges of the descriptors in a set. It never waits.
    fn epoll_wait(&mut self, set: RawFd, room: usize, _: Option<Duration>) -> Result<Vec<Event>> {
        let (mut events, mut of_others) = (Vec::new(), Vec::new());
        while events.len() < room {
            let Some(number) = self.edges.edges.lock().unwrap().pop_front() else { break };
            let Some(socket) = self.sockets.get_mut(number).and_then(Option::as_deref_mut) else { continue };
            if socket.member.is_some_and(|member| member.set != set) {
                of_others.push(number);
                continue;
            }
            socket.edge.is_queued.store(false, Ordering::Relaxed);
            let Some(member) = socket.member else { continue };
            let flags = socket.state() & (member.interest | EventFlags::HUP);
            if !flags.is_empty() {
                events.push(Event { flags, data: EventData::new_u64(member.data) });
            }
        }
        self.edges.edges.lock().unwrap().extend(of_others);
        Ok(events)
    }

    fn has_events(&mut self, set: RawFd) -> bool {
        let is_member = |number: &usize| {
            let socket = self.sockets.get(*number).and_then(Option::as_deref);
            socket.and_then(|socket| socket.member).is_some_and(|member| member.set == set)
        };
        self.edges.edges.lock().unwrap().iter().any(is_member)
    }
}

/// The number of an error of a stream.
fn errno(error: io::Error) -> Errno {
    match error.kind() {
        ErrorKind::ConnectionReset => Errno::CONNRESET,
        ErrorKind::ConnectionRefused => Errno::CONNREFUSED,
        ErrorKind::TimedOut => Errno::TIMEDOUT,
        ErrorKind::BrokenPipe => Errno::PIPE,
        ErrorKind::NotConnected => Errno::NOTCONN,
        _ => Errno::IO,
    }
}
