//! [`RoundTripTimes`]: how long the peer of a connection takes to acknowledge, by RFC 6298.

use smoltcp::time::Duration;

/// The least that a timer waits beside the round trip: a peer may delay an acknowledgement.
const LEAST_MARGIN: u32 = 200_000;
/// The time of a timer before the first round trip, and the longest one.
const FIRST: Duration = Duration::from_secs(1);
pub(super) const LONGEST: Duration = Duration::from_secs(60);

/// Round trips in microseconds; all are 0 before the first one.
#[derive(Debug, Default)]
pub(super) struct RoundTripTimes {
    smoothed: u32,
    variation: u32,
    least: u32,
}

impl RoundTripTimes {
    /// Takes the time that one segment needed, which went once.
    pub(super) fn sample(&mut self, took: Duration) {
        let took = took.total_micros().clamp(1, LONGEST.total_micros()) as u32;
        if self.is_known() {
            let apart = self.smoothed.abs_diff(took);
            self.variation = self.variation - self.variation / 4 + apart / 4;
            self.smoothed = self.smoothed - self.smoothed / 8 + took / 8;
            self.least = self.least.min(took);
        } else {
            (self.smoothed, self.variation, self.least) = (took, took / 2, took);
        }
    }

    pub(super) fn is_known(&self) -> bool {
        self.smoothed != 0
    }

    pub(super) fn smoothed(&self) -> Duration {
        Duration::from_micros(u64::from(self.smoothed))
    }

    pub(super) fn least(&self) -> Duration {
        Duration::from_micros(u64::from(self.least))
    }

    /// How long a segment is waited for, until all is taken for lost.
    pub(super) fn timeout(&self) -> Duration {
        if !self.is_known() {
            return FIRST;
        }
        let margin = self.variation.saturating_mul(4).max(LEAST_MARGIN);
        (self.smoothed() + Duration::from_micros(u64::from(margin))).min(LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_waits_longer_for_a_peer_that_is_less_regular() {
        let mut times = RoundTripTimes::default();
        assert_eq!(times.timeout(), FIRST);
        for _ in 0..50 {
            times.sample(Duration::from_millis(10));
        }
        assert_eq!(times.timeout(), Duration::from_millis(210));
        for took in [400, 10, 400, 10, 400] {
            times.sample(Duration::from_millis(took));
        }
        assert!(times.timeout() > Duration::from_millis(500), "{times:?}");
        assert_eq!(times.least(), Duration::from_millis(10));
        times.sample(Duration::from_secs(1 << 40));
        assert!(times.timeout() <= LONGEST);
    }
}
