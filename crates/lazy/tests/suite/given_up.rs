//! An evaluation that is given up: frozen, and gone on with by the next thread that needs it.

use futures::FutureExt;
use selvedge_core::{NoEvents, round_robin, spawn, yield_now};
use selvedge_lazy::Lazy;
use selvedge_sched::work_stealing;
use selvedge_sync::{Event, wait_blocking};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// A body that counts the parts of it that have run, and waits between them.
fn in_two_parts() -> (Lazy<usize>, Arc<AtomicUsize>, Arc<Event>) {
    let (parts, go) = (Arc::new(AtomicUsize::new(0)), Arc::new(Event::new()));
    let (count, told) = (parts.clone(), go.clone());
    let lazy = Lazy::future(async move {
        count.fetch_add(1, Ordering::Relaxed);
        told.wait().await;
        count.fetch_add(1, Ordering::Relaxed) + 1
    });
    (lazy, parts, go)
}

#[test]
fn a_frozen_body_goes_on_in_another_thread() {
    let (lazy, parts, go) = in_two_parts();
    assert!(lazy.force().now_or_never().is_none());
    assert_eq!(parts.load(Ordering::Relaxed), 1);
    go.set();
    assert_eq!(*lazy.force_blocking(), 2, "the first part did not run again");
}

#[test]
fn a_waiting_thread_takes_over_at_once() {
    let (lazy, parts, go) = in_two_parts();
    round_robin(async move {
        let evaluates = selvedge_core::spawn_local({
            let lazy = lazy.clone();
            async move { *lazy.force().await }
        });
        yield_now().await;
        let waits = selvedge_core::spawn_local(async move { *lazy.force().await });
        yield_now().await;
        evaluates.cancel();
        yield_now().await;
        go.set();
        assert_eq!(waits.await.unwrap(), 2);
        assert!(evaluates.await.is_err());
        assert_eq!(parts.load(Ordering::Relaxed), 2);
    })
    .unwrap();
}

#[test]
fn an_os_thread_takes_over_from_a_cancelled_thread() {
    for _ in 0..if cfg!(miri) { 2 } else { 100 } {
        let (lazy, _, go) = in_two_parts();
        let forced = lazy.clone();
        let waits = work_stealing(2, |_| Ok(NoEvents::new()), async move {
            let cancelled = spawn({
                let lazy = forced.clone();
                async move { *lazy.force().await }
            });
            yield_now().await;
            let waits = thread::spawn(move || *forced.force_blocking());
            yield_now().await;
            cancelled.cancel();
            let _ = cancelled.await;
            go.set();
            waits
        });
        assert_eq!(waits.unwrap().join().unwrap(), 2);
    }
}

#[test]
fn values_within_a_frozen_one_are_frozen_too() {
    let (inner, parts, go) = in_two_parts();
    let mut outer = inner.map(|n| n * 10);
    // Deep enough to be delegated.
    for _ in 0..100 {
        outer = outer.map(|n| n + 1);
    }
    assert!(outer.force().now_or_never().is_none());
    assert!(inner.try_force().now_or_never().is_none());
    assert!(outer.force().now_or_never().is_none());
    go.set();
    assert_eq!(wait_blocking(async { *inner.force().await }), 2);
    assert_eq!(*outer.force_blocking(), 120);
    assert_eq!(parts.load(Ordering::Relaxed), 2);
}

#[test]
fn a_branch_that_lost_gives_up_what_it_was_evaluating() {
    let (slow, _, go) = in_two_parts();
    let mut deep = slow.map(|n| n * 2);
    for _ in 0..100 {
        deep = deep.map(|n| n + 1);
    }
    let chooses = Lazy::future({
        let deep = deep.clone();
        async move {
            futures::select_biased! {
                deep = deep.force().fuse() => *deep,
                () = async { yield_now().await }.fuse() => 0,
            }
        }
    });
    assert_eq!(round_robin(async move { *chooses.force().await }).unwrap(), 0);
    go.set();
    assert_eq!(*deep.force_blocking(), 104);
    assert!(slow.is_ready());
}
