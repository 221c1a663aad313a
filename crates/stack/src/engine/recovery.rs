//! [`LossRecovery`]: what a connection sends and when, so that what is lost goes again soon.
//!
//! smoltcp gives all segments that the peer has room for, and each of them once: what it repeats by
//! its own timer is dropped here. They wait in the [`SegmentFlight`] for the congestion control
//! (`control.rs`) and for the peer's acknowledgement. A segment goes again, and nothing else
//! does, when
//!
//! - the peer has got a later one, as its selective acknowledgements tell (RFC 2018, RFC 6675), and
//!   the time in which the way may change their order is over (RFC 8985);
//! - the peer tells nothing selectively, and three times that it waits for the segment, or that it
//!   waits for it after it got another one that was lost (NewReno, RFC 6582);
//! - the peer has been silent for two round trips. The last segment goes again then, once, and the
//!   peer's answer shows what is lost (RFC 8985, section 7);
//! - it has been silent for longer (RFC 6298): then all is taken for lost.
//!
//! First segments and resets pass by all this, and so do probes of a window without room.

use super::control::SendingControl;
use super::flight::{FlightSegment, SegmentFlight, SegmentsGot, WayHeard};
use super::round_trips::{LONGEST, RoundTripTimes};
use crate::flow::{OpeningOptions, StackSegment};
use crate::frames::SpareFrames;
use crate::outgoing::SegmentContents;
use crate::tcp_options::Congestion;
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::TcpSeqNumber;

/// What a probe waits for beside the round trips: the clocks of both ends.
const SLACK: Duration = Duration::from_millis(20);
/// The same if one segment is on its way: the peer may wait for a second one before it
/// acknowledges.
const PEERS_DELAY: Duration = Duration::from_millis(200);
/// The acknowledgements of the same number, or the segments out of order, that tell of a loss.
const REPEATED: usize = 3;
/// The part of a segment that a short one counts for at least.
const SHORTEST: usize = 8;
/// The bytes of a segment for a peer that tells no number.
const UNTOLD: u16 = 536;

/// What a connection knows of its way to the peer. Its numbers are those of the connection.
#[derive(Debug)]
pub(super) struct LossRecovery {
    times: RoundTripTimes,
    control: SendingControl,
    /// What the peer has not acknowledged. There is none while nothing is on its way.
    flight: Option<Box<FlightState>>,
    /// Whether the peer acknowledges selectively.
    selects: bool,
    /// When the peer last acknowledged something, or a timer expired, or when something went after
    /// a rest.
    since: Instant,
}

/// What is known while something is on its way.
#[derive(Debug)]
struct FlightState {
    flight: SegmentFlight,
    /// Until the peer has all before this number, what is lost is repaired.
    repairs_to: Option<TcpSeqNumber>,
    /// The number of timers that have expired since the peer acknowledged something.
    expired: u8,
    /// Whether the present repair began with a timer.
    begins_anew: bool,
    /// The silent peer has been probed.
    probed: bool,
    /// The next segment goes without regard to the window.
    is_urgent: bool,
    /// It is a probe.
    probes: bool,
    /// The acknowledgements without anything new.
    repeated: usize,
    /// When segments are looked at again that may be late only.
    late_at: Option<Instant>,
    /// When the next segment goes, if its rate alone holds it up.
    paced_to: Option<Instant>,
    /// The weight of what the congestion control knows to be lost.
    told_lost: usize,
    /// When a segment went last.
    went: Instant,
}

impl LossRecovery {
    /// A new one, with packets that have room for `longest` bytes of a segment.
    pub(super) fn new(control: Congestion, longest: u16, now: Instant) -> LossRecovery {
        LossRecovery {
            times: RoundTripTimes::default(),
            control: SendingControl::new(control, longest),
            flight: None,
            selects: false,
            since: now,
        }
    }

    /// The peer's first segment says this.
    pub(super) fn open(&mut self, opening: OpeningOptions) {
        self.selects = opening.selects;
        self.control.open(opening.largest.unwrap_or(UNTOLD));
    }

    /// A segment of the handshake was answered after this time.
    pub(super) fn shook_hands(&mut self, took: Duration) {
        self.times.sample(took);
    }

    /// Forgets what is on its way: the connection is over.
    pub(super) fn end(&mut self) {
        self.flight = None;
    }

    /// The number of the first segment that has not gone, if one waits.
    pub(super) fn held_from(&self) -> Option<TcpSeqNumber> {
        self.flight.as_ref()?.flight.held_from()
    }

    /// Takes a segment of the socket, which may be long. What is on its way already is dropped.
    pub(super) fn take(&mut self, frame: Vec<u8>, head: &StackSegment, wanted: TcpSeqNumber, now: Instant) {
        if self.flight.is_none() {
            let rested = now > self.since + self.times.timeout();
            self.control.begin(rested, &self.times, now);
            self.since = now;
        }
        let segment = self.control.segment();
        let state = self.flight.get_or_insert_with(|| {
            Box::new(FlightState {
                flight: SegmentFlight::new(wanted, segment / SHORTEST),
                repairs_to: None,
                expired: 0,
                begins_anew: false,
                probed: false,
                is_urgent: false,
                probes: false,
                repeated: 0,
                late_at: None,
                paced_to: None,
                told_lost: 0,
                went: now,
            })
        });
        let mut from = state.flight.end().map_or(wanted, |end| end.max(wanted)).max(head.sequence);
        let end = head.sequence + head.length;
        if end <= from {
            return;
        }
        let mut contents = SegmentContents::of(frame);
        contents.skip(from - head.sequence);
        // Small segments that wait become one.
        if let Some(last) = state.flight.last_held()
            && last.contents.len() + contents.len() <= segment
        {
            last.contents = last.contents.joined(&contents);
            last.end = end;
            return;
        }
        let most = contents.room(segment);
        for part in contents.divided(most) {
            let to = if part.is_last() { end } else { from + part.len() };
            state.flight.push(from, to, part, now);
            from = to;
        }
    }

    /// The peer has all before `wanted`, and more parts. `repeats`: it says so once more, without
    /// anything new. `spare` gets the frames that need not go again.
    pub(super) fn heard(
        &mut self,
        wanted: TcpSeqNumber,
        parts: [Option<(TcpSeqNumber, TcpSeqNumber)>; 3],
        (advances, repeats): (bool, bool),
        spare: &mut SpareFrames,
        now: Instant,
    ) {
        let Some(state) = &mut self.flight else { return };
        let before = state.flight.on_way();
        let delivery = state.flight.acknowledge(wanted, parts, self.times.least(), spare, now);
        if let Some(took) = delivery.took {
            self.times.sample(took);
        }
        if advances {
            self.since = now;
            (state.expired, state.probed) = (0, false);
        }
        state.repeated = if repeats {
            state.repeated + 1
        } else if advances {
            0
        } else {
            state.repeated
        };
        if state.repairs_to.is_some_and(|to| wanted >= to) {
            (state.repairs_to, state.begins_anew) = (None, false);
        }
        self.find_losses(advances, now);
        self.tell_control(&delivery, before, now);
        if self.flight.as_ref().is_some_and(|state| state.flight.is_empty()) {
            self.flight = None;
        }
    }

    fn tell_control(&mut self, delivery: &SegmentsGot, before: usize, now: Instant) {
        let Some(state) = &mut self.flight else { return };
        let lost = state.flight.lost_ever() - state.told_lost;
        state.told_lost += lost;
        let way = WayHeard { before, on_way: state.flight.on_way(), lost };
        let repairs = state.repairs_to.is_some() && !state.begins_anew;
        self.control.hear(delivery, way, repairs, &self.times, now);
    }

    /// Finds what is lost. At the first loss of a round trip the window becomes smaller.
    fn find_losses(&mut self, advances: bool, now: Instant) {
        let Some(state) = &mut self.flight else { return };
        let repairs = state.repairs_to.is_some();
        state.late_at = None;
        if !self.selects {
            if repairs && advances || state.repeated == REPEATED {
                state.flight.lose_first();
            }
        } else if repairs || state.flight.selected() > 0 {
            let sure = !state.flight.reorders && (repairs || state.flight.selected() >= REPEATED);
            let quarter = Duration::from_micros(self.times.least().total_micros() / 4);
            let patience = if sure { Duration::ZERO } else { quarter.min(self.times.smoothed()) };
            state.late_at = state.flight.find_losses(patience, now);
        }
        if state.flight.lost() > 0 && state.repairs_to.is_none() {
            self.control.lose();
            (state.repairs_to, state.is_urgent) = (state.flight.gone_to(), true);
        }
    }

    /// When there is something to do, if the peer says nothing.
    pub(super) fn next_at(&self) -> Option<Instant> {
        let state = self.flight.as_ref()?;
        let silence = [state.late_at, self.probes_at(state), self.times_out_at(state)];
        silence.into_iter().chain([state.paced_to]).flatten().min()
    }

    fn times_out_at(&self, state: &FlightState) -> Option<Instant> {
        let went = state.flight.first_went()?;
        let wait = self.times.timeout().total_micros() << state.expired.min(20);
        Some(self.since.max(went) + Duration::from_micros(wait).min(LONGEST))
    }

    fn probes_at(&self, state: &FlightState) -> Option<Instant> {
        let quiet = state.repairs_to.is_none() && state.flight.selected() == 0;
        if !quiet || state.probed || !self.times.is_known() {
            return None;
        }
        let slack = if state.flight.is_single() { PEERS_DELAY } else { SLACK };
        let probes_at = self.since.max(state.went) + self.times.smoothed() * 2 + slack;
        Some(probes_at).min(self.times_out_at(state))
    }

    /// Does what the time has come for.
    pub(super) fn expire(&mut self, now: Instant) {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let Some(state) = &self.flight else { return };
        let (probes, times_out) = (due(self.probes_at(state)), due(self.times_out_at(state)));
        if due(state.late_at) {
            return self.find_losses(false, now);
        }
        if !probes && !times_out {
            return;
        }
        let Some(state) = &mut self.flight else { return };
        state.is_urgent = true;
        if probes {
            (state.probed, state.probes) = (true, true);
        } else {
            self.control.time_out(state.expired > 0);
            state.flight.lose_all();
            (state.repairs_to, state.begins_anew) = (state.flight.gone_to(), true);
            state.late_at = None;
            state.expired = state.expired.saturating_add(1);
        }
        self.since = now;
    }

    /// The bytes of a segment.
    pub(super) fn segment(&self) -> usize {
        self.control.segment()
    }

    /// Sends what may go now. `send` gets each segment.
    pub(super) fn release(&mut self, now: Instant, mut send: impl FnMut(&FlightSegment)) {
        let Some(state) = &mut self.flight else { return };
        let late = state.paced_to.take().is_some();
        // Each repeated acknowledgement says that one segment has left the way, and not which.
        let gone = if self.selects { 0 } else { state.repeated * self.control.segment() };
        loop {
            let next =
                if std::mem::take(&mut state.probes) { state.flight.probe() } else { state.flight.next() };
            let on_way = state.flight.on_way().saturating_sub(gone);
            let Some(place) = next else { return self.control.limit(on_way) };
            let weight = state.flight.weight(place);
            let fits = on_way == 0 || on_way.saturating_add(weight) <= self.control.bytes();
            if !state.is_urgent {
                state.paced_to = if fits { self.control.waits_until(now) } else { None };
                if !fits || state.paced_to.is_some() {
                    return;
                }
            }
            (state.is_urgent, state.went) = (false, now);
            let stamp = self.control.went(weight, (on_way == 0, late), now);
            send(state.flight.send(place, stamp, now));
        }
    }

    /// The connection is at rest: what is known of its way is old soon.
    pub(super) fn forget(&mut self) {
        self.control.forget();
    }

    /// Checks what always holds between two turns.
    ///
    /// # Panics
    /// If it does not.
    pub(super) fn check(&self) {
        if let Some(state) = &self.flight {
            assert!(!state.flight.is_empty(), "a flight without segments is none");
            assert!(self.next_at().is_some(), "something is on its way, or lost, and no timer is set");
            state.flight.check();
        }
    }
}
