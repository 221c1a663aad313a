//! An MVar made of `Rc` and std wakers, without any runtime: the foreign primitive of
//! `foreign-wake`.
//!
//! One taker and one putter may wait at a time, because a ring of threads needs no more. The MVar
//! keeps its waker for as long as that waker would wake the same task.
//!
//! `ours.rs`, `tokio_peer.rs` and `cores.rs` build their rings over it; `child.rs` has the
//! station.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

/// A cell that is empty or full; taking waits for it to be full, putting for it to be empty.
pub(super) struct HandMade<T>(Rc<Inner<T>>);

struct Inner<T> {
    value: Cell<Option<T>>,
    taker: RefCell<Option<Waker>>,
    putter: RefCell<Option<Waker>>,
}

impl<T> Clone for HandMade<T> {
    fn clone(&self) -> Self {
        HandMade(Rc::clone(&self.0))
    }
}

impl<T> HandMade<T> {
    /// An empty cell.
    pub(super) fn new() -> Self {
        HandMade(Rc::new(Inner {
            value: Cell::new(None),
            taker: RefCell::new(None),
            putter: RefCell::new(None),
        }))
    }

    /// Waits until the cell is full, and empties it.
    pub(super) async fn take(&self) -> T {
        poll_fn(|context| match self.0.value.take() {
            Some(value) => {
                wake(&self.0.putter);
                Poll::Ready(value)
            }
            None => wait(&self.0.taker, context),
        })
        .await
    }

    /// Waits until the cell is empty, and fills it.
    pub(super) async fn put(&self, value: T) {
        let mut offered = Some(value);
        poll_fn(|context| match self.0.value.take() {
            None => {
                self.0.value.set(offered.take());
                wake(&self.0.taker);
                Poll::Ready(())
            }
            full => {
                self.0.value.set(full);
                wait(&self.0.putter, context)
            }
        })
        .await;
    }
}

fn wake(waiter: &RefCell<Option<Waker>>) {
    let waiter = waiter.borrow_mut().take();
    if let Some(waker) = waiter {
        waker.wake();
    }
}

fn wait<R>(waiter: &RefCell<Option<Waker>>, context: &Context<'_>) -> Poll<R> {
    keep(&mut waiter.borrow_mut(), context);
    Poll::Pending
}

/// The same for tasks of several OS threads: a mutex instead of cells.
pub(super) struct HandMadeShared<T>(Arc<Mutex<State<T>>>);

struct State<T> {
    value: Option<T>,
    taker: Option<Waker>,
    putter: Option<Waker>,
}

impl<T> Clone for HandMadeShared<T> {
    fn clone(&self) -> Self {
        HandMadeShared(Arc::clone(&self.0))
    }
}

impl<T> HandMadeShared<T> {
    /// An empty cell.
    pub(super) fn new() -> Self {
        HandMadeShared(Arc::new(Mutex::new(State { value: None, taker: None, putter: None })))
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().expect("no panic under this lock")
    }

    /// Waits until the cell is full, and empties it.
    pub(super) async fn take(&self) -> T {
        poll_fn(|context| {
            let mut state = self.state();
            let Some(value) = state.value.take() else {
                keep(&mut state.taker, context);
                return Poll::Pending;
            };
            let putter = state.putter.take();
            drop(state);
            if let Some(waker) = putter {
                waker.wake();
            }
            Poll::Ready(value)
        })
        .await
    }

    /// Waits until the cell is empty, and fills it.
    pub(super) async fn put(&self, value: T) {
        let mut offered = Some(value);
        poll_fn(|context| {
            let mut state = self.state();
            if state.value.is_some() {
                keep(&mut state.putter, context);
                return Poll::Pending;
            }
            state.value = offered.take();
            let taker = state.taker.take();
            drop(state);
            if let Some(waker) = taker {
                waker.wake();
            }
            Poll::Ready(())
        })
        .await;
    }
}

fn keep(waiter: &mut Option<Waker>, context: &Context<'_>) {
    match waiter {
        Some(waker) => waker.clone_from(context.waker()),
        none => *none = Some(context.waker().clone()),
    }
}
