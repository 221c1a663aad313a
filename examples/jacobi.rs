//! Heat in a plate, by Jacobi's method: each rank has a band of rows, and in each sweep neighbours
//! exchange the rows at their borders. The result has the same bits for any number of ranks.

use selvedge::mpi::{self, Communicator, Parts, op};

const ROWS: usize = 40;
const COLUMNS: usize = 64;
const SWEEPS_MAX: usize = 200;

/// Sweeps over this rank's rows until no cell of any rank changes by more than `limit`. Gives the
/// number of sweeps, and to rank 0 the whole plate.
async fn heat(world: Communicator, limit: f64) -> Result<(usize, Option<Vec<f64>>), mpi::Error> {
    let (rank, ranks) = (world.rank(), world.size());
    // The upper edge of the plate is hot. Rank 0 cuts it into bands.
    let plate = || {
        let bands = (0..ranks).map(|rank| ROWS * (rank + 1) / ranks - ROWS * rank / ranks);
        let mut cells = vec![0.0; ROWS * COLUMNS];
        cells[..COLUMNS].fill(100.0);
        Parts::new(cells, bands.map(|rows| rows * COLUMNS)).expect("the bands are the whole plate")
    };
    let own = world.scatter_parts(0, plate).await?;
    let rows = own.len() / COLUMNS;

    // The rows of this rank, between the last row of the rank above and the first of the one below.
    let mut old: Vec<f64> = vec![0.0; (rows + 2) * COLUMNS];
    old[COLUMNS..(rows + 1) * COLUMNS].copy_from_slice(&own);
    let mut new = old.clone();
    let (above, below) = (rank.checked_sub(1), Some(rank + 1).filter(|&below| below < ranks));
    let row = |number: usize| number * COLUMNS..(number + 1) * COLUMNS;

    for sweep in 1..=SWEEPS_MAX {
        for neighbour in [above, below].into_iter().flatten() {
            let border = if Some(neighbour) == above { 1 } else { rows };
            world.send_slice(neighbour, (), &old[row(border)]).await?;
        }
        if let Some(above) = above {
            world.recv_into(above, (), &mut old[row(0)]).await?;
        }
        if let Some(below) = below {
            world.recv_into(below, (), &mut old[row(rows + 1)]).await?;
        }
        let mut change = 0.0_f64;
        for i in 1..=rows {
            // The edges of the plate keep their heat.
            let is_edge = (above.is_none() && i == 1) || (below.is_none() && i == rows);
            for j in 1..COLUMNS - 1 {
                let at = i * COLUMNS + j;
                if !is_edge {
                    new[at] = (old[at - COLUMNS] + old[at + COLUMNS] + old[at - 1] + old[at + 1]) / 4.0;
                    change = change.max((new[at] - old[at]).abs());
                }
            }
        }
        std::mem::swap(&mut old, &mut new);
        if world.allreduce(change, op::max).await? <= limit || sweep == SWEEPS_MAX {
            let plate = world.gather_slice(0, &old[COLUMNS..(rows + 1) * COLUMNS]).await?;
            return Ok((sweep, plate.map(Parts::into_vec)));
        }
    }
    unreachable!("the last sweep returns")
}

#[selvedge::main]
async fn main() -> Result<(), mpi::RanksError<mpi::Error>> {
    let mut plates = Vec::new();
    for ranks in [1, 2, 4, 7] {
        let mut ends = mpi::Ranks::new(ranks).in_process().run(|world| heat(world, 0.05)).await?;
        let (sweeps, plate) = ends.swap_remove(0);
        let plate = plate.expect("rank 0 has the plate");
        println!(
            "{ranks} ranks: {sweeps} sweeps, {:.6} in the middle",
            plate[ROWS / 2 * COLUMNS + COLUMNS / 2]
        );
        plates.push(plate.into_iter().map(f64::to_bits).collect::<Vec<_>>());
    }
    assert!(plates.iter().all(|plate| *plate == plates[0]));
    println!("the same bits on any number of ranks");
    Ok(())
}
