//! A million counted items through a window of a thousand take the memory of the window.
#![cfg(not(loom))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use selvedge_cnc::schedulers::{Scheduler, TaskPool};
use selvedge_cnc::{Items, graph};

/// The bytes in use, and the most of them so far.
struct Counting;
static LIVE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        MOST.fetch_max(LIVE.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const ITEMS: u32 = if cfg!(miri) { 5_000 } else { 1_000_000 };
const WINDOW: u32 = 1_000;

#[test]
fn a_million_items_in_two_megabytes() {
    for scheduler in [TaskPool::fifo(1), TaskPool::fifo(2)] {
        let before = LIVE.load(Relaxed);
        MOST.store(before, Relaxed);
        run(&scheduler);
        let (most, after) = (MOST.load(Relaxed) - before, LIVE.load(Relaxed));
        assert!(most < 2 << 20, "{most} bytes");
        assert!(after <= before + 1024, "{} bytes are left", after - before);
    }
}

fn run(scheduler: &dyn Scheduler) {
    graph(|graph| {
        let tags = graph.tags("tags");
        let items = graph.items_with("items", Items::paged(ITEMS).counted(|_| Some(1)));
        let sum = graph.items::<u32, u64>("sum");
        graph.prescribe(tags, "pass on", move |n: u32, step| {
            let value = *step.get(items, n)? + 1;
            if n + WINDOW >= ITEMS {
                return step.put(sum, n, value);
            }
            step.put(items, n + WINDOW, value)?;
            step.put_tag(tags, n + WINDOW)
        });
        let first = |n| (n, u64::from(n));
        graph
            .initialize(|env| {
                (0..WINDOW).map(first).try_for_each(|(n, value)| {
                    env.put(items, n, value)?;
                    env.put_tag(tags, n)
                })
            })
            .unwrap();
        let total = graph
            .run(scheduler)
            .unwrap()
            .finalize(|view| view.iter(sum).map(|(_, value)| value).sum::<u64>());
        assert_eq!(total, u64::from(WINDOW * (WINDOW - 1) / 2) + u64::from(ITEMS));
    });
}
