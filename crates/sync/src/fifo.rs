//! The Fifo: [`Fifo`], an unbounded queue between threads.
//!
//! The programs of users call it.

use crate::blocking::wait_blocking;
use selvedge_core::{Local, Mode, Queue, Role, Shared, WaitQueue, constant};
use std::collections::VecDeque;
use std::fmt;

/// An unbounded queue: putting never waits, and taking waits for a value. Values leave it first in,
/// first out. The thread that has waited longest to take is served first.
///
/// A queue in which putting waits too is a [`BoundedFifo`](crate::BoundedFifo).
///
/// # Paper
/// [Del §2.2].
///
/// # Cancellation
/// Dropping a `take` that waits removes it from the queue. If a value had been handed to that
/// `take`, the value goes to the next waiter, or back to the front. Values that other threads have
/// taken in between have then come before it.
///
/// # Complexity
/// One critical section for each operation.
///
/// # Examples
/// ```
/// use selvedge::{round_robin, spawn_local};
/// use selvedge::sync::Fifo;
/// use std::rc::Rc;
///
/// let words = round_robin(async {
///     let fifo = Rc::new(Fifo::new_local());
///     let from = fifo.clone();
///     let reader = spawn_local(async move { [from.take().await, from.take().await] });
///     fifo.put("warp");
///     fifo.put("weft");
///     reader.await.unwrap()
/// })?;
/// assert_eq!(words, ["warp", "weft"]);
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[doc(alias = "mpsc")]
#[doc(alias = "unbounded_channel")]
pub struct Fifo<T, M: Mode = Shared> {
    queue: WaitQueue<VecDeque<T>, Option<T>, M>,
}

impl<T> Fifo<T> {
    constant! {
        /// An empty queue.
        pub fn new() -> Self {
            Fifo { queue: WaitQueue::shared(VecDeque::new(), 0) }
        }
    }
}

impl<T> Fifo<T, Local> {
    /// An empty queue that stays on its OS thread.
    pub fn new_local() -> Self {
        Fifo::default()
    }
}

impl<T, M: Mode> Fifo<T, M> {
    /// Adds a value at the end, or hands it to the first waiter.
    #[inline]
    pub fn put(&self, value: T) {
        self.queue.with(|values, queue| match queue.front() {
            Some(taker) => {
                *taker = Some(value);
                queue.grant();
            }
            None => values.push_back(value),
        });
    }

    /// Takes the first value, and waits for one if need be.
    #[inline(always)]
    #[track_caller]
    pub fn take(&self) -> impl Future<Output = T> {
        self.queue.wait::<Pop>(None)
    }

    /// Takes the first value, and blocks this OS thread until there is one.
    ///
    /// # Panics
    /// When it is called within a step of a Selvedge thread.
    #[track_caller]
    pub fn take_blocking(&self) -> T {
        wait_blocking(self.take())
    }

    /// Takes the first value if there is one.
    #[inline]
    pub fn try_take(&self) -> Option<T> {
        self.queue.with(|values, _| values.pop_front())
    }

    /// The number of values in it.
    pub fn len(&self) -> usize {
        self.queue.with(|values, _| values.len())
    }

    /// Whether no value is in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

enum Pop {}

impl<T> Role<VecDeque<T>, Option<T>> for Pop {
    type Output = T;

    #[inline(always)]
    fn attempt(values: &mut VecDeque<T>, _: &mut Queue<'_, Option<T>>, _: &mut Option<T>) -> Option<T> {
        values.pop_front()
    }

    #[inline(always)]
    fn granted(payload: &mut Option<T>) -> T {
        payload.take().expect("a taker is granted with a value")
    }

    fn abandoned(values: &mut VecDeque<T>, queue: &mut Queue<'_, Option<T>>, payload: &mut Option<T>) {
        match queue.front() {
            Some(taker) => {
                *taker = payload.take();
                queue.grant();
            }
            // This value was the first when it was handed out, so it goes back to the front.
            None => payload.take().into_iter().for_each(|value| values.push_front(value)),
        }
    }
}

impl<T, M: Mode> Default for Fifo<T, M> {
    /// An empty queue.
    fn default() -> Self {
        Fifo { queue: WaitQueue::new(VecDeque::new()) }
    }
}

impl<T, M: Mode> fmt::Debug for Fifo<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fifo({} values)", self.len())
    }
}
