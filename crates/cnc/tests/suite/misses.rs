//! What a step does with the error of a missing item has no influence on the result.

use crate::schedulers::each;
use selvedge_cnc::schedulers::OneByOne;
use selvedge_cnc::{FaultCause, Graph, GraphError, Items, StepContext, StepResult, graph};
use std::fmt;

const TAGS: u32 = if cfg!(miri) { 3 } else { 12 };

/// Runs a graph in which step `get(n)` needs item `n + 1`, which step `put(n)` puts after it has
/// got item `n`. Checks that each `get(n)` has copied the item.
fn check(add: impl for<'g> Fn(&'g Graph<'g, '_>, Steps<'g>)) {
    each(|name, scheduler| {
        let (found, again) = graph(|graph| {
            let steps = Steps {
                tags: graph.tags("tags"),
                items: graph.items("items"),
                copies: graph.items("copies"),
            };
            let Steps { tags, items, copies } = steps;
            add(graph, steps);
            graph.prescribe(tags, "put", move |n, step| {
                let before = *step.get(items, n)?;
                step.put(items, n + 1, before + 1)
            });
            // The newest tag runs first in some schedulers, the oldest in others.
            graph.initialize(|env| (0..TAGS).try_for_each(|n| env.put_tag(tags, n))).unwrap();
            graph.initialize(|env| env.put(items, 0, 0)).unwrap();
            let finished = graph.run(scheduler).unwrap_or_else(|error| panic!("{name}: {error}"));
            let found: Vec<_> =
                finished.finalize(|view| view.iter(copies).map(|(n, copy)| (n, *copy)).collect());
            (found, graph.run(&OneByOne).is_ok())
        });
        assert_eq!(found, (0..TAGS).map(|n| (n, n + 1)).collect::<Vec<_>>(), "{name}");
        assert!(again, "{name}");
    });
}

#[derive(Clone, Copy)]
struct Steps<'g> {
    tags: selvedge_cnc::TagCol<'g, u32>,
    items: selvedge_cnc::ItemCol<'g, u32, u32>,
    copies: selvedge_cnc::ItemCol<'g, u32, u32>,
}

#[test]
fn a_declaration_whose_error_is_dropped_waits_all_the_same() {
    check(|graph, Steps { tags, items, copies }| {
        graph.prescribe_depends(
            tags,
            "get",
            move |n, needs| {
                let _ = needs.on(items, n + 1);
                Ok(())
            },
            move |n, step| step.put(copies, n, *step.get(items, n + 1)?),
        );
    });
}

#[derive(Debug)]
struct Mine;

impl fmt::Display for Mine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("mine")
    }
}

impl std::error::Error for Mine {}

#[test]
fn an_error_that_stands_for_a_missing_item_fails_no_run() {
    check(|graph, Steps { tags, items, copies }| {
        graph.prescribe(tags, "get", move |n, step| {
            let item = *step.get(items, n + 1).map_err(|_| Mine)?;
            step.put(copies, n, item)
        });
    });
}

#[test]
fn a_declaration_may_return_its_own_error_for_a_missing_item() {
    check(|graph, Steps { tags, items, copies }| {
        graph.prescribe_depends(
            tags,
            "get",
            move |n, needs| Ok(needs.on(items, n + 1).map_err(|_| Mine)?),
            move |n, step| step.put(copies, n, *step.get(items, n + 1)?),
        );
    });
}

#[test]
fn a_panic_that_stands_for_a_missing_item_fails_no_run() {
    check(|graph, Steps { tags, items, copies }| {
        graph.prescribe(tags, "get", move |n, step| {
            let item = *step.get(items, n + 1).unwrap();
            step.put(copies, n, item)
        });
    });
}

#[test]
fn a_step_may_panic_any_time_after_it_has_swallowed_a_miss() {
    check(|graph, Steps { tags, items, copies }| {
        graph.prescribe(tags, "get", move |n, step| {
            let item = step.get(items, n + 1).map_or(0, |item| *item);
            // The item of `n` is n; 0 stands for no item.
            assert!(item == n + 1, "expected to panic in some schedules");
            step.put(copies, n, item)
        });
    });
}

#[test]
fn a_declaration_and_a_fork_may_panic_for_a_missing_item() {
    check(|graph, Steps { tags, items, copies }| {
        graph.prescribe_depends(
            tags,
            "get",
            move |n, needs| {
                needs.on(items, n + 1).unwrap();
                Ok(())
            },
            move |n, step| {
                step.fork(move |step| {
                    let item = *step.get(items, n + 1).unwrap();
                    step.put(copies, n, item)
                })
            },
        );
    });
}

/// A step in a range, and one that has a get of a counted item when it panics.
#[test]
fn a_panic_for_a_missing_item_returns_the_counts_and_keeps_the_range() {
    each(|name, scheduler| {
        let found = graph(|graph| {
            let (loops, tags) = (graph.tags("loops"), graph.tags::<u32>("tags"));
            let once = graph.items_in("once", Items::dense(TAGS).counted(|_| Some(1)));
            let items = graph.items_in("items", Items::dense(TAGS));
            let sums = graph.items_in("sums", Items::dense(TAGS));
            graph.prescribe_range(loops, "sum", 2, move |range, step| {
                let of = |n| (n, *step.get(once, n).unwrap() + *step.get(items, n).unwrap());
                let found: Vec<(u32, u32)> = range.map(of).collect();
                found.into_iter().try_for_each(|(n, sum)| step.put(sums, n, sum))
            });
            graph.prescribe(tags, "put", move |n, step| {
                step.put(once, n, n)?;
                step.put(items, n, 10)
            });
            graph
                .initialize(|env| {
                    (0..TAGS).try_for_each(|n| env.put_tag(tags, n))?;
                    env.put_tag(loops, (0, TAGS))
                })
                .unwrap();
            let finished = graph.run(scheduler).unwrap_or_else(|error| panic!("{name}: {error}"));
            finished.finalize(|view| view.iter(sums).map(|(_, sum)| *sum).collect::<Vec<_>>())
        });
        assert_eq!(found, (10..10 + TAGS).collect::<Vec<_>>(), "{name}");
    });
}

#[test]
fn a_panic_without_a_miss_is_a_fault_under_every_scheduler() {
    each(|name, scheduler| {
        let end = graph(|graph| {
            graph.finish_after_fault();
            let tags = graph.tags("tags");
            let items = graph.items("items");
            graph.prescribe(tags, "check", move |n, step| {
                let item: u32 = *step.get(items, n).unwrap();
                assert!(!item.is_multiple_of(5), "expected to panic: {item}");
                Ok(())
            });
            graph.prescribe(tags, "put", move |n: u32, step| step.put(items, n, n));
            graph.initialize(|env| (0..TAGS).try_for_each(|n| env.put_tag(tags, n))).unwrap();
            graph.run(scheduler).map(|_| ())
        });
        let Err(GraphError::Failed(faults)) = end else { panic!("{name}: two steps or more fail") };
        let texts: Vec<_> = faults.iter().map(ToString::to_string).collect();
        let expected =
            (0..TAGS).step_by(5).map(|n| format!("step check({n}) panicked: expected to panic: {n}"));
        assert_eq!(texts, expected.collect::<Vec<_>>(), "{name}");
    });
}

/// The fault of a get is reported, and not the panic which comes of it.
#[test]
fn a_panic_for_the_error_of_a_fault_adds_no_fault() {
    each(|name, scheduler| {
        let end = graph(|graph| {
            let tags = graph.tags::<u32>("tags");
            let items = graph.items_in("items", Items::<u32, u32>::dense(3));
            graph.prescribe(tags, "get", move |n, step| {
                step.get(items, n).map(|_| ()).map_err(|e| panic!("{e:?}"))
            });
            graph.initialize(|env| env.put_tag(tags, 7)).unwrap();
            graph.run(scheduler).map(|_| ())
        });
        let Err(GraphError::Failed(faults)) = end else { panic!("{name}: the key is outside") };
        assert_eq!(faults.len(), 1, "{name}");
        assert!(matches!(faults[0].why(), FaultCause::Outside { .. }), "{name}: {}", faults[0]);
    });
}

#[test]
fn the_first_fork_of_a_graph_is_counted_inside_a_step_too() {
    fn forks<'g>(step: &StepContext<'g>, n: u32) -> StepResult {
        if n == 0 { Ok(()) } else { step.fork(move |step| forks(step, n - 1)) }
    }
    each(|name, scheduler| {
        let statistics = graph(|graph| {
            let tags = graph.tags::<u32>("tags");
            graph.prescribe(tags, "begin", |n, step| forks(step, n));
            graph.initialize(|env| env.put_tag(tags, 7)).unwrap();
            graph.run(scheduler).unwrap().statistics()
        });
        let runs: Vec<_> = statistics.steps.iter().map(|step| (step.name.as_str(), step.runs)).collect();
        assert_eq!(runs, [("the environment", 0), ("begin", 1), ("fork", 7)], "{name}");
    });
}

#[test]
#[should_panic(expected = "has more places than a usize counts")]
fn a_grid_that_is_too_large_is_refused() {
    graph(|graph| {
        graph.items_in::<_, u32>("items", Items::paged((1_u64 << 40, 1_u64 << 40)));
    });
}

#[test]
fn a_grid_with_an_empty_axis_has_no_items() {
    graph(|graph| {
        let items = graph.items_in::<_, u32>("items", Items::dense((1_u64 << 40, 1_u64 << 40, 0_u64)));
        assert!(graph.initialize(|env| env.put(items, (0, 0, 0), 1)).is_err());
    });
}
