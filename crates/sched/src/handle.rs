//! Spawning threads from elsewhere: from ordinary OS threads, and from threads of other schedulers.

use crate::work_stealing::Shared;
use selvedge_core::{Cpu, JoinError, JoinHandle};
use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

thread_local! {
    /// The scheduler whose worker this OS thread is.
    static HERE: RefCell<Option<Handle>> = const { RefCell::new(None) };
}

/// A way to a [`WorkStealing`](crate::WorkStealing) scheduler from anywhere: from an ordinary OS thread, or from a
/// thread of another scheduler.
///
/// It does not keep the scheduler running.
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
}

impl Handle {
    pub(crate) fn new(shared: Arc<Shared>) -> Handle {
        Handle { shared }
    }

    /// The scheduler of which the calling OS thread is a worker. `None` on any other OS thread.
    pub fn current() -> Option<Handle> {
        HERE.with_borrow(Clone::clone)
    }

    /// Makes the calling OS thread a worker's, until the guard is dropped.
    pub(crate) fn enter(shared: &Arc<Shared>) -> Here {
        Here { outer: HERE.replace(Some(Handle::new(shared.clone()))) }
    }

    /// Creates a thread in the scheduler, and returns a handle to wait for its result from here.
    ///
    /// Within the scheduler itself [`spawn`](selvedge_core::spawn) does the same with less ado. If the scheduler has ended, or ends
    /// before it comes to it, the future is dropped, and the thread counts as cancelled; so it does if the arena is full.
    ///
    /// # Examples
    /// Two schedulers side by side:
    /// ```
    /// use selvedge_core::{NoEvents, round_robin};
    /// use selvedge_sched::{WorkStealing, block_on};
    ///
    /// let workers = WorkStealing::new(2);
    /// let there = workers.handle();
    /// let result = workers.run(|_| Ok(NoEvents::new()), async move {
    ///     let here = std::thread::spawn(move || {
    ///         round_robin(async move { there.spawn(async { 6 * 7 }).await.unwrap() })
    ///     });
    ///     while !here.is_finished() {
    ///         selvedge_core::yield_now().await;
    ///     }
    ///     here.join().unwrap()
    /// })?;
    /// assert_eq!(result.unwrap(), 42);
    /// # Ok::<(), selvedge_sched::Failure>(())
    /// ```
    ///
    /// # Complexity
    /// Two allocations, and a lock.
    pub fn spawn<F>(&self, future: F) -> Spawned<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let place = Arc::new(Place(Mutex::new(State::Unborn(None))));
        let born = Born(Some(place.clone()));
        let birth = move |cpu: &mut Cpu| born.spawn(cpu, future);
        // One that is not taken is dropped, which is noted in its place.
        drop(self.shared.inject(Box::new(birth)));
        Spawned { place, handle: None }
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}

/// For as long as it lives, the calling OS thread is a worker's.
pub(crate) struct Here {
    outer: Option<Handle>,
}

impl Drop for Here {
    fn drop(&mut self) {
        HERE.set(self.outer.take());
    }
}

/// What becomes of a thread that is to be created elsewhere.
enum State<T> {
    /// It is not created yet. Who waits for it.
    Unborn(Option<Waker>),
    /// Its handle, to be fetched.
    Born(JoinHandle<T>),
    /// It never will be; or its handle has been fetched.
    Gone,
}

struct Place<T>(Mutex<State<T>>);

impl<T> Place<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().expect("no panic under this lock")
    }

    /// Cancels the thread if it is born, and sees to it that it never will be if it is not: under one lock, so that it cannot be born
    /// in between.
    fn give_up(&self) {
        let mut state = self.state();
        let waiting = match &mut *state {
            State::Born(handle) => return handle.cancel(),
            State::Unborn(waiting) => waiting.take(),
            State::Gone => return,
        };
        *state = State::Gone;
        drop(state);
        if let Some(waiting) = waiting {
            waiting.wake();
        }
    }

    /// The thread is born, or it never will be. One that is born when it has been given up before is cancelled.
    fn decide(&self, decided: State<T>) {
        let mut state = self.state();
        let State::Unborn(waiting) = &mut *state else {
            if let State::Born(handle) = decided {
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

/// The duty to create the thread. If it is dropped instead, nobody waits in vain.
struct Born<T>(Option<Arc<Place<T>>>);

impl<T: Send> Born<T> {
    fn spawn<F>(mut self, cpu: &mut Cpu, future: F)
    where
        F: Future<Output = T> + Send + 'static,
    {
        if self.0.as_ref().is_none_or(|place| matches!(*place.state(), State::Gone)) {
            return;
        }
        // A future for which there is no room may panic as it is dropped. Then so is the duty.
        let decided = match cpu.spawn(future) {
            Ok(handle) => State::Born(handle),
            Err(full) => {
                eprintln!("a thread that was spawned from elsewhere is cancelled: {full}");
                State::Gone
            }
        };
        if let Some(place) = self.0.take() {
            place.decide(decided);
        }
    }
}

impl<T> Drop for Born<T> {
    fn drop(&mut self) {
        if let Some(place) = self.0.take() {
            place.decide(State::Gone);
        }
    }
}

/// The right to wait for the result of a thread that was [spawned from elsewhere](Handle::spawn): a future of `Result<T, JoinError>`.
///
/// Dropping it lets the thread run on. It may be awaited in threads of any scheduler, and in [`block_on`](crate::block_on).
///
/// # Panics
/// When awaited again after it has returned the result.
#[must_use = "a thread's panic is seen by who awaits its handle; drop it to let the thread run unobserved"]
pub struct Spawned<T> {
    place: Arc<Place<T>>,
    /// Once the thread is born.
    handle: Option<JoinHandle<T>>,
}

impl<T> Spawned<T> {
    /// Cancels the thread, as [`JoinHandle::cancel`] does; if it is not created yet it never will be.
    pub fn cancel(&self) {
        if let Some(handle) = &self.handle {
            return handle.cancel();
        }
        self.place.give_up();
    }

    /// Whether the thread is over, or never will be.
    pub fn is_finished(&self) -> bool {
        if let Some(handle) = &self.handle {
            return handle.is_finished();
        }
        match &*self.place.state() {
            State::Unborn(_) => false,
            State::Born(handle) => handle.is_finished(),
            State::Gone => true,
        }
    }
}

impl<T> Future for Spawned<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(handle) = &mut self.handle {
            return Pin::new(handle).poll(cx);
        }
        // It may be foreign, and is not cloned under the lock.
        let waker = cx.waker().clone();
        let mut state = self.place.state();
        if let State::Unborn(waiting) = &mut *state {
            let replaced = waiting.replace(waker);
            drop(state);
            drop(replaced);
            return Poll::Pending;
        }
        let decided = std::mem::replace(&mut *state, State::Gone);
        drop(state);
        match decided {
            State::Born(handle) => Pin::new(self.handle.insert(handle)).poll(cx),
            _ => Poll::Ready(Err(JoinError::Cancelled)),
        }
    }
}

impl<T> fmt::Debug for Spawned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spawned").field("handle", &self.handle).finish_non_exhaustive()
    }
}
