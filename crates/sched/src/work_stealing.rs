//! [`work_stealing`]: several workers run the same threads. Each worker has queues of its own, and
//! takes threads from the other workers when its own queues are empty.
//!
//! This file is the interface. Behind it:
//! - `start` starts the workers, stops them, and puts their results together; `pool` is the state
//!   that they share.
//! - `worker` is a worker's loop, with `worker/next` (which thread runs next), `worker/arrivals`
//!   (which threads that events woke a worker keeps for itself), `worker/crowding` (whether a
//!   worker gets a CPU), `worker/idle` (what a worker does without threads), and `worker/pairing`
//!   with `worker/second_poll` (how two threads that talk through the kernel come together on one
//!   worker).
//! - `run_ring` is the ring of ready threads from which other workers steal, `injector` the queue
//!   of threads from outside, and `idle_workers` the protocol by which workers search and sleep.
//! - `desk` lets other workers take a worker's ready threads while that worker is in a long step.

mod desk;
mod doors;
mod idle_workers;
mod injector;
mod pool;
#[expect(unsafe_code, reason = "the ring's slots are exclusive by protocol")]
mod run_ring;
mod start;
mod worker;

pub use idle_workers::IdleWorkers;
pub use injector::Injector;
pub use run_ring::{Claim, RunRing, Stealer};

use crate::{Handle, SchedulerError};
use desk::{Desk, WorkerView};
use pool::WorkerPool;
use selvedge_core::{Events, Owner};
use std::fmt;
use std::future::Future;
use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// Runs `main` and the threads it creates on several OS threads, the calling one among them, until
/// `main` has ended; returns its result. The threads that are left are cancelled.
///
/// `workers` is the number of OS threads; 0 stands for as many as the machine runs at once. Each
/// has a CPU and an event source, which `events(worker)` makes on the worker's OS thread.
///
/// This function is [`WorkStealing`] in one call. `WorkStealing` documents how the workers share
/// the threads.
///
/// # Errors
/// The first worker that fails stops the others. A deadlock of all workers is a failure: no thread
/// is ready, no thread waits for anything outside, and no other OS thread of the process could wake
/// one.
///
/// # Panics
/// If `main` panics, with its payload.
///
/// # Paper
/// [LZ07 §4.4, Figure 17]: several `worker_main` loops. [HMP05 §2.2]: many threads on few OS threads, one for each processor.
///
/// # Differences
/// 1. Each worker has a queue of its own, and an event loop of its own. The workers of the paper
///    share one queue, and its event loops are additional OS threads.
///
/// # Examples
/// ```
/// use selvedge::{NoEvents, spawn};
/// use selvedge::work_stealing;
///
/// let sum = work_stealing(2, |_| Ok(NoEvents::new()), async {
///     let squares: Vec<_> = (0..100u64).map(|n| spawn(async move { n * n })).collect();
///     let mut sum = 0;
///     for square in squares {
///         sum += square.await.unwrap();
///     }
///     sum
/// })?;
/// assert_eq!(sum, 328_350);
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
pub fn work_stealing<E, F>(
    workers: usize,
    events: impl Fn(usize) -> io::Result<E> + Sync,
    main: F,
) -> Result<F::Output, SchedulerError>
where
    E: Events,
    F: Future + Send + 'static,
    F::Output: Send,
{
    WorkStealing::new(workers).run(events, main)
}

/// A scheduler with several workers that take threads from one another.
///
/// - A thread created by [`spawn`](selvedge_core::spawn) or [`fork`](selvedge_core::fork) is ready
///   on the worker where it was created or woken. A worker that has nothing to do takes half of the
///   threads that another worker has ready. If no worker has any, it sleeps in its event source. A
///   thread of [`spawn_local`](selvedge_core::spawn_local) stays on its worker.
/// - When a step ends, its worker offers the threads that the step made ready to the others.
/// - A thread that is woken alone runs next on the same worker, before the threads that were ready
///   already. While others are ready there, that happens three times in a row at most.
/// - A thread that is woken alone by the last step of another thread most likely waits for the end
///   of that thread. The threads that the worker has claimed already, 15 at most, run before it. It
///   may then find that all its children have ended, and need not wait for each. Until then it is
///   not offered to other workers.
/// - Threads that wait for descriptors are woken on the worker that polls their descriptors.
///   While the steps are short, 50 µs at most, that worker runs them itself, because a move would
///   cost as much as such a step. A worker that has not slept for 5 ms gives some of them to a
///   worker that sleeps, so the descriptors spread over the workers that the load needs.
/// - A worker that waits for a CPU for a quarter of its time, because the clients run on this
///   machine too, stands aside while its steps are short: it passes the threads that events wake
///   there to a worker that works. It tries again after 0.2 to 2 s, and stays if the others get no
///   CPU either.
/// - All other threads are served first come, first served. The threads that stay and the threads
///   that may move take turns.
/// - Threads on two workers that keep waking each other through the kernel, over a pipe or a
///   socket, are brought together on one worker, and then stay there. While every worker has enough
///   to do, that is the only reason for which a ready thread moves.
/// - A worker polls its event source after 256 steps, or when 200 µs have passed, whatever is
///   ready. So a thread that is always ready starves neither other threads nor the event source.
/// - A single step that takes longer keeps its worker. The threads that the worker had ready when
///   the step began go to other workers: those in its ring at once, and the rest within some 20 ms
///   (not where the kernel has no membarrier(2)). The threads that wait for a descriptor or a point
///   in time in the worker's event loop go to others too, once the event has come, and so do the
///   threads that the step itself wakes or spawns. Two kinds of threads wait for the end of the
///   step: the threads of [`spawn_local`](selvedge_core::spawn_local), and the threads that wait
///   for a disk operation of the worker's ring.
///
/// # Examples
/// A program with work that comes from an ordinary OS thread:
/// ```
/// use selvedge::NoEvents;
/// use selvedge::{WorkStealing, block_on};
/// use selvedge::sync::MVar;
/// use std::sync::Arc;
///
/// let scheduler = WorkStealing::new(2);
/// let handle = scheduler.handle();
/// let done = Arc::new(MVar::empty());
/// let signal = done.clone();
/// let outside = std::thread::spawn(move || {
///     let answer = block_on(handle.spawn(async { 6 * 7 })).unwrap();
///     block_on(signal.put(answer));
/// });
/// let answer = scheduler.run(|_| Ok(NoEvents::new()), async move { done.take().await })?;
/// assert_eq!(answer, 42);
/// # outside.join().unwrap();
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
pub struct WorkStealing {
    pool: Arc<WorkerPool>,
    desks: Vec<Owner<Desk>>,
    /// The first part of the names of the workers' OS threads; a number follows.
    name: String,
}

impl WorkStealing {
    /// A scheduler of `workers` workers, or of as many as the machine runs at once if that is 0.
    /// They start with [`run`](WorkStealing::run).
    pub fn new(workers: usize) -> WorkStealing {
        let available = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let workers = if workers == 0 { available() } else { workers };
        let (idle, rings) = IdleWorkers::new(workers);
        let (views, desks): (Vec<_>, Vec<_>) = rings.into_iter().map(WorkerView::new).unzip();
        let pool = Arc::new(WorkerPool::new(idle, views));
        WorkStealing { pool, desks, name: "worker".to_string() }
    }

    /// Names the workers' OS threads `name-1`, `name-2` and so on, and not `worker-1`. The OS
    /// thread that calls [`run`](WorkStealing::run) keeps its name.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> WorkStealing {
        self.name = name.into();
        self
    }

    /// A handle to spawn threads from elsewhere. The threads that are spawned before the scheduler
    /// runs begin when it runs.
    pub fn handle(&self) -> Handle {
        Handle::new(self.pool.clone())
    }

    /// Runs `main` and the threads it creates until `main` has ended; returns its result. The
    /// calling OS thread is worker 0.
    ///
    /// # Errors
    /// See [`work_stealing`].
    ///
    /// # Panics
    /// See [`work_stealing`].
    pub fn run<E, F>(
        mut self,
        events: impl Fn(usize) -> io::Result<E> + Sync,
        main: F,
    ) -> Result<F::Output, SchedulerError>
    where
        E: Events,
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let desks = std::mem::take(&mut self.desks);
        start::run(&self.pool, desks, &self.name, &events, start::Mobile(main))
    }

    /// As [`run`](WorkStealing::run), with a `main` that need not be `Send`: it stays on worker 0,
    /// the calling OS thread. The threads that it [spawns](selvedge_core::spawn) move as always.
    ///
    /// A main that moves is better off in one respect: while a long step of another thread keeps
    /// worker 0, another worker may run a main that moves. A main that stays waits for the end of
    /// that step.
    ///
    /// # Errors
    /// See [`work_stealing`].
    ///
    /// # Panics
    /// See [`work_stealing`].
    ///
    /// # Examples
    /// ```
    /// use selvedge::{NoEvents, WorkStealing, spawn};
    /// use std::rc::Rc;
    ///
    /// let text = WorkStealing::new(2).run_pinned(|_| Ok(NoEvents::new()), async {
    ///     let shared = Rc::new("warp");
    ///     let weft = spawn(async { " and weft" });
    ///     Rc::new(format!("{shared}{}", weft.await.unwrap()))
    /// })?;
    /// assert_eq!(*text, "warp and weft");
    /// # Ok::<(), selvedge::SchedulerError>(())
    /// ```
    pub fn run_pinned<E, F>(
        mut self,
        events: impl Fn(usize) -> io::Result<E> + Sync,
        main: F,
    ) -> Result<F::Output, SchedulerError>
    where
        E: Events,
        F: Future + 'static,
    {
        let desks = std::mem::take(&mut self.desks);
        start::run(&self.pool, desks, &self.name, &events, start::Pinned(main))
    }
}

impl Drop for WorkStealing {
    /// Drops the threads that were spawned from elsewhere and have not begun. They never will.
    fn drop(&mut self) {
        self.pool.idle.injector().close().chain(self.pool.doors.close()).for_each(drop);
    }
}

impl fmt::Debug for WorkStealing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkStealing").field("workers", &self.pool.idle.workers()).finish_non_exhaustive()
    }
}
