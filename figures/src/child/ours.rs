//! Our threads, measured under a scheduler of this file: first in, first out, twenty lines of safe code over the event
//! view. The threads are ordinary async blocks.

use std::cell::Cell;
use std::fs;

use selvedge_core::{Cpu, RunQueue, Trace, fork, spawn as spawn_joinable, yield_now};

use super::clock::{Times, rss_bytes};
use super::handmade::HandMade;

thread_local! {
    static FINISHED: Cell<u64> = const { Cell::new(0) };
}

fn cpu() -> Cpu {
    Cpu::new().expect("address space for threads can be reserved")
}

/// The scheduler.
struct Fifo {
    cpu: Cpu,
    ready: RunQueue,
}

impl Fifo {
    fn new() -> Fifo {
        Fifo { cpu: cpu(), ready: RunQueue::new() }
    }

    fn start(&mut self, thread: impl Future<Output = ()> + 'static) {
        self.ready.push(self.cpu.thread(thread).expect("the arena has room"));
    }

    /// Runs the first thread to its next system call. False when there is none.
    #[inline(always)]
    fn turn(&mut self) -> bool {
        let Some(thread) = self.ready.pop() else { return false };
        match thread.step(&mut self.cpu) {
            Trace::Yield(thread) => self.ready.push(thread),
            Trace::Fork { child, parent } => self.ready.extend([child, parent]),
            Trace::Blocked | Trace::Ret => {}
            other => panic!("no thread of these asks for {other:?}"),
        }
        while let Some(woken) = self.cpu.woken() {
            self.ready.push(woken);
        }
        true
    }

    fn run(&mut self) {
        while self.turn() {}
    }
}

async fn yield_forever() {
    loop {
        yield_now().await;
    }
}

/// `n` threads in a yield loop: bytes each.
pub(super) fn memory(n: u64) {
    let before = rss_bytes();
    let mut fifo = Fifo::new();
    for _ in 0..n {
        fifo.start(yield_forever());
    }
    for _ in 0..n {
        fifo.turn();
    }
    println!("bytes {:.3}", (rss_bytes() - before) as f64 / n as f64);
    end_with_live(fifo);
}

/// Counts the threads that are ready, and ends the process without waiting for the kernel to hear of each.
fn end_with_live(mut fifo: Fifo) {
    let mut live = 0_u64;
    while let Some(thread) = fifo.ready.pop() {
        live += 1;
        std::mem::forget(thread);
    }
    println!("live {live}");
    std::process::exit(0);
}

/// `n` threads alive at once, each of which yields once, goes on and finishes.
pub(super) fn alive(n: u64) {
    let mut fifo = Fifo::new();
    for _ in 0..n {
        fifo.start(async {
            yield_now().await;
            FINISHED.set(FINISHED.get() + 1);
        });
    }
    for _ in 0..n {
        fifo.turn();
    }
    println!("gib {:.3}", rss_bytes() as f64 / f64::from(1 << 30));
    println!("unfinished {}", n - FINISHED.get());
    fifo.run();
    println!("finished {}", FINISHED.get());
}

/// `total` yields of `n` threads in turn, after each has started.
pub(super) fn switch(n: u64, total: u64) {
    let mut fifo = Fifo::new();
    for _ in 0..n {
        fifo.start(yield_forever());
    }
    for _ in 0..n {
        fifo.turn();
    }
    let first = Times::now();
    for _ in 0..total {
        fifo.turn();
    }
    first.print_until(Times::now(), total);
    end_with_live(fifo);
}

/// Spawns and finishes `total` threads, a thousand at a time, without handles.
pub(super) fn spawn(total: u64) {
    let mut fifo = Fifo::new();
    fifo.start(async move {
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
    fifo.run();
    println!("finished {}", FINISHED.get());
}

/// The same from the scheduler's side.
pub(super) fn spawn_event(total: u64) {
    let mut fifo = Fifo::new();
    let first = Times::now();
    for _ in 0..total / 1000 {
        for _ in 0..1000 {
            fifo.start(async { FINISHED.set(FINISHED.get() + 1) });
        }
        fifo.run();
    }
    first.print_until(Times::now(), total);
    println!("finished {}", FINISHED.get());
}

/// The same, waiting for each thread through its handle.
pub(super) fn spawn_handle(total: u64) {
    let mut fifo = Fifo::new();
    fifo.start(async move {
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
    fifo.run();
    println!("finished {}", FINISHED.get());
}

/// A ring of `k` threads that hand a number over through our MVar.
pub(super) fn ring(_k: u64, _hops: u64) {
}

/// The same ring over the hand-made MVar.
pub(super) fn ring_handmade(k: u64, hops: u64) {
    let rounds = hops / k;
    let mut fifo = Fifo::new();
    let cells: Vec<HandMade<u64>> = (0..k).map(|_| HandMade::new()).collect();
    fifo.start(async move {
        let mut stations = Vec::new();
        for (from, to) in cells.iter().zip(cells.iter().cycle().skip(1)) {
            stations.push(spawn_joinable(super::station(from.clone(), to.clone(), rounds)));
        }
        let first = Times::now();
        cells[0].put(0).await;
        for station in stations {
            station.await.expect("a station does not panic");
        }
        let last = Times::now();
        first.print_until(last, rounds * k);
        println!("token {}", cells[0].take().await);
    });
    fifo.run();
}
