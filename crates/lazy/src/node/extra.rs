//! [`NodeExtra`]: what few nodes have, in a box of its own, and [`NodeAbout`], the word of a node
//! that leads there.
//!
//! Most values are made, evaluated and read without a second thread, a failure or a name. A node
//! of such a value has only its kind. So a node is small, and its state lies in one line of the
//! cache with its value.
//!
//! A box is made at most once, and is freed with the node. `name`, the claimant of a node and a
//! thread that waits make it. `waiters.rs` says which of them needs a fence.

use super::kind::NodeKind;
use super::state::StateWord;
use crate::failed::NoValueError;
use crate::primitives::{AtomicPtr, AtomicU32, Ordering};
use selvedge_core::WaitQueue;
use std::cell::UnsafeCell;
use std::panic::Location;
use std::ptr::{self, NonNull};

/// The number of a record in the table of `circle.rs`. 0 is none.
pub(crate) type RecordId = u32;

/// The name of a value in a message.
#[derive(Clone, Copy)]
pub(crate) struct Label {
    name: &'static str,
    place: &'static Location<'static>,
}

impl Label {
    /// The name, and the place that makes the value.
    pub(crate) fn write(self) -> String {
        match self.name {
            "" => format!("the value of {}", self.place),
            name => format!("{name} ({})", self.place),
        }
    }
}

/// The state of the node that has the waiters.
pub(super) struct WatchedNode(pub(super) NonNull<StateWord>);

// SAFETY: the pointer is of `NodeAbout::extra_or_new`. Only atomic fields are read through it, and
// the node outlives its waiters.
unsafe impl Send for WatchedNode {}
// SAFETY: as above.
unsafe impl Sync for WatchedNode {}

/// What few nodes have.
pub(super) struct NodeExtra {
    kind: &'static NodeKind,
    /// Written while there is one handle.
    name: &'static str,
    /// The threads that wait for the end of an evaluation.
    pub(super) waiters: WaitQueue<WatchedNode, ()>,
    /// The record of the evaluation in the table of `circle.rs`. The claimant has it; it stays with
    /// a frozen body.
    pub(super) record: AtomicU32,
    /// The parent of that record, for a look without the lock.
    pub(super) parent: AtomicU32,
    /// Written before the state is FAILED.
    pub(super) failed: UnsafeCell<Option<NoValueError>>,
}

/// In the word: the rest of it is the address of a [`NodeExtra`]. Without it the word is the
/// address of a [`NodeKind`]. Both types are aligned to two bytes at least.
const EXTRA: usize = 1;

/// The kind of a node, or the box.
pub(super) struct NodeAbout(AtomicPtr<()>);

impl NodeAbout {
    pub(super) fn new(kind: &'static NodeKind) -> NodeAbout {
        NodeAbout(AtomicPtr::new(ptr::from_ref(kind).cast_mut().cast()))
    }

    #[inline(always)]
    pub(super) fn kind(&self) -> &'static NodeKind {
        let word = self.0.load(Ordering::Acquire);
        match word.addr() & EXTRA {
            0 => kind_of(word),
            // SAFETY: as in `extra`.
            _ => unsafe { (*boxed(word)).kind },
        }
    }

    /// The box.
    #[inline(always)]
    pub(super) fn extra(&self) -> Option<&NodeExtra> {
        let word = self.0.load(Ordering::Acquire);
        // SAFETY: the word has the mark, so it was stored by `extra_or_new`, with a box that is
        // freed with this word.
        (word.addr() & EXTRA != 0).then(|| unsafe { &*boxed(word) })
    }

    pub(super) fn label(&self) -> Label {
        let name = self.extra().map_or("", |extra| extra.name);
        Label { name, place: self.kind().place }
    }

    /// Names the value. The word is not borrowed exclusively for that, because the box has a
    /// pointer to the node.
    ///
    /// # Safety
    /// There is a box, and the caller has the only handle of the node.
    pub(super) unsafe fn name(&self, name: &'static str) {
        // SAFETY: as in `extra`. No other thread reads the label, because there is no other handle.
        unsafe { (*boxed(self.0.load(Ordering::Acquire))).name = name };
    }

    /// The box, made if there is none, and whether this call has made it. `state` is that of the
    /// node.
    #[inline]
    pub(super) fn extra_or_new(&self, state: &StateWord) -> (&NodeExtra, bool) {
        // One load decides: a word that is exchanged below had no mark.
        let word = self.0.load(Ordering::Acquire);
        if word.addr() & EXTRA != 0 {
            // SAFETY: as in `extra`.
            return (unsafe { &*boxed(word) }, false);
        }
        let new = Box::into_raw(Box::new(NodeExtra {
            kind: kind_of(word),
            name: "",
            waiters: WaitQueue::new(WatchedNode(NonNull::from(state))),
            record: AtomicU32::new(0),
            parent: AtomicU32::new(0),
            failed: UnsafeCell::new(None),
        }));
        let marked = new.map_addr(|address| address | EXTRA).cast();
        let stored = self.0.compare_exchange(word, marked, Ordering::AcqRel, Ordering::Acquire);
        let extra = match stored {
            Ok(_) => new,
            Err(there) => {
                // SAFETY: no other thread has seen the new box.
                drop(unsafe { Box::from_raw(new) });
                boxed(there)
            }
        };
        // SAFETY: the box is freed with the node, which has `self`.
        (unsafe { &*extra }, stored.is_ok())
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

/// The kind in a word that has no mark.
#[inline(always)]
fn kind_of(word: *mut ()) -> &'static NodeKind {
    // SAFETY: a word without the mark is the kind of `NodeAbout::new`.
    unsafe { &*word.cast::<NodeKind>() }
}

/// The box of a word that has the mark.
#[inline(always)]
fn boxed(word: *mut ()) -> *mut NodeExtra {
    word.map_addr(|address| address & !EXTRA).cast()
}
