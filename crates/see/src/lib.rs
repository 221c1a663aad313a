//! Seeing what threads do, while they do it.
//!
//! | | |
//! |---|---|
//! | [`dump`] | every thread: its name, what it waits for, since when, and which thread would wake it; threads that wait for one another in a circle; and every CPU |
//! | [`counters`] | steps by the system call at their end, switches, wake-ups, steals; the lengths of the queues; the kernel's system calls by kind, with the time in the kernel; also as JSON, and for Prometheus |
//! | [`timeline`] | each step of each CPU, for `chrome://tracing` and Perfetto |
//! | [`graph_timeline_json`] | each step of a graph of `selvedge-cnc`, in the same format |
//! | [`graph_svg`], [`graph_dot`] | a graph of `selvedge-cnc`: its collections, their uses and, as SVG, their numbers |
//! | [`watchdog`] | names a thread that has run for long without a system call |
//! | [`name_panics`] | the message of a panic is followed by a line that names the thread |
//!
//! The runners of the facade call [`name_panics`]. All the rest is off until the program calls
//! [`on`], or [`from_environment`] finds the variable `SELVEDGE_SEE` set, which these runners do
//! too. From then on each CPU of the process has an observer (`recorder.rs`). It works under every
//! scheduler, a program's own too, because the CPU tells the observer how each step has ended.
//!
//! # What a dump says of a thread that waits
//!
//! | the thread waits for | the dump names |
//! |---|---|
//! | a descriptor | its kind and addresses |
//! | a point in time | that time |
//! | an operation on a file | the file, and the part of it |
//! | a call on the blocking pool | the code that the call runs |
//! | the end of a child process, a signal, the address of a host | that process, signal or host |
//! | a queue of an object | the line of the program |
//! | a waker of other code | nothing more |
//!
//! The dump also names the thread that would wake it, if only one thread can: the thread that it
//! joins; the holder of the mutex; the writer, or one of the readers, of the readers-writer lock;
//! the thread that makes the value of the `OnceCell`; the owner of the promise. Any thread may give
//! a semaphore's permit or a value for a queue, so the dump names no thread for these, and none for
//! a thread that waits for several things.
//!
//! While the program is observed, the report of a deadlock says the same of its threads, under
//! every scheduler.
//!
//! # What it costs
//! Off, it costs one comparison for each turn of a scheduler, and nothing for a step or a system
//! call. On, it costs 12 to 25 ns for each step with a hundred threads. With a hundred thousand it
//! costs up to 125 ns, and some 100 bytes for each thread. A timeline costs 60 to 110 ns more. A
//! program that only echoes messages of 64 bytes takes 4 to 5 % longer.
//!
//! The CPU reads the clock once for each turn of its scheduler, so times are as exact as a turn is
//! long. About one system call in eight is timed, if calls of its kind are frequent.
//!
//! # Examples
//! ```
//! use selvedge::{round_robin, spawn_local, yield_now};
//! use selvedge::sync::MVar;
//! use std::rc::Rc;
//!
//! selvedge::see::on();
//! round_robin(async {
//!     let parcel = Rc::new(MVar::<u32>::empty());
//!     let shared = parcel.clone();
//!     let take = async move { shared.take().await };
//!     let waiter = spawn_local(selvedge::see::named("waiter", take));
//!     yield_now().await;
//!     let dump = selvedge::see::dump().to_string();
//!     assert!(dump.contains("\"waiter\"") && dump.contains("waits at "), "{dump}");
//!     parcel.put(1).await;
//!     waiter.await.unwrap();
//! })?;
//! assert!(selvedge::see::counters().total.blocks >= 1);
//! # Ok::<(), selvedge::RunError>(())
//! ```

// # For readers of the source
//
// `recorder.rs` is the observer of each CPU. It writes the records of threads (`records.rs`) and of
// CPUs (`seats.rs`), which `dump.rs` and `counters.rs` read, and the spans of `timeline.rs`. One OS
// thread of its own, once it is needed, watches over long steps and waits for signals
// (`helper.rs`). It observes through `core`'s `observe.rs`: an observed CPU keeps a bit set that
// makes each step end on the long way, where the observer is told. Other crates tell what they
// alone know, in the step that waits: `sync` which thread holds a lock, `io` what is done with
// which file. Schedulers and event loops tell the lengths of their queues when they are asked. Each
// OS thread counts its system calls in `io`'s system-call layer (`calls.rs`). A report of a
// deadlock (`core`'s `deadlock.rs`) asks the observer, so it says the same under every scheduler.
// Without an observer it polls each waiting thread once more, and hears what the leaf futures say
// (`cpu/witness.rs`).
//
// Below `graphs.rs` is what is drawn of graphs of steps. It observes nothing: `cnc` has collected
// the data.
//
// Invariants:
// - While no observer is on, seeing costs a step nothing: not an instruction.
// - A dump waits for no CPU longer than 50 ms, and needs no lock that is held while a thread runs.

#![forbid(unsafe_code)]
#![doc(test(attr(deny(warnings), allow(dead_code))))]

mod counters;
mod counts;
mod descriptors;
mod dump;
mod environment;
mod graphs;
mod helper;
mod lock;
mod named;
mod order;
mod panics;
mod recorder;
mod records;
mod seats;
mod timeline;
mod words;

pub use counters::{Counters, CpuCounters, counters};
pub use counts::Counts;
pub use dump::{CpuState, Doing, Dump, ThreadState, dump};
pub use environment::{SeeError, Seeing, from_environment};
pub use graphs::{graph_dot, graph_svg, graph_timeline_json};
pub use helper::{LongStep, on_signal, watchdog};
pub use named::{Named, named};
pub use panics::{name_panics, this_thread};
pub use timeline::{timeline, timeline_json, write_timeline};

use selvedge_core::observe;
use selvedge_io::calls;
use std::sync::Mutex;

static ON: Mutex<bool> = Mutex::new(false);

/// From now on the program is observed. CPUs that run already take notice with their next turn.
/// More calls do nothing.
pub fn on() {
    let mut on = lock::lock(&ON);
    if !std::mem::replace(&mut *on, true) {
        calls::count(true);
        observe::observe(Some(recorder::recorder));
    }
}

/// The program is no longer observed, and what was seen is forgotten. The watchdog finds nothing
/// any more.
pub fn off() {
    let mut on = lock::lock(&ON);
    if std::mem::replace(&mut *on, false) {
        observe::observe(None);
        calls::count(false);
    }
    records::forget();
    seats::forget_past();
}
