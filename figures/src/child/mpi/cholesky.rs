//! The Cholesky factor of a matrix in tiles, as a graph over ranks. `mod.rs` calls `cholesky`. The
//! same graph on one rank is in `child/cnc/cholesky.rs`; the kernels and the answer are the same.
//!
//! The ranks have the rows of tiles in turn. The tiles of the factor are pushed to the ranks that
//! have a row from there on; all other items stay where they are.

use super::report::{print, wrong_by};
use crate::child::cnc::kernels::{self, Tile, number};
use selvedge_cnc::Items;
use selvedge_distributed::{DistributedError, DistributedGraph, ItemPlacement, graph};
use selvedge_mpi::Communicator;
use std::time::Instant;

/// The tiles that a rank has, with their rows and columns.
type PlacedTiles = Vec<((u32, u32), Tile)>;

/// `cholesky`. Rank 0 prints the time from the start of the graph to the end of its run on all
/// ranks, and the answer for the factor of all ranks.
pub(super) async fn cholesky(world: Communicator, tiles: u32, block: u32) -> Result<(), DistributedError> {
    let (me, ranks) = (world.rank(), world.size());
    let owner = move |row: u32| row as usize % ranks;
    let places = (0..tiles).flat_map(|i| (0..=i).map(move |j| (i, j)));
    let own = places.filter(|(i, _)| owner(*i) == me);
    let matrix: PlacedTiles = own.map(|(i, j)| ((i, j), kernels::tile([i, j], tiles, block))).collect();
    world.barrier().await?;
    let began = Instant::now();
    let factor = graph(&world, move |graph| factor(graph, matrix, tiles, block));
    let (ended, factor) = factor.await?;
    print(&world, "ms", (ended - began).as_secs_f64() * 1e3);
    if let Some(parts) = world.gather(0, factor).await? {
        let mut all = vec![Tile::new(); number(tiles, 0)];
        parts.into_iter().flatten().for_each(|((i, j), tile)| all[number(i, j)] = tile);
        let answer = kernels::factor_check(tiles, block, |i, j| &all[number(i, j)]);
        println!("answer {}", answer + wrong_by());
    }
    Ok(())
}

/// A step for each tile and round. It takes the tile of the round before and changes it in place.
/// Returns the end of the run, and the tiles of the factor in the rows of this rank.
fn factor<'g>(
    graph: &DistributedGraph<'g, '_>,
    matrix: PlacedTiles,
    tiles: u32,
    block: u32,
) -> Result<(Instant, PlacedTiles), DistributedError> {
    let (me, ranks, side) = (graph.rank(), graph.ranks(), block as usize);
    let owner = move |row: u32| row as usize % ranks;
    // Round, row and column; they fit in a word.
    let rounds = graph.tags("rounds", move |&(_, i, _): &(u16, u16, u16)| owner(i.into()));
    let stays = ItemPlacement::consumed_on(move |&(_, i, _): &(u32, u32, u32)| [owner(i)]);
    let changing = Items::dense((tiles, tiles, tiles)).counted(|_| Some(1));
    let changing = graph.items_in("changing", stays, changing);
    let below = move |&(i, _): &(u32, u32)| (i..tiles).take(ranks).map(owner);
    let factor = ItemPlacement::consumed_on(below);
    let factor = graph.items_in("factor", factor, Items::<_, Tile>::dense((tiles, tiles)));
    graph.prescribe(rounds, "change", move |(k, i, j), step| {
        let [k, i, j] = [k, i, j].map(u32::from);
        if j > k {
            let (left, right) = (step.get(factor, (i, k))?, step.get(factor, (j, k))?);
            let mut tile: Tile = step.take(changing, (k, i, j))?;
            kernels::update(&mut tile, left, right, side);
            return step.put(changing, (k + 1, i, j), tile);
        }
        let diagonal = if i > k { Some(step.get(factor, (k, k))?) } else { None };
        let mut tile = step.take(changing, (k, i, k))?;
        match diagonal {
            Some(diagonal) => kernels::solve(&mut tile, diagonal, side),
            None => kernels::factor(&mut tile, side),
        }
        step.put(factor, (i, k), tile)
    });
    // Each rank puts what is its own, so nothing is sent.
    graph.initialize(|env| {
        matrix.into_iter().try_for_each(|((i, j), tile)| env.put(changing, (0, i, j), tile))?;
        let own = move |j: u32| (j..tiles).filter(move |i| owner(*i) == me);
        let mut all = (0..tiles).flat_map(|k| (k..tiles).flat_map(move |j| own(j).map(move |i| (k, i, j))));
        all.try_for_each(|(k, i, j)| env.put_tag(rounds, (k as u16, i as u16, j as u16)))
    })?;
    let finished = graph.run()?;
    let ended = Instant::now();
    let own = finished.finalize(|view| {
        let own = view.iter(factor.local()).filter(|((i, _), _)| owner(*i) == me);
        own.map(|(place, tile)| (place, tile.clone())).collect()
    });
    Ok((ended, own))
}
