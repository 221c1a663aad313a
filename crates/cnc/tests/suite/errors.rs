//! Errors are the same under every scheduler.

use crate::schedulers::each;
use selvedge_cnc::schedulers::{GraphJob, OneByOne, Scheduler, TaskPool};
use selvedge_cnc::{
    AsyncStep, FaultCause, Graph, GraphError, ItemCol, ItemKey, Items, StepContext, StepFault, StepResult,
    graph,
};
use std::fmt;
use std::future::poll_fn;
use std::hash::{Hash, Hasher};
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::process::{ExitCode, Termination};
use std::task::{Context, Poll};

/// The report of a graph that ends badly, under every scheduler.
fn report_everywhere(expected: &str, program: impl for<'g> Fn(&'g Graph<'g, '_>)) {
    each(|name, scheduler| {
        let error = graph(|graph| {
            graph.finish_after_fault();
            program(graph);
            graph.run(scheduler).map(|_| ()).unwrap_err()
        });
        assert_eq!(error.to_string(), expected, "{name}");
    });
}

fn put_tags<'g>(graph: &'g Graph<'g, '_>, tags: selvedge_cnc::TagCol<'g, u32>, count: u32) {
    graph.initialize(|env| (0..count).try_for_each(|n| env.put_tag(tags, n))).unwrap();
}

#[test]
fn an_item_that_is_put_twice_names_both_steps() {
    report_everywhere("item items[1] was put twice: by step one(1) and by step other(4)", |graph| {
        let (tags, others) = (graph.tags("tags"), graph.tags("others"));
        let items = graph.items::<u32, u32>("items");
        graph.prescribe(tags, "one", move |n, step| step.put(items, n, n));
        graph.prescribe(others, "other", move |n: u32, step| step.put(items, n / 4, n));
        put_tags(graph, tags, 8);
        graph.initialize(|env| env.put_tag(others, 4)).unwrap();
    });
}

#[test]
fn an_equal_value_may_be_put_again_if_the_collection_says_so() {
    each(|name, scheduler| {
        let (count, end) = graph(|graph| {
            let tags = graph.tags("tags");
            let items = graph.items_in("items", Items::hashed().equal_allowed());
            graph.prescribe(tags, "put", move |n: u32, step| step.put(items, n / 4, n / 4));
            put_tags(graph, tags, 40);
            let count = graph.run(scheduler).unwrap().finalize(|view| view.iter(items).count());
            (count, graph.initialize(|env| env.put(items, 3, 4)))
        });
        assert_eq!(count, 10, "{name}");
        assert!(matches!(end, Err(GraphError::Failed(_))), "{name}");
    });
}

#[test]
fn every_step_that_waits_for_ever_is_reported() {
    report_everywhere(
        "4 steps wait for 2 items that no step has put\n  \
         item items[(0, 9)]: step a(1)\n  item items[(0, 9)]: step b(1)\n  \
         item items[(3, 9)]: step a(0)\n  item items[(3, 9)]: step b(0)",
        |graph| {
            let tags = graph.tags("tags");
            let items = graph.items::<(u32, u32), u32>("items");
            for name in ["b", "a"] {
                graph.prescribe(tags, name, move |n: u32, step| step.get(items, (3 - 3 * n, 9)).map(|_| ()));
            }
            put_tags(graph, tags, 2);
        },
    );
}

#[test]
fn stuck_async_steps_keep_their_tags_and_are_dropped() {
    let alive = std::sync::Arc::new(());
    each(|name, scheduler| {
        graph(|graph| {
            let tags = graph.tags::<String>("tags");
            let items = graph.items::<String, u32>("items");
            let held = alive.clone();
            graph.prescribe_async(tags, "wait", move |tag, step| {
                let held = held.clone();
                async move {
                    let _ = step.get(items, format!("{tag}?")).await?;
                    drop(held);
                    Ok(())
                }
            });
            graph
                .initialize(|env| ["b", "a"].into_iter().try_for_each(|tag| env.put_tag(tags, tag.into())))
                .unwrap();
            let Err(GraphError::Stuck(stuck)) = graph.run(scheduler) else { panic!("{name}") };
            assert_eq!(stuck.items[0].key, "\"a?\"", "{name}");
            assert_eq!(stuck.items[0].steps, [("wait".to_owned(), "\"a\"".to_owned())], "{name}");
        });
        assert_eq!(std::sync::Arc::strong_count(&alive), 1, "{name}");
    });
}

#[test]
fn the_smallest_panic_is_reported_and_the_others_with_it() {
    report_everywhere("step test(3) panicked: no 3\n  also: step test(7) panicked: no 7", |graph| {
        let tags = graph.tags("tags");
        graph.prescribe(tags, "test", |n, _| {
            assert!(n % 4 != 3, "no {n}");
            Ok(())
        });
        put_tags(graph, tags, 10);
    });
}

#[test]
fn errors_of_the_program_are_reported_by_all_kinds_of_steps() {
    fn parse(text: &str) -> StepResult<u32> {
        Ok(text.parse()?)
    }
    report_everywhere(
        "step replay(2) failed: invalid digit found in string\n  \
         also: step declared(2) failed: invalid digit found in string\n  \
         also: step async(2) failed: invalid digit found in string",
        |graph| {
            let tags = graph.tags("tags");
            let text = |n: u32| if n == 2 { "two" } else { "1" };
            graph.prescribe(tags, "replay", move |n, _| parse(text(n)).map(|_| ()));
            graph.prescribe_depends(tags, "declared", |_, _| Ok(()), move |n, _| parse(text(n)).map(|_| ()));
            graph.prescribe_async(tags, "async", move |n, _| async move { parse(text(n)).map(|_| ()) });
            put_tags(graph, tags, 4);
        },
    );
}

#[test]
fn a_fault_stops_the_others() {
    each(|name, scheduler| {
        let (error, again, ran) = graph(|graph| {
            let tags = graph.tags::<u32>("tags");
            graph.prescribe(tags, "count", move |n, step| {
                if n == 100 { parse_nothing() } else { step.put_tag(tags, n + 1) }
            });
            graph.prescribe(tags, "wait", move |n, _| if n == 100 { parse_nothing() } else { Ok(()) });
            graph.initialize(|env| env.put_tag(tags, 0)).unwrap();
            let error = graph.run(scheduler).map(|_| ()).unwrap_err();
            let again = graph.run(scheduler).is_err();
            (error, again, graph.statistics().steps.iter().map(|step| step.runs).sum::<u64>())
        });
        let GraphError::Failed(faults) = error else { panic!("{name}: {error}") };
        assert!(faults.iter().all(|fault| fault.tag() == "100"), "{name}");
        assert!(again, "{name}: a graph that has failed runs no more");
        assert!(ran <= 202, "{name}");
    });
}

fn parse_nothing() -> StepResult {
    "".parse::<u32>()?;
    Ok(())
}

#[test]
fn a_get_after_a_put_is_told_also_if_the_item_is_there() {
    report_everywhere(
        "step late(0) got item items[5] after it had put; it may run again, so it must get first",
        |graph| {
            let tags = graph.tags("tags");
            let items = graph.items::<u32, u32>("items");
            graph.prescribe(tags, "late", move |n: u32, step| {
                step.put(items, n + 10, n)?;
                step.get(items, 5).map(|_| ())
            });
            graph.initialize(|env| env.put(items, 5, 5)).unwrap();
            put_tags(graph, tags, 1);
        },
    );
}

#[test]
fn a_declared_step_gets_nothing_else() {
    report_everywhere("step sly(0) got item items[1], which it has not declared", |graph| {
        let tags = graph.tags("tags");
        let items = graph.items_in("items", Items::dense(2_u32));
        graph.prescribe_depends(
            tags,
            "sly",
            move |n: u32, needs| needs.on(items, n),
            move |n, step| step.get(items, n).and_then(|_| step.get(items, n + 1)).map(|_| ()),
        );
        graph.initialize(|env| env.put(items, 0, ()).and_then(|()| env.put(items, 1, ()))).unwrap();
        put_tags(graph, tags, 1);
    });
}

#[test]
fn counts_that_are_too_small_or_too_large_are_errors() {
    report_everywhere("item items[1], put by step the environment(), has a count for 2 more gets", |graph| {
        let tags = graph.tags("tags");
        let items = graph.items_in("items", Items::hashed().counted(|&n: &u32| Some(1 + 2 * n)));
        graph.prescribe(tags, "get", move |n: u32, step| step.get(items, n).map(|_| ()));
        graph.initialize(|env| env.put(items, 0, 0).and_then(|()| env.put(items, 1, 1))).unwrap();
        put_tags(graph, tags, 2);
    });
    each(|name, scheduler| {
        for items in [Items::hashed(), Items::dense(4_u32), Items::paged(4)] {
            let error = graph(|graph| {
                let tags = graph.tags("tags");
                let items = graph.items_in("items", items.counted(|_| Some(2)));
                graph.prescribe(tags, "get", move |_: u32, step| step.get(items, 3).map(|_| ()));
                graph.initialize(|env| env.put(items, 3, "three".to_owned())).unwrap();
                put_tags(graph, tags, 3);
                graph.run(scheduler).map(|_| ()).unwrap_err()
            });
            let GraphError::Failed(faults) = error else { panic!("{name}: {error}") };
            let only =
                |fault: &StepFault| matches!(fault.why(), FaultCause::OverGet { key, .. } if key == "3");
            assert!(faults.len() == 1 && only(&faults[0]), "{name}: {faults:?}");
        }
    });
}

#[test]
fn two_steps_that_take_one_item_wait_for_each_other() {
    report_everywhere(
        "2 steps wait for 1 items\n  \
         item items[0], which was put and has other gets left: step take(0)\n  \
         item items[0], which was put and has other gets left: step take(1)",
        |graph| {
            let tags = graph.tags("tags");
            let items = graph.items_in("items", Items::hashed().counted(|_: &u32| Some(2)));
            graph.prescribe(tags, "take", move |_: u32, step| step.take(items, 0).map(|_: u32| ()));
            graph.initialize(|env| env.put(items, 0, 0)).unwrap();
            put_tags(graph, tags, 2);
        },
    );
}

#[test]
fn keys_outside_of_the_extent_are_told() {
    report_everywhere(
        "step put(4) named item items[4], which is outside of the extent of the collection",
        |graph| {
            let tags = graph.tags("tags");
            let items = graph.items_in("items", Items::dense(4_u32));
            graph.prescribe(tags, "put", move |n, step| step.put(items, n, ()));
            put_tags(graph, tags, 5);
        },
    );
}

#[test]
fn a_missed_get_cannot_be_used_to_look_for_an_item() {
    // A step that ignores the miss is still one that has missed.
    each(|name, scheduler| {
        let value = graph(|graph| {
            let tags = graph.tags::<u32>("tags");
            let items = graph.items::<u32, u32>("items");
            graph.prescribe(tags, "sly", move |n, step| {
                let there = if n == 0 { 7 } else { step.get(items, 0).copied().unwrap_or(99) };
                let _ = step.put(items, n, there);
                Ok(())
            });
            graph.initialize(|env| [1, 0].into_iter().try_for_each(|n| env.put_tag(tags, n))).unwrap();
            graph.run(scheduler).unwrap().finalize(|view| view.get(items, 1).copied())
        });
        assert_eq!(value, Some(7), "{name}");
    });
}

#[test]
fn an_async_step_that_gives_up_a_get_is_told() {
    report_everywhere("step race(0) waits for something that is no item", |graph| {
        let tags = graph.tags::<u32>("tags");
        let items = graph.items::<u32, u32>("items");
        graph.prescribe_async(tags, "race", move |_, step| async move {
            {
                let mut get = std::pin::pin!(step.get(items, 0));
                poll_fn(|cx| Poll::Ready(get.as_mut().poll(cx).is_pending())).await;
            }
            step.put(items, 1, 1)
        });
        put_tags(graph, tags, 1);
    });
}

#[test]
fn an_async_step_that_waits_for_no_item_is_told() {
    report_everywhere("step wait(\"a long tag in a box\") waits for something that is no item", |graph| {
        let tags = graph.tags::<String>("tags");
        graph.prescribe_async(tags, "wait", |_, _| std::future::pending());
        graph.initialize(|env| env.put_tag(tags, "a long tag in a box".into())).unwrap();
    });
}

#[test]
fn an_async_step_that_forgets_a_get_is_told() {
    report_everywhere("step forget(..) waits for something that is no item", |graph| {
        let tags = graph.tags::<String>("tags");
        let items = graph.items::<u32, u32>("items");
        graph.prescribe_async(tags, "forget", move |_, step| async move {
            let mut get = ManuallyDrop::new(step.get(items, 0));
            poll_fn(|cx| Poll::Ready(Pin::new(&mut *get).poll(cx).is_pending())).await;
            Ok(())
        });
        graph.initialize(|env| env.put_tag(tags, "a tag".into())).unwrap();
    });
}

#[test]
fn the_environment_is_told_too() {
    let error = graph(|graph| {
        let items = graph.items::<u32, u32>("items");
        graph.initialize(|env| env.get(items, 3).copied()).unwrap_err()
    });
    assert_eq!(error.to_string(), "step the environment() got item items[3], which is not there");
}

#[test]
fn a_run_after_a_failed_start_says_why_it_does_not_begin() {
    each(|name, scheduler| {
        let errors = graph(|graph| {
            let tags = graph.tags::<u32>("tags");
            graph.prescribe(tags, "nothing", |_, _| Ok(()));
            let start = graph.initialize(|env| env.put_tag(tags, 0).and_then(|()| parse_nothing()));
            let run = || graph.run(scheduler).map(|_| ());
            [start, run(), run()].map(|end| end.unwrap_err().to_string())
        });
        let why = "step the environment() failed: cannot parse integer from empty string";
        assert_eq!(errors, [why; 3], "{name}");
    });
}

#[test]
#[should_panic = "the scheduler has returned while 1 steps were ready"]
fn a_scheduler_that_ends_early_is_noticed() {
    struct Early;
    impl Scheduler for Early {
        fn run<'g>(&self, job: &GraphJob<'g>) {
            let mut worker = job.worker();
            job.start().into_iter().for_each(|ready| worker.run(ready));
        }
    }
    graph(|graph| {
        let tags = graph.tags::<u32>("tags");
        graph.prescribe(tags, "next", move |n, step| if n == 0 { step.put_tag(tags, 1) } else { Ok(()) });
        graph.initialize(|env| env.put_tag(tags, 0)).unwrap();
        let _ = graph.run(&Early);
    });
}

#[test]
fn a_main_that_returns_the_error_ends_with_a_failure() {
    let end = |work: &dyn Fn(&StepContext<'_>) -> StepResult, cancels: bool| {
        graph(|graph| {
            graph.initialize(work)?;
            if cancels {
                graph.canceller().cancel();
            }
            graph.run(&OneByOne).map(|_| ())
        })
    };
    let waits = |env: &StepContext<'_>| {
        let item = env.item::<u32>("never");
        env.fork(move |step| step.get(item, ()).map(|_| ()))
    };
    let fails = |env: &StepContext<'_>| env.fork(|_| panic!("a step fails"));
    assert_eq!(end(&|_| Ok(()), false).report(), ExitCode::SUCCESS);
    assert!(matches!(end(&waits, false), Err(GraphError::Stuck(_))));
    assert_eq!(end(&waits, false).report(), ExitCode::FAILURE);
    assert_eq!(end(&fails, false).report(), ExitCode::FAILURE);
    assert_eq!(end(&|_| Ok(()), true).report(), ExitCode::FAILURE);
}

#[test]
fn a_million_stuck_steps_are_counted() {
    const STEPS: u32 = if cfg!(miri) { 100 } else { 1_000_000 };
    let error = graph(|graph| {
        let tags = graph.tags("tags");
        let items = graph.items_in("items", Items::<_, u8>::dense(STEPS));
        graph.prescribe(tags, "wait", move |n: u32, step| step.get(items, n).map(|_| ()));
        put_tags(graph, tags, STEPS);
        graph.run(&OneByOne).map(|_| ()).unwrap_err()
    });
    let GraphError::Stuck(stuck) = &error else { panic!("{error}") };
    assert_eq!(stuck.items.len(), STEPS as usize);
    assert_eq!(error.to_string().lines().count(), 22);
}

/// An async step that names a wrong key when its frame is freed.
struct PutsInDrop<'g>(AsyncStep<'g>, ItemCol<'g, u32, u32>);

impl Future for PutsInDrop<'_> {
    type Output = StepResult;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<StepResult> {
        Poll::Ready(Ok(()))
    }
}

impl Drop for PutsInDrop<'_> {
    fn drop(&mut self) {
        let _ = self.0.put(self.1, 7, 7);
    }
}

#[test]
fn a_fault_in_a_destructor_of_an_async_step_names_the_tag() {
    report_everywhere(
        "step late(\"a long tag in a box\") named item items[7], \
         which is outside of the extent of the collection",
        |graph| {
            let tags = graph.tags::<String>("tags");
            let items = graph.items_in("items", Items::dense(7));
            graph.prescribe_async(tags, "late", move |_, step| PutsInDrop(step, items));
            graph.initialize(|env| env.put_tag(tags, "a long tag in a box".into())).unwrap();
        },
    );
}

/// A key that fits in a word, but is not made again from it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct OneWay(u64);

impl ItemKey for OneWay {
    const BITS: Option<u32> = Some(8);

    fn to_word(&self) -> u64 {
        self.0
    }
}

#[test]
#[should_panic = "an `ItemKey` with `BITS` makes each key again from its word"]
fn a_tag_without_a_way_back_from_its_word_is_told() {
    graph(|graph| {
        let tags = graph.tags("tags");
        graph.prescribe(tags, "run", |_: OneWay, _| Ok(()));
        graph.initialize(|env| env.put_tag(tags, OneWay(7))).unwrap();
        let _ = graph.run(&OneByOne);
    });
}

#[test]
#[should_panic = "the word of OneWay(256) has more than 8 bits"]
fn a_part_of_a_key_with_too_wide_a_word_is_told() {
    (OneWay(255), 0_u8).to_word();
    (0_u8, OneWay(256)).to_word();
}

/// A tag that cannot be printed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Unprintable(u32);

impl ItemKey for Unprintable {}

impl fmt::Debug for Unprintable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("the tag {} cannot be printed", self.0)
    }
}

#[test]
fn a_key_that_cannot_be_printed_is_told_as_such() {
    let cannot = "(its `Debug` panicked)";
    let failed = format!("step fail({cannot}) failed: cannot parse integer from empty string");
    report_everywhere(&failed, |graph| {
        let tags = graph.tags("tags");
        graph.prescribe(
            tags,
            "fail",
            |tag: Unprintable, _| {
                if tag.0 == 7 { parse_nothing() } else { Ok(()) }
            },
        );
        let end = if cfg!(miri) { 8 } else { 40 };
        graph.initialize(|env| (0..end).try_for_each(|n| env.put_tag(tags, Unprintable(n)))).unwrap();
    });
    let twice = format!("item items[{cannot}] was put twice: by step put(1) and by step put(2)");
    report_everywhere(&twice, |graph| {
        let (tags, items) = (graph.tags::<u32>("tags"), graph.items("items"));
        graph.prescribe(tags, "put", move |n, step| step.put(items, Unprintable(0), n));
        graph.initialize(|env| env.put_tag(tags, 1).and_then(|()| env.put_tag(tags, 2))).unwrap();
    });
    let stuck =
        format!("1 steps wait for 1 items that no step has put\n  item items[{cannot}]: step get({cannot})");
    report_everywhere(&stuck, |graph| {
        let (tags, items) = (graph.tags("tags"), graph.items::<Unprintable, u32>("items"));
        graph
            .prescribe(tags, "get", move |n: Unprintable, step| step.get(items, n).map(|_| ()))
            .makes(items, Unprintable::clone);
        graph.initialize(|env| env.put_tag(tags, Unprintable(1))).unwrap();
    });
    let panicked = format!("step begin({cannot}) panicked: no future");
    report_everywhere(&panicked, |graph| {
        let tags = graph.tags("tags");
        graph.prescribe_async(tags, "begin", |_: Unprintable, _| -> std::future::Ready<StepResult> {
            panic!("no future")
        });
        graph.initialize(|env| env.put_tag(tags, Unprintable(1))).unwrap();
    });
}

/// A tag with a `Hash` that panics for the number 7.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Unhashable(u32);

impl ItemKey for Unhashable {}

impl Hash for Unhashable {
    fn hash<H: Hasher>(&self, to: &mut H) {
        assert!(self.0 != 7, "the tag 7 has no hash");
        self.0.hash(to);
    }
}

#[test]
fn a_panic_outside_of_the_steps_ends_the_run() {
    each(|name, scheduler| {
        let end = catch_unwind(AssertUnwindSafe(|| {
            graph(|graph| {
                let tags = graph.tags("tags");
                // Before each step, the worker asks whether the tag was cancelled.
                graph.prescribe(tags, "run", |_: Unhashable, _| Ok(())).cancel_tag(Unhashable(50));
                graph.initialize(|env| (0..40).try_for_each(|n| env.put_tag(tags, Unhashable(n)))).unwrap();
                let _ = graph.run(scheduler);
            });
        }));
        assert!(end.is_err(), "{name}");
    });
}

#[test]
fn a_panic_of_a_priority_ends_the_run() {
    for workers in [1, 2, 4] {
        let end = catch_unwind(|| {
            graph(|graph| {
                let tags = graph.tags::<u32>("tags");
                graph
                    .prescribe(tags, "next", move |n, step| {
                        if n < 100 {
                            step.put_tag(tags, n + 1).and_then(|()| step.put_tag(tags, 200))
                        } else {
                            Ok(())
                        }
                    })
                    .priority(|&n| if n == 50 { panic!("50 has no priority") } else { 0 });
                graph.initialize(|env| env.put_tag(tags, 0)).unwrap();
                graph.run(&TaskPool::priority(workers)).is_err()
            })
        });
        assert!(end.unwrap_or(true), "{workers} workers");
    }
}
