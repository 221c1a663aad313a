//! What a run reports does not depend on the schedule, nor on the number of runs.

use selvedge_cnc::schedulers::OneByOne;
use selvedge_cnc::{FaultCause, FinishedGraph, GraphError, Items, graph};

use crate::schedulers::each;

fn text(end: Result<FinishedGraph<'_>, GraphError>) -> String {
    end.map(|_| ()).expect_err("the graph has a fault").to_string()
}

#[test]
fn a_graph_that_has_failed_never_ends_well() {
    each(|name, scheduler| {
        for finish in [true, false] {
            let ends = graph(|graph| {
                let tags = graph.tags::<u32>("tags");
                let items = graph.items::<u32, u32>("items");
                graph.prescribe(tags, "put", move |n, step| step.put(items, 1, n));
                if finish {
                    graph.finish_after_fault();
                }
                graph.initialize(|env| env.put_tag(tags, 3).and_then(|()| env.put_tag(tags, 4))).unwrap();
                [(); 3].map(|()| text(graph.run(scheduler)))
            });
            let twice = "item items[1] was put twice: by step put(3) and by step put(4)";
            assert_eq!(ends, [twice; 3], "{name}, {finish}");
        }
    });
}

#[test]
fn a_run_after_a_failed_start_reports_the_faults_of_both() {
    let ends = graph(|graph| {
        let tags = graph.tags::<u32>("tags");
        graph.prescribe(tags, "fail", |n, _| panic!("no {n}"));
        graph.finish_after_fault();
        let start = graph.initialize(|env| {
            env.put_tag(tags, 7)?;
            env.get(graph.items::<u32, u32>("items"), 1).copied()
        });
        [start.unwrap_err().to_string(), text(graph.run(&OneByOne)), text(graph.run(&OneByOne))]
    });
    let start = "step the environment() got item items[1], which is not there";
    let both = format!("step fail(7) panicked: no 7\n  also: {start}");
    assert_eq!(ends, [start.to_owned(), both.clone(), both]);
}

#[test]
fn an_async_step_is_one_row_and_its_misses_are_counted_in_it() {
    for gets in [1, 2] {
        let statistics = graph(|graph| {
            let tags = graph.tags::<u32>("tags");
            let items = graph.items::<u32, u32>("items");
            graph.prescribe_async(tags, "wait", move |_, step| async move {
                for n in 0..gets {
                    step.get(items, n).await?;
                }
                Ok(())
            });
            graph.initialize(|env| env.put_tag(tags, 0)).unwrap();
            for n in 0..gets {
                assert!(matches!(graph.run(&OneByOne), Err(GraphError::Stuck(_))));
                let [_, wait] = &graph.statistics().steps[..] else { panic!("two rows") };
                assert_eq!((wait.runs, wait.misses, wait.ended()), (u64::from(n) + 1, u64::from(n) + 1, 0));
                graph.initialize(|env| env.put(items, n, 0)).unwrap();
            }
            graph.run(&OneByOne).unwrap();
            graph.statistics()
        });
        let misses = format!("step wait: 1 ended, {gets} misses\n");
        assert!(statistics.to_string().contains(&misses), "{statistics}");
    }
}

#[test]
fn the_environment_may_get_what_a_run_has_left() {
    each(|name, scheduler| {
        graph(|graph| {
            let tags = graph.tags::<u32>("tags");
            let items = graph.items_with("items", Items::hashed().counted(|_| Some(2)));
            graph.prescribe(tags, "get", move |n, step| step.get(items, n).map(|_| ()));
            graph.initialize(|env| env.put(items, 3, 3).and_then(|()| env.put_tag(tags, 3))).unwrap();
            let end = graph.run(scheduler).map(|_| ()).unwrap_err();
            let GraphError::Failed(faults) = end else { panic!("{name}: {end}") };
            assert!(matches!(faults[0].why(), FaultCause::LeftOver { gets: 1, .. }), "{name}");
            graph.initialize(|env| env.put_tag(tags, 3)).unwrap();
            assert!(graph.run(scheduler).is_ok(), "{name}");
        });
    });
}
