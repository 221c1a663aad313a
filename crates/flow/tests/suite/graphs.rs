//! A graph in the middle of a pipeline: its results, its faults, and how it is stopped.

use crate::schedulers::{Scheduler, run};
use selvedge_cnc::schedulers::{OneByOne, Stealing, TaskPool};
use selvedge_core::{spawn, yield_now};
use selvedge_flow::{GraphEnds, ahead, made, through_graph};
use selvedge_pipeline::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

under_every_scheduler! {
    the_results_are_in_the_order_of_the_items
    a_result_may_need_later_items
    a_fault_of_the_graph_is_a_failure
    a_result_that_never_comes_is_told
    a_failure_upstream_comes_after_the_results
    a_consumer_that_is_finished_stops_the_graph
    a_pipeline_that_is_dropped_stops_the_graph
}

/// Sums of all items up to each one. A sum needs the one before.
macro_rules! sums {
    ($under_way:expr, $scheduler:expr) => {
        through_graph($under_way, $scheduler, |graph| {
            let (tags, items) = (graph.tags::<u64>("numbers"), graph.items::<u64, u64>("items"));
            let sums = graph.items::<u64, u64>("sums");
            graph.prescribe(tags, "add", move |n, step| {
                let before = if n == 0 { 0 } else { *step.get(sums, n - 1)? };
                step.put(sums, n, before + step.get(items, n)?)
            });
            GraphEnds::new(
                move |env, number, item: &u64| {
                    env.put_tag(tags, number)?;
                    env.put(items, number, *item)
                },
                sums,
            )
        })
    };
}

fn the_results_are_in_the_order_of_the_items(scheduler: Scheduler) {
    for length in [0_u64, 1, 7, 300] {
        let slow: Vec<u64> = (0..length).map(|n| n * (n + 1) / 2).collect();
        for under_way in [1, 40, 100_000] {
            let fast = run(scheduler, async move {
                let chunks =
                    (0..length).collect::<Vec<_>>().chunks(17).map(<[u64]>::to_vec).collect::<Vec<_>>();
                let one = from_iter(0..length) >> sums!(under_way, OneByOne);
                let two = made(from_chunks(chunks)) >> id() >> sums!(under_way, TaskPool::fuzz(2, length));
                let two = two >> ahead(1) >> lift121(|n: &u64| *n);
                ((one >> collect()).run().await.unwrap(), (two >> collect()).run().await.unwrap())
            })
            .unwrap();
            assert_eq!(fast, (slow.clone(), slow.clone()), "{length} items, {under_way} under way");
        }
    }
}

/// The greatest of an item and of the `reach` items after it, as far as they exist.
macro_rules! greatest {
    ($under_way:expr, $reach:expr, $last:expr) => {
        through_graph($under_way, Stealing::new(2), move |graph| {
            let (tags, items) = (graph.tags::<u64>("numbers"), graph.items::<u64, u64>("items"));
            let greatest = graph.items::<u64, u64>("greatest");
            graph.prescribe(tags, "compare", move |n, step| {
                let mut most = 0;
                for at in n..=(n + $reach).min($last) {
                    most = most.max(*step.get(items, at)?);
                }
                step.put(greatest, n, most)
            });
            GraphEnds::new(
                move |env, number, item: &u64| {
                    env.put(items, number, *item)?;
                    env.put_tag(tags, number)
                },
                greatest,
            )
        })
    };
}

fn a_result_may_need_later_items(scheduler: Scheduler) {
    let items: Vec<u64> = (0..100).map(|n| n * 7919 % 1009).collect();
    for reach in [1, 30, 150] {
        let slow: Vec<u64> = (0..items.len())
            .map(|at| *items[at..(at + reach + 1).min(items.len())].iter().max().unwrap())
            .collect();
        for under_way in [2, 1000] {
            let (items, last) = (items.clone(), items.len() as u64 - 1);
            let fast = run(scheduler, async move {
                let source = from_chunks(items.chunks(3).map(<[u64]>::to_vec).collect::<Vec<_>>());
                (source >> greatest!(under_way, reach as u64, last) >> collect()).run().await.unwrap()
            });
            assert_eq!(fast.unwrap(), slow, "reach {reach}, {under_way} under way");
        }
    }
}

/// Halves of even numbers. An odd number is a fault, or has no result.
macro_rules! halves {
    ($faults:expr) => {
        through_graph(4, Stealing::new(2), move |graph| {
            let tags = graph.tags::<(u64, u64)>("numbers");
            let halves = graph.items::<u64, u64>("halves");
            graph.prescribe(tags, "halve", move |(number, item), step| match item % 2 {
                0 => step.put(halves, number, item / 2),
                _ if $faults => panic!("{item} is odd"),
                _ => Ok(()),
            });
            GraphEnds::new(move |env, number, item: &u64| env.put_tag(tags, (number, *item)), halves)
        })
    };
}

fn a_fault_of_the_graph_is_a_failure(scheduler: Scheduler) {
    let failed = run(scheduler, async {
        let items = from_iter((0..100_u64).map(|n| if n == 60 { 61 } else { 2 * n }));
        (items >> halves!(true) >> ahead(1) >> count()).run().await.unwrap_err()
    })
    .unwrap();
    assert_eq!(failed.stage(), "through_graph");
    assert!(failed.cause().to_string().contains("61 is odd"), "{failed}");
}

fn a_result_that_never_comes_is_told(scheduler: Scheduler) {
    let seen = Arc::new(AtomicU32::new(0));
    let count = seen.clone();
    let failed = run(scheduler, async move {
        let items = from_iter((0..100_u64).map(|n| if n == 60 { 61 } else { 2 * n }));
        let seeing = fold((), move |(): &mut (), _: &u64| {
            count.fetch_add(1, SeqCst);
        });
        (items >> halves!(false) >> seeing).run().await.unwrap_err()
    })
    .unwrap();
    let told = "through_graph: item 61, offset 60: the graph has put no item 60 in `halves`";
    assert_eq!((failed.to_string().as_str(), seen.load(SeqCst)), (told, 60));
    // A step that waits for an item is told as stuck.
    let stuck = run(scheduler, async move {
        (from_iter(0..3_u64) >> greatest!(1, 9, 100) >> collect()).run().await.unwrap_err()
    });
    let stuck = stuck.unwrap().to_string();
    assert!(stuck.starts_with("through_graph: item 1, ") && stuck.contains("items"), "{stuck}");
}

fn a_failure_upstream_comes_after_the_results(scheduler: Scheduler) {
    let seen = Arc::new(AtomicU32::new(0));
    let count = seen.clone();
    let failed = run(scheduler, async move {
        let items =
            from_iter(0..100_u64) >> try_lift121(|n: &u64| if *n < 70 { Ok(*n) } else { Err("seventy") });
        let seeing = fold((), move |(): &mut (), _: &u64| {
            count.fetch_add(1, SeqCst);
        });
        (items >> sums!(9, Stealing::new(2)) >> seeing).run().await.unwrap_err()
    })
    .unwrap();
    assert_eq!(failed.to_string(), "try_lift121: item 71, offset 70: seventy");
    assert_eq!(seen.load(SeqCst), 70);
    // Results that need what the failure took away are no fault of the graph.
    let failed = run(scheduler, async move {
        let items =
            from_iter(0..100_u64) >> try_lift121(|n: &u64| if *n < 70 { Ok(*n) } else { Err("seventy") });
        (items >> greatest!(2, 5, 99) >> count_all()).run().await.unwrap_err()
    });
    assert_eq!(failed.unwrap().to_string(), "try_lift121: item 71, offset 70: seventy");
}

fn count_all() -> Iteratee<u64, impl Consume<u64, Result = u64> + Clone> {
    count()
}

fn a_consumer_that_is_finished_stops_the_graph(scheduler: Scheduler) {
    let token = Arc::new(());
    let theirs = token.clone();
    let (first, left) = run(scheduler, async move {
        let (ours, kept) = (theirs.clone(), theirs.clone());
        let endless = from_fn(10, move |block: &mut [u64]| {
            let _kept = &ours;
            block.fill(4);
            10
        });
        drop(theirs);
        let first = (endless >> sums!(20, Stealing::new(2)) >> take(3) >> collect()).run().await.unwrap();
        // The source has been dropped when the result is there.
        let left = Arc::strong_count(&kept);
        (first, left)
    })
    .unwrap();
    assert_eq!((first, left), (vec![4, 8, 12], 2));
    assert_eq!(Arc::strong_count(&token), 1);
}

fn a_pipeline_that_is_dropped_stops_the_graph(scheduler: Scheduler) {
    let token = Arc::new(());
    let theirs = token.clone();
    run(scheduler, async move {
        let endless = from_fn(10, move |block: &mut [u64]| {
            let _kept = &theirs;
            block.fill(4);
            10
        });
        let running = spawn((endless >> sums!(20, Stealing::new(1)) >> count_all()).run());
        for _ in 0..50 {
            yield_now().await;
        }
        running.cancel();
        assert!(running.await.is_err());
        while Arc::strong_count(&token) > 1 {
            yield_now().await;
        }
    })
    .unwrap();
}

#[test]
fn a_panic_that_builds_the_graph_goes_on() {
    let run = catch_unwind(AssertUnwindSafe(|| {
        selvedge_core::round_robin(async {
            let graph = through_graph(1, OneByOne, |_| -> GraphEnds<'_, u64, u64> { panic!("no graph") });
            (from_iter(0..3_u64) >> graph >> count_all()).run().await
        })
    }));
    assert_eq!(run.unwrap_err().downcast_ref::<&str>(), Some(&"no graph"));
}
