//! [`NodeExtra`]: what few nodes have, in a box of its own, and [`NodeAbout`], the word of a node
//! that leads there.
//!
//! Most values are made, evaluated and read without a second thread, a failure or a name. A node
//! of such a value has only the place that made it. So a node is small, and its state lies in one
//! line of the cache with its value.
//!
//! A box is made at most once, and is freed with the node. `name`, the claimant of a node and a
//! thread that waits make it. `waiters.rs` says which of them needs a fence.

use super::NodeHead;
use super::waiters::WatchedNode;
use crate::circle::Label;
use crate::failed::NoValue;
use crate::primitives::{AtomicPtr, AtomicU32, Ordering};
use selvedge_core::WaitQueue;
use std::cell::UnsafeCell;
use std::panic::Location;
use std::ptr::{self, NonNull};

/// What few nodes have.
pub(super) struct NodeExtra {
    /// Written while there is one handle.
    pub(super) label: Label,
    /// The threads that wait for the end of an evaluation.
    pub(super) waiters: WaitQueue<WatchedNode, ()>,
    /// The record of the evaluation in the table of `circle.rs`. The claimant has it; it stays with
    /// a frozen body.
    pub(super) record: AtomicU32,
    /// The parent of that record, for a look without the lock.
    pub(super) parent: AtomicU32,
    /// Written before the state is FAILED.
    pub(super) failed: UnsafeCell<Option<NoValue>>,
}

/// In the word: the rest of it is the address of a [`NodeExtra`]. Without it the word is the
/// address of a [`Location`]. Both types are aligned to two bytes at least.
const EXTRA: usize = 1;

/// The place that made a value, or the box.
pub(super) struct NodeAbout(AtomicPtr<()>);

impl NodeAbout {
    pub(super) fn new(place: &'static Location<'static>) -> NodeAbout {
        NodeAbout(AtomicPtr::new(ptr::from_ref(place).cast_mut().cast()))
    }

    /// The box.
    #[inline(always)]
    pub(super) fn extra(&self) -> Option<&NodeExtra> {
        let word = self.0.load(Ordering::Acquire);
        // SAFETY: the word has the mark, so it was stored by `extra_of`, with a box that is freed
        // with this word.
        (word.addr() & EXTRA != 0).then(|| unsafe { &*boxed(word) })
    }

    pub(super) fn label(&self) -> Label {
        let word = self.0.load(Ordering::Acquire);
        match word.addr() & EXTRA {
            0 => label_of_place(word),
            // SAFETY: as in `extra`.
            _ => unsafe { (*boxed(word)).label },
        }
    }

    /// Names the value. The word is not borrowed exclusively for that, because the box has a
    /// pointer to the node.
    ///
    /// # Safety
    /// There is a box, and the caller has the only handle of the node.
    pub(super) unsafe fn name(&self, name: &'static str) {
        // SAFETY: as in `extra`. No other thread reads the label, because there is no other handle.
        unsafe { (*boxed(self.0.load(Ordering::Acquire))).label.name = name };
    }
}

impl Drop for NodeAbout {
    fn drop(&mut self) {
        let word = self.0.load(Ordering::Relaxed);
        if word.addr() & EXTRA != 0 {
            // SAFETY: the box was made for this node. A waiter borrows a handle, so there is none.
            drop(unsafe { Box::from_raw(boxed(word)) });
        }
    }
}

/// The label of a node with this word, which has no mark.
fn label_of_place(word: *mut ()) -> Label {
    // SAFETY: a word without the mark is the place of `NodeAbout::new`.
    Label { name: "", place: unsafe { &*word.cast::<Location<'static>>() } }
}

/// The box of a word that has the mark.
#[inline(always)]
fn boxed(word: *mut ()) -> *mut NodeExtra {
    word.map_addr(|address| address & !EXTRA).cast()
}

impl NodeHead {
    /// The box, made if there is none, and whether this call has made it.
    #[cold]
    pub(super) fn extra_or_new(&self) -> (&NodeExtra, bool) {
        // One load decides: a word that is exchanged below had no mark.
        let word = self.about.0.load(Ordering::Acquire);
        if word.addr() & EXTRA != 0 {
            // SAFETY: as in `NodeAbout::extra`.
            return (unsafe { &*boxed(word) }, false);
        }
        let new = Box::into_raw(Box::new(NodeExtra {
            label: label_of_place(word),
            waiters: WaitQueue::new(WatchedNode(NonNull::from(self))),
            record: AtomicU32::new(0),
            parent: AtomicU32::new(0),
            failed: UnsafeCell::new(None),
        }));
        let marked = new.map_addr(|address| address | EXTRA).cast();
        let stored = self.about.0.compare_exchange(word, marked, Ordering::AcqRel, Ordering::Acquire);
        let extra = match stored {
            Ok(_) => new,
            Err(there) => {
                // SAFETY: no other thread has seen the new box.
                drop(unsafe { Box::from_raw(new) });
                boxed(there)
            }
        };
        // SAFETY: the box is freed with the node, which `self` keeps.
        (unsafe { &*extra }, stored.is_ok())
    }
}
