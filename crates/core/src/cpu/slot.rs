//! The request slot of a CPU ([`Slot`]): the request of the running step, or the end of its thread.
//!
//! `ask.rs` fills it, and `run.rs` and `conclude.rs` take from it at the end of the step. `Ask` is
//! the request as a value; `SlotKind` is its kind in the slot, and also the way in which a thread
//! ended. A new request needs a variant in both, in `fill` and `take`, and an arm in `conclude.rs`.

use crate::Time;
use crate::arena::Key;
use crate::header::{WAITING, WAITING_HERE};
use crate::trace::Readiness;
use crate::vtable::Polled;
use crate::wait_site::WaitSite;
use std::cell::Cell;
use std::ptr;

/// The content of the request slot: the request of the running step.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ask {
    Nothing,
    Yield,
    /// The child's key. The slot owns the child.
    Fork(Key),
    Nbio,
    Wait(Readiness),
    Sleep(Time),
    Call,
    Exit,
    /// The thread waits in a queue that only threads of this CPU reach.
    BlockHere(WaitSite),
    /// The thread waits in a queue that other OS threads reach too.
    Block(WaitSite),
}

/// The request of the running step, or the end of its thread. The kind is a word of its own. Most
/// steps write and read only this word. (One load of a value that several stores have written would
/// wait for the stores.)
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) kind: Cell<SlotKind>,
    /// The child's key, or the wait site.
    pub(super) word: Cell<u32>,
    pub(super) readiness: Cell<Readiness>,
    until: Cell<Time>,
    /// The leaf future that filled the slot. Only this leaf may empty it. The address is the leaf's
    /// own for as long as it lives: the place where it is pinned, or of something on the heap that
    /// it owns. (A leaf that is `Unpin` and has moved asks again, or ends, when it is polled.)
    pub(super) asker: Cell<*const ()>,
}

/// The end of a step: the kind of the request in the slot, or the way in which the thread ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum SlotKind {
    Nothing,
    /// The two ways to block have the numbers of the states of the threads that wait so.
    BlockHere = WAITING_HERE as u8,
    Block = WAITING as u8,
    Yield,
    Fork,
    Nbio,
    Wait,
    Sleep,
    Call,
    Exit,
    Done,
    JoinerTold,
    JoinerPending,
    Panicked,
}

impl SlotKind {
    #[inline(always)]
    pub(super) fn is_block(self) -> bool {
        (self as u8).wrapping_sub(SlotKind::BlockHere as u8) < 2
    }

    pub(super) fn polled(self) -> Polled {
        match self {
            SlotKind::Done => Polled::Done,
            SlotKind::JoinerTold => Polled::JoinerTold,
            SlotKind::JoinerPending => Polled::JoinerPending,
            SlotKind::Panicked => Polled::Panicked,
            _ => Polled::Pending,
        }
    }
}

impl Slot {
    pub(super) fn new() -> Slot {
        Slot {
            kind: Cell::new(SlotKind::Nothing),
            word: Cell::new(0),
            readiness: Cell::new(Readiness::NONE),
            until: Cell::new(Time::default()),
            asker: Cell::new(ptr::null()),
        }
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.kind.get() == SlotKind::Nothing
    }

    #[inline(always)]
    pub(super) fn fill(&self, ask: Ask) {
        self.kind.set(match ask {
            Ask::Nothing => SlotKind::Nothing,
            Ask::Yield => SlotKind::Yield,
            Ask::Fork(child) => {
                self.word.set(child.get());
                SlotKind::Fork
            }
            Ask::Nbio => SlotKind::Nbio,
            Ask::Wait(readiness) => {
                self.readiness.set(readiness);
                SlotKind::Wait
            }
            Ask::Sleep(until) => {
                self.until.set(until);
                SlotKind::Sleep
            }
            Ask::Call => SlotKind::Call,
            Ask::Exit => SlotKind::Exit,
            Ask::BlockHere(site) => {
                self.word.set(site.0);
                SlotKind::BlockHere
            }
            Ask::Block(site) => {
                self.word.set(site.0);
                SlotKind::Block
            }
        });
    }

    #[inline(always)]
    pub(super) fn take(&self) -> Ask {
        match self.kind.replace(SlotKind::Nothing) {
            SlotKind::Nothing => Ask::Nothing,
            SlotKind::Yield => Ask::Yield,
            SlotKind::Fork => Ask::Fork(Key::new(self.word.get()).expect("filled with a key")),
            SlotKind::Nbio => Ask::Nbio,
            SlotKind::Wait => Ask::Wait(self.readiness.get()),
            SlotKind::Sleep => Ask::Sleep(self.until.get()),
            SlotKind::Call => Ask::Call,
            SlotKind::Exit => Ask::Exit,
            SlotKind::BlockHere => Ask::BlockHere(WaitSite(self.word.get())),
            SlotKind::Block => Ask::Block(WaitSite(self.word.get())),
            SlotKind::Done | SlotKind::JoinerTold | SlotKind::JoinerPending | SlotKind::Panicked => {
                Ask::Nothing
            }
        }
    }
}
