//! [`CongestionWindow`]: how many bytes may be on their way at once, by CUBIC (RFC 9438) or NewReno
//! (RFC 5681). It begins as `slow_start.rs` says. `recovery.rs` tells it, through `control.rs`,
//! what the peer acknowledges, and what is lost.

use super::flight::{SegmentsGot, WayHeard};
use super::slow_start::SlowStart;
use crate::tcp_options::Congestion;
use smoltcp::time::{Duration, Instant};

/// The segments on their way at the beginning, and after a rest (RFC 6928).
const FIRST: f64 = 10.0;
/// The least segments after a loss.
const LEAST: f64 = 2.0;
/// What CUBIC leaves of the window at a loss, and how steeply it grows, in segments and seconds.
const BETA: f64 = 0.7;
const STEEPNESS: f64 = 0.4;
/// How fast CUBIC grows as Reno would, in segments for each round trip.
const AS_RENO: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

#[derive(Debug)]
pub(super) struct CongestionWindow {
    control: Congestion,
    /// The bytes of a segment.
    segment: u16,
    /// All of these are bytes.
    bytes: f64,
    /// Below it the window doubles in each round trip, and as `slow_start` has it while it is not
    /// known.
    threshold: f64,
    slow_start: SlowStart,
    /// The window before the last loss, and that to which CUBIC returns.
    before_loss: f64,
    plateau: f64,
    /// The window that Reno would have.
    renos: f64,
    /// When CUBIC began to grow after the last loss.
    epoch: Option<Instant>,
}

impl CongestionWindow {
    /// A new one, with segments of this length at most.
    pub(super) fn new(control: Congestion, longest: u16) -> CongestionWindow {
        CongestionWindow {
            control,
            segment: longest,
            bytes: FIRST * f64::from(longest),
            threshold: f64::INFINITY,
            slow_start: SlowStart::new(),
            before_loss: 0.0,
            plateau: 0.0,
            renos: 0.0,
            epoch: None,
        }
    }

    /// The peer takes segments of this length at most.
    pub(super) fn open(&mut self, largest: u16) {
        self.segment = largest.clamp(1, self.segment);
        self.bytes = self.segments(FIRST);
    }

    fn segments(&self, count: f64) -> f64 {
        count * f64::from(self.segment)
    }

    /// The bytes of a segment.
    pub(super) fn segment(&self) -> usize {
        self.segment.into()
    }

    pub(super) fn bytes(&self) -> usize {
        if self.control == Congestion::Unlimited { usize::MAX } else { self.bytes as usize }
    }

    /// Nothing was sent for longer than a timer waits: what the path carries now is not known.
    pub(super) fn rest(&mut self) {
        self.bytes = self.bytes.min(self.segments(FIRST));
        self.epoch = None;
    }

    /// The peer has got this.
    pub(super) fn grow(&mut self, got: &SegmentsGot, way: WayHeard, round_trip: Duration, now: Instant) {
        let begins = self.bytes < self.threshold;
        // A program that sends less than the window does not show that the path carries it.
        let used = way.before as f64 * if begins { 2.0 } else { 1.0 } + self.segments(2.0);
        if got.bytes == 0 || used < self.bytes {
            return;
        }
        if self.threshold == f64::INFINITY {
            match self.slow_start.grows_by(got, way.on_way) {
                Some(more) => self.bytes += more,
                None => self.threshold = self.bytes,
            }
            return;
        }
        let got = got.bytes as f64;
        if begins {
            // The part of `got` above the threshold is less than one round trip's.
            self.bytes = (self.bytes + got).min(self.threshold);
            return;
        }
        let rounds = got / self.bytes;
        self.bytes = match self.control {
            Congestion::Cubic => self.cubic(rounds, round_trip, now),
            _ => self.bytes + self.segments(rounds),
        };
    }

    /// The window of CUBIC after this part of a round trip.
    fn cubic(&mut self, rounds: f64, round_trip: Duration, now: Instant) -> f64 {
        let epoch = *self.epoch.get_or_insert_with(|| {
            self.renos = self.bytes;
            self.plateau = self.plateau.max(self.bytes);
            now
        });
        let seconds = |micros: i64| micros as f64 / 1e6;
        let steepness = self.segments(STEEPNESS);
        let until_plateau = ((self.plateau - self.threshold.min(self.plateau)) / steepness).cbrt();
        let curve = |time: f64| steepness * (time - until_plateau).powi(3) + self.plateau;
        let time = seconds((now - epoch).total_micros() as i64);
        let speed = if self.renos >= self.before_loss { 1.0 } else { AS_RENO };
        self.renos += self.segments(speed * rounds);
        if curve(time) < self.renos {
            return self.bytes.max(self.renos);
        }
        let ahead = curve(time + seconds(round_trip.total_micros() as i64));
        let target = ahead.clamp(self.bytes, 1.5 * self.bytes);
        self.bytes + (target - self.bytes) * rounds
    }

    /// A segment is lost, and none was lost in the round trip before.
    pub(super) fn lose(&mut self) {
        let left = match self.control {
            Congestion::Cubic => BETA,
            _ => 0.5,
        };
        // The last loss was at a larger window: another connection has come to the path.
        let shares = self.bytes < self.plateau;
        self.plateau = if shares { self.bytes * (1.0 + BETA) / 2.0 } else { self.bytes };
        self.before_loss = self.bytes;
        self.threshold = (self.bytes * left).max(self.segments(LEAST));
        self.bytes = self.threshold;
        self.epoch = None;
    }

    /// A timer has expired: it begins anew with one segment. If that is `again` without an
    /// acknowledgement, the threshold stays.
    pub(super) fn time_out(&mut self, again: bool) {
        if !again {
            self.lose();
        }
        self.bytes = self.segments(1.0);
        self.epoch = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(10);

    fn window(control: Congestion) -> CongestionWindow {
        let mut window = CongestionWindow::new(control, 1460);
        window.open(1000);
        window
    }

    /// All of these bytes, which were on their way, are acknowledged at once.
    fn acknowledge(window: &mut CongestionWindow, bytes: usize, now: Instant) {
        let got = SegmentsGot { bytes, took: Some(ROUND_TRIP), latest: None };
        window.grow(&got, WayHeard { before: bytes, on_way: 0, lost: 0 }, ROUND_TRIP, now);
    }

    /// The segments of the window after these round trips, in which all of it is acknowledged.
    fn after(window: &mut CongestionWindow, trips: i64, from: i64) -> usize {
        for trip in from..from + trips {
            acknowledge(window, window.bytes(), Instant::from_millis(10 * trip));
        }
        window.bytes() / 1000
    }

    #[test]
    fn a_window_doubles_until_a_loss() {
        for control in [Congestion::Reno, Congestion::Cubic] {
            let mut window = window(control);
            assert_eq!(after(&mut window, 3, 0), 80, "{control:?}");
            window.lose();
            let left = window.bytes() / 1000;
            assert_eq!(left, if control == Congestion::Reno { 40 } else { 56 }, "{control:?}");
            assert!(after(&mut window, 1, 3) <= left + 1, "{control:?}");
        }
    }

    #[test]
    fn reno_grows_by_a_segment_in_a_round_trip_and_cubic_returns_on_its_curve() {
        let mut reno = window(Congestion::Reno);
        after(&mut reno, 3, 0);
        reno.lose();
        assert_eq!(after(&mut reno, 20, 3), 60);
        // 80 segments come back after the cubic root of 80 * 0.3 / 0.4 seconds, or as Reno has it.
        let mut cubic = window(Congestion::Cubic);
        after(&mut cubic, 3, 0);
        cubic.lose();
        assert_eq!(after(&mut cubic, 20, 3), 56 + 10);
        assert!((79..=82).contains(&after(&mut cubic, 27, 23)), "{cubic:?}");
    }

    #[test]
    fn a_program_that_sends_little_shows_nothing() {
        let mut window = window(Congestion::Cubic);
        for trip in 0..100 {
            acknowledge(&mut window, 1000, Instant::from_millis(10 * trip));
        }
        assert_eq!(window.bytes(), 10_000);
    }

    #[test]
    fn an_expired_timer_begins_anew_and_keeps_half() {
        let mut window = window(Congestion::Reno);
        after(&mut window, 3, 0);
        for again in [false, true, true] {
            window.time_out(again);
            assert_eq!(window.bytes(), 1000);
        }
        assert_eq!(after(&mut window, 5, 3), 32);
        assert_eq!(after(&mut window, 2, 8), 41, "it grows slowly above the half");
        window.rest();
        assert_eq!(window.bytes(), 10_000);
    }

    #[test]
    fn without_control_there_is_no_limit() {
        let mut window = window(Congestion::Unlimited);
        window.lose();
        window.time_out(false);
        assert_eq!(window.bytes(), usize::MAX);
    }
}
