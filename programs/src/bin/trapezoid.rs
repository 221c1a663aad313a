//! The area under a curve by trapezoids (paper "Haskell-MPI", listing 3): a piece for each CPU,
//! which idle workers take.
//!
//! # Prints
//! ```text
//! sin from 0 to 999 pi by 1000003 trapezoids: 2.0000
//! as one piece, and as 7: the same to 9 digits
//! ```

use selvedge::lazy::par_map;
use std::f64::consts::PI;
use std::ops::Range;
use std::process::ExitCode;
use std::thread::available_parallelism;

fn main() -> ExitCode {
    selvedge::run_main(async {
        // No number of pieces divides it, so the last pieces are shorter.
        let (from, to, count) = (0.0, 999.0 * PI, 1_000_003);
        let pieces = available_parallelism().map_or(1, |cpus| cpus.get() as u64);
        let area = integrate(f64::sin, from, to, count, pieces);
        println!("sin from 0 to 999 pi by {count} trapezoids: {area:.4}");
        let [one, seven] = [1, 7].map(|pieces| integrate(f64::sin, from, to, count, pieces));
        let same = if (one - seven).abs() < 1e-9 { "the same" } else { "different" };
        println!("as one piece, and as 7: {same} to 9 digits");
        Ok(())
    })
}

/// The area under `f` by `count` trapezoids, in this number of pieces.
fn integrate(f: impl Fn(f64) -> f64 + Sync, from: f64, to: f64, count: u64, pieces: u64) -> f64 {
    let width = (to - from) / count as f64;
    let ends: Vec<Range<u64>> =
        (0..pieces).map(|piece| count * piece / pieces..count * (piece + 1) / pieces).collect();
    par_map(&ends, 1, |part| trapezoids(&f, from, width, part.clone())).iter().sum()
}

/// The area of some of the trapezoids.
fn trapezoids(f: impl Fn(f64) -> f64, from: f64, width: f64, part: Range<u64>) -> f64 {
    let at = |n: u64| f(from + width * n as f64);
    let ends = (at(part.start) + at(part.end)) / 2.0;
    (ends + (part.start + 1..part.end).map(at).sum::<f64>()) * width
}
