//! Tests that need several workers on the same threads.

use crate::naps::Naps;
use selvedge_core::{
    Cpu, Events, JoinError, JoinHandle, NoEvents, Trace, Unpark, detach, fork, sleep, spawn, spawn_local,
    yield_now,
};
use selvedge_sched::{Handle, WorkStealing, block_on, per_core, round_robin, work_stealing};
use selvedge_sync::{Event, Fifo, MVar};
use std::collections::HashSet;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

fn run<F>(workers: usize, main: F) -> F::Output
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    work_stealing(workers, |_| Ok(Naps::new()), main).unwrap()
}

/// A step that does not end before `count` of these steps run at once, on this number of workers.
async fn meet(count: usize, here: Arc<AtomicUsize>) {
    here.fetch_add(1, Ordering::SeqCst);
    while here.load(Ordering::SeqCst) < count {
        std::thread::yield_now();
    }
}

#[test]
fn long_steps_run_on_all_workers_at_once() {
    for workers in 2..=4 {
        for round in 0..if cfg!(miri) { 1 } else { 50 } {
            run(workers, async move {
                if round % 2 == 0 {
                    // Long enough for the others to fall asleep.
                    sleep(Duration::from_millis(1)).await;
                }
                let here = Arc::new(AtomicUsize::new(0));
                let all: Vec<_> = (0..workers).map(|_| spawn(meet(workers, here.clone()))).collect();
                for one in all {
                    one.await.unwrap();
                }
            });
        }
    }
}

/// Miri takes some milliseconds for a step, and the machine may be busy.
const LONGEST: Duration = Duration::from_secs(if cfg!(miri) { 60 } else { 10 });

/// A step that ends when `done` returns true, and panics if that takes too long.
fn last_until(done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < LONGEST, "other threads wait for the end of this step");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Spawns threads that wait for `start`, and returns when all of them wait.
async fn spawn_waiting<F>(start: &Arc<Event>, bodies: impl IntoIterator<Item = F>) -> Vec<JoinHandle<()>>
where
    F: FnOnce() + Send + 'static,
{
    let waiting = Arc::new(AtomicUsize::new(0));
    let mut handles = Vec::new();
    for body in bodies {
        let (start, here) = (start.clone(), waiting.clone());
        handles.push(spawn(async move {
            here.fetch_add(1, Ordering::SeqCst);
            start.wait().await;
            body();
        }));
        while waiting.load(Ordering::SeqCst) < handles.len() {
            yield_now().await;
        }
    }
    // The other worker falls asleep.
    sleep(Duration::from_millis(5)).await;
    handles
}

/// Wakes a thread and `others` behind it, all at once on one of two workers. The thread's step does
/// not end before all others have run.
fn wake_behind_a_long_step(others: usize) {
    run(2, async move {
        let (start, served) = (Arc::new(Event::new()), Arc::new(AtomicUsize::new(0)));
        let bodies = (0..=others).map(|i| {
            let served = served.clone();
            move || match i {
                0 => last_until(|| served.load(Ordering::SeqCst) == others),
                _ => drop(served.fetch_add(1, Ordering::SeqCst)),
            }
        });
        let threads = spawn_waiting(&start, bodies).await;
        start.set();
        for thread in threads {
            thread.await.unwrap();
        }
    });
}

#[test]
fn what_does_not_fit_the_ring_of_a_worker_in_a_long_step_is_served_by_another() {
    wake_behind_a_long_step(if cfg!(miri) { 100 } else { 3000 });
}

#[test]
fn what_a_worker_in_a_long_step_has_claimed_is_served_by_another() {
    for _ in 0..if cfg!(miri) { 1 } else { 10 } {
        wake_behind_a_long_step(40);
    }
}

/// A thread does `wake`, in one step with a wait for the end of `count` threads that `wake` makes
/// ready.
fn run_what_a_long_step_wakes<W: Fn() + Send + 'static>(
    count: usize,
    prepare: impl FnOnce(Arc<AtomicUsize>) -> (Vec<JoinHandle<()>>, W) + Send + 'static,
) {
    run(2, async move {
        let served = Arc::new(AtomicUsize::new(0));
        let (waiting, wake) = prepare(served.clone());
        // They begin to wait, and the other worker falls asleep.
        sleep(Duration::from_millis(5)).await;
        let long = spawn(async move {
            wake();
            last_until(|| served.load(Ordering::SeqCst) == count);
        });
        long.await.unwrap();
        for thread in waiting {
            thread.await.unwrap();
        }
    });
}

fn wait_for_values(count: usize, served: &Arc<AtomicUsize>) -> (Vec<JoinHandle<()>>, Arc<Vec<MVar<()>>>) {
    let values: Arc<Vec<MVar<()>>> = Arc::new((0..count).map(|_| MVar::empty()).collect());
    let wait = |i: usize| {
        let (values, served): (Arc<Vec<MVar<()>>>, _) = (values.clone(), served.clone());
        spawn(async move {
            values[i].take().await;
            served.fetch_add(1, Ordering::SeqCst);
        })
    };
    ((0..count).map(wait).collect(), values)
}

#[test]
fn a_thread_that_a_long_step_hands_a_value_runs_before_the_step_ends() {
    // More of them than the way out of the step has room for.
    for count in [1, 2, 200] {
        run_what_a_long_step_wakes(count, move |served| {
            let (waiting, values) = wait_for_values(count, &served);
            (waiting, move || values.iter().for_each(|value| assert!(value.try_put(()).is_ok())))
        });
    }
}

#[test]
fn a_thread_that_a_long_step_spawns_runs_before_the_step_ends() {
    for count in [1, 3, 200] {
        run_what_a_long_step_wakes(count, move |served| {
            let spawn_all = move || {
                for i in 0..count {
                    let served = served.clone();
                    let serve = async move { _ = served.fetch_add(1, Ordering::SeqCst) };
                    match i % 2 {
                        0 => drop(spawn(serve)),
                        _ => detach(serve),
                    }
                }
            };
            (Vec::new(), spawn_all)
        });
    }
}

#[test]
fn a_thread_that_a_long_step_wakes_by_its_waker_runs_before_the_step_ends() {
    run_what_a_long_step_wakes(1, |served| {
        let waker = Arc::new(Mutex::new(None::<Waker>));
        let here = waker.clone();
        let thread = spawn(async move {
            selvedge_core::park(|waker| *here.lock().unwrap() = Some(waker)).await;
            served.fetch_add(1, Ordering::SeqCst);
        });
        (vec![thread], move || waker.lock().unwrap().take().unwrap().wake())
    });
}

#[test]
fn a_thread_that_a_long_step_cancels_ends_before_the_step_does() {
    /// Counts its drop.
    struct Counts(Arc<AtomicUsize>);
    impl Drop for Counts {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    run_what_a_long_step_wakes(1, |served| {
        let counts = Counts(served);
        let thread = spawn(async move {
            let _counts = counts;
            std::future::pending::<()>().await;
        });
        (Vec::new(), move || thread.cancel())
    });
}

#[test]
fn a_joiner_of_a_thread_that_was_claimed_before_a_long_step_is_served_by_another_worker() {
    for _ in 0..if cfg!(miri) { 1 } else { 10 } {
        run(2, async {
            let (start, joined) = (Arc::new(Event::new()), Arc::new(AtomicBool::new(false)));
            // The end of the first thread makes main ready. The second thread is claimed with the
            // first.
            let bodies = (0..if cfg!(miri) { 12 } else { 40 }).map(|i| {
                let joined = joined.clone();
                move || {
                    if i == 1 {
                        last_until(|| joined.load(Ordering::SeqCst));
                    }
                }
            });
            let mut threads = spawn_waiting(&start, bodies).await.into_iter();
            start.set();
            threads.next().unwrap().await.unwrap();
            joined.store(true, Ordering::SeqCst);
            for thread in threads {
                thread.await.unwrap();
            }
        });
    }
}

#[test]
fn a_thread_that_another_has_let_go_first_is_taken_by_a_sleeper() {
    run(2, async {
        for _ in 0..if cfg!(miri) { 2 } else { 50 } {
            sleep(Duration::from_micros(500)).await;
            let here = Arc::new(AtomicUsize::new(0));
            // The new thread is woken alone and runs next. This thread is ready behind it, and can
            // be stolen.
            let other = spawn(meet(2, here.clone()));
            yield_now().await;
            meet(2, here).await;
            other.await.unwrap();
        }
    });
}

#[test]
fn a_joiner_of_a_thread_finds_that_those_claimed_with_it_have_ended_too() {
    run(1, async {
        let ended = Arc::new(AtomicUsize::new(0));
        let children: Vec<_> = (0..10)
            .map(|_| {
                let ended = ended.clone();
                spawn(async move { ended.fetch_add(1, Ordering::Relaxed) })
            })
            .collect();
        for child in children {
            child.await.unwrap();
            assert_eq!(ended.load(Ordering::Relaxed), 10);
        }
    });
}

#[test]
fn threads_that_join_again_and_again_starve_no_other() {
    run(1, async {
        let other = spawn(async {
            for _ in 0..if cfg!(miri) { 5 } else { 100 } {
                yield_now().await;
            }
        });
        let over = Arc::new(AtomicUsize::new(0));
        let joiners: Vec<_> = (0..3)
            .map(|_| {
                let over = over.clone();
                spawn(async move {
                    while over.load(Ordering::Relaxed) == 0 {
                        let children = [spawn(async {}), spawn(async {})];
                        for child in children {
                            child.await.unwrap();
                        }
                    }
                })
            })
            .collect();
        other.await.unwrap();
        over.store(1, Ordering::Relaxed);
        for joiner in joiners {
            joiner.await.unwrap();
        }
    });
}

#[test]
fn local_threads_do_not_keep_what_may_move() {
    run(2, async {
        let here = Arc::new(AtomicUsize::new(0));
        let local = spawn_local(meet(2, here.clone()));
        let mobile = spawn(meet(2, here));
        local.await.unwrap();
        mobile.await.unwrap();
    });
}

#[test]
fn short_steps_spread_over_the_workers_too() {
    run(2, async {
        let seen = Arc::new(Mutex::new(HashSet::new()));
        let threads: Vec<_> = (0..100)
            .map(|_| {
                let seen = seen.clone();
                // The thread ends when another worker has run one of these threads.
                spawn(async move {
                    while seen.lock().unwrap().len() < 2 {
                        seen.lock().unwrap().insert(std::thread::current().id());
                        yield_now().await;
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.await.unwrap();
        }
    });
}

#[test]
fn zero_workers_are_as_many_as_the_machine_has() {
    assert_eq!(work_stealing(0, |_| Ok(NoEvents::new()), async { 7 }).unwrap(), 7);
}

/// Counts the calls of `poll` that may wait.
struct CountedSleeps(NoEvents, Arc<AtomicUsize>);

impl Events for CountedSleeps {
    fn submit(&mut self, cpu: &mut Cpu, node: Trace) -> Result<(), Trace> {
        self.0.submit(cpu, node)
    }

    fn poll(&mut self, cpu: &mut Cpu, timeout: Option<Duration>) -> io::Result<()> {
        self.1.fetch_add(usize::from(timeout != Some(Duration::ZERO)), Ordering::Relaxed);
        self.0.poll(cpu, timeout)
    }

    fn armed(&self) -> usize {
        self.0.armed()
    }

    fn cancel_all(&mut self, cpu: &mut Cpu) {
        self.0.cancel_all(cpu);
    }

    fn unparker(&self) -> Arc<dyn Unpark> {
        self.0.unparker()
    }
}

/// A worker that wakes up and has no thread to run calls no other worker.
#[test]
fn workers_without_threads_do_not_wake_each_other_again_and_again() {
    let (sleeps, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(Event::new()));
    let (counted, waits) = (sleeps.clone(), done.clone());
    let helper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        done.set();
    });
    let events = |_| Ok(CountedSleeps(NoEvents::new(), counted.clone()));
    work_stealing(4, events, async move { waits.wait().await }).unwrap();
    helper.join().unwrap();
    let sleeps = sleeps.load(Ordering::Relaxed);
    assert!(sleeps < 100, "the workers fell asleep {sleeps} times in 300 ms");
}

#[test]
fn a_worker_without_events_stops_the_others() {
    let events = |worker| match worker {
        1 => Err(io::Error::other("no descriptors")),
        _ => Ok(NoEvents::new()),
    };
    let failure = work_stealing(3, events, std::future::pending::<()>()).unwrap_err();
    assert_eq!(failure.to_string(), "worker 1: waiting for events: no descriptors");
}

#[test]
fn a_panic_in_an_event_source_stops_the_others_and_goes_on() {
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        work_stealing(
            2,
            |worker| {
                if worker == 1 {
                    std::panic::resume_unwind(Box::new("the second worker's"));
                }
                Ok(NoEvents::new())
            },
            std::future::pending::<()>(),
        )
    }));
    assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"the second worker's"));
}

#[test]
fn an_unknown_request_is_a_failure() {
    let failure = work_stealing(2, |_| Ok(NoEvents::new()), sleep(Duration::from_secs(3600))).unwrap_err();
    assert!(failure.to_string().contains("serves"), "{failure}");
}

#[test]
fn os_threads_spawn_and_join() {
    let scheduler = WorkStealing::new(2);
    let handle = scheduler.handle();
    let (end, ended) = mpsc::channel::<()>();
    let early = handle.spawn(async { 1 });
    let outside: Vec<_> = (0..3)
        .map(|me| {
            let (handle, end) = (handle.clone(), end.clone());
            std::thread::spawn(move || {
                let mut sum = 0;
                for n in 0..if cfg!(miri) { 3 } else { 300 } {
                    let spawned = handle.spawn(async move {
                        let inner = spawn(async move { n });
                        yield_now().await;
                        inner.await.unwrap()
                    });
                    sum += if (n + me) % 5 == 0 {
                        // A thread of the scheduler joins it.
                        block_on(handle.spawn(async move { spawned.await.unwrap() })).unwrap()
                    } else {
                        block_on(spawned).unwrap()
                    };
                }
                drop(end);
                sum
            })
        })
        .collect();
    drop(end);
    let wait = async move {
        while ended.try_recv() != Err(mpsc::TryRecvError::Disconnected) {
            sleep(Duration::from_millis(1)).await;
        }
        early.await.unwrap()
    };
    assert_eq!(scheduler.run(|_| Ok(Naps::new()), wait).unwrap(), 1);
    for outside in outside {
        assert_eq!(outside.join().unwrap(), if cfg!(miri) { 3 } else { 299 * 150 });
    }
    let late = handle.spawn(async { 2 });
    assert!(late.is_finished());
    assert!(matches!(block_on(late), Err(JoinError::Cancelled)));
}

#[test]
fn what_is_spawned_from_elsewhere_can_be_cancelled_before_it_is_created_and_after() {
    let scheduler = WorkStealing::new(1);
    let handle = scheduler.handle();
    let never = handle.spawn(async { unreachable!("it is cancelled before a worker starts") });
    never.cancel();
    let waits = handle.spawn(std::future::pending::<()>());
    let result = scheduler.run(|_| Ok(NoEvents::new()), async move {
        let canceller = spawn(async move {
            yield_now().await;
            waits.cancel();
            waits.await
        });
        (never.await, canceller.await.unwrap())
    });
    let (never, waits) = result.unwrap();
    let never: Result<(), JoinError> = never;
    assert!(matches!((never, waits), (Err(JoinError::Cancelled), Err(JoinError::Cancelled))));
}

#[test]
fn what_is_never_run_is_dropped_with_the_scheduler() {
    let scheduler = WorkStealing::new(1);
    let (handle, kept) = (scheduler.handle(), Arc::new(()));
    let inside = kept.clone();
    let spawned = handle.spawn(async move { drop(inside) });
    drop(scheduler);
    assert_eq!(Arc::strong_count(&kept), 1);
    assert!(matches!(block_on(spawned), Err(JoinError::Cancelled)));
}

#[test]
fn a_thread_knows_its_scheduler() {
    assert!(Handle::current().is_none());
    let sum = run(2, async {
        let here = Handle::current().expect("a worker runs this");
        let spawned = here.spawn(async { 20 });
        let other = spawn(async { block_refused() });
        spawned.await.unwrap() + other.await.unwrap()
    });
    assert_eq!(sum, 42);
    assert!(Handle::current().is_none());
}

/// Returns 22 if `block_on` is refused.
fn block_refused() -> u32 {
    let refused = catch_unwind(|| block_on(std::future::ready(())));
    refused.unwrap_err().downcast_ref::<&str>().map_or(0, |_| 22)
}

#[test]
fn schedulers_side_by_side_hand_work_to_each_other() {
    // The client runs under round robin, the doubler under `per_core`, and main with the client's
    // spawned threads under work stealing.
    let rounds = if cfg!(miri) { 3 } else { 200 };
    let pool = WorkStealing::new(2);
    let there = pool.handle();
    let (requests, replies) = (Arc::new(Fifo::new()), Arc::new(MVar::empty()));
    let (asks, answers) = (requests.clone(), replies.clone());
    let client = std::thread::spawn(move || {
        round_robin(async move {
            let mut sum = 0;
            for n in 0..rounds {
                sum += there.spawn(async move { n }).await.unwrap();
                asks.put(Some(n));
                sum += answers.take().await;
            }
            asks.put(None);
            sum
        })
    });
    let doubler = std::thread::spawn(move || {
        per_core(
            1,
            |_| Ok(NoEvents::new()),
            |_| {
                let (requests, replies) = (requests.clone(), replies.clone());
                async move {
                    while let Some(n) = requests.take().await {
                        replies.put(2 * n).await;
                    }
                }
            },
        )
    });
    let sum = pool.run(|_| Ok(Naps::new()), async move {
        while !client.is_finished() {
            sleep(Duration::from_millis(1)).await;
        }
        client.join().unwrap().unwrap()
    });
    assert_eq!(sum.unwrap(), 3 * (0..rounds).sum::<u32>());
    doubler.join().unwrap().unwrap();
}

#[test]
fn threads_that_end_main_leave_nothing() {
    let alive = Arc::new(());
    for round in 0..if cfg!(miri) { 2 } else { 100 } {
        let inside = alive.clone();
        run(3, async move {
            let never = Arc::new(MVar::<()>::empty());
            for kind in 0..if cfg!(miri) { 8 } else { 40 } {
                let (inside, never) = (inside.clone(), never.clone());
                fork(async move {
                    let _inside = inside;
                    match kind % 4 {
                        0 => never.take().await,
                        1 => drop(spawn_local(sleep(Duration::from_secs(60))).await),
                        2 => drop(spawn(std::future::pending::<()>()).await),
                        _ => loop {
                            yield_now().await;
                        },
                    }
                })
                .await;
            }
            for _ in 0..round {
                yield_now().await;
            }
        });
        assert_eq!(Arc::strong_count(&alive), 1);
    }
}

#[test]
fn a_foreign_waker_that_panics_harms_neither_the_worker_nor_a_thread_created_beside_its_own() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("as it should");
        }
    }
    let scheduler = WorkStealing::new(1);
    let handle = scheduler.handle();
    let mut awaited = handle.spawn(async { 1 });
    let waker = Waker::from(Arc::new(Panics));
    assert!(Pin::new(&mut awaited).poll(&mut Context::from_waker(&waker)).is_pending());
    let behind = handle.spawn(async { 2 });
    let both =
        scheduler.run(|_| Ok(NoEvents::new()), async { behind.await.unwrap() + awaited.await.unwrap() });
    assert_eq!(both.unwrap(), 3);
}

/// The CPUs on which the calling OS thread may run.
fn allowed_cpus() -> String {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("Cpus_allowed:"));
    line.expect("Linux writes such a line").to_owned()
}

#[test]
#[cfg_attr(miri, ignore = "reads a file of the system")]
fn a_worker_has_all_cpus_of_its_caller_whenever_it_runs_a_thread() {
    let all = allowed_cpus();
    run(2, async move {
        for _ in 0..100 {
            // The other worker falls asleep meanwhile.
            std::thread::sleep(Duration::from_micros(300));
            let burst = (0..4).map(|_| {
                let all = all.clone();
                spawn(async move {
                    let begun = Instant::now();
                    while begun.elapsed() < Duration::from_micros(200) {}
                    assert_eq!(allowed_cpus(), all);
                })
            });
            for one in burst.collect::<Vec<_>>() {
                one.await.unwrap();
            }
        }
    });
}
