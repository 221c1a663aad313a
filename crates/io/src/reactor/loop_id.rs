//! The numbers of the event loops, and the proof that a loop has served a wait: [`LoopId`] and
//! [`Fresh`].
//!
//! `EventLoop` takes a number for its life and counts the fresh waits that it serves
//! (`note_fresh`). `NonBlocking` makes a `Fresh` when a wait begins, and asks it at the wait's end
//! whether the loop may be added to the descriptor's `Registrations`. Adding a loop that has not
//! served a fresh wait loses edges: see "Between loops" in the head of `reactor/mod.rs`.

use crate::sys;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::num::NonZeroU16;
use std::os::fd::RawFd;
use std::sync::{Mutex, PoisonError};

thread_local! {
    /// The number of this OS thread's event loop, if it has one.
    pub(super) static HERE: Cell<Option<LoopId>> = const { Cell::new(None) };
    /// The number of fresh waits that the loops of this OS thread have served, modulo 2³², by the
    /// descriptor's [`sys::index`].
    static FRESH: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

/// The loop of this OS thread serves a fresh wait for `fd`.
#[cold]
pub(super) fn note_fresh(fd: RawFd) {
    let Some(index) = sys::index(fd) else { return };
    FRESH.with_borrow_mut(|fresh| {
        if index >= fresh.len() {
            fresh.resize((index + 1).next_power_of_two().max(64), 0);
        }
        fresh[index] = fresh[index].wrapping_add(1);
    });
}

fn fresh_waits(fd: RawFd) -> u32 {
    FRESH.with_borrow(|fresh| sys::index(fd).and_then(|index| fresh.get(index)).copied().unwrap_or(0))
}

/// A wait that began fresh in a loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fresh {
    at: LoopId,
    fd: RawFd,
    /// The number of fresh waits for `fd` that the loop had served when this wait began.
    before: u32,
}

impl Fresh {
    /// A wait for a descriptor begins in the loop `here`.
    #[inline]
    pub(crate) fn at(here: LoopId, fd: RawFd) -> Fresh {
        Fresh { at: here, fd, before: fresh_waits(fd) }
    }

    /// The loop, if it has surely served a fresh wait for this file since this wait began: this
    /// wait or another one. The loop need not have served this wait, because a request may be given
    /// up with its thread, or may be left where the step has put it. The OS thread of another loop
    /// cannot know this and gets `None`. The next wait in that loop is then fresh once more.
    pub(crate) fn served(self) -> Option<LoopId> {
        let served = match HERE.get() == Some(self.at) {
            true => fresh_waits(self.fd) != self.before,
            // The loop for foreign executors serves a wait at the moment of the request.
            false => self.at == LoopId::FALLBACK,
        };
        served.then_some(self.at)
    }
}

/// The number of an event loop among the event loops that the process has at a time. The number of
/// a loop that has ended is given to another loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoopId(NonZeroU16);

/// The numbers in use.
static TAKEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

impl LoopId {
    /// The number of the one loop that serves futures outside the schedulers of this project.
    pub(crate) const FALLBACK: LoopId = LoopId(NonZeroU16::MIN);

    /// The loop that serves the waits that begin now: in a `Thread` the loop of this OS thread,
    /// otherwise the loop for foreign executors. `None` if the scheduler has an event source of
    /// another kind.
    #[inline]
    pub(crate) fn here() -> Option<LoopId> {
        if selvedge_core::in_thread() { HERE.get() } else { Some(LoopId::FALLBACK) }
    }

    /// The smallest number that no loop has; `None` if all 65,535 numbers are taken.
    pub(crate) fn take() -> Option<LoopId> {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let free = (LoopId::FALLBACK.to_bits() + 1..=u16::MAX).find(|number| !taken.contains(number))?;
        taken.insert(free);
        NonZeroU16::new(free).map(LoopId)
    }

    /// The number is free again, because its loop has ended.
    pub(crate) fn give_back(self) {
        TAKEN.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.to_bits());
    }

    pub(crate) const fn to_bits(self) -> u16 {
        self.0.get()
    }
}
