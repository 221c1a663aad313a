//! The primes below a number, by a loop over ranks. `mod.rs` calls `primes`. The same test is in
//! `child/cnc/kernels.rs`.

use super::report::{print, wrong_by};
use crate::child::cnc::kernels::is_prime;
use selvedge_distributed::{DistributedError, DistributedGraph, ItemPlacement, graph};
use selvedge_mpi::Communicator;
use std::time::Instant;

/// The numbers of a part of the loop. The parts go to the ranks in turn, because the larger numbers
/// take longer.
const PART: u32 = 64;

/// `primes`. Rank 0 prints the time from the start of the graph to the end of its run on all ranks,
/// and how many primes there are.
pub(super) async fn primes(world: Communicator, n: u32) -> Result<(), DistributedError> {
    world.barrier().await?;
    let began = Instant::now();
    let (ended, count) = graph(&world, move |graph| count(graph, n)).await?;
    print(&world, "ms", (ended - began).as_secs_f64() * 1e3);
    if world.rank() == 0 {
        println!("answer {}", count + wrong_by());
    }
    Ok(())
}

/// A step for each part. Returns the end of the run, and on rank 0 the number of primes.
fn count(graph: &DistributedGraph<'_, '_>, n: u32) -> Result<(Instant, u64), DistributedError> {
    let ranks = graph.ranks();
    let candidates = graph.ranges("candidates", PART, move |(begin, _)| (begin / PART) as usize % ranks);
    let counts = graph.items::<u32, u64>("counts", ItemPlacement::consumed_on(|_| [0]));
    graph.prescribe_range(candidates, "test", move |numbers, step| {
        // The odd numbers from 3.
        let primes = numbers.clone().filter(|number| is_prime(2 * number + 3));
        step.put(counts, numbers.start, primes.count() as u64)
    });
    graph.initialize_everywhere(|env| env.put_tag(candidates.tags(), (0, (n - 2) / 2)))?;
    let finished = graph.run()?;
    let ended = Instant::now();
    // 2 is a prime too.
    let sum = finished.finalize(|view| view.iter(counts.local()).map(|(_, count)| count).sum::<u64>());
    Ok((ended, 1 + sum))
}
