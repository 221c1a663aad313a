//! The allocations of transactions, counted.
#![cfg(not(loom))]

use selvedge_stm::{TVar, TWord, atomically_blocking};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local!(static ALLOCATIONS: Cell<u64> = const { Cell::new(0) });

// SAFETY: it is the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The allocations of 1000 calls, after 1000 that let the logs grow.
fn allocations_of_1000(mut f: impl FnMut()) -> u64 {
    (0..1000).for_each(|_| f());
    let before = ALLOCATIONS.get();
    (0..1000).for_each(|_| f());
    ALLOCATIONS.get() - before
}

#[test]
fn a_transaction_of_words_allocates_nothing() {
    let vars: Vec<_> = (0..12).map(|_| TWord::new(1_u64)).collect();
    let count = allocations_of_1000(|| {
        atomically_blocking(|tx| {
            let mut sum = 0_u64;
            for var in &vars {
                sum = sum.wrapping_add(var.read(tx)?);
            }
            vars[0].write(tx, sum);
            vars[1].modify(tx, |n| n.wrapping_add(1))
        });
    });
    assert_eq!(count, 0);
}

#[test]
fn a_write_of_a_node_allocates_the_node() {
    let var = TVar::new(String::new());
    let count = allocations_of_1000(|| {
        atomically_blocking(|tx| {
            var.write(tx, String::new());
            Ok(())
        });
    });
    // The node, and now and then a list of nodes to free.
    assert!((1000..1100).contains(&count), "{count}");
}
