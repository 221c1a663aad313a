//! Threads with a result, and the handles that wait for it.
//!
//! Such a thread is still one block: before its future lies a [`Cell`](JoinCell) for the result, which the handle
//! reaches. The block goes when both the thread and the handle are gone.

use crate::arena::Key;
use crate::cpu::{CpuInner, create_ready, current, direct, retract};
use crate::exception::Exception;
use crate::place::Place;
use crate::thread::{self, Body, Polled, drop_quietly, poll_to_end, quietly};
use crate::{ArenaFull, Cpu, waker};
use std::any::type_name;
use std::cell::{Cell, UnsafeCell};
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll, Waker};

/// What a joinable thread and its handle share, at the start of the thread's body.
struct JoinCell<T> {
    result: UnsafeCell<Option<Result<T, JoinError>>>,
    /// Who awaits the handle.
    joiner: Cell<Option<Waker>>,
    over: Cell<bool>,
    has_handle: Cell<bool>,
}

/// A joinable thread's body. The cell comes first, so that a handle finds it without knowing the future.
#[repr(C)]
struct Joinable<F: Future> {
    cell: JoinCell<F::Output>,
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
            JoinError::Panicked(e) => write!(f, "the thread ended by an exception: {e}"),
            JoinError::Cancelled => f.write_str("the thread was cancelled"),
        }
    }
}

impl std::error::Error for JoinError {}

/// Creates a thread that runs `future`, and returns a handle to wait for its result.
///
/// The thread is ready at once, behind those that are ready already; dropping the handle lets it run on unobserved. Its
/// block holds the result beside the future: 8 + 24 + the sizes of both, rounded up to 8.
///
/// # Panics
/// Outside of a thread of ours, and if the arena is full: see [`try_spawn`].
///
/// # Paper
/// [Del §2.1] `spawn`.
///
/// # Examples
/// ```
/// use selvedge_core::{round_robin, spawn};
///
/// let sum = round_robin(async {
///     let halves = [spawn(async { 20 }), spawn(async { 22 })];
///     let mut sum = 0;
///     for half in halves {
///         sum += half.await.unwrap();
///     }
///     sum
/// })?;
/// assert_eq!(sum, 42);
/// # Ok::<(), selvedge_core::RunError>(())
/// ```
#[inline]
pub fn spawn<F: Future + 'static>(future: F) -> JoinHandle<F::Output> {
    try_spawn(future).unwrap_or_else(|full| panic!("{full}"))
}

/// As [`spawn`], for a future that must stay on its OS thread.
///
/// # Panics
/// As [`spawn`].
#[inline]
pub fn spawn_local<F: Future + 'static>(future: F) -> JoinHandle<F::Output> {
    spawn(future)
}

/// As [`spawn`], for programs that go on when there is no room for another thread.
///
/// # Errors
/// If the arena is full.
///
/// # Panics
/// Outside of a thread of ours.
#[inline]
pub fn try_spawn<F: Future + 'static>(future: F) -> Result<JoinHandle<F::Output>, ArenaFull> {
    create_joinable(current().expect("spawn() needs a thread of ours to be called in"), future)
}

impl Cpu {
    /// As [`spawn`], from outside: creates a thread with a result and puts it behind those already
    /// [woken](Cpu::woken).
    ///
    /// # Errors
    /// If the arena is full.
    pub fn spawn<F: Future + 'static>(&mut self, future: F) -> Result<JoinHandle<F::Output>, ArenaFull> {
        create_joinable(self.inner(), future)
    }
}

#[inline(always)]
fn create_joinable<F: Future + 'static>(
    cpu: &CpuInner,
    future: F,
) -> Result<JoinHandle<F::Output>, ArenaFull> {
    let future = MaybeUninit::new(future);
    let (key, body) = create_ready(cpu, Joinable { cell: JoinCell::new(), future })?;
    // SAFETY: the body was just created; its cell is the first field.
    let cell = unsafe { NonNull::new_unchecked(&raw mut (*body).cell) };
    Ok(JoinHandle { key, cell, _local: PhantomData })
}

impl<T> JoinCell<T> {
    fn new() -> JoinCell<T> {
        JoinCell {
            result: UnsafeCell::new(None),
            joiner: Cell::new(None),
            over: Cell::new(false),
            has_handle: Cell::new(true),
        }
    }

    /// The thread is over: leaves the result for the handle, if there is one.
    ///
    /// A joiner that is a thread of ours is told at once. Any other waker runs foreign code, which might drop the handle and with
    /// it the block, or panic: it stays here until the block is marked.
    fn conclude(&self, result: Result<T, JoinError>) -> Polled {
        if self.has_handle.get() {
            // SAFETY: written once, by the thread's end; read by the handle only after `over`, on the same OS thread.
            unsafe { *self.result.get() = Some(result) };
            self.over.set(true);
            match self.joiner.take().map(waker::fire_here) {
                Some(Err(foreign)) => {
                    self.joiner.set(Some(foreign));
                    Polled::Untold
                }
                _ => Polled::Kept,
            }
        } else {
            let mut result = std::mem::ManuallyDrop::new(result);
            // SAFETY: it is dropped here, once.
            unsafe { drop_quietly(&raw mut *result) };
            Polled::Done
        }
    }
}

impl<F: Future + 'static> Body for Joinable<F> {
    unsafe fn poll(body: *mut Self, cx: &mut Context<'_>, cpu: &CpuInner) -> Polled {
        // SAFETY: the body is live and pinned, says the caller. The future is touched by its thread alone; the cell is shared
        // with the handle, by reference only.
        let (cell, future) = unsafe { (&(*body).cell, (*body).future.as_mut_ptr()) };
        // SAFETY: as above; if it is not pending it is over, and not polled again.
        let result = match unsafe { poll_to_end(future, cx) } {
            Ok(None) => return Polled::Pending,
            Ok(Some(output)) => Ok(output),
            Err(payload) if cell.has_handle.get() => Err(JoinError::Panicked(Exception::new(payload))),
            Err(payload) => {
                cpu.panicked(payload);
                return Polled::Panicked;
            }
        };
        cell.conclude(result)
    }

    unsafe fn cancel(body: *mut Self) -> Polled {
        // SAFETY: live and not being polled, says the caller; afterwards it is over.
        unsafe { drop_quietly((*body).future.as_mut_ptr()) };
        // SAFETY: the cell is live until both thread and handle are gone.
        unsafe { (*body).cell.conclude(Err(JoinError::Cancelled)) }
    }

    unsafe fn tell(body: *mut Self) {
        // SAFETY: over, and kept for the handle, which nothing has dropped yet. The borrow ends before the waker runs.
        let joiner = unsafe { (*body).cell.joiner.take() };
        if let Some(joiner) = joiner {
            quietly(|| joiner.wake());
        }
    }

    unsafe fn release(body: *mut Self) {
        // SAFETY: over, so that only the cell is left; the caller is the handle, and gives it up.
        unsafe { drop_quietly(&raw mut (*body).cell) };
    }

    fn name() -> &'static str {
        type_name::<F>()
    }
}

/// The right to wait for a thread's result: a future of `Result<T, JoinError>`.
///
/// Dropping it lets the thread run on. The handle stays on the OS thread of the thread it is for; it may be awaited
/// under any executor there.
///
/// # Panics
/// When awaited again after it has returned the result.
#[must_use = "a thread's panic is seen by who awaits its handle; drop it to let the thread run unobserved"]
pub struct JoinHandle<T> {
    key: Key,
    cell: NonNull<JoinCell<T>>,
    _local: PhantomData<*mut T>,
}

impl<T> JoinHandle<T> {
    fn cell(&self) -> &JoinCell<T> {
        // SAFETY: the block is kept until the handle goes; the cell is touched on this OS thread only.
        unsafe { self.cell.as_ref() }
    }

    /// Whether the thread is over.
    pub fn is_finished(&self) -> bool {
        self.cell().over.get()
    }

    /// The result, if the thread is over and it has not been taken before.
    pub fn try_join(&mut self) -> Option<Result<T, JoinError>> {
        // SAFETY: once the thread is over, only the handle reaches the result.
        self.is_finished().then(|| unsafe { (*self.cell().result.get()).take() }).flatten()
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.is_finished() {
            return Poll::Ready(self.try_join().expect("a join handle is not polled after it has ended"));
        }
        let cell = self.cell();
        match direct(cx) {
            Some(cpu) => {
                cell.joiner.set(Some(cpu.keyed_waker()));
                cpu.ask_block(&raw const *self, Place::JOIN, true);
            }
            None => cell.joiner.set(Some(cx.waker().clone())),
        }
        Poll::Pending
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        retract(&raw const *self);
        if self.cell().over.get() {
            // SAFETY: the thread is over and left its block to the handle, which is gone.
            unsafe { thread::release(self.key) };
        } else {
            let joiner = self.cell().joiner.take();
            self.cell().has_handle.set(false);
            // Last: it may be foreign, and the block is no longer the handle's.
            drop(joiner);
        }
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JoinHandle({}{})", self.key, if self.is_finished() { ", over" } else { "" })
    }
}
