//! Large pages of the system for large arrays of items: [`advise`].
//!
//! `ItemSlot::several` calls it for the memory of each array. The first access to a page of 4 KiB
//! interrupts the worker, for about half a microsecond. In an array with a few million items that
//! is as much time as all puts and gets together, and two workers wait for each other in it. A
//! large page is 512 pages with one interrupt.

/// The least array for which the system is asked: two large pages.
const LEAST: usize = 4 << 20;
/// The system's unit.
const PAGE: usize = 4096;

/// Asks the system for large pages in this memory. It is a hint only, and what the memory contains
/// does not change.
pub(crate) fn advise<T>(memory: &[T]) {
    let bytes = size_of_val(memory);
    if bytes < LEAST || cfg!(miri) {
        return;
    }
    let first = memory.as_ptr().cast::<u8>();
    // Only whole pages of the array; the first one and the last one may be shared with others.
    let skipped = first.align_offset(PAGE);
    let (start, whole) = (first.wrapping_add(skipped), (bytes - skipped) / PAGE * PAGE);
    // SAFETY: the range is within `memory`. The advice changes neither its content nor how it may
    // be accessed. An error changes nothing either.
    let _ = unsafe { rustix::mm::madvise(start.cast_mut().cast(), whole, rustix::mm::Advice::LinuxHugepage) };
}
