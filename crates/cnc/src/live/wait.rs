//! The future of a get of the living environment: [`LiveGet`].
//!
//! The get forks a step that gets the item, and keeps a clone of it in a [`Promise`]. The step is
//! an ordinary one, so reports, counts and faults are those of steps. [`Keeper`] is in the step's
//! closure; when the step is dropped without a value, the promise is broken.
//!
//! A run that is stopped drops its steps only at the end of the graph. So the future also registers
//! its waker with the `RunBell`, which wakes it at the stop.

use super::LiveEnvironment;
use crate::error::{Halted, StepResult};
use crate::items::ItemCol;
use crate::key::ItemKey;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// A clone of an item, for a thread that waits for it.
struct Promise<V>(Mutex<PromiseState<V>>);

enum PromiseState<V> {
    Waiting(Option<Waker>),
    Kept(V),
    /// There will be no value, or it was taken.
    Broken,
}

impl<V> Promise<V> {
    fn lock(&self) -> MutexGuard<'_, PromiseState<V>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the state, if there is none, and wakes the thread.
    fn settle(&self, end: PromiseState<V>) {
        let mut state = self.lock();
        if let PromiseState::Waiting(waker) = &mut *state {
            let waker = waker.take();
            *state = end;
            drop(state);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// The value, or an error if there will be none. Otherwise it keeps the waker.
    fn poll(&self, waker: &Waker) -> Poll<StepResult<V>> {
        let waker = waker.clone();
        let mut state = self.lock();
        let before = match &mut *state {
            PromiseState::Waiting(before) => before.replace(waker),
            _ => return Poll::Ready(self.take(state)),
        };
        drop(state);
        drop(before);
        Poll::Pending
    }

    fn take(&self, mut state: MutexGuard<'_, PromiseState<V>>) -> StepResult<V> {
        match std::mem::replace(&mut *state, PromiseState::Broken) {
            PromiseState::Kept(value) => Ok(value),
            _ => Err(Halted(None)),
        }
    }
}

/// The end of a promise that the step has.
struct Keeper<V>(Arc<Promise<V>>);

impl<V> Drop for Keeper<V> {
    fn drop(&mut self) {
        self.0.settle(PromiseState::Broken);
    }
}

/// The future of [`LiveEnvironment::get`]. The environment stays open while it exists.
///
/// A get that is given up, by a drop of the future, takes no count of a counted item if its step
/// has not begun when the item is there. It is not reported as stuck at the end of the run. Its
/// memory stays until the graph ends, if the item is never put.
#[must_use = "it waits only if it is awaited, or with `wait_blocking`"]
pub struct LiveGet<'g, V> {
    live: LiveEnvironment<'g>,
    promise: Arc<Promise<V>>,
    given_up: Arc<AtomicBool>,
    name: &'g str,
}

impl<'g, V: Clone + Send + Sync + 'g> LiveGet<'g, V> {
    pub(super) fn new<K: ItemKey + 'g>(
        live: &LiveEnvironment<'g>,
        items: ItemCol<'g, K, V>,
        key: K,
    ) -> LiveGet<'g, V> {
        let promise = Arc::new(Promise(Mutex::new(PromiseState::Waiting(None))));
        let (keeper, given_up) = (Keeper(promise.clone()), Arc::new(AtomicBool::new(false)));
        let of_step = given_up.clone();
        // If the run was stopped, the closure is dropped here, and its promise is broken.
        let _ = live.puts(|env| {
            let body = move |step: &crate::StepContext<'g>| {
                let value = step.get(items, key.clone())?.clone();
                keeper.0.settle(PromiseState::Kept(value));
                Ok(())
            };
            env.0.fork_until(body, of_step)
        });
        LiveGet { live: live.clone(), promise, given_up, name: items.name() }
    }
}

impl<V> LiveGet<'_, V> {
    /// The number of the waker at the bell.
    fn number(&self) -> u64 {
        Arc::as_ptr(&self.promise).addr() as u64
    }

    /// Blocks the OS thread until the item is there.
    ///
    /// # Errors
    /// As for [`LiveEnvironment::get`].
    ///
    /// # Examples
    /// See [`LiveEnvironment`].
    pub fn wait_blocking(mut self) -> StepResult<V> {
        struct Unpark(Thread);

        impl Wake for Unpark {
            fn wake(self: Arc<Self>) {
                self.0.unpark();
            }
        }

        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut context = Context::from_waker(&waker);
        loop {
            match Pin::new(&mut self).poll(&mut context) {
                Poll::Ready(value) => return value,
                Poll::Pending => thread::park(),
            }
        }
    }
}

impl<V> Future for LiveGet<'_, V> {
    type Output = StepResult<V>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<StepResult<V>> {
        let ended = self.promise.poll(context.waker());
        if ended.is_pending()
            && !self.live.attention.bell().wake_at_stop(self.number(), context.waker().clone())
        {
            // The run was stopped. The value may have come before that.
            return Poll::Ready(self.promise.take(self.promise.lock()));
        }
        ended
    }
}

impl<V> Unpin for LiveGet<'_, V> {}

impl<V> Drop for LiveGet<'_, V> {
    fn drop(&mut self) {
        if matches!(*self.promise.lock(), PromiseState::Waiting(_)) {
            self.given_up.store(true, Ordering::Relaxed);
            self.live.attention.give_up_some();
        }
        self.live.attention.bell().wake_no_more(self.number());
    }
}

impl<V> fmt::Debug for LiveGet<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LiveGet({})", self.name)
    }
}
