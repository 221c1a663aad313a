//! Steps that run in threads of their own.

use selvedge_core::{catch, round_robin, yield_now};
use selvedge_coroutine::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn both_steps_are_under_way_at_once() {
    // Each step ends only after the other has begun.
    let begun = Arc::new(AtomicUsize::new(0));
    let step = |begun: Arc<AtomicUsize>| {
        Trampoline::new(|mut co| async move {
            for bounce in 1..=3 {
                begun.fetch_add(1, Ordering::Relaxed);
                while begun.load(Ordering::Relaxed) < 2 * bounce {
                    yield_now().await;
                }
                co.pause().await;
            }
        })
    };
    let (a, b) = (step(begun.clone()), step(begun.clone()));
    round_robin(run(mzip_with_by(Parallel, |(), ()| (), a, b))).unwrap();
    assert_eq!(begun.load(Ordering::Relaxed), 6);
}

#[test]
fn a_panic_of_the_other_thread_comes_through() {
    let caught = round_robin(async {
        let producer = Generator::<u32, ()>::new(|_| async { panic!("the thread breaks") });
        let consumer = Iteratee::new(|mut co| async move { co.await_().await });
        let piped = catch(pipe1_by(Parallel, producer, consumer)).await;
        piped.unwrap_err().message().map(str::to_string)
    });
    assert_eq!(caught.unwrap().as_deref(), Some("the thread breaks"));
}

#[test]
fn a_pipe_that_is_dropped_cancels_the_step_of_its_producer() {
    struct Guard(Arc<AtomicUsize>);
    impl Drop for Guard {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    let guard = Guard(dropped.clone());
    let dropped_at_the_end = round_robin(async move {
        let producer = Generator::<u32, ()>::new(|_| async move {
            let _guard = guard;
            loop {
                yield_now().await;
            }
        });
        let consumer = Iteratee::new(|mut co| async move { co.await_().await });
        let mut piped = Box::pin(pipe1_by(Parallel, producer, consumer));
        std::future::poll_fn(|cx| {
            assert!(piped.as_mut().poll(cx).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
        drop(piped);
        for _ in 0..3 {
            yield_now().await;
        }
        dropped.load(Ordering::Relaxed)
    });
    assert_eq!(dropped_at_the_end.unwrap(), 1);
}
