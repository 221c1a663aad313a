//! Results that hold the handles of other threads, deeper than the native stack would bear.

use selvedge_core::{JoinHandle, round_robin, spawn, yield_now};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const DEPTH: usize = if cfg!(miri) { 50 } else { 300_000 };

/// The number of results that have been dropped, for each test.
static DROPPED: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];

/// The result of a thread: the handle of the thread before it.
struct Link {
    _before: Option<JoinHandle<Link>>,
    test: usize,
}

impl Drop for Link {
    fn drop(&mut self) {
        DROPPED[self.test].fetch_add(1, Relaxed);
    }
}

/// Threads that have ended, each with the handle of the one before it in its result. Returns the
/// last handle.
async fn chain(test: usize) -> JoinHandle<Link> {
    let mut last = None;
    for _ in 0..DEPTH {
        let before = last.take();
        last = Some(spawn(async move { Link { _before: before, test } }));
        yield_now().await;
    }
    last.unwrap()
}

#[test]
fn a_handle_that_is_dropped_drops_a_long_chain_of_results() {
    let ended = round_robin(async {
        drop(chain(0).await);
        DROPPED[0].load(Relaxed)
    });
    assert_eq!(ended.unwrap(), DEPTH, "all of them within the drop of the first");
}

#[test]
fn a_thread_without_a_handle_drops_a_long_chain_of_results_at_its_end() {
    let ended = round_robin(async {
        let before = Some(chain(1).await);
        drop(spawn(async move { Link { _before: before, test: 1 } }));
        yield_now().await;
        DROPPED[1].load(Relaxed)
    });
    assert_eq!(ended.unwrap(), DEPTH + 1);
}

#[test]
fn a_chain_is_dropped_outside_of_every_scheduler() {
    let last = round_robin(chain(2)).unwrap();
    drop(last);
    assert_eq!(DROPPED[2].load(Relaxed), DEPTH);
}
