//! `Histogram`: latencies in buckets, of which the width grows with the latency. `Tally`
//! (`report.rs`) has one for all clients of a run.

/// Buckets per doubling: the error of a percentile is below 1/64 of it.
const STEPS: u64 = 64;
/// log2 of `STEPS`.
const STEP_BITS: u32 = STEPS.trailing_zeros();
/// Enough for 2^40 ns, a quarter of an hour; longer latencies count as that.
const BUCKETS: usize = ((40 - STEP_BITS + 1) as u64 * STEPS) as usize;

/// Counts latencies, in nanoseconds.
///
/// # Complexity
/// Recording is a few instructions and allocates nothing.
#[derive(Debug)]
pub(crate) struct Histogram {
    counts: Box<[u64; BUCKETS]>,
    sum: u128,
    max: u64,
}

impl Histogram {
    pub(crate) fn new() -> Histogram {
        Histogram { counts: Box::new([0; BUCKETS]), sum: 0, max: 0 }
    }

    /// Counts one latency.
    #[inline]
    pub(crate) fn record(&mut self, nanos: u64) {
        self.counts[bucket(nanos)] += 1;
        self.sum += u128::from(nanos);
        self.max = self.max.max(nanos);
    }

    /// The largest of the given share (0 to 1) of the latencies, to the bucket's upper end; 0 if
    /// there are none.
    pub(crate) fn percentile(&self, share: f64) -> u64 {
        let total: u64 = self.counts.iter().sum();
        let rank = ((total as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return upper_end(index).min(self.max);
            }
        }
        self.max
    }

    /// The mean; 0 if there are none.
    pub(crate) fn mean(&self) -> f64 {
        let total: u64 = self.counts.iter().sum();
        if total == 0 { 0.0 } else { self.sum as f64 / total as f64 }
    }

    /// The largest.
    pub(crate) fn max(&self) -> u64 {
        self.max
    }
}

/// The bucket of a latency: below `STEPS` its own, above one of `STEPS` per doubling.
#[inline]
fn bucket(nanos: u64) -> usize {
    if nanos < STEPS {
        return nanos as usize;
    }
    let shift = nanos.ilog2() - STEP_BITS;
    // The leading bit of the shifted value is STEPS, so that the buckets of a doubling follow those
    // of the one before.
    let index = (u64::from(shift) * STEPS + (nanos >> shift)) as usize;
    index.min(BUCKETS - 1)
}

/// The largest latency of a bucket.
fn upper_end(index: usize) -> u64 {
    let index = index as u64;
    if index < 2 * STEPS {
        return index;
    }
    let shift = index / STEPS - 1;
    ((index % STEPS + STEPS + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_latency_is_within_its_bucket() {
        let powers = (13..40).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, 3 << (bit - 1)]);
        for nanos in (0..5000).chain(powers) {
            let index = bucket(nanos);
            assert!(upper_end(index) >= nanos, "{nanos} in {index}, which ends at {}", upper_end(index));
            assert!(index == 0 || upper_end(index - 1) < nanos, "{nanos} in {index}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_are_exact_to_a_bucket() {
        let mut histogram = Histogram::new();
        assert_eq!(histogram.percentile(0.5), 0);
        for nanos in 1..=100_000 {
            histogram.record(nanos);
        }
        for (share, exact) in [(0.5, 50_000.0), (0.9, 90_000.0), (0.999, 99_900.0)] {
            let found = histogram.percentile(share) as f64;
            assert!(found >= exact && found <= exact * (1.0 + 1.0 / 64.0), "{share}: {found}");
        }
        assert_eq!(histogram.percentile(1.0), 100_000);
        assert_eq!(histogram.max(), 100_000);
        assert!((histogram.mean() - 50_000.5).abs() < 1e-6);
    }
}
