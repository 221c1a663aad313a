//! Selvedge in one dependency.
//!
//! | for | there is |
//! |---|---|
//! | starting a program or a test | [`#[main]`](macro@main), [`#[test]`](macro@test), [`run_main`], [`run`], [`run_pinned`], [`run_local`], [`Runner`], [`start`], [`stop`], [`per_core`], [`work_stealing`], [`priority`](priority()) |
//! | threads | [`spawn`], [`fork`], [`yield_now`], [`exit`], [`catch()`], [`sleep`], [`park`], [`bound()`], [`thread_value!`] |
//! | threads that belong together, cancellation, join and select | [`scope`] |
//! | threads that block like ordinary code | [`direct`] |
//! | coroutines that suspend with typed values, step by step | [`coroutine`] |
//! | pipelines of typed stages | [`pipeline`] |
//! | pipelines between files, sockets, processes and queues; stages side by side | [`flow`] |
//! | what they share | [`MVar`], [`Fifo`], [`Mutex`], and in [`sync`] locks, semaphores, conditions, promises, broadcasts |
//! | variables that several threads read and write at one moment | [`stm`] |
//! | values that are made when they are needed | [`lazy`] |
//! | graphs of steps with one result under every scheduler | [`cnc`] |
//! | ranks that send messages to one another | [`mpi`] |
//! | graphs and pipelines over ranks | [`distributed`] |
//! | the world | [`net`], [`fs`], [`io`], [`time`], [`process`], [`pipe`], [`stdio`], [`signal`], [`blocking`] |
//! | TCP and UDP in the program itself, over a TAP device | [`stack`] |
//! | testing a program under a simulated network and every order of its threads | [`sim`] |
//! | a web application | [`web`] |
//! | a web server | [`http`] |
//! | a client of web servers | [`client`] |
//! | passing requests on to other servers and programs | [`gateway`] |
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
//! fn main() -> Result<(), selvedge::SchedulerError> {
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

// # For readers of the source
//
// This crate has re-exports, the functions that start a program with its event loops, and the part
// of `stm` that needs timers (`stm.rs`). The attributes `main` and `test` (`crates/macros`) put an
// `fn` around an `async fn`, and `entry.rs` has the functions that this `fn` calls; it tells a main
// that moves from a main that stays. `start.rs` ends with the last thread that can run, and takes
// the system call of `stop`. The README's programs are among the doc tests here; `tests/stress.rs`
// runs everything at once.

#![forbid(unsafe_code)]
#![doc(test(attr(deny(warnings), allow(dead_code))))]

#[doc(hidden)]
pub mod entry;
mod runner;
mod start;
pub mod stm;

pub use runner::{Runner, WorkersError, run_main};
pub use start::{StartEnd, start, start_on, stop};

#[doc(inline)]
pub use selvedge_client as client;
#[doc(inline)]
pub use selvedge_cnc as cnc;
#[doc(inline)]
pub use selvedge_core::{
    Answer, ArenaFullError, Call, Cpu, CpuError, Deadline, Deadlock, Detached, Events, Exception, Group,
    Interest, JoinError, JoinHandle, Local, Mode, Nbio, NoEvents, Panic, Queue, Quiet, Readiness, Request,
    Role, RunError, RunQueue, SendThread, Shared, Sleep, Syscall, Thread, ThreadInfo, ThreadValue, Time,
    Trace, Unpark, VirtualClock, Wait, WaitQueue, WithValue, call, catch, detach, detach_local, exit, fork,
    fork_local, nbio, now, observe, park, round_robin, round_robin_over, shield, spawn, spawn_local, steps,
    this_thread, thread_value, throw, try_spawn, yield_now,
};
#[doc(inline)]
pub use selvedge_coroutine as coroutine;
#[doc(inline)]
pub use selvedge_direct as direct;
#[doc(inline)]
pub use selvedge_distributed as distributed;
#[doc(inline)]
pub use selvedge_flow as flow;
#[doc(inline)]
pub use selvedge_gateway as gateway;
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
/// Makes an `async fn main` the program's main function, which runs on all cores.
///
/// What it returns is reported as [`Termination`](std::process::Termination) reports it: it may
/// return nothing, a `Result`, or an [`ExitCode`](std::process::ExitCode). The error of a `Result`
/// is written by its `Debug`. An error of the scheduler, such as a deadlock, is written
/// too, and the process ends with a failure. `SELVEDGE_WORKERS`
/// ([`Runner::from_environment`]) and `SELVEDGE_SEE` ([`see::from_environment`]) are heeded.
///
/// A main that is `Send` moves from worker to worker as each thread does, as under [`run`]. A main
/// that is not `Send`, because it keeps an `Rc` for example, stays on the calling OS thread, as
/// under [`run_pinned`].
///
/// | Argument | What it does |
/// |---|---|
/// | `workers = number` | this number of workers, whatever the environment says |
/// | `local` | the calling OS thread alone, as [`run_local`] |
/// | `runner = expression` | the [`Runner`] that the expression gives |
/// | `crate = path` | the path to this crate, where it has another name |
///
/// # Examples
/// ```
/// use selvedge::fs;
///
/// #[selvedge::main]
/// async fn main() -> std::io::Result<()> {
///     let manifest = fs::read_to_string("Cargo.toml").await?;
///     println!("{} lines", manifest.lines().count());
///     Ok(())
/// }
/// ```
///
/// ```
/// use selvedge::Runner;
/// use std::{process::ExitCode, rc::Rc};
///
/// #[selvedge::main(runner = Runner::new().workers(2).name("loom"))]
/// async fn main() -> ExitCode {
///     let code = Rc::new(0);
///     selvedge::yield_now().await;
///     ExitCode::from(*code)
/// }
/// ```
#[doc(inline)]
pub use selvedge_macros::main;
/// Makes an `async fn` a test.
///
/// It runs as under [`#[main]`](macro@main), with the same arguments, and returns what a test may
/// return. `#[should_panic]`, `#[ignore]` and other attributes stand below this one. If the
/// scheduler fails, the test panics with its report.
///
/// With `seeds = range` the test runs in a simulated world for each seed, as by
/// [`sim::simulate`]: its sockets, files and clock are simulated, and the seed determines the order
/// of its threads. A failure names its seed, and `SELVEDGE_SEED` runs one seed alone. There a
/// deadlock fails the test at once. Outside of a simulated world it is told only if no other OS
/// thread of the process could still wake a thread, and the test harness has such OS threads.
///
/// # Examples
/// ```
/// #[selvedge::test]
/// async fn a_thread_answers() {
///     assert_eq!(selvedge::spawn(async { 42 }).await.unwrap(), 42);
/// }
///
/// #[selvedge::test(local)]
/// #[should_panic(expected = "torn")]
/// async fn a_thread_tears() {
///     panic!("torn");
/// }
///
/// #[selvedge::test(seeds = 0..100)]
/// async fn an_hour_passes_in_every_order() -> std::io::Result<()> {
///     let listener = selvedge::net::bind("10.1.1.1:80").await?;
///     let client = selvedge::spawn(async { selvedge::net::connect("10.1.1.1:80").await });
///     let _accepted = listener.accept().await?;
///     selvedge::sleep(std::time::Duration::from_secs(3600)).await;
///     client.await?.map(drop)
/// }
/// ```
#[doc(inline)]
pub use selvedge_macros::test;
#[doc(inline)]
pub use selvedge_mpi as mpi;
#[doc(inline)]
pub use selvedge_pipeline as pipeline;
#[doc(inline)]
pub use selvedge_sched::{
    Handle, SchedulerError, Spawned, WorkStealing, block_on, set_deadline, set_priority, work_stealing,
};
#[doc(inline)]
pub use selvedge_scope as scope;
#[doc(inline)]
pub use selvedge_see as see;
#[doc(inline)]
pub use selvedge_sim as sim;
#[doc(inline)]
pub use selvedge_site as site;
#[doc(inline)]
pub use selvedge_stack as stack;
#[doc(inline)]
pub use selvedge_sync as sync;
#[doc(inline)]
pub use selvedge_sync::{Fifo, Guard, MVar, Mutex};
#[doc(inline)]
pub use selvedge_web as web;

/// Ready-made schedulers: those of `selvedge-sched`, and the [simulated](crate::sim) one.
pub mod sched {
    #[doc(inline)]
    pub use selvedge_sched::*;
    #[doc(inline)]
    pub use selvedge_sim::{
        Explored, Explorer, Random, Run, Simulation, SimulationError, VirtualTime, Why, each_seed, simulated,
    };
}

/// Runs `main` and the threads it creates on all cores until `main` has ended; returns its result.
/// The threads that are left are cancelled.
///
/// The scheduler is [`work_stealing`], with an event loop for each worker; the calling OS thread is
/// one of them. A main that is not `Send` starts with [`run_pinned`], a program that is to stay on
/// one OS thread with [`run_local`].
///
/// # Errors
/// See [`SchedulerError`]: no event loop, or a deadlock.
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
pub fn run<F>(main: F) -> Result<F::Output, SchedulerError>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    Runner::new().run(main)
}

/// As [`run`], with a `main` that need not be `Send`: it stays on the calling OS thread, and may
/// keep an `Rc` across an `await`. The threads that it [`spawn`]s run on all cores.
///
/// [`run`] is the better one where both will do. While a long step of another thread keeps the
/// calling OS thread, a main that moves goes to another worker, and one that stays waits. And a
/// thread of another worker that wakes a main that stays has to wake its worker.
///
/// # Errors
/// As for [`run`].
///
/// # Panics
/// As [`run`].
///
/// # Examples
/// ```
/// use selvedge::{run_pinned, spawn};
/// use std::cell::RefCell;
/// use std::rc::Rc;
///
/// let woven = run_pinned(async {
///     let woven = Rc::new(RefCell::new(String::new()));
///     for thread in [spawn(async { "warp" }), spawn(async { "weft" })] {
///         woven.borrow_mut().push_str(thread.await.unwrap());
///     }
///     woven
/// })?;
/// assert_eq!(*woven.borrow(), "warpweft");
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
pub fn run_pinned<F: Future + 'static>(main: F) -> Result<F::Output, SchedulerError> {
    Runner::new().run_pinned(main)
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

/// What the environment variable `SELVEDGE_SEE` asks for, while a program runs. And from now on the
/// messages of panics name the thread.
fn seeing() -> see::Seeing {
    see::name_panics();
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
    selvedge_core::round_robin_over(&mut EventLoop::new()?, main)
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
pub fn per_core<F>(workers: usize, main: impl Fn(usize) -> F + Sync) -> Result<Vec<F::Output>, SchedulerError>
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
/// because they need it, and those of `web.md` tests of `selvedge-web`.
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
        Mpi = "mpi.md",
        Distributed = "distributed.md",
        Stack = "stack.md",
        WebGateway = "web-gateway.md",
    }
}
