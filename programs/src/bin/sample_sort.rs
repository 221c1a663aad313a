//! Sorting by ranks: each rank sorts its part, samples of all parts cut the numbers into ranges,
//! and each rank gets the range that is its own.
//!
//! # Prints
//! ```text
//! 100000 numbers on 4 ranks: sorted
//! the ranks have between .. and .. of them
//! ```

use selvedge::mpi::{self, Communicator, Parts, op};
use std::process::ExitCode;

/// Numbers that a seed determines.
fn numbers(seed: u64, count: usize) -> Vec<u64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        Some(state)
    };
    std::iter::from_fn(next).take(count).collect()
}

/// Sorts the numbers of all ranks. Afterwards rank 0 has the smallest, and so on.
async fn sample_sort(world: &Communicator, mut own: Vec<u64>) -> Result<Vec<u64>, mpi::Error> {
    let ranks = world.size();
    own.sort_unstable();
    // Samples at even distances stand for this rank's numbers.
    let samples: Vec<u64> = own.iter().copied().step_by((own.len() / (8 * ranks)).max(1)).collect();
    let mut all = world.allgather_slice(&samples).await?.into_vec();
    all.sort_unstable();
    let borders: Vec<u64> = (1..ranks).map(|rank| all[all.len() * rank / ranks]).collect();

    let ends: Vec<usize> = borders
        .iter()
        .map(|border| own.partition_point(|number| number < border))
        .chain([own.len()])
        .collect();
    let counts = ends.iter().scan(0, |begin, &end| Some(end - std::mem::replace(begin, end)));
    let parts = Parts::new(own, counts).expect("the ranges are all numbers of this rank");
    let mut sorted = world.alltoall_parts(parts).await?.into_vec();
    sorted.sort_unstable();
    Ok(sorted)
}

async fn rank(world: Communicator) -> Result<(), mpi::Error> {
    let own = numbers(world.rank() as u64 + 1, 25_000);
    let checksum = |numbers: &[u64]| numbers.iter().fold(0_u64, |sum, number| sum.wrapping_add(*number));
    let before = world.allreduce((own.len(), checksum(&own)), add).await?;
    let sorted = sample_sort(&world, own).await?;
    let after = world.allreduce((sorted.len(), checksum(&sorted)), add).await?;

    // The greatest number of the ranks before this one is not above the smallest here.
    let before_this = world.exscan(sorted.last().copied().unwrap_or(0), op::max).await?;
    let fits = sorted.is_sorted() && before_this <= sorted.first().copied().or(Some(u64::MAX));
    let fits = world.allreduce(fits && before == after, op::land).await?;
    let least = world.reduce(0, sorted.len(), op::min).await?;
    let most = world.reduce(0, sorted.len(), op::max).await?;
    if let (Some(least), Some(most)) = (least, most) {
        println!(
            "{} numbers on {} ranks: {}",
            after.0,
            world.size(),
            if fits { "sorted" } else { "in disorder" }
        );
        println!("the ranks have between {least} and {most} of them");
    }
    Ok(())
}

fn add(a: (usize, u64), b: (usize, u64)) -> (usize, u64) {
    (a.0 + b.0, a.1.wrapping_add(b.1))
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        mpi::run(4, rank).await?;
        Ok(())
    })
}
