//! Single steps and whole step collections that are cancelled, and circles of steps that wait.

use selvedge_cnc::schedulers::OneByOne;
use selvedge_cnc::{GraphError, graph};

use crate::schedulers::each;

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
