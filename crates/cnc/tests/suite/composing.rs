//! Reductions, joins, affinity and lent jobs.

use crate::schedulers::each;
use selvedge_cnc::schedulers::{Affine, GraphJob, Scheduler};
use selvedge_cnc::{Items, graph};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// How many items are reduced: up to 16, up to 256, and more. A reduction joins 16 at a time.
const COUNTS: &[u32] = if cfg!(miri) { &[0, 1, 2, 16, 17, 33] } else { &[0, 1, 2, 16, 17, 256, 257, 600] };
const MOST: u32 = COUNTS[COUNTS.len() - 1];

#[test]
fn a_reduction_has_the_same_bits_everywhere() {
    // Sums of these depend on the order in which they are added.
    let item = |n: u32| 1.0_f64 / f64::from(n + 1) * if n.is_multiple_of(3) { 1e10 } else { -1.0 };
    let mut expected = None;
    each(|name, scheduler| {
        let sums = graph(|graph| {
            let (tags, items) = (graph.tags::<u32>("counts"), graph.items_in("items", Items::dense(MOST)));
            let sums = graph.items::<u32, f64>("sums");
            let key = |&count: &u32, n| (n < count).then_some(n);
            graph.prescribe_reduce(tags, "sum", items, key, sums, |a, b| a + b);
            let makers = graph.tags::<u32>("makers");
            graph.prescribe(makers, "make", move |n, step| step.put(items, n, item(n)));
            graph
                .initialize(|env| {
                    COUNTS.iter().try_for_each(|&n| env.put_tag(tags, n))?;
                    (0..MOST).try_for_each(|n| env.put_tag(makers, n))
                })
                .unwrap();
            let finished = graph.run(scheduler).unwrap_or_else(|error| panic!("{name}: {error}"));
            finished.finalize(|view| view.iter(sums).map(|(n, sum)| (n, sum.to_bits())).collect::<Vec<_>>())
        });
        assert_eq!(sums.len(), COUNTS.len() - 1, "{name}: the sum of nothing is no item");
        let sum = |n| (0..n).map(item).fold(None, |sum, x| Some(sum.map_or(x, |sum: f64| sum + x)));
        // Up to 16 items there is one order only.
        for &(n, bits) in sums.iter().filter(|(n, _)| *n <= 16) {
            assert_eq!(Some(bits), sum(n).map(f64::to_bits), "{name}: {n}");
        }
        assert_eq!(expected.get_or_insert_with(|| sums.clone()), &sums, "{name}");
    });
}

#[test]
fn a_join_makes_every_pair_once() {
    each(|name, scheduler| {
        let pairs = graph(|graph| {
            let (left, right) = (graph.tags::<u32>("left"), graph.tags::<String>("right"));
            let (pairs, items) = (graph.tags("pairs"), graph.items("items"));
            graph.prescribe_join(left, right, pairs);
            graph.prescribe(pairs, "note", move |pair, step| step.put(items, pair, ()));
            graph
                .initialize(|env| {
                    (0..12).try_for_each(|n| env.put_tag(left, n))?;
                    (0..7).try_for_each(|n| env.put_tag(right, n.to_string()))
                })
                .unwrap();
            // A pair that was made twice would be put twice.
            let finished = graph.run(scheduler).unwrap_or_else(|error| panic!("{name}: {error}"));
            finished.finalize(|view| view.iter(items).count())
        });
        assert_eq!(pairs, 84, "{name}");
    });
}

#[test]
fn steps_run_on_the_worker_that_they_name() {
    let places = Mutex::new(HashMap::new());
    graph(|graph| {
        let (tags, places) = (graph.tags::<(u32, u32)>("tags"), &places);
        graph
            .prescribe(tags, "note", move |(tile, round), step| {
                places.lock().unwrap().entry(tile).or_insert_with(Vec::new).push(thread::current().id());
                if round < 9 { step.put_tag(tags, (tile, round + 1)) } else { Ok(()) }
            })
            .affinity(|(tile, _)| *tile as usize);
        graph.initialize(|env| (0..6).try_for_each(|tile| env.put_tag(tags, (tile, 0)))).unwrap();
        graph.run(&Affine::new(3)).unwrap();
    });
    let places = places.into_inner().unwrap();
    assert!(places.values().all(|at| at.len() == 10 && at.iter().all(|one| *one == at[0])));
    for tile in 0..6 {
        assert_eq!(places[&tile][0], places[&((tile + 3) % 6)][0]);
        assert_ne!(places[&tile][0], places[&((tile + 1) % 6)][0]);
    }
    assert_eq!(places[&0][0], thread::current().id());
}

#[test]
fn a_loan_ends_when_its_last_part_is_returned() {
    struct Late;
    impl Scheduler for Late {
        fn run<'g>(&self, job: &GraphJob<'g>) {
            let held = Arc::new(Mutex::new(None));
            let part = held.clone();
            job.lend(|job| {
                let other = job.clone();
                *held.lock().unwrap() = Some(job);
                thread::spawn(move || {
                    thread::sleep(Duration::from_millis(20));
                    let mut worker = other.worker();
                    for step in other.start() {
                        worker.run(step);
                    }
                    drop((worker, other));
                    part.lock().unwrap().take();
                });
            });
            assert!(held.lock().unwrap().is_none());
        }
    }
    graph(|graph| {
        let tags = graph.tags::<u32>("tags");
        let items = graph.items("items");
        graph.prescribe(tags, "copy", move |n, step| step.put(items, n, n));
        graph.initialize(|env| (0..5).try_for_each(|n| env.put_tag(tags, n))).unwrap();
        assert_eq!(graph.run(&Late).unwrap().finalize(|view| view.iter(items).count()), 5);
    });
}
