//! The area under a curve by ranks that send messages: the paper's listings 4 and 5, with ranks
//! that are threads, so that no MPI has to be installed.
//!
//! Under `mpirun -n 2` the ranks are its processes.
//!
//! `cargo run --release --example trapezoid_mpi -- 0 3141.59265 100000000 2` takes the bounds, the
//! number of trapezoids and the number of ranks.

use selvedge::mpi::{self, Communicator};
use std::env::args;
use std::f64::consts::PI;
use std::str::FromStr;

/// The area under `f` between two points, by `n` trapezoids (listing 1).
fn trapezoid(f: fn(f64) -> f64, a: f64, h: f64, n: u64) -> f64 {
    let at = |i: u64| f(a + i as f64 * h);
    let ends = (at(0) + at(n)) / 2.0;
    h * (ends + (1..n).map(at).sum::<f64>())
}

/// The area of this rank's part. The first ranks have one trapezoid more, if the ranks cannot all
/// have the same number.
fn part(world: &Communicator, (a, b, n): (f64, f64, u64)) -> f64 {
    let (rank, ranks) = (world.rank() as u64, world.size() as u64);
    let (begin, end) = (n * rank / ranks, n * (rank + 1) / ranks);
    let h = (b - a) / n as f64;
    if begin == end { 0.0 } else { trapezoid(f64::sin, a + begin as f64 * h, h, end - begin) }
}

/// Each rank sends its part to the master (listing 4).
async fn with_messages(world: &Communicator, task: (f64, f64, u64)) -> Result<Option<f64>, mpi::Error> {
    const MASTER: usize = 0;
    let integral = part(world, task);
    if world.rank() != MASTER {
        world.send(MASTER, (), integral).await?;
        return Ok(None);
    }
    let mut sum = integral;
    for rank in 1..world.size() {
        let (rest, _status) = world.recv::<f64>(rank, ()).await?;
        sum += rest;
    }
    Ok(Some(sum))
}

/// The master gathers the parts (listing 5).
async fn with_gather(world: &Communicator, task: (f64, f64, u64)) -> Result<Option<f64>, mpi::Error> {
    let parts = world.gather(0, part(world, task)).await?;
    Ok(parts.map(|parts| parts.iter().sum()))
}

/// An argument of the command line, or what stands for it.
fn argument<T: FromStr>(at: usize, otherwise: T) -> T {
    args().nth(at).and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[selvedge::main]
async fn main() -> Result<(), mpi::RanksError<mpi::Error>> {
    let task = (argument(1, 0.0), argument(2, 999.0 * PI), argument(3, 1_000_000));
    let ranks = argument(4, 4).max(1);
    let ended = mpi::run(ranks, move |world| async move {
        let by_messages = with_messages(&world, task).await?;
        let by_gather = with_gather(&world, task).await?;
        assert_eq!(by_messages, by_gather); // the same bits: both add in the order of the ranks
        if let Some(area) = by_gather {
            println!("{} ranks: the area under sin is {area:.9}", world.size());
        }
        Ok(())
    });
    ended.await.map(drop)
}
