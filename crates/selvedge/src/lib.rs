//! Selvedge in one dependency.
//!
//! | for | there is |
//! |---|---|
//! | starting a program | [`run_main`], [`run`], [`run_local`], [`Runner`], [`per_core`], [`work_stealing`], [`priority`](priority()) |
//! | threads | [`spawn`], [`fork`], [`yield_now`], [`exit`], [`catch()`], [`sleep`], [`park`], [`bound()`], [`thread_value!`] |
//! | threads that belong together, cancellation, join and select | [`scope`] |
//! | threads that block like ordinary code | [`direct`] |
//! | generators, iteratees, and pipelines of them | [`coroutine`] |
//! | pipelines between files, sockets, processes and queues; stages side by side | [`flow`] |
//! | what they share | [`MVar`], [`Fifo`], [`Mutex`], and in [`sync`] locks, semaphores, conditions, promises, broadcasts |
//! | variables that several threads read and write at one moment | [`stm`] |
//! | values that are made when they are needed | [`lazy`] |
//! | graphs of steps with one result under every scheduler | [`cnc`] |
//! | the world | [`net`], [`fs`], [`io`], [`time`], [`process`], [`pipe`], [`stdio`], [`signal`], [`blocking`] |
//! | testing a program under a simulated network and every order of its threads | [`sim`] |
//! | a web server | [`http`] |
//! | seeing what threads do | [`see`], or the environment variable `SELVEDGE_SEE` ([what it may say](see::from_environment)) |
//! | schedulers of one's own | [`Cpu`], [`Thread`], [`Trace`], [`RunQueue`], [`EventLoop`] |
//! | system calls and event sources of one's own | [`Syscall`], [`Events`], [`WaitQueue`] |
//!
//! # `fork(2)`
//! The child of a `fork(2)` can run programs of its own, if no program ran in the parent at that
//! moment: it has an event loop, a blocking pool and a count of OS threads of its own. A program
//! that was running does not go on in the child, and its sockets and files are not to be used
//! there. What holds for every process with several OS threads holds here too: a lock that another
//! OS thread held at that moment stays locked. [`process::Command`] starts other programs without
//! such care.
//!
//! # Examples
//! ```
//! use selvedge::{MVar, sleep, spawn};
//! use std::{sync::Arc, time::Duration};
//!
//! fn main() -> Result<(), selvedge::Failure> {
//!     selvedge::run(async {
//!         let loom = Arc::new(MVar::empty());
//!         let shuttle = loom.clone();
//!         let weaver = spawn(async move { format!("{} and weft", shuttle.take().await) });
//!         sleep(Duration::from_millis(1)).await;
//!         loom.put("warp").await;
//!         assert_eq!(weaver.await.unwrap(), "warp and weft");
//!     })
//! }
//! ```
#![forbid(unsafe_code)]
#![doc(test(attr(deny(warnings), allow(dead_code))))]

mod runner;
pub mod stm;

pub use runner::{BadWorkers, Runner, run_main};

#[doc(inline)]
pub use selvedge_cnc as cnc;
#[doc(inline)]
pub use selvedge_core::{
    Answer, ArenaFull, Call, Cpu, Deadline, Deadlock, Detached, Events, Exception, Group, Interest,
    JoinError, JoinHandle, Local, Mode, Nbio, NoEvents, Panic, Queue, Quiet, Readiness, Request, Role,
    RunError, RunQueue, SendThread, Shared, Sleep, Syscall, Thread, ThreadInfo, ThreadValue, Time, Trace,
    Unavailable, Unpark, VirtualClock, Wait, WaitQueue, WithValue, call, catch, detach, detach_local, exit,
    fork, fork_local, nbio, now, observe, park, round_robin, round_robin_with, shield, spawn, spawn_local,
    steps, this_thread, thread_value, throw, try_spawn, yield_now,
};
#[doc(inline)]
pub use selvedge_coroutine as coroutine;
#[doc(inline)]
pub use selvedge_direct as direct;
#[doc(inline)]
pub use selvedge_flow as flow;
#[doc(inline)]
pub use selvedge_http as http;
#[doc(inline)]
pub use selvedge_io::nonblocking::wait;
#[doc(inline)]
pub use selvedge_io::time::{sleep, sleep_until};
#[doc(inline)]
pub use selvedge_io::{
    EventLoop, NonBlocking, blocking, calls, fs, io, net, pipe, pool, process, signal, stdio, time, wheel,
};
#[doc(inline)]
pub use selvedge_lazy as lazy;
#[doc(inline)]
pub use selvedge_sched::{
    Failure, Handle, Spawned, WorkStealing, block_on, set_deadline, set_priority, work_stealing,
};
#[doc(inline)]
pub use selvedge_scope as scope;
#[doc(inline)]
pub use selvedge_see as see;
#[doc(inline)]
pub use selvedge_sim as sim;
#[doc(inline)]
pub use selvedge_sync as sync;
#[doc(inline)]
pub use selvedge_sync::{Fifo, Guard, MVar, Mutex};

/// Ready-made schedulers: those of `selvedge-sched`, and the [simulated](crate::sim) one.
pub mod sched {
    #[doc(inline)]
    pub use selvedge_sched::*;
    #[doc(inline)]
    pub use selvedge_sim::{
        Explored, Explorer, Failed, Random, Run, Simulation, VirtualTime, Why, each_seed, simulated,
    };
}

/// Runs `main` and the threads it creates on all cores until `main` has ended; returns its result.
/// The threads that are left are cancelled.
///
/// The scheduler is [`work_stealing`], with an event loop for each worker; the calling OS thread is
/// one of them. A program that is to stay on one OS thread, or has a main that is not `Send`,
/// starts with [`run_local`].
///
/// # Errors
/// See [`Failure`]: no event loop, or a deadlock.
///
/// # Panics
/// If `main` panics, and if it is called within a thread: the other threads of that worker could
/// not go on.
///
/// # Paper
/// [Del §2.1] `start`.
///
/// # Differences
/// 1. It ends with `main`, not with the last thread, and returns a result.
#[doc(alias = "start")]
pub fn run<F>(main: F) -> Result<F::Output, Failure>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    Runner::new().run(main)
}

/// # Panics
/// If it is called within a thread.
fn refuse_within(name: &str) {
    assert!(
        !selvedge_core::in_thread(),
        "{name} was called within a thread: until it returned, the other threads of this worker could not run. Await the \
         future, or spawn it; or start the program on an OS thread of its own, by std::thread::spawn or selvedge::blocking"
    );
}

/// What the environment variable `SELVEDGE_SEE` asks for, while a program runs.
fn seeing() -> see::Seeing {
    see::from_environment().unwrap_or_else(|misunderstood| {
        eprintln!("{misunderstood}");
        see::Seeing::default()
    })
}

/// Runs `main` and the threads it creates on this OS thread, round-robin, until `main` has ended;
/// returns its result. The threads that are left are cancelled.
///
/// # Errors
/// See [`RunError`]: no event loop, or a deadlock.
///
/// # Panics
/// As [`run`].
pub fn run_local<F: Future + 'static>(main: F) -> Result<F::Output, RunError> {
    refuse_within("run_local()");
    let _seeing = seeing();
    selvedge_core::round_robin_with(&mut EventLoop::new()?, main)
}

/// Runs `main` and the threads it creates on this OS thread, the urgent ones first, until `main`
/// has ended; returns its result. The threads that are left are cancelled. See
/// [`selvedge_sched::priority`] for levels and ageing.
///
/// # Errors
/// See [`RunError`]; a deadlock above all.
///
/// # Panics
/// As [`run`].
///
/// # Examples
/// ```
/// use selvedge::{EventLoop, priority, set_priority, spawn_local, yield_now};
///
/// let ended = priority(&mut EventLoop::new()?, async {
///     let urgent = spawn_local(async { set_priority(0).await });
///     yield_now().await;
///     urgent.await.is_ok()
/// })?;
/// assert!(ended);
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub fn priority<F: Future + 'static>(events: &mut impl Events, main: F) -> Result<F::Output, RunError> {
    refuse_within("priority()");
    let _seeing = seeing();
    selvedge_sched::priority(events, main)
}

/// Runs `main(worker)` on each of `workers` OS threads, with a scheduler and an event loop for
/// each, sharing nothing. See [`selvedge_sched::per_core`].
///
/// # Errors
/// The first failure of a worker, which stops the others.
///
/// # Panics
/// If a main panics, and as [`run`].
pub fn per_core<F>(workers: usize, main: impl Fn(usize) -> F + Sync) -> Result<Vec<F::Output>, Failure>
where
    F: Future + 'static,
    F::Output: Send,
{
    refuse_within("per_core()");
    let _seeing = seeing();
    selvedge_sched::per_core(workers, |_| EventLoop::new(), main)
}

/// Starts an OS thread with an event loop of its own, and runs on it one thread that never leaves
/// it and may block it: for libraries that care which OS thread they run on. See
/// [`selvedge_sched::bound`].
///
/// # Errors
/// If the operating system has no thread left.
///
/// # Examples
/// ```
/// selvedge::run(async {
///     let native = selvedge::bound(|| async {
///         // No other thread waits for this OS thread.
///         std::thread::sleep(std::time::Duration::from_millis(1));
///         selvedge::sleep(std::time::Duration::from_millis(1)).await;
///         "done"
///     });
///     assert_eq!(native?.await.unwrap(), "done");
///     Ok::<(), std::io::Error>(())
/// })
/// .unwrap()
/// .unwrap();
/// ```
#[doc(alias = "forkOS")]
pub fn bound<F>(make: impl FnOnce() -> F + Send + 'static) -> std::io::Result<Spawned<F::Output>>
where
    F: Future + 'static,
    F::Output: Send,
{
    selvedge_sched::bound(EventLoop::new, make)
}

/// The program in the README runs as printed.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;

/// The guide's programs run as printed. Those of `from-tokio.md` are tests of `selvedge-compat`,
/// because they need it.
#[cfg(doctest)]
mod guide {
    macro_rules! pages {
        ($($page:ident = $file:literal),* $(,)?) => {
            $(
                #[doc = include_str!(concat!("../../../docs/guide/", $file))]
                pub struct $page;
            )*
        };
    }

    pages! {
        Runners = "runners.md",
        Threads = "threads.md",
        Sharing = "sharing.md",
        Transactions = "transactions.md",
        Graphs = "cnc.md",
        Structure = "structure.md",
        Io = "io.md",
        Pipelines = "pipelines.md",
        Shell = "shell.md",
        Schedulers = "schedulers.md",
        Testing = "testing.md",
        Seeing = "seeing.md",
        Lazy = "lazy.md",
        Make = "make.md",
    }
}
