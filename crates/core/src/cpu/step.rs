//! The words of a CPU that other OS threads may touch while it runs a step ([`Step`]), and the bits
//! that send the end of a step the long way.
//!
//! The wakers (`waker.rs`) and the observer's OS thread reach a `Step` from outside; `ask.rs` sets
//! bits, `run.rs` and `conclude.rs` read them. All fields are atomic, and the memory is never freed
//! (`CpuMemory`), because a waker may come when the CPU is gone. A bit that stays set after a step
//! makes every later step of that CPU slow.

use crate::header::STATE;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicIsize, AtomicU8, AtomicU32, Ordering};

/// The thread was woken during its own step: it must run again.
pub(super) const NOTIFIED: u8 = 1;
/// A waker of the thread has been cloned, so other code can wake the thread.
pub(super) const SHARED: u8 = 2;
/// The step has made detached requests.
pub(super) const SPILLED: u8 = 4;
/// The CPU has an observer, and tells it of every step. The bit stays set from step to step.
pub(super) const OBSERVED: u8 = 8;
/// The step has used up a refill of its [budget](crate::budget). The bit does not tell how the step
/// ends.
pub(super) const TIRED: u8 = 16;
/// The step is within a step of another CPU.
pub(super) const NESTED: u8 = 32;
/// The running thread is within a [`shield`](crate::shield()). The bit does not tell how the step
/// ends.
pub(super) const SHIELDED: u8 = 64;

/// The part of a CPU that the waker lent to a step works on. Another OS thread may use that waker
/// during the step.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) id: u32,
    /// The key of the thread that runs, or ran last. `CURRENT` tells which: between steps it is
    /// another CPU or none. The key is 0 between the steps of a CPU that has an observer, because
    /// another OS thread that reads it does not see `CURRENT`.
    pub(crate) running: AtomicU32,
    pub(super) flags: AtomicU8,
    /// The number of threads that the CPU keeps, by their [`STATE`]: the threads that only its own
    /// threads can resume, and the threads that any thread or waker can resume. Only the CPU's OS
    /// thread writes it. In a group, one CPU may keep a thread and another resume it, so only the
    /// sum over the group is a number of threads.
    pub(super) waiting: [Count; 4],
}

impl Step {
    /// The step of the CPU with the number `id`.
    pub(super) fn new(id: u32) -> Step {
        Step { id, running: AtomicU32::new(0), flags: AtomicU8::new(0), waiting: Default::default() }
    }

    pub(crate) fn notify(&self) {
        self.flags.fetch_or(NOTIFIED, Ordering::Relaxed);
    }

    pub(crate) fn share(&self) {
        self.flags.fetch_or(SHARED, Ordering::Relaxed);
    }

    /// The number of its threads in this state: waiting here, or waiting.
    #[inline(always)]
    pub(super) fn in_state(&self, state: u32) -> &Count {
        // The mask does not change the state. With it the compiler checks no bound.
        &self.waiting[(state & STATE) as usize]
    }

    /// The number of threads that the CPU keeps.
    pub(crate) fn waiting(&self) -> isize {
        self.waiting.iter().map(Count::get).sum()
    }
}

/// The memory of all CPUs of one number, one after another: a `CpuInner`, by the address of its
/// first field. It is never freed.
#[derive(Debug)]
pub(crate) struct CpuMemory(NonNull<Step>);

// SAFETY: it is an address. The memory belongs to the CPU of that number, except for the step,
// which is atomic.
unsafe impl Send for CpuMemory {}
// SAFETY: as above.
unsafe impl Sync for CpuMemory {}

impl CpuMemory {
    /// # Safety
    /// At `step` lies a step, which is never freed.
    pub(super) unsafe fn new(step: NonNull<Step>) -> CpuMemory {
        CpuMemory(step)
    }

    pub(super) fn as_ptr(&self) -> *mut Step {
        self.0.as_ptr()
    }

    /// The step of the CPUs of its number.
    pub(crate) fn step(&self) -> &Step {
        // SAFETY: the caller of `new` has promised that a step lies there for ever.
        unsafe { self.0.as_ref() }
    }
}

/// A number that one OS thread changes and others may read.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicIsize);

impl Count {
    #[inline(always)]
    pub(crate) fn add(&self, n: isize) {
        self.0.store(self.0.load(Ordering::Relaxed) + n, Ordering::Relaxed);
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> isize {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}
