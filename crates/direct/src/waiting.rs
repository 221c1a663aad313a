//! [`wait`]: a thread in direct style stops in the middle of ordinary code.
//!
//! Programs call it on the stack of a direct-style thread. It polls the future there, with the
//! waker that `thread.rs` has lent to the stack, and switches back to `thread.rs` if the future is
//! pending. When the thread is resumed after a cancellation, it throws the cancellation
//! (`unwinding.rs`).

use crate::stack::{Control, current};
use crate::unwinding::{CancellationFate, fate_of_cancellation};
use selvedge_core::internal::{CancelPayload, is_indivisible, running_cpu};
use std::panic::resume_unwind;
use std::pin::pin;
use std::task::{Context, Poll};

/// How often a thread may catch its own cancellation. After that its waits throw no more.
const THROWN_MAX: u32 = 100;

/// Waits for a future, in the middle of ordinary code: the thread stops here and goes on when the
/// future is ready.
///
/// The future is polled on the thread's own stack, within the thread's steps. So its system calls
/// are the thread's own, as if an `async` thread had awaited it. The code of the future may itself
/// call `wait`, and may poll other direct-style threads. If the future is pending after such an
/// inner `wait`, it is polled once more at once, because a wake-up for it may have resumed the
/// inner `wait`.
///
/// # Panics
/// - Outside of a direct-style thread.
/// - In a `wait` within the poll of another `wait`, if the thread is then resumed with another
///   waker.
/// - Within a step that a scheduler runs on the thread's own stack, because the thread cannot leave
///   its stack before that step ends.
///
/// # Paper
/// [Del §4]: the blocking operations of direct style, all in one.
///
/// # Examples
/// ```
/// use selvedge::{round_robin, yield_now};
/// use selvedge::direct::{direct, wait};
///
/// let sum = round_robin(direct(|| {
///     let numbers = [1, 2, 3].map(|n| wait(async move { yield_now().await; n }));
///     numbers.iter().sum::<i32>()
/// }))?;
/// assert_eq!(sum, 6);
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[inline(always)]
pub fn wait<F: IntoFuture>(future: F) -> F::Output {
    match wait_or_cease::<F::IntoFuture, false>(future.into_future()) {
        Some(output) => output,
        None => unreachable!("it ceases only if it was told to"),
    }
}

/// As [`wait`]. With `CEASES`, a cancellation is not thrown while the future lives: it drops the
/// future and gives `None`.
#[inline(always)]
pub(crate) fn wait_or_cease<F: Future, const CEASES: bool>(future: F) -> Option<F::Output> {
    // SAFETY: `resume` makes it non-null only while the OS thread is on that stack. The
    // stack keeps the control block alive, and this function returns on the same stack.
    let Some(control) = (unsafe { current().as_ref() }) else { refuse_wait() };
    if control.cpu.get() != running_cpu() {
        another_runs();
    }
    let mut future = pin!(future);
    loop {
        let left = control.left.get();
        {
            let _polls = Polls::enter(control);
            // SAFETY: `lend` has set it before this stack was resumed. It does not write it while
            // `Polls` counts a poll.
            let waker = unsafe { &*control.waker.get() };
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(waker)) {
                return Some(output);
            }
        }
        if control.left.get() != left {
            // The stack was left by an inner `wait`. The wake-up that resumed it may have been for
            // this future.
            continue;
        }
        if control.polls.get() > 0 {
            suspend_within(control);
        } else if suspend(control) {
            if CEASES {
                return None;
            }
            throw(control);
        }
    }
}

/// Runs `body` in a part of the thread that cannot be
/// [cancelled](selvedge_core::JoinHandle::cancel): a cancellation takes effect when `body` has
/// returned. The shield does not hold off the drop of a combinator around the thread, or of the
/// scheduler.
///
/// In direct style it has the place of [`selvedge_core::shield`]. That one works in
/// `wait(shield(..))` too, but not if the code of the shielded future calls `wait` itself.
///
/// # Panics
/// Outside of a direct-style thread.
pub fn shield<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: as in `wait`.
    let Some(control) = (unsafe { current().as_ref() }) else { refuse_wait() };
    struct Shielded<'a>(&'a Control);
    impl Drop for Shielded<'_> {
        fn drop(&mut self) {
            self.0.shields.set(self.0.shields.get() - 1);
        }
    }
    control.shields.set(control.shields.get() + 1);
    let _shielded = Shielded(control);
    body()
}

/// Whether the caller runs on the stack of a direct-style thread, so that [`wait`] may be called.
pub fn in_direct() -> bool {
    // SAFETY: as in `wait`.
    unsafe { current().as_ref() }.is_some_and(|control| control.cpu.get() == running_cpu())
}

#[cold]
#[inline(never)]
#[track_caller]
fn another_runs() -> ! {
    panic!(
        "a direct-style thread cannot wait within the step of another thread, which a scheduler runs on its stack"
    )
}

#[cold]
#[inline(never)]
#[track_caller]
fn refuse_wait() -> ! {
    panic!("this is for direct-style threads, and here is none; in an async block, use .await")
}

/// Counts a poll of a future for as long as it lasts, even if it panics.
struct Polls<'a>(&'a Control);

impl<'a> Polls<'a> {
    #[inline(always)]
    fn enter(control: &'a Control) -> Polls<'a> {
        control.polls.set(control.polls.get() + 1);
        Polls(control)
    }
}

impl Drop for Polls<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.polls.set(self.0.polls.get() - 1);
    }
}

/// Switches to the code that resumed the stack, and returns when it is resumed again. True if the
/// thread is cancelled. A thread that is cancelled already throws that first.
#[inline(always)]
fn suspend(control: &Control) -> bool {
    control.unwinding.set(unwinds(control));
    if control.cancelled.get() {
        throw(control);
    }
    // SAFETY: `Fiber::new` has set it at the root of this stack, where the yielder lies.
    unsafe { &*control.yielder.get() }.suspend(());
    control.cancelled.get()
}

/// As [`suspend`], while an outer `wait` has a poll under way on this stack. That poll goes on
/// later with the waker that it has, so a clone keeps the waker's data alive.
#[cold]
fn suspend_within(control: &Control) {
    assert!(
        !is_indivisible(),
        "wait was called within the body of a transaction: the body may not wait. Wait before the transaction, or retry"
    );
    if !control.cancelled.get() {
        // SAFETY: as in `wait`.
        control.cold.kept.set(Some(unsafe { &*control.waker.get() }.clone()));
    }
    control.left.set(control.left.get().wrapping_add(1));
    if suspend(control) {
        throw(control);
    }
}

/// Whether this stack is being unwound, so that the code that waits is a destructor.
///
/// The OS thread counts its panics for all stacks together. If it was panicking already when this
/// stack was entered, the panic may belong to another stack. Then the answer is this function's
/// earlier one (`unwinding`).
#[inline(always)]
fn unwinds(control: &Control) -> bool {
    std::thread::panicking() && (control.unwinding.get() || !control.panicking.get())
}

/// As [`throw`], for the running thread.
#[cold]
#[inline(never)]
pub(crate) fn throw_here() {
    // SAFETY: as in `wait_or_cease`. A thread that was cancelled is on its stack.
    throw(unsafe { &*current() });
}

/// Throws the cancellation. If the stack is being unwound already, or cannot be unwound from here,
/// this does nothing, and the thread goes on until its next wait. If there is nothing to unwind,
/// the stack is left as it is.
#[cold]
#[inline(never)]
fn throw(control: &Control) {
    let thrown = control.cold.thrown.get();
    if control.unwinding.get() || thrown >= THROWN_MAX {
        return;
    }
    match fate_of_cancellation(control.cold.outermost.get()) {
        CancellationFate::Refused => {}
        CancellationFate::Caught => {
            control.cold.thrown.set(thrown + 1);
            control.unwinding.set(true);
            resume_unwind(Box::new(CancelPayload));
        }
        CancellationFate::Idle => leave(control),
    }
}

/// Switches to `Fiber::resume_cancelled` (`thread.rs`), for the last time.
#[cold]
fn leave(control: &Control) {
    control.cold.is_left.set(true);
    // SAFETY: as in `suspend`.
    unsafe { &*control.yielder.get() }.suspend(());
    unreachable!("a stack that was left is not resumed");
}
