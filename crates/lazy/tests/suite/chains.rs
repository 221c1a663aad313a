//! Chains of values that need one another: forced and dropped in a bounded native stack.

use selvedge_core::round_robin;
use selvedge_lazy::Lazy;
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
