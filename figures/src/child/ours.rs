//! The programs about our threads on one OS thread: memory, yields, spawns and rings.
//! `child.rs` calls them for the figures in `figures/src/threads.rs`; `tokio_peer.rs` has
//! tokio's programs.
//!
//! They run under the library's reference scheduler, round-robin. The threads wait only for one
//! another, so there is no event source. `BareScheduler` ends the process without a cancellation of
//! each thread, because the end is no part of a figure.

use super::clock::{Times, rss_bytes};
use super::fault;
use super::handmade::HandMade;
use super::ring::{around, station};
use selvedge_core::{Cpu, Mode, NoEvents, fork, spawn_local as spawn_joinable, steps, yield_now};
use selvedge_sync::MVar;
use std::cell::Cell;
use std::rc::Rc;

/// Runs the program `name` with its numbers. `false` if it is no program about our threads.
///
/// # Errors
/// The program could not run.
pub(super) fn run(name: &str, numbers: &[u64]) -> Result<bool, String> {
    match (name, numbers) {
        ("memory", &[n]) => memory(n),
        ("alive", &[n]) => alive(n),
        ("switch", &[n, total]) => switch(n, total),
        ("spawn", &[total]) => spawn(total),
        ("spawn-event", &[total]) => spawn_event(total),
        ("spawn-handle", &[total]) => spawn_handle(total),
        ("ring", &[k, hops]) => ring(k, hops),
        ("ring-shared", &[k, hops]) => ring_shared(k, hops),
        ("ring-handmade", &[k, hops]) => ring_handmade(k, hops),
        _ => return Ok(false),
    }
    Ok(true)
}

thread_local! {
    static STARTED: Cell<u64> = const { Cell::new(0) };
    static YIELDS: Cell<u64> = const { Cell::new(0) };
    static STOP: Cell<u64> = const { Cell::new(0) };
    static FINISHED: Cell<u64> = const { Cell::new(0) };
}

/// A scheduler with its threads.
struct BareScheduler {
    cpu: Cpu,
    events: NoEvents,
}

impl BareScheduler {
    fn new() -> BareScheduler {
        BareScheduler {
            cpu: Cpu::new().expect("address space for threads can be reserved"),
            events: NoEvents::new(),
        }
    }

    fn start(&mut self, thread: impl Future<Output = ()> + 'static) {
        let thread = self.cpu.thread(thread).expect("the arena has room");
        self.cpu.make_ready(thread);
    }

    /// Runs threads in whole turns until `done` says so.
    fn run_until(&mut self, done: impl Fn() -> bool) {
        while !done() {
            self.turn();
        }
    }

    /// Runs all threads to their ends.
    fn run(&mut self) {
        while self.turn() {}
    }

    /// One turn of the reference scheduler; false if no thread is left.
    fn turn(&mut self) -> bool {
        let turned =
            steps(&mut self.cpu, &mut self.events).and_then(|()| self.cpu.poll(&mut self.events, true));
        turned.expect("these threads wait only for one another")
    }

    /// Counts the threads that are ready, and ends the process without cancelling each.
    fn end_with_live(mut self) -> ! {
        let mut live = 0_u64;
        while let Some(thread) = self.cpu.woken() {
            live += 1;
            std::mem::forget(thread);
        }
        println!("live {live}");
        std::process::exit(0);
    }
}

/// A thread in a yield loop, which counts its yields until there are `STOP` of all threads
/// together.
async fn yielding() {
    STARTED.set(STARTED.get() + 1);
    while YIELDS.get() < STOP.get() {
        YIELDS.set(YIELDS.get() + 1);
        yield_now().await;
    }
    FINISHED.set(FINISHED.get() + 1);
}

/// `n` threads in a yield loop: bytes each, less the bytes of a scheduler with one thread.
fn memory(n: u64) {
    STOP.set(u64::MAX);
    let mut runtime = BareScheduler::new();
    runtime.start(yielding());
    runtime.run_until(|| STARTED.get() == 1);
    let before = rss_bytes();
    for _ in 1 + fault()..n {
        runtime.start(yielding());
    }
    runtime.run_until(|| STARTED.get() == n - fault());
    println!("bytes {:.3}", (rss_bytes() - before) as f64 / n as f64);
    runtime.end_with_live();
}

/// `n` threads alive at once, each of which yields once, goes on and finishes.
fn alive(n: u64) {
    let mut runtime = BareScheduler::new();
    for _ in fault()..n {
        runtime.start(async {
            STARTED.set(STARTED.get() + 1);
            yield_now().await;
            FINISHED.set(FINISHED.get() + 1);
        });
    }
    // All but the last few of them yield for the first time, and none for the second time.
    runtime.run_until(|| STARTED.get() + 256 > n - fault());
    println!("gib {:.3}", rss_bytes() as f64 / f64::from(1 << 30));
    println!("live {}", n - fault() - FINISHED.get());
    runtime.run();
    println!("finished {}", FINISHED.get());
}

/// `total` yields of `n` threads in turn, after each has started.
fn switch(n: u64, total: u64) {
    STOP.set(u64::MAX);
    let mut runtime = BareScheduler::new();
    for _ in 0..n {
        runtime.start(yielding());
    }
    runtime.run_until(|| STARTED.get() == n);
    YIELDS.set(0);
    STOP.set(total - fault());
    let first = Times::now();
    runtime.run_until(|| YIELDS.get() >= STOP.get());
    first.print_until(Times::now(), total);
    println!("yields {}", YIELDS.get());
    runtime.run();
    println!("finished {}", FINISHED.get());
}

/// Spawns and finishes `total` threads, a thousand at a time, without handles.
fn spawn(total: u64) {
    FINISHED.set(fault());
    let mut runtime = BareScheduler::new();
    runtime.start(async move {
        let first = Times::now();
        for batch in 1..=total / 1000 {
            for _ in 0..1000 {
                fork(async { FINISHED.set(FINISHED.get() + 1) }).await;
            }
            while FINISHED.get() < batch * 1000 {
                yield_now().await;
            }
        }
        first.print_until(Times::now(), total);
    });
    runtime.run();
    println!("finished {}", FINISHED.get());
}

/// The same from the scheduler's side.
fn spawn_event(total: u64) {
    FINISHED.set(fault());
    let mut runtime = BareScheduler::new();
    let first = Times::now();
    for _ in 0..total / 1000 {
        for _ in 0..1000 {
            runtime.start(async { FINISHED.set(FINISHED.get() + 1) });
        }
        runtime.run();
    }
    first.print_until(Times::now(), total);
    println!("finished {}", FINISHED.get());
}

/// The same, waiting for each thread through its handle.
fn spawn_handle(total: u64) {
    FINISHED.set(fault());
    let mut runtime = BareScheduler::new();
    runtime.start(async move {
        let mut handles = Vec::with_capacity(1000);
        let first = Times::now();
        for _ in 0..total / 1000 {
            for _ in 0..1000 {
                handles.push(spawn_joinable(async { FINISHED.set(FINISHED.get() + 1) }));
            }
            for handle in handles.drain(..) {
                handle.await.expect("the thread does not panic");
            }
        }
        first.print_until(Times::now(), total);
    });
    runtime.run();
    println!("finished {}", FINISHED.get());
}

/// A ring of `k` threads that hand a number over through MVars that stay on one OS thread.
fn ring(k: u64, hops: u64) {
    ring_of(k, hops, MVar::empty_local);
}

/// The same through MVars that OS threads may share.
fn ring_shared(k: u64, hops: u64) {
    ring_of(k, hops, MVar::empty);
}

fn ring_of<M: Mode + 'static>(k: u64, hops: u64, empty: fn() -> MVar<u64, M>) {
    let rounds = hops / k;
    let mut runtime = BareScheduler::new();
    let cells: Vec<Rc<MVar<u64, M>>> = (0..k).map(|_| Rc::new(empty())).collect();
    runtime.start(async move {
        let mut stations = Vec::new();
        for (from, to) in cells.iter().zip(cells.iter().cycle().skip(1)) {
            let (from, to) = (Rc::clone(from), Rc::clone(to));
            stations.push(spawn_joinable(async move {
                for _ in 0..rounds {
                    let token = from.take().await;
                    to.put(token + 1).await;
                }
            }));
        }
        around(rounds * k, cells[0].put(fault()), stations).await;
        println!("token {}", cells[0].take().await);
    });
    runtime.run();
}

/// The same ring over the hand-made MVar.
fn ring_handmade(k: u64, hops: u64) {
    let rounds = hops / k;
    let mut runtime = BareScheduler::new();
    let cells: Vec<HandMade<u64>> = (0..k).map(|_| HandMade::new()).collect();
    runtime.start(async move {
        let mut stations = Vec::new();
        for (from, to) in cells.iter().zip(cells.iter().cycle().skip(1)) {
            stations.push(spawn_joinable(station(from.clone(), to.clone(), rounds)));
        }
        around(rounds * k, cells[0].put(fault()), stations).await;
        println!("token {}", cells[0].take().await);
    });
    runtime.run();
}
