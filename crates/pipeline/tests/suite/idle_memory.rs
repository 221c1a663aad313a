//! A pipeline that waits has little memory.

use selvedge_pipeline::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts the bytes that each OS thread has.
struct Counting;

thread_local! {
    static BYTES: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator unchanged; counting touches a
// constant-initialised cell of the calling OS thread, which allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.set(BYTES.get().wrapping_add(layout.size() as u64));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // A block may have been allocated by another OS thread.
        BYTES.set(BYTES.get().wrapping_sub(layout.size() as u64));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn an_idle_pipeline_of_four_stages_has_at_most_a_kibibyte() {
    const PIPELINES: usize = 10_000;
    let before = BYTES.get();
    let waiting: Vec<_> = (0..PIPELINES)
        .map(|index| {
            let mut stages = (group_by(whole_line())
                >> select(any(substring(b"warp")))
                >> prepend(b"> ")
                >> concatenate())
            .step();
            // Each has passed a line on, and waits with a part of the next one.
            let text = format!("warp {index}\nwef");
            assert_eq!(stages.put_chunk(text.as_bytes()).len(), text.len() - 1);
            stages
        })
        .collect();
    let each = BYTES.get().wrapping_sub(before) / PIPELINES as u64;
    assert!(each <= 1024, "{each} bytes each");
    assert!(waiting.iter().all(|stages| !stages.is_finished()));
}
