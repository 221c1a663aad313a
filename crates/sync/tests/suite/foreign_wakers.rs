//! A foreign waker that panics: the other waiters that were woken with it are not affected.

use selvedge_sync::{Condition, Mutex};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Wake, Waker};

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("as it should");
    }
}

#[derive(Default)]
struct Counts(AtomicU32);

impl Wake for Counts {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn those_behind_one_that_panics_are_woken_all_the_same() {
    let (mutex, condition) = (Mutex::new(()), Condition::new());
    let counts = Arc::new(Counts::default());
    let (panics, counter) = (Waker::from(Arc::new(Panics)), Waker::from(counts.clone()));
    let mut first = pin!(condition.wait(mutex.try_lock().unwrap()));
    assert!(first.as_mut().poll(&mut Context::from_waker(&panics)).is_pending());
    let mut second = pin!(condition.wait(mutex.try_lock().unwrap()));
    assert!(second.as_mut().poll(&mut Context::from_waker(&counter)).is_pending());
    let mut third = pin!(condition.wait(mutex.try_lock().unwrap()));
    assert!(third.as_mut().poll(&mut Context::from_waker(&counter)).is_pending());
    let notified = catch_unwind(AssertUnwindSafe(|| condition.notify_all()));
    assert!(notified.is_err(), "the panic reaches the notifier");
    assert_eq!(counts.0.load(Ordering::Relaxed), 2, "the others have been woken");
    assert!(third.as_mut().poll(&mut Context::from_waker(&counter)).is_ready());
}
