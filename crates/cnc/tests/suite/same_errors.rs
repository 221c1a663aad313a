//! What a run reports does not depend on the schedule, nor on the number of runs.

use selvedge_cnc::schedulers::{OneByOne, Scheduler};
use selvedge_cnc::{FaultCause, FinishedGraph, Graph, GraphError, Items, graph};

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

/// The numbers 0, 1 and 2 in each order.
const ORDERS: [[u32; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

/// What a program reports that gets the order in which it is to put its tags.
fn same_in_each_order(program: impl for<'g> Fn(&'g Graph<'g, '_>, [u32; 3])) -> String {
    let report = |order, scheduler: &dyn Scheduler| {
        graph(|graph| {
            graph.finish_after_fault();
            program(graph, order);
            text(graph.run(scheduler))
        })
    };
    let expected = report(ORDERS[0], &OneByOne);
    for order in ORDERS {
        assert_eq!(report(order, &OneByOne), expected, "{order:?}");
    }
    each(|name, scheduler| assert_eq!(report(ORDERS[0], scheduler), expected, "{name}"));
    expected
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
fn three_puts_of_one_item_are_the_same_two_faults() {
    let error = same_in_each_order(|graph, order| {
        let tags = graph.tags::<u32>("tags");
        let items = graph.items::<u32, u32>("items");
        graph.prescribe(tags, "put", move |n, step| step.put(items, 7, n));
        graph.initialize(|env| order.into_iter().try_for_each(|n| env.put_tag(tags, n))).unwrap();
    });
    assert_eq!(
        error,
        "item items[7] was put twice: by step put(0) and by step put(1)\n  \
         also: item items[7] was put twice: by step put(0) and by step put(2)"
    );
}

#[test]
fn collections_that_steps_make_are_told_in_one_order() {
    let stuck = same_in_each_order(|graph, order| {
        let tags = graph.tags::<u32>("tags");
        graph.prescribe(tags, "make", move |n, step| {
            let mine = step.items::<u32, u32>(["a", "b", "b"][n as usize]);
            step.fork(move |step| step.get(mine, n).map(|_| ()))
        });
        graph.initialize(|env| order.into_iter().try_for_each(|n| env.put_tag(tags, n))).unwrap();
    });
    assert_eq!(
        stuck,
        "3 steps wait for 3 items that no step has put\n  \
         item a[0]: step fork()\n  item b[1]: step fork()\n  item b[2]: step fork()"
    );
    let twice = same_in_each_order(|graph, order| {
        let tags = graph.tags::<u32>("tags");
        graph.prescribe(tags, "make", move |n, step| {
            let mine = step.items::<u32, u32>(["a", "b", "b"][n as usize]);
            step.put(mine, n, 0)?;
            step.put(mine, n, 1)
        });
        graph.initialize(|env| order.into_iter().try_for_each(|n| env.put_tag(tags, n))).unwrap();
    });
    assert_eq!(
        twice,
        "item a[0] was put twice: by step make(0) and by step make(0)\n  \
         also: item b[1] was put twice: by step make(1) and by step make(1)\n  \
         also: item b[2] was put twice: by step make(2) and by step make(2)"
    );
}

#[test]
fn pictures_and_statistics_of_collections_that_steps_make_have_one_order() {
    let seen = |order: [u32; 3]| {
        graph(|graph| {
            let tags = graph.tags::<u32>("tags");
            let last = graph.items::<u32, u32>("last");
            graph.prescribe(tags, "make", move |n, step| {
                let mine = step.items::<u32, u32>(["c", "a", "b"][n as usize]);
                (0..=n).try_for_each(|key| step.put(mine, key, n))?;
                if n == 1 { step.fork(move |step| step.put(last, *step.get(mine, 0)?, 0)) } else { Ok(()) }
            });
            graph.record(100);
            graph.initialize(|env| order.into_iter().try_for_each(|n| env.put_tag(tags, n))).unwrap();
            graph.run(&OneByOne).unwrap();
            (graph.dot(), graph.statistics().items)
        })
    };
    let expected = seen(ORDERS[0]);
    for order in ORDERS {
        assert_eq!(seen(order), expected, "{order:?}");
    }
}

#[test]
fn a_step_that_may_run_again_makes_a_collection_after_its_gets() {
    let error = same_in_each_order(|graph, _| {
        let tags = graph.tags::<u32>("tags");
        let items = graph.items::<u32, u32>("items");
        graph.prescribe(tags, "make", move |n, step| {
            let mine = step.items::<u32, u32>("mine");
            step.put(mine, n, *step.get(items, n)?)
        });
        graph.initialize(|env| env.put(items, 5, 5).and_then(|()| env.put_tag(tags, 5))).unwrap();
    });
    assert!(error.starts_with("step make(5) got item items[5] after it had put"), "{error}");
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

#[test]
fn an_item_that_is_left_names_the_step_that_has_put_it() {
    each(|name, scheduler| {
        let end = graph(|graph| {
            let tags = graph.tags::<u32>("tags");
            let items = graph.items_with("items", Items::dense(9_u32).counted(|_| Some(2)));
            graph.prescribe(tags, "put", move |n, step| step.put(items, n + 1, n));
            graph.initialize(|env| env.put_tag(tags, 3).and_then(|()| env.put(items, 1, 1))).unwrap();
            graph.run(scheduler).map(|_| ()).unwrap_err()
        });
        let GraphError::Failed(faults) = &end else { panic!("{name}: {end}") };
        assert_eq!((faults[1].step(), faults[1].tag()), ("put", "3"), "{name}");
        assert_eq!(
            end.to_string(),
            "item items[1], put by step the environment(), has a count for 2 more gets\n  \
             also: item items[4], put by step put(3), has a count for 2 more gets",
            "{name}"
        );
    });
}
