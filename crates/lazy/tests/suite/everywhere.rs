//! The same programs under each scheduler, and under tokio: values that several threads need at
//! once, bodies that wait and fork, circles, cancelled forces, sparks and regions.

use futures::FutureExt;
use selvedge_core::{NoEvents, round_robin, spawn, yield_now};
use selvedge_direct::direct;
use selvedge_lazy::{Ahead, InPieces, Lazy, Region, join, par, pseq};
use selvedge_sched::{per_core, priority, work_stealing};
use selvedge_sim::{VirtualTime, simulated};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

type Program = Pin<Box<dyn Future<Output = ()> + Send>>;

const THREADS: u64 = 20;

/// The programs, anew for each run.
fn programs() -> [Program; 6] {
    [
        Box::pin(an_initialiser_forks()),
        Box::pin(a_chain_has_many_readers()),
        Box::pin(a_circle_fails_for_all()),
        Box::pin(a_cancelled_force_is_taken_over()),
        Box::pin(sparks_and_pieces()),
        Box::pin(a_region_under_a_value()),
    ]
}

/// The sum of what the threads give.
async fn of_all<F>(threads: impl Iterator<Item = F>) -> u64
where
    F: Future<Output = u64> + Send + 'static,
{
    let threads: Vec<_> = threads.map(spawn).collect();
    let mut sum = 0;
    for thread in threads {
        sum += thread.await.unwrap();
    }
    sum
}

/// rayon's issue 1251, and `LazyLock` on one OS thread: the initialiser forks and waits while others
/// need the value.
async fn an_initialiser_forks() {
    let shared = Lazy::future(of_all((0..THREADS).map(|n| async move {
        yield_now().await;
        n
    })));
    let forcer = |_| {
        let shared = shared.clone();
        async move { *shared.force().await }
    };
    assert_eq!(of_all((0..THREADS).map(forcer)).await, THREADS * THREADS * (THREADS - 1) / 2);
}

async fn a_chain_has_many_readers() {
    let mut chain = vec![Lazy::ready(0u64)];
    for _ in 0..THREADS {
        let before = chain.last().unwrap().clone();
        chain.push(Lazy::future(async move {
            yield_now().await;
            before.force().await + 1
        }));
    }
    let readers = chain.into_iter().rev().map(|value| async move { *value.force().await });
    assert_eq!(of_all(readers).await, THREADS * (THREADS + 1) / 2);
}

async fn a_circle_fails_for_all() {
    let knot = Arc::new(OnceLock::<Lazy<u64>>::new());
    let tail = knot.clone();
    let head = Lazy::future(async move {
        yield_now().await;
        *tail.get().unwrap().force().await
    });
    assert!(knot.set(head.map(|n| n + 1)).is_ok());
    let forcer = |_| {
        let value = knot.get().unwrap().clone();
        async move { u64::from(value.try_force().await.unwrap_err().is_loop()) }
    };
    assert_eq!(of_all((0..THREADS).map(forcer)).await, THREADS);
}

async fn a_cancelled_force_is_taken_over() {
    let slow = Lazy::future(async {
        for _ in 0..5 {
            yield_now().await;
        }
        7u64
    });
    let deep = slow.map(|n| n + 1).map(|n| n + 1);
    assert!(deep.force().now_or_never().is_none());
    let forcers = [slow.clone(), deep.clone()].map(|value| spawn(async move { *value.force().await }));
    yield_now().await;
    forcers[1].cancel();
    let [first, second] = forcers;
    assert_eq!(first.await.unwrap(), 7);
    // It may have ended before it was cancelled.
    if let Ok(value) = second.await {
        assert_eq!(value, 9);
    }
    assert_eq!(*deep.force().await, 9);
}

async fn sparks_and_pieces() {
    let (left, right) = (Lazy::new(|| 3u64), Lazy::new(|| 4u64));
    par(&right);
    assert_eq!(*pseq(&left, &right).await, 4);
    assert_eq!(left.get(), Some(&3));
    let mut squares = (0..THREADS).ahead(4, |n| n * n);
    let mut sum = 0;
    while let Some(square) = squares.next().await {
        sum += square;
    }
    let mut numbers: Vec<u64> = vec![0; THREADS as usize];
    numbers.each_piece_mut(3, |piece, numbers| {
        for (at, number) in numbers.iter_mut().enumerate() {
            *number = (3 * piece + at) as u64;
        }
    });
    let of_squares = |piece: &[u64]| piece.iter().map(|n| n * n).sum::<u64>();
    let pieces = numbers.in_pieces(4);
    assert_eq!(pieces.reduce(of_squares, |a, b| a + b), Some(sum));
    assert_eq!(join(|| pieces.map(|n| n * n), || pieces.map_pieces(of_squares).len()).0[2], 4);
    assert_eq!([0u64; 0].in_pieces(1).reduce(of_squares, |a, b| a + b), None);
}

/// A value whose body evaluates thunks.
async fn a_region_under_a_value() {
    let sum = Lazy::new(|| {
        let region: Region = Region::new();
        let nursery = region.nursery();
        let numbers = nursery.unfold(1u64, |n| Some((n, n + 1)));
        numbers.map(&nursery, |n| n * n).iter(&nursery).take(10).sum::<u64>()
    });
    let forcer = |_| {
        let sum = sum.clone();
        async move { *sum.force().await }
    };
    assert_eq!(of_all((0..THREADS).map(forcer)).await, 385 * THREADS);
}

#[test]
fn under_round_robin() {
    programs().into_iter().for_each(|program| round_robin(program).unwrap());
}

#[test]
fn under_priority() {
    programs().into_iter().for_each(|program| priority(&mut NoEvents::new(), program).unwrap());
}

#[test]
fn under_work_stealing_with_workers() {
    for workers in 1..5 {
        for program in programs() {
            work_stealing(workers, |_| Ok(NoEvents::new()), program).unwrap();
        }
    }
}

#[test]
fn under_per_core_with_values_that_the_workers_share() {
    for program in 0..programs().len() {
        let shared = Lazy::future(async {
            yield_now().await;
            5u64
        });
        let main = |_| {
            let shared = shared.clone();
            async move {
                programs().into_iter().nth(program).unwrap().await;
                *shared.force().await
            }
        };
        assert_eq!(per_core(2, |_| Ok(NoEvents::new()), main).unwrap(), [5, 5]);
    }
}

#[test]
fn under_the_simulated_scheduler_in_many_orders() {
    for seed in 0..30 {
        for program in programs() {
            simulated(seed, &mut VirtualTime::new(), program).unwrap();
        }
    }
}

#[test]
fn a_thread_in_direct_style_runs_the_programs() {
    for program in programs() {
        round_robin(direct(move || selvedge_direct::wait(program))).unwrap();
    }
}

/// Tasks of tokio on one OS thread, each of which needs what the others make: with `LazyLock` the
/// first wait would be the last.
#[test]
fn under_tokio() {
    let program = || async {
        let slow = Lazy::future(async {
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
            3u64
        });
        // The initialiser forks, and a part of it needs another shared value.
        let shared = Lazy::future({
            let slow = slow.clone();
            async move {
                let parts: Vec<_> = (0..THREADS)
                    .map(|n| {
                        let slow = slow.clone();
                        tokio::spawn(async move { n + *slow.force().await })
                    })
                    .collect();
                let mut sum = 0;
                for part in parts {
                    sum += part.await.unwrap();
                }
                sum
            }
        });
        let tasks: Vec<_> = (0..THREADS)
            .map(|_| {
                let shared = shared.clone();
                tokio::spawn(async move { *shared.force().await })
            })
            .collect();
        tasks[0].abort();
        for task in tasks.into_iter().skip(1) {
            assert_eq!(task.await.unwrap(), THREADS * (THREADS - 1) / 2 + 3 * THREADS);
        }
        assert_eq!(join(|| 1, || 2), (1, 2));
        // A circle, in two tasks.
        let knot = Arc::new(OnceLock::<Lazy<u64>>::new());
        let tail = knot.clone();
        let head = Lazy::future(async move {
            tokio::task::yield_now().await;
            *tail.get().unwrap().force().await
        });
        assert!(knot.set(head.map(|n| n + 1)).is_ok());
        let other = tokio::spawn(async move { head.try_force().await.unwrap_err().is_loop() });
        assert!(knot.get().unwrap().try_force().await.unwrap_err().is_loop());
        assert!(other.await.unwrap());
    };
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(program());
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    threads.block_on(program());
}
