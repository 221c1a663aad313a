//! Programs under a simulated kernel, in conditions that a test chooses; and system calls that fail.
//!
//! [`World`] runs a program written for the ordinary runtime, as it is, on one OS thread, with a
//! [scheduler](selvedge_sched::Simulation) whose order, a network whose weather and a disk whose moods are drawn from a seed. Time is virtual: an
//! hour of sleep takes none. The same seed is the same run, so that one that fails can be looked at again and again:
//! it is printed, and `SELVEDGE_SEED=n` before the test's command makes [`simulate`] run that one alone.
//!
//! [`Faults`] make chosen system calls fail, on the real kernel or on the simulated one.
//!
//! # What is simulated
//! - TCP and Unix stream sockets of [`net`](crate::net), with backlogs, buffers of limited size, half-closed and reset connections; all
//!   under the same [`EventLoop`], which sees a simulated epoll set, with its edges.
//! - UDP, whose datagrams are lost, come twice, and overtake each other, with groups and reports that nobody was there; Unix datagrams,
//!   which do none of that, with their short queues.
//! - [Files](crate::fs), in a tree in memory that belongs to the world: a [`Disk`], which a test fills before and looks at behind. What is asked
//!   of it takes a while, so that operations overtake each other, fails (`EIO`, `ENOSPC`), and comes to less than was asked for;
//!   an operation that is given up is performed or not. The power may fail: [`Disk::after_crash`] is what is left.
//! - [Pipes](crate::pipe), of limited size, and FIFOs, which a test makes with [`Disk::fifo`].
//! - [Signals](crate::signal), which [`raise`] raises.
//! - Time, of [`Time`](selvedge_core::Time) and everything that waits for it.
//! - Calls on the [blocking pool](crate::pool): they are made in place, after a while.
//! - Name look-up: every name is this host's.
//!
//! The paths of Unix sockets are not names in the tree: they are free again when the socket is closed. Starting a [child
//! process](crate::process) fails with `Unsupported`, and so do the standard streams. Real descriptors are never ready, but a real file
//! can be sent to a simulated socket. Direct access wants buffers at addresses that are multiples of 4096, as
//! [`AlignedBuf`](crate::fs::AlignedBuf) has them; whether another buffer does is nothing that a seed determines.
//!
//! What runs on OS threads of its own is outside the simulation, and must not wake a thread inside; and what a program asks the system for
//! elsewhere than here (`std::fs`, `std::time`) it gets from the real one.

mod disk;
mod faults;
mod kernel;

use crate::EventLoop;
use crate::signal::Signal;
use crate::sys;
pub use crate::sys::Call;
pub use disk::Disk;
pub use faults::{Fault, Faults};
use kernel::Kernel;
use selvedge_core::{ThreadInfo, VirtualClock};
#[doc(no_inline)]
pub use selvedge_sched::{Explorer, Failed, Random, Simulation, VirtualTime, Why, each_seed, simulated};
use std::cell::RefCell;
use std::future::Future;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

/// Runs a program once with each seed, in [good](Conditions::good) conditions; with one seed only if the environment variable
/// `SELVEDGE_SEED` says so. [`World`] says more, and more exactly.
///
/// # Panics
/// If a run fails, or leaves descriptors open, with the seed: a panic in the main thread or in one that nobody joins, a deadlock, a run
/// that does not end.
///
/// # Examples
/// ```
/// use selvedge::spawn_local;
/// use selvedge::net::{TcpListener, TcpStream};
///
/// selvedge::sim::simulate(0..100, || async {
///     let listener = TcpListener::bind("127.0.0.1:80".parse().unwrap()).unwrap();
///     let server = spawn_local(async move {
///         let (stream, _) = listener.accept().await?;
///         stream.write_all(b"hello").await
///     });
///     let client = TcpStream::connect("127.0.0.1:80".parse().unwrap()).await.unwrap();
///     let mut greeting = [0; 5];
///     client.read_exact(&mut greeting).await.unwrap();
///     assert_eq!(&greeting, b"hello");
///     server.await.unwrap().unwrap();
/// });
/// ```
pub fn simulate<F: Future<Output = ()> + 'static>(seeds: Range<u64>, mut main: impl FnMut() -> F) {
    each_seed(seeds, |seed| {
        let ended = World::new(seed).run(main()).unwrap_or_else(|failed| panic!("{failed}"));
        assert_eq!(ended.descriptors, 0, "descriptors are left open");
    });
}

/// What the simulated network and disk are like. What happens by chance does so so many times in a million.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// How long what is sent is under way. Connections overtake each other; bytes of one do not.
    pub delay: Range<Duration>,
    /// How many bytes may be under way or unread in one direction of a connection; drawn for each.
    pub window: Range<usize>,
    /// Of how many bytes the pieces are in which they arrive.
    pub segment: Range<usize>,
    /// How often a write is cut short, because the socket has no more room for a while.
    pub short_write: u32,
    /// How often a call is interrupted by a signal.
    pub interrupted: u32,
    /// How often accepting a connection fails: descriptors or memory have run out, or the peer has broken it off.
    pub accept_fails: u32,
    /// How often a connection is refused.
    pub refused: u32,
    /// How many connections break before their time.
    pub reset: u32,
    /// How often what is sent is lost, and what comes after it waits until it was sent again: for up to two minutes.
    pub stalled: u32,
    /// How often a UDP datagram is lost.
    pub datagram_lost: u32,
    /// How often a UDP datagram comes twice.
    pub datagram_twice: u32,
    /// How long a call takes that may block.
    pub disk_delay: Range<Duration>,
    /// How often a call on files fails: with `EIO`, or, if it takes room on the disk, with `ENOSPC`.
    pub disk_error: u32,
    /// How often reading or writing comes to less than was asked for.
    pub disk_short: u32,
    /// How often what is wanted of a file is not in memory.
    pub disk_cold: u32,
    /// How many bytes the files on the disk may take; beyond that, writing fails with `ENOSPC`.
    pub disk_bytes: u64,
    /// How many descriptors may be open at once.
    pub descriptors_max: usize,
}

impl Conditions {
    /// Nothing fails; what varies is the order of what happens, how long it takes, and in what pieces bytes arrive.
    pub fn good() -> Conditions {
        Conditions {
            delay: Duration::from_micros(10)..Duration::from_millis(2),
            window: 4096..65_536,
            segment: 1..16_384,
            short_write: 0,
            interrupted: 0,
            accept_fails: 0,
            refused: 0,
            reset: 0,
            stalled: 0,
            datagram_lost: 0,
            datagram_twice: 0,
            disk_delay: Duration::ZERO..Duration::from_millis(10),
            disk_error: 0,
            disk_short: 0,
            disk_cold: 100_000,
            disk_bytes: u64::MAX,
            descriptors_max: 10_000,
        }
    }

    /// Everything goes wrong now and then.
    pub fn bad() -> Conditions {
        Conditions {
            delay: Duration::from_micros(10)..Duration::from_millis(100),
            window: 1..20_000,
            segment: 1..4096,
            short_write: 100_000,
            interrupted: 20_000,
            accept_fails: 100_000,
            refused: 20_000,
            reset: 100_000,
            stalled: 2_000,
            datagram_lost: 100_000,
            datagram_twice: 50_000,
            disk_error: 10_000,
            disk_short: 100_000,
            disk_cold: 300_000,
            ..Conditions::good()
        }
    }
}

/// A simulated world for one run of a program.
///
/// # Examples
/// A server that nobody may get a wrong answer from, whatever the network does:
/// ```
/// use selvedge::spawn_local;
/// use selvedge::net::{TcpListener, TcpStream};
/// use selvedge::sim::{Conditions, World};
/// use std::net::SocketAddr;
///
/// async fn ask(server: SocketAddr) -> std::io::Result<[u8; 5]> {
///     let mut answer = [0; 5];
///     TcpStream::connect(server).await?.read_exact(&mut answer).await?;
///     Ok(answer)
/// }
///
/// for seed in 0..100 {
///     let world = World::new(seed).conditions(Conditions::bad());
///     world.run(async {
///         let listener = TcpListener::bind("10.1.1.1:80".parse().unwrap()).unwrap();
///         let address = listener.local_addr();
///         let server = spawn_local(async move {
///             loop {
///                 let (stream, _) = listener.accept().await.unwrap();
///                 spawn_local(async move { stream.write_all(b"hello").await });
///             }
///         });
///         for _ in 0..5 {
///             if let Ok(answer) = ask(address).await {
///                 assert_eq!(&answer, b"hello");
///             }
///         }
///         drop(server);
///     })?;
/// }
/// # Ok::<(), selvedge::sched::Failed>(())
/// ```
#[derive(Clone, Debug)]
pub struct World {
    seed: u64,
    conditions: Conditions,
    order: Simulation,
    disk: Disk,
}

impl World {
    /// A world in [good](Conditions::good) conditions whose threads run in random order, with an empty disk.
    pub fn new(seed: u64) -> World {
        World { seed, conditions: Conditions::good(), order: Simulation::new(seed), disk: Disk::new() }
    }

    /// In other conditions.
    pub fn conditions(self, conditions: Conditions) -> World {
        World { conditions, ..self }
    }

    /// With another scheduler.
    pub fn order(self, order: Simulation) -> World {
        World { order, ..self }
    }

    /// With something on its disk. Each run begins with a copy of it.
    pub fn disk(self, disk: Disk) -> World {
        World { disk, ..self }
    }

    /// Runs a program until its main thread has ended. The threads that are left are cancelled.
    ///
    /// # Errors
    /// A run that came to no good end, with what repeats it.
    ///
    /// # Panics
    /// If this OS thread runs an event loop already, or the process has no descriptors left (it takes one).
    pub fn run<F: Future + 'static>(&self, main: F) -> Result<Ended<F::Output>, Failed> {
        let clock = VirtualClock::install();
        let installed =
            Installed::new(Kernel::new(!self.seed, self.conditions.clone(), self.disk.clone().into_tree()));
        let mut events = EventLoop::new().unwrap_or_else(|error| panic!("an event loop: {error}"));
        let run = self.order.run(&mut events, main);
        drop(events);
        let kernel = installed.end();
        drop(clock);
        let run = run?;
        Ok(Ended {
            output: run.output,
            steps: run.steps,
            time: run.time,
            digest: run.digest ^ kernel.digest(),
            left: run.left,
            descriptors: kernel.left_open(),
            disk: Disk::of(kernel.into_disk()),
        })
    }
}

/// A simulated run that has come to its end.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Ended<T> {
    /// What the main thread returned.
    pub output: T,
    /// How many steps all threads made.
    pub steps: u64,
    /// What time passed for the program.
    pub time: Duration,
    /// A digest of all that happened, in threads, on the network and on the disk. Two runs with the same digest are the same run.
    pub digest: u64,
    /// The threads that were left, and were cancelled.
    pub left: Vec<ThreadInfo>,
    /// How many simulated descriptors were open when all threads were gone: leaked, or part of the output.
    pub descriptors: usize,
    /// The disk as the program has left it. What is on it for good, [`Disk::after_crash`] tells.
    pub disk: Disk,
}

/// Raises a signal in the simulated world of this OS thread: those who have subscribed to it ([`signals`](crate::signal::signals))
/// are told. How many they are; a program without any would have done what the signal does by itself.
///
/// # Panics
/// If there is none, or if the signal cannot be subscribed to.
///
/// # Examples
/// ```
/// use selvedge::spawn_local;
/// use selvedge::signal::{Signal, signals};
/// use selvedge::sim::{raise, simulate};
///
/// simulate(0..10, || async {
///     let mut terminated = signals(&[Signal::TERM]).unwrap();
///     let server = spawn_local(async move { terminated.next().await });
///     assert_eq!(raise(Signal::TERM), 1);
///     assert_eq!(server.await.unwrap().unwrap(), Signal::TERM);
/// });
/// ```
pub fn raise(signal: Signal) -> usize {
    let bit = signal.bit().unwrap_or_else(|| panic!("{signal} cannot be subscribed to"));
    let told = sys::with_simulated(|kernel| Ok(kernel.raise(bit)));
    told.unwrap_or_else(|_| panic!("{signal} is raised in no simulated world"))
}

/// The simulated kernel is that of this OS thread for as long as this lives, also if the run unwinds.
struct Installed {
    kernel: Rc<RefCell<Kernel>>,
}

impl Installed {
    fn new(kernel: Kernel) -> Installed {
        let kernel = Rc::new(RefCell::new(kernel));
        sys::install(kernel.clone());
        Installed { kernel }
    }

    fn end(self) -> Kernel {
        let kernel = self.kernel.clone();
        drop(self);
        let kernel = Rc::into_inner(kernel).expect("the door and `Installed` have dropped theirs");
        kernel.into_inner()
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        sys::uninstall();
    }
}
