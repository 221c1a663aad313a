//! The six programs of [NCM11 §4], as plain functions: the kernels, and the loops on one OS thread;
//! and the cell of the wavefronts.
//!
//! The graphs in `six.rs` and `cholesky.rs`, the loops under rayon, and the serial loops call the
//! same kernels.
//!
//! A kernel is changed for all of them at once, so the rows of a case stay comparable. No kernel is
//! inlined: the copy in the plain loop of `cholesky` took 1 % more instructions than the other
//! ones.

use crate::child::numbers::Numbers;
use std::f64::consts::SQRT_2;

/// The number of turns after which a point of the plane has left the circle, at most `depth`.
#[inline(never)]
pub(crate) fn mandel(pixel: u32, side: u32, depth: u32) -> u32 {
    let at = |n: u32| 4.0 / f64::from(side) * f64::from(n) - 2.0;
    let (a, b) = (at(pixel % side), at(pixel / side));
    let (mut x, mut y) = (0.0, 0.0);
    for turn in 0..depth {
        let (xx, yy) = (x * x, y * y);
        if xx + yy >= 4.0 {
            return turn;
        }
        (x, y) = (xx - yy + a, 2.0 * x * y + b);
    }
    depth
}

/// The sum of the numbers of the pixels that have not left the circle.
pub(crate) fn mandel_check(pixels: impl Iterator<Item = u32>, depth: u32) -> u64 {
    pixels.zip(0..).filter(|&(turns, _)| turns == depth).map(|(_, number)| number).sum()
}

/// Whether an odd number above 1 is a prime, by division by every odd number up to its root: the
/// paper's naive test divides by all below it.
#[inline(never)]
pub(crate) fn is_prime(n: u32) -> bool {
    (3..n).step_by(2).all(|divisor| !n.is_multiple_of(divisor))
}

/// A body: its place and its mass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body {
    place: [f64; 3],
    mass: f64,
}

/// This number of bodies at places that a sequence of numbers gives.
pub(crate) fn bodies(n: u64) -> Vec<Body> {
    let mut numbers = Numbers::new(n);
    (0..n)
        .map(|_| Body { place: std::array::from_fn(|_| numbers.unit() * 10.0), mass: 1.0 + numbers.unit() })
        .collect()
}

/// The acceleration of a body by all others.
#[inline(never)]
pub(crate) fn acceleration(bodies: &[Body], of: usize) -> [f64; 3] {
    let here = bodies[of].place;
    let mut sum = [0.0; 3];
    for body in bodies {
        let away: [f64; 3] = std::array::from_fn(|axis| body.place[axis] - here[axis]);
        let square = away.iter().map(|x| x * x).sum::<f64>() + 1e-9;
        let pull = body.mass / (square * square.sqrt());
        for axis in 0..3 {
            sum[axis] += away[axis] * pull;
        }
    }
    sum
}

/// The bits of all accelerations, in their order; 0 if the forces do not cancel each other.
pub(crate) fn bodies_check(bodies: &[Body], accelerations: &[[f64; 3]]) -> u64 {
    let total: [f64; 3] = std::array::from_fn(|axis| {
        bodies.iter().zip(accelerations).map(|(body, pull)| body.mass * pull[axis]).sum()
    });
    let size: f64 = accelerations.iter().flatten().map(|x| x.abs()).sum();
    if total.iter().any(|x| x.abs() > 1e-9 * size) {
        return 0;
    }
    mixed(accelerations.iter().flatten().map(|x| x.to_bits()))
}

/// The answer for this number of bodies.
pub(crate) fn bodies_answer(n: u64) -> u64 {
    let bodies = bodies(n);
    let all: Vec<_> = (0..bodies.len()).map(|of| acceleration(&bodies, of)).collect();
    bodies_check(&bodies, &all)
}

/// A European option.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StockOption {
    spot: f32,
    strike: f32,
    rate: f32,
    volatility: f32,
    years: f32,
    is_put: bool,
}

/// This number of options that a sequence of numbers gives.
pub(crate) fn options(n: u64) -> Vec<StockOption> {
    let mut numbers = Numbers::new(n);
    let mut between = |low: f32, high: f32| low + (high - low) * numbers.unit() as f32;
    (0..n)
        .map(|number| StockOption {
            spot: between(20.0, 180.0),
            strike: between(20.0, 180.0),
            rate: between(0.02, 0.1),
            volatility: between(0.1, 0.6),
            years: between(0.1, 2.0),
            is_put: number % 2 == 1,
        })
        .collect()
}

/// The normal distribution, by the polynomial of Abramowitz and Stegun 26.2.17.
fn normal(x: f32) -> f32 {
    let k = 1.0 / (1.0 + 0.231_641_9 * x.abs());
    let polynomial =
        k * (0.319_381_54 + k * (-0.356_563_78 + k * (1.781_477_9 + k * (-1.821_255_9 + k * 1.330_274_5))));
    let tail = (-0.5 * x * x).exp() * 0.398_942_3 * polynomial;
    if x < 0.0 { tail } else { 1.0 - tail }
}

/// The prices of some options.
#[inline(never)]
pub(crate) fn prices(options: &[StockOption]) -> Vec<f32> {
    options.iter().map(price).collect()
}

/// The price of an option by Black and Scholes.
fn price(option: &StockOption) -> f32 {
    let &StockOption { spot, strike, rate, volatility, years, is_put } = option;
    let root = volatility * years.sqrt();
    let d1 = ((spot / strike).ln() + (rate + 0.5 * volatility * volatility) * years) / root;
    let d2 = d1 - root;
    let paid = strike * (-rate * years).exp();
    match is_put {
        true => paid * normal(-d2) - spot * normal(-d1),
        false => spot * normal(d1) - paid * normal(d2),
    }
}

/// The bits of all prices, in their order; 0 if one of every hundred is not as an integral says.
pub(crate) fn prices_check(options: &[StockOption], prices: impl Iterator<Item = f32> + Clone) -> u64 {
    let wrong = options
        .iter()
        .zip(prices.clone())
        .step_by(options.len().div_ceil(100))
        .any(|(option, price)| (integral(option) - f64::from(price)).abs() > 1e-2);
    if wrong { 0 } else { mixed(prices.map(|price| u64::from(price.to_bits()))) }
}

/// The answer for this number of options.
pub(crate) fn prices_answer(n: u64) -> u64 {
    let options = options(n);
    let prices = prices(&options);
    prices_check(&options, prices.into_iter())
}

/// The price of an option as the mean of what it pays, without the normal distribution's function:
/// an oracle for [`price`].
fn integral(option: &StockOption) -> f64 {
    let [spot, strike, rate, volatility, years] =
        [option.spot, option.strike, option.rate, option.volatility, option.years].map(f64::from);
    let sign = if option.is_put { -1.0 } else { 1.0 };
    let steps = 4000;
    let width = 16.0 / f64::from(steps);
    let mean: f64 = (0..steps)
        .map(|step| {
            let x = -8.0 + width * (f64::from(step) + 0.5);
            let end =
                spot * ((rate - 0.5 * volatility * volatility) * years + volatility * years.sqrt() * x).exp();
            (sign * (end - strike)).max(0.0) * (-0.5 * x * x).exp()
        })
        .sum();
    mean * width / (2.0 * std::f64::consts::PI).sqrt() * (-rate * years).exp()
}

/// The rows of queens that are placed: the columns and both diagonals that are taken, as bits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Placed {
    columns: u32,
    left: u32,
    right: u32,
}

impl Placed {
    /// The columns of the next row that are free on a board of this size.
    pub(crate) fn free(self, size: u32) -> u32 {
        !(self.columns | self.left | self.right) & ((1 << size) - 1)
    }

    /// The board with a queen in a column of the next row, given as a bit.
    pub(crate) fn with(self, queen: u32) -> Placed {
        Placed {
            columns: self.columns | queen,
            left: (self.left | queen) << 1,
            right: (self.right | queen) >> 1,
        }
    }
}

/// The ways to place a queen in each row that is left.
#[inline(never)]
pub(crate) fn queens(board: Placed, size: u32) -> u64 {
    if board.columns.count_ones() == size {
        return 1;
    }
    bits(board.free(size)).map(|queen| queens(board.with(queen), size)).sum()
}

/// The bits of a word, each as a word.
pub(crate) fn bits(mut word: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = word & word.wrapping_neg();
        word ^= bit;
        (bit != 0).then_some(bit)
    })
}

/// A cell of the wavefront, by its three neighbours.
#[inline]
pub(crate) fn cell(north_west: u32, north: u32, west: u32) -> u32 {
    north_west.wrapping_mul(3).wrapping_add(north).wrapping_add(west)
}

/// A square of a matrix, by rows.
pub(crate) type Tile = Vec<f64>;

/// The number of the tile in row `i` and column `j` of the lower half of a matrix, by rows.
#[inline]
pub(crate) fn number(i: u32, j: u32) -> usize {
    (i * (i + 1) / 2 + j) as usize
}

/// The tile in a place of a symmetric matrix that is positive definite. The matrix has `tiles`
/// tiles of `block` numbers on each side.
pub(crate) fn tile([i, j]: [u32; 2], tiles: u32, block: u32) -> Tile {
    let size = tiles * block;
    let of = |row: u32, column: u32| {
        let distance = f64::from(row.abs_diff(column)) / f64::from(size);
        if row == column { f64::from(size) } else { 1.0 / (1.0 + SQRT_2 * distance) }
    };
    (0..block * block).map(|at| of(i * block + at / block, j * block + at % block)).collect()
}

/// The Cholesky factor of a tile on the diagonal, in its place.
#[inline(never)]
pub(crate) fn factor(tile: &mut [f64], block: usize) {
    for column in 0..block {
        let square: f64 = (0..column).map(|k| tile[column * block + k].powi(2)).sum();
        let root = (tile[column * block + column] - square).sqrt();
        tile[column * block + column] = root;
        for row in column + 1..block {
            let dot: f64 = (0..column).map(|k| tile[row * block + k] * tile[column * block + k]).sum();
            tile[row * block + column] = (tile[row * block + column] - dot) / root;
        }
        tile[column * block + column + 1..(column + 1) * block].fill(0.0);
    }
}

/// Solves `tile = x * diagonal^T` in its place.
#[inline(never)]
pub(crate) fn solve(tile: &mut [f64], diagonal: &[f64], block: usize) {
    for row in tile.chunks_exact_mut(block) {
        for column in 0..block {
            let of = &diagonal[column * block..][..=column];
            let dot: f64 = row[..column].iter().zip(of).map(|(x, y)| x * y).sum();
            row[column] = (row[column] - dot) / of[column];
        }
    }
}

/// `tile -= left * right^T`, in its place.
#[inline(never)]
pub(crate) fn update(tile: &mut [f64], left: &[f64], right: &[f64], block: usize) {
    let mut turned = vec![0.0; block * block];
    for (row, numbers) in right.chunks_exact(block).enumerate() {
        for (column, number) in numbers.iter().enumerate() {
            turned[column * block + row] = *number;
        }
    }
    for (row, factors) in tile.chunks_exact_mut(block).zip(left.chunks_exact(block)) {
        for (factor, numbers) in factors.iter().zip(turned.chunks_exact(block)) {
            for (sum, number) in row.iter_mut().zip(numbers) {
                *sum -= factor * number;
            }
        }
    }
}

/// The bits of the factor's tiles, by rows up to the diagonal; 0 if some product of two rows is not
/// the number of the matrix.
pub(crate) fn factor_check<'t>(tiles: u32, block: u32, tile_of: impl Fn(u32, u32) -> &'t [f64]) -> u64 {
    let row_of = |row: u32| {
        let at = (row % block * block) as usize;
        let part = |j| tile_of(row / block, j)[at..at + block as usize].iter().copied();
        (0..=row / block).flat_map(part).collect::<Vec<f64>>()
    };
    let size = tiles * block;
    let mut numbers = Numbers::new(u64::from(size));
    for _ in 0..200 {
        let mut any = || (numbers.unit() * f64::from(size)) as u32;
        let (one, other) = (any(), any());
        let (row, column) = (one.max(other), one.min(other));
        let product: f64 = row_of(row).iter().zip(&row_of(column)).map(|(x, y)| x * y).sum();
        let expected = tile([row / block, column / block], tiles, block)
            [(row % block * block + column % block) as usize];
        if (product - expected).abs() > 1e-9 * f64::from(size) {
            return 0;
        }
    }
    let all = (0..tiles).flat_map(|i| (0..=i).map(move |j| (i, j)));
    mixed(all.flat_map(|(i, j)| tile_of(i, j).iter().map(|x| x.to_bits())))
}

/// Words mixed into one that fits in the mantissa of a number, and is not 0.
fn mixed(words: impl Iterator<Item = u64>) -> u64 {
    let mix = |sum: u64, word: u64| (sum ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    words.fold(1, mix) >> 16 | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_mandelbrot_set() {
        let side = 300;
        // The number that both of the paper's programs print.
        let pixels = (0..side * side).map(|pixel| mandel(pixel, side, 4000));
        assert_eq!(mandel_check(pixels, 4000), 384_490_306);
    }

    #[test]
    fn known_numbers_of_queens_and_primes() {
        assert_eq!([6, 8, 10].map(|size| queens(Placed::default(), size)), [4, 92, 724]);
        assert_eq!((3..1000).step_by(2).filter(|&n| is_prime(n)).count() + 1, 168);
    }

    #[test]
    fn a_wrong_price_is_noticed() {
        let options = options(1000);
        let prices = prices(&options);
        assert_ne!(prices_check(&options, prices.iter().copied()), 0);
        assert_eq!(prices_check(&options, prices.iter().map(|price| price + 0.1)), 0);
    }

    #[test]
    fn a_body_that_is_left_out_is_noticed() {
        let bodies = bodies(50);
        let mut all: Vec<_> = (0..50).map(|of| acceleration(&bodies, of)).collect();
        assert_ne!(bodies_check(&bodies, &all), 0);
        all[49] = [0.0; 3];
        assert_eq!(bodies_check(&bodies, &all), 0);
    }
}
