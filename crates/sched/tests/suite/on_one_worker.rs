//! Threads that the program puts on a worker that it names.

use crate::naps::Naps;
use selvedge_core::{JoinError, Local, NoEvents, RunError, round_robin, sleep, spawn, yield_now};
use selvedge_sched::{Handle, Spawned, WorkStealing, block_on, per_core, priority, work_stealing};
use std::cell::RefCell;
use std::collections::HashSet;
use std::future::{Future, pending};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::thread::{ThreadId, current};
use std::time::Duration;

fn run<F>(workers: usize, main: F) -> F::Output
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    work_stealing(workers, |_| Ok(Naps::new()), main).unwrap()
}

fn workers() -> Handle {
    Handle::of_workers().expect("several workers")
}

/// The OS threads on which a thread runs that waits in each way.
async fn places() -> HashSet<ThreadId> {
    // What is not `Send` stays.
    let seen = Rc::new(RefCell::new(HashSet::new()));
    for _ in 0..if cfg!(miri) { 3 } else { 20 } {
        yield_now().await;
        seen.borrow_mut().insert(current().id());
        sleep(Duration::from_micros(50)).await;
        seen.borrow_mut().insert(current().id());
        spawn(yield_now()).await.unwrap();
        seen.borrow_mut().insert(current().id());
    }
    seen.take()
}

#[test]
fn each_thread_stays_on_its_worker() {
    let seen = run(4, async {
        let handle = workers();
        assert_eq!(handle.workers(), 4);
        let threads: Vec<_> = (0..16).map(|number| handle.spawn_on(number % 4, places)).collect();
        let mut seen = Vec::new();
        for thread in threads {
            seen.push(thread.await.unwrap());
        }
        seen
    });
    let first_four: HashSet<ThreadId> = seen[..4].iter().flatten().copied().collect();
    assert_eq!(first_four.len(), 4, "each worker is another OS thread");
    for (number, places) in seen.iter().enumerate() {
        assert_eq!((places.len(), places), (1, &seen[number % 4]), "thread {number}");
    }
}

#[test]
fn worker_0_is_the_os_thread_that_runs_the_scheduler() {
    let caller = current().id();
    assert!(run(2, async move { workers().spawn_on(0, places).await.unwrap() == HashSet::from([caller]) }));
}

#[test]
fn threads_that_come_before_the_workers_begin_with_them() {
    let scheduler = WorkStealing::new(3);
    let handle = scheduler.handle();
    assert_eq!(handle.workers(), 3);
    let early: Vec<_> = (0..30).map(|n| handle.spawn_on(n % 3, move || async move { n })).collect();
    let sum = scheduler.run(|_| Ok(NoEvents::new()), async {
        let mut sum = 0;
        for thread in early {
            sum += thread.await.unwrap();
        }
        sum
    });
    assert_eq!(sum.unwrap(), (0..30).sum());
}

/// Whether the thread is cancelled, and what it would have run is dropped.
fn is_given_up(spawn: impl FnOnce(Arc<()>) -> Spawned<()>) -> bool {
    let kept = Arc::new(());
    let spawned = spawn(kept.clone());
    matches!(block_on(spawned), Err(JoinError::Cancelled)) && Arc::strong_count(&kept) == 1
}

#[test]
fn a_thread_of_a_scheduler_that_is_gone_is_cancelled() {
    let holding = |inside: Arc<()>| move || async move { drop(inside) };
    let scheduler = WorkStealing::new(2);
    let handle = scheduler.handle();
    assert!(is_given_up(|inside| {
        let spawned = handle.spawn_on(1, holding(inside));
        drop(scheduler);
        spawned
    }));
    for worker in 0..2 {
        assert!(is_given_up(|inside| handle.spawn_on(worker, holding(inside))));
    }
    let handle = run(2, async { workers() });
    for worker in 0..2 {
        assert!(is_given_up(|inside| handle.spawn_on(worker, holding(inside))));
    }
}

#[test]
#[expect(clippy::async_yields_async, reason = "the scheduler ends before the thread does")]
fn a_thread_that_never_ends_is_cancelled_with_the_scheduler() {
    for worker in 0..2 {
        assert!(is_given_up(|inside| {
            run(2, async move {
                let spawned = workers().spawn_on(worker, move || async move {
                    let _inside = inside;
                    pending().await
                });
                // Whether the worker has taken it in or not.
                yield_now().await;
                spawned
            })
        }));
    }
}

#[test]
fn a_panic_of_the_maker_is_one_of_the_thread() {
    let told = run(2, async {
        let fails = || -> std::future::Ready<()> { resume_unwind(Box::new("warp")) };
        match workers().spawn_on(1, fails).await {
            Err(JoinError::Panicked(exception)) => exception.to_string(),
            other => panic!("{other:?}"),
        }
    });
    assert!(told.contains("warp"), "{told}");
}

#[test]
fn a_thread_may_be_given_up_before_and_after_its_creation() {
    run(2, async {
        for round in 0..if cfg!(miri) { 16 } else { 200_u32 } {
            let spawned = workers().spawn_on(1, pending::<()>);
            for _ in 0..round % 8 {
                yield_now().await;
            }
            spawned.cancel();
            assert!(matches!(spawned.await, Err(JoinError::Cancelled)), "round {round}");
        }
    });
}

#[test]
fn a_worker_that_sleeps_is_woken_from_any_os_thread() {
    let rounds = if cfg!(miri) { 5 } else { 500 };
    run(2, async move {
        let handle = workers();
        let outside = std::thread::spawn(move || {
            for round in 0..rounds {
                assert_eq!(
                    block_on(handle.spawn_on(round % 2, move || async move { round })).unwrap(),
                    round
                );
            }
        });
        while !outside.is_finished() {
            sleep(Duration::from_micros(100)).await;
        }
        outside.join().unwrap();
    });
}

#[test]
fn a_worker_that_is_not_there_is_refused() {
    let handle = WorkStealing::new(2).handle();
    let refused = catch_unwind(AssertUnwindSafe(|| handle.spawn_on(2, pending::<()>)));
    let told = refused.unwrap_err();
    assert_eq!(told.downcast_ref(), Some(&"worker 2 of a scheduler with 2".to_string()));
}

#[test]
fn a_scheduler_of_one_worker_has_worker_0_alone() {
    async fn asks() -> u32 {
        assert!(Handle::of_workers().is_none());
        let here = Handle::current().expect("within a thread");
        assert_eq!(here.workers(), 1);
        assert!(Handle::of_workers().is_none());
        here.spawn_on(0, async || 42).await.unwrap()
    }
    assert!(Handle::of_workers().is_none());
    assert_eq!(round_robin(asks()).unwrap(), 42);
    assert_eq!(priority(&mut Naps::new(), asks()).unwrap(), 42);
    assert_eq!(per_core(2, |_| Ok(NoEvents::new()), |_| asks()).unwrap(), [42, 42]);
    assert_eq!(run(1, asks()), 42);
}

#[test]
fn the_question_for_workers_keeps_the_report_of_a_deadlock_exact() {
    // The test harness has other OS threads, which might wake a thread. So only a scheduler that
    // knows all its threads reports a deadlock here.
    let ended = round_robin(async {
        assert!(Handle::of_workers().is_none());
        selvedge_sync::MVar::<(), Local>::empty_local().take().await;
    });
    assert!(matches!(ended, Err(RunError::Deadlock(_))), "{ended:?}");
}
