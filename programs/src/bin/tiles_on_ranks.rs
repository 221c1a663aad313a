//! Tiles on ranks: the Cholesky factor of a matrix, as a graph over ranks. Each tile has a rank. A
//! step runs on the rank of its tile, and takes the tile of the round before, which no other step
//! needs. A tile of the factor goes once to each rank that needs it. The factor has the same bits
//! for any number of ranks, and times itself it is the matrix.
//!
//! With `--ranks N` the ranks are processes.
//!
//! # Prints
//! ```text
//! 1 ranks: the factor times itself is the matrix
//! 2 ranks: the same bits
//! 3 ranks: the same bits
//! 4 ranks: the same bits
//! ```
//!
//! # CPU time
//! 2000 ms.

use selvedge::cnc::Items;
use selvedge::distributed::{self, DistributedError, ItemPlacement};
use selvedge::mpi::{Communicator, Ranks};
use std::process::ExitCode;

/// Tiles in a row of the matrix, and rows of a tile.
const TILES: u32 = 6;
const SIDE: usize = 16;
const ORDER: usize = TILES as usize * SIDE;

type Tile = Vec<f64>;

/// An entry of the matrix, which has a factor because its diagonal is large.
fn entry(row: usize, column: usize) -> f64 {
    let diagonal = if row == column { ORDER as f64 } else { 0.0 };
    diagonal + 1.0 / (1.0 + row.abs_diff(column) as f64)
}

fn tile(i: u32, j: u32) -> Tile {
    let (top, left) = (i as usize * SIDE, j as usize * SIDE);
    (0..SIDE * SIDE).map(|at| entry(top + at / SIDE, left + at % SIDE)).collect()
}

/// The factor of a tile on the diagonal. What is above its diagonal becomes 0.
fn factor(tile: &mut [f64]) {
    for j in 0..SIDE {
        let dot =
            |a: usize, tile: &[f64]| (0..j).map(|k| tile[a * SIDE + k] * tile[j * SIDE + k]).sum::<f64>();
        tile[j * SIDE + j] = (tile[j * SIDE + j] - dot(j, tile)).sqrt();
        for i in j + 1..SIDE {
            tile[i * SIDE + j] = (tile[i * SIDE + j] - dot(i, tile)) / tile[j * SIDE + j];
            tile[j * SIDE + i] = 0.0;
        }
    }
}

/// A tile of the factor below the diagonal.
fn solve(tile: &mut [f64], diagonal: &[f64]) {
    for row in tile.chunks_exact_mut(SIDE) {
        for j in 0..SIDE {
            let sum: f64 = (0..j).map(|k| row[k] * diagonal[j * SIDE + k]).sum();
            row[j] = (row[j] - sum) / diagonal[j * SIDE + j];
        }
    }
}

/// Takes the product of two tiles of the factor away.
fn update(tile: &mut [f64], left: &[f64], right: &[f64]) {
    for (at, value) in tile.iter_mut().enumerate() {
        let (i, j) = (at / SIDE, at % SIDE);
        *value -= (0..SIDE).map(|k| left[i * SIDE + k] * right[j * SIDE + k]).sum::<f64>();
    }
}

/// The ranks that need a tile of the factor: those of the tiles below it on the diagonal, right of
/// it, and below its own row's diagonal; and rank 0, which looks at the end.
fn readers(i: u32, k: u32) -> Vec<(u32, u32)> {
    let below = (k + 1..TILES).map(|row| (row, k));
    let right = (k + 1..=i).map(|j| (i, j));
    let column = (i..TILES).map(|row| (row, i));
    below.chain(right).chain(column).collect()
}

/// The factor, on rank 0.
async fn cholesky(world: Communicator) -> Result<Option<Vec<((u32, u32), Tile)>>, DistributedError> {
    let ranks = world.size();
    let owner = move |(i, j): (u32, u32)| (i * TILES + j) as usize % ranks;
    distributed::graph(&world, move |graph| {
        let rounds = graph.tags("rounds", move |&(_, i, j): &(u32, u32, u32)| owner((i, j)));
        let stays = ItemPlacement::consumed_on(move |&(_, i, j): &(u32, u32, u32)| [owner((i, j))]);
        let changing = graph.items_in("changing", stays, Items::hashed().counted(|_| Some(1)));
        let factors = graph.items(
            "factors",
            ItemPlacement::consumed_on(move |&(i, k): &(u32, u32)| {
                readers(i, k).into_iter().map(owner).chain([0]).collect::<Vec<_>>()
            }),
        );
        graph.prescribe(rounds, "change", move |(k, i, j), step| {
            if j > k {
                let (left, right): (&Tile, &Tile) = (step.get(factors, (i, k))?, step.get(factors, (j, k))?);
                let mut tile: Tile = step.take(changing, (k, i, j))?;
                update(&mut tile, left, right);
                return step.put(changing, (k + 1, i, j), tile);
            }
            let diagonal = if i > k { Some(step.get(factors, (k, k))?) } else { None };
            let mut tile = step.take(changing, (k, i, k))?;
            match diagonal {
                Some(diagonal) => solve(&mut tile, diagonal),
                None => factor(&mut tile),
            }
            step.put(factors, (i, k), tile)
        });
        // Every rank makes the same puts, and each puts what is its own.
        graph.initialize_everywhere(|env| {
            for (i, j) in (0..TILES).flat_map(|i| (0..=i).map(move |j| (i, j))) {
                env.put(changing, (0, i, j), tile(i, j))?;
                (0..=j).try_for_each(|k| env.put_tag(rounds, (k, i, j)))?;
            }
            Ok(())
        })?;
        graph.run()?.gather(0, factors).map_err(DistributedError::from)
    })
    .await
}

/// Whether the factor times itself is the matrix.
fn is_factor(tiles: &[((u32, u32), Tile)]) -> bool {
    let mut whole = vec![0.0; ORDER * ORDER];
    for ((i, j), tile) in tiles {
        for (at, value) in tile.iter().enumerate() {
            let (row, column) = (*i as usize * SIDE + at / SIDE, *j as usize * SIDE + at % SIDE);
            whole[row * ORDER + column] = *value;
        }
    }
    let product = |row: usize, column: usize| -> f64 {
        (0..ORDER).map(|k| whole[row * ORDER + k] * whole[column * ORDER + k]).sum()
    };
    let mut all = (0..ORDER).flat_map(|row| (0..=row).map(move |column| (row, column)));
    all.all(|(row, column)| (product(row, column) - entry(row, column)).abs() < 1e-9)
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        if std::env::args().any(|argument| argument == "--ranks") {
            let factors = Ranks::from_arguments(4).run(cholesky).await?;
            if let Some(tiles) = &factors[0] {
                println!("the factor times itself is the matrix: {}", is_factor(tiles));
            }
            return Ok(());
        }
        let mut first = None;
        for ranks in 1..=4 {
            let tiles = Ranks::new(ranks).run(cholesky).await?.swap_remove(0).unwrap_or_default();
            let verdict = match &first {
                None if is_factor(&tiles) => "the factor times itself is the matrix",
                None => "no factor of the matrix",
                Some(of_one) if *of_one == tiles => "the same bits",
                Some(_) => "other bits",
            };
            println!("{ranks} ranks: {verdict}");
            first.get_or_insert(tiles);
        }
        Ok(())
    })
}
