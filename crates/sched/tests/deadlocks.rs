//! A deadlock of threads that any OS thread could wake is reported when no OS thread is left that
//! would wake them. It can be told only while the process has no other OS thread, so this is a
//! program of its own, without the test harness.

mod naps;
mod schedulers;

use schedulers::{PER_CORE, PRIORITY, ROUND_ROBIN, Scheduler, run, stealing};
use selvedge_core::{NoEvents, RunError, park, sleep, spawn, spawn_local, yield_now};
use selvedge_sched::{Handle, WorkStealing, block_on, per_core, work_stealing};
use selvedge_sync::MVar;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Threads on several workers wait for one another, after every other thread has ended.
async fn entangled() {
    let (left, right) = (Arc::new(MVar::<()>::empty()), Arc::new(MVar::<()>::empty()));
    let busy = spawn(async {
        for _ in 0..100 {
            yield_now().await;
        }
        sleep(Duration::from_millis(2)).await;
    });
    let others = [(left.clone(), right.clone()), (right, left)].map(|(from, to)| {
        spawn(async move {
            from.take().await;
            to.put(()).await;
        })
    });
    let local = spawn_local(park(drop));
    busy.await.unwrap();
    for other in others {
        other.await.unwrap();
    }
    local.await.unwrap();
}

fn is_reported(scheduler: Scheduler, name: &str) {
    match run(scheduler, entangled()) {
        Err(RunError::Deadlock(deadlock)) => {
            assert_eq!(deadlock.threads.len(), 4, "{name}: {deadlock}");
            let mains = deadlock.threads.iter().filter(|thread| thread.name() == "main");
            assert_eq!(mains.count(), 1, "{name}: {deadlock}");
        }
        other => panic!("{name}: {other:?}"),
    }
    println!("test {name} ... ok");
}

/// The scheduler and an OS thread wait for each other.
fn across_block_on() {
    let scheduler = WorkStealing::new(2);
    let handle = scheduler.handle();
    let (here, there) = (Arc::new(MVar::<()>::empty()), Arc::new(MVar::<()>::empty()));
    let (first, reply) = (there.clone(), here.clone());
    let outside = std::thread::spawn(move || {
        // Calls of this kind work.
        for n in 0..50 {
            assert_eq!(block_on(handle.spawn(async move { n })).unwrap(), n);
        }
        block_on(reply.take())
    });
    let ended = scheduler.run(|_| Ok(NoEvents::new()), async move {
        first.take().await;
    });
    let failure = ended.expect_err("no thread puts");
    assert!(matches!(failure.error, RunError::Deadlock(_)), "{failure}");
    block_on(here.put(()));
    outside.join().unwrap();
    println!("test across_block_on ... ok");
}

/// The workers do not wait for ever.
fn of_all_workers() {
    // Each main thread waits behind a waker that any OS thread might wake, and that only the other
    // worker could reach.
    let wakers = Mutex::new(Vec::new());
    let wakers: &'static _ = Box::leak(Box::new(wakers));
    let ended = per_core(
        2,
        |_| Ok(NoEvents::new()),
        move |_| async move { park(move |waker| wakers.lock().unwrap().push(waker)).await },
    );
    let failure = ended.expect_err("they wait for one another");
    let RunError::Deadlock(deadlock) = &failure.error else { panic!("{failure}") };
    assert_eq!(deadlock.threads.len(), 1, "{deadlock}");
    println!("test of_all_workers ... ok");
}

/// Threads that stay on the workers that the program has named wait for one another, after many
/// others have ended.
fn on_named_workers() {
    let ended = work_stealing(3, |_| Ok(NoEvents::new()), async {
        let workers = Handle::of_workers().expect("there are three");
        for n in 0..60 {
            assert_eq!(workers.spawn_on(n % 3, move || async move { n }).await.unwrap(), n);
        }
        let places = Arc::new([(); 3].map(|()| MVar::<()>::empty()));
        let rings = [0, 1, 2].map(|n| {
            let places = places.clone();
            workers.spawn_on(n, move || async move {
                places[n].take().await;
                places[(n + 1) % 3].put(()).await;
            })
        });
        for thread in rings {
            thread.await.unwrap();
        }
    });
    let failure = ended.expect_err("no thread puts");
    let RunError::Deadlock(deadlock) = &failure.error else { panic!("{failure}") };
    assert_eq!(deadlock.threads.len(), 4, "{deadlock}");
    println!("test on_named_workers ... ok");
}

fn main() {
    if cfg!(miri) {
        // Miri cannot see how many OS threads there are.
        return;
    }
    of_all_workers();
    is_reported(ROUND_ROBIN, "round_robin");
    is_reported(PER_CORE, "per_core");
    is_reported(PRIORITY, "priority");
    for _ in 0..5 {
        is_reported(stealing::<1>(), "work_stealing_1");
        is_reported(stealing::<2>(), "work_stealing_2");
        is_reported(stealing::<4>(), "work_stealing_4");
        across_block_on();
        on_named_workers();
    }
}
