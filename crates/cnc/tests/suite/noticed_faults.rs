//! Faults that the peers of this crate have are put into a graph here. What the other tests look at
//! notices each of them.

use selvedge_cnc::schedulers::{GraphJob, OneByOne, Scheduler, TaskPool};
use selvedge_cnc::{GraphError, Items, graph};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A sum along a line of steps. All but one of them miss their item at first.
fn line(scheduler: &dyn Scheduler) -> Result<Option<u64>, GraphError> {
    graph(|graph| {
        let tags = graph.tags::<u32>("tags");
        let items = graph.items_in("items", Items::dense(31_u32));
        graph.prescribe(tags, "add", move |n, step| {
            step.put(items, n + 1, step.get(items, n)? + u64::from(n))
        });
        graph.initialize(|env| {
            (0..30).rev().try_for_each(|n| env.put_tag(tags, n))?;
            env.put(items, 0, 0)
        })?;
        Ok(graph.run(scheduler)?.finalize(|view| view.get(items, 30).copied()))
    })
}

/// Loses the step with this number, which a put had woken.
struct LosesAStep(AtomicUsize, usize);

impl Scheduler for LosesAStep {
    fn run<'g>(&self, job: &GraphJob<'g>) {
        let mut worker = job.worker();
        let mut ready = job.start().into_iter();
        while let Some(next) = ready.next().or_else(|| worker.oldest()) {
            if self.0.fetch_add(1, Relaxed) == self.1 {
                drop(next);
            } else {
                worker.run(next);
            }
        }
    }
}

#[test]
fn a_wake_up_that_is_lost() {
    assert_eq!(line(&OneByOne).unwrap(), Some(435));
    for lost in [0, 29, 30, 45, 58] {
        let end = catch_unwind(AssertUnwindSafe(|| line(&LosesAStep(AtomicUsize::new(0), lost))));
        assert!(!matches!(end, Ok(Ok(_))), "{lost}: a lost step is noticed");
    }
}

/// Ends when its queue is empty for the first time, as the workers of a peer do.
struct EndsEarly;

impl Scheduler for EndsEarly {
    fn run<'g>(&self, job: &GraphJob<'g>) {
        let mut worker = job.worker();
        job.start().into_iter().for_each(|ready| worker.run(ready));
    }
}

#[test]
fn a_worker_that_ends_early() {
    let end = catch_unwind(AssertUnwindSafe(|| line(&EndsEarly)));
    assert!(!matches!(end, Ok(Ok(_))));
}

/// A value that is equal to all others, so that a second put of it is swallowed.
#[derive(Clone, Copy)]
struct Anything(u32);

impl PartialEq for Anything {
    fn eq(&self, _: &Anything) -> bool {
        true
    }
}

#[test]
fn a_second_put_that_is_swallowed() {
    let results: Vec<_> = (0..20)
        .map(|seed| {
            graph(|graph| {
                let tags = graph.tags::<u32>("tags");
                let items = graph.items_in("items", Items::<u32, Anything>::hashed().equal_allowed());
                graph.prescribe(tags, "put", move |n, step| step.put(items, 0, Anything(n)));
                graph.initialize(|env| (0..4).try_for_each(|n| env.put_tag(tags, n))).unwrap();
                graph.run(&TaskPool::fuzz(1, seed)).unwrap().finalize(|view| view.get(items, 0).map(|x| x.0))
            })
        })
        .collect();
    assert!(results.iter().any(|result| *result != results[0]), "seeds show that the first put has won");
}
