//! An MVar made of `Rc` and std wakers, which knows no runtime: the foreign primitive of `foreign-wake`.
//!
//! One taker and one putter may wait at a time, which is all a ring of threads needs. It keeps the waker it has as
//! long as that would wake the same task, as a careful author of such a primitive would.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
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
    let mut waiter = waiter.borrow_mut();
    match &mut *waiter {
        Some(waker) => waker.clone_from(context.waker()),
        none => *none = Some(context.waker().clone()),
    }
    Poll::Pending
}
