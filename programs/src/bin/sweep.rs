//! A parameter sweep: rank 0 maps a function over all ranges of parameters, and each rank gets the
//! next range when it has done one. So a rank that is faster does more of them.
//!
//! # Prints
//! ```text
//! the longest way to 1 below 3000 begins at 2919: 216 steps
//! 4 ranks did 30 ranges
//! ```

use selvedge::mpi::op::max_loc;
use selvedge::mpi::{self, Communicator, Functions};
use std::ops::Range;
use std::process::ExitCode;

/// The number of steps of Collatz's way from `n` to 1.
fn steps(mut n: u64) -> u64 {
    let mut steps = 0;
    while n != 1 {
        n = if n.is_multiple_of(2) { n / 2 } else { 3 * n + 1 };
        steps += 1;
    }
    steps
}

/// The longest way from a number of the range, with that number.
async fn longest(range: Range<u64>) -> (u64, u64) {
    range.map(|n| (steps(n), n)).fold((0, 0), max_loc)
}

async fn rank(world: Communicator) -> Result<(), mpi::Error> {
    let mut functions = Functions::new();
    let longest = functions.register("longest", longest);
    let pool = functions.start(&world).await?;
    if world.rank() == 0 {
        let ranges = (0..30).map(|range| (range * 100).max(1)..(range + 1) * 100);
        let results = pool.map(longest, ranges).await?;
        let done = results.len();
        let (steps, n) = results.into_iter().fold((0, 0), max_loc);
        println!("the longest way to 1 below 3000 begins at {n}: {steps} steps");
        println!("{} ranks did {done} ranges", world.size());
    }
    pool.finish().await
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        // `--ranks 4` makes the ranks processes.
        mpi::Ranks::from_arguments(4).run(rank).await?;
        Ok(())
    })
}
