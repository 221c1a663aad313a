//! [`Handle`] and [`Spawned`]: spawning threads from elsewhere, from ordinary OS threads and from
//! threads of other schedulers.

use selvedge_core::{Adopt, Cpu, JoinError, JoinHandle, adopter};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

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
    /// use selvedge::{NoEvents, round_robin};
    /// use selvedge::{WorkStealing, block_on};
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
    /// # Ok::<(), selvedge::Failure>(())
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
        let birth = move |cpu: &mut Cpu| duty.spawn(cpu, future);
        // If the scheduler does not take `birth`, it drops `birth`, and the drop of `duty` notes
        // that in the cell.
        drop(self.scheduler.adopt(Box::new(birth)));
        spawned
    }
}

/// The state of a thread that is to be created elsewhere.
enum SpawnState<T> {
    /// The thread is not created yet. The waker of the waiter for its result, if there is one.
    Promised(Option<Waker>),
    /// The thread is created. Its handle, which the waiter fetches.
    Created(JoinHandle<T>),
    /// The thread will never be created; or the waiter has fetched its handle.
    Gone,
}

struct SpawnCell<T>(Mutex<SpawnState<T>>);

impl<T> SpawnCell<T> {
    fn state(&self) -> MutexGuard<'_, SpawnState<T>> {
        self.0.lock().expect("no panic under this lock")
    }

    /// Cancels the thread if it is created. If it is not, it will never be. Both happen under one
    /// lock, so that the thread cannot be created in between.
    fn give_up(&self) {
        let mut state = self.state();
        let waiting = match &mut *state {
            SpawnState::Created(handle) => return handle.cancel(),
            SpawnState::Promised(waiting) => waiting.take(),
            SpawnState::Gone => return,
        };
        *state = SpawnState::Gone;
        drop(state);
        if let Some(waiting) = waiting {
            waiting.wake();
        }
    }

    /// Notes that the thread is created, or that it never will be. A thread that was given up
    /// before it was created is cancelled.
    fn decide(&self, decided: SpawnState<T>) {
        let mut state = self.state();
        let SpawnState::Promised(waiting) = &mut *state else {
            if let SpawnState::Created(handle) = decided {
                handle.cancel();
            }
            return;
        };
        let waiting = waiting.take();
        *state = decided;
        drop(state);
        if let Some(waiting) = waiting {
            waiting.wake();
        }
    }
}

/// The duty to create the thread. Dropping it ends the waiter's wait.
pub(crate) struct SpawnDuty<T>(Option<Arc<SpawnCell<T>>>);

impl<T: Send> SpawnDuty<T> {
    fn spawn<F>(self, cpu: &mut Cpu, future: F)
    where
        F: Future<Output = T> + Send + 'static,
    {
        if self.0.as_ref().is_some_and(|cell| matches!(*cell.state(), SpawnState::Gone)) {
            return;
        }
        match cpu.spawn(future) {
            Ok(handle) => self.created(handle),
            Err(full) => eprintln!("a thread that was spawned from elsewhere is cancelled: {full}"),
        }
    }
}

impl<T> SpawnDuty<T> {
    /// Notes that the thread is created, and its handle.
    pub(crate) fn created(mut self, handle: JoinHandle<T>) {
        if let Some(cell) = self.0.take() {
            cell.decide(SpawnState::Created(handle));
        }
    }
}

impl<T> Drop for SpawnDuty<T> {
    fn drop(&mut self) {
        if let Some(cell) = self.0.take() {
            cell.decide(SpawnState::Gone);
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
        let cell = Arc::new(SpawnCell(Mutex::new(SpawnState::Promised(None))));
        let duty = SpawnDuty(Some(cell.clone()));
        (Spawned { cell, handle: None }, duty)
    }

    /// Cancels the thread, like [`JoinHandle::cancel`]. A thread that is not created yet will never
    /// be.
    pub fn cancel(&self) {
        if let Some(handle) = &self.handle {
            return handle.cancel();
        }
        self.cell.give_up();
    }

    /// Whether the thread has ended, or will never be created.
    pub fn is_finished(&self) -> bool {
        if let Some(handle) = &self.handle {
            return handle.is_finished();
        }
        match &*self.cell.state() {
            SpawnState::Promised(_) => false,
            SpawnState::Created(handle) => handle.is_finished(),
            SpawnState::Gone => true,
        }
    }
}

impl<T> Future for Spawned<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(handle) = &mut self.handle {
            return Pin::new(handle).poll(cx);
        }
        // The waker is cloned before the lock is taken, because a foreign waker's code may run in
        // the clone.
        let waker = cx.waker().clone();
        let mut state = self.cell.state();
        if let SpawnState::Promised(waiting) = &mut *state {
            let replaced = waiting.replace(waker);
            drop(state);
            drop(replaced);
            return Poll::Pending;
        }
        let decided = std::mem::replace(&mut *state, SpawnState::Gone);
        drop(state);
        match decided {
            SpawnState::Created(handle) => Pin::new(self.handle.insert(handle)).poll(cx),
            _ => Poll::Ready(Err(JoinError::Cancelled)),
        }
    }
}

impl<T> fmt::Debug for Spawned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spawned").field("handle", &self.handle).finish_non_exhaustive()
    }
}
