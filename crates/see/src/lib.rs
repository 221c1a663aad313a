//! Seeing what threads do, while they do it.
//!
//! | | |
//! |---|---|
//! | [`dump`] | every thread: its name, what it waits for, since when, and which thread would wake it; threads that wait for one another in a circle; and every CPU |
//! | [`counters`] | steps by the system call at their end, switches, wake-ups, steals; the lengths of the queues; the kernel's system calls by kind, with the time in the kernel; also as JSON, and for Prometheus |
//! | [`timeline`] | each step of each CPU, for `chrome://tracing` and Perfetto |
//! | [`watchdog`] | names a thread that has run for long without a system call |
//!
//! All of it is off until [`on`] is called, or the program is started with the variable
//! `SELVEDGE_SEE` and asks [`from_environment`] to heed it. Then each CPU of the process is
//! observed, under whatever scheduler, a program's own among them: it is the CPU that tells how
//! each step has ended.
//!
//! # What is known
//! A thread waits for a descriptor, which is told with its kind and addresses; until a point in
//! time; for an operation on a file, told with the file and the part of it; for a call on the
//! blocking pool, by the code it runs; for the end of a child process, a signal, the address of a
//! name; at a line of the program, in a queue; or behind a waker of other code. The thread that
//! would wake it is told where only one thread can: the thread that it joins; the holder of the
//! mutex; the writer, or one of the readers, of the readers-writer lock; the thread that makes the
//! value of the `OnceCell`; the owner of the promise. A semaphore's permit and a value for a queue
//! may come from any thread. A thread that waits for several things waits for no thread in
//! particular.
//!
//! The report of a deadlock, under every scheduler, says the same of its threads while the program
//! is observed.
//!
//! # What it costs
//! Off: one comparison for each turn of a scheduler, and nothing for a step or a system call. On:
//! 12 to 25 ns for each step with a hundred threads, and up to 125 with a hundred thousand, of
//! which some 100 bytes each are known then; 60 to 110 ns more while a timeline is drawn. A program
//! that does nothing but echo messages of 64 bytes takes 4 to 5 % longer. The clock is read once
//! per turn, so that "since when" is as exact as that; of the kinds of system calls that are made
//! often one in eight or so is timed.
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
#![forbid(unsafe_code)]

mod counters;
mod descriptors;
mod dump;
mod environment;
mod helper;
mod json;
mod named;
mod order;
mod recorder;
mod timeline;

pub use counters::{Counters, Counts, CpuCounters, counters};
pub use dump::{CpuState, Doing, Dump, ThreadState, dump};
pub use environment::{Misunderstood, Seeing, from_environment};
pub use helper::{LongStep, on_signal, watchdog};
pub use named::{Named, named};
pub use timeline::{timeline, timeline_json, write_timeline};

use selvedge_core::observe;
use selvedge_io::calls;
use std::sync::Mutex;

static ON: Mutex<bool> = Mutex::new(false);

/// From now on the program is observed. CPUs that run already take notice with their next turn.
/// More calls do nothing.
pub fn on() {
    let mut on = recorder::lock(&ON);
    if !std::mem::replace(&mut *on, true) {
        calls::count(true);
        observe::observe(Some(recorder::recorder));
    }
}

/// The program is no longer observed, and what was seen is forgotten. The watchdog finds nothing
/// any more.
pub fn off() {
    let mut on = recorder::lock(&ON);
    if std::mem::replace(&mut *on, false) {
        observe::observe(None);
        calls::count(false);
    }
    recorder::forget();
}
