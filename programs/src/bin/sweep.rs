//! A parameter sweep: a master hands out parameters, and each worker asks for the next one with the
//! result of the last. So a worker that is faster does more of them.
//!
//! # Prints
//! ```text
//! the longest way to 1 below 3000 begins at 2919: 216 steps
//! 3 workers took all of the 30 ranges
//! ```

use selvedge::mpi::op::max_loc;
use selvedge::mpi::{self, ANY, Communicator, Tag};
use std::ops::Range;
use std::process::ExitCode;

const WORK: Tag = Tag(1);
const DONE: Tag = Tag(2);

/// The number of steps of Collatz's way from `n` to 1.
fn steps(mut n: u64) -> u64 {
    let mut steps = 0;
    while n != 1 {
        n = if n.is_multiple_of(2) { n / 2 } else { 3 * n + 1 };
        steps += 1;
    }
    steps
}

/// Hands out the ranges, and gives the best result and the number of ranges that were done.
async fn master(world: &Communicator, ranges: Vec<Range<u64>>) -> Result<((u64, u64), usize), mpi::Error> {
    let mut best = (0, 0);
    let mut done = 0;
    let mut ranges = ranges.into_iter();
    let mut working = world.size() - 1;
    while working > 0 {
        // The first message of a worker has no result in it.
        let (result, status) = world.recv::<Option<(u64, u64)>>(ANY, DONE).await?;
        if let Some(result) = result {
            best = max_loc(best, result);
            done += 1;
        }
        let next = ranges.next();
        working -= usize::from(next.is_none());
        world.send(status.source, WORK, next).await?;
    }
    Ok((best, done))
}

async fn worker(world: &Communicator) -> Result<(), mpi::Error> {
    let mut result = None;
    loop {
        world.send(0, DONE, result).await?;
        let (work, _) = world.recv::<Option<Range<u64>>>(0, WORK).await?;
        let Some(range) = work else { return Ok(()) };
        result = range.map(|n| (steps(n), n)).reduce(max_loc);
    }
}

async fn rank(world: Communicator) -> Result<(), mpi::Error> {
    if world.rank() > 0 {
        return worker(&world).await;
    }
    let ranges = (0..30).map(|range| (range * 100).max(1)..(range + 1) * 100).collect();
    let ((steps, n), done) = master(&world, ranges).await?;
    println!("the longest way to 1 below 3000 begins at {n}: {steps} steps");
    println!("{} workers took all of the {done} ranges", world.size() - 1);
    Ok(())
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        mpi::run(4, rank).await?;
        Ok(())
    })
}
