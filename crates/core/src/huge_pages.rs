//! Huge pages of the system under large memory: [`advise_huge_pages`] and [`prepare_pages`].
//!
//! `arena.rs` calls `advise_huge_pages` for the memory of further runs, and `cnc` for large arrays
//! of items. `lazy` calls `prepare_pages` for the chunks of a region. The first access to a page of
//! 4 KiB interrupts the OS thread, for about half a microsecond. A huge page is 512 such pages with
//! one interrupt.
//!
//! # Slow huge pages
//! A virtual machine may give its free huge pages back to its host, and take them again, page by
//! page, at the first access. On a machine that did so, a huge page took 6 ms then, and 0.3 ms
//! otherwise. Pages of 4 KiB came from memory that the machine had kept. So `prepare_pages`
//! measures the first huge page of its memory. While huge pages are slow, it has the system prepare
//! pages of 4 KiB by one call.

#[cfg(not(miri))]
use rustix::mm::{Advice, madvise};
use std::mem::MaybeUninit;
#[cfg(not(miri))]
use std::sync::atomic::{AtomicU32, Ordering};
#[cfg(not(miri))]
use std::time::{Duration, Instant};

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
    let _ = unsafe { madvise(start, whole, Advice::LinuxHugepage) };
}

/// Asks the system for nothing, because Miri's memory has no pages.
#[cfg(miri)]
pub fn advise_huge_pages(_: *const u8, _: usize) {}

/// The bytes of a huge page, and its alignment.
pub const HUGE_PAGE: usize = 1 << 21;

/// A huge page that takes longer than this is slow.
#[cfg(not(miri))]
const SLOW: Duration = Duration::from_millis(1);

/// The calls of [`prepare_pages`] after a slow huge page that use pages of 4 KiB.
#[cfg(not(miri))]
const CALLS_WITHOUT: u32 = 16;

/// How many of these calls are left.
#[cfg(not(miri))]
static WITHOUT_HUGE_PAGES: AtomicU32 = AtomicU32::new(0);

/// Asks the kernel for pages under fresh memory that will be written soon. The memory begins at a
/// multiple of 2 MiB, and is at least 2 MiB long. Only speed depends on this call.
///
/// # Complexity
/// At most three system calls. The system may clear all of the memory within them.
#[cfg(not(miri))]
pub fn prepare_pages(memory: &mut [MaybeUninit<u8>]) {
    let without = WITHOUT_HUGE_PAGES.load(Ordering::Relaxed);
    if without > 0 {
        // Another OS thread may have stored another count. Then that one is right too.
        WITHOUT_HUGE_PAGES.store(without - 1, Ordering::Relaxed);
        return populate(memory);
    }
    let (first, rest) = memory.split_at_mut(memory.len().min(HUGE_PAGE));
    advise_huge_pages(first.as_ptr().cast(), first.len());
    // An OS thread that loses its CPU meanwhile finds a slow page, and that costs some speed.
    let begin = Instant::now();
    if let Some(byte) = first.first_mut() {
        // SAFETY: the reference is valid for a write. It is volatile, so that it is not left out.
        unsafe { std::ptr::from_mut(byte).write_volatile(MaybeUninit::new(0)) };
    }
    if begin.elapsed() > SLOW {
        WITHOUT_HUGE_PAGES.store(CALLS_WITHOUT, Ordering::Relaxed);
        populate(rest);
    } else {
        advise_huge_pages(rest.as_ptr().cast(), rest.len());
    }
}

/// Prepares nothing, because Miri's memory has no pages.
#[cfg(miri)]
pub fn prepare_pages(_: &mut [MaybeUninit<u8>]) {}

/// Asks the kernel for pages of 4 KiB under memory that begins at such a page.
#[cfg(not(miri))]
fn populate(memory: &mut [MaybeUninit<u8>]) {
    let begin = memory.as_mut_ptr().cast();
    // SAFETY: the advice changes no content of any memory, and not how it may be accessed. An error
    // changes nothing either.
    let _ = unsafe { madvise(begin, memory.len(), Advice::LinuxPopulateWrite) };
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use std::alloc::{Layout, alloc_zeroed, dealloc};

    /// Runs `prepare_pages` on zeroed memory after this number of calls `without` huge pages were
    /// asked for, and returns how many are left and the sum of the memory's bytes.
    fn prepared(without: u32) -> (u32, u64) {
        let layout = Layout::from_size_align(2 * HUGE_PAGE, HUGE_PAGE).unwrap();
        // SAFETY: the size is not 0, and the memory is freed below with the same layout.
        let memory = unsafe { alloc_zeroed(layout) };
        assert!(!memory.is_null());
        WITHOUT_HUGE_PAGES.store(without, Ordering::Relaxed);
        // SAFETY: the memory has this size and is used by this function only.
        prepare_pages(unsafe { std::slice::from_raw_parts_mut(memory.cast(), layout.size()) });
        let left = WITHOUT_HUGE_PAGES.load(Ordering::Relaxed);
        // SAFETY: the memory is initialized and has this size.
        let sum = unsafe { std::slice::from_raw_parts(memory, layout.size()) };
        let sum = sum.iter().map(|&byte| u64::from(byte)).sum();
        // SAFETY: the memory came from `alloc_zeroed` with this layout.
        unsafe { dealloc(memory, layout) };
        (left, sum)
    }

    #[test]
    fn prepared_memory_keeps_its_content_and_slow_pages_are_tried_again() {
        assert_eq!(prepared(2), (1, 0));
        assert_eq!(prepared(1), (0, 0));
        let (left, sum) = prepared(0);
        assert!(left == 0 || left == CALLS_WITHOUT);
        assert_eq!(sum, 0);
    }
}
