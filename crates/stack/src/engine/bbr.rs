//! [`BbrModel`]: a model of the way to the peer, after BBR
//! (draft-cardwell-iccrg-bbr-congestion-control).
//!
//! The model has two numbers: the most bytes a second that the way has delivered lately, and the
//! least time of a round trip. Their product is what fills the way, and what is more stands in a
//! queue. A loss says nothing of either number, so the model goes on as fast as before.
//!
//! ```text
//!   Startup ──no faster for three rounds──▶ Drain ──the queue is empty──▶ Cruise
//!   any of them ──no shorter round trip for ten seconds──▶ Narrow ──200 ms──▶ Cruise or Startup
//! ```
//! `Startup` doubles the rate in each round. `Cruise` has eight phases of a round trip each, at
//! 1.25, 0.75, 1, 1, 1, 1, 1 and 1 times the bandwidth.
//!
//! Segments go at the rate of the mode's factor and the bandwidth, a few at once: `may_go` says
//! whether the next one goes, and `goes_at` when a few may. The window, twice of what fills the
//! way, is for acknowledgements that come late.
//!
//! # Differences
//! 1. The bandwidth is the most of this cycle of phases and of the one before, in place of ten
//!    rounds: two numbers keep it.
//! 2. `Narrow` leaves half of what fills the way, as version 3 has it, and not four segments.
//! 3. The phase that empties the queue ends when it is empty, as in version 2, and after four round
//!    trips at most. A first phase that has found more is followed by another one, so a way that is
//!    much faster than the model thinks is found in some round trips.
//! 4. A repair does not narrow the window. Segments that go again keep to the same rate.

use super::delivery::{DeliveryRates, DeliverySample, DeliveryStamp};
use super::flight::{SegmentsGot, WayHeard};
use smoltcp::time::{Duration, Instant};

/// The segments on their way at the beginning (RFC 6928), and the least later.
const FIRST: f64 = 10.0;
const LEAST: f64 = 4.0;
/// The rate in `Startup`, as a part of the bandwidth: it doubles in each round.
const STARTUP: f64 = 2.77;
/// The rate in `Drain`.
const DRAIN: f64 = 1.0 / STARTUP;
/// The rates of the phases.
const PHASES: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// The most round trips of the phase that empties a queue: a fourth of what fills the way in each.
const EMPTYING: u32 = 4;
/// The window, in what fills the way.
const WINDOW: f64 = 2.0;
/// A queue that the bandwidth's mistakes would make is emptied by this part of the rate.
const MARGIN: f64 = 0.99;
/// The way is full if a round is faster by less, this number of times.
const FASTER: f64 = 1.25;
const FULL_ROUNDS: u8 = 3;
/// A first phase that has brought so much more is followed by another one.
const MORE: f64 = 1.2;
/// How long the least round trip is believed, and how long `Narrow` looks for it.
const BELIEVED: Duration = Duration::from_secs(10);
const NARROW: Duration = Duration::from_millis(200);
/// The bytes of this time go at once, in seconds, and at most these bytes.
const TICK: f64 = 0.001;
const MOST_AT_ONCE: f64 = 65_536.0;
/// Below this rate one segment goes at once, in bytes a second.
const SLOW: f64 = 150_000.0;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum BbrMode {
    Startup,
    Drain,
    /// The number of the phase, and since when.
    Cruise(usize, Instant),
    /// Until when, since the way is as narrow as it has to be.
    Narrow(Option<Instant>),
}

#[derive(Debug)]
pub(super) struct BbrModel {
    segment: f64,
    rates: DeliveryRates,
    mode: BbrMode,
    /// The most bytes a second of this cycle and of the one before.
    bandwidths: [f64; 2],
    /// The least round trip, and when it was found.
    least: Option<Duration>,
    least_at: Instant,
    /// The rate of the first segments: the bandwidth is not known for a round.
    first_rate: f64,
    /// A round is over when the peer has a segment that went after it had this number of bytes.
    round_ends: u64,
    round_begins: bool,
    /// The bandwidth that was called faster last, and the rounds since then. Later the first one is
    /// the bandwidth when the first phase began.
    full: f64,
    full_rounds: u8,
    /// Nothing was on its way for a while: the next round trip is one without a queue.
    rested: bool,
    /// In bytes.
    window: f64,
    /// Until when the rate has been used, in microseconds.
    used_to: f64,
}

impl BbrModel {
    /// A new one, for segments of this length. The handshake took the time `least`.
    pub(super) fn new(segment: u16, least: Option<Duration>, now: Instant) -> BbrModel {
        let segment = f64::from(segment);
        BbrModel {
            segment,
            rates: DeliveryRates::new(now),
            mode: BbrMode::Startup,
            bandwidths: [0.0; 2],
            least,
            least_at: now,
            first_rate: 0.0,
            round_ends: 0,
            round_begins: false,
            full: 0.0,
            full_rounds: 0,
            rested: false,
            window: FIRST * segment,
            used_to: 0.0,
        }
    }

    /// The most bytes on their way.
    pub(super) fn window(&self) -> usize {
        match self.mode {
            BbrMode::Narrow(_) => self.window.min(self.narrow()) as usize,
            _ => self.window as usize,
        }
    }

    fn bandwidth(&self) -> f64 {
        self.bandwidths[0].max(self.bandwidths[1])
    }

    fn is_full(&self) -> bool {
        self.full_rounds >= FULL_ROUNDS
    }

    /// What fills the way, in bytes; `None` if that is not known.
    fn fills(&self) -> Option<f64> {
        let seconds = self.least?.total_micros() as f64 / 1e6;
        (self.bandwidth() > 0.0).then(|| self.bandwidth() * seconds)
    }

    /// What the window grows to.
    fn target(&self) -> f64 {
        let target = self.fills().map_or(f64::INFINITY, |fills| WINDOW * fills + 3.0 * self.at_once());
        target.max(LEAST * self.segment)
    }

    /// The window of `Narrow`.
    fn narrow(&self) -> f64 {
        self.fills().map_or(0.0, |fills| fills / 2.0).max(LEAST * self.segment)
    }

    /// The bytes a second that go now; 0 if that is not known.
    fn rate(&self) -> f64 {
        let factor = match self.mode {
            BbrMode::Startup => STARTUP,
            BbrMode::Drain => DRAIN,
            BbrMode::Cruise(phase, _) => PHASES[phase],
            BbrMode::Narrow(_) => 1.0,
        };
        let rate = MARGIN * factor * self.bandwidth();
        if self.is_full() { rate } else { rate.max(self.first_rate) }
    }

    /// The bytes that go at once.
    fn at_once(&self) -> f64 {
        let rate = self.rate();
        let least = if rate < SLOW { 1.0 } else { 2.0 } * self.segment;
        (rate * TICK).min(MOST_AT_ONCE).max(least)
    }

    /// Whether a segment may go now.
    pub(super) fn may_go(&self, now: Instant) -> bool {
        self.rate() == 0.0 || self.used_to <= now.total_micros() as f64
    }

    /// When the bytes that go at once may go.
    pub(super) fn goes_at(&self) -> Instant {
        let wait = (self.at_once() - self.segment) / self.rate().max(1.0);
        Instant::from_micros((self.used_to + wait * 1e6).ceil() as i64)
    }

    /// A segment with this number of bytes goes. `begins`: nothing else is on its way. `late`: it
    /// waited for its time alone.
    pub(super) fn went(&mut self, bytes: usize, (begins, late): (bool, bool), now: Instant) -> DeliveryStamp {
        let rate = self.rate();
        if rate > 0.0 {
            // What was not used for long is lost, but a timer that comes late must not make the
            // rate a lower one: the next sample would have the lower one as its bandwidth.
            let trip = self.least.filter(|_| late).map_or(0.0, |least| least.total_micros() as f64);
            let kept = trip.max(2e6 * self.at_once() / rate);
            self.used_to = self.used_to.max(now.total_micros() as f64 - kept) + bytes as f64 * 1e6 / rate;
        }
        self.rates.stamp(begins, now)
    }

    /// All has gone that there is, and there is room for more.
    pub(super) fn limit(&mut self, on_way: usize) {
        self.rates.limit(on_way);
    }

    /// Something goes after a time in which nothing did.
    pub(super) fn rest(&mut self) {
        self.rested = true;
    }

    /// A timer has expired: one segment shows whether the way is there.
    pub(super) fn time_out(&mut self) {
        self.window = self.segment;
    }

    /// Takes an acknowledgement.
    pub(super) fn hear(&mut self, got: &SegmentsGot, way: WayHeard, now: Instant) {
        let sample = self.rates.sample(got, self.least.unwrap_or(Duration::ZERO), now);
        if self.first_rate == 0.0
            && let Some(took) = got.took
        {
            self.first_rate = STARTUP * FIRST * self.segment * 1e6 / took.total_micros().max(1) as f64;
        }
        self.round_begins = sample.is_some_and(|sample| sample.before >= self.round_ends);
        if self.round_begins {
            self.round_ends = self.rates.delivered();
        }
        if let Some(sample) = sample {
            self.take_bandwidth(sample);
        }
        self.take_round_trip(got.took, now);
        self.change_mode(way, now);
        self.grow(got.bytes as f64);
        self.rested &= got.bytes == 0;
    }

    fn take_bandwidth(&mut self, sample: DeliverySample) {
        if sample.is_limited && sample.rate < self.bandwidth() {
            return;
        }
        self.bandwidths[0] = self.bandwidths[0].max(sample.rate);
        if self.is_full() || !self.round_begins || sample.is_limited {
            return;
        }
        if self.bandwidth() >= FASTER * self.full {
            (self.full, self.full_rounds) = (self.bandwidth(), 0);
        } else {
            self.full_rounds += 1;
        }
    }

    fn take_round_trip(&mut self, took: Option<Duration>, now: Instant) {
        let old = now > self.least_at + BELIEVED;
        if let Some(took) = took
            && (old || self.least.is_none_or(|least| took <= least))
        {
            (self.least, self.least_at) = (Some(took.max(Duration::from_micros(1))), now);
        }
        if old && !self.rested && !matches!(self.mode, BbrMode::Narrow(_)) {
            self.mode = BbrMode::Narrow(None);
        }
    }

    fn change_mode(&mut self, way: WayHeard, now: Instant) {
        let on_way = way.on_way as f64;
        match self.mode {
            BbrMode::Startup if self.is_full() => self.mode = BbrMode::Drain,
            BbrMode::Startup => {}
            BbrMode::Drain if self.fills().is_none_or(|fills| on_way <= fills) => self.cruise(now),
            BbrMode::Drain => {}
            BbrMode::Cruise(phase, since) => {
                if self.is_over(phase, since, way, now) {
                    self.next_phase(phase, now);
                }
            }
            BbrMode::Narrow(None) => {
                self.rates.limit(way.on_way);
                if on_way <= self.narrow() {
                    self.round_ends = self.rates.delivered();
                    self.mode = BbrMode::Narrow(Some(now + NARROW));
                }
            }
            BbrMode::Narrow(Some(until)) => {
                self.rates.limit(way.on_way);
                if now >= until && self.round_begins {
                    self.least_at = now;
                    self.window = self.window.max(self.target());
                    if self.is_full() { self.cruise(now) } else { self.mode = BbrMode::Startup }
                }
            }
        }
    }

    /// Begins with any phase but that which empties a queue, so that connections do not all do the
    /// same at once.
    fn cruise(&mut self, now: Instant) {
        let phase = match now.total_micros() as usize % (PHASES.len() - 1) {
            0 => 0,
            later => later + 1,
        };
        self.full = self.bandwidth();
        self.mode = BbrMode::Cruise(phase, now);
    }

    /// Ends a phase. If the way has delivered all of what the first one gave it more, it may carry
    /// more still, and that phase comes again.
    fn next_phase(&mut self, phase: usize, now: Instant) {
        let more = phase == 1 && self.bandwidth() >= MORE * self.full;
        let next = if more { 0 } else { (phase + 1) % PHASES.len() };
        if next == 0 {
            self.full = self.bandwidth();
        }
        if phase + 1 == PHASES.len() && self.bandwidths[0] > 0.0 {
            self.bandwidths = [0.0, self.bandwidths[0]];
        }
        self.mode = BbrMode::Cruise(next, now);
    }

    /// Whether a phase is over.
    fn is_over(&self, phase: usize, since: Instant, way: WayHeard, now: Instant) -> bool {
        let trips = |count| self.least.is_none_or(|least| now > since + least * count);
        let took = trips(1);
        let factor = PHASES[phase];
        let full = |on_way: usize| self.fills().is_none_or(|fills| on_way as f64 >= factor * fills);
        if factor > 1.0 {
            took && (way.lost > 0 || full(way.before))
        } else if factor < 1.0 {
            trips(EMPTYING) || self.fills().is_none_or(|fills| way.on_way as f64 <= fills)
        } else {
            took
        }
    }

    /// Grows the window to its target, by what the peer has got.
    fn grow(&mut self, got: f64) {
        let target = self.target();
        if self.is_full() {
            self.window = (self.window + got).min(target);
        } else if self.window < target || (self.rates.delivered() as f64) < FIRST * self.segment {
            self.window += got;
        }
        self.window = self.window.max(LEAST * self.segment);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    const SEGMENT: usize = 1000;
    /// The time in which nothing changes, and a round trip without a queue.
    const STEP: Duration = Duration::from_micros(100);
    const TRIP: Duration = Duration::from_millis(10);

    /// A way that carries one segment after another.
    struct Way {
        model: BbrModel,
        now: Instant,
        /// The microseconds that a segment takes, and when the last one has passed.
        each: u64,
        free: Instant,
        on_way: VecDeque<(Instant, Instant, DeliveryStamp)>,
        /// The segments that have come, and the times at which some went.
        came: usize,
        bunches: usize,
    }

    impl Way {
        fn new(each: u64) -> Way {
            let now = Instant::from_secs(1);
            let model = BbrModel::new(SEGMENT as u16, None, now);
            Way { model, now, each, free: now, on_way: VecDeque::new(), came: 0, bunches: 0 }
        }

        fn bytes(&self) -> usize {
            self.on_way.len() * SEGMENT
        }

        /// Passes this time, with a program that always has something to send.
        fn pass(&mut self, time: Duration) {
            let until = self.now + time;
            while self.now < until {
                self.now += STEP;
                while let Some((comes, went, stamp)) = self.on_way.front().copied()
                    && comes <= self.now
                {
                    let before = self.bytes();
                    self.on_way.pop_front();
                    self.came += 1;
                    let took = Some(self.now - went);
                    let got = SegmentsGot { bytes: SEGMENT, took, latest: Some((went, stamp)) };
                    self.model.hear(&got, WayHeard { before, on_way: self.bytes(), lost: 0 }, self.now);
                }
                self.send();
            }
        }

        fn send(&mut self) {
            let before = self.on_way.len();
            while self.bytes() + SEGMENT <= self.model.window() && self.model.may_go(self.now) {
                let stamp = self.model.went(SEGMENT, (self.on_way.is_empty(), false), self.now);
                self.free = self.free.max(self.now) + Duration::from_micros(self.each);
                self.on_way.push_back((self.free + TRIP, self.now, stamp));
            }
            self.bunches += usize::from(self.on_way.len() > before);
        }

        /// The bandwidth of the model, in hundredths of what the way has.
        fn knows(&self) -> usize {
            (self.model.bandwidth() * self.each as f64 / SEGMENT as f64 / 1e4) as usize
        }
    }

    #[test]
    fn a_model_finds_what_a_way_carries_and_leaves_no_queue() {
        for each in [40, 100, 1000] {
            let mut way = Way::new(each);
            way.pass(Duration::from_secs(2));
            assert!((95..=110).contains(&way.knows()), "{each} us: {} %", way.knows());
            assert!(matches!(way.model.mode, BbrMode::Cruise(..)), "{:?}", way.model);
            let (came, mut most) = (way.came, 0);
            for _ in 0..100 {
                way.pass(TRIP);
                most = most.max(way.bytes());
            }
            let carried = 1_000_000 / each as usize;
            assert!(way.came - came > carried * 95 / 100, "{each} us: {} of {carried}", way.came - came);
            let fills = SEGMENT * (TRIP.total_micros() / each + 1) as usize;
            assert!(most < fills * 3 / 2 + 3 * SEGMENT, "{each} us: {most} bytes, and {fills} fill it");
        }
    }

    #[test]
    fn segments_go_in_bunches_of_a_millisecond() {
        let mut way = Way::new(40);
        way.pass(Duration::from_secs(1));
        // Acknowledgements and not timers would make it send more often.
        let (mut timers, until) = (0, way.now + Duration::from_secs(1));
        let model = &mut way.model;
        let mut now = way.now;
        while now < until {
            timers += 1;
            while model.may_go(now) {
                model.went(SEGMENT, (false, true), now);
            }
            now = model.goes_at();
        }
        assert!((900..=1100).contains(&timers), "{timers} timers a second");
    }

    #[test]
    fn a_faster_way_is_found_in_some_round_trips_and_a_slower_one_too() {
        let mut way = Way::new(400);
        way.pass(Duration::from_secs(2));
        way.each = 100;
        way.pass(TRIP * 40);
        assert!(way.knows() >= 90, "{} % of a way that is four times as fast", way.knows());
        way.each = 400;
        way.pass(TRIP * 100);
        assert!(way.knows() <= 110, "{} % of a way that is slow again", way.knows());
    }

    #[test]
    fn the_round_trip_is_looked_for_after_ten_seconds() {
        let mut way = Way::new(1000);
        way.pass(Duration::from_secs(2));
        // A longer way: the model must not take the time for one in a queue for ever.
        let narrow = |way: &Way| matches!(way.model.mode, BbrMode::Narrow(_));
        way.model.least = Some(TRIP / 2);
        let (mut least, mut narrows) = (usize::MAX, 0);
        for _ in 0..1200 {
            way.pass(TRIP);
            if narrow(&way) {
                narrows += 1;
                least = least.min(way.bytes());
            }
        }
        assert!((20..60).contains(&narrows), "narrow for {narrows} round trips");
        assert!(least <= 6 * SEGMENT, "{least} bytes on their way");
        assert!(way.model.least >= Some(TRIP), "{:?}", way.model);
        assert!(!narrow(&way) && way.knows() >= 90, "{:?}", way.model);
    }

    #[test]
    fn an_expired_timer_leaves_one_segment_and_the_window_comes_back() {
        let mut way = Way::new(100);
        way.pass(Duration::from_secs(1));
        let before = way.model.window();
        way.model.time_out();
        assert_eq!(way.model.window(), SEGMENT);
        way.pass(TRIP * 10);
        assert!(way.model.window() >= before * 9 / 10, "{} of {before}", way.model.window());
    }
}
