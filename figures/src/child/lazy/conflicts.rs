//! The programs of the figure `lazy-conflicts`: two OS threads force the same thunks. They print
//! how many evaluations are duplicates, and how long the longest one is. `lazy.rs` calls `run`.
//!
//! Both threads return the whole answer, and the program prints the smaller one. So a thread with a
//! wrong answer shows. `both` needs an engine that leaves no hole at the entry: see there.

use super::super::fault;
use selvedge_lazy::{ClaimAtYield, Grey, GreyClaimAtYield, LockFree, Nursery, Region, Thunk, ThunkEntry};
use std::sync::Barrier;
use std::thread;

/// Runs a program under an engine.
///
/// # Errors
/// When there is no such engine.
pub(super) fn run(program: &str, engine: &str, size: u64) -> Result<(), String> {
    match (program, engine) {
        ("walk", "lockfree") => run_walk(&Region::<LockFree>::new(), size),
        ("walk", "claim") => run_walk(&Region::<ClaimAtYield>::new(), size),
        ("walk", "grey") => run_walk(&Region::<Grey>::new(), size),
        ("walk", "greyclaim") => run_walk(&Region::<GreyClaimAtYield>::new(), size),
        ("both", "lockfree") => run_both(&Region::<LockFree>::new(), size),
        ("both", "claim") => run_both(&Region::<ClaimAtYield>::new(), size),
        _ => return Err(format!("no such program: {program} {engine}")),
    }
    Ok(())
}

fn run_walk<E: ThunkEntry>(region: &Region<E>, size: u64)
where
    Region<E>: Sync,
{
    let sum = walk(size, region);
    // The cells, and the end.
    print(region, size + 1, sum);
}

fn run_both<E: ThunkEntry>(region: &Region<E>, depth: u64)
where
    Region<E>: Sync,
{
    let sum = both(depth, region);
    // The root, and a tree below it.
    print(region, 2 << depth, sum);
}

/// Prints the counts of a region, in which the answer needs this number of thunks.
fn print<E: ThunkEntry>(region: &Region<E>, needed: u64, sum: u64) {
    let counts = region.counts();
    println!("duplicates {}", counts.duplicates as f64 / counts.evaluated as f64);
    println!("again {}", counts.evaluated.saturating_sub(needed) as f64 / needed as f64);
    println!("longest {}", counts.longest_duplicate);
    println!("holes {}", counts.holes_met as f64 / counts.evaluated as f64);
    println!("sum {}", sum + fault());
}

/// The smaller of the results of two OS threads.
fn by_two(result: impl Fn() -> u64 + Sync) -> u64 {
    thread::scope(|scope| {
        let other = scope.spawn(&result);
        result().min(other.join().expect("it does not panic"))
    })
}

/// Two OS threads walk one list of thunks.
fn walk<E: ThunkEntry>(size: u64, region: &Region<E>) -> u64
where
    Region<E>: Sync,
{
    let list = region.nursery().unfold(0, move |n| (n < size).then_some((n, n + 1)));
    by_two(|| list.iter(&region.nursery()).sum())
}

/// Two OS threads force one tree of thunks. Both have entered its root before one goes on, so its
/// engine is one that leaves no hole at the entry.
fn both<E: ThunkEntry>(depth: u64, region: &Region<E>) -> u64
where
    Region<E>: Sync,
{
    let meet = Barrier::new(2);
    let root = region.nursery().thunk(|nursery| {
        meet.wait();
        tree(nursery, depth).force(nursery)
    });
    by_two(|| root.force(&region.nursery()))
}

/// The leaves of a full tree of thunks.
fn tree<'r, E: ThunkEntry>(nursery: &Nursery<'r, E>, depth: u64) -> Thunk<'r, u64, E> {
    nursery.thunk(move |nursery| match depth.checked_sub(1) {
        None => 1,
        Some(below) => tree(nursery, below).force(nursery) + tree(nursery, below).force(nursery),
    })
}
