//! A scope that is polled by one foreign task after another: what it kept of the first may be the
//! last that holds it, and do anything when it goes.

use selvedge_core::round_robin;
use selvedge_scope::scope;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

type Held = Arc<Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>>;

/// A task that holds a future until its last waker goes.
struct Task {
    _future: Held,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn a_waker_that_is_replaced_may_take_a_scope_within_along() {
    let done = std::thread::spawn(|| {
        round_robin(async {
            let held = Held::default();
            let hold = held.clone();
            let mut outer = Box::pin(scope(|outer| async move {
                let _child = outer.spawn(pending::<()>());
                let mut within = Box::pin(scope(|inner| async move {
                    let _child = inner.spawn(pending::<()>());
                    pending::<()>().await;
                }));
                let polled = within.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                assert!(polled.is_pending());
                *hold.lock().unwrap() = Some(within);
                drop(hold);
                pending::<()>().await;
            }));
            let waker = Waker::from(Arc::new(Task { _future: held }));
            assert!(outer.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            drop(waker);
            // It replaces the waker. The inner scope goes with the old waker, and the outer scope
            // has to take in the child of the inner one.
            assert!(outer.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        })
        .unwrap();
    });
    for _ in 0..300 {
        if done.is_finished() {
            return done.join().unwrap();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the outer scope waits for itself");
}
