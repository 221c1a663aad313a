//! The budget of a step: how much a thread does without waiting before it lets the others run.
//!
//! An operation that need not wait does not end the step: a mutex that is free, an MVar that is full, a socket with more to read. A thread
//! that loops over such operations would keep its OS thread for ever. So each leaf future pays with [`spend`] before
//! it tries. A thread whose budget is used up yields before its next operation, whatever that is.
//!
//! # The rule
//! 1. An operation of the threads among themselves costs 1: whatever waits in a [`WaitQueue`](crate::WaitQueue), the join of a thread that
//!    is over, a sleep that is over, an answer that is there already. A call into the kernel costs 4, because it takes that much longer.
//! 2. A step has a budget of at least [`BUDGET`], and of at most twice as much.
//! 3. An operation that has to wait costs nothing, because the wait ends the step.
//! 4. Outside of a step the rule does not hold: an OS thread that blocks keeps no other from running.
//!
//! # Why it costs a step nothing
//! The count lies with the OS thread, not with the step, and goes on from step to step. An operation takes its price off with
//! one instruction, and looks no further while something is left. When nothing is left, `used_up` refills the count and marks the running
//! step as tired. A step that is tired already is over budget: a whole refill is used up since the mark. The mark is one of the bits
//! that send the end of a step the long way, which removes it. So a step that does few operations pays for no reset.

use crate::cpu::{CpuInner, current};
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::task::{Context, Poll};

/// What the operations of a step may cost together, at least.
pub const BUDGET: u32 = 128;

/// The price of a call into the kernel.
pub const CALL: u32 = 4;

thread_local! {
    /// What is left of the last refill on this OS thread; below 0 when a step is over budget.
    static LEFT: Cell<i32> = const { Cell::new(BUDGET as i32) };
}

/// Pays for an operation that a leaf future is about to try. `Pending` if the running step is over budget: then the thread is
/// to run again, behind the others, and the future tries when it is polled next.
///
/// For leaf futures of one's own whose operations may succeed time after time without waiting. An operation that finds that it has to wait
/// gets its price back with [`refund`].
///
/// # Examples
/// A leaf future that never waits, and lets the others run all the same:
/// ```
/// use selvedge_core::{budget, round_robin, spawn_local};
/// use std::cell::Cell;
/// use std::future::poll_fn;
/// use std::rc::Rc;
/// use std::task::{Poll, ready};
///
/// round_robin(async {
///     let stop = Rc::new(Cell::new(false));
///     let other = spawn_local({
///         let stop = stop.clone();
///         async move { stop.set(true) }
///     });
///     while !stop.get() {
///         poll_fn(|cx| {
///             ready!(budget::spend(cx, 1));
///             Poll::Ready(())
///         })
///         .await;
///     }
///     other.await.unwrap();
/// })?;
/// # Ok::<(), selvedge_core::RunError>(())
/// ```
///
/// # Complexity
/// Two instructions while something is left, of which one writes memory.
#[inline(always)]
pub fn spend(cx: &mut Context<'_>, price: u32) -> Poll<()> {
    match suffices(price) {
        true => Poll::Ready(()),
        false => used_up(cx, false),
    }
}

/// Pays for an operation of an `async fn` that needs no leaf future when it succeeds at once. Waits until the thread runs again if the step is
/// over budget.
///
/// # Complexity
/// As [`spend`].
#[inline(always)]
pub fn pay(price: u32) -> impl Future<Output = ()> {
    poll_fn(move |cx| spend(cx, price))
}

/// Gives the price of an operation back that has to wait.
#[inline(always)]
pub fn refund(price: u32) {
    LEFT.set(LEFT.get().wrapping_add(price as i32));
}

/// Pays before a short way to success that leads past the leaf future; whether something is left. If not, or if the short way fails,
/// the caller [refunds](refund) the price and polls the leaf future, which pays for itself.
///
/// # Complexity
/// As [`spend`].
#[inline(always)]
pub fn suffices(price: u32) -> bool {
    // A model repeats its program, and each repetition must make the same steps: it has no count that goes on.
    if cfg!(loom) {
        return true;
    }
    let left = LEFT.get().wrapping_sub(price as i32);
    LEFT.set(left);
    // The sign alone: with it the processor subtracts in memory and branches on the flag.
    left >= 0
}

/// Whether something is left for an operation that is [charged](charge_one) when it has succeeded.
#[inline(always)]
pub(crate) fn is_left() -> bool {
    cfg!(loom) || LEFT.get() > 0
}

/// Takes the price of an operation off for which something was [left](is_left).
#[inline(always)]
pub(crate) fn charge_one() {
    if !cfg!(loom) {
        LEFT.set(LEFT.get().wrapping_sub(1));
    }
}

/// As [`spend`], for a call into the kernel; outside of a step too, where a task of a foreign executor lets the others run each time
/// that the OS thread has used up the count.
///
/// # Complexity
/// As [`spend`].
#[inline(always)]
pub fn spend_on_call(cx: &mut Context<'_>) -> Poll<()> {
    match suffices(CALL) {
        true => Poll::Ready(()),
        false => used_up(cx, true),
    }
}

/// Takes a price off for what has been done already, however much that is: the next operation is refused if that was too much.
pub fn charge(price: u32) {
    if suffices(price) {
        return;
    }
    let over = LEFT.get();
    let tired = current().is_some_and(CpuInner::tire);
    LEFT.set(if tired { 0 } else { (over + BUDGET as i32).max(0) });
}

/// A new CPU begins with a whole refill, so that the same program makes the same steps each time.
pub(crate) fn begin() {
    LEFT.set(BUDGET as i32);
}

#[cold]
#[inline(never)]
fn used_up(cx: &mut Context<'_>, anywhere: bool) -> Poll<()> {
    let here = current();
    let over = match here {
        // A foreign `block_on` within the step polls on and on: after as many refusals as a refill has operations it may go on.
        Some(cpu) => cpu.tire() && LEFT.get() > -(BUDGET as i32),
        None => anywhere,
    };
    // A step stays over budget until it ends.
    if !over || here.is_none() {
        // Less 1, because the operation that asked goes on and is one of those that the refill allows.
        LEFT.set(BUDGET as i32 - 1);
    }
    if over {
        cx.waker().wake_by_ref();
        return Poll::Pending;
    }
    Poll::Ready(())
}
