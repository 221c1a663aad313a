//! A wavefront in tiles, as a graph over ranks. `mod.rs` calls `waves`. The same graph on one rank
//! is in `child/cnc/steps.rs`; the kernel and the answer are the same.
//!
//! A rank has some columns of tiles, which lie side by side. So in each row of tiles one edge goes
//! to the next rank.

use super::report::{print, wrong_by};
use crate::child::cnc::edges::{Edge, border_above, border_before, sum_of, wave};
use selvedge_cnc::Items;
use selvedge_distributed::{DistributedError, DistributedGraph, ItemPlacement, graph};
use selvedge_mpi::{Communicator, op};
use std::time::Instant;

/// `waves`. Rank 0 prints the time from the start of the graph to the end of its run on all ranks,
/// and the answer.
pub(super) async fn waves(world: Communicator, tiles: u32, block: u32) -> Result<(), DistributedError> {
    world.barrier().await?;
    let began = Instant::now();
    let (ended, sum) = graph(&world, move |graph| sum_of_tiles(graph, tiles, block)).await?;
    print(&world, "ms", (ended - began).as_secs_f64() * 1e3);
    let sum = world.allreduce(sum, op::sum).await?;
    if world.rank() == 0 {
        println!("answer {}", sum + wrong_by());
    }
    Ok(())
}

/// A step for each tile. Returns the end of the run, and what the tiles of this rank add to the
/// answer.
fn sum_of_tiles(
    graph: &DistributedGraph<'_, '_>,
    tiles: u32,
    block: u32,
) -> Result<(Instant, u64), DistributedError> {
    let (me, ranks) = (graph.rank(), graph.ranks());
    let owner = move |j: u32| j as usize * ranks / tiles as usize;
    let of_column = move |&(_, j): &(u32, u32)| [owner(j)];
    let tags = graph.tags("tiles", move |&(_, j): &(u32, u32)| owner(j));
    let rows = Items::<_, Edge>::dense((tiles + 1, tiles));
    let rows = graph.items_in("rows", ItemPlacement::consumed_on(of_column), rows);
    let columns = Items::<_, Edge>::dense((tiles, tiles));
    let columns = graph.items_in("columns", ItemPlacement::consumed_on(of_column), columns);
    graph.prescribe(tags, "wave", move |(i, j), step| {
        let (below, last) = wave(step.get(rows, (i, j))?, step.get(columns, (i, j))?);
        step.put(rows, (i + 1, j), below)?;
        if j + 1 < tiles { step.put(columns, (i, j + 1), last) } else { Ok(()) }
    });
    // Each rank puts what is its own, so nothing is sent.
    graph.initialize(|env| {
        let own = move || (0..tiles).filter(move |j| owner(*j) == me);
        own().try_for_each(|j| env.put(rows, (0, j), border_above(block)))?;
        if owner(0) == me {
            (0..tiles).try_for_each(|i| env.put(columns, (i, 0), border_before(block)))?;
        }
        (0..tiles).try_for_each(|i| own().try_for_each(|j| env.put_tag(tags, (i, j))))
    })?;
    let finished = graph.run()?;
    let ended = Instant::now();
    let sum = finished.finalize(|view| {
        let rows = view.iter(rows.local()).filter(|((i, _), _)| *i > 0);
        rows.map(|(_, below)| sum_of(below)).sum()
    });
    Ok((ended, sum))
}
