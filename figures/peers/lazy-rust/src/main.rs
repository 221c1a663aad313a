//! The Rust crates for lazy values and parallel halves.
//!
//! usage: lazy-rust force N | join WORKERS N CUT_OFF ROUNDS
//! Prints `name value` lines: the answer that is checked, and nanoseconds.

/// The clocks of our program for `force`.
#[path = "../../../src/child/lazy/forced.rs"]
mod forced;

use self::forced::forced;
use nix::time::{ClockId, clock_gettime};
use once_cell::sync::Lazy;
use rayon::ThreadPoolBuilder;
use std::env;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let numbers: Vec<u64> = words.iter().skip(1).filter_map(|word| word.parse().ok()).collect();
    match (words.first().map(String::as_str), numbers.as_slice()) {
        (Some("force"), &[n]) => force(n),
        (Some("join"), &[workers, n, cut_off, rounds]) => fork_join(workers, n, cut_off, rounds),
        _ => return ExitCode::from(2),
    }
    ExitCode::SUCCESS
}

/// A moment, on the clock of this process's CPU time and on the wall's.
#[derive(Clone, Copy)]
struct Times {
    cpu_ns: f64,
    wall: Instant,
}

impl Times {
    fn now() -> Times {
        let cpu = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("Linux has this clock");
        Times { cpu_ns: cpu.tv_sec() as f64 * 1e9 + cpu.tv_nsec() as f64, wall: Instant::now() }
    }

    fn print_as(self, name: &str, last: Times, operations: u64) {
        println!("{name} {:.4}", (last.cpu_ns - self.cpu_ns) / operations as f64);
    }
}

type Boxed = Box<dyn FnOnce() -> u64 + Send>;

/// Lazy values of the crate once_cell.
fn force(n: u64) {
    let values: Vec<Lazy<u64, Boxed>> = (0..n).map(|i| Lazy::new(Box::new(move || i) as Boxed)).collect();
    forced(&values, |value| **value);
}

/// The calls of `fib` before the measured call.
const ROUNDS_BEFORE: u32 = 8;

/// In one OS thread. As for GHC, a function of its own: its code does not depend on `join`.
fn fib(n: u64) -> u64 {
    if n < 2 { n } else { fib(n - 1) + fib(n - 2) }
}

fn fib_joined(n: u64, cut_off: u64) -> u64 {
    if n < 2 || n <= cut_off {
        return fib(n);
    }
    let (a, b) = rayon::join(|| fib_joined(n - 1, cut_off), || fib_joined(n - 2, cut_off));
    a + b
}

/// The calls of a `fib` in which each call above the cut-off is a join, in a number of rounds. The
/// pool has done the same before it is measured, because the kernel takes some milliseconds to give
/// each worker a CPU.
fn fork_join(workers: u64, n: u64, cut_off: u64, rounds: u64) {
    let pool =
        ThreadPoolBuilder::new().num_threads(workers as usize).build().expect("the system has threads");
    let (first, answer, last) = pool.install(|| {
        for _ in 0..ROUNDS_BEFORE {
            black_box(fib_joined(black_box(n), cut_off));
        }
        let first = Times::now();
        let answer: u64 = (0..rounds).map(|_| fib_joined(black_box(n), cut_off)).sum();
        (first, answer, Times::now())
    });
    // A fib of n has 2 fib (n + 1) - 1 calls.
    let calls = rounds * (2 * fib(n + 1) - 1);
    first.print_as("ns", last, calls);
    println!("wall_ns {:.4}", (last.wall - first.wall).as_nanos() as f64 / calls as f64);
    println!("answer {answer}");
}
