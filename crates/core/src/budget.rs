//! The budget of a step: how much a thread does without waiting before it lets other threads run.
//!
//! The leaf futures of all crates call it. An operation that need not wait does not end the step:
//! locking a free mutex, taking from a full MVar, reading from a socket with more to read. A thread
//! that loops over such operations would keep its OS thread for ever. So each leaf future pays with
//! [`spend`] before it tries. A thread that has used up its budget yields before its next
//! operation, whatever that is.
//!
//! # The rule
//! 1. An operation between threads costs 1: any wait in a [`WaitQueue`](crate::WaitQueue), the join
//!    of a thread that is over, a sleep that is over, an answer that is there already. A call into
//!    the kernel costs 4, because it takes about that much longer.
//! 2. A step has a budget of at least [`BUDGET`], and of at most twice as much.
//! 3. An operation that has to wait costs nothing, because the wait ends the step.
//! 4. Outside of a step the rule does not hold, because an OS thread that blocks keeps no thread
//!    from running.
//!
//! # Why it costs a step nothing
//! The count belongs to the OS thread, not to the step, and goes on from step to step. An operation
//! subtracts its price with one instruction, and does nothing else while the count is not below 0.
//! When it is, `used_up` refills the count and marks the running step as tired. A step that is
//! tired already is over budget, because it has used up a whole refill since the mark. The mark is
//! one of the bits that send the end of a step through the slow path, which removes the mark. So a
//! step with few operations pays for no reset.

use crate::cpu::inner::{CpuInner, current};
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::task::{Context, Poll};

/// The least total price of operations that a step may make.
pub const BUDGET: u32 = 128;

/// The price of a call into the kernel.
pub const CALL: u32 = 4;

thread_local! {
    /// The rest of the last refill on this OS thread; below 0 when a step is over budget.
    static LEFT: Cell<i32> = const { Cell::new(BUDGET as i32) };
}

/// Pays for an operation that a leaf future is about to try. `Pending` if the running step is over
/// budget. Then the thread runs again behind the others, and the future tries when it is polled
/// next.
///
/// Use it in your own leaf futures if their operations may succeed time after time without waiting.
/// An operation that must wait after all gets its price back with [`refund`].
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
/// Two instructions while the count lasts. One of them writes memory.
#[inline(always)]
pub fn spend(cx: &mut Context<'_>, price: u32) -> Poll<()> {
    match suffices(price) {
        true => Poll::Ready(()),
        false => used_up(cx, false),
    }
}

/// Pays for an operation of an `async fn` that needs no leaf future when it succeeds at once. If
/// the step is over budget, it waits until the thread runs again.
///
/// # Complexity
/// As [`spend`].
#[inline(always)]
pub fn pay(price: u32) -> impl Future<Output = ()> {
    poll_fn(move |cx| spend(cx, price))
}

/// Gives back the price of an operation that has to wait.
#[inline(always)]
pub fn refund(price: u32) {
    LEFT.set(LEFT.get().wrapping_add(price as i32));
}

/// Pays before a fast path to success that bypasses the leaf future. True if the count lasts. If it
/// does not, or if the fast path fails, the caller [refunds](refund) the price and polls the leaf
/// future, which pays for itself.
///
/// # Complexity
/// As [`spend`].
#[inline(always)]
pub fn suffices(price: u32) -> bool {
    // A model repeats its program, and each repetition must make the same steps. So a model has no
    // count that goes on.
    if cfg!(loom) {
        return true;
    }
    let left = LEFT.get().wrapping_sub(price as i32);
    LEFT.set(left);
    // Only the sign is tested, because then the processor subtracts in memory and branches on the
    // flag.
    left >= 0
}

/// Whether the count lasts for one operation. If the operation succeeds, the caller
/// [charges](charge_one) for it.
#[inline(always)]
pub(crate) fn is_left() -> bool {
    cfg!(loom) || LEFT.get() > 0
}

/// Subtracts the price of one operation, which has succeeded. [`is_left`] was true before it.
#[inline(always)]
pub(crate) fn charge_one() {
    if !cfg!(loom) {
        LEFT.set(LEFT.get().wrapping_sub(1));
    }
}

/// As [`spend`], for a call into the kernel. Outside of a step it works too: a task of a foreign
/// executor lets other tasks run each time that its OS thread has used up the count.
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

/// Subtracts a price for work that is done already, however much it was. If it was too much, the
/// next operation is refused.
pub fn charge(price: u32) {
    if suffices(price) {
        return;
    }
    let over = LEFT.get();
    let tired = current().is_some_and(CpuInner::tire);
    LEFT.set(if tired { 0 } else { (over + BUDGET as i32).max(0) });
}

/// Starts the count of a new CPU with a whole refill, so that the same program makes the same steps
/// each time.
pub(crate) fn begin() {
    LEFT.set(BUDGET as i32);
}

#[cold]
#[inline(never)]
fn used_up(cx: &mut Context<'_>, anywhere: bool) -> Poll<()> {
    let here = current();
    let over = match here {
        // A foreign `block_on` within the step polls on and on. It may go on after as many refusals
        // as a refill has operations.
        Some(cpu) => cpu.tire() && LEFT.get() > -(BUDGET as i32),
        None => anywhere,
    };
    // While the step is over budget, the count stays below 0 until the step ends.
    if !over || here.is_none() {
        // Minus 1, because the calling operation goes on, and the refill allows it too.
        LEFT.set(BUDGET as i32 - 1);
    }
    if over {
        cx.waker().wake_by_ref();
        return Poll::Pending;
    }
    Poll::Ready(())
}
