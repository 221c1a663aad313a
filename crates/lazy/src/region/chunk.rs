//! [`RegionChunk`]: a piece of a region's memory, and how large the next piece of a nursery is.
//!
//! The first chunk of a nursery is small, so that a small region costs little. Each further chunk
//! is four times as large as the one before, up to [`CHUNK_MAX`]. A chunk of that size begins at a
//! multiple of [`HUGE_PAGE`], and the kernel is asked to prepare its pages: see [`prepare_pages`].
//! Without that a program that fills its region faster than it computes with it spends most of its
//! time in page faults: one for each 4 KiB. Smaller chunks have ordinary pages, because a region
//! may use little of its last chunk.
//!
//! `nursery.rs` takes a chunk when the one before is full, and the region frees all chunks at once.

use selvedge_core::internal::{HUGE_PAGE, prepare_pages};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::slice;

/// The bytes of the first chunk of a nursery.
pub(super) const CHUNK_FIRST: usize = if cfg!(any(loom, miri)) { 1 << 10 } else { 1 << 15 };
/// The most bytes of a chunk, but for one that a larger value needs.
const CHUNK_MAX: usize = if cfg!(any(loom, miri)) { 1 << 12 } else { 1 << 23 };
/// The chunks of which the pages are prepared have at least this number of bytes.
const PREPARED: usize = 1 << 23;

/// A piece of memory, freed with the region.
pub(super) struct RegionChunk {
    memory: NonNull<u8>,
    layout: Layout,
}

// SAFETY: a chunk is memory that its region has for itself. What lies in it is Send and Sync: see
// `Nursery`.
unsafe impl Send for RegionChunk {}

impl RegionChunk {
    /// Fresh memory of `size` bytes at least.
    pub(super) fn new(size: usize) -> RegionChunk {
        let align = if size < PREPARED { 16 } else { HUGE_PAGE };
        let layout = Layout::from_size_align(size, align).expect("a chunk is small");
        // SAFETY: the size is not 0.
        let memory = NonNull::new(unsafe { alloc(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
        if size >= PREPARED {
            // SAFETY: the memory has this size, and no other code knows of it yet.
            prepare_pages(unsafe {
                slice::from_raw_parts_mut(memory.as_ptr().cast::<MaybeUninit<u8>>(), size)
            });
        }
        RegionChunk { memory, layout }
    }

    /// The size of the chunk after one of `size` bytes.
    pub(super) fn size_after(size: usize) -> usize {
        (size * 4).min(CHUNK_MAX)
    }

    pub(super) fn memory(&self) -> NonNull<u8> {
        self.memory
    }

    pub(super) fn size(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for RegionChunk {
    fn drop(&mut self) {
        // SAFETY: `RegionChunk::new` has allocated it with this layout.
        unsafe { dealloc(self.memory.as_ptr(), self.layout) };
    }
}
