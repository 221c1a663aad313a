//! A Cholesky factor in tiles, shortest ways by rows, and a wavefront.

use super::{bits, programs};
use selvedge_cnc::Items;
use selvedge_distributed::{DistributedError, ItemPlacement, graph};
use selvedge_mpi::Communicator;

programs! {
    cholesky: cholesky_answer,
    floyd_warshall: floyd_warshall_answer,
    wavefront_pushed: wavefront_answer,
    wavefront_fetched: wavefront_answer,
    wavefront_declared: wavefront_answer,
}

type Answer = Result<Option<Vec<u64>>, DistributedError>;

/// The tiles of a row of the matrix, and the rows of a tile.
const TILES: u32 = 5;
const SIDE: usize = 4;

type Tile = Vec<f64>;

/// A tile of a matrix that has a factor.
fn tile(i: u32, j: u32) -> Tile {
    let at = |tile: u32, within: usize| f64::from(tile) * SIDE as f64 + within as f64;
    let entry = |row: f64, column: f64| {
        let diagonal = if row == column { 40.0 } else { 0.0 };
        diagonal + 1.0 / (1.0 + (row - column).abs())
    };
    (0..SIDE).flat_map(|r| (0..SIDE).map(move |c| entry(at(i, r), at(j, c)))).collect()
}

fn factor(tile: &mut [f64]) {
    for k in 0..SIDE {
        tile[k * SIDE + k] = tile[k * SIDE + k].sqrt();
        for i in k + 1..SIDE {
            tile[i * SIDE + k] /= tile[k * SIDE + k];
        }
        for i in k + 1..SIDE {
            for j in k + 1..=i {
                tile[i * SIDE + j] -= tile[i * SIDE + k] * tile[j * SIDE + k];
            }
        }
    }
}

fn solve(tile: &mut [f64], diagonal: &[f64]) {
    for row in tile.chunks_mut(SIDE) {
        for k in 0..SIDE {
            let sum: f64 = (0..k).map(|m| row[m] * diagonal[k * SIDE + m]).sum();
            row[k] = (row[k] - sum) / diagonal[k * SIDE + k];
        }
    }
}

fn update(tile: &mut [f64], left: &[f64], right: &[f64]) {
    for i in 0..SIDE {
        for j in 0..SIDE {
            let sum: f64 = (0..SIDE).map(|k| left[i * SIDE + k] * right[j * SIDE + k]).sum();
            tile[i * SIDE + j] -= sum;
        }
    }
}

/// A step for each tile and round. A tile stays on its rank, and its factor goes to the ranks that
/// need it. The tile of the round before is taken and changed in place.
async fn cholesky(world: Communicator) -> Answer {
    let ranks = world.size();
    let owner = move |i: u32, j: u32| (3 * i + j) as usize % ranks;
    graph(&world, move |graph| {
        // Short turns, so that messages are in more orders.
        graph.set_turn_steps(2);
        let rounds = graph.tags("rounds", move |&(_, i, j): &(u32, u32, u32)| owner(i, j));
        let stays = ItemPlacement::consumed_on(move |&(_, i, j): &(u32, u32, u32)| [owner(i, j)]);
        let changing = graph.items_in("changing", stays, Items::hashed().counted(|_| Some(1)));
        let readers = move |&(i, k): &(u32, u32)| {
            let below = (k + 1..TILES).map(move |row| owner(row, k));
            let row = (k + 1..=i).map(move |j| owner(i, j));
            let column = (i..TILES).map(move |row| owner(row, i));
            below.chain(row).chain(column).chain([0]).collect::<Vec<_>>()
        };
        let factors = graph.items::<_, Tile>("factors", ItemPlacement::consumed_on(readers));
        graph.prescribe(rounds, "change", move |(k, i, j), step| {
            if j > k {
                let (left, right) = (step.get(factors, (i, k))?, step.get(factors, (j, k))?);
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
        graph.initialize_everywhere(|env| {
            for (i, j) in (0..TILES).flat_map(|i| (0..=i).map(move |j| (i, j))) {
                env.put(changing, (0, i, j), tile(i, j))?;
                (0..=j).try_for_each(|k| env.put_tag(rounds, (k, i, j)))?;
            }
            Ok(())
        })?;
        let finished = graph.run()?;
        let all = finished
            .finalize(|view| view.iter(factors.local()).flat_map(|(_, tile)| bits(tile)).collect::<Vec<_>>());
        Ok((graph.rank() == 0).then_some(all))
    })
    .await
}

fn cholesky_answer() -> Vec<u64> {
    let number = |i: u32, j: u32| (i * (i + 1) / 2 + j) as usize;
    let mut all: Vec<Tile> = (0..TILES).flat_map(|i| (0..=i).map(move |j| tile(i, j))).collect();
    for k in 0..TILES {
        let mut diagonal = std::mem::take(&mut all[number(k, k)]);
        factor(&mut diagonal);
        for i in k + 1..TILES {
            solve(&mut all[number(i, k)], &diagonal);
        }
        all[number(k, k)] = diagonal;
        for (i, j) in (k + 1..TILES).flat_map(|i| (k + 1..=i).map(move |j| (i, j))) {
            let mut tile = std::mem::take(&mut all[number(i, j)]);
            update(&mut tile, &all[number(i, k)], &all[number(j, k)]);
            all[number(i, j)] = tile;
        }
    }
    all.iter().flat_map(bits).collect()
}

pub(super) const PLACES: u32 = 9;

/// The ways from a place, before any other place is passed.
pub(super) fn ways(from: u32) -> Vec<u64> {
    (0..PLACES).map(|to| if from == to { 0 } else { u64::from(from * 7 + to * 3) % 20 + 1 }).collect()
}

pub(super) fn shorter(row: &[u64], k: u32, through: &[u64]) -> Vec<u64> {
    let to_k = row[k as usize];
    row.iter().zip(through).map(|(&direct, &beyond)| direct.min(to_k + beyond)).collect()
}

/// A step for each row and round. The row of the round is fetched by each rank once.
async fn floyd_warshall(world: Communicator) -> Answer {
    let ranks = world.size();
    graph(&world, move |graph| {
        let owner = move |&(_, row): &(u32, u32)| row as usize % ranks;
        let tags = graph.tags("rounds", owner);
        let rows = graph.items("rows", ItemPlacement::produced_on(owner));
        graph.prescribe(tags, "shorten", move |(k, i), step| {
            let (row, through): (&Vec<u64>, _) = (step.get(rows, (k, i))?, step.get(rows, (k, k))?);
            step.put(rows, (k + 1, i), shorter(row, k, through))
        });
        graph.initialize_everywhere(|env| {
            (0..PLACES).try_for_each(|i| env.put(rows, (0, i), ways(i)))?;
            (0..PLACES).try_for_each(|k| (0..PLACES).try_for_each(|i| env.put_tag(tags, (k, i))))
        })?;
        let all = graph.run()?.gather(0, rows)?;
        let is_last = |(round, _): &(u32, u32)| *round == PLACES;
        Ok(all.map(|all| all.into_iter().filter(|(key, _)| is_last(key)).flat_map(|(_, row)| row).collect()))
    })
    .await
}

pub(super) fn floyd_warshall_answer() -> Vec<u64> {
    let mut rows: Vec<Vec<u64>> = (0..PLACES).map(ways).collect();
    for k in 0..PLACES {
        let through = rows[k as usize].clone();
        rows.iter_mut().for_each(|row| *row = shorter(row, k, &through));
    }
    rows.concat()
}

const CELLS: u32 = 5;

/// A cell by its three neighbours.
fn cell(north_west: f64, north: f64, west: f64) -> f64 {
    (north_west / 3.0 + north).sqrt() + west * 0.7
}

fn wave_owner(ranks: usize) -> impl Fn(&(u32, u32)) -> usize + Copy {
    move |&(i, j)| (i + 2 * j) as usize % ranks
}

async fn wavefront_pushed(world: Communicator) -> Answer {
    let owner = wave_owner(world.size());
    let readers =
        move |&(i, j): &(u32, u32)| [(i, j), (i + 1, j), (i, j + 1), (i + 1, j + 1)].map(|cell| owner(&cell));
    wavefront(world, ItemPlacement::consumed_on(readers), false).await
}

async fn wavefront_fetched(world: Communicator) -> Answer {
    let owner = wave_owner(world.size());
    wavefront(world, ItemPlacement::produced_on(owner), false).await
}

async fn wavefront_declared(world: Communicator) -> Answer {
    let owner = wave_owner(world.size());
    wavefront(world, ItemPlacement::produced_on(owner), true).await
}

/// Each cell puts the tags of the next one in its row. The first row and column are put by rank 0
/// alone.
async fn wavefront(world: Communicator, placement: ItemPlacement<(u32, u32)>, declares: bool) -> Answer {
    let owner = wave_owner(world.size());
    graph(&world, move |graph| {
        graph.set_turn_steps(2);
        let tags = graph.tags("cells", owner);
        let cells = graph.items::<_, f64>("waves", placement);
        let before = |(i, j): (u32, u32)| [(i - 1, j - 1), (i - 1, j), (i, j - 1)];
        macro_rules! wave {
            () => {
                move |at, step| {
                    let [north_west, north, west] = before(at);
                    let value = cell(
                        *step.get(cells, north_west)?,
                        *step.get(cells, north)?,
                        *step.get(cells, west)?,
                    );
                    step.put(cells, at, value)?;
                    if at.1 + 1 < CELLS { step.put_tag(tags, (at.0, at.1 + 1)) } else { Ok(()) }
                }
            };
        }
        if declares {
            graph.prescribe_depends(
                tags,
                "wave",
                move |at, needs| before(at).into_iter().try_for_each(|cell| needs.on(cells, cell)),
                wave!(),
            );
        } else {
            graph.prescribe(tags, "wave", wave!());
        }
        if graph.rank() == 0 {
            graph.initialize(|env| {
                (0..CELLS).try_for_each(|i| env.put(cells, (i, 0), f64::from(i) + 0.5))?;
                (1..CELLS).try_for_each(|j| env.put(cells, (0, j), f64::from(j) * 0.3))?;
                (1..CELLS).rev().try_for_each(|i| env.put_tag(tags, (i, 1)))
            })?;
        }
        let all = graph.run()?.gather(0, cells)?;
        Ok(all.map(|all| bits(all.iter().map(|(_, value)| value))))
    })
    .await
}

fn wavefront_answer() -> Vec<u64> {
    let side = CELLS as usize;
    let mut cells = vec![vec![0.0; side]; side];
    (0..side).for_each(|i| cells[i][0] = i as f64 + 0.5);
    (1..side).for_each(|j| cells[0][j] = j as f64 * 0.3);
    for i in 1..side {
        for j in 1..side {
            cells[i][j] = cell(cells[i - 1][j - 1], cells[i - 1][j], cells[i][j - 1]);
        }
    }
    bits(cells.iter().flatten())
}
