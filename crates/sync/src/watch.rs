//! Watching a value: [`watch`] makes a [`Setter`], which sets a value, and [`Watcher`]s, which see
//! the latest value.
//!
//! The programs of users call it. Each set counts as one **change**; a watcher remembers the number
//! of the last change that it has seen.

use crate::blocking::wait_blocking;
use selvedge_core::{Local, Mode, Queue, Role, Shared, WaitQueue, budget};
use std::fmt;
use std::mem;
use std::panic::Location;
use std::sync::Arc;

/// Sets a value that [`Watcher`]s watch. Setting never waits. A watcher does not see the values
/// that come and go between two of its reads.
///
/// A setter can be cloned. When the last setter is dropped, watchers see the last value and then
/// [`WatchError`].
///
/// # Complexity
/// Setting is one critical section, which grows with the number of waiting watchers. Reading is one
/// critical section.
///
/// # Examples
/// ```
/// use selvedge::{round_robin, spawn_local};
/// use selvedge::sync::watch_local;
///
/// let seen = round_robin(async {
///     let (setter, mut watcher) = watch_local(0);
///     let thread = spawn_local(async move {
///         let mut seen = vec![*watcher.latest()];
///         while watcher.changed().await.is_ok() {
///             seen.push(*watcher.latest());
///         }
///         seen
///     });
///     selvedge::yield_now().await;
///     setter.set(1);
///     setter.set(2);
///     drop(setter);
///     thread.await.unwrap()
/// })?;
/// assert_eq!(seen, [0, 2]);
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub struct Setter<T, M: Mode = Shared> {
    inner: Arc<WatchChannel<T, M>>,
}

/// Watches a value. It remembers the last change that it has seen. A clone has seen the same.
///
/// # Cancellation
/// Dropping a `changed` that waits, or that has been told of a change, loses nothing: the next
/// `changed` is told of that change.
pub struct Watcher<T, M: Mode = Shared> {
    inner: Arc<WatchChannel<T, M>>,
    seen: u64,
}

/// All setters are gone, so the value will not change again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchError;

/// A setter of a value, and its first watcher. The watcher has seen the value as it is.
pub fn watch<T>(value: T) -> (Setter<T>, Watcher<T>) {
    new(value)
}

/// A setter of a value and its first watcher that stay on their OS thread.
pub fn watch_local<T>(value: T) -> (Setter<T, Local>, Watcher<T, Local>) {
    new(value)
}

fn new<T, M: Mode>(value: T) -> (Setter<T, M>, Watcher<T, M>) {
    let state = LatestValue { value: Arc::new(value), changes: 0, setters: 1 };
    let inner = Arc::new(WatchChannel { queue: WaitQueue::new(state) });
    (Setter { inner: inner.clone() }, Watcher { inner, seen: 0 })
}

struct WatchChannel<T, M: Mode> {
    queue: WaitQueue<LatestValue<T>, ChangeCount, M>,
}

struct LatestValue<T> {
    value: Arc<T>,
    changes: u64,
    setters: usize,
}

/// The payload of a watcher that waits: the number of changes that it has seen, which is all of
/// them. A set writes the new number here. If the last setter goes, the number stays.
struct ChangeCount(u64);

impl<T, M: Mode> Setter<T, M> {
    /// Sets the value, and lets all watchers that wait for a change go on. Gives the old value.
    pub fn set(&self, value: T) -> Arc<T> {
        let value = Arc::new(value);
        self.inner.queue.with(|state, queue| {
            state.changes += 1;
            while let Some(seen) = queue.front() {
                seen.0 = state.changes;
                queue.grant();
            }
            mem::replace(&mut state.value, value)
        })
    }

    /// The present value.
    pub fn latest(&self) -> Arc<T> {
        self.inner.queue.with(|state, _| state.value.clone())
    }

    /// A new watcher, which has seen the present value.
    pub fn watcher(&self) -> Watcher<T, M> {
        let seen = self.inner.queue.with(|state, _| state.changes);
        Watcher { inner: self.inner.clone(), seen }
    }
}

impl<T, M: Mode> Watcher<T, M> {
    /// The present value. This watcher has then seen all changes up to now.
    pub fn latest(&mut self) -> Arc<T> {
        let (value, seen) = self.inner.queue.with(|state, _| (state.value.clone(), state.changes));
        self.seen = seen;
        value
    }

    /// Whether the value has changed since this watcher has last seen it.
    pub fn has_changed(&self) -> bool {
        self.inner.queue.with(|state, _| state.changes != self.seen)
    }

    /// Waits until the value has changed since this watcher has last seen it; that change has then
    /// been seen.
    ///
    /// # Errors
    /// When the value has not changed, and all setters are gone.
    #[track_caller]
    pub fn changed(&mut self) -> impl Future<Output = Result<(), WatchError>> {
        self.changed_at(Location::caller())
    }

    async fn changed_at(&mut self, place: &'static Location<'static>) -> Result<(), WatchError> {
        let changes = self.inner.queue.wait_at::<AwaitChange>(ChangeCount(self.seen), place).await;
        match changes == self.seen {
            true => Err(WatchError),
            false => {
                self.seen = changes;
                Ok(())
            }
        }
    }

    /// Waits until `condition` is true for the value, and gives the value. `condition` first runs
    /// before any wait.
    ///
    /// # Errors
    /// When `condition` is false, and all setters are gone.
    #[track_caller]
    pub fn wait_for(
        &mut self,
        mut condition: impl FnMut(&T) -> bool,
    ) -> impl Future<Output = Result<Arc<T>, WatchError>> {
        let place = Location::caller();
        async move {
            loop {
                let value = self.latest();
                if condition(&value) {
                    budget::pay(1).await;
                    return Ok(value);
                }
                self.changed_at(place).await?;
            }
        }
    }

    /// As [`changed`](Watcher::changed), blocking this OS thread.
    ///
    /// # Errors
    /// When the value has not changed, and all setters are gone.
    ///
    /// # Panics
    /// When it is called within a step of a Selvedge thread.
    #[track_caller]
    pub fn changed_blocking(&mut self) -> Result<(), WatchError> {
        wait_blocking(self.changed())
    }
}

enum AwaitChange {}

impl<T> Role<LatestValue<T>, ChangeCount> for AwaitChange {
    /// The number of changes so far.
    type Output = u64;

    fn attempt(
        state: &mut LatestValue<T>,
        _: &mut Queue<'_, ChangeCount>,
        seen: &mut ChangeCount,
    ) -> Option<u64> {
        (state.changes != seen.0 || state.setters == 0).then_some(state.changes)
    }

    fn granted(seen: &mut ChangeCount) -> u64 {
        seen.0
    }

    /// Nothing is to be passed on, because the watcher has not counted the change. Its next
    /// `changed` finds it.
    fn abandoned(_: &mut LatestValue<T>, _: &mut Queue<'_, ChangeCount>, _: &mut ChangeCount) {}
}

impl<T, M: Mode> Clone for Setter<T, M> {
    fn clone(&self) -> Self {
        self.inner.queue.with(|state, _| state.setters += 1);
        Setter { inner: self.inner.clone() }
    }
}

impl<T, M: Mode> Clone for Watcher<T, M> {
    fn clone(&self) -> Self {
        Watcher { inner: self.inner.clone(), seen: self.seen }
    }
}

impl<T, M: Mode> Drop for Setter<T, M> {
    fn drop(&mut self) {
        self.inner.queue.with(|state, queue| {
            state.setters -= 1;
            while state.setters == 0 && !queue.is_empty() {
                queue.grant();
            }
        });
    }
}

impl fmt::Display for WatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("all setters are gone")
    }
}

impl std::error::Error for WatchError {}

impl<T: fmt::Debug, M: Mode> fmt::Debug for Setter<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Setter").field(&self.latest()).finish()
    }
}

impl<T: fmt::Debug, M: Mode> fmt::Debug for Watcher<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.inner.queue.with(|state, _| state.value.clone());
        f.debug_tuple("Watcher").field(&value).finish()
    }
}
