//! Lazy values: first force, lazy programs under each engine, waiting for one evaluation, sparks.

use std::sync::{LazyLock, OnceLock};
use std::thread;

use selvedge_lazy::{
    Cons, Grey, Lazy, LazyList, LockFree, Nursery, OneCas, Region, Thunk, ThunkEntry, TwoCas, Unsynchronised,
    join,
};

use super::clock::Times;
use super::fault;
use super::runtime::{Ours, Runtime, Waits};

/// Runs the program `PROGRAM` or `PROGRAM-ENGINE`.
///
/// # Errors
/// When there is no such program.
pub(super) fn run(name: &str, numbers: &[u64]) -> Result<(), String> {
    match (name, numbers) {
        ("force", &[n]) => force(n, |i| Lazy::new(move || i), |lazy| *lazy.force_blocking()),
        ("force-lazy-lock", &[n]) => force(n, lazy_lock, |lazy| **lazy),
        ("force-once-lock", &[n]) => {
            force(n, |i| (OnceLock::new(), i), |(once, i)| *once.get_or_init(|| *i));
        }
        ("force-arena", &[n]) => force_arena(n),
        ("conflicts", &[total]) => conflicts(total),
        ("join", &[workers, n, cut_off]) => fork_join(workers, n, cut_off),
        (_, &[size]) => {
            let (program, engine) = name.rsplit_once('-').unwrap_or((name, ""));
            return match engine {
                "unsynchronised" => Region::<Unsynchronised>::with(|region| suite_in(program, size, region)),
                "lockfree" => suite_in(program, size, &Region::<LockFree>::new()),
                "grey" => suite_in(program, size, &Region::<Grey>::new()),
                "onecas" => suite_in(program, size, &Region::<OneCas>::new()),
                "twocas" => suite_in(program, size, &Region::<TwoCas>::new()),
                _ => Err(format!("no such engine: {name}")),
            };
        }
        _ => return Err(format!("no such program of lazy values: {name} {numbers:?}")),
    }
    Ok(())
}

fn lazy_lock(i: u64) -> LazyLock<u64, Box<dyn FnOnce() -> u64>> {
    LazyLock::new(Box::new(move || i))
}

/// The first force of each of `n` values, and then another one; prints both times, and the sum.
fn force<L>(n: u64, make: impl Fn(u64) -> L, force: impl Fn(&L) -> u64) {
    let values: Vec<L> = (0..n).map(|i| make(i + fault())).collect();
    forced_twice(n, || values.iter().map(&force).sum());
}

fn force_arena(n: u64) {
    let region: Region = Region::new();
    let nursery = region.nursery();
    let values: Vec<_> = (0..n).map(|i| nursery.thunk(move |_| i + fault())).collect();
    forced_twice(n, || values.iter().map(|value| value.force(&nursery)).sum());
}

fn forced_twice(n: u64, sum: impl Fn() -> u64) {
    let first = Times::now();
    let of_first = sum();
    let second = Times::now();
    let of_second = sum();
    let last = Times::now();
    first.print_as("first_ns", second, n);
    second.print_as("again_ns", last, n);
    println!("sum {}", of_first.max(of_second));
}

/// A lazy program in a region; prints the time of one element, and the answer.
fn suite_in<E: ThunkEntry>(program: &str, size: u64, region: &Region<E>) -> Result<(), String> {
    let nursery = region.nursery();
    let first = Times::now();
    let answer = match program {
        "fibs" => fibs(&nursery, size),
        "sieve" => sieve(integers(2, &nursery), &nursery).iter(&nursery).nth(size as usize - 1).unwrap_or(0),
        "tree" => tree(&nursery, size).force(&nursery),
        "queens" => queens(&nursery, size, 0, 0),
        "quicksort" => quicksort(scattered(size, &nursery), &nursery)
            .iter(&nursery)
            .zip(1..)
            .fold(0u64, |mixed, (n, at): (u64, u64)| mixed.wrapping_add(n * at)),
        _ => return Err(format!("no such lazy program: {program}")),
    };
    let last = Times::now();
    drop(nursery);
    first.print_until(last, region.counts().evaluated);
    println!("answer {}", answer + fault());
    Ok(())
}

fn integers<'r, E: ThunkEntry>(from: u64, nursery: &Nursery<'r, E>) -> LazyList<'r, u64, E> {
    nursery.unfold(from, |n| Some((n, n + 1)))
}

/// The last of `size` numbers of the stream of Fibonacci numbers, each of which is a thunk of the
/// two before.
fn fibs<E: ThunkEntry>(nursery: &Nursery<'_, E>, size: u64) -> u64 {
    let (mut before, mut last) = (nursery.ready(0u64), nursery.ready(1u64));
    for _ in 0..size {
        let next = nursery.thunk(move |nursery| before.force(nursery).wrapping_add(last.force(nursery)));
        next.force(nursery);
        (before, last) = (last, next);
    }
    before.force(nursery) % 1_000_000_007
}

fn sieve<'r, E: ThunkEntry>(
    candidates: LazyList<'r, u64, E>,
    nursery: &Nursery<'r, E>,
) -> LazyList<'r, u64, E> {
    nursery.thunk(move |nursery| {
        let first = candidates.force(nursery)?;
        let prime = first.head;
        let rest = first.tail.filter(nursery, move |n| n % prime != 0);
        Some(nursery.put(Cons { head: prime, tail: sieve(rest, nursery) }))
    })
}

/// The leaves of a full tree of thunks.
fn tree<'r, E: ThunkEntry>(nursery: &Nursery<'r, E>, depth: u64) -> Thunk<'r, u64, E> {
    nursery.thunk(move |nursery| match depth {
        0 => 1,
        _ => {
            let (left, right) = (tree(nursery, depth - 1), tree(nursery, depth - 1));
            left.force(nursery) + right.force(nursery)
        }
    })
}

/// The ways to go on from rows of queens, each column of which is 4 bits.
fn queens<E: ThunkEntry>(nursery: &Nursery<'_, E>, size: u64, rows: u64, board: u64) -> u64 {
    if rows == size {
        return 1;
    }
    let columns = nursery.unfold(0, move |column| (column < size).then_some((column, column + 1)));
    let is_safe = move |column: u64| {
        (0..rows).all(|back| {
            let queen = board >> (4 * back) & 15;
            queen != column && queen.abs_diff(column) != back + 1
        })
    };
    let safe = columns.filter(nursery, is_safe);
    safe.iter(nursery).map(|column| queens(nursery, size, rows + 1, board << 4 | column)).sum()
}

/// `size` numbers in no order.
fn scattered<'r, E: ThunkEntry>(size: u64, nursery: &Nursery<'r, E>) -> LazyList<'r, u64, E> {
    nursery.unfold((size, 1u64), |(left, n)| {
        let next = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (left > 0).then_some((n >> 40, (left - 1, next)))
    })
}

fn append<'r, E: ThunkEntry>(
    list: LazyList<'r, u64, E>,
    pivot: u64,
    rest: LazyList<'r, u64, E>,
    nursery: &Nursery<'r, E>,
) -> LazyList<'r, u64, E> {
    nursery.thunk(move |nursery| {
        Some(match list.force(nursery) {
            Some(cell) => {
                let tail = append(cell.tail, pivot, rest, nursery);
                nursery.put(Cons { head: cell.head, tail })
            }
            None => nursery.put(Cons { head: pivot, tail: rest }),
        })
    })
}

fn quicksort<'r, E: ThunkEntry>(
    list: LazyList<'r, u64, E>,
    nursery: &Nursery<'r, E>,
) -> LazyList<'r, u64, E> {
    nursery.thunk(move |nursery| {
        let cell = list.force(nursery)?;
        let pivot = cell.head;
        let small = quicksort(cell.tail.filter(nursery, move |n| n < pivot), nursery);
        let large = quicksort(cell.tail.filter(nursery, move |n| n >= pivot), nursery);
        append(small, pivot, large, nursery).force(nursery)
    })
}

/// Two OS threads that walk one list of thunks; prints how many of the evaluations were duplicates.
fn conflicts(total: u64) {
    let region: Region = Region::new();
    let nursery = region.nursery();
    let list = nursery.unfold(0, move |n| (n < total).then_some((n, n + 1)));
    let sums: Vec<u64> = thread::scope(|scope| {
        let walkers: Vec<_> =
            (0..2).map(|_| scope.spawn(|| list.iter(&region.nursery()).sum::<u64>())).collect();
        walkers.into_iter().map(|walker| walker.join().expect("it does not panic")).collect()
    });
    let counts = region.counts();
    println!("duplicates {}", counts.duplicates as f64 / counts.evaluated as f64);
    println!("holes {}", counts.holes_met as f64 / counts.evaluated as f64);
    println!("sum {}", sums[0].min(sums[1]) + fault());
}

fn fib(n: u64, cut_off: u64) -> u64 {
    if n < 2 {
        return n;
    }
    if n <= cut_off {
        return fib(n - 1, cut_off) + fib(n - 2, cut_off);
    }
    let (a, b) = join(|| fib(n - 1, cut_off), || fib(n - 2, cut_off));
    a + b
}

/// The calls of a `fib` in which each call above the cut-off is a join.
fn fork_join(workers: u64, n: u64, cut_off: u64) {
    let (first, answer, last) = Ours::run(workers as usize, Waits::Nothing, async move {
        let first = Times::now();
        let answer = fib(n, cut_off);
        (first, answer, Times::now())
    });
    // A fib of n has 2 fib (n + 1) - 1 calls.
    first.print_until(last, 2 * fib(n + 1, n + 1) - 1);
    println!("answer {}", answer + fault());
}
