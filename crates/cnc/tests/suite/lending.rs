//! Schedulers that lend the job, and schedulers that misuse what they have.

use selvedge_cnc::schedulers::{GraphJob, OneByOne, Scheduler};
use selvedge_cnc::{Graph, Items, graph};
use selvedge_core::round_robin;
use selvedge_direct::{direct, spawn, wait, yield_now};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Lends the job twice, and has a worker of the first loan run a step of the second one.
struct MixesLoans;

impl Scheduler for MixesLoans {
    fn run<'g>(&self, job: &GraphJob<'g>) {
        job.lend(|one| {
            let mut worker = one.worker();
            job.lend(|other| other.start().into_iter().for_each(|step| worker.run(step)));
        });
    }
}

#[test]
#[should_panic(expected = "a lent worker runs the steps of its own loan only")]
fn a_worker_refuses_the_step_of_another_loan() {
    graph(|graph| {
        let tags = graph.tags::<u32>("tags");
        graph.prescribe(tags, "none", |_, _| Ok(()));
        graph.initialize(|env| env.put_tag(tags, 1)).unwrap();
        let _ = graph.run(&MixesLoans);
    });
}

/// Runs the graph again while there is a worker.
struct RunsAgain<'g, 'env>(&'g Graph<'g, 'env>);

impl Scheduler for RunsAgain<'_, '_> {
    fn run<'j>(&self, job: &GraphJob<'j>) {
        let steps = job.start();
        let mut worker = job.worker();
        let again = catch_unwind(AssertUnwindSafe(|| self.0.run(&OneByOne).is_ok()));
        assert_eq!(
            *again.unwrap_err().downcast::<&str>().unwrap(),
            "a graph cannot be run within its own run"
        );
        steps.into_iter().for_each(|step| worker.run(step));
    }
}

#[test]
fn a_graph_is_not_run_within_its_own_run() {
    graph(|graph| {
        let tags = graph.tags::<u32>("tags");
        let items = graph.items::<u32, u32>("items");
        graph.prescribe(tags, "copy", move |n, step| step.put(items, n, n));
        let put = |n| graph.initialize(|env| env.put_tag(tags, n)).unwrap();
        put(1);
        graph.run(&RunsAgain(graph)).unwrap();
        put(2);
        let found = graph.run(&OneByOne).unwrap().finalize(|view| view.iter(items).count());
        assert_eq!(found, 2);
    });
}

/// Each ready step of the environment begins a direct-style thread. A thread runs what its steps
/// make ready.
struct DirectThreads;

impl Scheduler for DirectThreads {
    fn run<'g>(&self, job: &GraphJob<'g>) {
        job.lend(|job| {
            let main = direct(move || {
                let run = |first| {
                    let job = job.clone();
                    spawn(move || {
                        let mut worker = job.worker();
                        let mut next = Some(first);
                        while let Some(step) = next {
                            worker.run(step);
                            next = worker.newest();
                        }
                    })
                };
                let threads: Vec<_> = job.start().into_iter().map(run).collect();
                threads.into_iter().for_each(|thread| wait(thread).unwrap());
            });
            round_robin(main).unwrap();
        });
    }
}

/// Step `n` waits `n` times in direct style before each operation, so that polls of several steps
/// are under way on one OS thread and do not end in the order in which they began.
#[test]
#[cfg_attr(miri, ignore = "Miri has no stacks of its own to switch to")]
fn async_steps_that_wait_in_direct_style_keep_their_own_workers() {
    const STEPS: u32 = 6;
    let pause = |n: u32| (0..n).for_each(|_| yield_now());
    for order in [|n| n, |n| STEPS - 1 - n, |n| (n * 5 + 2) % STEPS] {
        let found = graph(|graph| {
            let tags = graph.tags::<u32>("tags");
            let once = Items::hashed().counted(|&(_, place): &(u32, u32)| (place == 0).then_some(1));
            let items = graph.items_in("items", once);
            graph.prescribe_async(tags, "wait", move |n, step| async move {
                pause(order(n));
                step.put(items, (n, 0), n)?;
                pause(n);
                // The next step's item: some steps wait for it, and then go on elsewhere.
                let next = *step.get(items, ((n + 1) % STEPS, 0)).await?;
                pause(order(n));
                step.put(items, (n, 1), next)
            });
            graph.initialize(|env| (0..STEPS).try_for_each(|n| env.put_tag(tags, n))).unwrap();
            let finished = graph.run(&DirectThreads).unwrap_or_else(|error| panic!("{error}"));
            finished.finalize(|view| view.iter(items).map(|((n, _), next)| (n, *next)).collect::<Vec<_>>())
        });
        assert_eq!(found, (0..STEPS).map(|n| (n, (n + 1) % STEPS)).collect::<Vec<_>>());
    }
}
