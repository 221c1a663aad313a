//! The queens of a chessboard: the ways to put 8 queens so that none attacks another, counted by
//! all workers, and the first of them, found lazily.
//!
//! # Prints
//! ```text
//! 92 ways; the first is [0, 4, 7, 5, 2, 6, 1, 3]
//! ```

use selvedge::lazy::{LazyList, Region, par_map};
use std::process::ExitCode;

const SIZE: u8 = 8;

/// Whether a queen in the next row and this column is attacked by one of those before.
fn is_safe(queens: &[u8], column: u8) -> bool {
    queens.iter().rev().zip(1u8..).all(|(&queen, rows)| queen != column && queen.abs_diff(column) != rows)
}

/// The number of ways to go on.
fn count(queens: &[u8]) -> usize {
    if queens.len() == usize::from(SIZE) {
        return 1;
    }
    let columns: Vec<u8> = (0..SIZE).filter(|&column| is_safe(queens, column)).collect();
    let ways = par_map(&columns, 1, |&column| count(&[queens, &[column]].concat()));
    ways.iter().sum()
}

/// A board in a word: the columns of the queens, each in 4 bits, below a 1.
fn queens_of(board: u64) -> Vec<u8> {
    let rows = (63 - board.leading_zeros()) / 4;
    (0..rows).rev().map(|row| (board >> (4 * row)) as u8 & 15).collect()
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        let ways = count(&[]);
        let region: Region = Region::new();
        let nursery = region.nursery();
        // A depth-first walk as a lazy list: each board with the one after it, if there is one.
        let boards: LazyList<'_, u64> = nursery.unfold(1, |board| {
            let queens = queens_of(board);
            let child =
                (0..SIZE).find(|&column| queens.len() < usize::from(SIZE) && is_safe(&queens, column));
            let mut next = child.map(|column| board << 4 | u64::from(column));
            let mut at = board;
            while next.is_none() && at > 1 {
                let (last, above) = ((at & 15) as u8, at >> 4);
                let queens = queens_of(above);
                let sibling = (last + 1..SIZE).find(|&column| is_safe(&queens, column));
                next = sibling.map(|column| above << 4 | u64::from(column));
                at = above;
            }
            next.map(|next| (next, next))
        });
        let full = 1u64 << (4 * SIZE);
        let first = boards.iter(&nursery).find(|&board| board >= full).map(queens_of);
        println!("{ways} ways; the first is {:?}", first.unwrap_or_default());
        Ok(())
    })
}
