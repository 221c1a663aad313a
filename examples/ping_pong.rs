//! Two ranks send a message to and fro, and tell how long one way takes: values that move, and
//! elements that are copied.

use selvedge::mpi::{self, Communicator};
use std::time::{Duration, Instant};

const ROUNDS: u32 = 20_000;

/// The time of one way, for a value.
async fn values(world: &Communicator) -> Result<Duration, mpi::Error> {
    let began = Instant::now();
    for round in 0..ROUNDS {
        if world.rank() == 0 {
            world.send(1, (), round).await?;
            let (back, _) = world.recv::<u32>(1, ()).await?;
            assert_eq!(back, round + 1);
        } else {
            let (ball, _) = world.recv::<u32>(0, ()).await?;
            world.send(0, (), ball + 1).await?;
        }
    }
    Ok(began.elapsed() / (2 * ROUNDS))
}

/// The time of one way, for 64 kB that stay in buffers of their ranks.
async fn elements(world: &Communicator) -> Result<Duration, mpi::Error> {
    let rounds = ROUNDS / 20;
    let (going, mut came) = (vec![1.5; 8_192], vec![0.0; 8_192]);
    let began = Instant::now();
    for _ in 0..rounds {
        if world.rank() == 0 {
            world.send_slice(1, (), &going).await?;
            world.recv_into(1, (), &mut came).await?;
        } else {
            world.recv_into(0, (), &mut came).await?;
            world.send_slice(0, (), &going).await?;
        }
    }
    assert_eq!(came, going);
    Ok(began.elapsed() / (2 * rounds))
}

#[selvedge::main]
async fn main() -> Result<(), mpi::RanksError<mpi::Error>> {
    mpi::run(2, |world| async move {
        let (value, slice) = (values(&world).await?, elements(&world).await?);
        if world.rank() == 0 {
            println!("one way: {value:?} for a number, {slice:?} for 64 kB");
        }
        Ok::<_, mpi::Error>(())
    })
    .await
    .map(drop)
}
