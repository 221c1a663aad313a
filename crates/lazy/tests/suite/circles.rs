//! `<<loop>>`: values that need their own value.

use futures::FutureExt;
use selvedge_core::{NoEvents, round_robin, spawn, yield_now};
use selvedge_lazy::Lazy;
use selvedge_sched::work_stealing;
use selvedge_sync::wait_blocking;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::{Arc, Barrier, Mutex, OnceLock};
use std::thread;

/// The length of a long chain.
const LENGTH: usize = if cfg!(miri) { 5 } else { 1000 };

/// The values of a row that need one another.
const LINKS: u64 = if cfg!(miri) { 6 } else { 20 };

type Knot = Arc<OnceLock<Lazy<u32>>>;

/// `count` values, each of which needs the next, and the last the first. Each body yields first, so
/// that several threads are in the circle at once.
fn ring(names: &[&'static str]) -> Vec<Lazy<u32>> {
    let knots: Vec<Knot> = names.iter().map(|_| Knot::default()).collect();
    for (at, name) in names.iter().enumerate() {
        let next = knots[(at + 1) % names.len()].clone();
        let value = Lazy::future(async move {
            yield_now().await;
            *next.get().unwrap().force().await + 1
        });
        knots[at].set(value.named(name)).unwrap();
    }
    knots.iter().map(|knot| knot.get().unwrap().clone()).collect()
}

#[test]
fn one_thread_finds_a_circle_and_names_it() {
    let values = ring(&["a", "b", "c"]);
    let first = values[0].clone();
    let failed = round_robin(async move { first.try_force().await.copied() }).unwrap().unwrap_err();
    assert!(failed.is_loop());
    let names: Vec<_> = failed.message().split(" needs ").collect();
    assert_eq!(names.len(), 4, "{failed}");
    for (name, starts) in names.iter().zip(["<<loop>>: a (", "b (", "c (", "a ("]) {
        assert!(name.starts_with(starts) && name.contains("circles.rs:"), "{failed}");
    }
    assert!(values.iter().all(Lazy::has_failed), "each value of the circle fails");
}

#[test]
fn a_value_without_a_name_is_named_by_its_place() {
    let knot = Knot::default();
    let tail = knot.clone();
    let place = format!("circles.rs:{}:", line!() + 1);
    let lazy = Lazy::new(move || *tail.get().unwrap().force_blocking() + 1);
    knot.set(lazy.clone()).unwrap();
    let failed = wait_blocking(lazy.try_force()).unwrap_err();
    assert!(failed.message().starts_with("<<loop>>: the value of "), "{failed}");
    assert!(failed.message().contains(&place), "{failed}");
}

#[test]
fn threads_of_ours_find_a_circle_between_them() {
    for &count in if cfg!(miri) { &[3][..] } else { &[2, 3, 10] } {
        for workers in if cfg!(miri) { 2..3 } else { 1..3 } {
            let names = &["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"][..count];
            let ends = work_stealing(workers, |_| Ok(NoEvents::new()), async move {
                let threads: Vec<_> = ring(names)
                    .into_iter()
                    .map(|value| spawn(async move { value.try_force().await.copied() }))
                    .collect();
                let mut ends = Vec::new();
                for thread in threads {
                    ends.push(thread.await.unwrap());
                }
                ends
            });
            for end in ends.unwrap() {
                let failed = end.unwrap_err();
                assert_eq!(failed.message().matches(" needs ").count(), count, "{failed}");
            }
        }
    }
}

#[test]
fn os_threads_find_a_circle_between_them() {
    for round in 0..if cfg!(miri) { 1 } else { 50 } {
        let (x, y) = (Knot::default(), Knot::default());
        let meet = Arc::new(Barrier::new(2));
        for (mine, other) in [(&x, &y), (&y, &x)] {
            let (other, meet) = (other.clone(), meet.clone());
            let value = Lazy::new(move || {
                meet.wait();
                *other.get().unwrap().force_blocking() + 1
            });
            mine.set(value).unwrap();
        }
        let forcers = [x, y]
            .map(|knot| thread::spawn(move || wait_blocking(knot.get().unwrap().try_force()).unwrap_err()));
        for forcer in forcers {
            assert!(forcer.join().unwrap().is_loop(), "round {round}");
        }
    }
}

#[test]
fn a_body_that_awaits_two_values_of_one_thread_is_no_circle() {
    // `left` waits for `right`, which the same thread has claimed in the other branch.
    let right = Lazy::future(async {
        yield_now().await;
        yield_now().await;
        2
    });
    let left = Lazy::future({
        let right = right.clone();
        async move { *right.force().await + 1 }
    });
    let both = Lazy::future(async move {
        let (left, right) = futures::join!(right.force(), left.force());
        left * right
    });
    assert_eq!(round_robin(async move { *both.force().await }).unwrap(), 6);
}

#[test]
fn contended_values_that_need_one_another_in_one_direction_are_no_circle() {
    for _ in 0..if cfg!(miri) { 1 } else { 200 } {
        let mut row = vec![Lazy::ready(0u64)];
        for at in 1..LINKS {
            let before: Vec<_> = row.iter().rev().take(3).cloned().collect();
            row.push(Lazy::future(async move {
                let mut sum = at;
                for value in before {
                    sum += *value.force().await;
                }
                sum % 1000
            }));
        }
        let row = Arc::new(row);
        let forcers: Vec<_> = (0..2)
            .map(|side| {
                let row = row.clone();
                thread::spawn(move || {
                    let order: Vec<_> =
                        if side == 0 { (0..LINKS).collect() } else { (0..LINKS).rev().collect() };
                    order.into_iter().map(|at: u64| *row[at as usize].force_blocking()).sum::<u64>()
                })
            })
            .collect();
        let sums: Vec<_> = forcers.into_iter().map(|forcer| forcer.join().unwrap()).collect();
        assert_eq!(sums[0], sums[1]);
    }
}

#[test]
fn a_circle_behind_a_long_chain_is_found() {
    let knot = Knot::default();
    let tail = knot.clone();
    let mut value = Lazy::future(async move { *tail.get().unwrap().force().await });
    for _ in 0..LENGTH {
        value = value.map(|n| n + 1);
    }
    knot.set(value.clone()).unwrap();
    let failed = wait_blocking(value.try_force()).unwrap_err();
    assert!(failed.is_loop());
    assert_eq!(failed.message().matches(" needs ").count(), LENGTH + 1);
}

#[test]
fn a_wait_that_a_body_has_left_behind_is_not_taken_for_one_of_a_later_body() {
    // `first` waits for `slow`, sends that force away, and ends. Then `slow` needs `second`.
    // Other tests may take the number of the record of `first`, so there are several rounds.
    for _ in 0..if cfg!(miri) { 2 } else { 20 } {
        let stuck = Lazy::future(pending::<u32>());
        let mut claims_stuck = Box::pin(stuck.force());
        assert!((&mut claims_stuck).now_or_never().is_none());
        let second = Lazy::future({
            let stuck = stuck.clone();
            async move { *stuck.force().await }
        });
        let slow = Lazy::future({
            let second = second.clone();
            async move {
                yield_now().await;
                *second.force().await
            }
        });
        let mut claims_slow = Box::pin(slow.try_force());
        assert!((&mut claims_slow).now_or_never().is_none());
        let place = Arc::new(Mutex::new(None));
        let first = Lazy::future({
            let (slow, place) = (slow.clone(), place.clone());
            async move {
                let mut force: Pin<Box<dyn Future<Output = u32> + Send>> =
                    Box::pin(async move { *slow.force().await });
                assert!(futures::poll!(&mut force).is_pending());
                *place.lock().unwrap() = Some(force);
            }
        });
        assert!(first.force().now_or_never().is_some());
        let mut claims_second = Box::pin(second.force());
        assert!((&mut claims_second).now_or_never().is_none());
        let failed = (&mut claims_slow).now_or_never();
        assert!(failed.is_none(), "{:?}", failed.map(|failed| failed.copied()));
        drop(place);
    }
}
