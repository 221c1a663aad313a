//! Disk operations that their threads have given up, in every state of the operation: each buffer
//! is freed once, and each descriptor is closed. (The test counts buffers and descriptors of the
//! process, so it has a file of its own.)

mod common;

use common::disk::{both, is_pattern, pattern};
use common::{ms, open_descriptors};
use selvedge_core::{Events, round_robin_over, spawn, yield_now};
use selvedge_io::EventLoop;
use selvedge_io::fs::{AlignedBuf, Driver, File};
use std::alloc::{GlobalAlloc, Layout, System};
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicIsize, Ordering::SeqCst};

/// A size that no other allocation of the process has.
const SIZE: usize = 5 * 4096;

/// The outcome of a read.
type Read = (std::io::Result<usize>, AlignedBuf);

/// An allocator that counts the buffers of the size above, which are rounded up to eight pages.
struct Counting;

static LIVE: AtomicIsize = AtomicIsize::new(0);
static EVER: AtomicIsize = AtomicIsize::new(0);

fn counts(layout: Layout) -> bool {
    layout.align() == 4096 && layout.size() == 8 * 4096
}

// SAFETY: every call is passed on to `System`, which keeps the allocator's contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`, which is the same for `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if counts(layout) {
            LIVE.fetch_add(1, SeqCst);
            EVER.fetch_add(1, SeqCst);
        }
        // SAFETY: the caller keeps the contract of `alloc_zeroed`, which is the same for `System`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        if counts(layout) {
            LIVE.fetch_sub(1, SeqCst);
        }
        // SAFETY: the caller keeps the contract of `dealloc`, and `System` has made the block.
        unsafe { System.dealloc(start, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn nothing_is_left_and_nothing_freed_twice() {
    // Each test runs on an OS thread that ends, because the OS thread frees the buffers that it
    // keeps for reuse when it ends.
    for test in [
        dropped_before_it_began_while_it_runs_and_after_it_is_done,
        a_program_that_ends_first_leaves_nothing_behind,
    ] {
        std::thread::spawn(test).join().unwrap();
        // The pool's OS threads may free the last buffers a little later.
        for _ in 0..700 {
            if LIVE.load(SeqCst) <= 0 {
                break;
            }
            std::thread::sleep(ms(10));
        }
        assert_eq!(LIVE.load(SeqCst), 0);
    }
    assert!(EVER.load(SeqCst) > 300);
}

fn dropped_before_it_began_while_it_runs_and_after_it_is_done() {
    both(|| async {
        let on_disk = pattern(1 << 20);
        let file = File::options().read(true).direct(true).open(on_disk.path()).await.unwrap();
        let before = open_descriptors();
        for wait in 0..3 {
            let mut reads: Vec<Pin<Box<dyn Future<Output = Read>>>> = (0..300)
                .map(|i| Box::pin(file.read_at(AlignedBuf::new(SIZE), i % 192 * 4096)) as Pin<Box<_>>)
                .collect();
            for read in &mut reads {
                assert!(futures::poll!(read).is_pending());
            }
            match wait {
                0 => {}                                      // queued
                1 => yield_now().await,                      // some in the kernel, some queued
                _ => selvedge_io::time::sleep(ms(30)).await, // done, unseen
            }
            drop(reads);
            // An opening that was given up leaves no descriptor.
            let mut opens: Vec<_> = (0..50).map(|_| Box::pin(File::open(on_disk.path()))).collect();
            for open in &mut opens {
                assert!(futures::poll!(open).is_pending());
            }
            if wait > 0 {
                selvedge_io::time::sleep(ms(5 * wait)).await;
            }
            drop(opens);
        }
        // The queue still works afterwards.
        assert!(is_pattern(&file.read_aligned_at(4096, 4096).await.unwrap(), 4096));
        // Both drivers close files in the background.
        for _ in 0..100 {
            if open_descriptors() <= before + 2 {
                return;
            }
            selvedge_io::time::sleep(ms(10)).await;
        }
        panic!("{} descriptors, {before} before", open_descriptors());
    });
}

fn a_program_that_ends_first_leaves_nothing_behind() {
    for driver in [Driver::Ring, Driver::Pool] {
        let on_disk = pattern(1 << 20);
        let path: PathBuf = on_disk.path().into();
        let mut events = EventLoop::with_driver(driver).unwrap();
        for _ in 0..3 {
            let path = path.clone();
            round_robin_over(&mut events, async move {
                let file = File::options().read(true).direct(true).open(&path).await.unwrap();
                for i in 0..1000 {
                    let file = file.clone();
                    drop(spawn(async move {
                        file.read_aligned_at(i % 256 * 4096, 4096).await.unwrap();
                        std::future::pending::<()>().await;
                    }));
                }
                yield_now().await;
                yield_now().await;
            })
            .unwrap();
            assert_eq!(events.armed(), 0);
        }
    }
}
