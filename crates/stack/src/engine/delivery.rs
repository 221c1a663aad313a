//! [`DeliveryRates`]: how many bytes a second the way delivers, by samples
//! (draft-cheng-iccrg-delivery-rate-estimation).
//!
//! Each segment that goes gets a [`DeliveryStamp`]: what the peer had by then. When the peer has
//! the segment, it has got some bytes since the stamp, in a known time. The sample is their
//! quotient. The time is that of the acknowledgements, or the time in which the segments went if
//! that is longer: acknowledgements that come in one bunch must not seem fast.

use super::flight::SegmentsGot;
use smoltcp::time::{Duration, Instant};

/// What is noted of a segment when it goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeliveryStamp {
    /// The bytes that the peer had, and since when.
    delivered: u64,
    delivered_at: Instant,
    /// When the segment went of which the peer heard last, or the first one after a rest.
    first_went: Instant,
    /// The program wrote less than the way carries.
    is_limited: bool,
}

impl DeliveryStamp {
    /// That of a segment of which no rate is taken.
    pub(super) const NONE: DeliveryStamp = DeliveryStamp {
        delivered: 0,
        delivered_at: Instant::ZERO,
        first_went: Instant::ZERO,
        is_limited: false,
    };
}

/// What an acknowledgement shows of the way.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeliverySample {
    /// In bytes for each second.
    pub(super) rate: f64,
    /// The bytes that the peer had when the segment of the sample went.
    pub(super) before: u64,
    /// The way may carry more than the sample shows.
    pub(super) is_limited: bool,
}

/// The counts of a connection.
#[derive(Debug)]
pub(super) struct DeliveryRates {
    delivered: u64,
    delivered_at: Instant,
    first_went: Instant,
    /// Until the peer has this number of bytes, samples are limited by the program.
    limited_to: u64,
}

impl DeliveryRates {
    pub(super) fn new(now: Instant) -> DeliveryRates {
        DeliveryRates { delivered: 0, delivered_at: now, first_went: now, limited_to: 0 }
    }

    /// The bytes that the peer has.
    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// The stamp of a segment that goes now. `begins`: nothing else is on its way.
    pub(super) fn stamp(&mut self, begins: bool, now: Instant) -> DeliveryStamp {
        if begins {
            (self.first_went, self.delivered_at) = (now, now);
        }
        DeliveryStamp {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_went: self.first_went,
            is_limited: self.limited_to > self.delivered,
        }
    }

    /// All has gone that there is, and the way carries more than the bytes on their way.
    pub(super) fn limit(&mut self, on_way: usize) {
        self.limited_to = self.delivered + on_way.max(1) as u64;
    }

    /// Takes what the peer has got. There is no sample if the segment went for less than the
    /// `least` round trip: the peer answers to an earlier copy of it then.
    pub(super) fn sample(
        &mut self,
        got: &SegmentsGot,
        least: Duration,
        now: Instant,
    ) -> Option<DeliverySample> {
        if got.bytes == 0 {
            return None;
        }
        self.delivered += got.bytes as u64;
        self.delivered_at = now;
        let (went, stamp) = got.latest?;
        self.first_went = went;
        let span = (went - stamp.first_went).max(now - stamp.delivered_at);
        if span < least || span == Duration::ZERO {
            return None;
        }
        let rate = (self.delivered - stamp.delivered) as f64 * 1e6 / span.total_micros() as f64;
        Some(DeliverySample { rate, before: stamp.delivered, is_limited: stamp.is_limited })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(10);

    fn at(millis: i64) -> Instant {
        Instant::from_millis(millis)
    }

    fn got(bytes: usize, went: i64, stamp: DeliveryStamp) -> SegmentsGot {
        SegmentsGot { bytes, took: None, latest: Some((at(went), stamp)) }
    }

    #[test]
    fn a_rate_is_that_of_the_slower_of_both_directions() {
        let mut rates = DeliveryRates::new(at(0));
        // Ten segments go in 9 ms, and their acknowledgements come in one bunch.
        let stamps: Vec<_> = (0..10).map(|place| rates.stamp(place == 0, at(100 + place))).collect();
        let mut last = None;
        for (place, stamp) in stamps.iter().enumerate() {
            last = rates.sample(&got(1000, 100 + place as i64, *stamp), ROUND_TRIP, at(119));
        }
        let sample = last.unwrap();
        assert_eq!((sample.rate.round(), sample.before), (526_316.0, 0));
        // The next one went at once, and 10 ms later its acknowledgement comes.
        let stamp = rates.stamp(false, at(119));
        let sample = rates.sample(&got(1000, 119, stamp), ROUND_TRIP, at(129)).unwrap();
        assert_eq!((sample.rate, sample.before), (100_000.0, 10_000));
    }

    #[test]
    fn the_answer_to_an_earlier_copy_is_no_sample() {
        let mut rates = DeliveryRates::new(at(0));
        let stamp = rates.stamp(true, at(5));
        assert!(rates.sample(&got(1000, 5, stamp), ROUND_TRIP, at(6)).is_none());
        assert_eq!(rates.delivered(), 1000);
    }

    #[test]
    fn a_program_that_writes_little_limits_samples_until_they_are_over() {
        let mut rates = DeliveryRates::new(at(0));
        let first = rates.stamp(true, at(1));
        rates.limit(1000);
        let second = rates.stamp(false, at(2));
        assert!(!rates.sample(&got(1000, 1, first), ROUND_TRIP, at(11)).unwrap().is_limited);
        assert!(rates.sample(&got(1000, 2, second), ROUND_TRIP, at(12)).unwrap().is_limited);
        let third = rates.stamp(true, at(20));
        assert!(!rates.sample(&got(1000, 20, third), ROUND_TRIP, at(30)).unwrap().is_limited);
    }
}
