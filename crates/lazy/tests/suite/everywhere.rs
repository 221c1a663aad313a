//! The same programs under each scheduler of this repository, and like ones under tokio. Those of
//! `sim` run them under the simulated one.

#[path = "../programs/mod.rs"]
mod programs;

use programs::programs;
use selvedge_core::{NoEvents, round_robin, yield_now};
use selvedge_direct::direct;
use selvedge_lazy::{Lazy, join};
use selvedge_sched::{per_core, priority, work_stealing};
use std::sync::{Arc, OnceLock};

/// The tasks of the program under tokio.
const TASKS: u64 = 20;

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
                let parts: Vec<_> = (0..TASKS)
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
        let tasks: Vec<_> = (0..TASKS)
            .map(|_| {
                let shared = shared.clone();
                tokio::spawn(async move { *shared.force().await })
            })
            .collect();
        tasks[0].abort();
        for task in tasks.into_iter().skip(1) {
            assert_eq!(task.await.unwrap(), TASKS * (TASKS - 1) / 2 + 3 * TASKS);
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
