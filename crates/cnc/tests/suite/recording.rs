//! What is recorded of a run, and runs in a recorded order.

use crate::schedulers::each;
use selvedge_cnc::schedulers::{OneByOne, Replay, RunOrder, Scheduler, TaskPool};
use selvedge_cnc::{ArrowKind, CollectionId, Items, Picture, Recording, graph};
use std::collections::BTreeMap;

/// The rows and the columns of the table. The first of each has values, and the others have steps.
const SIDE: u32 = if cfg!(miri) { 4 } else { 6 };
const STEPS: usize = (SIDE as usize - 1).pow(2);

/// A table of sums by steps of all kinds, recorded; its sum, the record and the picture.
fn table(scheduler: &dyn Scheduler, runs_max: usize) -> (u64, Recording, Picture) {
    graph(|graph| {
        let (odd, even) = (graph.tags::<(u32, u32)>("odd"), graph.tags::<(u32, u32)>("even"));
        let cells = graph.items_in("cells", Items::dense((SIDE, SIDE)));
        graph.prescribe(odd, "replay", move |(i, j), step| {
            let sum = step.get(cells, (i - 1, j))? + step.get(cells, (i, j - 1))?;
            step.put(cells, (i, j), sum)
        });
        graph.prescribe_async(even, "async", move |(i, j), step| async move {
            let sum: u64 = step.get(cells, (i - 1, j)).await? + step.get(cells, (i, j - 1)).await?;
            step.put(cells, (i, j), sum)
        });
        graph.record(runs_max);
        graph
            .initialize(|env| {
                for n in 0..SIDE {
                    env.put(cells, (n, 0), 1_u64)?;
                }
                (1..SIDE).try_for_each(|n| env.put(cells, (0, n), 1))?;
                let all = (1..SIDE).rev().flat_map(|i| (1..SIDE).rev().map(move |j| (i, j)));
                all.into_iter()
                    .try_for_each(|(i, j)| env.put_tag(if (i + j) % 2 == 0 { even } else { odd }, (i, j)))
            })
            .unwrap();
        let sum = graph.run(scheduler).unwrap().finalize(|view| view.iter(cells).map(|(_, n)| n).sum());
        (sum, graph.recording(), graph.picture())
    })
}

#[test]
fn a_record_has_every_run_and_every_edge() {
    each(|name, scheduler| {
        let (_, recording, picture) = table(scheduler, 10_000);
        let mut ended = BTreeMap::new();
        for run in &recording.runs {
            assert!(run.began <= run.ended, "{name}");
            *ended.entry((run.step.clone(), run.tag.clone())).or_insert(0) += u32::from(!run.missed);
        }
        assert!(ended.len() == STEPS && ended.values().all(|&times| times == 1), "{name}: {ended:?}");
        assert_eq!(recording.forgotten, 0, "{name}");
        let edges = picture.arrows.iter().filter(|arrow| arrow.kind != ArrowKind::Prescribes);
        let edges: Vec<_> = edges.map(|arrow| (arrow.from, arrow.to)).collect();
        // The environment, the replayed steps and the async ones: the entry of their continuations
        // is not shown.
        let puts = edges.iter().filter(|(_, to)| *to == CollectionId::Items(0)).count();
        let gets = edges.iter().filter(|(from, _)| *from == CollectionId::Items(0)).count();
        assert_eq!((puts, gets, edges.len()), (3, 2, 7), "{name}: {picture:?}");
    });
}

#[test]
fn a_record_of_one_worker_is_repeated_step_by_step() {
    let (sum, recording, _) = table(&TaskPool::fuzz(1, 5), 10_000);
    let order: RunOrder = recording.order().to_string().parse().unwrap_or_else(|never| match never {});
    let (again, repeated, _) = table(&Replay::new(order), 10_000);
    assert_eq!(sum, again);
    assert_eq!(recording.order(), repeated.order());
    let missed = |recording: &Recording| recording.runs.iter().map(|run| run.missed).collect::<Vec<_>>();
    assert_eq!(missed(&recording), missed(&repeated));
}

#[test]
fn a_record_of_several_workers_and_any_other_order_give_the_same_result() {
    let (sum, recording, _) = table(&TaskPool::fifo(4), 10_000);
    assert_eq!(table(&Replay::new(recording.order()), 0).0, sum);
    let other: RunOrder =
        "async\t(3, 3)\nno step\t7\nreplay\t(1, 2)".parse().unwrap_or_else(|never| match never {});
    assert_eq!(table(&Replay::new(other), 0).0, sum);
}

#[test]
fn a_record_has_an_end() {
    let (_, recording, _) = table(&TaskPool::fifo(2), 7);
    assert_eq!(recording.runs.len(), 7);
    assert!(recording.forgotten >= if cfg!(miri) { 2 } else { 18 });
}

#[test]
fn declared_puts_are_in_the_picture_before_any_run() {
    graph(|graph| {
        let tags = graph.tags::<u32>("tags");
        let (even, odd) = (graph.items::<u32, ()>("even"), graph.items::<u32, ()>("odd"));
        graph
            .prescribe_async(tags, "put", move |n, step| async move {
                step.put(if n % 2 == 0 { even } else { odd }, n, ())
            })
            .makes(even, |&n| n)
            .makes(odd, |&n| n);
        let puts = || {
            let of_items = |to| [CollectionId::Items(0), CollectionId::Items(1)].contains(&to);
            let puts = graph.picture().arrows.into_iter().filter(|arrow| of_items(arrow.to));
            puts.map(|arrow| (arrow.to, arrow.kind)).collect::<Vec<_>>()
        };
        let (even, odd) = (CollectionId::Items(0), CollectionId::Items(1));
        assert_eq!(puts(), [(even, ArrowKind::Declared), (odd, ArrowKind::Declared)]);
        graph.record(0);
        graph.initialize(|env| env.put_tag(tags, 4)).unwrap();
        graph.run(&OneByOne).unwrap();
        // The put into the other collection was not noted.
        assert_eq!(puts(), [(odd, ArrowKind::Declared), (even, ArrowKind::Used)]);
    });
}
