//! [`ThunkCell`]: a thunk in the memory of a region, and the thunks that all regions share.
//!
//! # The thunk
//! ```text
//!    header          the thunk's code, or GREY, BLACK, FAILED, or a result
//!    result word     of a thunk of numbers only; written before the header says INDIRECTION
//!    payload         what the closure has captured; never overwritten
//! ```
//! This is the layout of [HMP05 Figure 1(d)]. The payload stays where it is until the region goes,
//! so a thread that entered late still reads it. The result is a word, so two threads that evaluate
//! the same thunk write one whole word after the other. The words are equal, or they are references
//! to equal values. So both races of the paper (§3.3 and §3.4) need stores alone.
//!
//! A result that is a reference or a thunk lies in the header itself, with the lowest bit set. Then
//! the update is one store, and a thunk is a word smaller than the paper's.
//!
//! A number needs all bits of a word. Its result word is [`ABSENT`] until the update, so a force of
//! a thunk that has its result loads the result word alone. A force that reads `ABSENT` loads the
//! header too, because the result may be the number `ABSENT` itself.
//!
//! # Callers
//! `thunk.rs` reads and updates thunks, `code.rs` enters them, and `make.rs` puts them into a
//! region. `claim.rs` knows the thunks under evaluation by their heads.

use super::engine::ThunkEntry;
use super::waits::wake_waiters;
use super::word::ThunkWord;
use crate::primitives::{AtomicPtr, AtomicUsize, Ordering};
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};

/// The bit of a header that says that the thunk has its result. The rest of the header is the
/// result, or 0 if there is a result word.
pub(super) const INDIRECTION: usize = 1;

/// The content of a result word before the update: a number that programs rarely compute. It fits
/// in 32 bits with its sign, so the comparing instruction contains it.
pub(super) const ABSENT: usize = -0x6b8f_52d3isize as usize;

/// Whether the thunk with this header has its result.
#[inline(always)]
pub(super) fn is_result(header: usize) -> bool {
    header & INDIRECTION != 0
}

/// The first word of each thunk.
#[repr(C)]
pub(super) struct ThunkHead {
    pub(super) header: AtomicUsize,
}

impl ThunkHead {
    /// The head of a thunk that has not been evaluated.
    #[inline(always)]
    pub(super) fn of<E: ThunkEntry>(code: &'static CodeTable<E>) -> ThunkHead {
        ThunkHead { header: AtomicUsize::new(ptr::from_ref(code).expose_provenance()) }
    }

    /// The head of a thunk that has this word as its result, in its header.
    #[inline(always)]
    pub(super) fn ready(word: *mut ()) -> ThunkHead {
        ThunkHead { header: AtomicUsize::new(word.expose_provenance() | INDIRECTION) }
    }
}

/// The words of a thunk before its payload, if it has a result word.
#[repr(C)]
pub(super) struct ResultHead {
    head: ThunkHead,
    pub(super) result: AtomicPtr<()>,
}

impl ResultHead {
    /// The head of a thunk that has not been evaluated.
    #[inline(always)]
    pub(super) fn of(head: ThunkHead) -> ResultHead {
        ResultHead { head, result: AtomicPtr::new(ptr::without_provenance_mut(ABSENT)) }
    }

    /// The head of a thunk that has this word as its result.
    #[inline(always)]
    pub(super) fn ready(word: *mut ()) -> ResultHead {
        let head = ThunkHead { header: AtomicUsize::new(INDIRECTION) };
        ResultHead { head, result: AtomicPtr::new(word) }
    }
}

/// A thunk that all regions share, with this word as its result, if there is one: for small
/// numbers, and for no reference.
#[inline(always)]
pub(super) fn shared<V: ThunkWord>(word: *mut ()) -> Option<NonNull<ThunkHead>> {
    #[cfg(not(loom))]
    {
        let index = match V::IN_HEADER {
            // The header of the thunk of 0 says that the result is 0.
            true if word.is_null() => SHARED_BELOW,
            true => return None,
            false => word.addr().wrapping_add(SHARED_BELOW),
        };
        SHARED.get(index).map(|thunk| NonNull::from(thunk).cast())
    }
    // The atomics of loom are not made before a model runs.
    #[cfg(loom)]
    {
        let _ = word;
        None
    }
}

/// The numbers below 0 that have a shared thunk.
#[cfg(not(loom))]
const SHARED_BELOW: usize = 16;

/// The thunks that have a small number as their result, from `-SHARED_BELOW` on. A thunk that has
/// its result is never written again.
#[cfg(not(loom))]
static SHARED: [ResultHead; 256] = {
    let mut heads = [const {
        let head = ThunkHead { header: AtomicUsize::new(INDIRECTION) };
        ResultHead { head, result: AtomicPtr::new(ptr::null_mut()) }
    }; 256];
    let mut at = 0;
    while at < heads.len() {
        let word = at.wrapping_sub(SHARED_BELOW);
        heads[at].result = AtomicPtr::new(ptr::without_provenance_mut(word));
        at += 1;
    }
    heads
};

/// A thunk in memory. `H` is its [`ThunkHead`] or [`ResultHead`].
#[repr(C)]
pub(super) struct ThunkCell<H, F> {
    pub(super) head: H,
    pub(super) payload: UnsafeCell<ManuallyDrop<F>>,
}

/// The code of a type of thunk.
pub(super) struct CodeTable<E: ThunkEntry> {
    /// Enters a thunk of which the caller has found this table in the header, and gives the result.
    ///
    /// # Safety
    /// The thunk has this code, and the nursery is one of the lifetime of its region.
    pub(super) enter: unsafe fn(NonNull<ThunkHead>, NonNull<()>, usize) -> *mut (),
    pub(super) _entry: PhantomData<fn() -> E>,
}

/// Ends an evaluation that unwinds: exchanges the hole of this OS thread for `after`, and wakes the
/// OS threads that wait for the thunk. The header stays as it is if it is not that hole: then
/// another OS thread has entered, claimed or updated the thunk, or the entry has left the code
/// there.
pub(super) fn end_unwinding(header: &AtomicUsize, hole: usize, after: usize) {
    if header.compare_exchange(hole, after, Ordering::Release, Ordering::Relaxed).is_ok() {
        wake_waiters(header);
    }
}
