//! Memory that a ring has told the kernel of: transfers with buffers in it spare the kernel looking
//! their pages up.
//!
//! A region is 1 MiB, aligned to its size, so that a buffer's address tells its region. Its first
//! page is the header, the others are buffers. It is freed when the ring has let go of it and the
//! last buffer has come back, from whatever OS thread.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Mutex, PoisonError};

/// The size of a buffer.
pub(super) const BLOCK: usize = 4096;
const SIZE: usize = 1 << 20;
/// Its alignment is a power of two.
const LAYOUT: Layout = match Layout::from_size_align(SIZE, SIZE) {
    Ok(layout) => layout,
    Err(_) => unreachable!(),
};

struct RegionHeader {
    /// The buffers that are out, and one for the owner.
    references: AtomicUsize,
    /// The buffers that are in, by number; the header is number 0.
    free: Mutex<Vec<u8>>,
}

const _: () = assert!(size_of::<RegionHeader>() <= BLOCK && SIZE / BLOCK <= 256);

/// The owner's reference to a region.
#[derive(Debug)]
pub(crate) struct Region(NonNull<RegionHeader>);

// SAFETY: what is behind it is an atomic and a mutex.
unsafe impl Send for Region {}

impl Region {
    /// `None` if there is no memory.
    pub(crate) fn new() -> Option<Region> {
        // SAFETY: the size is not zero.
        let header = NonNull::new(unsafe { alloc_zeroed(LAYOUT) }.cast::<RegionHeader>())?;
        // The lowest first, so that what is touched is close together.
        let free = (1..SIZE / BLOCK).rev().map(|number| number as u8).collect();
        // SAFETY: fresh memory, large and aligned enough.
        unsafe { header.write(RegionHeader { references: AtomicUsize::new(1), free: Mutex::new(free) }) };
        Some(Region(header))
    }

    /// All of its memory.
    pub(crate) fn memory(&self) -> (*mut u8, usize) {
        (self.0.as_ptr().cast(), SIZE)
    }

    pub(crate) fn contains(&self, address: *const u8) -> bool {
        address.addr() & !(SIZE - 1) == self.0.addr().get()
    }

    /// A buffer, if one is in. It is initialised.
    pub(super) fn take(&self) -> Option<NonNull<u8>> {
        // SAFETY: the owner's reference keeps it.
        let header = unsafe { self.0.as_ref() };
        let number = header.free.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
        header.references.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the number is of a block within the region.
        Some(unsafe { self.0.cast::<u8>().add(usize::from(number) * BLOCK) })
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the owner's reference.
        unsafe { release(self.0) };
    }
}

/// Gives a buffer back.
///
/// # Safety
/// It was [taken](Region::take) from a region, and is not used any more.
pub(super) unsafe fn give_back(block: NonNull<u8>) {
    let number = block.addr().get() % SIZE / BLOCK;
    // SAFETY: a block's region begins with its header; the caller's reference keeps it.
    let header = unsafe { block.sub(number * BLOCK) }.cast::<RegionHeader>();
    // SAFETY: as above.
    unsafe { header.as_ref() }.free.lock().unwrap_or_else(PoisonError::into_inner).push(number as u8);
    // SAFETY: the block's reference.
    unsafe { release(header) };
}

/// # Safety
/// The caller gives up one reference.
unsafe fn release(header: NonNull<RegionHeader>) {
    // SAFETY: until here the caller's reference keeps it.
    if unsafe { header.as_ref() }.references.fetch_sub(1, Ordering::Release) == 1 {
        fence(Ordering::Acquire);
        // SAFETY: that was the last one; made in `new`.
        unsafe {
            header.drop_in_place();
            dealloc(header.as_ptr().cast(), LAYOUT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_is_handed_out_once_and_comes_back() {
        let region = Region::new().unwrap();
        for _ in 0..2 {
            let mut blocks: Vec<_> = std::iter::from_fn(|| region.take()).collect();
            blocks.sort();
            blocks.dedup();
            assert_eq!(blocks.len(), 255);
            assert!(blocks.iter().all(|b| region.contains(b.as_ptr()) && b.addr().get() % BLOCK == 0));
            assert!(!region.contains(blocks[0].as_ptr().wrapping_sub(2 * BLOCK)));
            for block in blocks {
                // SAFETY: taken above, and not used any more.
                unsafe { give_back(block) };
            }
        }
    }

    #[test]
    fn a_block_outlives_the_owner_and_goes_back_on_another_os_thread() {
        let region = Region::new().unwrap();
        let block = region.take().unwrap();
        drop(region);
        // SAFETY: it is ours until it is given back.
        unsafe { block.write_bytes(7, BLOCK) };
        let address = block.addr();
        let block = block.expose_provenance();
        assert_eq!(address, block);
        std::thread::spawn(move || {
            let block = NonNull::with_exposed_provenance(block);
            // SAFETY: taken above, and not used any more.
            unsafe { give_back(block) };
        })
        .join()
        .unwrap();
    }
}
