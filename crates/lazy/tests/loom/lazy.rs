//! All interleavings of threads that force one value: entry, update, waiting, and giving up; with
//! at most three preemptions, or two where there are three threads.

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use selvedge_lazy::Lazy;
use selvedge_sync::wait_blocking;
use std::future::{Future, pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

fn model(f: impl Fn() + Sync + Send + 'static) {
    model_with(3, f);
}

fn model_with(preemptions: usize, f: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(f);
}

/// A value that loom watches: it is written before the update, and read after it.
struct Watched(UnsafeCell<u32>);

// SAFETY: loom checks each access.
unsafe impl Sync for Watched {}

impl Watched {
    fn new(value: u32) -> Watched {
        let watched = Watched(UnsafeCell::new(0));
        // SAFETY: loom checks the access.
        watched.0.with_mut(|place| unsafe { *place = value });
        watched
    }

    fn get(&self) -> u32 {
        // SAFETY: loom checks the access.
        self.0.with(|place| unsafe { *place })
    }
}

#[test]
fn one_of_two_threads_evaluates_and_both_see_the_value() {
    model(|| {
        let runs = Arc::new(AtomicUsize::new(0));
        let count = runs.clone();
        let lazy = Lazy::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
            Watched::new(7)
        });
        let other = {
            let lazy = lazy.clone();
            thread::spawn(move || lazy.force_blocking().get())
        };
        assert_eq!(lazy.force_blocking().get(), 7);
        assert_eq!(other.join().unwrap(), 7);
        assert_eq!(runs.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn two_waiters_of_one_evaluation_are_woken() {
    model_with(2, || {
        let lazy = Lazy::new(|| Watched::new(7));
        let others: Vec<_> = (0..2)
            .map(|_| {
                let lazy = lazy.clone();
                thread::spawn(move || lazy.force_blocking().get())
            })
            .collect();
        assert_eq!(lazy.force_blocking().get(), 7);
        others.into_iter().for_each(|other| assert_eq!(other.join().unwrap(), 7));
    });
}

/// Pending once, without a wake-up: the thread is expected to be polled again by itself.
async fn pause() {
    let mut paused = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut paused, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[test]
fn a_waiter_takes_over_an_evaluation_that_is_given_up() {
    model(|| {
        let lazy = Lazy::future(async {
            pause().await;
            Watched::new(7)
        });
        let other = {
            let lazy = lazy.clone();
            thread::spawn(move || lazy.force_blocking().get())
        };
        {
            let force = pin!(lazy.force());
            let polled = force.poll(&mut Context::from_waker(Waker::noop()));
            if let Poll::Ready(value) = polled {
                assert_eq!(value.get(), 7);
            }
        }
        assert_eq!(other.join().unwrap(), 7);
    });
}

#[test]
fn a_circle_across_two_threads_is_found() {
    model(|| {
        let knot = Arc::new(std::sync::OnceLock::<Lazy<u32>>::new());
        let tail = knot.clone();
        let x = Lazy::future(async move { *tail.get().unwrap().force().await });
        let y = x.map(|x| x + 1);
        assert!(knot.set(y.clone()).is_ok());
        let other = thread::spawn(move || wait_blocking(x.try_force()).unwrap_err().is_loop());
        assert!(wait_blocking(y.try_force()).unwrap_err().is_loop());
        assert!(other.join().unwrap());
    });
}

#[test]
fn the_last_handle_drops_the_value() {
    model(|| {
        let lazy = Lazy::new(|| Arc::new(()));
        let other = {
            let lazy = lazy.clone();
            thread::spawn(move || drop(lazy))
        };
        let kept = lazy.force_blocking().clone();
        drop(lazy);
        other.join().unwrap();
        assert_eq!(Arc::strong_count(&kept), 1);
    });
}

#[test]
fn one_os_thread_polls_a_body_also_when_its_demand_is_given_up() {
    type SentForce = Pin<Box<dyn Future<Output = u32> + Send>>;
    model_with(2, || {
        let polled = Watched::new(0);
        let value = Lazy::future(async move {
            for _ in 0..2 {
                // SAFETY: loom checks the access.
                polled.0.with_mut(|count| unsafe { *count += 1 });
                pause().await;
            }
            polled.get()
        });
        let place = Arc::new(Mutex::new(None));
        let sender = Lazy::future({
            let (value, place) = (value.clone(), place.clone());
            async move {
                let mut force: SentForce = Box::pin(async move { *value.force().await });
                assert!(futures::poll!(&mut force).is_pending());
                *place.lock().unwrap() = Some(force);
                pending::<()>().await;
            }
        });
        let mut demand = Box::pin(sender.force());
        assert!(demand.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let sent: SentForce = place.lock().unwrap().take().unwrap();
        let other = thread::spawn(move || assert_eq!(wait_blocking(sent), 2));
        drop(demand);
        assert_eq!(*value.force_blocking(), 2);
        other.join().unwrap();
    });
}
