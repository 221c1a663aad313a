//! The system calls that every thread makes, in direct style: `yield_now`, `spawn`, `fork`,
//! `sleep`, `exit`.
//!
//! Each is `wait` (`waiting.rs`) around the future of the same name in `core`. Programs call them
//! on a direct-style stack; any other future goes through `wait` itself.

use crate::direct;
use crate::waiting::{throw_here, wait, wait_or_cease};
use selvedge_core::{JoinHandle, spawn_local};
use std::time::Duration;

/// Lets the other threads run: `yield`.
///
/// # Panics
/// Outside of a direct-style thread.
///
/// # Paper
/// [Del §2.1] `yield`, in the direct style of [Del §4].
#[doc(alias = "yield")]
#[inline(always)]
pub fn yield_now() {
    if wait_or_cease::<_, true>(selvedge_core::yield_now()).is_none() {
        // The future is gone, so this frame has nothing to drop.
        throw_here();
    }
}

/// Creates a direct-style thread, and returns a handle to [`wait`] for its result with. It is ready
/// at once, and stays on this OS thread.
///
/// # Panics
/// Outside of any thread of ours, and if there is no room for another.
///
/// # Paper
/// [Del §2.1] `spawn`.
///
/// # Examples
/// ```
/// use selvedge::round_robin;
/// use selvedge::direct::{direct, spawn, wait};
///
/// let sum = round_robin(direct(|| {
///     let halves = [spawn(|| 20), spawn(|| 22)];
///     halves.map(|half| wait(half).unwrap()).iter().sum::<i32>()
/// }))?;
/// assert_eq!(sum, 42);
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub fn spawn<T: 'static>(body: impl FnOnce() -> T + 'static) -> JoinHandle<T> {
    spawn_local(direct(body))
}

/// Creates a direct-style thread that no thread joins; the scheduler decides which of the two goes
/// on first.
///
/// # Panics
/// Outside of a direct-style thread, and if there is no room for another.
///
/// # Paper
/// [LZ07 Figure 10] `sys_fork`.
pub fn fork(body: impl FnOnce() + 'static) {
    wait(selvedge_core::fork_local(direct(body)));
}

/// Lets at least `duration` pass.
///
/// # Panics
/// Outside of a direct-style thread.
pub fn sleep(duration: Duration) {
    wait(selvedge_core::sleep(duration));
}

/// Ends the thread, from whatever depth: `halt`. Its stack is unwound as by cancellation.
///
/// # Panics
/// As [`selvedge_core::exit`], and outside of a direct-style thread.
///
/// # Paper
/// [Del §2.1] `halt`.
#[doc(alias = "halt")]
pub fn exit() -> ! {
    match wait(selvedge_core::exit()) {}
}
