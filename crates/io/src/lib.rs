//! Event loops, and what threads see of them: sockets, pipes, files, time, child processes,
//! signals.
//!
//! # For threads
//!
//! [`net`] has TCP, UDP and Unix sockets, [`pipe`] pipes and FIFOs, [`stdio`] the standard streams,
//! [`fs`] files, [`time`] sleeping and time-outs, [`process`] child processes, [`signal`] signals.
//! [`blocking`] runs a call that may block for long on an OS thread of a pool, and [`NonBlocking`]
//! lets threads wait for any other descriptor. All of it works in threads of any scheduler that is
//! driven with an [`EventLoop`]. It also works in futures on foreign executors (tokio,
//! `futures::executor`), where an OS thread in the background serves it.
//!
//! # For schedulers
//!
//! [`EventLoop`] is a scheduler's event source. The scheduler passes it the trace nodes that it
//! takes, and polls it when no thread is ready. [`wheel`] is the loop's timer wheel; it can be used
//! with any clock.
//!
//! # Adding an event source
//!
//! The paper's recipe [LZ07 §4.2] has three steps, and the five sources here follow it. The head of
//! each module names the part of the module for each step.
//!
//! | step | readiness and time | disk | blocking pool | signals |
//! |---|---|---|---|---|
//! | | [`event_loop`](EventLoop) | [`fs`] | [`pool`] | [`signal`] |
//! | 1. a system call, and a node of the trace for it | `wait`: [`Trace::Wait`]; `sleep`: [`Trace::Sleep`] | [`File::read_at`](fs::File::read_at) and its like: [`Trace::Blocked`] behind a waker | [`blocking`]: [`Trace::Blocked`] behind a waker | [`Signals::next`](signal::Signals::next): `Trace::Wait` for its eventfd |
//! | 2. interpret the node: register the thread | in the descriptor's entry; in the wheel | in a slot of the loop's queue, with all that the kernel needs | in the pool's queue, with a cell for the answer | in a table of subscriptions, and the kernel's signal handlers |
//! | 3. an event loop that gives the thread back | `epoll_wait` and the wheel's expiry | the ring's completions, which the same loop takes in | the OS threads of the pool | the handler, which writes to the eventfd |
//!
//! There are two ways to add a sixth source. A source that has its own loop elsewhere (an OS
//! thread, a library's callbacks) needs no new node: its call hands over a
//! [`Waker`](std::task::Waker) with [`selvedge_core::park`] or in a future of its own, as `pool`
//! does. The other kind is a source that the scheduler sees as data. It makes its call a
//! [`selvedge_core::Syscall`] with the node [`Trace::Call`], and provides an
//! [`Events`](selvedge_core::Events) of its own that takes these nodes and passes all others to the
//! event loop inside it.
//!
//! [`Trace::Wait`]: selvedge_core::Trace::Wait
//! [`Trace::Sleep`]: selvedge_core::Trace::Sleep
//! [`Trace::Blocked`]: selvedge_core::Trace::Blocked
//! [`Trace::Call`]: selvedge_core::Trace::Call
//!
//! # What it costs
//!
//! Each loop in which a descriptor's threads wait registers the descriptor with epoll once, and
//! takes it out when the threads have left. After a socket read that came back short, the next read
//! waits before it tries, so a request on a kept-alive connection is one `recv` and one `send`. A
//! wait allocates nothing, and a deadline that only moves on sets no timer. Giving up a sleep costs
//! about an atomic swap, on whatever OS thread.

// # For readers of the source
//
// Read `reactor/mod.rs` (which loop serves which descriptor), then `timer/mod.rs`, `fs/mod.rs`,
// `pool/mod.rs` and `signal.rs`.
//
// Descriptors: a loop registers a descriptor, edge-triggered, when a thread waits for it there.
// Each loop decides alone, on its own OS thread, when it registers a descriptor and when it takes
// it out, as edges come for which no thread waits. The head of `reactor/mod.rs` has the argument
// that no edge is lost, and `reactor/exclusive.rs` the exception: listeners with several shares. No
// wait performs an atomic read-modify-write. A short write means "drained", so the next call waits
// first; a short read means it where `shorts.rs` proves it. There is no level-triggered and no
// one-shot registration. While the OS thread of a loop is in a long step or sleeps, another one
// takes the events of its set to its table, and wakes what may run elsewhere (`Relief`, in
// `reactor/event_loop.rs`; the table is behind `core`'s biased lock). A loop without work looks
// again for a moment before it sleeps, where that has paid lately (`reactor/busy_poll.rs`).
//
// System calls: the calls that threads ask for go through `sys.rs`. Outside of it are the eventfds
// that wake a loop (`reactor/unparker.rs`, and the handler in `signal.rs`), the kind of a standard
// stream (`stdio.rs`), and the question whether a child process has ended (`process.rs`). The layer
// has one interposition point (`sys/interposed.rs`): a word that is 0 unless something stands
// before the kernel. That may be a simulated kernel, a kernel beside the real one, which has the
// calls on its own descriptors, faults (`faults.rs`), or a count of the calls (`calls.rs`).
//
// Timers: `timer/levels.rs` says where a tick belongs, for both wheels. Timers by the million lie
// in `timer/sleepers.rs`. Nothing is taken out of it by name: a sleep that is given up sets a flag
// that it shares with the loop, and the loop clears such sleeps away in proportion.
//
// Child processes: a `Command` starts a child by the standard library, which waits until the kernel
// has loaded the program. A `Launcher` (`process/launcher.rs`) and a `Launch` (`process/launch.rs`)
// do not wait: until then the child runs some 30 instructions in the memory of this process, and
// `sys/launch.rs` has the argument that this is sound.
//
// Disk: an operation is a slot in the queue of an event loop (`fs/queue.rs`), first come, first
// served. The loop keeps up to 144 in its ring (`uring.rs`). As long as the disk has room it hands
// them over two by two while the threads of a turn still run (`asked`, in `fs/disk.rs`), and the
// last of them with the system call that brings back all that is done. Without other work it sleeps
// in the ring, which watches the epoll set. Where the kernel has no ring for the process, and on
// foreign executors, OS threads of the blocking pool take from the same queue. Tests run over both.
//
// Invariants:
// - `io` names no simulated kernel, and `faults.rs` alone names the faults. The layer knows a
//   simulated kernel as `dyn KernelCalls` (`sys/kernel.rs`) and the faults as a function, so the
//   linker leaves both out of a program that does not name them. These traits are public but
//   hidden, because only `crates/sim` implements them and each new system call changes them.
// - A call that can block (open, name look-up) never runs on a scheduler's OS thread, and never
//   behind what a program does in `blocking`: it has OS threads of its own (`Lane`, in
//   `pool/lane.rs`).
// - Memory that the kernel reads and writes belongs to the operation, not to the future that waits
//   for it. While a queue is locked, no call into the kernel is made, no thread is woken and
//   nothing is dropped. An event loop that is dropped waits for the operations that have begun.
// - The position of a `File` moves when a call returns `Ok`, and never otherwise. If the call of a
//   write is dropped, the write stays in the `File` until it is over, and the next call waits for
//   it (`fs/cursor.rs`).

#![doc(test(attr(deny(warnings), allow(dead_code))))]

pub mod calls;
mod error;
pub mod faults;
pub mod fs;
pub mod io;
pub mod net;
pub mod nonblocking;
pub mod pipe;
pub mod pool;
pub mod process;
mod reactor;
mod shorts;
pub mod signal;
pub mod stdio;
pub mod sys;
pub mod time;
mod timer;
mod uring;
mod wait_reason;

#[doc(inline)]
pub use nonblocking::NonBlocking;
pub use pool::blocking;
pub use reactor::EventLoop;
pub use timer::wheel;
