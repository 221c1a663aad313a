//! [`SpareNodes`]: memory of freed nodes, which a session keeps for its next writes.
//!
//! Nodes are freed many at a time (`epochs.rs`), and an allocator is slow at that: it keeps few
//! freed pieces at hand. Under Miri no memory is kept, so that Miri sees each access to freed
//! memory.

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
pub(crate) const fn place<T>() -> Option<usize> {
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
            // SAFETY: `nodes::free` has put it into this place, so it is of the layout of T.
            unsafe { node.write(value) };
            return node.as_ptr();
        }
        Box::into_raw(Box::new(value))
    }

    /// Keeps the memory of a node. False if it keeps enough of this size.
    #[inline]
    pub(crate) fn keep(&mut self, place: usize, node: NonNull<()>) -> bool {
        let spare = &mut self.0[place];
        let has_room = spare.len() < KEPT;
        if has_room {
            spare.push(node);
        }
        has_room
    }
}
