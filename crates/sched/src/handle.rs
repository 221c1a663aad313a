//! [`Handle`] and [`Spawned`]: spawning threads from elsewhere, from ordinary OS threads and from
//! threads of other schedulers.
//!
//! Programs get a `Handle` from `Handle::current` or from a running `WorkStealing`; `bound.rs`
//! returns a `Spawned` too. A thread from elsewhere is created by the scheduler's own CPU, which
//! takes the remote spawn in by `core`'s `remote_spawn.rs`. Until then `Spawned` and `SpawnDuty`
//! share a `ReplyCell`, and exactly one of them decides: the duty puts the join handle there, or
//! the caller gives the thread up before.

use selvedge_core::internal::ReplyCell;
use selvedge_core::{Adopt, ArenaFullError, Cpu, JoinError, JoinHandle, adopter, adopter_of_cpus};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// A way to a scheduler from any OS thread: from an ordinary OS thread, or from a thread of another
/// scheduler.
///
/// Any scheduler has handles: a [round-robin](selvedge_core::round_robin) scheduler,
/// [`per_core`](crate::per_core) (then the handle leads to one of its workers),
/// [`priority`](crate::priority()), or a scheduler of the program's own. A
/// [`WorkStealing`](crate::WorkStealing) has a handle before it runs.
///
/// A handle does not keep the scheduler running.
#[derive(Clone, Debug)]
pub struct Handle {
    scheduler: Arc<dyn Adopt>,
}

impl Handle {
    pub(crate) fn new(scheduler: Arc<dyn Adopt>) -> Handle {
        Handle { scheduler }
    }

    /// The scheduler of the running thread. `None` outside a thread.
    ///
    /// # Examples
    /// ```
    /// use selvedge::round_robin;
    /// use selvedge::{Handle, block_on};
    ///
    /// round_robin(async {
    ///     let here = Handle::current().expect("within a thread");
    ///     let outside =
    ///         std::thread::spawn(move || block_on(here.spawn(async { 6 * 7 })).unwrap());
    ///     while !outside.is_finished() {
    ///         selvedge::yield_now().await;
    ///     }
    ///     assert_eq!(outside.join().unwrap(), 42);
    /// })?;
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    pub fn current() -> Option<Handle> {
        adopter().map(Handle::new)
    }

    /// The scheduler of the running thread, if it has several workers. `None` for other schedulers,
    /// and outside a thread.
    ///
    /// A [round-robin](selvedge_core::round_robin) scheduler that has been asked for its
    /// [current](Handle::current) handle must expect threads from other OS threads, so it reports a
    /// deadlock later. This question leaves it as it is.
    ///
    /// # Examples
    /// See [`spawn_on`](Handle::spawn_on).
    pub fn of_workers() -> Option<Handle> {
        adopter_of_cpus().map(Handle::new)
    }

    /// The number of workers of the scheduler: those of a
    /// [`WorkStealing`](crate::WorkStealing) scheduler, and 1 for any other.
    pub fn workers(&self) -> usize {
        self.scheduler.cpus()
    }

    /// Creates a thread in the scheduler, and returns a handle that the caller awaits for the
    /// thread's result.
    ///
    /// Within the scheduler itself [`spawn`](selvedge_core::spawn) does the same at a lower cost.
    /// If the scheduler has ended, or ends before it takes the future, the future is dropped and
    /// the thread counts as cancelled. The same happens if the arena is full.
    ///
    /// # Examples
    /// Two schedulers side by side:
    /// ```
    /// use selvedge::{NoEvents, WorkStealing, round_robin};
    ///
    /// let workers = WorkStealing::new(2);
    /// let there = workers.handle();
    /// let result = workers.run(|_| Ok(NoEvents::new()), async move {
    ///     let here = std::thread::spawn(move || {
    ///         round_robin(async move { there.spawn(async { 6 * 7 }).await.unwrap() })
    ///     });
    ///     while !here.is_finished() {
    ///         selvedge::yield_now().await;
    ///     }
    ///     here.join().unwrap()
    /// })?;
    /// assert_eq!(result.unwrap(), 42);
    /// # Ok::<(), selvedge::SchedulerError>(())
    /// ```
    ///
    /// # Complexity
    /// Two allocations, and a lock; a system call if the scheduler sleeps.
    pub fn spawn<F>(&self, future: F) -> Spawned<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let (spawned, duty) = Spawned::promised();
        let spawn = move |cpu: &mut Cpu| duty.create(|| cpu.spawn(future));
        // If the scheduler does not take `spawn`, it drops `spawn`, and the drop of `duty` notes
        // that in the cell.
        drop(self.scheduler.adopt(Box::new(spawn)));
        spawned
    }

    /// Creates a thread on the worker of this number, and returns a handle that the caller awaits
    /// for the thread's result. The thread calls `make` there, and stays there: the future need not
    /// be `Send`, as with [`spawn_local`](selvedge_core::spawn_local).
    ///
    /// It is for threads of which each computes for long, and of which each is to have a worker of
    /// its own from its start. A thread of [`spawn`](Handle::spawn) begins on the worker that looks
    /// first, and workers take ready threads from one another; that is better for all others.
    ///
    /// If the scheduler has ended, or ends before the worker takes the thread in, `make` is dropped
    /// and the thread counts as cancelled. The same happens if the arena is full. A thread for a
    /// worker that has not begun waits for the worker's start.
    ///
    /// # Panics
    /// If the scheduler has no worker of this number: see [`workers`](Handle::workers).
    ///
    /// # Complexity
    /// As [`spawn`](Handle::spawn). A worker in a long step takes the thread in after the step.
    ///
    /// # Examples
    /// A thread on each worker, with data that only the threads of this worker share:
    /// ```
    /// use selvedge::{Handle, NoEvents, work_stealing};
    /// use std::rc::Rc;
    ///
    /// let total = work_stealing(2, |_| Ok(NoEvents::new()), async {
    ///     let workers = Handle::of_workers().expect("a scheduler of two workers");
    ///     let parts = (0..workers.workers()).map(|worker| {
    ///         workers.spawn_on(worker, move || async move {
    ///             let own = Rc::new(worker + 1);
    ///             *own * 100
    ///         })
    ///     });
    ///     let mut total = 0;
    ///     for part in parts.collect::<Vec<_>>() {
    ///         total += part.await.unwrap();
    ///     }
    ///     total
    /// })?;
    /// assert_eq!(total, 300);
    /// # Ok::<(), selvedge::SchedulerError>(())
    /// ```
    pub fn spawn_on<F>(&self, worker: usize, make: impl FnOnce() -> F + Send + 'static) -> Spawned<F::Output>
    where
        F: Future + 'static,
        F::Output: Send,
    {
        let workers = self.workers();
        assert!(worker < workers, "worker {worker} of a scheduler with {workers}");
        let (spawned, duty) = Spawned::promised();
        // The thread calls `make`, so a panic of `make` is one of the thread.
        let spawn = move |cpu: &mut Cpu| duty.create(|| cpu.spawn_local(async move { make().await }));
        drop(self.scheduler.adopt_on(worker, Box::new(spawn)));
        spawned
    }
}

/// Where the handle of a thread that is to be created elsewhere is left. It is closed if the thread
/// will never be created.
type SpawnCell<T> = ReplyCell<JoinHandle<T>>;

/// The duty to create the thread. Dropping it ends the waiter's wait.
pub(crate) struct SpawnDuty<T>(Option<Arc<SpawnCell<T>>>);

impl<T: Send> SpawnDuty<T> {
    /// Creates the thread by `create`, unless the caller has given it up.
    fn create(self, create: impl FnOnce() -> Result<JoinHandle<T>, ArenaFullError>) {
        if self.0.as_ref().is_some_and(|cell| cell.is_over(|_| true)) {
            return;
        }
        match create() {
            Ok(handle) => self.created(handle),
            Err(full) => eprintln!("a thread that was spawned from elsewhere is cancelled: {full}"),
        }
    }
}

impl<T> SpawnDuty<T> {
    /// Notes that the thread is created, and its handle.
    pub(crate) fn created(mut self, handle: JoinHandle<T>) {
        let Some(cell) = self.0.take() else { return };
        if let Err(handle) = cell.put(handle) {
            // The thread was given up before it was created.
            handle.cancel();
        }
    }
}

impl<T> Drop for SpawnDuty<T> {
    fn drop(&mut self) {
        if let Some(cell) = self.0.take() {
            cell.close(|_| ());
        }
    }
}

/// The right to wait for the result of a thread that was [spawned from elsewhere](Handle::spawn),
/// or that is [bound](crate::bound) to an OS thread elsewhere. It is a future of `Result<T,
/// JoinError>`.
///
/// Dropping it lets the thread run on. Threads of any scheduler may await it, and
/// [`block_on`](crate::block_on) too.
///
/// # Panics
/// If it is awaited again after it has returned the result.
#[must_use = "awaiting the handle tells a panic of the thread; drop it to let the thread run unobserved"]
pub struct Spawned<T> {
    cell: Arc<SpawnCell<T>>,
    /// Present after the waiter has fetched it from the cell.
    handle: Option<JoinHandle<T>>,
}

impl<T> Spawned<T> {
    /// The right to wait for a thread that is to be created, and the duty to create the thread.
    pub(crate) fn promised() -> (Spawned<T>, SpawnDuty<T>) {
        let cell = Arc::new(SpawnCell::default());
        let duty = SpawnDuty(Some(cell.clone()));
        (Spawned { cell, handle: None }, duty)
    }

    /// Cancels the thread, like [`JoinHandle::cancel`]. A thread that is not created yet will never
    /// be.
    pub fn cancel(&self) {
        if let Some(handle) = &self.handle {
            return handle.cancel();
        }
        // Under one lock, so that the thread cannot be created in between.
        self.cell.close(JoinHandle::cancel);
    }

    /// Whether the thread has ended, or will never be created.
    pub fn is_finished(&self) -> bool {
        if let Some(handle) = &self.handle {
            return handle.is_finished();
        }
        self.cell.is_over(JoinHandle::is_finished)
    }
}

impl<T> From<JoinHandle<T>> for Spawned<T> {
    /// The right to wait for a thread that exists already.
    fn from(handle: JoinHandle<T>) -> Spawned<T> {
        Spawned { cell: Arc::default(), handle: Some(handle) }
    }
}

impl<T> Future for Spawned<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(handle) = &mut self.handle {
            return Pin::new(handle).poll(cx);
        }
        match ready!(self.cell.poll(cx.waker().clone())) {
            Some(handle) => Pin::new(self.handle.insert(handle)).poll(cx),
            None => Poll::Ready(Err(JoinError::Cancelled)),
        }
    }
}

impl<T> fmt::Debug for Spawned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spawned").field("handle", &self.handle).finish_non_exhaustive()
    }
}
