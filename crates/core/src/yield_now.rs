//! The system calls without an answer: [`yield_now`] lets other threads run, and [`exit`] ends the
//! thread.
//!
//! Programs call them. `yield_now` is also the shortest leaf future of this crate, and so the one
//! to read first: it fills the request slot (`cpu/ask.rs`) at its first poll, and is over at its
//! second. `Asking`, its state, serves `readiness.rs` too.

use crate::cpu::ask::{direct, retract};
use crate::cpu::inner::CpuInner;
use crate::cpu::slot::Ask;
use crate::quietly::quietly;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Lets the other threads run: `yield`.
///
/// # Paper
/// [LZ07 Figure 10] `sys_yield`, [Del §2.1] `yield`.
///
/// # Examples
/// ```
/// use selvedge::{round_robin, yield_now};
///
/// round_robin(async {
///     for _ in 0..3 {
///         yield_now().await;
///     }
/// })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[doc(alias = "sys_yield")]
#[doc(alias = "yield")]
pub fn yield_now() -> YieldNow {
    YieldNow { has_asked: false }
}

/// The system call [`yield_now`].
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct YieldNow {
    has_asked: bool,
}

/// The state of a leaf future with one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asking {
    Idle,
    /// The future has filled the slot.
    Asked,
    /// The future has asked in another way, or has been answered. Its next poll is ready.
    Done,
}

impl Future for YieldNow {
    type Output = ();

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.has_asked {
            self.has_asked = false;
            return Poll::Ready(());
        }
        self.has_asked = true;
        let leaf = (&raw const *self).cast();
        if !CpuInner::ask_with(cx, leaf, Ask::Yield) {
            ask_otherwise(cx.waker(), leaf);
        }
        Poll::Pending
    }
}

/// Asks as [`CpuInner::ask_with`] does, if the waker is a copy of the lent waker of the CPU.
/// Otherwise it wakes the waker, so that the thread runs again.
///
/// It never unwinds, and its ABI says so to the compiler, so that a yield keeps nothing on the
/// stack.
#[cold]
#[inline(never)]
extern "C" fn ask_otherwise(waker: &Waker, leaf: *const ()) {
    let asked = direct(&Context::from_waker(waker)).is_some_and(|cpu| cpu.ask(leaf, Ask::Yield));
    if !asked {
        quietly(|| waker.wake_by_ref());
    }
}

impl Drop for YieldNow {
    #[inline(always)]
    fn drop(&mut self) {
        if self.has_asked {
            retract(&raw const *self);
        }
    }
}

/// Ends the thread that awaits it, at any depth; its destructors run. The thread that joins it gets
/// [`JoinError::Cancelled`](crate::JoinError::Cancelled).
///
/// It ends the thread, and not only a body that [`catch`](crate::catch()) runs. To end such a body,
/// return.
///
/// # Panics
/// If it is awaited outside of a Selvedge thread, or in a combinator that has replaced the waker.
///
/// # Paper
/// [LZ07 Figure 10] `sys_ret`, [Del §2.1] `halt`.
#[doc(alias = "sys_ret")]
#[doc(alias = "halt")]
pub fn exit() -> Exit {
    Exit(())
}

/// The system call [`exit`].
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct Exit(());

impl Future for Exit {
    type Output = std::convert::Infallible;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        direct(cx).expect("exit() is a system call of a thread: here is none").ask_exit();
        Poll::Pending
    }
}
