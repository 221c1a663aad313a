//! One of the six programs of [NCM11 §4]: the Cholesky factor of a matrix in tiles, in a plain
//! loop, under rayon, and in a graph. `cnc.rs` beside it calls `cholesky`, and the figure compares
//! the run with `answer`.
//!
//! A step of the graph takes the tile of the round before and changes it in place. So each item of
//! `changing` is taken by exactly one step, and its count of gets is 1.

use super::super::clock::Times;
use super::super::fault;
use super::engine::Engine;
use super::kernels::{self, Tile, number};
use super::measured::{finish, print_times, timed_loop};
use rayon::prelude::*;
use selvedge_cnc::{Items, graph};

/// The tiles of a matrix up to its diagonal, by rows.
struct Tiles(Vec<Tile>);

impl Tiles {
    fn new(tiles: u32, block: u32) -> Tiles {
        let all = (0..tiles).flat_map(|i| (0..=i).map(move |j| [i, j]));
        Tiles(all.map(|place| kernels::tile(place, tiles, block)).collect())
    }
}

pub(super) fn cholesky(engine: &Engine, tiles: u32, block: u32) {
    let matrix = Tiles::new(tiles, block);
    let factor = match engine {
        Engine::Loop => timed_loop(1, || serial(matrix, tiles, block as usize)),
        Engine::Rayon(pool) => {
            timed_loop(1, || pool.install(|| with_barriers(matrix, tiles, block as usize)))
        }
        Engine::Graph(scheduler) => return in_a_graph(matrix, tiles, block, &**scheduler),
    };
    let answer = kernels::factor_check(tiles, block, |i, j| &factor.0[number(i, j)]);
    println!("answer {}", answer + fault());
}

/// The answer for a matrix of this size.
pub(crate) fn answer(tiles: u32, block: u32) -> u64 {
    let factor = serial(Tiles::new(tiles, block), tiles, block as usize);
    kernels::factor_check(tiles, block, |i, j| &factor.0[number(i, j)])
}

fn serial(mut matrix: Tiles, tiles: u32, block: usize) -> Tiles {
    let all = &mut matrix.0;
    for k in 0..tiles {
        let mut diagonal = std::mem::take(&mut all[number(k, k)]);
        kernels::factor(&mut diagonal, block);
        for i in k + 1..tiles {
            kernels::solve(&mut all[number(i, k)], &diagonal, block);
        }
        all[number(k, k)] = diagonal;
        for i in k + 1..tiles {
            for j in k + 1..=i {
                let mut tile = std::mem::take(&mut all[number(i, j)]);
                kernels::update(&mut tile, &all[number(i, k)], &all[number(j, k)], block);
                all[number(i, j)] = tile;
            }
        }
    }
    matrix
}

/// Loops of rayon, each of which ends before the next one begins.
fn with_barriers(mut matrix: Tiles, tiles: u32, block: usize) -> Tiles {
    let all = &mut matrix.0;
    for k in 0..tiles {
        let mut diagonal = std::mem::take(&mut all[number(k, k)]);
        kernels::factor(&mut diagonal, block);
        let mut column: Vec<Tile> = (k + 1..tiles).map(|i| std::mem::take(&mut all[number(i, k)])).collect();
        column.par_iter_mut().for_each(|tile| kernels::solve(tile, &diagonal, block));
        let places: Vec<[u32; 2]> = (k + 1..tiles).flat_map(|i| (k + 1..=i).map(move |j| [i, j])).collect();
        let mut rest: Vec<Tile> =
            places.iter().map(|&[i, j]| std::mem::take(&mut all[number(i, j)])).collect();
        rest.par_iter_mut().zip(&places).for_each(|(tile, &[i, j])| {
            let of = |row: u32| &column[(row - k - 1) as usize];
            kernels::update(tile, of(i), of(j), block);
        });
        for (&[i, j], tile) in places.iter().zip(rest) {
            all[number(i, j)] = tile;
        }
        for (i, tile) in (k + 1..).zip(column) {
            all[number(i, k)] = tile;
        }
        all[number(k, k)] = diagonal;
    }
    matrix
}

/// A step for each tile and round. It takes the tile of the round before and changes it in place.
fn in_a_graph(matrix: Tiles, tiles: u32, block: u32, scheduler: &dyn selvedge_cnc::schedulers::Scheduler) {
    let first = Times::now();
    graph(|graph| {
        // Round, row and column; they fit in a word.
        let rounds = graph.tags::<(u16, u16, u16)>("rounds");
        let side = block as usize;
        let changing = graph.items_in("changing", Items::dense((tiles, tiles, tiles)).counted(|_| Some(1)));
        let factor = graph.items_in("factor", Items::<_, Tile>::dense((tiles, tiles)));
        graph
            .prescribe(rounds, "change", move |(k, i, j), step| {
                let [k, i, j] = [k, i, j].map(u32::from);
                if j > k {
                    let (left, right) = (step.get(factor, (i, k))?, step.get(factor, (j, k))?);
                    let mut tile: Tile = step.take(changing, (k, i, j))?;
                    kernels::update(&mut tile, left, right, side);
                    return step.put(changing, (k + 1, i, j), tile);
                }
                let tile = if i > k {
                    let diagonal = step.get(factor, (k, k))?;
                    let mut tile = step.take(changing, (k, i, k))?;
                    kernels::solve(&mut tile, diagonal, side);
                    tile
                } else {
                    let mut tile = step.take(changing, (k, k, k))?;
                    kernels::factor(&mut tile, side);
                    tile
                };
                step.put(factor, (i, k), tile)
            })
            .priority(|&(k, _, j)| -i64::from(k + j));
        let finished = finish(graph, scheduler, |env| {
            let places = (0..tiles).flat_map(|i| (0..=i).map(move |j| (i, j)));
            for ((i, j), tile) in places.zip(matrix.0) {
                env.put(changing, (0, i, j), tile)?;
            }
            let tiles = tiles as u16;
            (0..tiles).try_for_each(|k| {
                (k..tiles).try_for_each(|j| (j..tiles).try_for_each(|i| env.put_tag(rounds, (k, i, j))))
            })
        });
        print_times(first, 1);
        let answer = finished.finalize(|view| {
            kernels::factor_check(tiles, block, |i, j| {
                view.get(factor, (i, j)).expect("the run has ended well").as_slice()
            })
        });
        println!("answer {}", answer + fault());
    });
}
