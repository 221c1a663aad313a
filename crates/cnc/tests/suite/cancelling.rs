//! Single steps and whole step collections that are cancelled, and circles of steps that wait.

use crate::schedulers::each;
use selvedge_cnc::schedulers::{OneByOne, Scheduler, Stealing};
use selvedge_cnc::{FinishedGraph, Graph, GraphError, ItemCol, Items, StepCol, TagCol, graph};
use std::sync::Arc;
use std::thread;

#[test]
fn a_cancelled_tag_does_not_run_and_what_needs_it_is_reported() {
    each(|name, scheduler| {
        let stuck = graph(|graph| {
            let tags = graph.tags::<u32>("tags");
            let items = graph.items::<u32, u32>("items");
            let next =
                graph.prescribe(tags, "next", move |n, step| step.put(items, n + 1, step.get(items, n)? + 1));
            next.cancel_tag(5);
            graph
                .initialize(|env| {
                    (0..8).rev().try_for_each(|n| env.put_tag(tags, n))?;
                    env.put(items, 0, 0)
                })
                .unwrap();
            let Err(GraphError::Stuck(stuck)) = graph.run(scheduler) else { panic!("{name}") };
            assert_eq!(graph.statistics().steps[1].cancelled, 1, "{name}");
            stuck
        });
        let missing: Vec<_> =
            stuck.items.iter().map(|item| (item.key.as_str(), item.steps[0].1.as_str())).collect();
        assert_eq!(missing, [("6", "6"), ("7", "7")], "{name}");
    });
}

#[test]
fn steps_that_wait_may_be_cancelled() {
    each(|name, scheduler| {
        graph(|graph| {
            let tags = graph.tags::<String>("tags");
            let items = graph.items::<String, u32>("items");
            let replayed = graph.prescribe(tags, "replay", move |tag, step| step.get(items, tag).map(|_| ()));
            let continued = graph.prescribe_async(tags, "async", move |tag, step| async move {
                step.get(items, tag).await.map(|_| ())
            });
            graph
                .initialize(|env| {
                    env.put_tag(tags, "one".into()).and_then(|()| env.put_tag(tags, "two".into()))
                })
                .unwrap();
            let waiting = |end| match end {
                Err(GraphError::Stuck(stuck)) => {
                    stuck.items.iter().map(|item| item.steps.len()).sum::<usize>()
                }
                Ok(_) => 0,
                Err(error) => panic!("{name}: {error}"),
            };
            assert_eq!(waiting(graph.run(scheduler)), 4, "{name}");
            replayed.cancel();
            assert_eq!(waiting(graph.run(scheduler)), 2, "{name}");
            continued.cancel_tag("one".into());
            assert_eq!(waiting(graph.run(scheduler)), 1, "{name}");
            // The item wakes the cancelled steps, which do not go on.
            graph
                .initialize(|env| {
                    env.put(items, "one".into(), 1).and_then(|()| env.put(items, "two".into(), 2))
                })
                .unwrap();
            assert_eq!(waiting(graph.run(scheduler)), 0, "{name}");
            let cancelled: u64 = graph.statistics().steps.iter().map(|step| step.cancelled).sum();
            assert_eq!(cancelled, 3, "{name}");
        });
    });
}

#[test]
fn circles_are_shown_and_ways_into_them_are_not() {
    each(|name, scheduler| {
        let error = graph(|graph| {
            let (tags, others) = (graph.tags::<u32>("tags"), graph.tags::<u32>("others"));
            let items = graph.items::<u32, u32>("items");
            // 0 waits for 1, 1 for 2, 2 for 0; 3 for 0; 4 for 5, 5 for itself; 7 for 8, which is
            // never put.
            let needs = [1, 2, 0, 0, 5, 5, 6, 8];
            let need = move |n: u32| needs[n as usize];
            graph
                .prescribe(tags, "make", move |n, step| step.get(items, need(n)).map(|_| ()))
                .makes(items, |&n| n);
            graph.prescribe(others, "silent", move |n, step| step.get(items, need(n)).map(|_| ()));
            graph
                .initialize(|env| {
                    [0, 1, 2, 3, 4, 5, 7].into_iter().try_for_each(|n| env.put_tag(tags, n))?;
                    env.put_tag(others, 6)
                })
                .unwrap();
            graph.run(scheduler).map(|_| ()).unwrap_err()
        });
        let GraphError::Stuck(stuck) = &error else { panic!("{name}: {error}") };
        let circles: Vec<Vec<_>> = stuck
            .circles
            .iter()
            .map(|circle| circle.iter().map(|step| step.tag.as_str()).collect())
            .collect();
        assert_eq!(circles, [vec!["2", "0", "1"], vec!["5"]], "{name}");
        let report = error.to_string();
        let circle = "in a circle: make(2) waits for items[0]; make(0) waits for items[1]; make(1) waits for items[2];";
        assert!(report.contains(circle), "{name}: {report}");
        assert!(report.contains("\n  in a circle: make(5) waits for items[5];\n"), "{name}: {report}");
    });
}

#[test]
fn a_long_circle_is_found_in_a_moment() {
    const STEPS: u32 = if cfg!(miri) { 50 } else { 20_000 };
    let error = graph(|graph| {
        let tags = graph.tags::<u32>("tags");
        let items = graph.items::<u32, u32>("items");
        graph
            .prescribe(tags, "next", move |n, step| step.get(items, (n + 1) % STEPS).map(|_| ()))
            .makes(items, |&n| n);
        graph.initialize(|env| (0..STEPS).try_for_each(|n| env.put_tag(tags, n))).unwrap();
        graph.run(&OneByOne).map(|_| ()).unwrap_err()
    });
    let GraphError::Stuck(stuck) = &error else { panic!("{error}") };
    assert_eq!(stuck.circles.iter().map(Vec::len).collect::<Vec<_>>(), [STEPS as usize]);
    assert!(error.to_string().lines().count() < 30);
}

/// The kinds of steps that get items.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Replay,
    Depends,
    Async,
}

const KINDS: [Kind; 3] = [Kind::Replay, Kind::Depends, Kind::Async];

/// The kinds to try under the scheduler with this name: one of them if it is one of many seeds.
fn kinds(name: &str) -> &'static [Kind] {
    match name.strip_prefix("fuzz").and_then(|fuzz| fuzz.split(' ').next_back()?.parse::<usize>().ok()) {
        Some(seed) => &KINDS[seed % KINDS.len()..][..1],
        None => &KINDS,
    }
}

/// A graph with an item that is counted, and steps that get it.
struct Counted<'g, 'env> {
    graph: &'g Graph<'g, 'env>,
    /// Its item 7 has a count.
    counted: ItemCol<'g, u32, Arc<()>>,
    never: ItemCol<'g, u32, ()>,
    gets: TagCol<'g, u32>,
    holds: TagCol<'g, u32>,
    takes: TagCol<'g, u32>,
    hold: StepCol<'g, u32>,
}

impl<'g, 'env> Counted<'g, 'env> {
    /// Step `hold` gets the item and then waits for another one, `get` gets it, and `take` takes
    /// it. The first two are of the given kinds.
    fn new(graph: &'g Graph<'g, 'env>, count: u32, [hold, get]: [Kind; 2], value: &Arc<()>) -> Self {
        let counted = graph.items_in("counted", Items::hashed().counted(move |_| Some(count)));
        let never = graph.items("never");
        let [gets, holds, takes] = ["gets", "holds", "takes"].map(|name| graph.tags(name));
        let gets_both = |kind, tags, name: &str, holds: bool| match kind {
            Kind::Replay => graph.prescribe(tags, name, move |n: u32, step| {
                step.get(counted, 7)?;
                if holds { step.get(never, n).copied() } else { Ok(()) }
            }),
            Kind::Depends => graph.prescribe_depends(
                tags,
                name,
                move |n, needs| {
                    needs.on(counted, 7)?;
                    if holds { needs.on(never, n) } else { Ok(()) }
                },
                move |n, step| {
                    step.get(counted, 7)?;
                    if holds { step.get(never, n).copied() } else { Ok(()) }
                },
            ),
            Kind::Async => graph.prescribe_async(tags, name, move |n, step| async move {
                step.get(counted, 7).await?;
                if holds { step.get(never, n).await.copied() } else { Ok(()) }
            }),
        };
        let hold = gets_both(hold, holds, "hold", true);
        gets_both(get, gets, "get", false);
        graph.prescribe(takes, "take", move |_, step| step.take(counted, 7).map(drop));
        graph.initialize(|env| env.put(counted, 7, value.clone())).unwrap();
        Counted { graph, counted, never, gets, holds, takes, hold }
    }

    fn put(&self, tags: TagCol<'g, u32>, tag: u32) {
        self.graph.initialize(|env| env.put_tag(tags, tag)).unwrap();
    }

    fn run(&self, scheduler: &dyn Scheduler) -> String {
        text(self.graph.run(scheduler))
    }
}

fn text(end: Result<FinishedGraph<'_>, GraphError>) -> String {
    end.map_or_else(|error| error.to_string(), |_| "it ends well".into())
}

const HOLD_WAITS: &str = "1 steps wait for 1 items that no step has put\n  item never[0]: step hold(0)";
const TAKE_WAITS: &str =
    "1 steps wait for 1 items\n  item counted[7], which was put and has other gets left: step take(0)";
const ONE_LEFT: &str = "item counted[7], put by step the environment(), has a count for 1 more gets";

#[test]
fn a_cancelled_step_that_waits_for_ever_has_not_got_its_items() {
    each(|name, scheduler| {
        for &kind in kinds(name) {
            let (name, value) = (format!("{name}, {kind:?}"), Arc::new(()));
            let program = |count, then: &dyn Fn(&Counted<'_, '_>) -> Vec<String>| {
                graph(|graph| {
                    let counted = Counted::new(graph, count, [kind, Kind::Replay], &value);
                    counted.put(counted.holds, 0);
                    assert_eq!(counted.run(scheduler), HOLD_WAITS, "{name}");
                    counted.hold.cancel_tag(0);
                    then(&counted)
                })
            };
            // Its get is left.
            assert_eq!(program(1, &|graph| vec![graph.run(scheduler), graph.run(scheduler)]), [ONE_LEFT; 2]);
            // Another step gets the item in its stead.
            let ends = program(1, &|graph| {
                graph.put(graph.gets, 0);
                let end = graph.run(scheduler);
                assert_eq!(Arc::strong_count(&value), 1, "{name}: the item is gone");
                vec![end]
            });
            assert_eq!(ends, ["it ends well"], "{name}");
            // The environment does.
            let ends = program(1, &|graph| {
                let got = graph.graph.initialize(|env| env.get(graph.counted, 7).map(|_| ()));
                vec![got.map_or_else(|error| error.to_string(), |()| graph.run(scheduler))]
            });
            assert_eq!(ends, ["it ends well"], "{name}");
            // A step that takes the item waits until the other get has been.
            let ends = program(2, &|graph| {
                graph.put(graph.takes, 0);
                let before = graph.run(scheduler);
                graph.put(graph.gets, 0);
                vec![before, graph.run(scheduler)]
            });
            assert_eq!(ends, [TAKE_WAITS, "it ends well"], "{name}");
            // The item for which it waits comes after all.
            let ends = program(2, &|graph| {
                let counts = || graph.graph.statistics().steps.iter().map(|step| step.cancelled).sum::<u64>();
                graph.graph.initialize(|env| env.put(graph.never, 0, ())).unwrap();
                graph.put(graph.gets, 0);
                let end = graph.run(scheduler);
                assert_eq!(counts(), 1, "{name}");
                vec![end]
            });
            assert_eq!(ends, [ONE_LEFT], "{name}");
            assert_eq!(Arc::strong_count(&value), 1, "{name}");
        }
    });
}

#[test]
fn a_step_that_is_late_gets_what_a_cancelled_one_has_claimed() {
    each(|name, scheduler| {
        // Whether the step that cancels is put before the step that gets the item.
        for first in [0, 1] {
            for &hold in kinds(name) {
                let get = KINDS[(hold as usize + 1) % KINDS.len()];
                let value = Arc::new(());
                let end = graph(|graph| {
                    let counted = Counted::new(graph, 1, [hold, get], &value);
                    let cancels = graph.tags::<u32>("cancels");
                    let of_step = counted.hold;
                    graph.prescribe(cancels, "cancel", move |n, _| {
                        of_step.cancel_tag(n);
                        Ok(())
                    });
                    counted.put(counted.holds, 0);
                    assert_eq!(counted.run(scheduler), HOLD_WAITS, "{name}");
                    let tags = [cancels, counted.gets];
                    counted.put(tags[first], 0);
                    counted.put(tags[1 - first], 0);
                    counted.run(scheduler)
                });
                assert_eq!(end, "it ends well", "{name}, {first}, {hold:?}, {get:?}");
                assert_eq!(Arc::strong_count(&value), 1, "{name}");
            }
        }
    });
}

#[test]
fn of_late_steps_all_but_the_free_gets_are_told() {
    each(|name, scheduler| {
        for &kind in kinds(name) {
            let value = Arc::new(());
            let end = graph(|graph| {
                graph.finish_after_fault();
                let counted = Counted::new(graph, 2, [Kind::Async, kind], &value);
                // Two async steps have both gets, and wait for ever.
                graph.initialize(|env| (0..2).try_for_each(|n| env.put_tag(counted.holds, n))).unwrap();
                counted.run(scheduler);
                counted.hold.cancel_tag(1);
                graph.initialize(|env| (0..3).try_for_each(|n| env.put_tag(counted.gets, n))).unwrap();
                counted.run(scheduler)
            });
            let told = end.matches("got item counted[7] once more than its count says").count();
            assert_eq!((told, end.lines().count()), (2, 2), "{name}, {kind:?}: {end}");
        }
    });
}

#[test]
fn a_step_that_is_cancelled_while_the_graph_is_at_rest() {
    for kind in KINDS {
        let value = Arc::new(());
        let end = graph(|graph| {
            let counted = Counted::new(graph, 2, [kind, Kind::Replay], &value);
            let (hold, holds, gets, items) = (counted.hold, counted.holds, counted.gets, counted.counted);
            let live = graph.live();
            thread::scope(|scope| {
                scope.spawn(move || {
                    live.put_tag(holds, 0).unwrap();
                    assert!(live.wait_for_rest_blocking().unwrap().is_some());
                    hold.cancel_tag(0);
                    assert!(live.wait_for_rest_blocking().unwrap().is_none());
                    live.put_tag(gets, 0).unwrap();
                    // It is late if the other step is an async one.
                    drop(live.get(items, 7).wait_blocking().unwrap());
                });
                counted.run(&Stealing::new(2))
            })
        });
        assert_eq!(end, "it ends well", "{kind:?}");
        assert_eq!(Arc::strong_count(&value), 1);
    }
}
