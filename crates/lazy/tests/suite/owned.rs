//! One value: made once, by the first thread that needs it; waiting for it; failing.

use selvedge_core::{NoEvents, round_robin, spawn, yield_now};
use selvedge_lazy::Lazy;
use selvedge_sched::{block_on, work_stealing};
use selvedge_sync::{Event, wait_blocking};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;

const WAITING: u32 = if cfg!(miri) { 4 } else { 100 };
const FORKED: u64 = if cfg!(miri) { 3 } else { 64 };

/// A value with a count of its evaluations.
fn counted(value: u64) -> (Lazy<u64>, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let counter = runs.clone();
    let lazy = Lazy::new(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        value
    });
    (lazy, runs)
}

#[test]
fn a_closure_runs_when_it_is_needed_and_once() {
    let (lazy, runs) = counted(7);
    assert_eq!((lazy.get(), runs.load(Ordering::Relaxed)), (None, 0));
    assert_eq!((*lazy.force_blocking(), *block_on(lazy.force())), (7, 7));
    assert_eq!((lazy.get(), runs.load(Ordering::Relaxed)), (Some(&7), 1));
}

#[test]
fn os_threads_that_force_at_once_run_it_once() {
    for _ in 0..if cfg!(miri) { 1 } else { 200 } {
        let (lazy, runs) = counted(7);
        let start = Arc::new(Barrier::new(4));
        let forcers: Vec<_> = (0..4)
            .map(|_| {
                let (lazy, start) = (lazy.clone(), start.clone());
                thread::spawn(move || {
                    start.wait();
                    *lazy.force_blocking()
                })
            })
            .collect();
        forcers.into_iter().for_each(|forcer| assert_eq!(forcer.join().unwrap(), 7));
        assert_eq!(runs.load(Ordering::Relaxed), 1);
    }
}

/// A body that waits until it is told to go on.
fn held(value: u32) -> (Lazy<u32>, Arc<Event>) {
    let go = Arc::new(Event::new());
    let told = go.clone();
    let lazy = Lazy::future(async move {
        told.wait().await;
        value
    });
    (lazy, go)
}

#[test]
fn threads_tasks_and_os_threads_wait_for_one_evaluation() {
    let (lazy, go) = held(5);
    let os_threads: Vec<_> = (0..2)
        .map(|_| {
            let lazy = lazy.clone();
            thread::spawn(move || *lazy.force_blocking())
        })
        .collect();
    let foreign = {
        let lazy = lazy.clone();
        thread::spawn(move || futures::executor::block_on(async { *lazy.force().await }))
    };
    let forced = lazy.clone();
    let ours = work_stealing(2, |_| Ok(NoEvents::new()), async move {
        let waiting: Vec<_> = (0..WAITING)
            .map(|_| {
                let lazy = forced.clone();
                spawn(async move { *lazy.force().await })
            })
            .collect();
        yield_now().await;
        go.set();
        let mut sum = 0;
        for thread in waiting {
            sum += thread.await.unwrap();
        }
        sum
    });
    assert_eq!(ours.unwrap(), 5 * WAITING);
    os_threads.into_iter().for_each(|thread| assert_eq!(thread.join().unwrap(), 5));
    assert_eq!(foreign.join().unwrap(), 5);
}

fn text_of(payload: &(dyn std::any::Any + Send)) -> &str {
    payload
        .downcast_ref::<&'static str>()
        .copied()
        .unwrap_or_else(|| payload.downcast_ref::<String>().unwrap())
}

/// What a force of the value throws.
fn thrown_by(lazy: &Lazy<u32>) -> Box<dyn std::any::Any + Send> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| *lazy.force_blocking())).unwrap_err()
}

#[test]
fn the_payload_of_a_panic_goes_to_the_first_that_throws_it_and_a_text_to_all() {
    let literal: Lazy<u32> = Lazy::new(|| std::panic::resume_unwind(Box::new("torn")));
    let text: Lazy<u32> = Lazy::new(|| std::panic::resume_unwind(Box::new(String::from("torn"))));
    for _ in 0..2 {
        assert_eq!(*thrown_by(&literal).downcast::<&'static str>().unwrap(), "torn");
        assert_eq!(*thrown_by(&text).downcast::<String>().unwrap(), "torn");
    }
    // Through two values that need it.
    let typed: Lazy<u32> = Lazy::new(|| std::panic::resume_unwind(Box::new(3u8)));
    let outer = typed.map(|n| n + 1).map(|n| n + 1);
    assert_eq!(*thrown_by(&outer).downcast::<u8>().unwrap(), 3);
    for value in [&typed, &outer] {
        assert_eq!(*thrown_by(value).downcast::<String>().unwrap(), "an exception that is not text");
    }
}

#[test]
fn a_payload_that_no_thread_takes_goes_with_the_value_also_if_its_destructor_panics() {
    struct Payload(Arc<AtomicUsize>);
    impl Drop for Payload {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
            panic!("in a destructor");
        }
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    let payload = Payload(dropped.clone());
    let lazy: Lazy<u32> = Lazy::new(move || std::panic::resume_unwind(Box::new(payload)));
    assert!(wait_blocking(lazy.try_force()).is_err());
    assert_eq!(dropped.load(Ordering::Relaxed), 0);
    drop(lazy);
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
}

#[test]
fn a_panic_is_kept_for_all() {
    let lazy: Lazy<u32> = Lazy::new(|| panic!("torn at {}", 3));
    for _ in 0..2 {
        assert_eq!(wait_blocking(lazy.try_force()).unwrap_err().message(), "torn at 3");
        let again = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| *lazy.force_blocking()));
        assert_eq!(text_of(&*again.unwrap_err()), "torn at 3");
    }
    assert!(lazy.has_failed() && lazy.get().is_none());
    // The failure goes on to the values that need this value, with the same message.
    let next = lazy.map(|n| n + 1);
    assert_eq!(wait_blocking(next.try_force()).unwrap_err().message(), "torn at 3");
    let thrown: Lazy<u32> = Lazy::new(|| std::panic::panic_any(3u8));
    assert_eq!(wait_blocking(thrown.try_force()).unwrap_err().message(), "an exception that is not text");
}

/// Says when it is dropped.
struct Environment(Arc<AtomicUsize>);

impl Drop for Environment {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn the_environment_goes_with_the_update_and_the_value_with_the_last_handle() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let environment = Environment(dropped.clone());
    let count = dropped.clone();
    let lazy = Lazy::future(async move {
        let kept = environment;
        yield_now().await;
        drop(kept);
        Environment(count)
    });
    let other = lazy.clone();
    assert!(lazy.into_value().is_err());
    round_robin(async move { assert_eq!(other.force().await.0.load(Ordering::Relaxed), 1) }).unwrap();
    assert_eq!(dropped.load(Ordering::Relaxed), 2, "the environment, and then the value");

    let dropped = Arc::new(AtomicUsize::new(0));
    let environment = Environment(dropped.clone());
    let lazy = Lazy::new(move || environment.0.load(Ordering::Relaxed));
    assert_eq!(*lazy.force_blocking(), 0);
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
    assert_eq!(lazy.into_value().unwrap(), 0);

    let dropped = Arc::new(AtomicUsize::new(0));
    let environment = Environment(dropped.clone());
    drop(Lazy::new(move || environment.0.load(Ordering::Relaxed)));
    assert_eq!(dropped.load(Ordering::Relaxed), 1, "a body that never ran");
}

#[test]
fn a_destructor_of_the_environment_that_panics_spoils_nothing() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("in a destructor");
        }
    }
    let environment = Panics;
    let lazy = Lazy::future(async move {
        let _ = &environment;
        yield_now().await;
        3
    });
    assert!(
        round_robin({
            let lazy = lazy.clone();
            async move { lazy.try_force().await.is_err() }
        })
        .unwrap()
    );
    // A future that has not begun drops what it has captured with the node.
    let environment = Panics;
    drop(Lazy::new(move || {
        let _ = &environment;
    }));
}

#[test]
fn an_initialiser_that_forks_ends() {
    // rayon's issue 1251: the initialiser forks, and a part of the fork forces the same value.
    for &workers in if cfg!(miri) { &[2][..] } else { &[1, 2, 8] } {
        let total = work_stealing(workers, |_| Ok(NoEvents::new()), async {
            let shared = Lazy::future(async {
                let parts: Vec<_> = (0..FORKED)
                    .map(|n| {
                        spawn(async move {
                            yield_now().await;
                            n
                        })
                    })
                    .collect();
                let mut sum = 0;
                for part in parts {
                    sum += part.await.unwrap();
                }
                sum
            });
            let forcers: Vec<_> = (0..FORKED)
                .map(|_| {
                    let shared = shared.clone();
                    spawn(async move { *shared.force().await })
                })
                .collect();
            let mut total = 0;
            for forcer in forcers {
                total += forcer.await.unwrap();
            }
            total
        });
        assert_eq!(total.unwrap(), FORKED * FORKED * (FORKED - 1) / 2);
    }
}

#[test]
fn a_thread_in_direct_style_waits_for_a_value() {
    use selvedge_direct::{direct, spawn as spawn_direct, wait};
    let (lazy, go) = held(4);
    let sum = round_robin(direct(move || {
        // The closure is left in the middle, and other threads force meanwhile.
        let outer = Lazy::new({
            let lazy = lazy.clone();
            move || *wait(lazy.force()) + 1
        });
        let first = spawn_direct({
            let outer = outer.clone();
            move || *wait(outer.force())
        });
        let second = spawn_direct(move || *wait(lazy.force()));
        let third = spawn_direct(move || *wait(outer.force()));
        selvedge_direct::yield_now();
        go.set();
        wait(first).unwrap() + wait(second).unwrap() + wait(third).unwrap()
    }));
    assert_eq!(sum.unwrap(), 14);
}

#[test]
fn handles_send_and_sync_as_their_values_do() {
    fn send_and_sync<T: Send + Sync>(_: &T) {}
    fn send<T: Send>(_: T) {}
    let lazy = Lazy::new(|| 1);
    send_and_sync(&lazy);
    send(lazy.force());
    assert!(lazy.clone().is_same(&lazy));
    assert_eq!(format!("{lazy:?} {:?}", Lazy::from(2)), "Lazy(not there) Lazy(2)");
}

/// An OS thread waits for the drop of the value. The destructor drops it and joins that OS thread.
struct JoinsInDrop(Option<Lazy<mpsc::Sender<()>>>, Option<thread::JoinHandle<()>>);

impl Drop for JoinsInDrop {
    fn drop(&mut self) {
        drop(self.0.take());
        self.1.take().unwrap().join().unwrap();
    }
}

#[test]
fn a_destructor_may_drop_a_value_and_wait_for_that() {
    let (sender, receiver) = mpsc::channel();
    let waits = thread::spawn(move || assert!(receiver.recv().is_err()));
    let outer = Lazy::ready(JoinsInDrop(Some(Lazy::ready(sender)), Some(waits)));
    drop(outer);
}

#[test]
fn a_force_within_a_transaction_is_refused_before_the_body_begins() {
    use selvedge_core::internal::indivisible;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    let value = Lazy::new(|| 7);
    let other = value.clone();
    let forces: [&dyn Fn() -> u32; 2] = [&|| *value.force_blocking(), &|| *wait_blocking(other.force())];
    for force in forces {
        let refused = catch_unwind(AssertUnwindSafe(|| indivisible(force))).unwrap_err();
        assert!(refused.downcast_ref::<&str>().unwrap().contains("force it before the transaction"));
        assert!(!value.is_ready() && !value.has_failed());
    }
    assert_eq!(*value.force_blocking(), 7);
    for force in forces {
        assert_eq!(indivisible(force), 7);
    }
}
