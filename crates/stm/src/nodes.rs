//! The memory of the nodes in which [`TVar`](crate::TVar) keeps its values: a session keeps some of
//! that which it has freed for its next writes.
//!
//! Nodes are freed many at a time (`session.rs`), and an allocator is slow at that: it keeps few
//! freed pieces at hand. Under Miri no memory is kept, so that Miri sees each access to freed
//! memory.

use crate::session;
use std::ptr::NonNull;

/// The sizes of nodes that are kept, in units of `UNIT` bytes.
const SIZES: usize = 8;
const UNIT: usize = 8;

/// The number of nodes of one size that a session keeps. Those of all sizes take 72 KiB at most.
const KEPT: usize = 256;

/// Free memory of nodes, by their sizes. All of it was allocated for boxes with an alignment of
/// `UNIT`.
#[derive(Default)]
pub(crate) struct SpareNodes([Vec<NonNull<()>>; SIZES]);

// SAFETY: it is memory without values.
unsafe impl Send for SpareNodes {}

/// The place of the nodes for values of type T in `SpareNodes`. None if they are not kept.
const fn place<T>() -> Option<usize> {
    let fits = align_of::<T>() == UNIT && size_of::<T>() > 0 && size_of::<T>() <= SIZES * UNIT;
    if fits && !cfg!(miri) { Some(size_of::<T>() / UNIT - 1) } else { None }
}

impl SpareNodes {
    /// A node with the value, as `Box::into_raw` gives it.
    #[inline(always)]
    pub(crate) fn make<T>(&mut self, value: T) -> *mut T {
        if let Some(place) = const { place::<T>() }
            && let Some(spare) = self.0[place].pop()
        {
            let node = spare.cast::<T>();
            // SAFETY: `free` has put it into this place, so it is of the layout of T.
            unsafe { node.write(value) };
            return node.as_ptr();
        }
        Box::into_raw(Box::new(value))
    }

    /// Keeps the memory of a node. False if it keeps enough of this size.
    #[inline]
    fn keep(&mut self, place: usize, node: NonNull<()>) -> bool {
        let spare = &mut self.0[place];
        let has_room = spare.len() < KEPT;
        if has_room {
            spare.push(node);
        }
        has_room
    }
}

/// Frees a node when its value is dropped, also if the value's destructor panics.
struct Memory<T>(NonNull<T>);

impl<T> Drop for Memory<T> {
    #[inline(always)]
    fn drop(&mut self) {
        let node = self.0.cast();
        let is_kept = const { place::<T>() }
            .is_some_and(|place| session::with_kept(|session| session.spare.keep(place, node)) == Some(true));
        if !is_kept {
            // SAFETY: the box of `free`. Its value has been dropped.
            drop(unsafe { Box::from_raw(self.0.cast::<std::mem::MaybeUninit<T>>().as_ptr()) });
        }
    }
}

/// Drops the value of a node and frees the node.
///
/// # Safety
/// The pointer was made by `Box::into_raw` of a `Box<T>`, or by `SpareNodes::make`. The node ends
/// here.
pub(crate) unsafe fn free<T>(node: *mut ()) {
    // SAFETY: the caller's contract: such a pointer is not null.
    let memory = Memory(unsafe { NonNull::new_unchecked(node.cast::<T>()) });
    // SAFETY: the caller's contract.
    unsafe { memory.0.drop_in_place() };
}
