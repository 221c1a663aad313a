//! The programs about lazy values: the first force and later ones, lazy programs under each engine,
//! waiting for one evaluation, and sparks. `child.rs` calls `run` for the figures in
//! `figures/src/lazy.rs`.
//!
//! A program has the name `PROGRAM` or `PROGRAM-ENGINE`. The parts: `suite.rs` has the programs
//! over our engines, `locks.rs` those over the standard library, `conflicts.rs` two OS threads,
//! `wake.rs` threads that wait, and `holes.rs` OS threads that wait.

mod conflicts;
mod forced;
mod holes;
mod locks;
mod suite;
mod wake;

use self::forced::forced;
use self::wake::Tells;
use super::clock::Times;
use super::fault;
use super::runtime::{Ours, Runtime, Waits};
use selvedge_lazy::{Lazy, Region, join};
use std::hint::black_box;
use std::sync::{Arc, LazyLock, OnceLock};
use std::thread;

/// Runs the program `PROGRAM` or `PROGRAM-ENGINE`.
///
/// # Errors
/// When there is no such program.
pub(super) fn run(name: &str, numbers: &[u64]) -> Result<(), String> {
    match (name, numbers) {
        ("force", &[n]) => force(n, |i| Lazy::new(move || i), |lazy| *lazy.force_blocking()),
        ("force-lazy-lock", &[n]) => force(n, lazy_lock, |lazy| **lazy),
        ("force-arc-lock", &[n]) => force(n, |i| Arc::new(lazy_lock(i)), |lazy| ***lazy),
        ("force-once-lock", &[n]) => {
            force(n, |i| (OnceLock::new(), i), |(once, i)| *once.get_or_init(|| *i));
        }
        ("force-arena", &[n]) => force_arena(n),
        ("join", &[workers, n, cut_off, rounds]) => fork_join(workers, n, cut_off, rounds),
        ("wake-owner", &[others, rounds]) => wake::wake(Tells::Update, others, rounds),
        ("wake-list", &[others, rounds]) => wake::wake(Tells::List, others, rounds),
        ("wake-hole", &[others, rounds]) => holes::wake_hole(others, rounds),
        ("wake-lock", &[others, rounds]) => holes::wake_lock(others, rounds),
        (_, &[size]) => {
            let (program, engine) = name.rsplit_once('-').unwrap_or((name, ""));
            let run = || match (program, engine) {
                ("walk" | "both", _) => conflicts::run(program, engine, size),
                (_, "lazylock") => locks::run(program, size),
                _ => suite::run(program, engine, size),
            };
            // Evaluations nest on the native stack, and so do drops of the standard library's.
            return thread::scope(|scope| {
                let thread = thread::Builder::new().stack_size(1 << 29).spawn_scoped(scope, run);
                thread.map_err(|error| error.to_string())?.join().map_err(|_| "it panicked".to_owned())?
            });
        }
        _ => return Err(format!("no such program of lazy values: {name} {numbers:?}")),
    }
    Ok(())
}

fn lazy_lock(i: u64) -> LazyLock<u64, Box<dyn FnOnce() -> u64 + Send>> {
    LazyLock::new(Box::new(move || i))
}

/// The first force of each of `n` values, then another one, then many of a few; prints the times,
/// and the sum.
fn force<L>(n: u64, make: impl Fn(u64) -> L, force: impl Fn(&L) -> u64) {
    let values: Vec<L> = (0..n).map(|i| make(i + fault())).collect();
    forced(&values, force);
}

fn force_arena(n: u64) {
    let region: Region = Region::new();
    let nursery = region.nursery();
    let values: Vec<_> = (0..n).map(|i| i + fault()).map(|i| nursery.thunk(move |_| i)).collect();
    forced(&values, |value| value.force(&nursery));
}

/// The greatest weight of a knapsack.
const CAPACITY: usize = 5000;

/// The weight and the value of an item.
fn item_of(item: u64) -> (usize, u64) {
    (1 + (item * 7919 % 97) as usize, 10 + item * 104_729 % 89)
}

/// A letter of the word with this number, of which there are four.
fn letter_of(place: u64, word: u64) -> u64 {
    (place * place * word + place).wrapping_mul(6_364_136_223_846_793_005) >> 62
}

/// The distances between the numbers from 7 on that 2, 3 and 5 do not divide.
const WHEEL: [u64; 8] = [4, 2, 4, 2, 4, 6, 2, 6];

/// Prints the time of an evaluation, and its answer.
fn timed(answer: impl FnOnce() -> u64) {
    let first = Times::now();
    let answer = answer();
    first.print_as("ms", Times::now(), 1_000_000);
    println!("answer {}", answer + fault());
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
    let (a, b) = join(|| fib_joined(n - 1, cut_off), || fib_joined(n - 2, cut_off));
    a + b
}

/// The calls of a `fib` in which each call above the cut-off is a join, in a number of rounds. The
/// workers have done the same before they are measured, because the kernel takes some milliseconds
/// to give each a CPU.
fn fork_join(workers: u64, n: u64, cut_off: u64, rounds: u64) {
    let (first, answer, last) = Ours::run(workers as usize, Waits::Nothing, async move {
        for _ in 0..ROUNDS_BEFORE {
            black_box(fib_joined(black_box(n), cut_off));
        }
        let first = Times::now();
        let answer: u64 = (0..rounds).map(|_| fib_joined(black_box(n), cut_off)).sum();
        (first, answer, Times::now())
    });
    // A fib of n has 2 fib (n + 1) - 1 calls.
    first.print_until(last, rounds * (2 * fib(n + 1) - 1));
    println!("answer {}", answer + fault());
}
