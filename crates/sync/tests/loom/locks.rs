//! All interleavings of locking, unlocking, waiting and giving up: past the lock of the queue, and
//! through it.
//!
//! The guarded value is a cell of loom. Loom reports a second access beside that of a writer.

use loom::cell::UnsafeCell;
use loom::sync::{Arc, Notify};
use loom::thread;
use selvedge_sync::{Condition, Mutex, Promise, RwLock, Semaphore};
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Wake, Waker};

struct WakeSignal(Notify);

impl Wake for WakeSignal {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.notify();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let signal = std::sync::Arc::new(WakeSignal(Notify::new()));
    let waker = Waker::from(signal.clone());
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            // A lost wake-up would be a deadlock of the model.
            Poll::Pending => signal.0.wait(),
        }
    }
}

/// Polls the future once, and gives up.
fn glance<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

fn model(preemptions: Option<usize>, f: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions;
    model.check(f);
}

/// A number in a cell of loom, which reports two changes at the same time.
struct Counter(UnsafeCell<u32>);

// SAFETY: the lock under test makes the accesses exclusive; if it does not, loom reports it.
unsafe impl Sync for Counter {}

impl Counter {
    fn new() -> Counter {
        Counter(UnsafeCell::new(0))
    }

    fn add(&self) {
        // SAFETY: loom reports an access of another thread at the same time.
        self.0.with_mut(|count| unsafe { *count += 1 });
    }

    fn get(&self) -> u32 {
        // SAFETY: as above.
        self.0.with(|count| unsafe { *count })
    }
}

#[test]
fn one_at_a_time_holds_a_mutex() {
    model(None, || {
        let mutex = Arc::new(Mutex::new(Counter::new()));
        let other = {
            let mutex = mutex.clone();
            thread::spawn(move || block_on(mutex.lock()).add())
        };
        block_on(mutex.lock()).add();
        other.join().unwrap();
        assert_eq!(mutex.try_lock().expect("free in the end").get(), 2);
    });
}

#[test]
fn a_waiter_that_gives_up_a_mutex_leaves_it_to_the_others() {
    model(Some(3), || {
        let mutex = Arc::new(Mutex::new(Counter::new()));
        let other = {
            let mutex = mutex.clone();
            thread::spawn(move || block_on(mutex.lock()).add())
        };
        let third = {
            let mutex = mutex.clone();
            thread::spawn(move || glance(mutex.lock()).map_or(0, |guard| (guard.add(), 1).1))
        };
        block_on(mutex.lock()).add();
        other.join().unwrap();
        let third = third.join().unwrap();
        assert_eq!(mutex.try_lock().expect("free in the end").get(), 2 + third);
    });
}

#[test]
fn permits_are_neither_lost_nor_doubled() {
    model(Some(3), || {
        let semaphore = Arc::new(Semaphore::new(2));
        let other = {
            let semaphore = semaphore.clone();
            thread::spawn(move || drop(block_on(semaphore.acquire_many(2))))
        };
        let third = {
            let semaphore = semaphore.clone();
            thread::spawn(move || drop(glance(semaphore.acquire_many(2))))
        };
        drop(block_on(semaphore.acquire()));
        other.join().unwrap();
        third.join().unwrap();
        assert_eq!(semaphore.available(), 2);
    });
}

#[test]
fn a_writer_is_alone_and_readers_are_not() {
    model(Some(3), || {
        let lock = Arc::new(RwLock::new(Counter::new()));
        let writer = {
            let lock = lock.clone();
            thread::spawn(move || block_on(lock.write()).add())
        };
        let reader = {
            let lock = lock.clone();
            thread::spawn(move || block_on(lock.read()).get())
        };
        let here = block_on(lock.read()).get();
        writer.join().unwrap();
        let there = reader.join().unwrap();
        assert!(here <= 1 && there <= 1);
        assert_eq!(lock.try_write().expect("free in the end").get(), 1);
    });
}

#[test]
fn readers_go_on_when_a_writer_before_them_gives_up() {
    model(Some(2), || {
        let lock = Arc::new(RwLock::new(()));
        let held = lock.try_read().unwrap();
        let writer = {
            let lock = lock.clone();
            thread::spawn(move || drop(glance(lock.write())))
        };
        let reader = {
            let lock = lock.clone();
            thread::spawn(move || drop(block_on(lock.read())))
        };
        // The lock is held to read, so only the writer can have been in the reader's way.
        reader.join().unwrap();
        writer.join().unwrap();
        drop(held);
        assert!(lock.try_write().is_some());
    });
}

#[test]
fn a_notification_under_the_mutex_is_not_lost() {
    model(Some(3), || {
        let shared = Arc::new((Mutex::new(false), Condition::new()));
        let other = {
            let shared = shared.clone();
            thread::spawn(move || {
                *block_on(shared.0.lock()) = true;
                shared.1.notify_one();
            })
        };
        let (mutex, condition) = &*shared;
        block_on(async { assert!(*condition.wait_while(mutex.lock().await, |there| !*there).await) });
        other.join().unwrap();
    });
}

#[test]
fn all_readers_of_a_promise_get_its_value() {
    model(Some(3), || {
        let (fulfiller, promise) = Promise::new();
        let other = {
            let promise = promise.clone();
            thread::spawn(move || block_on(promise.claim()).copied())
        };
        let fulfilling = thread::spawn(move || fulfiller.fulfil(5));
        assert!(glance(promise.claim()).is_none_or(|claimed| claimed == Ok(&5)));
        assert_eq!(block_on(promise.claim()), Ok(&5));
        assert_eq!(other.join().unwrap(), Ok(5));
        fulfilling.join().unwrap();
    });
}

#[test]
fn all_readers_of_a_promise_hear_that_it_was_broken() {
    model(None, || {
        let (fulfiller, promise) = Promise::<u32>::new();
        let other = thread::spawn(move || drop(fulfiller));
        assert!(block_on(promise.claim()).is_err());
        other.join().unwrap();
    });
}
