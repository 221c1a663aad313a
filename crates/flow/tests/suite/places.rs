//! Where stages run changes nothing: in one thread, ahead, and in parallel, under every scheduler.

use crate::schedulers::{Scheduler, run};
use selvedge_core::{spawn, yield_now};
use selvedge_flow::{ahead, made, map_par, par, seq};
use selvedge_pipeline::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

under_every_scheduler! {
    the_places_of_stages_do_not_change_the_result
    a_failure_is_the_same_in_each_place
    a_panic_comes_through_the_thread_that_is_ahead
    a_consumer_that_is_finished_stops_the_threads_first
    a_pipeline_that_is_dropped_cancels_its_threads
}

/// Cuts that follow from a number.
fn cut(items: &[u32], seed: u32) -> Vec<Vec<u32>> {
    let (mut chunks, mut rest, mut state) = (Vec::new(), items, seed);
    while !rest.is_empty() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (chunk, after) = rest.split_at((state >> 28).min(rest.len() as u32) as usize);
        chunks.push(chunk.to_vec());
        rest = after;
    }
    chunks
}

fn source(length: u32, seed: u32) -> Generator<u32, impl Generate<u32> + Send> {
    from_chunks(cut(&(0..length).collect::<Vec<_>>(), seed))
}

/// A stage with a state, a flush and lists.
fn stages() -> Transducer<u32, u32, impl Transduce<u32, u32> + Clone + Send> {
    let sums = lift_stateful(
        |sum: &mut u32, n: &u32| {
            *sum = sum.wrapping_add(*n);
            [*sum % 17]
        },
        |sum| [*sum],
        0,
    );
    sums >> group_by(satisfies(|n: &u32| *n > 4)) >> lift121(|list: &[u32]| list.len() as u32 * 100 + list[0])
}

fn the_places_of_stages_do_not_change_the_result(scheduler: Scheduler) {
    for (length, seed) in [(0, 1), (1, 2), (50, 3), (3000, 4)] {
        let slow = (source(length, seed) >> stages() >> lift121(|n: &u32| n * 3)).collect();
        let fast = run(scheduler, async move {
            let from = || source(length, seed);
            let last = || lift121(|n: &u32| n * 3);
            let pure = |n: &u32| n * 3;
            [
                (from() >> stages() >> seq() >> last()).collect(),
                (made(from()) >> stages() >> seq() >> last() >> collect()).run().await.unwrap(),
                (from() >> par() >> stages() >> last() >> collect()).run().await.unwrap(),
                (from() >> stages() >> ahead(3) >> last() >> ahead(1) >> collect()).run().await.unwrap(),
                (from() >> stages() >> map_par(1, pure) >> collect()).run().await.unwrap(),
                (from() >> ahead(2) >> stages() >> map_par(3, pure) >> par() >> collect())
                    .run()
                    .await
                    .unwrap(),
            ]
        })
        .unwrap();
        for (place, result) in fast.iter().enumerate() {
            assert_eq!(*result, slow, "{length} items in place {place}");
        }
    }
}

/// Fails, or panics, at the item 40.
fn until_forty(panics: bool) -> Transducer<u32, u32, impl Transduce<u32, u32> + Clone + Send> {
    try_lift121(move |n: &u32| match *n {
        40 if panics => panic!("a panic at 40"),
        40 => Err("forty"),
        n => Ok(n),
    })
}

fn a_failure_is_the_same_in_each_place(scheduler: Scheduler) {
    let seen = || Arc::new(AtomicUsize::new(0));
    let failures = run(scheduler, async move {
        let mut failures = Vec::new();
        for place in 0..5 {
            let count = seen();
            let here = count.clone();
            let counting = fold((), move |(): &mut (), _: &u32| {
                here.fetch_add(1, Ordering::Relaxed);
            });
            let from = source(100, 5);
            let failed = match place {
                0 => (from >> until_forty(false) >> counting).try_run(),
                1 => (made(from) >> until_forty(false) >> counting).run().await,
                2 => (from >> until_forty(false) >> ahead(2) >> counting).run().await,
                3 => (from >> ahead(2) >> until_forty(false) >> par() >> counting).run().await,
                _ => (from >> until_forty(false) >> map_par(3, |n: &u32| *n) >> counting).run().await,
            };
            failures.push((failed.unwrap_err().to_string(), count.load(Ordering::Relaxed)));
        }
        failures
    })
    .unwrap();
    let told = ("try_lift121: item 41, offset 40: forty".to_string(), 40);
    assert_eq!(failures, vec![told; 5]);
}

fn a_panic_comes_through_the_thread_that_is_ahead(scheduler: Scheduler) {
    for place in 0..3 {
        let run = catch_unwind(AssertUnwindSafe(|| {
            run(scheduler, async move {
                let from = source(100, 6);
                let panics = |n: &u32| if *n == 40 { panic!("a panic at 40") } else { *n };
                let all = match place {
                    0 => (from >> until_forty(true) >> ahead(1) >> collect()).run().await,
                    1 => (from >> until_forty(true) >> map_par(2, |n: &u32| *n) >> collect()).run().await,
                    _ => (from >> map_par(2, panics) >> collect()).run().await,
                };
                drop(all);
            })
        }));
        let panic = run.unwrap_err();
        let message = panic.downcast_ref::<&str>().copied();
        assert_eq!(message, Some("a panic at 40"), "place {place}");
    }
}

/// Counts the drops.
#[derive(Clone)]
struct Told(Arc<AtomicUsize>);

impl Drop for Told {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn endless(told: Told) -> Generator<u32, impl Generate<u32> + Send> {
    from_fn(10, move |block: &mut [u32]| {
        let _kept = &told;
        block.fill(7);
        10
    })
}

fn a_consumer_that_is_finished_stops_the_threads_first(scheduler: Scheduler) {
    for place in 0..3 {
        let dropped = Arc::new(AtomicUsize::new(0));
        let from = endless(Told(dropped.clone()));
        let before = dropped.clone();
        let (first, drops) = run(scheduler, async move {
            let first = match place {
                0 => (from >> ahead(3) >> head()).run().await,
                1 => (from >> ahead(1) >> id() >> ahead(2) >> take(25) >> head()).run().await,
                _ => (from >> map_par(2, |n: &u32| *n) >> head()).run().await,
            };
            (first.unwrap(), before.load(Ordering::SeqCst))
        })
        .unwrap();
        assert_eq!((first, drops), (Some(7), 1), "place {place}");
    }
}

fn a_pipeline_that_is_dropped_cancels_its_threads(scheduler: Scheduler) {
    let dropped = Arc::new(AtomicUsize::new(0));
    let from = endless(Told(dropped.clone()));
    run(scheduler, async move {
        let running = spawn((from >> ahead(1) >> id() >> ahead(1) >> count()).run());
        for _ in 0..20 {
            yield_now().await;
        }
        running.cancel();
        assert!(running.await.is_err());
        // The threads that were ahead are cancelled, and end when their turn comes.
        while dropped.load(Ordering::SeqCst) == 0 {
            yield_now().await;
        }
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
    })
    .unwrap();
}

#[test]
fn the_result_is_the_same_in_every_order() {
    let slow = (source(12, 9) >> stages()).collect();
    selvedge_sim::simulate(0..200, move || {
        let slow = slow.clone();
        async move {
            let from = || source(12, 9);
            let fast = (from() >> ahead(1) >> stages() >> ahead(2) >> collect()).run().await;
            assert_eq!(fast.unwrap(), slow);
            let fast = (from() >> ahead(1) >> stages() >> map_par(2, |n: &u32| *n) >> collect()).run().await;
            assert_eq!(fast.unwrap(), slow);
            assert_eq!((from() >> ahead(2) >> take(5) >> count()).run().await.unwrap(), 5);
        }
    });
}

/// The consumer wants one item, at any moment of the threads that compute and of the thread that
/// shares the items out.
#[test]
fn no_worker_outlives_its_pipeline_in_any_order() {
    selvedge_sim::simulate(0..200, || async {
        let token = Arc::new(());
        let theirs = token.clone();
        let f = move |n: &u32| {
            let _kept = &theirs;
            *n
        };
        let first = (endless(Told(Arc::new(AtomicUsize::new(0)))) >> map_par(2, f) >> head()).run().await;
        assert_eq!(first.unwrap(), Some(7));
        assert_eq!(Arc::strong_count(&token), 1);
    });
}
