//! The sine of many points at once, without a branch, so that the compiler computes several of them
//! in the lanes of a register. `trapezoid.rs` calls `sum_of_sines`.

#![allow(unsafe_code, reason = "a function for some processors alone is called where they are")]

use std::f64::consts::{FRAC_1_PI, PI};
use std::ops::Range;

/// The points that are computed side by side: several registers, so that one multiplication need
/// not wait for another.
const LANES: usize = 16;

/// The sum of the sines of the points `i * h`, of which none is above some 10,000.
pub(super) fn sum_of_sines(points: Range<u64>, h: f64) -> f64 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: this processor has what the function needs: the line above has asked it.
        return unsafe { by_avx2(points, h) };
    }
    in_lanes::<false>(points, h)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn by_avx2(points: Range<u64>, h: f64) -> f64 {
    in_lanes::<true>(points, h)
}

/// The sum, by products and sums in one operation (`FUSED`) or in two.
#[inline(always)]
fn in_lanes<const FUSED: bool>(points: Range<u64>, h: f64) -> f64 {
    let (mut i, mut sums) = (points.start, [0.0; LANES]);
    while i + LANES as u64 <= points.end {
        let from = i as f64;
        for (lane, sum) in sums.iter_mut().enumerate() {
            *sum += sine::<FUSED>((from + lane as f64) * h);
        }
        i += LANES as u64;
    }
    let rest: f64 = (i..points.end).map(|i| sine::<FUSED>(i as f64 * h)).sum();
    sums.iter().sum::<f64>() + rest
}

/// `a * b + c`.
#[inline(always)]
fn product_and_sum<const FUSED: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// The sine of a number up to some 10,000, to the last digits.
#[inline(always)]
fn sine<const FUSED: bool>(x: f64) -> f64 {
    // A sum with it has no digits behind the point, and its last one says whether the number of
    // half waves is odd.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    let shifted = product_and_sum::<FUSED>(x, FRAC_1_PI, ROUND);
    let half_waves = shifted - ROUND;
    let r = product_and_sum::<FUSED>(-half_waves, PI_LOW, product_and_sum::<FUSED>(-half_waves, PI_HIGH, x));
    let sign = shifted.to_bits() << 63;
    let r2 = r * r;
    let mut sum = COEFFICIENTS[0];
    for &coefficient in &COEFFICIENTS[1..] {
        sum = product_and_sum::<FUSED>(sum, r2, coefficient);
    }
    let value = product_and_sum::<FUSED>(r * r2, sum, r);
    f64::from_bits(value.to_bits() ^ sign)
}

/// Pi in two parts. The first has few digits, so that its products with small numbers are exact.
const PI_HIGH: f64 = f64::from_bits(PI.to_bits() & !0xff_ffff);
const PI_LOW: f64 = 1.984_187_159_361_081e-9;

/// Taylor's series: `(-1)^n / (2n + 1)!`, from n = 10 down to n = 1. Up to a quarter of a wave the
/// rest of the series is some 1e-18.
const COEFFICIENTS: [f64; 10] = {
    let mut all = [0.0; 10];
    let (mut n, mut factor) = (1, 1.0);
    while n <= 10 {
        factor = -factor / ((2 * n) as f64 * (2 * n + 1) as f64);
        all[10 - n] = factor;
        n += 1;
    }
    all
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sine_is_that_of_the_library() {
        for i in 0..100_000 {
            let x = f64::from(i) * 0.0314;
            for value in [sine::<false>(x), sine::<true>(x)] {
                assert!((value - x.sin()).abs() < 1e-13, "{x}: {value} and {}", x.sin());
            }
        }
    }

    #[test]
    fn each_point_is_in_the_sum() {
        let by_the_library = |points: Range<u64>| points.map(|i| (i as f64 * 0.01).sin()).sum::<f64>();
        for points in [0..0, 3..4, 5..21, 1..1000] {
            let expected = by_the_library(points.clone());
            assert!((sum_of_sines(points.clone(), 0.01) - expected).abs() < 1e-10);
            assert!((in_lanes::<false>(points, 0.01) - expected).abs() < 1e-10);
        }
    }
}
