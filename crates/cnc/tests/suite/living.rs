//! An environment that puts, gets and rests while its graph runs.

use crate::schedulers::each;
use selvedge_cnc::schedulers::{Affine, GraphJob, OneByOne, Scheduler, Stealing, TaskPool, Watchdog};
use selvedge_cnc::{FaultCause, Graph, GraphError, Items, StepResult, TagCol, graph};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

const USERS: u64 = 3;
const ROUNDS: u64 = if cfg!(miri) { 2 } else { 4 };

/// A user puts each number after the answer to the one before, with another user's items.
fn conversation(scheduler: &dyn Scheduler) -> BTreeMap<(u64, u64), u64> {
    graph(|graph| {
        let asked = graph.tags::<(u64, u64)>("asked");
        let questions = graph.items::<(u64, u64), u64>("questions");
        let answers = graph.items::<(u64, u64), u64>("answers");
        graph.prescribe(asked, "answer", move |(user, round), step| {
            let mine = *step.get(questions, (user, round))?;
            // The neighbour's question may come later.
            let other = *step.get(questions, ((user + 1) % USERS, round))?;
            step.put(answers, (user, round), 3 * mine + other)
        });
        let live = graph.live();
        thread::scope(|scope| {
            for user in 0..USERS {
                let live = live.clone();
                scope.spawn(move || -> StepResult {
                    let mut value = user;
                    for round in 0..ROUNDS {
                        live.puts(|env| {
                            env.put_tag(asked, (user, round))?;
                            env.put(questions, (user, round), value)
                        })?;
                        value = live.get(answers, (user, round)).wait_blocking()?;
                    }
                    Ok(())
                });
            }
            drop(live);
            let finished = graph.run(scheduler).unwrap_or_else(|error| panic!("{error}"));
            finished.finalize(|view| view.iter(answers).map(|(key, value)| (key, *value)).collect())
        })
    })
}

#[test]
fn users_and_steps_answer_each_other_under_every_scheduler() {
    let expected = conversation(&OneByOne);
    assert_eq!(expected.len() as u64, USERS * ROUNDS);
    assert_eq!(expected[&(0, 0)], 1);
    each(|name, scheduler| assert_eq!(conversation(scheduler), expected, "{name}"));
}

#[test]
fn a_graph_at_rest_tells_which_steps_wait_under_every_scheduler() {
    let program = |scheduler: &dyn Scheduler| {
        graph(|graph| {
            let tags = graph.tags::<u32>("tags");
            let items = graph.items::<u32, u32>("items");
            graph.prescribe(tags, "next", move |n, step| {
                let before = *step.get(items, n)?;
                step.put(items, n + 1, before + 1)
            });
            let live = graph.live();
            thread::scope(|scope| {
                let user = scope.spawn(move || -> StepResult<(String, bool)> {
                    live.puts(|env| [4, 2, 3].into_iter().try_for_each(|n| env.putt(tags, n)))?;
                    let stuck = live.wait_for_rest_blocking()?.expect("no item was put").to_string();
                    live.put(items, 2, 0)?;
                    Ok((stuck, live.wait_for_rest_blocking()?.is_none()))
                });
                let last = graph.run(scheduler).unwrap().finalize(|view| view.get(items, 5).copied());
                (user.join().unwrap().unwrap(), last)
            })
        })
    };
    let expected = program(&OneByOne);
    assert!(expected.0.0.contains("3 steps wait for 3 items"), "{expected:?}");
    assert_eq!((expected.0.1, expected.1), (true, Some(3)));
    each(|name, scheduler| assert_eq!(program(scheduler), expected, "{name}"));
}

/// The tags of steps without end, and those of the step that ends them.
fn endless<'g>(graph: &'g Graph<'g, '_>, stop: &'g AtomicBool) -> (TagCol<'g, u32>, TagCol<'g, u32>) {
    let (chain, ends) = (graph.tags::<u32>("chain"), graph.tags::<u32>("ends"));
    graph.prescribe(chain, "go on", move |n, step| {
        if stop.load(Ordering::Relaxed) { Ok(()) } else { step.put_tag(chain, n.wrapping_add(1)) }
    });
    graph.prescribe(ends, "end", |_, _| {
        stop.store(true, Ordering::Relaxed);
        Ok(())
    });
    (chain, ends)
}

#[test]
fn steps_of_the_environment_begin_while_others_run_without_end() {
    let schedulers: [&dyn Scheduler; 4] =
        [&OneByOne, &Stealing::new(1), &Stealing::new(2), &TaskPool::lifo(2)];
    for scheduler in schedulers {
        let stop = &AtomicBool::new(false);
        graph(|graph| {
            let (chain, ends) = endless(graph, stop);
            graph.initialize(|env| env.put_tag(chain, 0)).unwrap();
            let live = graph.live();
            thread::scope(|scope| {
                scope.spawn(move || live.put_tag(ends, 0).unwrap());
                graph.run(scheduler).unwrap();
            });
        });
    }
}

/// A scheduler before which the living environment puts.
struct After<'a, S: ?Sized, F> {
    put: F,
    scheduler: &'a S,
}

impl<S: Scheduler + ?Sized, F: Fn()> Scheduler for After<'_, S, F> {
    fn run<'g>(&self, job: &GraphJob<'g>) {
        (self.put)();
        self.scheduler.run(job);
    }
}

#[test]
fn steps_of_the_environment_begin_though_a_scheduler_starts_with_endless_ones() {
    let schedulers: [&dyn Scheduler; 5] =
        [&OneByOne, &Stealing::new(1), &Stealing::new(2), &TaskPool::lifo(1), &TaskPool::fifo(1)];
    // The endless step is the environment's of before the run, or the living one's.
    for (scheduler, lives) in
        schedulers.into_iter().flat_map(|scheduler| [(scheduler, false), (scheduler, true)])
    {
        let stop = &AtomicBool::new(false);
        graph(|graph| {
            let (chain, ends) = endless(graph, stop);
            if !lives {
                graph.initialize(|env| env.put_tag(chain, 0)).unwrap();
            }
            let live = Cell::new(Some(graph.live()));
            let put = || {
                if let Some(live) = live.take() {
                    if lives {
                        live.put_tag(chain, 0).unwrap();
                    }
                    live.put_tag(ends, 0).unwrap();
                }
            };
            graph.run(&After { put, scheduler }).unwrap();
        });
    }
}

/// The schedulers with workers that stay, with this number of workers each.
fn staying(workers: usize) -> [(&'static str, Box<dyn Scheduler>); 7] {
    [
        ("stealing", Box::new(Stealing::new(workers))),
        ("lifo", Box::new(TaskPool::lifo(workers))),
        ("fifo", Box::new(TaskPool::fifo(workers))),
        ("fifo, spinning", Box::new(TaskPool::fifo(workers).spinning())),
        ("priority", Box::new(TaskPool::priority(workers))),
        ("fuzz", Box::new(TaskPool::fuzz(workers, 7))),
        ("affine", Box::new(Affine::new(workers))),
    ]
}

#[test]
fn workers_stay_while_the_graph_is_at_rest() {
    const TURNS: u32 = if cfg!(miri) { 3 } else { 20 };
    let workers: &[usize] = if cfg!(miri) { &[2] } else { &[1, 2, 4] };
    for &workers in workers {
        for (name, scheduler) in staying(workers) {
            let begun = Cell::new(0);
            let counted = After { put: || begun.set(begun.get() + 1), scheduler: &*scheduler };
            let (sum, runs) = graph(|graph| {
                let tags = graph.tags::<u32>("tags");
                let items = graph.items::<u32, u32>("items");
                graph.prescribe(tags, "next", move |n, step| {
                    let before = *step.get(items, n)?;
                    step.put(items, n + 1, before + n)
                });
                let live = graph.live();
                thread::scope(|scope| {
                    scope.spawn(move || {
                        live.put(items, 0, 0).unwrap();
                        for n in 0..TURNS {
                            live.put_tag(tags, n).unwrap();
                            assert_eq!(live.get(items, n + 1).wait_blocking().unwrap(), (0..=n).sum::<u32>());
                            // What the workers have counted is in the graph at its rest.
                            live.put_tag(tags, 100 + 2 * n).unwrap();
                            let stuck = live.wait_for_rest_blocking().unwrap().expect("a step waits");
                            assert_eq!(stuck.items.len() as u32, n + 1);
                        }
                        (0..TURNS).try_for_each(|n| live.put(items, 100 + 2 * n, n)).unwrap();
                    });
                    let end = graph.run(&counted).unwrap_or_else(|error| panic!("{name}: {error}"));
                    let next = end.statistics().steps[1].ended();
                    (end.finalize(|view| view.get(items, TURNS).copied()), next)
                })
            });
            assert_eq!((sum, runs), (Some((0..TURNS).sum()), u64::from(2 * TURNS)), "{name}, {workers}");
            // Without that, the scheduler begins again at each rest, with new OS threads.
            assert_eq!(begun.get(), 1, "{name}, {workers}");
        }
    }
}

#[test]
fn a_put_wakes_a_worker_while_another_one_is_in_a_long_step() {
    for (name, scheduler) in staying(2) {
        let (end_it, ended) = std::sync::mpsc::channel();
        let (begin, begun) = std::sync::mpsc::channel();
        let ended = &Mutex::new(ended);
        graph(|graph| {
            let (long, short) = (graph.tags::<u32>("long"), graph.tags::<u32>("short"));
            graph.prescribe(long, "long", move |_, _| {
                begin.send(())?;
                // Nothing else ends the step. The limit is for a scheduler that is wrong.
                let end = ended.lock().unwrap().recv_timeout(Duration::from_secs(60));
                assert!(end.is_ok(), "{name}: no worker has come");
                Ok(())
            });
            graph.prescribe(short, "short", move |_, _| Ok(end_it.send(())?));
            let live = graph.live();
            thread::scope(|scope| {
                scope.spawn(move || {
                    live.rest_blocking().unwrap();
                    live.put_tag(long, 0).unwrap();
                    begun.recv().unwrap();
                    live.put_tag(short, 0).unwrap();
                });
                graph.run(&*scheduler).unwrap_or_else(|error| panic!("{name}: {error}"));
            });
        });
    }
}

/// What users of a stopped run see: each of them gets an error and ends.
fn stopped(stop: impl Fn(&selvedge_cnc::Canceller, &AtomicBool) + Sync) -> Result<(), GraphError> {
    let fails = &AtomicBool::new(false);
    graph(|graph| {
        let tags = graph.tags::<u32>("tags");
        let items = graph.items::<u32, u32>("items");
        graph.prescribe(tags, "fail", move |n, step| {
            if n == 1 && fails.load(Ordering::Relaxed) {
                return Err(std::io::Error::other("failed").into());
            }
            step.put(items, n, n)
        });
        let (live, canceller) = (graph.live(), graph.canceller());
        let stop = &stop;
        thread::scope(|scope| {
            for _ in 0..2 {
                let live = live.clone();
                // The item is never put.
                scope.spawn(move || assert!(live.get(items, 100).wait_blocking().is_err()));
            }
            scope.spawn(move || {
                live.put_tag(tags, 0).unwrap();
                assert_eq!(live.get(items, 0).wait_blocking().unwrap(), 0);
                stop(&canceller, fails);
                // The put is refused, or its step fails.
                let _ = live.put_tag(tags, 1);
                assert!(live.get(items, 1).wait_blocking().is_err());
                assert!(live.is_cancelled());
                assert!(live.put(items, 7, 7).is_err() && live.wait_for_rest_blocking().is_err());
            });
            graph.run(&Stealing::new(2)).map(|_| ())
        })
    })
}

#[test]
fn a_stopped_run_ends_with_open_handles_and_gets() {
    let end = stopped(|canceller, _| canceller.cancel());
    assert!(matches!(end, Err(GraphError::Cancelled)), "{end:?}");
    let end = stopped(|_, fails| fails.store(true, Ordering::Relaxed));
    let Err(GraphError::Failed(faults)) = end else { panic!("a step has failed: {end:?}") };
    assert_eq!((faults[0].step(), faults[0].tag()), ("fail", "1"));
}

#[test]
fn a_get_that_was_given_up_is_not_stuck_and_one_that_fails_ends() {
    graph(|graph| {
        graph.finish_after_fault();
        let kept = graph.items::<u32, u32>("kept");
        let small = graph.items_in("small", Items::<u32, u32>::dense(2));
        let live = graph.live();
        thread::scope(|scope| {
            scope.spawn(move || {
                drop(live.get(kept, 1));
                let outside = live.get(small, 2);
                assert!(outside.wait_blocking().is_err());
            });
            let Err(GraphError::Failed(faults)) = graph.run(&Stealing::new(2)) else { panic!("a get fails") };
            assert_eq!(faults.len(), 1);
            assert!(matches!(faults[0].why(), FaultCause::Outside { .. }));
        });
    });
    graph(|graph| {
        let kept = graph.items::<u32, u32>("kept");
        let live = graph.live();
        thread::scope(|scope| {
            scope.spawn(move || drop(live.get(kept, 1)));
            assert!(graph.run(&Stealing::new(2)).is_ok());
        });
    });
}

#[test]
fn a_get_that_was_given_up_takes_no_count() {
    each(|name, scheduler| {
        let got = graph(|graph| {
            let counted = graph.items_in("counted", Items::<u32, u32>::hashed().counted(|_| Some(1)));
            let (tags, sums) = (graph.tags::<u32>("tags"), graph.items::<u32, u32>("sums"));
            graph.prescribe(tags, "get", move |n, step| step.put(sums, n, *step.get(counted, n)?));
            let live = graph.live();
            thread::scope(|scope| {
                scope.spawn(move || {
                    let given_up = live.get(counted, 1);
                    live.rest_blocking().unwrap();
                    drop(given_up);
                    live.put_tag(tags, 1).unwrap();
                    live.rest_blocking().unwrap();
                    live.put(counted, 1, 7).unwrap();
                });
                let finished = graph.run(scheduler).unwrap_or_else(|error| panic!("{name}: {error}"));
                finished.finalize(|view| view.get(sums, 1).copied())
            })
        });
        assert_eq!(got, Some(7), "{name}");
    });
}

#[test]
fn a_second_put_by_the_environment_is_a_fault() {
    graph(|graph| {
        let items = graph.items::<u32, u32>("items");
        let live = graph.live();
        thread::scope(|scope| {
            scope.spawn(move || {
                live.put(items, 1, 1).unwrap();
                assert!(live.put(items, 1, 2).is_err());
            });
            let Err(GraphError::Failed(faults)) = graph.run(&OneByOne) else { panic!("two puts") };
            let FaultCause::DoublePut { collection, key, .. } = faults[0].why() else { panic!("{faults:?}") };
            assert_eq!((collection.as_str(), key.as_str()), ("items", "1"));
        });
    });
}

#[test]
fn a_graph_has_one_living_environment_after_the_other() {
    let sums = graph(|graph| {
        let (tags, items) = (graph.tags::<u32>("tags"), graph.items::<u32, u32>("items"));
        graph.prescribe(tags, "copy", move |n, step| step.put(items, n, n));
        [1, 2].map(|n| {
            let live = graph.live();
            thread::scope(|scope| {
                // It may come before the run has begun, and waits then.
                scope.spawn(move || live.put_tag(tags, n).unwrap());
                let finished = graph.run(&TaskPool::fifo(2)).unwrap();
                finished.finalize(|view| view.iter(items).map(|(n, _)| n).sum::<u32>())
            })
        })
    });
    assert_eq!(sums, [1, 3]);
}

#[test]
#[should_panic = "puts with `initialize` between its runs"]
fn the_graphs_own_thread_does_not_wait_for_its_run() {
    graph(|graph| {
        let tags = graph.tags::<u32>("tags");
        let _ = graph.live().put_tag(tags, 1);
    });
}

#[test]
fn a_future_of_an_item_is_polled_by_any_executor() {
    graph(|graph| {
        let (tags, items) = (graph.tags::<u32>("tags"), graph.items::<u32, u32>("items"));
        graph.prescribe(tags, "copy", move |n, step| step.put(items, n, n + 1));
        let live = graph.live();
        thread::scope(|scope| {
            scope.spawn(move || {
                let sum = async {
                    live.put_tag(tags, 1)?;
                    let one = live.get(items, 1);
                    live.put_tag(tags, 2)?;
                    StepResult::Ok(one.await? + live.get(items, 2).await?)
                };
                let (mut sum, mut context) = (pin!(sum), Context::from_waker(Waker::noop()));
                let sum = loop {
                    match sum.as_mut().poll(&mut context) {
                        Poll::Ready(sum) => break sum,
                        Poll::Pending => thread::yield_now(),
                    }
                };
                assert_eq!(sum.unwrap(), 5);
            });
            graph.run(&Stealing::new(2)).unwrap();
        });
    });
}

#[test]
fn a_watchdog_watches_a_graph_at_rest() {
    let (tell, hear) = std::sync::mpsc::channel();
    graph(|graph| {
        let (tags, items) = (graph.tags::<u32>("tags"), graph.items::<u32, u32>("items"));
        graph.prescribe(tags, "get", move |n, step| step.get(items, n).map(|_| ()));
        let live = graph.live();
        let watched = Watchdog::new(Stealing::new(2), Duration::from_millis(5), |stalled| {
            // On a slow machine the watchdog also tells of the time before the step waits, and of
            // the time after the item has been put, when the environment hears no more.
            drop(tell.send(stalled.to_string()));
        });
        thread::scope(|scope| {
            scope.spawn(move || {
                live.put_tag(tags, 7).unwrap();
                while !hear.recv().unwrap().contains("items[7]") {}
                live.put(items, 7, 7).unwrap();
            });
            graph.run(&watched).unwrap();
        });
    });
}
