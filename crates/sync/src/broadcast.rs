//! Broadcasting: [`broadcast`] makes a [`Broadcaster`], which sends values, and [`Listener`]s.
//! Every listener gets every value.
//!
//! The programs of users call it. Values are numbered in the order of sending, from 0.

use crate::blocking::wait_blocking;
use selvedge_core::{Local, Mode, Queue, Role, Shared, WaitQueue};
use std::collections::VecDeque;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

/// Sends each value to all [`Listener`]s. Sending never waits. The last `capacity` values are kept
/// for slow listeners. A listener that is too slow for that is told how many values it has
/// [missed](ListenError::Lagged).
///
/// A broadcaster can be cloned. When the last broadcaster is dropped, listeners get the values that
/// are left and then [`ListenError::Closed`].
///
/// # Complexity
/// Sending is one critical section, which grows with the number of waiting listeners. A value is
/// stored once for all listeners.
///
/// # Examples
/// ```
/// use selvedge::{round_robin, spawn_local};
/// use selvedge::sync::{ListenError, broadcast_local};
///
/// round_robin(async {
///     let (broadcaster, mut one) = broadcast_local(2);
///     let mut other = one.clone();
///     let listener = spawn_local(async move { [one.listen().await, one.listen().await] });
///     broadcaster.send("warp");
///     broadcaster.send("weft");
///     assert_eq!(listener.await.unwrap(), [Ok("warp"), Ok("weft")]);
///
///     broadcaster.send("selvedge");
///     drop(broadcaster);
///     assert_eq!(other.listen().await, Err(ListenError::Lagged(1)));
///     assert_eq!(other.listen().await, Ok("weft"));
///     assert_eq!(other.listen().await, Ok("selvedge"));
///     assert_eq!(other.listen().await, Err(ListenError::Closed));
/// })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub struct Broadcaster<T, M: Mode = Shared> {
    inner: Arc<BroadcastChannel<T, M>>,
}

/// Gets all values that are sent from its creation on. A clone gets the values that the original
/// has not got yet.
///
/// # Cancellation
/// Dropping a `listen` that waits, or that has been handed a value, loses nothing: the next
/// `listen` gets that value.
pub struct Listener<T, M: Mode = Shared> {
    inner: Arc<BroadcastChannel<T, M>>,
    /// The number of the next value.
    next: u64,
}

/// The reason why `listen` gives no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenError {
    /// This many values were sent and are no longer kept. The next `listen` gives the oldest value
    /// that is kept.
    Lagged(u64),
    /// The listener has got all values, and all broadcasters are gone.
    Closed,
}

/// The reason why [`Listener::try_listen`] gives no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TryListenError {
    /// The listener has got all values that were sent so far.
    Empty,
    /// This many values were sent and are no longer kept. The next call gives the oldest value that
    /// is kept.
    Lagged(u64),
    /// The listener has got all values, and all broadcasters are gone.
    Closed,
}

/// A broadcaster and its first listener. The last `capacity` values are kept, and at least one.
pub fn broadcast<T>(capacity: usize) -> (Broadcaster<T>, Listener<T>) {
    new(capacity)
}

/// A broadcaster and its first listener that stay on their OS thread.
pub fn broadcast_local<T>(capacity: usize) -> (Broadcaster<T, Local>, Listener<T, Local>) {
    new(capacity)
}

fn new<T, M: Mode>(capacity: usize) -> (Broadcaster<T, M>, Listener<T, M>) {
    let state =
        Backlog { kept: VecDeque::new(), first: 0, capacity: capacity.max(1), senders: 1, listeners: 1 };
    let inner = Arc::new(BroadcastChannel { queue: WaitQueue::new(state) });
    (Broadcaster { inner: inner.clone() }, Listener { inner, next: 0 })
}

struct BroadcastChannel<T, M: Mode> {
    queue: WaitQueue<Backlog<T>, ListenerWait<T>, M>,
}

struct Backlog<T> {
    kept: VecDeque<Arc<T>>,
    /// The number of the oldest value that is kept.
    first: u64,
    capacity: usize,
    senders: usize,
    listeners: usize,
}

impl<T> Backlog<T> {
    fn end(&self) -> u64 {
        self.first + self.kept.len() as u64
    }
}

/// The payload of a listener that waits for the value with the number `next`, which is the value
/// that is sent next.
struct ListenerWait<T> {
    next: u64,
    value: Option<Arc<T>>,
}

impl<T, M: Mode> Broadcaster<T, M> {
    /// Sends a value to all listeners, and gives the number of listeners.
    pub fn send(&self, value: T) -> usize {
        let value = Arc::new(value);
        // The value is dropped outside of the lock, because its destructor may call this object.
        let (listeners, _forgotten) = self.inner.queue.with(|state, queue| {
            let mut forgotten = None;
            if state.kept.len() == state.capacity {
                forgotten = state.kept.pop_front();
                state.first += 1;
            }
            while let Some(first) = queue.front() {
                first.value = Some(value.clone());
                queue.grant();
            }
            state.kept.push_back(value);
            (state.listeners, forgotten)
        });
        listeners
    }

    /// A new listener, which gets all values that are sent from now on.
    pub fn listener(&self) -> Listener<T, M> {
        let next = self.inner.queue.with(|state, _| {
            state.listeners += 1;
            state.end()
        });
        Listener { inner: self.inner.clone(), next }
    }

    /// The number of listeners.
    pub fn listeners(&self) -> usize {
        self.inner.queue.with(|state, _| state.listeners)
    }
}

impl<T: Clone, M: Mode> Listener<T, M> {
    /// The next value. Waits for it if need be.
    ///
    /// # Errors
    /// When values were missed, and when no more values will come.
    #[track_caller]
    pub fn listen(&mut self) -> impl Future<Output = Result<T, ListenError>> {
        let place = Location::caller();
        async move {
            let wait = ListenerWait { next: self.next, value: None };
            let heard = self.inner.queue.wait_at::<Listen>(wait, place).await;
            self.note(heard)
        }
    }

    /// The next value, if it has been sent.
    ///
    /// # Errors
    /// When no value is there yet, when values were missed, and when no more values will come.
    pub fn try_listen(&mut self) -> Result<T, TryListenError> {
        let mut wait = ListenerWait { next: self.next, value: None };
        let heard = self.inner.queue.with(|state, queue| Listen::attempt(state, queue, &mut wait));
        match heard.map(|heard| self.note(heard)) {
            None => Err(TryListenError::Empty),
            Some(Ok(value)) => Ok(value),
            Some(Err(ListenError::Lagged(missed))) => Err(TryListenError::Lagged(missed)),
            Some(Err(ListenError::Closed)) => Err(TryListenError::Closed),
        }
    }

    /// The next value. Blocks this OS thread until it is there.
    ///
    /// # Errors
    /// As [`listen`](Listener::listen).
    ///
    /// # Panics
    /// When it is called within a step of a Selvedge thread.
    #[track_caller]
    pub fn listen_blocking(&mut self) -> Result<T, ListenError> {
        wait_blocking(self.listen())
    }

    fn note(&mut self, heard: Heard<T>) -> Result<T, ListenError> {
        match heard {
            Heard::Value(value) => {
                self.next += 1;
                Ok(Arc::unwrap_or_clone(value))
            }
            Heard::Missed(missed) => {
                self.next += missed;
                Err(ListenError::Lagged(missed))
            }
            Heard::Closed => Err(ListenError::Closed),
        }
    }
}

impl<T, M: Mode> Listener<T, M> {
    /// The number of values that it has not got yet. Values that are no longer kept count too.
    pub fn behind(&self) -> u64 {
        self.inner.queue.with(|state, _| state.end() - self.next)
    }
}

enum Heard<T> {
    Value(Arc<T>),
    Missed(u64),
    Closed,
}

enum Listen {}

impl<T> Role<Backlog<T>, ListenerWait<T>> for Listen {
    type Output = Heard<T>;

    fn attempt(
        state: &mut Backlog<T>,
        _: &mut Queue<'_, ListenerWait<T>>,
        wait: &mut ListenerWait<T>,
    ) -> Option<Heard<T>> {
        let Some(at) = wait.next.checked_sub(state.first) else {
            return Some(Heard::Missed(state.first - wait.next));
        };
        match state.kept.get(at as usize) {
            Some(value) => Some(Heard::Value(value.clone())),
            None => (state.senders == 0).then_some(Heard::Closed),
        }
    }

    fn granted(wait: &mut ListenerWait<T>) -> Heard<T> {
        wait.value.take().map_or(Heard::Closed, Heard::Value)
    }

    /// Nothing is to be passed on, because the listener has not counted the value. Its next
    /// `listen` finds it.
    fn abandoned(_: &mut Backlog<T>, _: &mut Queue<'_, ListenerWait<T>>, _: &mut ListenerWait<T>) {}
}

impl<T, M: Mode> Clone for Broadcaster<T, M> {
    fn clone(&self) -> Self {
        self.inner.queue.with(|state, _| state.senders += 1);
        Broadcaster { inner: self.inner.clone() }
    }
}

impl<T, M: Mode> Clone for Listener<T, M> {
    fn clone(&self) -> Self {
        self.inner.queue.with(|state, _| state.listeners += 1);
        Listener { inner: self.inner.clone(), next: self.next }
    }
}

impl<T, M: Mode> Drop for Broadcaster<T, M> {
    fn drop(&mut self) {
        self.inner.queue.with(|state, queue| {
            state.senders -= 1;
            while state.senders == 0 && !queue.is_empty() {
                queue.grant();
            }
        });
    }
}

impl<T, M: Mode> Drop for Listener<T, M> {
    fn drop(&mut self) {
        self.inner.queue.with(|state, _| state.listeners -= 1);
    }
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenError::Lagged(missed) => write!(f, "{missed} values were missed"),
            ListenError::Closed => f.write_str("all broadcasters are gone"),
        }
    }
}

impl std::error::Error for ListenError {}

impl fmt::Display for TryListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TryListenError::Empty => f.write_str("no value has been sent since"),
            TryListenError::Lagged(missed) => ListenError::Lagged(*missed).fmt(f),
            TryListenError::Closed => ListenError::Closed.fmt(f),
        }
    }
}

impl std::error::Error for TryListenError {}

impl<T, M: Mode> fmt::Debug for Broadcaster<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Broadcaster({} listeners)", self.listeners())
    }
}

impl<T, M: Mode> fmt::Debug for Listener<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Listener({} behind)", self.behind())
    }
}
