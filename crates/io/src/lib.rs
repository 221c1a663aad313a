//! Event loops, and what threads see of them: sockets, pipes, files, time, child processes,
//! signals.
//!
//! # For threads
//!
//! [`net`] has TCP, UDP and Unix sockets, [`pipe`] pipes and FIFOs, [`stdio`] the standard streams,
//! [`fs`] files, [`time`] sleeping and time-outs, [`process`] child processes, [`signal`] signals.
//! [`blocking`] runs a call that may block for long on an OS thread of a pool, and [`NonBlocking`]
//! makes any other descriptor one that threads can wait for. All of it works in threads of any
//! scheduler that is driven with an [`EventLoop`]. It also works in futures on foreign executors
//! (tokio, `futures::executor`), where an OS thread in the background serves it.
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
