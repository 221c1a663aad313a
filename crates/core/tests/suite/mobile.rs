//! Mobile threads: CPUs of a group on several OS threads that run, wake, cancel and join the same
//! threads.

use crate::group::run;
use selvedge_core::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

const MANY: usize = if cfg!(miri) { 8 } else { 500 };

#[test]
fn threads_are_joined_from_wherever_they_ran() {
    let sum = run(3, async {
        let threads: Vec<_> = (0..MANY)
            .map(|n| {
                spawn(async move {
                    yield_now().await;
                    let inner = spawn(async move { n });
                    yield_now().await;
                    inner.await.unwrap()
                })
            })
            .collect();
        let mut sum = 0;
        for thread in threads {
            sum += thread.await.unwrap();
        }
        sum
    });
    assert_eq!(sum, MANY * (MANY - 1) / 2);
}

/// A baton. The thread that has it runs, and passes it on.
struct Baton {
    at: AtomicUsize,
    waiting: Mutex<Vec<Option<Waker>>>,
}

impl Baton {
    async fn reach(&self, me: usize) {
        std::future::poll_fn(|cx| {
            if self.at.load(Ordering::SeqCst) == me {
                return Poll::Ready(());
            }
            self.waiting.lock().unwrap()[me] = Some(cx.waker().clone());
            // The baton may have come between the first check and the storing of the waker.
            if self.at.load(Ordering::SeqCst) == me { Poll::Ready(()) } else { Poll::Pending }
        })
        .await
    }

    fn pass(&self, to: usize) {
        self.at.store(to, Ordering::SeqCst);
        let waker = self.waiting.lock().unwrap()[to].take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

#[test]
fn no_wake_up_between_cpus_is_lost() {
    const RUNNERS: usize = 3;
    let rounds = if cfg!(miri) { 10 } else { 5_000 };
    run(2, async move {
        let baton = Arc::new(Baton { at: AtomicUsize::new(0), waiting: Mutex::new(vec![None; RUNNERS]) });
        let runners: Vec<_> = (0..RUNNERS)
            .map(|me| {
                let baton = baton.clone();
                spawn(async move {
                    for _ in 0..rounds {
                        baton.reach(me).await;
                        baton.pass((me + 1) % RUNNERS);
                    }
                })
            })
            .collect();
        for runner in runners {
            runner.await.unwrap();
        }
    });
}

struct Counts(Arc<AtomicUsize>);

impl Drop for Counts {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_cancelled_thread_is_gone_when_its_handle_says_so() {
    run(2, async {
        for n in 0..MANY {
            let dropped = Arc::new(AtomicUsize::new(0));
            let counts = Counts(dropped.clone());
            let thread = spawn(async move {
                let _counts = counts;
                match n % 3 {
                    0 => std::future::pending().await,
                    1 => loop {
                        yield_now().await;
                    },
                    _ => shield(yield_now()).await,
                }
            });
            if n % 2 == 0 {
                yield_now().await;
            }
            thread.cancel();
            match thread.await {
                Err(JoinError::Cancelled) => {}
                Ok(()) => assert_eq!(n % 3, 2, "only this one ends by itself"),
                Err(error) => panic!("{error}"),
            }
            assert_eq!(dropped.load(Ordering::SeqCst), 1);
        }
    });
}

#[test]
fn handles_dropped_while_their_threads_end_free_each_block_once() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let counter = dropped.clone();
    run(2, async move {
        for round in 0..MANY {
            // The future has it first, then the block as the result.
            let counts = Counts(counter.clone());
            let handle = spawn(async move {
                if round % 2 == 0 {
                    yield_now().await;
                }
                counts
            });
            if round % 3 == 0 {
                yield_now().await;
            }
            drop(handle);
        }
    });
    assert_eq!(dropped.load(Ordering::Relaxed), MANY);
}

#[test]
fn a_wake_up_from_outside_reaches_the_group() {
    let group = Group::new();
    let mut cpu = Cpu::new_in(&group).unwrap();
    let mut events = NoEvents::new();
    let main = cpu
        .spawn(async {
            let done = Arc::new(AtomicBool::new(false));
            while !done.load(Ordering::Acquire) {
                let done = done.clone();
                park(move |waker| {
                    std::thread::spawn(move || {
                        std::thread::sleep(Duration::from_millis(5));
                        done.store(true, Ordering::Release);
                        waker.wake();
                    });
                })
                .await;
            }
        })
        .unwrap();
    while !main.is_finished() {
        steps(&mut cpu, &mut events).unwrap();
        if !main.is_finished() {
            assert!(cpu.poll(&mut events, true).unwrap());
        }
    }
}

#[test]
fn a_thread_that_waits_is_listed_and_counted_and_goes_with_its_cpu() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let group = Group::new();
    let mut cpu = Cpu::new_in(&group).unwrap();
    let counts = Counts(dropped.clone());
    let waiting = cpu
        .spawn(async move {
            let _counts = counts;
            std::future::pending::<()>().await
        })
        .unwrap();
    steps(&mut cpu, &mut NoEvents::new()).unwrap();
    assert_eq!(group.waiting(), 1);
    let threads = cpu.threads();
    assert!(threads.len() == 1 && threads[0].is_waiting(), "{threads:?}");
    assert_eq!(group.waiting(), 1, "looking changes nothing");
    drop(cpu);
    assert_eq!((group.waiting(), dropped.load(Ordering::SeqCst)), (0, 1));
    assert!(waiting.is_finished());
}

#[test]
fn local_threads_of_a_group_stay() {
    let group = Group::new();
    let mut cpu = Cpu::new_in(&group).unwrap();
    let local = cpu.thread(async { yield_now().await }).unwrap();
    let local = local.into_send().expect_err("it is not mobile");
    let Trace::Yield(local) = local.step(&mut cpu) else { panic!() };
    let waker = cpu.keep(local).unwrap();
    assert_eq!(group.waiting(), 1);
    cpu.wake(waker);
    let local = cpu.woken().expect("it was woken");
    assert!(matches!(local.step(&mut cpu), Trace::Ret));
}

#[test]
fn a_mobile_thread_woken_before_it_is_kept_is_given_back() {
    let group = Group::new();
    let mut cpu = Cpu::new_in(&group).unwrap();
    let (give, given) = std::sync::mpsc::channel::<Waker>();
    let thread = cpu
        .send_thread(async move {
            std::future::poll_fn(|cx| {
                give.send(cx.waker().clone()).unwrap();
                Poll::Ready(())
            })
            .await;
            yield_now().await;
        })
        .unwrap();
    let Trace::Yield(thread) = thread.step(&mut cpu) else { panic!() };
    cpu.wake(given.recv().unwrap());
    let thread = cpu.keep(thread).expect_err("it was woken");
    assert!(matches!(thread.step(&mut cpu), Trace::Ret));
    assert_eq!(group.waiting(), 0);
}
