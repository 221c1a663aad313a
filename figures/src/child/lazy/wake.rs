//! The program of the figure `black-hole-wake`: how long a waiting thread takes to go on after the
//! update of its value, beside threads that wait for other values. `lazy.rs` calls `wake`.
//!
//! `Tells` chooses the part that tells the thread: the value's own waiters, or one global list that
//! the idle CPU goes through, as [HMP05 §4.2] has it. The list is made in this file, to be
//! measured.

use super::super::fault;
use selvedge_core::{JoinHandle, round_robin, spawn_local, yield_now};
use selvedge_lazy::Lazy;
use selvedge_sync::Event;
use std::cell::RefCell;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

/// The threads that wait, each with its value, as [HMP05 §4.2] has them: in one list, through which
/// the idle CPU goes.
#[derive(Default)]
struct GlobalList(RefCell<Vec<(Lazy<u64>, Waker)>>);

thread_local! {
    static WAITING: GlobalList = GlobalList::default();
}

/// The part of the program that tells a waiting thread of its value.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Tells {
    /// The update.
    Update,
    /// A thread that goes through the list whenever the CPU has nothing else to do.
    List,
}

impl Tells {
    async fn wait(self, value: Lazy<u64>) -> u64 {
        if self == Tells::List {
            poll_fn(|cx| {
                if value.is_ready() {
                    return Poll::Ready(());
                }
                let waiting = (value.clone(), cx.waker().clone());
                WAITING.with(|list| list.0.borrow_mut().push(waiting));
                Poll::Pending
            })
            .await;
        }
        *value.force().await
    }
}

/// Goes through the list until this is the last thread that has it.
async fn go_through(until: Arc<()>) {
    while Arc::strong_count(&until) > 1 {
        let woken: Vec<_> =
            WAITING.with(|list| list.0.borrow_mut().extract_if(.., |(value, _)| value.is_ready()).collect());
        woken.into_iter().for_each(|(_, waker)| waker.wake());
        yield_now().await;
    }
}

/// A value under evaluation in a thread, the end of it, and a thread that waits for the value.
struct Awaited {
    end: Arc<Event>,
    evaluates: JoinHandle<u64>,
    waits: JoinHandle<u64>,
}

impl Awaited {
    fn new(number: u64, tells: Tells) -> Awaited {
        let end = Arc::new(Event::new());
        let value = Lazy::future({
            let end = end.clone();
            async move {
                end.wait().await;
                number
            }
        });
        let forced = value.clone();
        let evaluates = spawn_local(async move { *forced.force().await });
        Awaited { end, evaluates, waits: spawn_local(tells.wait(value)) }
    }

    /// Ends the evaluation, and gives what the waiting thread got and when.
    async fn ended(self) -> (u64, Duration) {
        let first = Instant::now();
        self.end.set();
        let got = self.waits.await.expect("it does not panic");
        let time = first.elapsed();
        self.evaluates.await.expect("it does not panic");
        (got, time)
    }
}

/// Measures `rounds` updates of values while `others` threads wait for other values.
pub(super) fn wake(tells: Tells, others: u64, rounds: u64) {
    let ended = round_robin(async move {
        let until = Arc::new(());
        let goes = (tells == Tells::List).then(|| spawn_local(go_through(until.clone())));
        let waiting: Vec<_> = (0..others).map(|_| Awaited::new(0, tells)).collect();
        let (mut sum, mut time) = (fault(), Duration::ZERO);
        for round in 0..rounds {
            let awaited = Awaited::new(round, tells);
            for _ in 0..3 {
                yield_now().await;
            }
            let (got, took) = awaited.ended().await;
            sum += got;
            time += took;
        }
        for awaited in waiting {
            sum += awaited.ended().await.0;
        }
        drop(until);
        if let Some(goes) = goes {
            goes.await.expect("it does not panic");
        }
        (sum, time)
    });
    let (sum, time) = ended.expect("no deadlock");
    println!("wall_ns {:.1}", time.as_nanos() as f64 / rounds as f64);
    println!("sum {sum}");
}
