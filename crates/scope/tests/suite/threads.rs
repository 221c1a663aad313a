//! A set of threads: results as they end, panics, cancellation, and a set that is dropped.

use selvedge_core::{JoinError, round_robin, throw, yield_now};
use selvedge_scope::{Selected, Threads, select};
use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

async fn yields(times: u32) -> u32 {
    for _ in 0..times {
        yield_now().await;
    }
    times
}

#[test]
fn results_come_in_the_order_of_the_ends() {
    let order = round_robin(async {
        let mut threads = Threads::new();
        let numbers = [30, 10, 20].map(|times| threads.spawn(yields(times)));
        assert_eq!((numbers, threads.len()), ([0, 1, 2], 3));
        let mut order = Vec::new();
        while let Some((number, result)) = threads.next_numbered().await {
            order.push((number, result.unwrap()));
        }
        assert!(threads.is_empty());
        order
    });
    assert_eq!(order.unwrap(), [(1, 10), (2, 20), (0, 30)]);
}

#[test]
fn a_panic_ends_one_thread_and_an_exception_another() {
    round_robin(async {
        let mut threads = Threads::new();
        threads.spawn(async { throw("a thread broke") });
        threads.spawn(yields(5));
        assert!(matches!(threads.next().await, Some(Err(JoinError::Panicked(_)))));
        assert!(matches!(threads.next().await, Some(Ok(5))));
        assert!(threads.next().await.is_none());
    })
    .unwrap();
}

#[test]
fn one_that_is_cancelled_says_so_after_its_destructors() {
    struct Sets(Rc<Cell<bool>>);
    impl Drop for Sets {
        fn drop(&mut self) {
            self.0.set(true);
        }
    }
    round_robin(async {
        let (dropped, mut threads) = (Rc::new(Cell::new(false)), Threads::new());
        let sets = Sets(dropped.clone());
        let number = threads.spawn_local(async move {
            let _sets = sets;
            std::future::pending::<()>().await
        });
        yield_now().await;
        assert!(threads.try_next().is_none());
        threads.cancel(number);
        assert!(matches!(threads.next_numbered().await, Some((0, Err(JoinError::Cancelled)))));
        assert!(dropped.get());

        let sets = Sets(dropped.clone());
        dropped.set(false);
        threads.spawn_local(async move { drop(sets) });
        drop(threads); // before the thread has begun
        yield_now().await;
        assert!(dropped.get());
    })
    .unwrap();
}

#[test]
fn a_next_that_is_given_up_loses_no_result() {
    round_robin(async {
        let mut threads = Threads::new();
        threads.spawn(yields(1));
        threads.spawn(yields(3));
        {
            // Handed a result, which is never collected.
            let mut next = pin!(threads.next());
            assert!(next.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            yields(2).await;
        }
        assert!(matches!(threads.next().await, Some(Ok(1))));
        let given_up = select((async {}, threads.next())).await;
        assert!(matches!(given_up, Selected::First(())));
        assert!(matches!(threads.next().await, Some(Ok(3))));
    })
    .unwrap();
}

#[test]
fn threads_of_a_set_that_lets_them_go_run_on() {
    round_robin(async {
        let (done, mut threads) = (Rc::new(Cell::new(false)), Threads::new());
        let sets = done.clone();
        threads.spawn_local(async move {
            yield_now().await;
            sets.set(true);
        });
        threads.detach_all();
        assert!(threads.next().await.is_none());
        drop(threads);
        yields(3).await;
        assert!(done.get());
    })
    .unwrap();
}

#[test]
fn select_takes_more_than_four_and_gives_them_names() {
    use std::future::pending;
    let eighth = async { 8 };
    let eight = select((
        pending::<u8>(),
        pending::<u8>(),
        pending::<u8>(),
        pending::<u8>(),
        pending::<u8>(),
        pending::<u8>(),
        pending::<u8>(),
        eighth,
    ));
    assert_eq!(round_robin(eight).unwrap(), Selected::Eighth(8));

    let said = round_robin(async {
        let mut said = Vec::new();
        for turn in 0..3 {
            let text = select! {
                () = pending::<()>() => "never".to_string(),
                number = async { if turn == 0 { 7 } else { pending().await } } => format!("number {number}"),
                (one, other) = async { if turn == 1 { (1, 2) } else { pending().await } } => {
                    yield_now().await; // the expression may wait
                    format!("pair {one} {other}")
                },
                word = async { "word" } => word.to_string(),
            };
            said.push(text);
        }
        said
    });
    assert_eq!(said.unwrap(), ["number 7", "pair 1 2", "word"]);
}

#[test]
fn a_branch_may_leave_the_loop_around_it() {
    let last = round_robin(async {
        let mut count = 0;
        loop {
            select! {
                () = async { if count < 3 { std::future::pending().await } } => break count,
                () = yield_now() => count += 1,
            }
        }
    });
    assert_eq!(last.unwrap(), 3);
    assert_eq!(
        pin!(async {
            select! { x = async { 1 } => x }
        })
        .poll(&mut Context::from_waker(Waker::noop())),
        Poll::Ready(1)
    );
}
