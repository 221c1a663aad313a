//! Wakers without an allocation or a reference count: the **lent** waker of a step, and **keyed**
//! wakers.
//!
//! A step lends its thread a waker that points at the CPU. Selvedge's leaf futures recognise it and
//! put their request into the CPU's slot. A clone of it is a keyed waker: the CPU's number and the
//! thread's key, packed into the data pointer. A wake-up looks the CPU up by its number. On that
//! CPU's own OS thread it moves the thread to the woken queue; on another it posts the key to the
//! inbox.
//!
//! A keyed waker may outlive its thread. Then it wakes no thread, or wakes a later thread with the
//! same key once too often. That is no harm, because futures must bear being polled without cause.
//!
//! `cpu/inner.rs` keeps the lent waker, and `cpu/ask.rs` recognises it. `wait_queue/list.rs` keeps
//! a [`Waiter`] for each waiter, and `join_state.rs` packs a keyed waker into one word. A foreign
//! waker goes through [`tame`] before an event source or a scheduler has it, so that its panics end
//! there.

use crate::arena::{self, Key};
use crate::cpu::inner::{CpuInner, current};
use crate::cpu::step::Step;
use crate::directory;
use crate::header::MOBILE;
use crate::quietly::quietly;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::Arc;
use std::task::{RawWaker, RawWakerVTable, Wake, Waker};

const _: () = assert!(usize::BITS == 64, "a keyed waker packs two 32-bit numbers into a pointer");

/// The waker that is lent to each step. Its data is the address of the CPU.
static LENT: RawWakerVTable = RawWakerVTable::new(
    |cpu| {
        // SAFETY: the data of a lent waker is the address of a CpuInner (`lent` put it there), and
        // the step in that is never freed.
        let step = unsafe { step_of(cpu) };
        step.share();
        raw(step.id, step.running.load(std::sync::atomic::Ordering::Relaxed))
    },
    // SAFETY: the data of a lent waker is the address of a CpuInner, as above.
    |cpu| unsafe { step_of(cpu) }.notify(),
    // SAFETY: as above.
    |cpu| unsafe { step_of(cpu) }.notify(),
    |_| {},
);

/// The waker that a clone gives. Its data is the CPU's number and the key.
static KEYED: RawWakerVTable = RawWakerVTable::new(|data| RawWaker::new(data, &KEYED), wake, wake, |_| {});

/// # Safety
/// `cpu` is the address of a `CpuInner`; its CPU may be gone. Only `step` is borrowed, which
/// outlives the CPU and may be shared between OS threads.
unsafe fn step_of<'a>(cpu: *const ()) -> &'a Step {
    // SAFETY: the caller's contract; `CpuInner::allocate` has written the step, and never frees it.
    unsafe { &(*cpu.cast::<CpuInner>()).step }
}

fn wake(data: *const ()) {
    let (id, key) = unpack(data);
    if let Some(key) = Key::new(key) {
        resume_in_step(id, key);
    }
}

/// As [`resume`], for a caller in the middle of a step, which may go on for long, or in none.
pub(crate) fn resume_in_step(id: u32, key: Key) {
    match current() {
        Some(cpu) if cpu.is_home_to(key) && cpu.resume_own(key) => {}
        here => resume(here, id, key),
    }
}

/// Resumes a thread of CPU `id`, or a mobile thread that ran there last. It resumes the thread here
/// if the thread may run here, and else through an inbox.
#[inline(always)]
pub(crate) fn resume(here: Option<&CpuInner>, id: u32, key: Key) {
    match here {
        Some(cpu) if cpu.step.id == id || cpu.is_home_to(key) => cpu.resume(key),
        _ if arena::header(key).head() & MOBILE != 0 => {
            directory::post_mobile(arena::owner(key), id, key.get())
        }
        _ => directory::post(id, key.get()),
    }
}

fn raw(id: u32, key: u32) -> RawWaker {
    RawWaker::new(ptr::without_provenance((id as usize) << 32 | key as usize), &KEYED)
}

fn unpack(data: *const ()) -> (u32, u32) {
    ((data.addr() >> 32) as u32, data.addr() as u32)
}

/// The waker that a CPU lends to its steps.
pub(crate) fn lent(cpu: *const CpuInner) -> Waker {
    // SAFETY: the functions of LENT take the address of a CpuInner, also after its CPU is gone, and
    // may be called from any OS thread.
    unsafe { Waker::from_raw(RawWaker::new(cpu.cast(), &LENT)) }
}

/// A waker for a thread, by the CPU's number and the key.
#[inline(always)]
pub(crate) fn of(id: u32, key: u32) -> Waker {
    // SAFETY: the functions of KEYED hold no memory, and accept any two numbers on any OS thread.
    unsafe { Waker::from_raw(raw(id, key)) }
}

#[inline(always)]
pub(crate) fn is_lent(waker: &Waker) -> bool {
    ptr::eq(waker.vtable(), &LENT)
}

/// The CPU's number and the key in a keyed waker. `None` for any other waker.
#[inline(always)]
pub(crate) fn key_of(waker: &Waker) -> Option<(u32, Key)> {
    if !ptr::eq(waker.vtable(), &KEYED) {
        return None;
    }
    let (id, key) = unpack(waker.data());
    Some((id, Key::new(key)?))
}

/// The thread or task that a queue resumes after it has granted it something.
pub(crate) enum Waiter {
    /// A Selvedge thread, as the data of a keyed waker: the thread's key, and the number of the CPU
    /// that ran it when it began to wait.
    Ours(u64),
    /// A task of a foreign executor, or a thread behind the waker of a combinator.
    Foreign(Waker),
}

const _: () = assert!(size_of::<Waiter>() == size_of::<Waker>());

/// The key in the data of a [`Waiter`].
///
/// # Safety
/// The data is of a [`Waiter::Ours`], so it was made of a key.
#[inline(always)]
pub(crate) unsafe fn key_in(data: u64) -> Key {
    // SAFETY: the caller's contract.
    unsafe { Key::new_unchecked(data as u32) }
}

impl Waiter {
    pub(crate) fn of(waker: Waker) -> Waiter {
        match key_of(&waker) {
            Some((id, key)) => Waiter::Ours(u64::from(id) << 32 | u64::from(key.get())),
            None => Waiter::Foreign(waker),
        }
    }

    pub(crate) fn into_waker(self) -> Waker {
        match self {
            Waiter::Ours(data) => of((data >> 32) as u32, data as u32),
            Waiter::Foreign(waker) => waker,
        }
    }

    /// A waiter that resumes nothing.
    pub(crate) fn nothing() -> Waiter {
        Waiter::Foreign(Waker::noop().clone())
    }
}

/// Wakes a keyed waker. For a thread of this CPU that runs no code of the program; for a thread of
/// a CPU that sleeps it runs the [`Unpark`](crate::Unpark) of the event source there.
///
/// # Errors
/// Gives any other waker back.
#[inline(always)]
pub(crate) fn fire_here(waker: Waker) -> Result<(), Waker> {
    match (key_of(&waker), current()) {
        (Some((id, key)), cpu) => {
            resume(cpu, id, key);
            Ok(())
        }
        _ => Err(waker),
    }
}

/// A waker for an event source or a scheduler, which wakes and drops it in places that must not
/// unwind. If the waker is foreign, a panic of its code ends in here, after the panic hook has
/// reported it.
///
/// # Complexity
/// An allocation for a foreign waker. A keyed waker, or one without effect, stays as it is.
pub(crate) fn tame(waker: Waker) -> Waker {
    match ptr::eq(waker.vtable(), &KEYED) || waker.will_wake(Waker::noop()) {
        true => waker,
        false => Waker::from(Arc::new(Tame(ManuallyDrop::new(waker)))),
    }
}

/// A foreign waker. It is never moved out.
struct Tame(ManuallyDrop<Waker>);

impl Wake for Tame {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        quietly(|| self.0.wake_by_ref());
    }
}

impl Drop for Tame {
    fn drop(&mut self) {
        // SAFETY: this drop runs once, and the waker is not used after it.
        quietly(|| unsafe { ManuallyDrop::drop(&mut self.0) });
    }
}
