//! The system calls that need no answer: letting others run, and coming to an end.

use crate::cpu::{Ask, CpuInner, direct, retract};
use crate::thread::quietly;
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

/// How far a leaf future with one request has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asking {
    Idle,
    /// It has filled the slot.
    Asked,
    /// It has asked otherwise, or has been answered: when polled again it is over.
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

/// As [`CpuInner::ask_with`], with a copy of the waker that a CPU has lent; or else comes back by being woken.
///
/// It never unwinds, and its ABI says so to the compiler, which then has a yield keep nothing on the stack.
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

/// Ends the thread that awaits it, from whatever depth; its destructors run. Who joins it is told
/// [`JoinError::Cancelled`](crate::JoinError::Cancelled).
///
/// It ends the thread, not a body that [`catch`](crate::catch()) runs: for that, return.
///
/// # Panics
/// If it is awaited anywhere but in a thread of ours, or in a combinator that has replaced the waker.
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
