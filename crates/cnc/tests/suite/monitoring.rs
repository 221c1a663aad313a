//! What a monitor shows of a run, and when a watchdog tells that there is no progress.

use crate::schedulers::each;
use selvedge_cnc::schedulers::{GraphJob, OneByOne, Scheduler, Stealing, TaskPool, Watchdog};
use selvedge_cnc::{
    ArrowKind, CollectionId, Graph, GraphError, Items, Picture, PictureNode, Stalled, StepProgress, graph,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

/// The tags of each kind of step but ranges, which have twice as many.
const TAGS: u32 = if cfg!(miri) { 3 } else { 20 };

/// Steps of all kinds, of which some wait for items that `missing` does not have.
fn all_kinds<'g>(graph: &'g Graph<'g, '_>, are_put: bool) {
    let tags = graph.tags::<u32>("tags");
    let names = graph.tags::<String>("names");
    let loops = graph.tags("loops");
    let items = graph.items_in("items", Items::dense(2 * TAGS));
    let others = graph.items::<String, u32>("others");
    let once = graph.items_in("once", Items::<u32, u32>::hashed().counted(|_| Some(2)));
    graph.prescribe(tags, "plain", move |n, step| {
        let next = *step.get(items, n + TAGS)?;
        step.put(items, n, next)
    });
    graph.prescribe_depends(
        tags,
        "declared",
        move |n, needs| needs.on(items, n),
        move |n, step| step.put(once, n, *step.get(items, n)?),
    );
    graph.prescribe_async(names, "async", move |name, step| async move {
        let n: u32 = name.len() as u32;
        let got = *step.get(items, n).await? + *step.get(once, n).await?;
        step.put(others, name, got)
    });
    graph.prescribe(tags, "take", move |n, step| step.take(once, n).map(|_| ()));
    graph.prescribe(tags, "forks", move |n, step| {
        step.fork(move |step| step.get(others, "x".repeat(n as usize)).map(|_| ()))
    });
    graph.prescribe_range(loops, "range", 3, move |range, step| {
        range.into_iter().try_for_each(|n| step.get(items, n).map(|_| ()))
    });
    graph
        .initialize(|env| {
            (0..TAGS).try_for_each(|n| env.put_tag(tags, n))?;
            (0..TAGS).try_for_each(|n| env.put_tag(names, "x".repeat(n as usize)))?;
            env.put_tag(loops, (0, 2 * TAGS))?;
            (TAGS..2 * TAGS).filter(|n| are_put || n % 3 != 0).try_for_each(|n| env.put(items, n, n))
        })
        .unwrap();
}

fn counts(progress: &[StepProgress]) -> Vec<(String, [u64; 4])> {
    progress.iter().map(|of| (of.name.clone(), [of.ended, of.known, of.waiting, of.running])).collect()
}

#[test]
fn a_monitor_counts_the_steps_of_all_kinds_under_every_scheduler() {
    each(|name, scheduler| {
        let progress = graph(|graph| {
            let monitor = graph.monitor();
            all_kinds(graph, true);
            graph.run(scheduler).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(monitor.waiting().items.is_empty(), "{name}");
            counts(&monitor.progress())
        });
        let all = |name: &str, count| (name.to_owned(), [count, count, 0, 0]);
        let steps =
            ["plain", "declared", "async", "take", "forks", "fork"].map(|name| all(name, u64::from(TAGS)));
        let expected = [&steps[..5], &[all("range", 2 * u64::from(TAGS))], &steps[5..]].concat();
        assert_eq!(progress, expected, "{name}");
    });
}

#[test]
fn a_monitor_names_the_steps_that_the_report_of_the_run_names() {
    each(|name, scheduler| {
        graph(|graph| {
            let monitor = graph.monitor();
            all_kinds(graph, false);
            let Err(GraphError::Stuck(stuck)) = graph.run(scheduler) else {
                panic!("{name}: items are missing")
            };
            // An async step with a text as its tag has no word that sorts it, in both reports.
            assert_eq!(monitor.waiting(), stuck, "{name}");
            let waiting: u64 = monitor.progress().iter().map(|of| of.waiting).sum();
            assert_eq!(waiting, stuck.items.iter().map(|item| item.steps.len() as u64).sum(), "{name}");
        });
    });
}

#[test]
fn a_monitor_says_of_an_item_that_was_put_that_it_has_other_gets_left() {
    each(|name, scheduler| {
        graph(|graph| {
            let monitor = graph.monitor();
            let tags = graph.tags::<u32>("tags");
            let counted = graph.items_in("counted", Items::<u32, u32>::hashed().counted(|_| Some(2)));
            let never = graph.items::<u32, u32>("never");
            graph.prescribe(tags, "take", move |n, step| step.take(counted, n).map(|_| ()));
            graph.prescribe_depends(
                tags,
                "declare",
                move |n, needs| needs.to_take(counted, n + 3),
                move |n, step| step.take(counted, n + 3).map(|_| ()),
            );
            graph.prescribe(tags, "get", move |n, step| {
                // The names of the collections are not in the order in which they are made.
                let mine = step.items::<u32, u32>(["c", "a", "b"][n as usize]);
                step.fork(move |step| step.get(mine, 0).map(|_| ()))
            });
            graph.prescribe(tags, "wait", move |n, step| step.get(never, n).map(|_| ()));
            graph
                .initialize(|env| {
                    (0..6).try_for_each(|n| env.put(counted, n, n))?;
                    (0..3).try_for_each(|n| env.put_tag(tags, n))
                })
                .unwrap();
            let Err(GraphError::Stuck(stuck)) = graph.run(scheduler) else {
                panic!("{name}: no step gets the items first")
            };
            let were_put: Vec<bool> = stuck.items.iter().map(|item| item.was_put).collect();
            assert_eq!(were_put, [[true; 6], [false; 6]].concat(), "{name}");
            assert_eq!(monitor.waiting(), stuck, "{name}");
        });
    });
}

#[test]
fn a_step_that_is_dropped_because_the_run_has_stopped_does_not_wait() {
    each(|name, scheduler| {
        for cancels in [false, true] {
            graph(|graph| {
                let monitor = graph.monitor();
                let (waits, puts) = (graph.tags::<u32>("waits"), graph.tags::<u32>("puts"));
                let items = graph.items::<u32, u32>("items");
                let canceller = graph.canceller();
                graph.prescribe(waits, "wait", move |_, step| step.get(items, 0).map(|_| ()));
                graph.prescribe(puts, "put", move |n, step| {
                    step.put(items, n, n)?;
                    if cancels {
                        canceller.cancel();
                        return Ok(());
                    }
                    Ok("?".parse::<u32>().map(|_| ())?)
                });
                graph.initialize(|env| (0..3).try_for_each(|n| env.put_tag(waits, n))).unwrap();
                assert!(matches!(graph.run(scheduler), Err(GraphError::Stuck(_))), "{name}");
                graph.initialize(|env| env.put_tag(puts, 0)).unwrap();
                assert!(graph.run(scheduler).is_err(), "{name}");
                assert_eq!(monitor.waiting().items, [], "{name}, {cancels}");
            });
        }
    });
}

/// The limit of the watchdog in `stalls`. With a limit of 40 ms the watchdog told once more on a
/// loaded machine, because the system ran no worker for that time.
const LIMIT: Duration = Duration::from_millis(200);

/// A step that waits for the world, and others that wait for its items. The watchdog tells, and
/// then the world goes on.
fn stalls(scheduler: impl Scheduler) -> (Vec<Stalled>, String) {
    let (sender, receiver) = mpsc::channel();
    let (receiver, told) = (Mutex::new(receiver), Mutex::new(Vec::new()));
    let watched = Watchdog::new(scheduler, LIMIT, |stalled| {
        told.lock().unwrap().push(stalled.clone());
        sender.send(7).unwrap();
    });
    let stuck = graph(|graph| {
        let (sources, tags) = (graph.tags::<u32>("sources"), graph.tags::<u32>("tags"));
        let received = graph.items_in("received", Items::<u32, u32>::dense(4));
        let source = &receiver;
        graph.prescribe(sources, "receive", move |n, step| {
            let receiver = source.lock().unwrap();
            for round in 0..2 {
                step.put(received, 2 * n + round, receiver.recv()?)?;
            }
            Ok(())
        });
        graph.prescribe(tags, "use", move |n, step| step.get(received, n % 4).map(|_| ()));
        graph
            .initialize(|env| {
                (0..6).try_for_each(|n| env.put_tag(tags, n))?;
                env.put_tag(sources, 0)
            })
            .unwrap();
        let Err(GraphError::Stuck(stuck)) = graph.run(&watched) else { panic!("two items are missing") };
        stuck.to_string()
    });
    (told.into_inner().unwrap(), stuck)
}

#[test]
#[cfg_attr(miri, ignore = "it has a limit of time")]
fn a_watchdog_tells_which_steps_wait_and_for_what() {
    let all = "6 steps wait for 4 items that no step has put\n  item received[0]: step use(0)\n  \
               item received[0]: step use(4)\n  item received[1]: step use(1)\n  \
               item received[1]: step use(5)\n  item received[2]: step use(2)\n  item received[3]: step use(3)";
    for (mut told, stuck) in
        [stalls(Stealing::new(2)), stalls(TaskPool::fifo(2)), stalls(TaskPool::lifo(3).spinning())]
    {
        // On a loaded machine the workers may take longer than the limit to end.
        told.retain(|stalled| !stalled.running.is_empty());
        assert_eq!(told.len(), 2, "{told:?}");
        assert_eq!(told[0].stuck.to_string(), all);
        for stalled in &told {
            assert!(stalled.time >= LIMIT);
            let running: Vec<_> = stalled.running.iter().map(|of| (&*of.step, &*of.tag)).collect();
            assert_eq!(running, [("receive", "0")]);
            assert!(stalled.to_string().ends_with("there run: receive(0)"), "{stalled}");
        }
        let left = "\n  item received[2]: step use(2)\n  item received[3]: step use(3)";
        // The steps that item 0 has woken may be held by the worker that waits.
        assert!(told[1].stuck.to_string().ends_with(left), "{}", told[1]);
        assert_eq!(stuck, format!("2 steps wait for 2 items that no step has put{left}"));
    }
}

#[test]
fn a_watchdog_is_silent_while_there_is_progress_and_at_the_end() {
    let silent = |_: &_| panic!("there is progress");
    for scheduler in [Stealing::new(1), Stealing::new(2)] {
        let watched = Watchdog::new(scheduler, Duration::from_secs(60), silent);
        graph(|graph| {
            all_kinds(graph, true);
            graph.run(&watched).unwrap();
        });
    }
    // A step that runs for long is no reason while no step waits.
    let watched = Watchdog::new(OneByOne, Duration::from_millis(1), silent);
    graph(|graph| {
        let tags = graph.tags::<u32>("tags");
        graph.prescribe(tags, "sleep", |_, _| {
            std::thread::sleep(Duration::from_millis(30));
            Ok(())
        });
        graph.initialize(|env| env.put_tag(tags, 0)).unwrap();
        graph.run(&watched).unwrap();
    });
}

/// Unwinds in the middle of a run.
struct Unwinds;

impl Scheduler for Unwinds {
    fn run<'g>(&self, job: &GraphJob<'g>) {
        drop(job.start());
        panic!("the scheduler fails");
    }
}

#[test]
fn the_watch_ends_when_the_scheduler_unwinds() {
    let watched = Watchdog::new(Unwinds, Duration::from_secs(60), |_| ());
    let end = catch_unwind(AssertUnwindSafe(|| graph(|graph| graph.run(&watched).map(|_| ()))));
    assert_eq!(*end.unwrap_err().downcast::<&str>().unwrap(), "the scheduler fails");
}

#[test]
#[cfg_attr(miri, ignore = "it has a limit of time")]
fn the_report_of_a_watchdog_may_ask_the_monitor_and_cancel_the_run() {
    let (sender, receiver) = mpsc::channel();
    let (receiver, seen) = (Mutex::new(receiver), Mutex::new(None));
    let end = graph(|graph| {
        let (monitor, canceller) = (graph.monitor(), graph.canceller());
        let (doors, tags) = (graph.tags::<u32>("doors"), graph.tags::<u32>("tags"));
        let items = graph.items::<u32, u32>("items");
        let receiver = &receiver;
        graph.prescribe(doors, "door", move |_, _| Ok(receiver.lock().unwrap().recv()?));
        graph.prescribe(tags, "wait", move |n, step| step.get(items, n).map(|_| ()));
        graph.initialize(|env| env.put_tag(tags, 7).and_then(|()| env.put_tag(doors, 0))).unwrap();
        let watched = Watchdog::new(Stealing::new(2), Duration::from_millis(20), |stalled| {
            let same = monitor.waiting() == stalled.stuck;
            let waiting: Vec<u64> = monitor.progress().iter().map(|of| of.waiting).collect();
            let nodes = monitor.picture().nodes.len();
            // On a loaded machine the watchdog may tell once more, before the run ends.
            seen.lock().unwrap().get_or_insert((same, waiting, nodes));
            canceller.cancel();
            sender.send(()).unwrap();
        });
        graph.run(&watched).map(|_| ())
    });
    assert!(matches!(end, Err(GraphError::Cancelled)));
    assert_eq!(*seen.lock().unwrap(), Some((true, vec![0, 1], 6)));
}

/// How many nodes of each kind a picture has: steps, item collections, tag collections.
fn kinds(picture: &Picture) -> [usize; 3] {
    let count = |is_kind: fn(&CollectionId) -> bool| {
        picture.nodes.iter().filter(|node| is_kind(&node.collection)).count()
    };
    [
        count(|of| matches!(of, CollectionId::Step(_))),
        count(|of| matches!(of, CollectionId::Items(_))),
        count(|of| matches!(of, CollectionId::Tags(_))),
    ]
}

#[test]
fn a_picture_has_each_collection_once_with_its_numbers() {
    let pictures = [&OneByOne as &dyn Scheduler, &TaskPool::fuzz(2, 9)].map(|scheduler| {
        graph(|graph| {
            let monitor = graph.monitor();
            all_kinds(graph, true);
            graph.run(scheduler).unwrap();
            assert_eq!(
                counts(&monitor.progress()),
                counts(&monitor.picture().nodes.into_iter().filter_map(|of| of.progress).collect::<Vec<_>>())
            );
            (monitor.picture(), graph.picture())
        })
    });
    let (with_numbers, plain) = &pictures[0];
    // The environment and 7 steps, 3 item collections, 3 tag collections.
    assert_eq!(kinds(plain), [8, 3, 3]);
    let prescribed = plain.arrows.iter().filter(|arrow| arrow.kind == ArrowKind::Prescribes).count();
    assert_eq!((prescribed, plain.arrows.len()), (6, 6 + 15));
    let has_number = |node: &PictureNode| node.progress.is_some() || node.put > 0;
    assert!(!plain.nodes.iter().any(has_number));
    let without = with_numbers.nodes.iter().filter(|node| !has_number(node));
    assert_eq!(without.map(|node| &*node.name).collect::<Vec<_>>(), ["the environment"]);
    let puts = with_numbers.nodes.iter().map(|node| (&*node.name, node.put)).filter(|(_, put)| *put > 0);
    let (once, twice) = (u64::from(TAGS), 2 * u64::from(TAGS));
    let expected =
        [("items", twice), ("others", once), ("once", once), ("tags", once), ("names", once), ("loops", 1)];
    assert_eq!(puts.collect::<Vec<_>>(), expected);
    assert_eq!(with_numbers.arrows, plain.arrows);
    assert_eq!(pictures[0], pictures[1]);
}

#[test]
fn a_picture_of_a_monitor_has_the_collections_that_steps_have_made() {
    graph(|graph| {
        let tags = graph.tags::<u32>("tags");
        let monitor = graph.monitor();
        graph.prescribe(tags, "make", |n, step| step.put(step.items("made"), n, n));
        graph.initialize(|env| (0..3).try_for_each(|n| env.put_tag(tags, n))).unwrap();
        assert_eq!(kinds(&monitor.picture())[1], 0);
        graph.run(&OneByOne).unwrap();
        let (seen, plain) = (monitor.picture(), graph.picture());
        assert_eq!((kinds(&plain)[1], kinds(&seen)[1]), (1, 1));
        assert_eq!(seen.nodes.iter().filter(|node| node.put == 3).count(), 2);
    });
}

#[test]
fn a_tag_that_was_put_twice_is_two_steps_that_wait() {
    graph(|graph| {
        let monitor = graph.monitor();
        let (tags, puts) = (graph.tags::<u32>("tags"), graph.tags::<u32>("puts"));
        let items = graph.items::<u32, u32>("items");
        graph.prescribe(tags, "get", move |n, step| step.get(items, n).map(|_| ()));
        graph.prescribe(puts, "put", move |n, step| step.put(items, n, n));
        graph.initialize(|env| [7, 7, 8].into_iter().try_for_each(|n| env.put_tag(tags, n))).unwrap();
        let Err(GraphError::Stuck(stuck)) = graph.run(&OneByOne) else { panic!("three steps wait") };
        assert_eq!(monitor.waiting(), stuck);
        assert_eq!(stuck.items[0].steps.len(), 2);
        graph.initialize(|env| env.put_tag(puts, 7)).unwrap();
        let Err(GraphError::Stuck(stuck)) = graph.run(&OneByOne) else { panic!("one step waits") };
        assert_eq!(monitor.waiting(), stuck);
        assert_eq!(stuck.items.len(), 1);
        assert_eq!(
            counts(&monitor.progress()),
            [("get".to_owned(), [2, 3, 1, 0]), ("put".to_owned(), [1, 1, 0, 0])]
        );
    });
}
