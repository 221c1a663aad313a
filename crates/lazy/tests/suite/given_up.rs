//! An evaluation that is given up: frozen, and gone on with by the next thread that needs it.

use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use selvedge_core::{NoEvents, round_robin, spawn, yield_now};
use selvedge_lazy::Lazy;
use selvedge_sched::work_stealing;
use selvedge_sync::{Event, wait_blocking};
use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::task::Poll;
use std::thread;

/// More values than a force polls within one another.
const DEEP: u32 = if cfg!(miri) { 4 } else { 100 };

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
    for _ in 0..if cfg!(miri) { 1 } else { 100 } {
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
    for _ in 0..DEEP {
        outer = outer.map(|n| n + 1);
    }
    assert!(outer.force().now_or_never().is_none());
    assert!(inner.try_force().now_or_never().is_none());
    assert!(outer.force().now_or_never().is_none());
    go.set();
    assert_eq!(wait_blocking(async { *inner.force().await }), 2);
    assert_eq!(*outer.force_blocking(), 20 + DEEP as usize);
    assert_eq!(parts.load(Ordering::Relaxed), 2);
}

#[test]
fn a_branch_that_lost_gives_up_what_it_was_evaluating() {
    let (slow, _, go) = in_two_parts();
    let mut deep = slow.map(|n| n * 2);
    for _ in 0..DEEP {
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
    assert_eq!(*deep.force_blocking(), 4 + DEEP as usize);
    assert!(slow.is_ready());
}

#[test]
fn values_behind_a_waker_of_a_combinator_are_frozen_too() {
    let (inner, parts, go) = in_two_parts();
    let outer = Lazy::future({
        let inner = inner.clone();
        async move {
            let mut all = FuturesUnordered::new();
            all.push(inner.force());
            *all.next().await.unwrap()
        }
    });
    assert!(outer.force().now_or_never().is_none());
    assert!(inner.try_force().now_or_never().is_none());
    assert_eq!(parts.load(Ordering::Relaxed), 1);
    go.set();
    assert_eq!(*inner.force_blocking(), 2, "the frozen body has given the value up");
    assert_eq!(*outer.force_blocking(), 2);
}

type SentForce = Pin<Box<dyn Future<Output = u32> + Send>>;

/// A value that needs `polls` polls of its body. The second poll meets the test twice.
/// The body fails if two OS threads poll it at once.
fn met_in_second_poll(polls: usize) -> (Lazy<u32>, Arc<Barrier>) {
    let meet = Arc::new(Barrier::new(2));
    let (met, is_polled, mut count) = (meet.clone(), Arc::new(AtomicBool::new(false)), 0);
    let lazy = Lazy::future(poll_fn(move |cx| {
        assert!(!is_polled.swap(true, Ordering::Relaxed), "two OS threads poll one body");
        count += 1;
        if count == 2 {
            met.wait();
            met.wait();
        }
        is_polled.store(false, Ordering::Relaxed);
        if count == polls {
            return Poll::Ready(7);
        }
        // A driver polls a body that was delegated to it only if the body was woken.
        cx.waker().wake_by_ref();
        Poll::Pending
    }));
    (lazy, meet)
}

/// A value that is never there. Its body polls a force of `needed` once and leaves it in the place.
fn sends_its_force(needed: Lazy<u32>) -> (Lazy<u32>, Arc<Mutex<Option<SentForce>>>) {
    let place = Arc::new(Mutex::new(None));
    let sent = place.clone();
    let lazy = Lazy::future(async move {
        let mut force: SentForce = Box::pin(async move { *needed.force().await });
        assert!(futures::poll!(&mut force).is_pending());
        *sent.lock().unwrap() = Some(force);
        pending().await
    });
    (lazy, place)
}

#[test]
fn a_force_that_was_sent_away_is_not_given_up_with_the_body() {
    let (value, meet) = met_in_second_poll(2);
    let (sender, place) = sends_its_force(value.clone());
    let mut demand = Box::pin(sender.force());
    assert!((&mut demand).now_or_never().is_none());
    let sent = place.lock().unwrap().take().unwrap();
    let other = thread::spawn(move || wait_blocking(sent));
    meet.wait();
    drop(demand);
    let mut third = Box::pin(value.force());
    assert!((&mut third).now_or_never().is_none(), "the other OS thread polls the body");
    meet.wait();
    assert_eq!(*wait_blocking(third), 7);
    assert_eq!(other.join().unwrap(), 7);
}

#[test]
fn a_delegated_body_that_is_given_up_while_it_is_polled_goes_on_afterwards() {
    let (value, meet) = met_in_second_poll(3);
    let mut deep = value.clone();
    for _ in 0..DEEP {
        deep = deep.map(|n| *n);
    }
    let (sender, place) = sends_its_force(deep);
    let mut demand = Box::pin(sender.force());
    assert!((&mut demand).now_or_never().is_none());
    let sent = place.lock().unwrap().take().unwrap();
    thread::scope(|scope| {
        let driver = scope.spawn(|| assert!((&mut demand).now_or_never().is_none()));
        meet.wait();
        drop(sent);
        let mut third = Box::pin(value.force());
        assert!((&mut third).now_or_never().is_none(), "the driver polls the body");
        meet.wait();
        assert_eq!(*wait_blocking(third), 7);
        driver.join().unwrap();
    });
}

/// A closure that waits twice in direct style, with a count of its starts.
fn waits_in_direct_style(starts: &Arc<AtomicUsize>) -> impl Fn() -> u32 + Send + 'static {
    let starts = starts.clone();
    move || {
        starts.fetch_add(1, Ordering::Relaxed);
        selvedge_direct::yield_now();
        selvedge_direct::yield_now();
        7
    }
}

/// Cancels a thread in direct style in the middle of the closure, while another one waits for the
/// value. Gives what that one sees.
fn cancel_in_the_middle(lazy: &Lazy<u32>) -> Result<u32, String> {
    use selvedge_direct::{direct, spawn as spawn_direct, wait, yield_now};
    let lazy = lazy.clone();
    round_robin(direct(move || {
        let cancelled = spawn_direct({
            let lazy = lazy.clone();
            move || *wait(lazy.force())
        });
        yield_now();
        let waits = spawn_direct({
            let lazy = lazy.clone();
            move || wait(lazy.try_force()).copied().map_err(|failed| failed.to_string())
        });
        yield_now();
        cancelled.cancel();
        assert!(wait(cancelled).is_err());
        wait(waits).unwrap()
    }))
    .unwrap()
}

#[test]
fn a_closure_that_is_cancelled_in_direct_style_is_restarted_if_it_may_be() {
    let starts = Arc::new(AtomicUsize::new(0));
    let again = Lazy::again(waits_in_direct_style(&starts));
    assert_eq!(cancel_in_the_middle(&again), Ok(7));
    assert_eq!((*again.force_blocking(), starts.load(Ordering::Relaxed)), (7, 2));
    // A panic is no cancellation.
    let panics: Lazy<u32> = Lazy::again(|| panic!("torn"));
    for _ in 0..2 {
        assert_eq!(wait_blocking(panics.try_force()).unwrap_err().message(), "torn");
    }
}

#[test]
fn a_closure_that_runs_once_and_is_cancelled_in_direct_style_fails() {
    let starts = Arc::new(AtomicUsize::new(0));
    let once = Lazy::new(waits_in_direct_style(&starts));
    let failed = cancel_in_the_middle(&once).unwrap_err();
    assert!(failed.contains("was cancelled"), "{failed}");
    assert!(once.has_failed());
    assert_eq!(starts.load(Ordering::Relaxed), 1);
}

#[test]
fn a_value_that_is_restarted_in_direct_style_has_left_the_one_that_needed_it() {
    let starts = Arc::new(AtomicUsize::new(0));
    let inner = Lazy::again(waits_in_direct_style(&starts));
    let outer = inner.map(|n| n + 1);
    let failed = cancel_in_the_middle(&outer).unwrap_err();
    assert!(failed.contains("was cancelled"), "{failed}");
    assert_eq!(cancel_in_the_middle(&inner), Ok(7));
    assert_eq!(starts.load(Ordering::Relaxed), 3);
}
