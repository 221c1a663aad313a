//! tokio's current-thread runtime, measured like every other contender of the thread figures.
//!
//! The runtime is built without its I/O and time drivers, which is its fastest form. Tasks are
//! spawned with `tokio::spawn`; only the ring over the hand-made, `!Send` MVar needs a `LocalSet`.
//!
//! `child.rs` calls the programs. Each has the name of a program in `ours.rs`, with `tokio-`
//! before it, and prints the same answers.

use super::clock::{Times, rss_bytes};
use super::handmade::HandMade;
use super::ring::{around, station};
use super::runtime::self_wake;
use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, mpsc};
use tokio::task::{LocalSet, yield_now};

/// Runs the program `name` with its numbers. `false` if it is no program about tokio's tasks.
///
/// # Errors
/// The program could not run.
pub(super) fn run(name: &str, numbers: &[u64]) -> Result<bool, String> {
    match (name, numbers) {
        ("tokio-memory", &[n]) => memory(n),
        ("tokio-switch-self-wake", &[n, total]) => switch_self_wake(n, total),
        ("tokio-switch-yield-now", &[n, total]) => switch_yield_now(n, total),
        ("tokio-spawn", &[total]) => spawn(total),
        ("tokio-spawn-handle", &[total]) => spawn_handle(total),
        ("tokio-ring-mpsc", &[k, hops]) => ring_mpsc(k, hops),
        ("tokio-ring-handmade", &[k, hops]) => ring_handmade(k, hops),
        _ => return Ok(false),
    }
    Ok(true)
}

thread_local! {
    static STARTED: Cell<u64> = const { Cell::new(0) };
    static FINISHED: Cell<u64> = const { Cell::new(0) };
    static YIELDS: Cell<u64> = const { Cell::new(0) };
    static STOP: Cell<u64> = const { Cell::new(0) };
    static START: Cell<Option<Times>> = const { Cell::new(None) };
    static END: Cell<Option<Times>> = const { Cell::new(None) };
    static DONE: Rc<Notify> = Rc::new(Notify::new());
}

fn runtime() -> Runtime {
    Builder::new_current_thread().build().expect("a runtime without drivers needs nothing of the system")
}

/// `n` tasks in a yield loop: bytes each.
fn memory(n: u64) {
    runtime().block_on(async {
        let before = rss_bytes();
        for _ in 0..n {
            tokio::spawn(async {
                STARTED.set(STARTED.get() + 1);
                loop {
                    self_wake().await;
                }
            });
        }
        while STARTED.get() < n {
            self_wake().await;
        }
        println!("bytes {:.3}", (rss_bytes() - before) as f64 / n as f64);
        println!("live {}", STARTED.get());
    });
}

/// `n` tasks that yield through `turn`: timed from the moment the last of them has started, for
/// `total` yields, which they count, because tasks that use `yield_now` do not run strictly in
/// turn.
fn switch_through<F: Future<Output = ()> + Send + 'static>(n: u64, total: u64, turn: fn() -> F) {
    STOP.set(u64::MAX);
    let task = move || async move {
        STARTED.set(STARTED.get() + 1);
        if STARTED.get() == n {
            YIELDS.set(0);
            STOP.set(total);
            START.set(Some(Times::now()));
        }
        while YIELDS.get() < STOP.get() {
            YIELDS.set(YIELDS.get() + 1);
            turn().await;
        }
        if FINISHED.get() == 0 {
            END.set(Some(Times::now()));
        }
        FINISHED.set(FINISHED.get() + 1);
        if FINISHED.get() == n {
            DONE.with(|done| done.notify_one());
        }
    };
    // The main task waits once, so that it is not one more task to switch to.
    let done = DONE.with(Rc::clone);
    runtime().block_on(async move {
        for _ in 0..n {
            tokio::spawn(task());
        }
        done.notified().await;
    });
    let first = START.get().expect("every task has started");
    first.print_until(END.get().expect("the last yield was seen"), total);
    println!("yields {}", YIELDS.get());
    println!("finished {}", FINISHED.get());
}

/// Yielding by waking oneself.
fn switch_self_wake(n: u64, total: u64) {
    switch_through(n, total, self_wake);
}

/// Yielding with `tokio::task::yield_now`.
fn switch_yield_now(n: u64, total: u64) {
    switch_through(n, total, yield_now);
}

/// Spawns and finishes `total` tasks, a thousand at a time, without keeping their handles.
fn spawn(total: u64) {
    runtime().block_on(async move {
        let first = Times::now();
        for batch in 1..=total / 1000 {
            for _ in 0..1000 {
                drop(tokio::spawn(async { FINISHED.set(FINISHED.get() + 1) }));
            }
            while FINISHED.get() < batch * 1000 {
                self_wake().await;
            }
        }
        first.print_until(Times::now(), total);
        println!("finished {}", FINISHED.get());
    });
}

/// The same, waiting for each task through its handle.
fn spawn_handle(total: u64) {
    runtime().block_on(async move {
        let mut handles = Vec::with_capacity(1000);
        let first = Times::now();
        for _ in 0..total / 1000 {
            for _ in 0..1000 {
                handles.push(tokio::spawn(async { FINISHED.set(FINISHED.get() + 1) }));
            }
            for handle in handles.drain(..) {
                handle.await.expect("the task does not panic");
            }
        }
        first.print_until(Times::now(), total);
        println!("finished {}", FINISHED.get());
    });
}

/// A ring of `k` tasks that hand a number over through `tokio::sync::mpsc` channels of one place.
fn ring_mpsc(k: u64, hops: u64) {
    let rounds = hops / k;
    runtime().block_on(async move {
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..k).map(|_| mpsc::channel::<u64>(1)).unzip();
        let start = senders[0].clone();
        let mut stations = Vec::new();
        let nexts = senders.iter().cycle().skip(1).cloned();
        for (mut from, to) in receivers.into_iter().zip(nexts) {
            stations.push(tokio::spawn(async move {
                for _ in 0..rounds {
                    let token = from.recv().await.expect("the ring is open");
                    to.send(token + 1).await.expect("the ring is open");
                }
                from
            }));
        }
        let start = async { start.send(0).await.expect("the ring is open") };
        let mut ends = around(rounds * k, start, stations).await;
        println!("token {}", ends[0].recv().await.expect("the token is back at its start"));
    });
}

/// A ring of `k` tasks over the hand-made MVar.
fn ring_handmade(k: u64, hops: u64) {
    let rounds = hops / k;
    let cells: Vec<HandMade<u64>> = (0..k).map(|_| HandMade::new()).collect();
    LocalSet::new().block_on(&runtime(), async move {
        let mut stations = Vec::new();
        for (from, to) in cells.iter().zip(cells.iter().cycle().skip(1)) {
            stations.push(tokio::task::spawn_local(station(from.clone(), to.clone(), rounds)));
        }
        around(rounds * k, cells[0].put(0), stations).await;
        println!("token {}", cells[0].take().await);
    });
}
