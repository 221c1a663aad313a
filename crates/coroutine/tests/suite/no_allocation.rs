//! A coroutine allocates when it is made, and not when it is stepped.

use futures::executor::block_on;
use selvedge_coroutine::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts the allocations of each OS thread.
struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator unchanged; counting touches a
// constant-initialised cell of the calling OS thread, which allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations<R>(of: impl FnOnce() -> R) -> u64 {
    let before = COUNT.get();
    let result = of();
    let after = COUNT.get();
    drop(result);
    after - before
}

/// Makes as many steps as its argument says.
type Program = fn(u64) -> u64;

fn pauses<'a>(count: u64) -> Trampoline<'a, u64> {
    Trampoline::new(move |mut co| async move {
        for _ in 0..count {
            co.pause().await;
        }
        count
    })
}

fn naturals<'a>(count: u64) -> Generator<'a, u64, ()> {
    Generator::new(move |mut co| async move {
        for number in 0..count {
            co.yield_(number).await;
        }
    })
}

fn sum<'a>() -> Iteratee<'a, Option<u64>, u64> {
    Iteratee::new(|mut co: Co<Await<Option<u64>>>| async move {
        let mut sum = 0;
        while let Some(number) = co.await_().await {
            sum += number;
        }
        sum
    })
}

fn increment<'a>() -> Transducer<'a, u64, u64, ()> {
    lift_one_to_one(|number| number + 1)
}

#[test]
fn what_is_made_allocates_as_documented() {
    assert_eq!(allocations(|| Trampoline::done(1)), 0);
    assert_eq!(allocations(|| pauses(1)), 2);
    assert_eq!(allocations(|| naturals(1)), 2);
    assert_eq!(allocations(sum), 3);
    assert_eq!(allocations(increment), 3);
    let (warp, weft) = (pauses(1), pauses(2));
    assert_eq!(allocations(|| mzip_with(|a, b| a + b, warp, weft)), 2);
    let (first, second) = (increment(), increment());
    assert_eq!(allocations(|| first >> second), 3);
    let generator = naturals(1);
    assert_eq!(allocations(|| generator.and_then(Generator::done)), 2);
    let generator = naturals(1);
    assert_eq!(allocations(|| from_generator(generator)), 3);
    let rest = naturals(1);
    assert_eq!(allocations(|| Generator::suspend((0, rest))), 1);
}

#[test]
fn a_step_allocates_nothing() {
    block_on(async {}); // The executor makes its own data.
    let programs: [(&str, Program); 5] = [
        ("run", |count| block_on(run(pauses(count)))),
        ("interleave", |count| block_on(run(interleave([pauses(count), pauses(count)]))).len() as u64),
        ("mzip_with", |count| block_on(run(mzip_with(|a, b| a + b, pauses(count), pauses(2 * count))))),
        ("pipe2", |count| block_on(pipe2(naturals(count), sum())).1),
        ("three stages", |count| {
            let stages = from_generator(naturals(count).and_then(Generator::done)) >> increment();
            block_on(run(to_trampoline(stages >> from_iteratee(sum())))).1
        }),
    ];
    for (name, program) in programs {
        let (few, many) = (allocations(|| program(3)), allocations(|| program(1000)));
        assert!(few > 0, "{name} makes its coroutines");
        assert_eq!(few, many, "{name}");
    }
}
