//! Programs in a simulated world, in conditions that a test chooses; and system calls that fail.
//!
//! [`World`] runs a program that was written for the ordinary runtime, unchanged, on one OS thread.
//! A seed determines everything that the program meets: the order of its threads (the
//! [scheduler](Simulation)), the delays and losses of its network, and the errors of its disk. Time
//! is virtual, so an hour of sleep takes no time. The same seed gives the same run. A run that
//! fails prints its seed, and `SELVEDGE_SEED=n` before the test's command makes [`simulate`] run
//! that seed alone.
//!
//! [`Simulation`] and [`Explorer`] run programs that need no descriptors, with the event source
//! [`VirtualTime`]: in the order that a seed determines, or in every order.
//!
//! [`Faults`] make chosen system calls fail, of the real kernel or of the simulated one.
//!
//! # What is simulated
//! - TCP and Unix stream sockets of [`net`](selvedge_io::net), with backlogs, buffers of limited
//!   size, half-closed connections and reset connections. They work under the ordinary
//!   [`EventLoop`](selvedge_io::EventLoop), which sees a simulated epoll set with its edges.
//! - UDP. Datagrams get lost, come twice, and overtake each other. There are multicast groups, and
//!   reports that no socket received a datagram. Unix datagrams arrive once and in order; their
//!   queues are short.
//! - [Files](selvedge_io::fs), in a tree in memory that belongs to the world: a [`Disk`], which a
//!   test fills before the run and reads after it. An operation takes a while, so operations
//!   overtake each other; it fails (`EIO`, `ENOSPC`) or transfers less than the program asked for.
//!   An operation that is given up is performed or not. The power may fail:
//!   [`Disk::after_crash`] is the disk that is left.
//! - [Pipes](selvedge_io::pipe), of limited size, and FIFOs, which a test makes with
//!   [`Disk::fifo`].
//! - [Signals](selvedge_io::signal), which [`raise`] raises.
//! - Time: [`Time`](selvedge_core::Time) and everything that waits for it.
//! - Calls on the [blocking pool](selvedge_io::pool). The simulation makes them in place, after a
//!   while.
//! - Name look-up: every name is a name of this host.
//!
//! The paths of Unix sockets are not names in the file tree: a path is free again when its socket
//! is closed. Starting a [child process](selvedge_io::process) fails with `Unsupported`, and so do
//! the standard streams. Real descriptors are never ready, but a program can send a real file to a
//! simulated socket. Direct access needs buffers at addresses that are multiples of 4096, as
//! [`AlignedBuf`](selvedge_io::fs::AlignedBuf) has them; a seed does not determine whether another
//! buffer is aligned.
//!
//! Other OS threads are outside the simulation, and must not wake a thread inside. A request that a
//! program makes to the system in another way than through Selvedge (`std::fs`, `std::time`) goes
//! to the real system.

// # For readers of the source
//
// `scheduler.rs` is the deterministic scheduler, which needs nothing but `core`. `kernel.rs`
// answers the calls of `io`'s system-call layer, so a program is simulated with its event loop.
// `world.rs` puts the two together with a virtual clock for one run. Nothing happens by itself: the
// network's events stand in a calendar, and `epoll_wait` moves the clock to the next of them.
//
// The simulated disk (`disk/`) keeps two states: the files as programs see them, and the files as
// they would be after a power failure. For the second it keeps the pages of a file as they were
// when it was synced (`content.rs`), the names in a directory, and the changes of names that are
// not on the disk yet, in their order (`journal.rs`). A crash draws from these by the rules that
// the documentation of `sim::Disk` promises.
//
// Invariant: the seed and the program alone determine a run. There is no other clock, no order of a
// `HashMap`, and no unsafe code.

#![forbid(unsafe_code)]
#![doc(test(attr(deny(warnings), allow(dead_code))))]

mod conditions;
mod digest;
mod disk;
mod kernel;
mod scheduler;
mod world;

pub use conditions::Conditions;
pub use disk::Disk;
pub use scheduler::{
    Explored, Explorer, Random, Run, Simulation, SimulationError, VirtualTime, Why, each_seed, simulated,
};
#[doc(inline)]
pub use selvedge_io::faults::{Call, Fault, Faults};
pub use world::{Ended, World, raise, simulate};
