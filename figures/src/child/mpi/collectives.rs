//! Calls that all ranks make together: a barrier, a sum, a broadcast, an exchange. `mpi.rs` calls
//! `all`, and `crowded` for more ranks than CPUs.

use super::report::{BLOCKS, Tally, each, is_marked, mark, print, wrong_by};
use selvedge_mpi::{Communicator, Error, Parts, op};
use std::time::Instant;

/// The bytes of a broadcast.
const BROADCAST: usize = 65_536;
/// The numbers that each rank has for each other in an exchange: 4 KiB.
const EXCHANGED: usize = 512;

#[derive(Clone, Copy)]
enum Collective {
    Barrier,
    Allreduce,
    Bcast,
    Alltoall,
}

/// `collectives`.
pub(super) async fn all(world: Communicator, calls: u64) -> Result<(), Error> {
    let mut tally = barrier_and_allreduce(&world, calls).await?;
    for (name, collective, fewer) in [("bcast", Collective::Bcast, 4), ("alltoall", Collective::Alltoall, 2)]
    {
        measured(&world, name, collective, (calls / fewer).max(1), &mut tally).await?;
    }
    tally.print_all(&world).await
}

/// `crowded`.
pub(super) async fn crowded(world: Communicator, calls: u64) -> Result<(), Error> {
    barrier_and_allreduce(&world, calls).await?.print_all(&world).await
}

async fn barrier_and_allreduce(world: &Communicator, calls: u64) -> Result<Tally, Error> {
    let mut tally = Tally::default();
    measured(world, "barrier", Collective::Barrier, calls, &mut tally).await?;
    measured(world, "allreduce", Collective::Allreduce, calls, &mut tally).await?;
    Ok(tally)
}

/// Prints the time of a call.
async fn measured(
    world: &Communicator,
    name: &str,
    collective: Collective,
    calls: u64,
    tally: &mut Tally,
) -> Result<(), Error> {
    let mut memory = vec![0; BROADCAST];
    let mut blocks = Vec::with_capacity(BLOCKS);
    for _ in 0..BLOCKS {
        world.barrier().await?;
        let began = Instant::now();
        for number in 0..calls {
            tally.add(call(world, collective, number, &mut memory).await?);
        }
        blocks.push(began.elapsed());
    }
    print(world, name, each(&blocks, calls));
    Ok(())
}

/// Makes a call, and says whether its result is right.
async fn call(
    world: &Communicator,
    collective: Collective,
    number: u64,
    memory: &mut [u8],
) -> Result<bool, Error> {
    let (rank, ranks) = (world.rank() as u64, world.size() as u64);
    Ok(match collective {
        Collective::Barrier => {
            world.barrier().await?;
            wrong_by() == 0
        }
        Collective::Allreduce => {
            let mut sum = [number + rank + wrong_by()];
            world.allreduce_into(&mut sum, op::sum).await?;
            sum == [ranks * number + ranks * (ranks - 1) / 2]
        }
        Collective::Bcast => {
            let root = number % ranks;
            if root == rank {
                mark(memory, number as u8);
            }
            world.bcast_into(root as usize, memory).await?;
            is_marked(memory, number as u8)
        }
        Collective::Alltoall => {
            let mut going = vec![0; EXCHANGED * ranks as usize];
            for to in 0..ranks as usize {
                going[to * EXCHANGED] = number + rank + to as u64;
            }
            let coming = world.alltoall_parts(Parts::even(going, ranks as usize)).await?;
            coming.iter().zip(0..).all(|(part, from)| part[0] == number + from + rank)
        }
    })
}
