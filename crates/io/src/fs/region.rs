//! Memory that a ring has registered with the kernel: [`DiskRegion`]. For a transfer with a buffer
//! in it the kernel need not look up the pages.
//!
//! A region is 1 MiB, aligned to its size, so a buffer's address leads to its region. The first
//! page of the region is the header, and the other pages are buffers. The region has a count of
//! references: one for each buffer that is taken, and one for the owner. The last reference frees
//! the region, on whatever OS thread.
//!
//! The ring (`uring.rs`) owns one, and a `Bytes` (`buffer.rs`) takes its buffer from it when the
//! operation begins.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Mutex, PoisonError};

/// The size of a buffer.
pub(super) const BLOCK: usize = 4096;
const SIZE: usize = 1 << 20;
/// The alignment is the size, a power of two.
const LAYOUT: Layout = match Layout::from_size_align(SIZE, SIZE) {
    Ok(layout) => layout,
    Err(_) => unreachable!(),
};

struct RegionHeader {
    /// The number of buffers that are taken, and one for the owner.
    references: AtomicUsize,
    /// The numbers of the buffers that are not taken. The header is number 0.
    free: Mutex<Vec<u8>>,
}

const _: () = assert!(size_of::<RegionHeader>() <= BLOCK && SIZE / BLOCK <= 256);

/// The owner's reference to a region.
#[derive(Debug)]
pub(crate) struct DiskRegion(NonNull<RegionHeader>);

// SAFETY: a `DiskRegion` reaches an atomic and a mutex only, and `give_back` frees the memory on
// any OS thread by the same count of references.
unsafe impl Send for DiskRegion {}

impl DiskRegion {
    /// A new region; `None` if no memory is left.
    pub(crate) fn new() -> Option<DiskRegion> {
        // SAFETY: the size is not zero.
        let header = NonNull::new(unsafe { alloc_zeroed(LAYOUT) }.cast::<RegionHeader>())?;
        // `take` pops the lowest number first, so the pages in use lie close together.
        let free = (1..SIZE / BLOCK).rev().map(|number| number as u8).collect();
        // SAFETY: `alloc_zeroed` has just given this memory. `LAYOUT` is large and aligned enough
        // for the header, as the assertion above shows.
        unsafe { header.write(RegionHeader { references: AtomicUsize::new(1), free: Mutex::new(free) }) };
        Some(DiskRegion(header))
    }

    /// The start and the length of the region.
    pub(crate) fn memory(&self) -> (*mut u8, usize) {
        (self.0.as_ptr().cast(), SIZE)
    }

    pub(crate) fn contains(&self, address: *const u8) -> bool {
        address.addr() & !(SIZE - 1) == self.0.addr().get()
    }

    /// Takes a buffer of initialised bytes; `None` if all are taken.
    pub(super) fn take(&self) -> Option<NonNull<u8>> {
        // SAFETY: `self` has the owner's reference, which `new` counted, so the header is there.
        let header = unsafe { self.0.as_ref() };
        let number = header.free.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
        header.references.fetch_add(1, Ordering::Relaxed);
        // SAFETY: `new` put only numbers below `SIZE / BLOCK` into `free`, so the block lies within
        // the region.
        Some(unsafe { self.0.cast::<u8>().add(usize::from(number) * BLOCK) })
    }
}

impl Drop for DiskRegion {
    fn drop(&mut self) {
        // SAFETY: this gives up the owner's reference, which `new` counted.
        unsafe { release(self.0) };
    }
}

/// Gives a buffer back.
///
/// # Safety
/// The caller has [taken](DiskRegion::take) `block` from a region, and does not use it any more.
pub(super) unsafe fn give_back(block: NonNull<u8>) {
    let number = block.addr().get() % SIZE / BLOCK;
    // SAFETY: the header lies at the start of the block's region, `number` blocks before the block.
    // The reference that `take` counted for the block keeps the region.
    let header = unsafe { block.sub(number * BLOCK) }.cast::<RegionHeader>();
    // SAFETY: as above, and `new` initialised the header.
    unsafe { header.as_ref() }.free.lock().unwrap_or_else(PoisonError::into_inner).push(number as u8);
    // SAFETY: this gives up the reference that `take` counted for the block.
    unsafe { release(header) };
}

/// Gives up a reference, and frees the region if it was the last.
///
/// # Safety
/// The caller has a reference to the region, and uses the region no more.
unsafe fn release(header: NonNull<RegionHeader>) {
    // SAFETY: the caller's reference keeps the header until `fetch_sub`.
    if unsafe { header.as_ref() }.references.fetch_sub(1, Ordering::Release) == 1 {
        fence(Ordering::Acquire);
        // SAFETY: that was the last reference, so nothing else reaches the region. `new` allocated
        // it with `LAYOUT`, and initialised the header.
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
        let region = DiskRegion::new().unwrap();
        for _ in 0..2 {
            let mut blocks: Vec<_> = std::iter::from_fn(|| region.take()).collect();
            blocks.sort();
            blocks.dedup();
            assert_eq!(blocks.len(), 255);
            assert!(blocks.iter().all(|b| region.contains(b.as_ptr()) && b.addr().get() % BLOCK == 0));
            assert!(!region.contains(blocks[0].as_ptr().wrapping_sub(2 * BLOCK)));
            for block in blocks {
                // SAFETY: the block was taken above, and is not used any more.
                unsafe { give_back(block) };
            }
        }
    }

    #[test]
    fn a_block_outlives_the_owner_and_goes_back_on_another_os_thread() {
        let region = DiskRegion::new().unwrap();
        let block = region.take().unwrap();
        drop(region);
        // SAFETY: the block was taken above, and is not given back yet.
        unsafe { block.write_bytes(7, BLOCK) };
        let address = block.addr();
        let block = block.expose_provenance();
        assert_eq!(address, block);
        std::thread::spawn(move || {
            let block = NonNull::with_exposed_provenance(block);
            // SAFETY: the block was taken above, and is not used any more.
            unsafe { give_back(block) };
        })
        .join()
        .unwrap();
    }
}
