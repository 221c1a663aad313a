//! What a run reports does not depend on the schedule, nor on the number of runs.

use crate::schedulers::each;
use selvedge_cnc::schedulers::{OneByOne, Replay, Scheduler, TaskPool};
use selvedge_cnc::{FaultCause, FinishedGraph, Graph, GraphError, ItemKey, Items, graph};
use std::sync::Mutex;
use std::sync::mpsc;

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

/// The numbers 0, 1 and 2 in each order. A panic takes seconds under Miri, which sees two orders.
const ORDERS: &[[u32; 3]] = if cfg!(miri) {
    &[[0, 1, 2], [2, 0, 1]]
} else {
    &[[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]
};

/// What a program reports that gets the order in which it is to put its tags.
fn same_in_each_order(program: impl for<'g> Fn(&'g Graph<'g, '_>, [u32; 3])) -> String {
    same_under_each(program, |report| report)
}

/// The same for a report of gets too many. Several workers may run steps with claims at the same
/// time, so the schedule decides which of the steps come too late; the items and the number of
/// these steps are determined.
fn same_gets_too_many(program: impl for<'g> Fn(&'g Graph<'g, '_>, [u32; 3])) -> String {
    same_under_each(program, |report| {
        let items = report.lines().map(|line| line.split_once(" got ").expect("it is a get too many").1);
        items.collect::<Vec<_>>().join("\n")
    })
}

/// What a program reports under `OneByOne` with each order of tags. Under the other schedulers,
/// `determined` gives the part that is to be the same.
fn same_under_each(
    program: impl for<'g> Fn(&'g Graph<'g, '_>, [u32; 3]),
    determined: impl Fn(String) -> String,
) -> String {
    let report = |order, scheduler: &dyn Scheduler| {
        graph(|graph| {
            graph.finish_after_fault();
            program(graph, order);
            text(graph.run(scheduler))
        })
    };
    let expected = report(ORDERS[0], &OneByOne);
    for &order in ORDERS {
        assert_eq!(report(order, &OneByOne), expected, "{order:?}");
    }
    let part = determined(expected.clone());
    each(|name, scheduler| assert_eq!(determined(report(ORDERS[0], scheduler)), part, "{name}"));
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
fn a_get_too_many_is_told_also_if_its_step_waits() {
    // 0 gets the item and ends. 1 and 2 get it too, and then wait for ever.
    for waiting in [1, 2] {
        let error = same_gets_too_many(|graph, order| {
            let tags = graph.tags::<u32>("tags");
            let counted = graph.items_in("counted", Items::hashed().counted(|_: &u32| Some(1)));
            let never = graph.items::<u32, u32>("never");
            graph.prescribe(tags, "get", move |n, step| {
                if n > waiting {
                    return Ok(());
                }
                step.get(counted, 7)?;
                if n == 0 { Ok(()) } else { step.get(never, n).map(|_| ()) }
            });
            graph.initialize(|env| env.put(counted, 7, 7)).unwrap();
            graph.initialize(|env| order.into_iter().try_for_each(|n| env.put_tag(tags, n))).unwrap();
        });
        // Each step that comes too late is told once.
        assert_eq!(error.lines().count(), waiting as usize, "{error}");
    }
}

#[test]
fn of_two_steps_with_one_tag_both_are_told_that_they_come_too_late() {
    let late = |order: [u32; 3]| {
        let error = graph(|graph| {
            graph.finish_after_fault();
            let tags = graph.tags::<u32>("tags");
            let counted = graph.items_in("counted", Items::hashed().counted(|_: &u32| Some(1)));
            let never = graph.items::<u32, u32>("never");
            graph.prescribe(tags, "get", move |_, step| {
                step.get(counted, 7)?;
                step.get(never, 0).map(|_| ())
            });
            graph.initialize(|env| env.put(counted, 7, 7)).unwrap();
            // The tag 1 is put twice.
            graph.initialize(|env| order.into_iter().try_for_each(|n| env.put_tag(tags, n.max(1)))).unwrap();
            text(graph.run(&OneByOne))
        });
        error.matches("got item counted[7] once more than its count says").count()
    };
    for &order in ORDERS {
        assert_eq!(late(order), 2, "{order:?}");
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
fn forks_that_panic_are_told_in_the_order_in_which_they_were_made() {
    let error = same_in_each_order(|graph, _| {
        graph
            .initialize(|env| {
                [2, 0, 1].into_iter().try_for_each(|n| {
                    env.fork(move |step| {
                        step.fork(move |_| panic!("no {n} in a fork"))?;
                        panic!("no {n}")
                    })
                })
            })
            .unwrap();
    });
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(
        lines[..3],
        [2, 0, 1].map(|n| format!("{}step fork() panicked: no {n}", if n == 2 { "" } else { "  also: " }))
    );
    assert_eq!(lines.len(), 6, "{error}");
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
            (graph.picture(), graph.statistics().items)
        })
    };
    let expected = seen(ORDERS[0]);
    for &order in ORDERS {
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

/// The keys of a page, and more keys than two pages have.
const PAGE: u32 = if cfg!(miri) { 16 } else { 1_024 };
const PAGES: u32 = 2 * PAGE + 9;

/// The collections that give the places of items up that have gone.
const FORGETTING: [fn() -> Items<'static, u32, u32>; 2] = [|| Items::paged(PAGES), Items::streamed];

#[test]
fn an_item_that_only_gives_an_order_may_have_gone() {
    each(|name, scheduler| {
        for (kind, first) in FORGETTING.into_iter().flat_map(|kind| [(kind, true), (kind, false)]) {
            graph(|graph| {
                let (uses, after) = (graph.tags::<u32>("uses"), graph.tags::<u32>("after"));
                let items = graph.items_in("items", kind().counted(|_| Some(1)));
                graph.prescribe(uses, "use", move |n, step| step.get(items, n).map(|_| ()));
                let ended = graph.items::<u32, u32>("ended");
                graph.prescribe_depends(
                    after,
                    "after",
                    move |n, needs| needs.on(items, n),
                    move |n, step| step.put(ended, n, n),
                );
                let put_after = || graph.initialize(|env| env.put_tag(after, 3)).unwrap();
                if first {
                    put_after();
                }
                graph.initialize(|env| (0..PAGES).try_for_each(|n| env.put(items, n, n))).unwrap();
                graph.initialize(|env| (0..PAGES).try_for_each(|n| env.put_tag(uses, n))).unwrap();
                graph.run(scheduler).unwrap_or_else(|error| panic!("{name}, {first}: {error}"));
                if !first {
                    put_after();
                }
                let end = graph.run(scheduler).unwrap_or_else(|error| panic!("{name}, {first}: {error}"));
                assert_eq!(end.finalize(|view| view.get(ended, 3).copied()), Some(3), "{name}");
            });
        }
    });
}

#[test]
fn a_second_put_is_told_as_one_though_its_place_was_given_up() {
    each(|name, scheduler| {
        let cases = [(PAGE, true), (PAGE, false), (PAGE - 1, false)];
        for (kind, (gone, kept)) in FORGETTING.into_iter().flat_map(|kind| cases.map(|case| (kind, case))) {
            let error = graph(|graph| {
                let (gets, again) = (graph.tags::<u32>("gets"), graph.tags::<()>("again"));
                let items = graph.items_in("items", kind().counted(|_| Some(1)));
                graph.prescribe(gets, "get", move |n, step| step.get(items, n).map(|_| ()));
                graph.prescribe(again, "put again", move |(), step| step.put(items, 0, 7));
                graph.finish_after_fault();
                let start = graph.initialize(|env| {
                    (0..PAGE).try_for_each(|n| env.put(items, n, n))?;
                    (0..gone).try_for_each(|n| env.put_tag(gets, n))?;
                    if kept { Ok(()) } else { env.put_tag(again, ()) }
                });
                start.unwrap();
                let end = graph.run(scheduler);
                if kept {
                    assert!(end.is_ok(), "{name}");
                    graph.initialize(|env| env.put_tag(again, ())).unwrap();
                    return text(graph.run(scheduler));
                }
                text(end)
            });
            let twice = "item items[0] was put twice: by step put again(()) and by a step before it";
            assert_eq!(error, twice, "{name}, {gone}, {kept}");
        }
    });
}

#[test]
fn statistics_count_the_puts_of_places_that_were_given_up() {
    each(|name, scheduler| {
        FORGETTING.into_iter().for_each(|kind| {
            let statistics = graph(|graph| {
                let chain = graph.tags::<u32>("chain");
                let items = graph.items_in("items", kind().counted(|_| Some(1)));
                graph.prescribe(chain, "next", move |n, step| {
                    let before = *step.get(items, n)?;
                    step.put(items, n + 1, before + 1)?;
                    if n + 2 < PAGES { step.put_tag(chain, n + 1) } else { Ok(()) }
                });
                graph
                    .initialize(|env| env.put(items, 0, 0_u32).and_then(|()| env.put_tag(chain, 0)))
                    .unwrap();
                assert!(matches!(graph.run(scheduler), Err(GraphError::Failed(_))), "the last item is left");
                graph.statistics()
            });
            assert_eq!((statistics.items[0].put, statistics.items[0].there), (PAGES as usize, 1), "{name}");
        })
    });
}

#[test]
fn a_step_that_missed_an_item_does_not_wait_for_another_one() {
    // The step "late" misses items[0], and is held there until the page of items[0] has other
    // items.
    let (page_is_used, wait) = mpsc::channel();
    let (has_missed, missed) = mpsc::channel();
    let (wait, missed) = (Mutex::new(wait), Mutex::new(missed));
    let error = graph(|graph| {
        graph.finish_after_fault();
        let (late, fill) = (graph.tags::<u32>("late"), graph.tags::<u32>("fill"));
        let items = graph.items_in("items", Items::paged(PAGES).counted(|_| Some(0)));
        let wait = &wait;
        graph.prescribe(late, "late", move |n, step| {
            let end = step.get(items, n).map(|_| ());
            if end.is_err() && has_missed.send(()).is_ok() {
                let _ = wait.lock().unwrap().recv();
            }
            end
        });
        let missed = &missed;
        graph.prescribe(fill, "fill", move |_, step| {
            missed.lock().unwrap().recv()?;
            (0..2 * PAGE).try_for_each(|n| step.put(items, n, n))?;
            step.put(items, 2 * PAGE + 1, 0)?;
            page_is_used.send(())?;
            page_is_used.send(())?;
            Ok(())
        });
        graph.initialize(|env| env.put_tag(late, 0).and_then(|()| env.put_tag(fill, 0))).unwrap();
        text(graph.run(&TaskPool::fifo(2)))
    });
    assert_eq!(error, "step late(0) got item items[0] once more than its count says");
}

#[test]
fn forks_and_steps_with_one_name_are_repeated_in_their_order() {
    let log = |scheduler: &dyn Scheduler| {
        let log = Mutex::new(Vec::new());
        let order = graph(|graph| {
            let (left, right) = (graph.tags::<u32>("left"), graph.tags::<u32>("right"));
            let log = &log;
            let note = move |n: u32| {
                log.lock().unwrap().push(n);
                Ok(())
            };
            graph.prescribe(left, "join", move |n, _| note(n + 100));
            graph.prescribe(right, "join", move |n, _| note(n + 200));
            graph.record(1_000);
            graph
                .initialize(|env| {
                    (0..4).try_for_each(|n| {
                        env.put_tag(left, n)?;
                        env.put_tag(right, n)?;
                        env.fork(move |step| {
                            note(n)?;
                            (0..3).try_for_each(|m| step.fork(move |_| note(10 * n + m)))
                        })
                    })
                })
                .unwrap();
            graph.run(scheduler).unwrap();
            graph.recording().order()
        });
        (log.into_inner().unwrap(), order)
    };
    for seed in 0..8 {
        let (ran, order) = log(&TaskPool::fuzz(1, seed));
        let order = order.to_string().parse().unwrap_or_else(|never| match never {});
        assert_eq!(log(&Replay::new(order)).0, ran, "{seed}");
    }
}

#[test]
fn a_cancelled_step_of_each_kind_has_not_got_its_items() {
    each(|name, scheduler| {
        for is_async in [false, true] {
            let error = graph(|graph| {
                let tags = graph.tags::<u32>("tags");
                let counted = graph.items_in("counted", Items::hashed().counted(|_: &u32| Some(2)));
                let later = graph.items::<u32, u32>("later");
                let waiting = if is_async {
                    graph.prescribe_async(tags, "wait", move |_, step| async move {
                        step.get(counted, 0).await?;
                        step.get(later, 0).await.map(|_| ())
                    })
                } else {
                    graph.prescribe(tags, "wait", move |_, step| {
                        step.get(counted, 0)?;
                        step.get(later, 0).map(|_| ())
                    })
                };
                graph.prescribe(tags, "get", move |_, step| step.get(counted, 0).map(|_| ()));
                graph.initialize(|env| env.put(counted, 0, 0).and_then(|()| env.put_tag(tags, 0))).unwrap();
                assert!(matches!(graph.run(scheduler), Err(GraphError::Stuck(_))), "{name}");
                waiting.cancel();
                graph.initialize(|env| env.put(later, 0, 0)).unwrap();
                text(graph.run(scheduler))
            });
            assert!(error.ends_with("has a count for 1 more gets"), "{name}, {is_async}: {error}");
        }
    });
}

#[test]
fn the_environment_may_get_what_a_run_has_left() {
    each(|name, scheduler| {
        graph(|graph| {
            let tags = graph.tags::<u32>("tags");
            let items = graph.items_in("items", Items::hashed().counted(|_| Some(2)));
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
            let items = graph.items_in("items", Items::dense(9_u32).counted(|_| Some(2)));
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

/// A tag in a box, which breaks when it is dropped by its graph.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Fragile(u32, bool);

impl ItemKey for Fragile {}

impl Drop for Fragile {
    fn drop(&mut self) {
        assert!(!self.1, "the tag {} breaks", self.0);
    }
}

#[test]
fn a_tag_that_breaks_when_its_step_has_failed_or_was_cancelled_is_a_fault() {
    for cancelled in [false, true] {
        let error = same_in_each_order(|graph, order| {
            let tags = graph.tags::<Fragile>("tags");
            let fail = graph.prescribe(tags, "fail", |mut tag, _| {
                tag.1 = false;
                let _: u32 = "no number".parse()?;
                Ok(())
            });
            if cancelled {
                fail.cancel();
            }
            graph
                .initialize(|env| order.into_iter().try_for_each(|n| env.put_tag(tags, Fragile(n, n > 0))))
                .unwrap();
        });
        let panics = error.matches("step fail(..) panicked: the tag ").count();
        let failed = error.matches("failed: invalid digit").count();
        assert_eq!((panics, failed), (2, if cancelled { 0 } else { 3 }), "{error}");
    }
}

/// A value that breaks when it is dropped.
struct FragileValue;

impl Drop for FragileValue {
    fn drop(&mut self) {
        panic!("the value breaks");
    }
}

#[test]
fn a_value_that_no_step_may_get_wakes_those_that_wait_also_if_it_breaks() {
    let error = same_in_each_order(|graph, order| {
        let (tags, puts) = (graph.tags::<u32>("tags"), graph.tags::<u32>("puts"));
        let items = graph.items_in("items", Items::hashed().counted(|_: &u32| Some(0)));
        graph.prescribe(tags, "get", move |_, step| step.get(items, 0).map(|_: &FragileValue| ()));
        graph.prescribe(puts, "put", move |n, step| step.put(items, n, FragileValue));
        graph.initialize(|env| order.into_iter().try_for_each(|n| env.put_tag(tags, n))).unwrap();
        graph.initialize(|env| env.put_tag(puts, 0)).unwrap();
    });
    assert_eq!(
        error,
        "step put(0) panicked: the value breaks\n  \
         also: step get(0) got item items[0] once more than its count says\n  \
         also: step get(1) got item items[0] once more than its count says\n  \
         also: step get(2) got item items[0] once more than its count says"
    );
}

#[test]
fn a_run_that_stops_reports_a_part_of_what_one_that_goes_on_reports() {
    let faults = |finish: bool, scheduler: &dyn Scheduler| -> Vec<String> {
        let error = graph(|graph| {
            let tags = graph.tags::<u32>("tags");
            let items = graph.items::<u32, u32>("items");
            graph.prescribe(tags, "test", move |n, step| {
                let before = if n == 0 { 0 } else { *step.get(items, n / 2)? };
                assert!(n % 7 != 6, "no {n}");
                step.put(items, n, before + n)
            });
            graph.prescribe(tags, "fail", |n, _| {
                if n % 5 == 4 { Ok("?".parse::<u32>().map(|_| ())?) } else { Ok(()) }
            });
            if finish {
                graph.finish_after_fault();
            }
            let end = if cfg!(miri) { 20 } else { 40 };
            graph.initialize(|env| (0..end).rev().try_for_each(|n| env.put_tag(tags, n))).unwrap();
            graph.run(scheduler).map(|_| ()).unwrap_err()
        });
        let GraphError::Failed(faults) = error else { panic!("{error}") };
        faults.iter().map(ToString::to_string).collect()
    };
    let all = faults(true, &OneByOne);
    assert!(all.len() > 4 && all[0] == "step test(6) panicked: no 6", "{all:?}");
    each(|name, scheduler| {
        assert_eq!(faults(true, scheduler), all, "{name}");
        let some = faults(false, scheduler);
        assert!(!some.is_empty() && some.iter().all(|fault| all.contains(fault)), "{name}: {some:?}");
    });
}
