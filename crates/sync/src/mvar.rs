//! The MVar: a variable that is full or empty.
//!
//! Programs use it; it is also the object to read first in this crate, because it is one state, one
//! `WaitQueue` and two roles (`Take`, `Put`). A value that is put while a taker waits goes to that
//! taker directly. `returned` has the values that were granted to a taker which then gave up; they
//! go out before all others, so that the order stays.

use crate::blocking::wait_blocking;
use selvedge_core::{Local, Mode, Queue, Role, Shared, WaitQueue, constant};
use std::collections::VecDeque;
use std::fmt;

/// A variable that is either empty or holds a value: a channel of capacity one, and a lock around
/// what it holds.
///
/// [`take`](MVar::take) waits for a value and leaves the variable empty; [`put`](MVar::put) waits
/// until it is empty. The waiter that has waited longest is served first, and gets the value
/// directly.
///
/// # Paper
/// [Del §2.2], [LZ07 §4.3].
///
/// # Differences
/// 1. Any number of threads may wait on either side; in [Del §4.1] a second one fails.
/// 2. A waiter may give up. If it had been handed a value, that value goes to the next waiter, or
///    back to the variable, in front of the present value.
///
/// # Examples
/// ```
/// use selvedge::{round_robin, spawn_local};
/// use selvedge::sync::MVar;
/// use std::rc::Rc;
///
/// let sum = round_robin(async {
///     let var = Rc::new(MVar::<u32, _>::empty_local());
///     let from = var.clone();
///     let taker = spawn_local(async move { from.take().await + from.take().await });
///     var.put(40).await;
///     var.put(2).await;
///     taker.await.unwrap()
/// })?;
/// assert_eq!(sum, 42);
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub struct MVar<T, M: Mode = Shared> {
    queue: WaitQueue<State<T>, Option<T>, M>,
}

/// While the variable is empty, the waiters in the queue wait to take; while it is full, they wait
/// to put. So one queue serves both.
struct State<T> {
    value: Option<T>,
    /// Values that were handed to takers that have given up. They are older than `value`, and there
    /// are some only while there is a `value`.
    #[expect(clippy::box_collection, reason = "one word, for what is hardly ever there")]
    returned: Option<Box<VecDeque<T>>>,
}

impl<T> MVar<T> {
    constant! {
        /// A full variable.
        pub fn new(value: T) -> Self {
            MVar { queue: WaitQueue::shared(State { value: Some(value), returned: None }, 0) }
        }
    }

    constant! {
        /// An empty variable.
        pub fn empty() -> Self {
            MVar { queue: WaitQueue::shared(State { value: None, returned: None }, 0) }
        }
    }
}

impl<T> MVar<T, Local> {
    /// A full variable that stays on its OS thread.
    pub fn new_local(value: T) -> Self {
        MVar::containing(Some(value))
    }

    /// An empty variable that stays on its OS thread.
    pub fn empty_local() -> Self {
        MVar::containing(None)
    }
}

impl<T, M: Mode> MVar<T, M> {
    fn containing(value: Option<T>) -> Self {
        MVar { queue: WaitQueue::new(State { value, returned: None }) }
    }

    /// Takes the value, waiting for one if need be.
    #[inline(always)]
    #[track_caller]
    pub fn take(&self) -> impl Future<Output = T> {
        self.queue.wait::<Take>(None)
    }

    /// Puts a value, waiting until the variable is empty if need be. Dropping the future while it
    /// waits drops the value.
    #[inline(always)]
    #[track_caller]
    pub fn put(&self, value: T) -> impl Future<Output = ()> {
        self.queue.wait::<Put>(Some(value))
    }

    /// Takes the value, blocking this OS thread until there is one.
    ///
    /// # Panics
    /// When it is called within a step of a Selvedge thread.
    #[track_caller]
    pub fn take_blocking(&self) -> T {
        wait_blocking(self.take())
    }

    /// Puts a value, blocking this OS thread until the variable is empty.
    ///
    /// # Panics
    /// When it is called within a step of a Selvedge thread.
    #[track_caller]
    pub fn put_blocking(&self, value: T) {
        wait_blocking(self.put(value));
    }

    /// Takes the value if there is one.
    #[inline]
    pub fn try_take(&self) -> Option<T> {
        self.queue.with(|state, queue| state.take(queue))
    }

    /// Puts a value if the variable is empty.
    ///
    /// # Errors
    /// Gives the value back if it is full.
    #[inline]
    pub fn try_put(&self, value: T) -> Result<(), T> {
        let mut value = Some(value);
        self.queue.with(|state, queue| state.put(queue, &mut value));
        value.map_or(Ok(()), Err)
    }
}

impl<T> State<T> {
    /// Takes the oldest value. If that is `value`, the first waiter puts its own value.
    #[inline(always)]
    fn take(&mut self, queue: &mut Queue<'_, Option<T>>) -> Option<T> {
        if self.returned.is_some() {
            return self.take_returned();
        }
        let value = self.value.take()?;
        queue.grant_with(|next| self.value = next.take());
        Some(value)
    }

    #[cold]
    #[inline(never)]
    fn take_returned(&mut self) -> Option<T> {
        let returned = self.returned.as_mut()?;
        let value = returned.pop_front();
        if returned.is_empty() {
            self.returned = None;
        }
        value
    }

    /// Moves `value` to the first waiter, or into the empty variable. `None` if the variable is
    /// full; then `value` stays where it is.
    #[inline(always)]
    fn put(&mut self, queue: &mut Queue<'_, Option<T>>, value: &mut Option<T>) -> Option<()> {
        if self.value.is_some() {
            return None;
        }
        // The option is taken apart and put together again. If it were copied as a whole, the
        // processor would read it before the writes to its parts are done.
        if let Some(moved) = value.take() {
            match queue.is_empty() {
                true => self.value = Some(moved),
                false => queue.grant_with(|taker| *taker = Some(moved)),
            }
        }
        Some(())
    }
}

enum Take {}

impl<T> Role<State<T>, Option<T>> for Take {
    type Output = T;

    const IS_SHORT: bool = true;

    #[inline(always)]
    fn attempt(state: &mut State<T>, queue: &mut Queue<'_, Option<T>>, _: &mut Option<T>) -> Option<T> {
        state.take(queue)
    }

    #[inline(always)]
    fn granted(payload: &mut Option<T>) -> T {
        payload.take().expect("a taker is granted with a value")
    }

    fn abandoned(state: &mut State<T>, queue: &mut Queue<'_, Option<T>>, payload: &mut Option<T>) {
        if state.value.is_none() {
            state.put(queue, payload);
        } else if let Some(value) = payload.take() {
            state.returned.get_or_insert_default().push_front(value);
        }
    }
}

enum Put {}

impl<T> Role<State<T>, Option<T>> for Put {
    type Output = ();

    const IS_SHORT: bool = true;

    #[inline(always)]
    fn attempt(
        state: &mut State<T>,
        queue: &mut Queue<'_, Option<T>>,
        payload: &mut Option<T>,
    ) -> Option<()> {
        state.put(queue, payload)
    }

    fn granted(_: &mut Option<T>) {}

    /// Does nothing, because the granter has taken the value, so the put has happened.
    fn abandoned(_: &mut State<T>, _: &mut Queue<'_, Option<T>>, _: &mut Option<T>) {}
}

impl<T, M: Mode> Default for MVar<T, M> {
    /// An empty variable.
    fn default() -> Self {
        MVar::containing(None)
    }
}

impl<T, M: Mode> fmt::Debug for MVar<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let full = self.queue.with(|state, _| state.value.is_some());
        f.write_str(if full { "MVar(full)" } else { "MVar(empty)" })
    }
}
