//! Destructors that panic keep nothing else from being dropped, and lose no count.

use crate::schedulers::each;
use selvedge_cnc::schedulers::OneByOne;
use selvedge_cnc::{FaultCause, GraphError, ItemKey, Items, graph};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Counts its drop, and panics in each third one.
struct Drops<'a>(&'a AtomicUsize);

impl Drop for Drops<'_> {
    fn drop(&mut self) {
        let number = self.0.fetch_add(1, Relaxed);
        assert!(!number.is_multiple_of(3) || std::thread::panicking(), "drop {number} panics");
    }
}

#[test]
fn every_item_and_every_stuck_step_is_dropped_at_the_end() {
    let drops = AtomicUsize::new(0);
    let end = catch_unwind(AssertUnwindSafe(|| {
        graph(|graph| {
            let tags = graph.tags::<u32>("tags");
            let missing = graph.items::<u32, u32>("missing");
            let dense = graph.items_in("dense", Items::dense(20_u32));
            let paged = graph.items_in("paged", Items::paged(20_u32));
            let hashed = graph.items::<String, _>("hashed");
            let drops = &drops;
            graph.prescribe_async(tags, "wait", move |n, step| {
                let held = Drops(drops);
                async move {
                    step.get(missing, n / 2).await?;
                    drop(held);
                    Ok(())
                }
            });
            graph
                .initialize(|env| {
                    (0..20).try_for_each(|n| {
                        env.put_tag(tags, n)?;
                        env.put(dense, n, Drops(drops))?;
                        env.put(paged, n, Drops(drops))?;
                        env.put(hashed, n.to_string(), Drops(drops))
                    })
                })
                .unwrap();
            assert!(matches!(graph.run(&OneByOne), Err(GraphError::Stuck(_))));
        });
    }));
    let panic = end.unwrap_err();
    assert_eq!(panic.downcast_ref::<String>().unwrap(), "drop 0 panics");
    assert_eq!(drops.into_inner(), 80);
}

/// A tag in a box, with a destructor that panics for each third one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Fragile(u32, bool);

impl ItemKey for Fragile {}

impl Drop for Fragile {
    fn drop(&mut self) {
        assert!(!self.1 || !self.0.is_multiple_of(3), "the tag {} breaks", self.0);
    }
}

#[test]
fn a_step_returns_its_counts_although_its_tag_panics() {
    each(|name, scheduler| {
        graph(|graph| {
            graph.finish_after_fault();
            let tags = graph.tags::<Fragile>("tags");
            let items = graph.items_in("items", Items::hashed().counted(|_| Some(2)));
            graph.prescribe(tags, "get", move |mut tag, step| {
                tag.1 = false;
                step.get(items, tag.0)?;
                step.get(items, tag.0 + 100).map(|_| ())
            });
            graph
                .initialize(|env| {
                    (0..9_u32).try_for_each(|n| {
                        env.put(items, n, n)?;
                        env.put(items, n + 100, n)?;
                        env.put_tag(tags, Fragile(n, false))?;
                        env.put_tag(tags, Fragile(n, true))
                    })
                })
                .unwrap();
            let Err(GraphError::Failed(faults)) = graph.run(scheduler) else { panic!("{name}") };
            assert!(faults.len() == 3, "{name}: {faults:?}");
            assert!(faults.iter().all(|fault| matches!(fault.why(), FaultCause::Panicked(_))), "{name}");
            assert_eq!(graph.statistics().items[0].there, 0, "{name}");
        });
    });
}

#[test]
fn an_environment_that_panics_returns_its_counts() {
    graph(|graph| {
        let items = graph.items_in("items", Items::hashed().counted(|_: &u32| Some(1)));
        let end = catch_unwind(AssertUnwindSafe(|| {
            let _ = graph.initialize(|env| -> selvedge_cnc::StepResult {
                env.put(items, 7, ())?;
                env.get(items, 7)?;
                panic!("the environment breaks");
            });
        }));
        assert!(end.is_err());
        assert!(graph.run(&OneByOne).is_ok());
        assert_eq!(graph.statistics().items[0].there, 0);
    });
}

#[test]
fn a_declared_take_waits_before_the_step_begins() {
    each(|name, scheduler| {
        let sum = graph(|graph| {
            let tags = graph.tags::<u32>("tags");
            let items = graph.items_in("items", Items::dense(40_u32).counted(|_| Some(3)));
            let noted = graph.items::<u32, u32>("noted");
            let changed = graph.items::<u32, u32>("changed");
            // The effect comes before the take, so that a step that ran again would put twice.
            graph.prescribe_depends(
                tags,
                "change",
                move |n, needs| needs.to_take(items, n),
                move |n, step| {
                    step.put(noted, n, n)?;
                    let value: u32 = step.take(items, n)?;
                    step.put(changed, n, value + 1)
                },
            );
            for name in ["one", "other"] {
                graph.prescribe(tags, name, move |n, step| {
                    step.get(items, n).map(|_| std::thread::yield_now())
                });
            }
            graph
                .initialize(|env| {
                    (0..40).try_for_each(|n| env.put_tag(tags, n))?;
                    (0..40).try_for_each(|n| env.put(items, n, n))
                })
                .unwrap();
            let finished = graph.run(scheduler).unwrap_or_else(|error| panic!("{name}: {error}"));
            finished.finalize(|view| view.iter(changed).map(|(_, n)| n).sum::<u32>())
        });
        assert_eq!(sum, 820, "{name}");
    });
}

#[test]
fn a_declared_step_takes_only_what_it_has_declared_to_take() {
    let error = graph(|graph| {
        let tags = graph.tags::<u32>("tags");
        let items = graph.items_in("items", Items::hashed().counted(|_: &u32| Some(1)));
        graph.prescribe_depends(
            tags,
            "sly",
            move |n, needs| needs.on(items, n),
            move |n, step| step.take(items, n).map(|_: u32| ()),
        );
        graph.initialize(|env| env.put(items, 0, 0).and_then(|()| env.put_tag(tags, 0))).unwrap();
        graph.run(&OneByOne).map(|_| ()).unwrap_err()
    });
    assert_eq!(error.to_string(), "step sly(0) got item items[0], which it has not declared");
}
