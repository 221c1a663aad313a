//! [`Role`]: what one operation of an object that blocks does.
//!
//! Each operation of `selvedge-sync` that may wait is a type with this trait. `Waiting` and `Queue`
//! call its functions.

use super::list::Queue;

/// One way to wait for an object with state `S` and a queue of payloads `P`: taking from an MVar,
/// or putting into it.
///
/// All functions run under the object's lock. They must not call code of the object's user (a
/// destructor, say, or a `Debug`) that could come back to the object: see
/// [`WaitQueue::with`](crate::WaitQueue::with).
pub trait Role<S, P> {
    /// The result of the wait.
    type Output;

    /// Whether [`pass`](Role::pass) may succeed.
    const PASSES: bool = false;

    /// Whether an [`attempt`](Role::attempt) may succeed. Then the waiter pays for it from the
    /// [budget](crate::budget) of the step. False if no attempt ever succeeds, so that the first
    /// poll always puts the waiter into the queue.
    const IS_PAID: bool = true;

    /// Whether the compiler puts the first poll into the code that awaits. That code then calls no
    /// function when the poll succeeds or has to wait. It is for a role with an
    /// [`attempt`](Role::attempt) of some ten instructions.
    const IS_SHORT: bool = false;

    /// The word that a waiter mostly finds when it can pass. The first exchange then takes it for
    /// the word, and does not read the word before.
    const USUAL: Option<u32> = None;

    /// The new word of the object, if a waiter with this payload can succeed without the lock when
    /// the word is `word`. The waiter then exchanges `word` for the new one, and goes on as after a
    /// grant. `None` if it cannot.
    #[inline(always)]
    fn pass(word: u32, payload: &P) -> Option<u32> {
        let _ = (word, payload);
        None
    }

    /// Tries without waiting. If it returns `None`, the waiter goes into the queue with `payload`.
    fn attempt(state: &mut S, queue: &mut Queue<'_, P>, payload: &mut P) -> Option<Self::Output>;

    /// The result of the wait after a grant. `payload` is as the granter has left it.
    fn granted(payload: &mut P) -> Self::Output;

    /// The waiter has been granted the thing that it waits for, but is dropped without collecting
    /// it. The role passes the thing on to the next waiter, or back to the state.
    fn abandoned(state: &mut S, queue: &mut Queue<'_, P>, payload: &mut P);

    /// Tries again, for the [first](Queue::front) waiter of the queue. It is called when that
    /// waiter is polled without a grant: because of [`Queue::nudge`], or for no reason. If it
    /// returns `Some`, the waiter leaves the queue, and [`withdrawn`](Role::withdrawn) is called.
    #[inline(always)]
    fn retry(state: &mut S, queue: &mut Queue<'_, P>) -> Option<Self::Output> {
        let _ = (state, queue);
        None
    }

    /// The waiter has left the queue without a grant. `first` says whether it was the first one.
    /// The role may grant to the waiters that were behind it.
    #[inline(always)]
    fn withdrawn(state: &mut S, queue: &mut Queue<'_, P>, payload: &mut P, first: bool) {
        let _ = (state, queue, payload, first);
    }
}
