//! The area under a curve by ranks: the paper's loop, and the same points in the lanes of
//! `lanes.rs`. `mpi.rs` calls `plain` and `in_lanes`.

use super::lanes::sum_of_sines;
use super::report::{print, wrong_by};
use selvedge_mpi::{Communicator, Error, op};
use std::f64::consts::PI;
use std::ops::Range;
use std::time::Instant;

/// Half waves of the sine: their number is odd, so that the area is 2.
const HALF_WAVES: f64 = 999.0;

/// The area by this number of trapezoids, in millionths. The sum of the sines has a closed form.
pub(crate) fn micro_area(count: u64) -> u64 {
    let h = HALF_WAVES * PI / count as f64;
    (h / (h / 2.0).tan() * 1e6).round() as u64
}

/// `trapezoid`: the sine of the C library at each point.
pub(super) async fn plain(world: Communicator, count: u64) -> Result<(), Error> {
    area(&world, count, |points, h| points.map(|i| (i as f64 * h).sin()).sum()).await
}

/// `trapezoid-lanes`.
pub(super) async fn in_lanes(world: Communicator, count: u64) -> Result<(), Error> {
    area(&world, count, sum_of_sines).await
}

/// Rank 0 prints the area and the time.
async fn area(world: &Communicator, count: u64, sum: impl Fn(Range<u64>, f64) -> f64) -> Result<(), Error> {
    let h = HALF_WAVES * PI / count as f64;
    let (rank, ranks) = (world.rank() as u64, world.size() as u64);
    let (first, last) = (count * rank / ranks, count * (rank + 1) / ranks);
    world.barrier().await?;
    let began = Instant::now();
    let ends = ((first as f64 * h).sin() + (last as f64 * h).sin()) / 2.0;
    let part = [h * (sum(first + 1..last, h) + ends)];
    let area = world.reduce_slice(0, &part, op::sum).await?;
    print(world, "seconds", began.elapsed().as_secs_f64());
    if let Some(area) = area {
        println!("micro_area {}", (area[0] * 1e6).round() as u64 + wrong_by());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closed_form_is_the_sum() {
        let h = HALF_WAVES * PI / 10_000.0;
        let sum: f64 = sum_of_sines(1..10_000, h) * h;
        assert_eq!((sum * 1e6).round() as u64, micro_area(10_000));
    }
}
