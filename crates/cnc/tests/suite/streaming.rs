//! Collections in which an item that has gone leaves nothing behind.

use crate::schedulers::each;
use selvedge_cnc::schedulers::{OneByOne, Stealing};
use selvedge_cnc::{FaultCause, GraphError, ItemKey, Items, graph};
use std::sync::Arc;

const ITEMS: u32 = if cfg!(miri) { 40 } else { 400 };

/// Keys that fit in a word, and keys that do not.
fn word(n: u32) -> u32 {
    n
}

fn text(n: u32) -> String {
    format!("key {}", n % 10 * 1_000 + n)
}

/// Each item is got by two steps, one of which takes it; every tenth is kept.
fn sums<K: ItemKey + 'static>(key: fn(u32) -> K, scheduler: &dyn selvedge_cnc::schedulers::Scheduler) -> u64 {
    graph(|graph| {
        let (puts, gets, takes) =
            (graph.tags::<u32>("puts"), graph.tags::<u32>("gets"), graph.tags::<u32>("takes"));
        let kept: Vec<K> = (0..ITEMS).step_by(10).map(key).collect();
        let counted = Items::streamed().counted(move |key: &K| (!kept.contains(key)).then_some(2));
        let items = graph.items_in("items", counted);
        let results = graph.items_in("results", Items::dense((ITEMS, 2_u32)));
        graph.prescribe(puts, "put", move |n, step| step.put(items, key(n), vec![n; 3]));
        graph.prescribe(gets, "get", move |n, step| {
            let value = u64::from(step.get(items, key(n))?[0]);
            step.put(results, (n, 0), value)
        });
        graph.prescribe_async(takes, "take", move |n, step| async move {
            let value = match n % 10 {
                0 => step.get(items, key(n)).await?.clone(),
                _ => step.take(items, key(n)).await?,
            };
            step.put(results, (n, 1), u64::from(value[2]))
        });
        graph
            .initialize(|env| {
                (0..ITEMS).try_for_each(|n| {
                    let all = [puts, gets, takes];
                    (0..3).try_for_each(|at| env.put_tag(all[(n as usize + at) % 3], n))
                })
            })
            .unwrap();
        let end = graph.run(scheduler).unwrap_or_else(|error| panic!("{error}"));
        let statistics = &end.statistics().items[0];
        assert_eq!((statistics.put, statistics.there), (ITEMS as usize, ITEMS.div_ceil(10) as usize));
        end.finalize(|view| {
            let kept: Vec<K> = view.iter(items).map(|(key, _)| key).collect();
            assert!(kept.is_sorted() && kept.len() == ITEMS.div_ceil(10) as usize);
            assert_eq!(view.get(items, key(1)), None);
            assert_eq!(view.get(items, key(10)), Some(&vec![10; 3]));
            view.iter(results).map(|(_, value)| *value).sum()
        })
    })
}

#[test]
fn items_that_go_and_items_that_stay_are_the_same_under_every_scheduler() {
    let expected = u64::from(ITEMS) * u64::from(ITEMS - 1);
    each(|name, scheduler| {
        assert_eq!(sums(word, scheduler), expected, "{name}");
        assert_eq!(sums(text, scheduler), expected, "{name}");
    });
}

#[test]
fn a_get_too_many_is_told_after_the_item_has_gone() {
    each(|name, scheduler| {
        for later in [true, false] {
            graph(|graph| {
                let tags = graph.tags::<u32>("tags");
                let items = graph.items_in("items", Items::streamed().counted(|_: &u32| Some(1)));
                graph.prescribe(tags, "get", move |n, step| step.get(items, n / 10).map(|_| ()));
                graph.finish_after_fault();
                graph
                    .initialize(|env| {
                        (0..3).try_for_each(|n| env.put(items, n, n))?;
                        (0..3).try_for_each(|n| env.put_tag(tags, 10 * n))
                    })
                    .unwrap();
                if later {
                    assert!(graph.run(scheduler).is_ok(), "{name}");
                }
                graph.initialize(|env| env.put_tag(tags, 15)).unwrap();
                let Err(GraphError::Failed(faults)) = graph.run(scheduler) else { panic!("{name}, {later}") };
                let is_told = |why: &FaultCause| matches!(why, FaultCause::OverGet { key, .. } if key == "1");
                assert!(faults.len() == 1 && is_told(faults[0].why()), "{name}, {later}: {faults:?}");
            });
        }
    });
}

#[test]
fn of_keys_that_are_no_words_nothing_is_remembered() {
    graph(|graph| {
        let tags = graph.tags::<String>("tags");
        let items = graph.items_in("items", Items::streamed().counted(|_: &String| Some(1)));
        graph.prescribe(tags, "get", move |key, step| step.get(items, key).map(|_| ()));
        for round in 0..3 {
            let start = graph.initialize(|env| {
                env.put(items, "key".to_owned(), round)?;
                env.put_tag(tags, "key".to_owned())
            });
            start.unwrap();
            graph.run(&OneByOne).unwrap();
        }
        graph.initialize(|env| env.put_tag(tags, "key".to_owned())).unwrap();
        let Err(GraphError::Stuck(stuck)) = graph.run(&OneByOne) else { panic!("there is no such item") };
        assert_eq!(stuck.items[0].key, "\"key\"");
    });
}

#[test]
fn keys_and_values_are_dropped_once() {
    let alive = Arc::<str>::from("alive");
    for goes in [true, false] {
        graph(|graph| {
            let tags = graph.tags::<u32>("tags");
            type Key = (Arc<str>, u32);
            let counted =
                Items::streamed().counted(move |key: &Key| (goes || key.1.is_multiple_of(2)).then_some(1));
            let items = graph.items_in("items", counted);
            let mine = &alive;
            graph.prescribe(tags, "get", move |n, step| {
                let value: &Arc<str> = step.get(items, (mine.clone(), n))?;
                assert_eq!(**value, **mine);
                Ok(())
            });
            graph
                .initialize(|env| {
                    (0..ITEMS).try_for_each(|n| {
                        env.put(items, (mine.clone(), n), mine.clone())?;
                        env.put_tag(tags, n)
                    })
                })
                .unwrap();
            graph.run(&Stealing::new(2)).unwrap();
            if goes {
                assert_eq!(Arc::strong_count(mine), 1, "a key or a value is left");
            }
        });
        assert_eq!(Arc::strong_count(&alive), 1);
    }
}
