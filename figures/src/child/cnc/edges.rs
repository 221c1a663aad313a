//! A wavefront over a square of cells in tiles: the kernel of a tile, and the plain loop over all
//! tiles. The graph in one process is in `steps.rs`, and the graph over ranks in
//! `child/mpi/waves.rs`. The figure `mpi-cnc` compares the runs with `answer`.
//!
//! A tile needs the last row of the tile above it and the last column of the tile before it. These
//! edges are the items of the graphs.

use super::kernels::cell;

/// A row or a column of cells.
pub(crate) type Edge = Vec<u32>;

/// The row above the first tiles. An edge above a tile begins with the cell before it, so it has a
/// cell more than the tile.
pub(crate) fn border_above(block: u32) -> Edge {
    vec![1; block as usize + 1]
}

/// The column before the first tiles.
pub(crate) fn border_before(block: u32) -> Edge {
    vec![1; block as usize]
}

/// The cells of a tile by its edges: returns the edge above the next tile below, and the column
/// before the next tile in the row.
#[inline(never)]
pub(crate) fn wave(above: &[u32], before: &[u32]) -> (Edge, Edge) {
    let mut row = above.to_vec();
    let mut last = Vec::with_capacity(before.len());
    for &first in before {
        let mut north_west = std::mem::replace(&mut row[0], first);
        let mut west = first;
        for at in &mut row[1..] {
            let north = *at;
            west = cell(north_west, north, west);
            *at = west;
            north_west = north;
        }
        last.push(west);
    }
    (row, last)
}

/// What a tile adds to the answer: the cells of its last row.
pub(crate) fn sum_of(below: &[u32]) -> u64 {
    below[1..].iter().map(|&cell| u64::from(cell)).sum()
}

/// The sum of the last rows of all tiles.
pub(crate) fn answer(tiles: u32, block: u32) -> u64 {
    let mut rows = vec![border_above(block); tiles as usize];
    let mut sum = 0;
    for _ in 0..tiles {
        let mut before = border_before(block);
        for above in &mut rows {
            (*above, before) = wave(above, &before);
            sum += sum_of(above);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cells_of_many_tiles_are_those_of_one() {
        let (below, last) = wave(&border_above(12), &border_before(12));
        assert_eq!(below.last(), last.last());
        let mut rows = vec![border_above(3); 4];
        for _ in 0..4 {
            let mut before = border_before(3);
            for above in &mut rows {
                (*above, before) = wave(above, &before);
            }
        }
        let in_tiles: Vec<u32> = rows.iter().flat_map(|row| &row[1..]).copied().collect();
        assert_eq!(in_tiles, below[1..]);
        assert_eq!(wave(&border_above(2), &border_before(2)), (vec![1, 9, 33], vec![9, 33]));
    }
}
