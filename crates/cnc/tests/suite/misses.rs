//! What a step does with the error of a missing item has no influence on the result.

use std::fmt;

use selvedge_cnc::schedulers::OneByOne;
use selvedge_cnc::{Graph, Items, StepContext, StepResult, graph};

use crate::schedulers::each;

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
        graph.items_with::<_, u32>("items", Items::paged((1_u64 << 40, 1_u64 << 40)));
    });
}

#[test]
fn a_grid_with_an_empty_axis_has_no_items() {
    graph(|graph| {
        let items = graph.items_with::<_, u32>("items", Items::dense((1_u64 << 40, 1_u64 << 40, 0_u64)));
        assert!(graph.initialize(|env| env.put(items, (0, 0, 0), 1)).is_err());
    });
}
