//! How the leaf futures of the running thread ask: they fill the request slot (`ask`), or spill a
//! request on behalf of a waker (`spill`).
//!
//! Each leaf future of this crate calls it in its poll: `yield_now.rs`, `fork.rs`, `readiness.rs`,
//! `calling.rs`, `performing.rs`, `join.rs`, and `wait_queue/waiting.rs` for all that blocks.
//! `conclude.rs` and `run.rs` read the slot at the end of the step. A leaf may fill the slot only
//! if the context is the running thread's own (`direct`); and a leaf that is dropped takes its
//! request back (`retract`), or the thread would wait for something that it no longer wants.

use super::inner::{CpuInner, current, lives};
use super::slot::{Ask, SlotKind};
use super::step::{SHIELDED, SPILLED, TIRED};
use crate::alarm::Alarm;
use crate::quietly::quietly;
use crate::thread::Thread;
use crate::trace::{Detached, Request};
use crate::vtable::Polled;
use crate::wait_site::WaitSite;
use crate::waker::{self, Waiter};
use crate::{Call, Nbio};
use std::ptr;
use std::sync::atomic::Ordering;
use std::task::{Context, Waker};

impl CpuInner {
    /// Fills the request slot for a leaf future; false if another has filled it in this step.
    #[inline(always)]
    pub(crate) fn ask<T>(&self, leaf: *const T, ask: Ask) -> bool {
        let free = self.slot.is_empty();
        if free {
            self.slot.fill(ask);
            self.slot.asker.set(leaf.cast());
        }
        free
    }

    /// Fills the request slot for a leaf future that is polled with the running thread's own
    /// context. False if `cx` is another context or has a copy of the lent waker, or if another
    /// leaf has filled the slot in this step.
    #[inline(always)]
    pub(crate) fn ask_with<T>(cx: &Context<'_>, leaf: *const T, ask: Ask) -> bool {
        CpuInner::of(cx).is_some_and(|cpu| cpu.ask(leaf, ask))
    }

    /// Says that the running thread waits in a queue. The owner of the queue has a key or waker to
    /// resume it.
    #[inline(always)]
    pub(crate) fn ask_block<T>(&self, leaf: *const T, site: WaitSite, here: bool) {
        if !self.ask(leaf, if here { Ask::BlockHere(site) } else { Ask::Block(site) }) {
            self.step.share();
        }
    }

    /// The running thread wants to end. Any earlier request of this step is void.
    pub(crate) fn ask_exit(&self) {
        self.retract(self.slot.asker.get());
        self.slot.fill(Ask::Exit);
        // No leaf takes this request back, not even one at the address of an earlier asker.
        self.slot.asker.set(ptr::null());
    }

    /// Whether no leaf has filled the slot.
    #[inline(always)]
    pub(crate) fn asks_nothing(&self) -> bool {
        self.slot.is_empty()
    }

    /// Whether the slot is empty and no flag is set, so that the end of the step needs no long way.
    #[inline(always)]
    pub(crate) fn ends_plainly(&self) -> bool {
        self.step.flags.load(Ordering::Relaxed) == 0 && self.slot.is_empty()
    }

    /// Marks the running step: it stops within a [`shield`](crate::shield()).
    pub(crate) fn shield(&self) {
        self.step.flags.fetch_or(SHIELDED, Ordering::Relaxed);
    }

    /// Whether the running step is marked as one within a shield.
    #[inline(always)]
    pub(crate) fn is_shielded(&self) -> bool {
        self.step.flags.load(Ordering::Relaxed) & SHIELDED != 0
    }

    /// Marks the running step: it has used up a refill of its [budget](crate::budget). True if it
    /// was marked already.
    pub(crate) fn tire(&self) -> bool {
        self.step.flags.fetch_or(TIRED, Ordering::Relaxed) & TIRED != 0
    }

    pub(crate) fn put_call(&self, call: Box<Call>) {
        self.call.set(Some(call));
    }

    pub(crate) fn put_nbio(&self, nbio: Box<Nbio>) {
        self.nbio.set(Some(nbio));
    }

    /// The alarm of the sleep in the slot, for the case that the sleep is served with a waker.
    pub(crate) fn put_alarm(&self, alarm: Alarm) {
        self.alarm.set(Some(alarm));
    }

    pub(crate) fn spill(&self, request: Request, waker: Waker) {
        let waker = waker::tame(waker);
        self.step.flags.fetch_or(SPILLED, Ordering::Relaxed);
        self.spilled.borrow_mut().push_back(Detached { request, waker });
    }

    /// Empties the slot again if this leaf, which is being dropped, has filled it in this step.
    #[inline(always)]
    pub(crate) fn retract(&self, leaf: *const ()) {
        if !self.slot.is_empty() && self.slot.asker.get() == leaf {
            self.empty_slot();
        }
    }

    #[cold]
    fn empty_slot(&self) {
        if let Ask::Fork(child) = self.slot.take() {
            // SAFETY: the slot owned the child.
            drop(unsafe { Thread::from_key(child) });
        }
        self.call.set(None);
        self.nbio.set(None);
        self.alarm.set(None);
        self.tell(|observer| observer.waits_not());
    }

    /// The running thread has ended. A request that it has made in the same step is void.
    #[inline(always)]
    pub(crate) fn ended(&self, polled: Polled) {
        if !self.slot.is_empty() {
            self.void_slot();
        }
        self.slot.kind.set(match polled {
            Polled::Pending => return,
            Polled::Done => SlotKind::Done,
            Polled::JoinerTold => SlotKind::JoinerTold,
            Polled::JoinerPending => SlotKind::JoinerPending,
            Polled::Panicked => SlotKind::Panicked,
        });
    }

    #[cold]
    #[inline(never)]
    fn void_slot(&self) {
        if let Ask::Fork(child) = self.slot.take() {
            // SAFETY: the slot owned the child, which has been created.
            self.push_woken(unsafe { Thread::from_key(child) });
        }
        let beside = (self.call.take(), self.nbio.take(), self.alarm.take());
        quietly(|| drop(beside));
    }

    /// The running thread's own waker, for a queue that calls [`ask_block`](CpuInner::ask_block).
    #[inline(always)]
    pub(crate) fn keyed_waker(&self) -> Waker {
        waker::of(self.step.id, self.step.running.load(Ordering::Relaxed))
    }

    /// The running thread as a waiter, for a queue that calls [`ask_block`](CpuInner::ask_block).
    #[inline(always)]
    pub(crate) fn waiter(&self) -> Waiter {
        Waiter::Ours(self.id_above | u64::from(self.step.running.load(Ordering::Relaxed)))
    }

    /// The running thread's own waker. The step is marked, because other code can wake the thread
    /// now.
    pub(crate) fn shared_waker(&self) -> Waker {
        self.step.share();
        waker::of(self.step.id, self.step.running.load(Ordering::Relaxed))
    }
}

/// The CPU, if `cx` is the context of its running step, so that a request in the slot is the
/// thread's own.
#[inline(always)]
pub(crate) fn direct<'a>(cx: &Context<'_>) -> Option<&'a CpuInner> {
    // The waker is the lent one itself, or else a copy of it.
    CpuInner::of(cx).or_else(|| direct_by_copy(cx.waker()))
}

#[cold]
#[inline(never)]
fn direct_by_copy<'a>(waker: &Waker) -> Option<&'a CpuInner> {
    current().filter(|cpu| waker.data() == ptr::from_ref(*cpu).cast() && waker::is_lent(waker))
}

/// Whether `waker` is the waker that a CPU on this OS thread lends to its steps. Such a waker lives
/// no longer than its CPU, so code that comes back to one later must ask.
pub fn is_lent_here(waker: &Waker) -> bool {
    waker::is_lent(waker) && lives(waker.data().cast())
}

/// A leaf future calls this when it is dropped before its system call has been answered.
#[inline(always)]
pub(crate) fn retract<T>(leaf: *const T) {
    if let Some(cpu) = current() {
        cpu.retract(leaf.cast());
    }
}
