//! What must not be mixed up when a stack is left in the middle of something and another one is
//! entered.

use selvedge_core::internal::{exchange_task_context, task_context};
use selvedge_core::{Cpu, JoinError, Local, Trace, WaitQueue, in_thread, round_robin, spawn_local};
use selvedge_direct::*;
use std::cell::{Cell, RefCell};
use std::future::{Future, pending, poll_fn};
use std::panic::catch_unwind;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

#[test]
fn a_stack_is_not_left_within_a_step_that_a_scheduler_on_it_runs() {
    let ended = round_robin(direct(|| {
        assert!(in_direct());
        let mut cpu = Cpu::new().unwrap();
        let waits = cpu.thread(async {
            assert!(!in_direct());
            wait(selvedge_core::yield_now());
        });
        let Trace::Panic(panic) = waits.unwrap().step(&mut cpu) else { panic!("it has waited") };
        // A thread with a stack of its own may leave that stack.
        let waits = cpu.thread(direct(yield_now)).unwrap();
        let Trace::Yield(waits) = waits.step(&mut cpu) else { panic!("it has not waited") };
        assert!(matches!(waits.step(&mut cpu), Trace::Ret));
        drop(cpu);
        yield_now();
        panic.into_exception().message().unwrap().to_owned()
    }));
    let words = ended.unwrap();
    assert!(words.contains("within the step of another thread"), "{words}");
}

#[test]
fn no_cpu_is_running_when_one_that_was_left_in_a_step_within_a_step_is_unwound() {
    let mut cpu = Cpu::new().unwrap();
    let inner: Pin<Box<dyn Future<Output = ()>>> = Box::pin(direct(|| {
        let mut cpu = Cpu::new().unwrap();
        let thread = cpu.thread(async { wait(selvedge_core::yield_now()) }).unwrap();
        drop(thread.step(&mut cpu));
        wait(pending::<()>());
    }));
    let inner = Rc::new(RefCell::new(Some(inner)));
    let polled = inner.clone();
    let thread = cpu.thread(poll_fn(move |cx| polled.borrow_mut().as_mut().unwrap().as_mut().poll(cx)));
    drop(thread.unwrap().step(&mut cpu));
    assert!(!in_thread());
    drop(cpu);
    drop(inner.take());
    assert!(!in_thread());
    assert!(catch_unwind(|| drop(spawn_local(async {}))).is_err(), "there is no CPU to spawn it on");
}

#[test]
fn a_stack_that_is_left_while_a_word_is_exchanged_keeps_others_out() {
    let queue: Rc<WaitQueue<Vec<String>, (), Local>> = Rc::new(WaitQueue::new(vec!["warp".to_string(); 3]));
    let refused = round_robin(async move {
        let (first, second, third) = (queue.clone(), queue.clone(), queue);
        let exchanges = spawn(move || {
            first.exchange(|word| {
                yield_now();
                yield_now();
                Some(word + 1)
            })
        });
        let enters = |queue: Rc<WaitQueue<Vec<String>, (), Local>>| {
            spawn(move || {
                queue.with(|state, _| {
                    let first: &String = &state[0];
                    for _ in 0..6 {
                        yield_now();
                    }
                    assert_eq!(first, "warp");
                    state.clear();
                });
            })
        };
        let second = enters(second);
        let entered = spawn(move || {
            for _ in 0..4 {
                yield_now();
            }
            third.with(|state, _| {
                *state = vec!["weft".to_string()];
                state.len()
            })
        });
        assert_eq!(exchanges.await.unwrap(), Ok(0));
        let refused = second.await;
        assert_eq!(entered.await.unwrap(), 1, "nothing is in between any more");
        refused
    });
    let Err(JoinError::Panicked(panic)) = refused.unwrap() else { panic!("two were let in") };
    assert!(panic.message().unwrap().contains("from within an operation on it"), "{panic}");
}

/// The number that a poll stands in.
fn number() -> Option<u32> {
    task_context()?.downcast().ok().map(|number| *number)
}

/// Polls `future` where it stands in `number`.
async fn within(number: u32, future: impl Future<Output = ()>) {
    let mut future = Box::pin(future);
    poll_fn(|cx| {
        let outer = exchange_task_context(Some(Arc::new(number)));
        let polled = future.as_mut().poll(cx);
        exchange_task_context(outer);
        polled
    })
    .await;
}

#[test]
fn what_a_poll_stands_in_stays_with_its_stack() {
    let log = round_robin(async {
        let log = Rc::new(RefCell::new(Vec::new()));
        let thread = |first: u32| {
            let log = log.clone();
            let body = direct(move || {
                log.borrow_mut().push(number());
                wait(within(first + 1, async {
                    // Its poll is left in the middle.
                    yield_now();
                    log.borrow_mut().push(number());
                }));
                log.borrow_mut().push(number());
            });
            spawn_local(within(first, body))
        };
        let (one, other) = (thread(10), thread(20));
        for _ in 0..3 {
            assert_eq!(number(), None);
            selvedge_core::yield_now().await;
        }
        one.await.unwrap();
        other.await.unwrap();
        log.take()
    });
    assert_eq!(log.unwrap(), [10, 20, 11, 10, 21, 20].map(Some));
}

#[test]
fn a_poll_that_is_ready_in_the_middle_of_another_goes_on_there() {
    // The stack is left by a wait within the poll of a wait.
    let sum = round_robin(direct(|| {
        let mut left = 3;
        wait(poll_fn(|_| {
            yield_now();
            left -= 1;
            if left == 0 { Poll::Ready(7) } else { Poll::Pending }
        }))
    }));
    assert_eq!(sum.unwrap(), 7);
}

#[test]
fn one_is_cancelled_although_another_waits_in_a_destructor_meanwhile() {
    /// Waits in its destructor until it is told to end.
    struct Lingers(Rc<Cell<bool>>);
    impl Drop for Lingers {
        fn drop(&mut self) {
            while !self.0.get() {
                yield_now();
            }
        }
    }
    round_robin(async {
        let (end, ran_on) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(false)));
        let lingers = Lingers(end.clone());
        let first = spawn(move || {
            let _lingers = lingers;
            wait(pending::<()>());
        });
        selvedge_core::yield_now().await;
        first.cancel();
        selvedge_core::yield_now().await;
        // It begins to wait while the first one is being unwound.
        let runs_on = ran_on.clone();
        let second = spawn(move || {
            for _ in 0..10 {
                yield_now();
            }
            runs_on.set(true);
        });
        selvedge_core::yield_now().await;
        second.cancel();
        assert!(matches!(second.await, Err(JoinError::Cancelled)));
        for _ in 0..20 {
            selvedge_core::yield_now().await;
        }
        assert!(!ran_on.get(), "it was cancelled");
        end.set(true);
        for _ in 0..3 {
            selvedge_core::yield_now().await;
        }
        assert!(!std::thread::panicking(), "the first one has ended");
    })
    .unwrap();
}
