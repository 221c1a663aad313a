//! Counts of more gets than 65,535.

use selvedge_cnc::schedulers::{Affine, OneByOne, Scheduler, Stealing, TaskPool};
use selvedge_cnc::{FaultCause, GraphError, Items, graph};

/// The gets of a step, and the steps, so that all gets are a few more than fit in 16 bits. The one
/// test that Miri runs needs a few gets only.
const GETS: u32 = if cfg!(miri) { 10 } else { 1_000 };
const STEPS: u32 = 66;

fn each(mut see: impl FnMut(&dyn Scheduler, Items<'static, u32, String>)) {
    let schedulers: [&dyn Scheduler; 4] =
        [&OneByOne, &Stealing::new(2), &TaskPool::fuzz(2, 7), &Affine::new(4)];
    let kinds: [fn() -> Items<'static, u32, String>; 4] =
        [|| Items::dense(3), || Items::paged(3), Items::hashed, Items::streamed];
    for scheduler in schedulers {
        kinds.into_iter().for_each(|kind| see(scheduler, kind()));
    }
}

/// Runs steps with gets of an item with a count, and tells how often the item was got too often or
/// too seldom, and which step is told as its maker.
fn run(scheduler: &dyn Scheduler, items: Items<'_, u32, String>, count: u32, steps: u32) -> Vec<String> {
    graph(|graph| {
        let (makes, tags) = (graph.tags::<u32>("makes"), graph.tags::<u32>("tags"));
        let items = graph.items_in("items", items.counted(move |_| Some(count)));
        graph.prescribe(makes, "make", move |n, step| step.put(items, 1, format!("item {n}")));
        graph.prescribe(tags, "get", move |_, step| {
            (0..GETS).try_for_each(|_| step.get(items, 1).map(|text| assert_eq!(text, "item 9")))
        });
        graph.prescribe_async(tags, "get", move |_, step| async move {
            for _ in 0..GETS {
                assert_eq!(step.get(items, 1).await?, "item 9");
            }
            Ok(())
        });
        graph.finish_after_fault();
        graph
            .initialize(|env| {
                (0..steps / 2).try_for_each(|n| env.put_tag(tags, n))?;
                env.put_tag(makes, 9)
            })
            .unwrap();
        match graph.run(scheduler) {
            Ok(end) => {
                assert_eq!(end.statistics().items[0].there, 0);
                Vec::new()
            }
            Err(GraphError::Failed(faults)) => faults
                .iter()
                .map(|fault| match fault.why() {
                    FaultCause::OverGet { key, .. } => format!("{key} too often"),
                    FaultCause::LeftOver { key, gets, .. } => {
                        format!("{key} of {}({}) {gets} left", fault.step(), fault.tag())
                    }
                    why => panic!("{why:?}"),
                })
                .collect(),
            Err(error) => panic!("{error}"),
        }
    })
}

#[test]
#[cfg_attr(miri, ignore = "takes a minute for what loom checks")]
fn an_item_goes_with_its_last_get() {
    each(|scheduler, items| {
        assert_eq!(run(scheduler, items, GETS * STEPS, STEPS), [""; 0]);
    });
}

#[test]
#[cfg_attr(miri, ignore = "takes a minute for what loom checks")]
fn a_get_too_many_is_told() {
    each(|scheduler, items| {
        assert_eq!(run(scheduler, items, GETS * STEPS - 1, STEPS), ["1 too often"]);
    });
}

#[test]
fn gets_that_are_left_are_told() {
    each(|scheduler, items| {
        let left = u32::MAX - 2 * GETS;
        assert_eq!(run(scheduler, items, u32::MAX, 2), [format!("1 of make(..) {left} left")]);
    });
}

#[test]
#[cfg_attr(miri, ignore = "takes a minute for what loom checks")]
fn a_take_waits_for_the_other_gets() {
    each(|scheduler, items| {
        let taken = graph(|graph| {
            let (tags, takes) = (graph.tags::<u32>("tags"), graph.tags::<()>("takes"));
            let items = graph.items_in("items", items.counted(|_| Some(GETS * STEPS + 1)));
            let taken = graph.item("taken");
            graph.prescribe(takes, "take", move |(), step| {
                let mut text: String = step.take(items, 2)?;
                text.push('!');
                step.put(taken, (), text)
            });
            graph.prescribe(tags, "get", move |_, step| {
                (0..GETS).try_for_each(|_| step.get(items, 2).map(|_| ()))
            });
            graph
                .initialize(|env| {
                    env.put_tag(takes, ())?;
                    (0..STEPS).try_for_each(|n| env.put_tag(tags, n))?;
                    env.put(items, 2, "text".to_owned())
                })
                .unwrap();
            let end = graph.run(scheduler).unwrap_or_else(|error| panic!("{error}"));
            end.finalize(|view| view.get(taken, ()).cloned())
        });
        assert_eq!(taken.as_deref(), Some("text!"));
    });
}
