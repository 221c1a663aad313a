//! [`SlowStart`]: how a window doubles at the beginning, and when that is over before a segment is
//! lost: when round trips become longer, because a queue fills (HyStart++, RFC 9406).
//!
//! ```text
//!   doubling ──the least round trip of a round is longer by an eighth──▶ cautious
//!   cautious ──the least one of a later round is shorter again──▶ doubling
//!   cautious ──five rounds, a fourth as fast──▶ over
//! ```

use super::flight::SegmentsGot;

/// The round trips of a round that count for its least one.
const SAMPLES: u8 = 8;
/// By which part of the round trip before it a round is longer, and the bounds of that in
/// microseconds.
const LONGER: u32 = 8;
const LEAST_LONGER: u32 = 4_000;
const MOST_LONGER: u32 = 16_000;
/// The growth while it is cautious, as a part, and the rounds of that.
const CAUTIOUS: f64 = 0.25;
const CAUTIOUS_ROUNDS: u8 = 5;

/// Round trips are microseconds; `u32::MAX` stands for none.
#[derive(Debug)]
pub(super) struct SlowStart {
    /// The least of this round and of the one before, and how many this one has had.
    least: u32,
    before: u32,
    samples: u8,
    /// The round is over when the peer has this number of bytes more.
    left: usize,
    /// The least round trip when it became cautious, and the rounds since then.
    cautious: Option<(u32, u8)>,
}

impl SlowStart {
    pub(super) fn new() -> SlowStart {
        SlowStart { least: u32::MAX, before: u32::MAX, samples: 0, left: 0, cautious: None }
    }

    /// Takes what the peer has got, with `on_way` bytes on their way now. Returns by how many bytes
    /// the window grows; `None` when it is to double no longer.
    pub(super) fn grows_by(&mut self, got: &SegmentsGot, on_way: usize) -> Option<f64> {
        if let Some(took) = got.took {
            let took = took.total_micros().min(u64::from(u32::MAX) - 1) as u32;
            self.least = self.least.min(took);
            self.samples = self.samples.saturating_add(1);
        }
        if self.samples >= SAMPLES {
            self.compare();
        }
        self.left = self.left.saturating_sub(got.bytes);
        if self.left == 0 {
            (self.before, self.least, self.samples, self.left) = (self.least, u32::MAX, 0, on_way);
            if let Some((_, rounds)) = &mut self.cautious {
                *rounds += 1;
            }
        }
        match self.cautious {
            None => Some(got.bytes as f64),
            Some((_, rounds)) if rounds < CAUTIOUS_ROUNDS => Some(got.bytes as f64 * CAUTIOUS),
            Some(_) => None,
        }
    }

    /// Compares the round with the one before, or with that in which it became cautious.
    fn compare(&mut self) {
        match self.cautious {
            Some((first, _)) if self.least < first => self.cautious = None,
            Some(_) => {}
            None if self.before < u32::MAX => {
                let longer = (self.before / LONGER).clamp(LEAST_LONGER, MOST_LONGER);
                if self.least >= self.before.saturating_add(longer) {
                    self.cautious = Some((self.least, 0));
                }
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smoltcp::time::Duration;

    /// A round of `SAMPLES` segments and more, all with this round trip: how many bytes it grows.
    fn round(slow: &mut SlowStart, millis: u64) -> Option<f64> {
        let took = Some(Duration::from_millis(millis));
        let got = SegmentsGot { bytes: 1000, took, latest: None };
        (0..10).map(|_| slow.grows_by(&got, 10_000)).sum()
    }

    #[test]
    fn it_doubles_while_round_trips_stay_and_ends_five_rounds_after_they_grow() {
        let mut slow = SlowStart::new();
        for _ in 0..20 {
            assert_eq!(round(&mut slow, 40), Some(10_000.0));
        }
        assert_eq!(round(&mut slow, 43), Some(10_000.0), "less than an eighth");
        let mut cautious = 0;
        while round(&mut slow, 50).is_some() {
            cautious += 1;
        }
        assert!((4..=6).contains(&cautious), "{cautious} rounds");
    }

    #[test]
    fn it_doubles_again_if_the_round_trips_were_long_by_chance() {
        let mut slow = SlowStart::new();
        round(&mut slow, 40);
        round(&mut slow, 40);
        round(&mut slow, 60);
        assert_eq!(round(&mut slow, 60), Some(2_500.0));
        round(&mut slow, 40);
        assert_eq!(round(&mut slow, 40), Some(10_000.0));
    }

    #[test]
    fn a_few_round_trips_show_nothing() {
        let mut slow = SlowStart::new();
        for millis in [10, 100, 300, 1000] {
            let got = SegmentsGot { bytes: 1000, took: Some(Duration::from_millis(millis)), latest: None };
            for _ in 0..5 {
                assert_eq!(slow.grows_by(&got, 5000), Some(1000.0));
            }
        }
    }
}
