//! Chains of values that need one another: forced and dropped in a bounded native stack.

use selvedge_core::{round_robin, yield_now};
use selvedge_direct::{direct, wait};
use selvedge_lazy::Lazy;
use selvedge_sync::wait_blocking;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

const LONG: u64 = if cfg!(miri) { 10 } else { 200_000 };

/// Runs on an OS thread with a stack of 256 KiB.
fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    thread::Builder::new().stack_size(256 << 10).spawn(work).unwrap().join().unwrap();
}

/// 2 GB for a moment, and some seconds.
#[cfg(not(debug_assertions))]
#[test]
fn a_chain_of_ten_million_values_is_forced_and_dropped() {
    const LENGTH: u64 = 10_000_000;
    on_a_small_stack(|| assert_eq!(*chain(LENGTH).force_blocking(), LENGTH));
    on_a_small_stack(|| drop(chain(LENGTH)));
}

fn chain(length: u64) -> Lazy<u64> {
    (0..length).fold(Lazy::ready(0), |value, _| value.map(|n| n + 1))
}

#[test]
fn a_long_chain_is_forced_on_an_os_thread() {
    on_a_small_stack(|| assert_eq!(*chain(LONG).force_blocking(), LONG));
}

#[test]
fn a_long_chain_is_forced_in_a_thread() {
    on_a_small_stack(|| {
        assert_eq!(round_robin(async { *chain(LONG).force().await }).unwrap(), LONG);
    });
}

#[test]
fn a_long_chain_is_dropped_before_it_is_forced() {
    on_a_small_stack(|| drop(chain(LONG)));
}

/// A list of lazy cells.
enum List {
    Nil,
    Cons(u64, Lazy<List>),
}

fn count_from(first: u64, end: u64) -> Lazy<List> {
    Lazy::new(move || if first == end { List::Nil } else { List::Cons(first, count_from(first + 1, end)) })
}

#[test]
fn a_long_list_is_walked_and_dropped() {
    on_a_small_stack(|| {
        let list = count_from(0, LONG);
        let (mut sum, mut at) = (0, list.clone());
        while let List::Cons(head, tail) = at.clone().force_blocking() {
            sum += head;
            at = tail.clone();
        }
        drop(at);
        assert_eq!(sum, LONG * (LONG - 1) / 2);
        drop(list);
    });
}

/// The sum from the right: a body that needs the sum of the tail.
fn sum(list: Lazy<List>) -> Lazy<u64> {
    Lazy::future(async move {
        match list.force().await {
            List::Nil => 0,
            List::Cons(head, tail) => head + *sum(tail.clone()).force().await,
        }
    })
}

#[test]
fn a_fold_from_the_right_takes_no_stack() {
    on_a_small_stack(|| {
        assert_eq!(*sum(count_from(0, LONG)).force_blocking(), LONG * (LONG - 1) / 2);
    });
}

#[test]
fn several_long_chains_at_once_in_one_body() {
    on_a_small_stack(|| {
        let long = LONG / if cfg!(miri) { 2 } else { 10 };
        let both = Lazy::future(async move {
            let (left, right) = (chain(long), chain(long));
            let (left, right) = futures::join!(left.force(), right.force());
            left + right
        });
        assert_eq!(*both.force_blocking(), 2 * long);
    });
}

/// A chain of bodies that each wait once, and then need the one before. Each poll of a body counts.
fn waiting_chain(length: u64, polls: &Arc<AtomicU64>) -> Lazy<u64> {
    (0..length).fold(Lazy::ready(0), |previous, _| {
        let polls = polls.clone();
        Lazy::future(async move {
            let mut body = pin!(async {
                yield_now().await;
                *previous.force().await + 1
            });
            poll_fn(|cx| {
                polls.fetch_add(1, Ordering::Relaxed);
                body.as_mut().poll(cx)
            })
            .await
        })
    })
}

#[test]
fn a_chain_of_bodies_that_wait_is_polled_a_linear_number_of_times() {
    const LENGTH: u64 = if cfg!(miri) { 20 } else { 4000 };
    let polls = Arc::new(AtomicU64::new(0));
    let counted = polls.clone();
    on_a_small_stack(move || {
        let chain = waiting_chain(LENGTH, &counted);
        assert_eq!(round_robin(async move { *chain.force().await }).unwrap(), LENGTH);
        assert_eq!(*waiting_chain(LENGTH, &counted).force_blocking(), LENGTH);
    });
    // At each wake-up the driver's own body with those within it, and the body that was woken.
    let polls = polls.load(Ordering::Relaxed);
    assert!(polls < 2 * LENGTH * 80, "{polls} polls of {LENGTH} bodies, twice");
}

/// A chain of closures, each of which blocks for the one before.
fn blocking_chain(length: u64, first: Lazy<u64>) -> Lazy<u64> {
    (0..length).fold(first, |previous, _| Lazy::new(move || *previous.force_blocking() + 1))
}

const BLOCKING: u64 = if cfg!(miri) { 10 } else { 20_000 };

#[test]
fn a_long_chain_of_closures_that_block_is_forced() {
    on_a_small_stack(|| {
        assert_eq!(*blocking_chain(BLOCKING, Lazy::ready(0)).force_blocking(), BLOCKING);
        let slow = Lazy::future(async {
            let mut turns = 3;
            poll_fn(|cx| {
                turns -= 1;
                cx.waker().wake_by_ref();
                if turns == 0 { std::task::Poll::Ready(7) } else { std::task::Poll::Pending }
            })
            .await
        });
        assert_eq!(*blocking_chain(BLOCKING, slow).force_blocking(), BLOCKING + 7);
    });
}

#[test]
fn the_panic_of_the_first_body_of_a_chain_comes_out_at_the_last() {
    on_a_small_stack(|| {
        let chain = blocking_chain(BLOCKING, Lazy::new(|| std::panic::resume_unwind(Box::new("no warp"))));
        let thrown = catch_unwind(AssertUnwindSafe(|| *chain.force_blocking())).unwrap_err();
        assert_eq!(thrown.downcast_ref::<&str>(), Some(&"no warp"));
    });
}

#[test]
fn a_circle_of_many_closures_that_block_is_found() {
    on_a_small_stack(|| {
        let last = Arc::new(OnceLock::<Lazy<u64>>::new());
        let tail = last.clone();
        let chain = blocking_chain(BLOCKING / 10, Lazy::new(move || *tail.get().unwrap().force_blocking()));
        last.set(chain.clone()).unwrap();
        let failed = wait_blocking(chain.try_force()).unwrap_err();
        assert!(failed.is_loop(), "{failed}");
    });
}

/// A chain of which each force is behind a waker of its own.
fn chain_behind_wakers(length: u64) -> Lazy<u64> {
    (0..length).fold(Lazy::ready(0), |previous, _| Lazy::new(move || *wait_blocking(previous.force()) + 1))
}

#[test]
fn a_chain_that_nests_too_deep_is_refused_and_says_how_deep() {
    let work = || {
        let short = if cfg!(miri) { 10 } else { 400 };
        assert_eq!(*wait_blocking(chain_behind_wakers(short).force()), short);
        let long = chain_behind_wakers(if cfg!(miri) { 100 } else { 10_000 });
        let failed = wait_blocking(long.try_force()).unwrap_err();
        let depth = if cfg!(miri) { "16 deep" } else { "512 deep" };
        assert!(failed.message().contains(depth), "{failed}");
    };
    thread::Builder::new().stack_size(8 << 20).spawn(work).unwrap().join().unwrap();
}

/// A chain of closures, each of which waits in direct style for the one before.
fn direct_chain(length: u64) -> Lazy<u64> {
    (0..length).fold(Lazy::ready(0), |previous, _| Lazy::new(move || *wait(previous.force()) + 1))
}

#[test]
#[cfg_attr(miri, ignore = "direct style switches stacks by machine code")]
fn a_chain_of_closures_in_direct_style_is_forced_or_refused() {
    let ended = round_robin(direct(|| {
        assert_eq!(*wait(direct_chain(60).force()), 60);
        let failed = wait(direct_chain(1000).try_force()).unwrap_err();
        assert!(failed.message().contains("64 deep"), "{failed}");
        // Futures may be as many as you like.
        *wait(chain(LONG / 100).force())
    }));
    assert_eq!(ended.unwrap(), LONG / 100);
}
