//! Huge pages of the system under large memory: [`advise_huge_pages`].
//!
//! `arena.rs` calls it for the memory of further runs, `cnc` for large arrays of items, and `lazy`
//! for the chunks of a region. The first access to a page of 4 KiB interrupts the OS thread, for
//! about half a microsecond. A huge page is 512 such pages with one interrupt.

/// Asks the system for huge pages in this memory, under the whole pages of 4 KiB within it. The
/// first one and the last one may be shared with other memory. It is a hint only: a refusal costs
/// speed alone, so it is ignored.
#[cfg(not(miri))]
pub fn advise_huge_pages(begin: *const u8, bytes: usize) {
    const PAGE: usize = 4096;
    let skipped = begin.align_offset(PAGE);
    let whole = bytes.saturating_sub(skipped) / PAGE * PAGE;
    if whole == 0 {
        return;
    }
    let start = begin.wrapping_add(skipped).cast_mut().cast();
    // SAFETY: the advice changes no content of any memory, and not how it may be accessed. An error
    // changes nothing either.
    let _ = unsafe { rustix::mm::madvise(start, whole, rustix::mm::Advice::LinuxHugepage) };
}

/// Asks the system for nothing, because Miri's memory has no pages.
#[cfg(miri)]
pub fn advise_huge_pages(_: *const u8, _: usize) {}
