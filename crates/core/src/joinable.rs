//! [`Joinable`]: the body of a thread with a result, and the [`JoinCell`] that it shares with its
//! handle.
//!
//! A joinable thread is one block, like any other thread. The cell lies in the block before the
//! future, and a `JoinHandle` (`join.rs`) points to it. The thread writes its result into the cell
//! when it ends, also when it panics or is cancelled. The block is freed when both the thread and
//! the handle are gone: the [`JoinState`] says which of the two frees it.
//!
//! `join.rs` creates these threads. `body.rs` calls the functions of [`ThreadBody`] here, through
//! the table of the thread (`vtable.rs`).

use crate::body::{ThreadBody, poll_to_end};
use crate::cpu::inner::CpuInner;
use crate::exception::Exception;
use crate::join_state::{JoinState, Joiner};
use crate::primitives::Ordering;
use crate::quietly::{drop_quietly, quietly};
use crate::vtable::{HandleSite, Payload, Polled};
use std::any::type_name;
use std::cell::UnsafeCell;
use std::fmt;
use std::future::Future;
use std::mem::MaybeUninit;
use std::sync::atomic::AtomicU8;
use std::task::Context;

/// The data that a joinable thread and its handle share, at the start of the thread's body.
pub(crate) struct JoinCell<T> {
    pub(crate) state: JoinState,
    /// [`CANCELLED`], [`SHIELDED`] and [`STAYS`].
    flags: AtomicU8,
    /// The thread writes it once, before it finishes the state.
    pub(crate) result: UnsafeCell<Option<Result<T, JoinError>>>,
}

/// The handle has cancelled the thread.
const CANCELLED: u8 = 1;
/// The thread has last stopped within a [`shield`](crate::shield()).
const SHIELDED: u8 = 2;
/// The handle has declared that it stays on its OS thread.
const STAYS: u8 = 4;

/// The body of a joinable thread. The cell comes first, because a handle does not know the type of
/// the future. A program's main thread (`MAIN`) is named "main" and not after its future.
#[repr(C)]
pub(crate) struct Joinable<F: Future, const MAIN: bool> {
    pub(crate) cell: JoinCell<F::Output>,
    future: MaybeUninit<F>,
}

/// The thread has no result.
#[derive(Debug)]
pub enum JoinError {
    /// It ended by an exception or a panic.
    Panicked(Exception),
    /// It was cancelled, or called [`exit`](crate::exit).
    Cancelled,
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JoinError::Panicked(exception) => exception.write_end(f),
            JoinError::Cancelled => f.write_str("the thread was cancelled"),
        }
    }
}

impl std::error::Error for JoinError {}

impl<T> JoinCell<T> {
    #[inline(always)]
    fn new() -> JoinCell<T> {
        JoinCell { state: JoinState::default(), flags: AtomicU8::new(0), result: UnsafeCell::new(None) }
    }

    /// The handle cancels the thread.
    pub(crate) fn cancel(&self) {
        self.flags.fetch_or(CANCELLED, Ordering::AcqRel);
    }

    /// The handle stays on its OS thread.
    pub(crate) fn stays(&self) {
        self.flags.fetch_or(STAYS, Ordering::Relaxed);
    }

    /// Leaves the result of the thread for the handle, if there is one. The joiner is told later,
    /// when the block is marked, because the handle may free the block from then on.
    #[inline(always)]
    fn conclude(&self, result: Result<T, JoinError>) -> Polled {
        if self.state.is_handle_gone() {
            return Self::conclude_alone(result);
        }
        // SAFETY: the thread calls this once, at its end. The handle reads the result only after it
        // has seen FINISHED, which the thread stores later.
        unsafe { self.result.get().write(Some(result)) };
        Polled::JoinerPending
    }

    #[inline(never)]
    fn conclude_alone(result: Result<T, JoinError>) -> Polled {
        let mut result = std::mem::ManuallyDrop::new(result);
        // SAFETY: `ManuallyDrop` never drops the result, so it is dropped once, here.
        unsafe { drop_quietly(&raw mut *result) };
        Polled::Done
    }

    #[inline(always)]
    fn is_cancelled(&self) -> bool {
        self.flags.load(Ordering::Acquire) != 0 && self.is_cancelled_by_flags()
    }

    #[inline(never)]
    fn is_cancelled_by_flags(&self) -> bool {
        self.flags.load(Ordering::Acquire) & (CANCELLED | SHIELDED) == CANCELLED
    }

    fn handle(&self) -> HandleSite {
        if self.state.is_handle_gone() || self.flags.load(Ordering::Relaxed) & STAYS != 0 {
            return HandleSite::None;
        }
        self.state.awaited_by().map_or(HandleSite::Anywhere, |(id, key)| HandleSite::AwaitedBy(id, key))
    }

    /// Notes whether the thread has stopped within a shield. Tells whether the thread is cancelled
    /// now.
    #[inline(always)]
    fn has_stopped(&self, shielded: bool) -> bool {
        let usual = !shielded && self.flags.load(Ordering::Acquire) == 0;
        !usual && self.has_stopped_otherwise(shielded)
    }

    #[inline(never)]
    fn has_stopped_otherwise(&self, shielded: bool) -> bool {
        let flags = self.flags.load(Ordering::Relaxed);
        if (flags & SHIELDED != 0) != shielded {
            self.flags.fetch_xor(SHIELDED, Ordering::AcqRel);
        }
        self.is_cancelled()
    }
}

impl<F: Future + 'static, const MAIN: bool> ThreadBody for Joinable<F, MAIN> {
    #[inline]
    unsafe fn poll(body: *mut Self, cx: &mut Context<'_>, cpu: &CpuInner) -> Polled {
        // SAFETY: by the caller's contract the body is live and pinned. Only the thread reaches the
        // future. The handle reaches the cell too, so the cell is borrowed by shared reference.
        let (cell, future) = unsafe { (&(*body).cell, (*body).future.as_mut_ptr()) };
        if cell.is_cancelled() {
            // SAFETY: the future is live and not being polled. After this the caller does not poll
            // it again, because the result is not `Pending`.
            return unsafe { Self::cancelled(body) };
        }
        // SAFETY: the future is live and pinned, as above. If it is not pending, `poll_to_end` has
        // dropped it, and the caller does not poll it again.
        let Some(output) = (unsafe { poll_to_end(future, cx) }) else {
            return match cell.has_stopped(cpu.is_shielded()) {
                // SAFETY: the future is pending, so it is live, and its poll has returned.
                true => unsafe { Self::cancelled(body) },
                false => Polled::Pending,
            };
        };
        match cell.conclude(Ok(output)) {
            Polled::JoinerPending if cpu.ends_plainly() => {
                cpu.mark_finished();
                // SAFETY: `conclude` has written the result, and `mark_finished` has marked the
                // block.
                unsafe { Self::tell_in_step(body, cpu) }
            }
            polled => polled,
        }
    }

    unsafe fn panicked(body: *mut Self, cpu: &CpuInner, payload: Payload) -> Polled {
        // SAFETY: by the caller's contract the future is live and is not polled again. The cell is
        // live until both thread and handle are gone, and the thread is not.
        let cell = unsafe {
            drop_quietly((*body).future.as_mut_ptr());
            &(*body).cell
        };
        if cell.state.is_handle_gone() {
            return cpu.panicked(payload);
        }
        let id = cpu.running().map_or(0, |(_, key)| key.get());
        let exception = Exception::that_ended(id, Self::name(), payload);
        cell.conclude(Err(JoinError::Panicked(exception)))
    }

    unsafe fn cancel(body: *mut Self) -> Polled {
        // SAFETY: the caller's contract.
        unsafe { Self::cancelled(body) }
    }

    unsafe fn tell(body: *mut Self) -> bool {
        // SAFETY: `conclude` has kept the cell for the handle, which frees it only after the
        // exchange in `finish`. The borrow of the cell ends with that exchange.
        match unsafe { (*body).cell.state.finish() } {
            Joiner::None => false,
            Joiner::Waiting(joiner) => {
                // A foreign waker may panic, and so may the `Unpark` of the joiner's event source.
                quietly(|| joiner.wake());
                false
            }
            Joiner::HandleGone => {
                // SAFETY: the handle has been dropped since `conclude`, so this thread has the cell
                // alone.
                unsafe { drop_quietly(&raw mut (*body).cell) };
                true
            }
        }
    }

    unsafe fn release(body: *mut Self) {
        // SAFETY: the thread has finished, so only the cell is left of the body. The caller is the
        // handle, which has the cell alone and gives it up.
        unsafe { drop_quietly(&raw mut (*body).cell) };
    }

    unsafe fn handle(body: *mut Self) -> HandleSite {
        // SAFETY: by the caller's contract the body is live. The cell is borrowed by shared
        // reference.
        unsafe { (*body).cell.handle() }
    }

    fn name() -> &'static str {
        if MAIN { "main" } else { type_name::<F>() }
    }
}

impl<F: Future + 'static, const MAIN: bool> Joinable<F, MAIN> {
    #[inline(always)]
    pub(crate) fn new(future: F) -> Joinable<F, MAIN> {
        Joinable { cell: JoinCell::new(), future: MaybeUninit::new(future) }
    }

    /// Drops the future, and leaves the result `Cancelled`.
    ///
    /// # Safety
    /// As for [`cancel`](ThreadBody::cancel).
    #[cold]
    #[inline(never)]
    unsafe fn cancelled(body: *mut Self) -> Polled {
        // SAFETY: by the caller's contract the future is live and is not polled, now or later. The
        // cell is live until both thread and handle are gone, and the thread is not.
        unsafe {
            drop_quietly((*body).future.as_mut_ptr());
            (*body).cell.conclude(Err(JoinError::Cancelled))
        }
    }

    /// As [`tell`](ThreadBody::tell), in the thread's last step.
    ///
    /// # Safety
    /// As for [`tell`](ThreadBody::tell).
    #[inline(always)]
    unsafe fn tell_in_step(body: *mut Self, cpu: &CpuInner) -> Polled {
        // SAFETY: as in `tell`.
        match unsafe { (*body).cell.state.finish() } {
            Joiner::None => Polled::JoinerTold,
            Joiner::Waiting(joiner) => {
                cpu.tell_in_step(joiner);
                Polled::JoinerTold
            }
            Joiner::HandleGone => {
                // SAFETY: as in `tell`.
                unsafe { drop_quietly(&raw mut (*body).cell) };
                Polled::Done
            }
        }
    }
}
