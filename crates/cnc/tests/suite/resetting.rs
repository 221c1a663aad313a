//! Graphs that are reset and run again.

use crate::schedulers::each;
use selvedge_cnc::schedulers::{OneByOne, Scheduler, Stealing};
use selvedge_cnc::{AsyncStep, GraphError, Items, graph};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

const ITEMS: u32 = if cfg!(miri) { 4 } else { 40 };
const ROUNDS: u64 = if cfg!(miri) { 2 } else { 3 };

fn kinds() -> [fn() -> Items<'static, u32, String>; 4] {
    [|| Items::dense(2 * ITEMS), || Items::paged(2 * ITEMS), Items::hashed, Items::streamed]
}

/// The texts of each round: of one graph that is reset, or of a graph for each round.
fn texts(scheduler: &dyn Scheduler, kind: fn() -> Items<'static, u32, String>, resets: bool) -> Vec<String> {
    let rounds = |rounds: std::ops::Range<u64>| {
        graph(|graph| {
            // Each third item has gone at the end of a run.
            let items = graph.items_in("items", kind().counted(|&n| (n % 3 == 0).then_some(2)));
            let seen = graph.memoised_tags::<(u32, String)>("seen");
            let ends = graph.items::<(u32, String), usize>("ends");
            graph.prescribe(graph.on_put(items), "grow", move |n, step| {
                let text = step.get(items, n)?.clone();
                step.put_tag(seen, (n % 5, text.clone()))?;
                if n < ITEMS { step.put(items, n + ITEMS, text + "'") } else { Ok(()) }
            });
            graph.prescribe_async(graph.on_put(items), "look", move |n, step| async move {
                let length = step.get(items, n).await?.len();
                step.put(ends, (n, String::from("length")), length)
            });
            graph.prescribe(seen, "end", move |tag, step| step.put(ends, tag, 0));
            rounds
                .map(|round| {
                    let text = |n| format!("{round}: {}", u64::from(n / 10) * round);
                    graph.initialize(|env| (0..ITEMS).try_for_each(|n| env.put(items, n, text(n)))).unwrap();
                    let end = graph.run(scheduler).unwrap_or_else(|error| panic!("{error}"));
                    let text = end.finalize(|view| {
                        let items: BTreeMap<_, _> = view.iter(items).collect();
                        format!(
                            "{items:?} {:?} {:?}",
                            view.iter(ends).collect::<Vec<_>>(),
                            end.statistics().items[0]
                        )
                    });
                    if resets {
                        graph.reset();
                    }
                    text
                })
                .collect::<Vec<_>>()
        })
    };
    if resets { rounds(0..ROUNDS) } else { (0..ROUNDS).flat_map(|round| rounds(round..round + 1)).collect() }
}

#[test]
fn a_graph_that_was_reset_runs_as_a_new_one_under_every_scheduler() {
    for kind in kinds() {
        let expected = texts(&OneByOne, kind, false);
        each(|name, scheduler| assert_eq!(texts(scheduler, kind, true), expected, "{name}"));
    }
}

/// Each round ends in another way, and the last one well.
#[test]
fn a_graph_that_has_failed_runs_again_under_every_scheduler() {
    each(|name, scheduler| {
        graph(|graph| {
            let tags = graph.tags::<u32>("tags");
            let (items, asked) = (graph.items::<u32, u32>("items"), graph.items::<u32, u32>("asked"));
            let once = graph.items_in("once", Items::<u32, u32>::dense(9).counted(|_| Some(1)));
            let canceller = graph.canceller();
            let copy = graph.prescribe(tags, "copy", move |n, step| {
                match n {
                    5 => canceller.cancel(),
                    // A get too many, and a step that waits with a claim.
                    6 => drop((step.get(once, 1)?, step.get(asked, 9)?)),
                    _ => {}
                }
                step.put(items, n / 2, n)
            });
            graph.prescribe_async(tags, "ask", move |n, step| async move {
                let (n, _serial) = (*step.get(asked, n).await?, Arc::new(n));
                step.put(items, 100 + n, n)
            });
            let run = |tags_put: &[u32], asked_for: &[u32]| {
                graph.initialize(|env| {
                    env.put(once, 1, 1)?;
                    tags_put.iter().try_for_each(|&n| env.put_tag(tags, n))?;
                    asked_for.iter().try_for_each(|&n| env.put(asked, n, n))
                })?;
                graph.run(scheduler).map(drop)
            };
            let is_left = |error: &GraphError| error.to_string().contains("once");
            assert!(matches!(run(&[1], &[]), Err(GraphError::Stuck(_))), "{name}");
            graph.reset();
            assert!(matches!(run(&[2, 3], &[2, 3]), Err(GraphError::Failed(_))), "{name}");
            graph.reset();
            assert!(matches!(run(&[6], &[6]), Err(GraphError::Stuck(_))), "{name}");
            graph.reset();
            copy.cancel_tag(2);
            assert!(matches!(run(&[5], &[]), Err(GraphError::Cancelled)), "{name}");
            graph.reset();
            // Tags that no run has taken.
            graph.initialize(|env| (0..8).try_for_each(|n| env.put_tag(tags, n))).unwrap();
            graph.reset();
            assert_eq!(graph.statistics().steps.iter().map(|step| step.runs).sum::<u64>(), 0);
            assert!(graph.statistics().items.iter().all(|items| (items.put, items.there) == (0, 0)));
            let end = run(&[2, 4], &[2, 4]);
            assert!(end.as_ref().is_err_and(is_left), "{name}: one get of `once` is left");
            graph.initialize(|env| env.get(once, 1).map(drop)).unwrap();
            let end = graph.run(scheduler).unwrap_or_else(|error| panic!("{name}: {error}"));
            let found = end.finalize(|view| view.iter(items).map(|(key, n)| (key, *n)).collect::<Vec<_>>());
            assert_eq!(found, [(1, 2), (2, 4), (102, 2), (104, 4)], "{name}");
        });
    });
}

/// A value that counts its drops, and panics then if it is asked to.
struct Counted(Arc<AtomicU32>, bool);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
        assert!(!self.1, "dropped");
    }
}

#[test]
fn each_value_is_dropped_once_also_if_destructors_panic() {
    for kind in 0..4 {
        for panics in [false, true] {
            let drops = Arc::new(AtomicU32::new(0));
            graph(|graph| {
                let items = [Items::dense(ITEMS), Items::paged(ITEMS), Items::hashed(), Items::streamed()];
                let items = graph.items_in("items", items.into_iter().nth(kind).unwrap());
                for round in 1..4 {
                    let put = |n| Counted(drops.clone(), panics && n % 2 == 0);
                    graph.initialize(|env| (0..ITEMS).try_for_each(|n| env.put(items, n, put(n)))).unwrap();
                    graph.run(&OneByOne).unwrap();
                    let end = catch_unwind(AssertUnwindSafe(|| graph.reset()));
                    assert_eq!(end.is_err(), panics);
                    assert_eq!(drops.load(Relaxed), round * ITEMS);
                }
            });
            assert_eq!(drops.load(Relaxed), 3 * ITEMS);
        }
    }
}

#[test]
fn a_graph_in_use_is_not_reset() {
    let refused = |reset: &dyn Fn(), when: &str| {
        let text = *catch_unwind(AssertUnwindSafe(reset)).unwrap_err().downcast::<String>().unwrap();
        assert_eq!(text, format!("a graph cannot be reset {when}"));
    };
    graph(|graph| {
        let items = graph.items::<u32, String>("items");
        graph
            .initialize(|env| {
                env.put(items, 1, String::from("yarn"))?;
                let yarn = env.get(items, 1)?;
                let when = "within `initialize`, or after its scheduler has lost a worker";
                refused(&|| graph.reset(), when);
                assert_eq!(yarn, "yarn");
                Ok(())
            })
            .unwrap();
        let end = graph.run(&Stealing::new(2)).unwrap();
        end.finalize(|view| {
            let yarn = view.get(items, 1).unwrap();
            refused(&|| graph.reset(), "within `finalize`");
            assert_eq!(yarn, "yarn");
        });
        let live = graph.live();
        refused(&|| graph.reset(), "while a `LiveEnvironment` is open");
        drop(live);
        graph.reset();
        assert_eq!(end.finalize(|view| view.iter(items).count()), 0);
    });
    graph(|graph| {
        let tags = graph.tags::<u32>("tags");
        let kept: Arc<Mutex<Option<AsyncStep<'_>>>> = Arc::default();
        let keeper = kept.clone();
        graph.prescribe_async(tags, "keep", move |_, step| {
            *keeper.lock().unwrap() = Some(step);
            async { Ok(()) }
        });
        graph.initialize(|env| env.put_tag(tags, 1)).unwrap();
        graph.run(&OneByOne).unwrap();
        let reset = catch_unwind(AssertUnwindSafe(|| graph.reset()));
        let text = *reset.unwrap_err().downcast::<&str>().unwrap();
        assert_eq!(text, "a graph cannot be reset while the program keeps the handle of an async step");
        assert!(matches!(graph.run(&OneByOne), Err(GraphError::Cancelled)));
        drop(kept.lock().unwrap().take());
        graph.reset();
        graph.run(&OneByOne).unwrap();
    });
}
