//! Loom's primitives in place of those of `src/processes/primitives.rs` and
//! `src/libmpi/primitives.rs`.

use loom::cell::UnsafeCell;
pub(crate) use loom::sync::Mutex;
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use std::mem::MaybeUninit;
pub(crate) use std::sync::TryLockError;

/// A byte. Loom watches its uses.
pub(crate) struct ByteCell(UnsafeCell<u8>);

// SAFETY: loom fails when two threads use the byte at the same time.
unsafe impl Sync for ByteCell {}
// SAFETY: as above.
unsafe impl Send for ByteCell {}

impl ByteCell {
    pub(crate) fn new() -> ByteCell {
        ByteCell(UnsafeCell::new(0))
    }
}

/// # Safety
/// None is needed: loom checks it.
pub(crate) unsafe fn copy_in(cells: &[ByteCell], bytes: &[u8]) {
    for (cell, byte) in cells.iter().zip(bytes) {
        // SAFETY: loom checks it.
        cell.0.with_mut(|at| unsafe { *at = *byte });
    }
}

/// # Safety
/// None is needed: loom checks it.
pub(crate) unsafe fn copy_out(cells: &[ByteCell], bytes: &mut [MaybeUninit<u8>]) {
    for (cell, byte) in cells.iter().zip(bytes) {
        // SAFETY: loom checks it.
        byte.write(cell.0.with(|at| unsafe { *at }));
    }
}
