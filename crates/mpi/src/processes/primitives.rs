//! What the protocols in shared memory are made of: atomics, a fence, and [`ByteCell`], a byte that
//! two processes use in turn.
//!
//! `tests/loom` puts loom's in their place, to run the protocols in every order.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
pub(super) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// A byte of a ring. At any time either the ring's writer or its reader may use it.
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct ByteCell(UnsafeCell<u8>);

// SAFETY: the two functions that use the byte are unsafe, and say that no other use of it may go
// on.
unsafe impl Sync for ByteCell {}

impl ByteCell {
    /// A byte in memory of this process.
    #[cfg(test)]
    pub(super) fn new() -> ByteCell {
        ByteCell(UnsafeCell::new(0))
    }
}

/// Writes bytes into cells, as many as there are.
///
/// # Safety
/// Nothing else uses these cells during the call, in this process or in another.
pub(super) unsafe fn copy_in(cells: &[ByteCell], bytes: &[u8]) {
    assert_eq!(cells.len(), bytes.len());
    let into = cells.as_ptr().cast::<u8>().cast_mut();
    // SAFETY: the cells are `bytes.len()` bytes in a row, because `ByteCell` is transparent, and an
    // `UnsafeCell` may be written through a shared reference. The caller says that nothing else
    // uses them.
    unsafe { into.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
}

/// Reads bytes out of cells, as many as there are.
///
/// # Safety
/// Nothing writes these cells during the call, in this process or in another.
pub(super) unsafe fn copy_out(cells: &[ByteCell], bytes: &mut [MaybeUninit<u8>]) {
    assert_eq!(cells.len(), bytes.len());
    let from = cells.as_ptr().cast::<MaybeUninit<u8>>();
    // SAFETY: the cells are `bytes.len()` bytes in a row, because `ByteCell` is transparent. The
    // caller says that nothing writes them.
    unsafe { bytes.as_mut_ptr().copy_from_nonoverlapping(from, bytes.len()) };
}
