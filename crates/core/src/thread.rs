//! The thread as a value ([`Thread`], [`SendThread`]): an owned, one-shot continuation.
//!
//! Schedulers and event sources have it; `Thread::step` is in `cpu/run.rs`. A handle is the key of
//! the thread's block, so it is made (`from_key`) only by code that took the thread out of a queue,
//! a slot or a CPU that owned it; a second handle of one thread would be a double free. Whether a
//! thread may become a [`SendThread`] is a bit of its header (`MOBILE`).

use crate::arena::{self, Key};
use crate::header::{CANCELLABLE, MOBILE};
use crate::thread_info::ThreadId;
use crate::vtable::vtable;
use std::marker::PhantomData;
use std::num::NonZeroU32;

/// A thread: an owned, one-shot continuation.
///
/// It is the rest of an `async fn` that has stopped at a system call. [`step`](Thread::step) runs
/// it to its next system call and returns the [`Trace`](crate::Trace) node for that, which owns the
/// rest. It cannot be resumed twice. Dropping it cancels it: its destructors run, and no other code
/// of it does.
///
/// A handle is 4 bytes; the thread is one block of 8 bytes plus the size of its future, rounded up
/// to 8.
///
/// # Paper
/// [LZ07 §3.1, Figure 4], [Del §6] (one-shot continuations).
///
/// # Examples
/// ```
/// use selvedge::{Cpu, Trace, yield_now};
///
/// let mut cpu = Cpu::new()?;
/// let thread = cpu.thread(async { yield_now().await })?;
/// let Trace::Yield(rest) = thread.step(&mut cpu) else { panic!() };
/// assert!(matches!(rest.step(&mut cpu), Trace::Ret));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Thread {
    key: Key,
    /// The future may be `!Send`, and the block belongs to one CPU.
    _local: PhantomData<*mut ()>,
}

const _: () = assert!(size_of::<Option<Thread>>() == 4);

impl Thread {
    /// The number of the thread, by which a scheduler may file its own facts about it. It stays the
    /// same for the thread's life. A later thread may have the same number.
    #[inline(always)]
    pub fn id(&self) -> u32 {
        self.key.get()
    }

    /// Its identity, by which code can look at the thread while other code has it.
    #[inline(always)]
    pub fn identity(&self) -> ThreadId {
        ThreadId(self.key)
    }

    /// The name of the thread's code: the type name of its future, or "main".
    pub fn name(&self) -> &'static str {
        (vtable(arena::header(self.key).head()).name)()
    }

    /// Whether a join handle can cancel it while it waits. An event source that is handed such a
    /// thread gives it into the CPU's [keeping](crate::Cpu::keep) and holds the waker. If it held
    /// the thread itself, a cancellation would wait for the event.
    #[inline(always)]
    pub fn is_cancellable(&self) -> bool {
        arena::header(self.key).head() & CANCELLABLE != 0
    }

    #[inline(always)]
    pub(crate) fn key(&self) -> Key {
        self.key
    }

    #[inline(always)]
    pub(crate) fn into_key(self) -> Key {
        let key = self.key;
        std::mem::forget(self);
        key
    }

    /// # Safety
    /// The thread is live and owned by the caller, which gives it up for the handle.
    #[inline(always)]
    pub(crate) unsafe fn from_key(key: Key) -> Thread {
        Thread { key, _local: PhantomData }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        // SAFETY: the handle owned the thread, and is gone.
        unsafe { cancel(self.key) }
    }
}

impl Thread {
    /// The thread in a form that may go to another OS thread, if it may run there: if it was
    /// created by [`spawn`](crate::spawn), [`fork`](crate::fork) or
    /// [`Cpu::send_thread`](crate::Cpu::send_thread) on a CPU of a [`Group`](crate::Group).
    ///
    /// # Errors
    /// Gives the thread back if it belongs to one CPU.
    #[inline(always)]
    pub fn into_send(self) -> Result<SendThread, Thread> {
        if arena::header(self.key).head() & MOBILE == 0 {
            return Err(self);
        }
        Ok(SendThread { key: self.into_key() })
    }
}

/// A [`Thread`] that may be on its way to another CPU of its group: its future is `Send`.
///
/// A handle is 4 bytes, as is an `Option` of one. Dropping it cancels the thread.
pub struct SendThread {
    key: Key,
}

const _: () = assert!(size_of::<Option<SendThread>>() == 4);

impl SendThread {
    /// The thread, to be stepped by a CPU of its group on this OS thread.
    #[inline(always)]
    pub fn into_thread(self) -> Thread {
        // SAFETY: the handle owned the thread.
        unsafe { Thread::from_key(self.into_key()) }
    }

    /// Turns the handle into the number of the thread, as [`Thread::id`], for queues that hold
    /// words.
    #[inline(always)]
    pub fn into_raw(self) -> NonZeroU32 {
        self.into_key()
    }

    /// Turns the number into the handle again.
    ///
    /// # Safety
    /// `raw` came from [`into_raw`](SendThread::into_raw), and is used once.
    #[inline(always)]
    pub unsafe fn from_raw(raw: NonZeroU32) -> SendThread {
        SendThread { key: raw }
    }

    #[inline(always)]
    fn into_key(self) -> Key {
        let key = self.key;
        std::mem::forget(self);
        key
    }
}

impl Drop for SendThread {
    fn drop(&mut self) {
        // SAFETY: the handle owned the thread, and is gone. The thread is mobile (`into_send` has
        // checked it), so its future is `Send` and may be dropped on any OS thread.
        unsafe { cancel(self.key) }
    }
}

impl std::fmt::Debug for SendThread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SendThread({}: {})", self.key, (vtable(arena::header(self.key).head()).name)())
    }
}

impl std::fmt::Debug for Thread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Thread({}: {})", self.key, self.name())
    }
}

/// Runs the destructors of a thread and frees its block.
///
/// # Safety
/// The thread is live, not running, and owned by the caller, which gives it up.
unsafe fn cancel(key: Key) {
    // SAFETY: the vtable is that of the body in this block; the caller's contract.
    unsafe { (vtable(arena::header(key).head()).cancel)(key) };
}
