//! Steps that the puts of items prescribe.

use crate::schedulers::each;
use selvedge_cnc::schedulers::{OneByOne, Scheduler};
use selvedge_cnc::{CollectionId, FaultCause, GraphError, Items, graph};
use std::collections::BTreeMap;

const ITEMS: u32 = if cfg!(miri) { 9 } else { 60 };

fn kinds() -> [fn() -> Items<'static, u32, u64>; 4] {
    [|| Items::dense(2 * ITEMS), || Items::paged(2 * ITEMS), Items::hashed, Items::streamed]
}

/// Each item below `ITEMS` makes one more item, and each item is noted by two kinds of steps.
fn noted(scheduler: &dyn Scheduler, items: Items<'static, u32, u64>) -> [BTreeMap<u32, u64>; 2] {
    graph(|graph| {
        let items = graph.items_in("items", items.counted(|&n| (n % 3 == 0).then_some(2)));
        let notes = ["one", "two"].map(|name| graph.items::<u32, u64>(name));
        let put = graph.on_put(items);
        graph.prescribe(put, "grow", move |n, step| {
            let value = *step.get(items, n)?;
            step.put(notes[0], n, value)?;
            if n < ITEMS { step.put(items, n + ITEMS, 3 * value) } else { Ok(()) }
        });
        graph.prescribe_async(put, "note", move |n, step| async move {
            let value = *step.get(items, n).await?;
            step.put(notes[1], n, value + 1)
        });
        // The same collection.
        assert_eq!(graph.on_put(items).name(), "puts of items");
        graph.initialize(|env| (0..ITEMS).try_for_each(|n| env.put(items, n, u64::from(n)))).unwrap();
        let end = graph.run(scheduler).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(end.statistics().steps[1].misses, 0, "the item is there when its step begins");
        end.finalize(|view| notes.map(|notes| view.iter(notes).map(|(n, value)| (n, *value)).collect()))
    })
}

#[test]
fn each_put_runs_the_steps_once_under_every_scheduler() {
    let value = |n: u32| if n < ITEMS { u64::from(n) } else { 3 * u64::from(n - ITEMS) };
    let expected =
        [0, 1].map(|more| (0..2 * ITEMS).map(|n| (n, value(n) + more)).collect::<BTreeMap<_, _>>());
    each(|name, scheduler| {
        for kind in kinds() {
            assert_eq!(noted(scheduler, kind()), expected, "{name}");
        }
    });
}

#[test]
fn a_second_put_runs_nothing() {
    each(|name, scheduler| {
        for equal in [true, false] {
            graph(|graph| {
                let (tags, runs) = (graph.tags::<u32>("tags"), graph.tags::<()>("runs"));
                let items = graph.items_in("items", Items::<u32, u32>::dense(3).equal_allowed());
                let noted = graph.items::<u32, ()>("noted");
                graph.prescribe(tags, "put", move |n, step| step.put(items, 1, if equal { 7 } else { n }));
                graph.prescribe(runs, "none", |(), _| Ok(()));
                graph.prescribe(graph.on_put(items), "note", move |n, step| step.put(noted, n, ()));
                graph.finish_after_fault();
                graph.initialize(|env| (0..3).try_for_each(|n| env.put_tag(tags, n))).unwrap();
                match graph.run(scheduler) {
                    Ok(end) => assert_eq!(end.statistics().items[1].put, 1, "{name}"),
                    Err(GraphError::Failed(faults)) => {
                        let is_of_items = |why: &FaultCause| matches!(why, FaultCause::DoublePut { collection, .. } if collection == "items");
                        assert!(!equal && faults.iter().all(|fault| is_of_items(fault.why())), "{name}");
                    }
                    Err(error) => panic!("{name}: {error}"),
                }
            });
        }
    });
}

#[test]
fn a_picture_has_the_tags_of_puts() {
    graph(|graph| {
        let items = graph.items::<u32, u32>("items");
        graph.prescribe(graph.on_put(items), "see", |_, _| Ok(()));
        graph.initialize(|env| env.put(items, 1, 1)).unwrap();
        graph.run(&OneByOne).unwrap();
        let arrows = graph.picture().arrows;
        let ends = (CollectionId::Items(0), CollectionId::Tags(0));
        assert!(arrows.iter().any(|arrow| (arrow.from, arrow.to) == ends), "{arrows:?}");
    });
}
