//! The allocations of transactions, counted.
#![cfg(not(loom))]

use selvedge_stm::{
    TArray, TBQueue, TCounter, TMap, TQueue, TSem, TVar, TWord, atomically, atomically_blocking, reclaim,
    wait_for,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Waker};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    /// The bytes that this OS thread has allocated, minus the bytes that it has freed.
    static BYTES: Cell<isize> = const { Cell::new(0) };
}

// SAFETY: it is the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        let _ = BYTES.try_with(|bytes| bytes.set(bytes.get() + layout.size() as isize));
        // SAFETY: the caller's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        let _ = BYTES.try_with(|bytes| bytes.set(bytes.get() - layout.size() as isize));
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

/// With 40 writes, the log finds a write by an index.
#[test]
fn a_transaction_that_writes_many_words_allocates_nothing() {
    let vars: Vec<_> = (0..40).map(|_| TWord::new(0_u64)).collect();
    let count = allocations_of_1000(|| {
        atomically_blocking(|tx| vars.iter().try_for_each(|var| var.modify(tx, |n| n + 1)));
    });
    assert_eq!(count, 0);
    assert!(vars.iter().all(|var| var.read_now() == 2000));
}

#[test]
fn a_transaction_that_reads_nodes_allocates_nothing() {
    let vars: Vec<_> = (0..100).map(|n| TVar::new(vec![n])).collect();
    let count = allocations_of_1000(|| {
        let sum = atomically_blocking(|tx| {
            let mut sum = 0;
            for var in &vars {
                sum += var.read(tx)?[0];
            }
            Ok(sum)
        });
        assert_eq!(sum, 4950);
    });
    assert_eq!(count, 0);
}

#[test]
fn a_write_of_a_node_allocates_at_most_the_node() {
    let var = TVar::new(String::new());
    let write = || {
        atomically_blocking(|tx| {
            var.write(tx, String::new());
            Ok(())
        });
    };
    let count = allocations_of_1000(write);
    // The node, and now and then a list of nodes to free. The memory of nodes that were freed
    // meanwhile is used again.
    assert!(count < 1100, "{count}");
    // Another test may keep the epoch from moving on, so that nothing is freed for some time.
    assert!((0..10_000).any(|_| allocations_of_1000(write) < 100), "no memory is used again");
}

#[test]
fn counters_and_semaphores_allocate_nothing() {
    let (counter, sem) = (TCounter::new(), TSem::new(1));
    let count = allocations_of_1000(|| {
        atomically_blocking(|tx| {
            counter.add(tx, 1)?;
            sem.wait(tx)
        });
        atomically_blocking(|tx| sem.signal(tx));
    });
    assert_eq!(count, 0);
}

#[test]
fn a_value_of_a_queue_or_an_array_is_one_allocation() {
    let (bounded, array) = (TBQueue::new(3), TArray::new([0; 10]));
    let count = allocations_of_1000(|| {
        atomically_blocking(|tx| bounded.push(tx, 1));
        assert_eq!(atomically_blocking(|tx| bounded.pop(tx)), 1);
        atomically_blocking(|tx| array.modify(tx, 7, |n| n + 1));
    });
    // Now and then a list of nodes to free.
    assert!((2000..2100).contains(&count), "{count}");
    let queue = TQueue::new();
    let count = allocations_of_1000(|| {
        atomically_blocking(|tx| queue.push(tx, 1));
        assert_eq!(atomically_blocking(|tx| queue.pop(tx)), 1);
    });
    // Each eighth push makes a segment and a node; each eighth pop makes one node. The memory of
    // nodes that were freed meanwhile is used again.
    assert!(count < 1000 + 3 * 125 + 100, "{count}");
}

#[test]
fn a_lookup_allocates_nothing_and_an_insertion_twice_at_most() {
    let map = TMap::new();
    for key in 0..1000_u32 {
        atomically_blocking(|tx| map.insert(tx, key, key).map(drop));
    }
    let mut key = 0;
    let count = allocations_of_1000(|| {
        key = (key + 1) % 1000;
        assert_eq!(atomically_blocking(|tx| map.get(tx, &key).map(|n| n.copied())), Some(key));
    });
    assert_eq!(count, 0);
    let count = allocations_of_1000(|| {
        key = (key + 1) % 1000;
        atomically_blocking(|tx| map.insert(tx, key, key).map(drop));
    });
    // The entry, and the leaf if it has another entry; now and then a list of nodes to free.
    assert!((1000..2100).contains(&count), "{count}");
}

/// The entries, their leaves, and the branches.
#[test]
fn a_map_that_was_emptied_gives_its_memory_back() {
    let map = TMap::new();
    let fill_and_empty = || {
        for key in 0..5_000_u32 {
            atomically_blocking(|tx| map.insert(tx, key, [key; 8]).map(drop));
        }
        let full = BYTES.get();
        for key in 0..5_000 {
            atomically_blocking(|tx| map.remove(tx, &key).map(drop));
        }
        full
    };
    let before = BYTES.get();
    let full = fill_and_empty() - before;
    assert!(full > 5_000 * 36, "{full}");
    // The list of the session's retired objects keeps its size, which is up to 100 KB if another
    // test has kept the epoch from moving on. The branches alone are a third of the map.
    let mut left = isize::MAX;
    for _ in 0..10_000 {
        reclaim();
        left = BYTES.get() - before;
        if left < full / 8 {
            return;
        }
        std::thread::yield_now();
    }
    panic!("{left} of {full} bytes are left");
}

/// The memory of the last waiter is used again, and that of the variable's list.
#[test]
fn a_wait_for_one_variable_allocates_nothing() {
    let (x, y) = (TWord::new(0_u32), TWord::new(0_u32));
    let glance = |future: Pin<&mut dyn Future<Output = ()>>| {
        let polled = future.poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
    };
    let count = allocations_of_1000(|| {
        glance(pin!(atomically(|tx| {
            let n = x.read(tx)?;
            tx.check(n > 0)
        })));
    });
    assert_eq!(count, 0);
    let count = allocations_of_1000(|| {
        let (x, y) = (x.clone(), y.clone());
        glance(pin!(wait_for(move |tx| Ok(x.read(tx)? + y.read(tx)? > 0))));
    });
    assert_eq!(count, 13_000, "see the documentation of Tx::wait_for");
}

/// Waits that are given up, beside one that stays: in the lists of their variables they leave
/// nothing.
#[test]
fn a_wait_that_is_given_up_leaves_nothing() {
    let (x, y) = (TWord::new(0_u32), TWord::new(0_u32));
    let glance = |future: &mut (dyn Future<Output = ()> + Unpin)| {
        let polled = Pin::new(future).poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
    };
    let plain = || {
        Box::pin(atomically(|tx| {
            let sum = x.read(tx)? + y.read(tx)?;
            tx.check(sum > 0)
        }))
    };
    let conditional = || {
        let (x, y) = (x.clone(), y.clone());
        Box::pin(wait_for(move |tx| Ok(x.read(tx)? + y.read(tx)? > 0)))
    };
    let (mut stays, mut also) = (plain(), conditional());
    glance(&mut stays);
    glance(&mut also);
    let (mut first, mut last) = (0, 0);
    for count in [&mut first, &mut last] {
        for _ in 0..1000 {
            glance(&mut plain());
            glance(&mut conditional());
        }
        *count = BYTES.get();
    }
    assert_eq!(first, last);
    drop((stays, also));
}

#[test]
fn a_name_costs_once_for_all_variables_of_a_queue_or_an_array() {
    /// The allocations and the bytes that are there after the call.
    fn costs<T>(make: impl FnOnce() -> T) -> (u64, isize) {
        let before = (ALLOCATIONS.get(), BYTES.get());
        let made = make();
        let costs = (ALLOCATIONS.get() - before.0, BYTES.get() - before.1);
        drop(made);
        costs
    }
    const LEN: usize = 10_000;
    let plain = costs(|| TBQueue::<u8>::new(LEN));
    let named = costs(|| TBQueue::<u8>::named("jobs", LEN));
    // The name, and three entries in the table of names.
    assert!(named.0 <= plain.0 + 8, "{named:?}, and {plain:?} without a name");
    assert!(named.1 <= plain.1 + 2000, "{named:?}, and {plain:?} without a name");
}
