//! A search through a graph that is spread over ranks: each rank has some of the nodes, and tells
//! the owners of their neighbours what it has reached, one level after another.
//!
//! # Prints
//! ```text
//! 5000 nodes on 1 rank: level 1 has 3, the last of 12 levels has 1
//! on 2, 3 and 5 ranks: the same levels
//! ```

use selvedge::mpi::{self, Communicator, op};
use std::process::ExitCode;

const NODES: u64 = 5_000;

/// The neighbours of a node. Any rank can compute them, so no rank has to hold the graph.
fn neighbours(node: u64) -> impl Iterator<Item = u64> {
    (1..=3_u64).map(move |edge| (node * 7 + edge * edge * 1_013 + node / 3) % NODES)
}

/// The number of nodes at each distance from node 0.
async fn levels(world: Communicator) -> Result<Vec<usize>, mpi::Error> {
    let (rank, ranks) = (world.rank() as u64, world.size() as u64);
    let mut reached = vec![false; NODES.div_ceil(ranks) as usize];
    let mut frontier: Vec<u64> = if rank == 0 { vec![0] } else { vec![] };
    frontier.iter().for_each(|node| reached[(node / ranks) as usize] = true);
    let mut levels = Vec::new();
    loop {
        let count = world.allreduce(frontier.len(), op::sum).await?;
        if count == 0 {
            return Ok(levels);
        }
        levels.push(count);
        // Each neighbour is told to the rank that owns it.
        let mut found = vec![Vec::new(); world.size()];
        for neighbour in frontier.drain(..).flat_map(neighbours) {
            found[(neighbour % ranks) as usize].push(neighbour);
        }
        for node in world.alltoall(found).await?.into_iter().flatten() {
            if !std::mem::replace(&mut reached[(node / ranks) as usize], true) {
                frontier.push(node);
            }
        }
    }
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        let alone = mpi::Ranks::new(1).in_process().run(levels).await?.swap_remove(0);
        let (first, last) = (alone[1], alone[alone.len() - 1]);
        println!(
            "{NODES} nodes on 1 rank: level 1 has {first}, the last of {} levels has {last}",
            alone.len()
        );
        let mut same = true;
        for ranks in [2, 3, 5] {
            same &=
                mpi::Ranks::new(ranks).in_process().run(levels).await?.iter().all(|levels| *levels == alone);
        }
        println!("on 2, 3 and 5 ranks: {} levels", if same { "the same" } else { "other" });
        Ok(())
    })
}
