//! All interleavings of an OS thread that falls asleep and of OS threads that wake it.

use loom::sync::atomic::{AtomicU32, Ordering};
use loom::sync::{Arc, Mutex as Slot};
use loom::thread;
use selvedge_sync::{Event, Mutex, wait_blocking, wait_blocking_for};
use std::future::poll_fn;
use std::task::{Poll, Waker};
use std::time::Duration;

/// A count, and the waker of the OS thread that waits for the count to change.
struct Counted {
    count: AtomicU32,
    waker: Slot<Option<Waker>>,
}

impl Counted {
    fn up_to(&self, enough: u32) -> impl Future<Output = u32> {
        poll_fn(move |cx| {
            *self.waker.lock().unwrap() = Some(cx.waker().clone());
            // The count is read after the waker is stored, so that no `add` between the two is
            // missed.
            match self.count.load(Ordering::Acquire) {
                count if count >= enough => Poll::Ready(count),
                _ => Poll::Pending,
            }
        })
    }

    fn add(&self) {
        self.count.fetch_add(1, Ordering::Release);
        let waker = self.waker.lock().unwrap().clone();
        waker.into_iter().for_each(Waker::wake);
    }
}

fn counted() -> Arc<Counted> {
    Arc::new(Counted { count: AtomicU32::new(0), waker: Slot::new(None) })
}

fn model(f: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(f);
}

#[test]
fn no_ring_is_lost() {
    model(|| {
        let counted = counted();
        let others: Vec<_> = (0..2)
            .map(|_| {
                let counted = counted.clone();
                thread::spawn(move || counted.add())
            })
            .collect();
        // A lost wake-up would be a deadlock of the model.
        assert_eq!(wait_blocking(counted.up_to(2)), 2);
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

#[test]
fn a_wake_up_from_before_does_no_harm() {
    model(|| {
        let counted = counted();
        let other = {
            let counted = counted.clone();
            thread::spawn(move || {
                counted.add();
                counted.add();
            })
        };
        // The second wake-up may come at any time from here on, also after this wait has been given
        // up.
        let given_up = wait_blocking_for(Duration::ZERO, counted.up_to(1));
        assert!(given_up.is_none_or(|count| count >= 1));
        assert_eq!(wait_blocking(counted.up_to(2)), 2);
        other.join().unwrap();
    });
}

#[test]
fn os_threads_wake_one_another() {
    model(|| {
        let shared = Arc::new((Mutex::new(0), Event::new()));
        let other = {
            let shared = shared.clone();
            thread::spawn(move || {
                *shared.0.lock_blocking() += 1;
                shared.1.set();
            })
        };
        *shared.0.lock_blocking() += 1;
        shared.1.wait_blocking();
        assert_eq!(*shared.0.lock_blocking(), 2);
        other.join().unwrap();
    });
}
