//! Two matrices are multiplied, a block of rows by each thread. The threads read both
//! matrices through `Arc`s.
//!
//! # Prints
//! ```text
//! the trace of the product of two 120 by 120 matrices is 4333266
//! ```

use selvedge::spawn;
use std::process::ExitCode;
use std::sync::Arc;

const SIZE: usize = 120;
const ROWS: usize = 15;

type Matrix = Arc<Vec<[i64; SIZE]>>;

fn main() -> ExitCode {
    selvedge::run_main(async {
        let sum: Matrix =
            Arc::new((0..SIZE).map(|row| std::array::from_fn(|column| (row + column) as i64)).collect());
        let product: Matrix =
            Arc::new((0..SIZE).map(|row| std::array::from_fn(|column| (row * column) as i64 % 7)).collect());
        let blocks: Vec<_> =
            (0..SIZE).step_by(ROWS).map(|first| spawn(rows(sum.clone(), product.clone(), first))).collect();
        let mut trace = 0;
        for (number, block) in blocks.into_iter().enumerate() {
            for (row, values) in block.await?.into_iter().enumerate() {
                trace += values[number * ROWS + row];
            }
        }
        println!("the trace of the product of two {SIZE} by {SIZE} matrices is {trace}");
        Ok(())
    })
}

async fn rows(left: Matrix, right: Matrix, first: usize) -> Vec<[i64; SIZE]> {
    let cell = |row: &[i64; SIZE], column: usize| (0..SIZE).map(|k| row[k] * right[k][column]).sum();
    left[first..first + ROWS].iter().map(|row| std::array::from_fn(|column| cell(row, column))).collect()
}
