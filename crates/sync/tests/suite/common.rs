//! Random operations, and waiting futures that a test polls and drops by hand.

use proptest::prelude::*;
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

pub(crate) fn config() -> ProptestConfig {
    ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 400 },
        failure_persistence: None,
        ..Default::default()
    }
}

/// A list of operations: each is a number below `kinds`, with an argument.
pub(crate) fn ops(kinds: u8) -> impl Strategy<Value = Vec<(u8, usize)>> {
    prop::collection::vec((0..kinds, 0usize..8), 1..if cfg!(miri) { 16 } else { 80 })
}

pub(crate) fn set(ids: impl IntoIterator<Item = usize>) -> BTreeSet<usize> {
    ids.into_iter().collect()
}

#[derive(Default)]
struct WakeFlag(AtomicBool);

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        assert!(!self.0.swap(true, Ordering::Relaxed), "woken twice");
    }
}

struct Waiter<'a, T> {
    id: usize,
    future: Pin<Box<dyn Future<Output = T> + 'a>>,
    flag: Arc<WakeFlag>,
}

impl<T> Waiter<'_, T> {
    fn poll(&mut self) -> Poll<T> {
        self.flag.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(self.flag.clone());
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }
}

/// The waiting futures, numbered in the order in which they came.
pub(crate) struct Waiters<'a, T> {
    next: usize,
    all: Vec<Waiter<'a, T>>,
}

impl<'a, T> Waiters<'a, T> {
    pub(crate) fn new() -> Self {
        Waiters { next: 0, all: Vec::new() }
    }

    /// Polls a new future. Gives its number, and its result unless it has to wait.
    pub(crate) fn begin(&mut self, future: impl Future<Output = T> + 'a) -> (usize, Option<T>) {
        let id = self.next;
        self.next += 1;
        let mut waiter = Waiter { id, future: Box::pin(future), flag: Arc::default() };
        match waiter.poll() {
            Poll::Ready(result) => (id, Some(result)),
            Poll::Pending => {
                self.all.push(waiter);
                (id, None)
            }
        }
    }

    /// Polls one of the futures, if there is any. A future that is ready is removed.
    pub(crate) fn poll(&mut self, at: usize) -> Option<(usize, Option<T>)> {
        let at = at.checked_rem(self.all.len())?;
        let id = self.all[at].id;
        match self.all[at].poll() {
            Poll::Ready(result) => {
                drop(self.all.remove(at));
                Some((id, Some(result)))
            }
            Poll::Pending => Some((id, None)),
        }
    }

    /// Drops one of the futures, if there is any.
    pub(crate) fn give_up(&mut self, at: usize) -> Option<usize> {
        let at = at.checked_rem(self.all.len())?;
        Some(self.all.remove(at).id)
    }

    /// The futures that have been woken and not polled since.
    pub(crate) fn woken(&self) -> BTreeSet<usize> {
        self.all.iter().filter(|w| w.flag.0.load(Ordering::Relaxed)).map(|w| w.id).collect()
    }
}
