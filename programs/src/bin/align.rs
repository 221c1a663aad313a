//! Concurrent Collections: the best local alignment of two long strings (Smith and Waterman), as a
//! wavefront of tiles. A tile needs the edges of the tiles above it and left of it, and the corner
//! between them. An edge is dropped when both tiles that need it have ended, so that the memory is
//! that of the wave and not that of the table.
//!
//! # Prints
//! ```text
//! best score: 1415, as a plain loop says
//! edges left: 0
//! ```
//!
//! # CPU time
//! 2000 ms.

use selvedge::cnc::schedulers::{Scheduler, Stealing, TaskPool};
use selvedge::cnc::{GraphError, Items, graph};

const LENGTH: usize = 1_000;
const TILE: usize = 50;
const TILES: u32 = (LENGTH / TILE) as u32;

/// What the neighbours of a tile need: its last row, its last column, and the best score so far in
/// all tiles above and left of it.
struct Edges {
    row: Vec<i32>,
    column: Vec<i32>,
    best: i32,
}

/// The score of two letters.
fn score(one: u8, other: u8) -> i32 {
    if one == other { 2 } else { -1 }
}

/// A tile's edges, by the row above it, the column left of it, and the corner between them.
fn tile(one: &[u8], other: &[u8], above: &[i32], left: &[i32], corner: i32) -> Edges {
    let (mut row, mut column, mut best) = (above.to_vec(), Vec::with_capacity(one.len()), 0);
    let mut diagonal_of_row = corner;
    for (&letter, &before) in one.iter().zip(left) {
        let (mut diagonal, mut west) = (diagonal_of_row, before);
        for (&other, cell) in other.iter().zip(&mut row) {
            let value = (diagonal + score(letter, other)).max(west - 1).max(*cell - 1).max(0);
            (diagonal, west) = (*cell, value);
            *cell = value;
            best = best.max(value);
        }
        diagonal_of_row = before;
        column.push(west);
    }
    Edges { row, column, best }
}

/// Letters that a seed determines.
fn letters(mut seed: u64) -> Vec<u8> {
    let letter = |_| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        b"ACGT"[(seed >> 62) as usize]
    };
    (0..LENGTH).map(letter).collect()
}

fn main() -> Result<(), GraphError> {
    let (one, mut other) = (letters(1), letters(2));
    // The second string has a part of the first one.
    other[200..800].copy_from_slice(&one[100..700]);
    let (one, other) = (&one, &other);

    let align = |scheduler: &dyn Scheduler| {
        graph(|graph| {
            let tags = graph.tags::<(u32, u32)>("tiles");
            // The right, the lower and the diagonal neighbour get the edges of a tile.
            let readers = |&(i, j): &(u32, u32)| {
                let (below, right) = (u32::from(i + 1 < TILES), u32::from(j + 1 < TILES));
                (below + right > 0).then_some(below + right + below * right)
            };
            let edges = graph.items_in("edges", Items::paged((TILES, TILES)).counted(readers));
            graph.prescribe(tags, "align", move |(i, j), step| {
                let above = if i > 0 { Some(step.get(edges, (i - 1, j))?) } else { None };
                let left = if j > 0 { Some(step.get(edges, (i, j - 1))?) } else { None };
                let corner = if i > 0 && j > 0 { Some(step.get(edges, (i - 1, j - 1))?) } else { None };
                let (rows, columns) = (i as usize * TILE, j as usize * TILE);
                let border = [0; TILE];
                let mut mine = tile(
                    &one[rows..rows + TILE],
                    &other[columns..columns + TILE],
                    above.map_or(&border, |edges: &Edges| &edges.row),
                    left.map_or(&border, |edges| &edges.column),
                    corner.map_or(0, |edges| edges.row[TILE - 1]),
                );
                let before = [above, left].into_iter().flatten().map(|edges| edges.best);
                mine.best = before.fold(mine.best, i32::max);
                step.put(edges, (i, j), mine)
            });
            graph.initialize(|env| {
                (0..TILES)
                    .flat_map(|i| (0..TILES).map(move |j| (i, j)))
                    .try_for_each(|tag| env.put_tag(tags, tag))
            })?;
            let finished = graph.run(scheduler)?;
            let last = (TILES - 1, TILES - 1);
            let best = finished.finalize(|view| view.get(edges, last).map_or(0, |edges| edges.best));
            Ok::<_, GraphError>((best, finished.statistics().items[0].there - 1))
        })
    };
    let (best, left_over) = align(&Stealing::default())?;
    for workers in [1, 2, 4, 8] {
        let all: [&dyn Scheduler; 4] = [
            &Stealing::new(workers),
            &TaskPool::fifo(workers),
            &TaskPool::lifo(workers),
            &TaskPool::fuzz(workers, 3),
        ];
        for scheduler in all {
            assert_eq!(align(scheduler)?, (best, left_over));
        }
    }

    let whole = tile(one, other, &[0; LENGTH], &[0; LENGTH], 0).best;
    println!("best score: {best}, {} a plain loop says", if best == whole { "as" } else { "not what" });
    println!("edges left: {left_over}");
    Ok(())
}
