//! [`SegmentFlight`]: the segments of a connection that its peer has not acknowledged, in order,
//! and what is known of each. `recovery.rs` puts them in, and sends them.
//!
//! ```text
//!   Held ─sent─▶ OnWay ─lost─▶ Lost ─sent─▶ OnWay       acknowledged: it leaves the flight
//!                  └───selected───┴──────▶ Selected     acknowledged: it leaves the flight
//! ```
//! Held segments come after all others: new ones go in order. Losses are found by time (RACK, RFC
//! 8985): a segment is lost if the peer has one that went later, by more than the way may reorder.

use super::delivery::DeliveryStamp;
use crate::frames::SpareFrames;
use crate::outgoing::SegmentContents;
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::TcpSeqNumber;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum FlightStage {
    /// It has not gone yet.
    Held,
    OnWay,
    /// The peer has it, and not all before it.
    Selected,
    Lost,
}

#[derive(Debug)]
pub(super) struct FlightSegment {
    pub(super) start: TcpSeqNumber,
    pub(super) end: TcpSeqNumber,
    pub(super) contents: SegmentContents,
    /// When it went last.
    went: Instant,
    /// What the peer had then.
    stamp: DeliveryStamp,
    /// It went more than once.
    again: bool,
    stage: FlightStage,
}

/// The segment that went last of all that the peer has.
#[derive(Clone, Copy, Debug)]
struct Latest {
    went: Instant,
    end: TcpSeqNumber,
    took: Duration,
}

#[derive(Debug)]
pub(super) struct SegmentFlight {
    segments: VecDeque<FlightSegment>,
    /// The sum of the weights of those on their way.
    on_way: usize,
    selected: usize,
    lost: usize,
    /// The weight of all that was ever lost.
    lost_ever: usize,
    latest: Option<Latest>,
    /// The number after the last one that the peer has.
    highest: TcpSeqNumber,
    /// The way has changed the order of segments.
    pub(super) reorders: bool,
    /// The least that a segment weighs, because routers have queues of packets and not of bytes.
    least_weight: usize,
}

/// What an acknowledgement brings.
#[derive(Debug, Default)]
pub(super) struct SegmentsGot {
    pub(super) bytes: usize,
    /// The time that the last of its segments took, if that went once.
    pub(super) took: Option<Duration>,
    /// When the one went that went last, and its stamp.
    pub(super) latest: Option<(Instant, DeliveryStamp)>,
}

/// What an acknowledgement changes on the way, in weights of segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct WayHeard {
    /// What was on its way before it, and is now.
    pub(super) before: usize,
    pub(super) on_way: usize,
    /// What has been found lost.
    pub(super) lost: usize,
}

impl SegmentFlight {
    /// An empty one, which begins with this number.
    pub(super) fn new(start: TcpSeqNumber, least_weight: usize) -> SegmentFlight {
        SegmentFlight {
            segments: VecDeque::new(),
            on_way: 0,
            selected: 0,
            lost: 0,
            lost_ever: 0,
            latest: None,
            highest: start,
            reorders: false,
            least_weight,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// The number after the last segment.
    pub(super) fn end(&self) -> Option<TcpSeqNumber> {
        self.segments.back().map(|last| last.end)
    }

    /// The number of the first one that has not gone.
    pub(super) fn held_from(&self) -> Option<TcpSeqNumber> {
        let held = self.segments.partition_point(|segment| segment.stage != FlightStage::Held);
        self.segments.get(held).map(|segment| segment.start)
    }

    /// The number after the last one that has gone.
    pub(super) fn gone_to(&self) -> Option<TcpSeqNumber> {
        self.held_from().or(self.end())
    }

    /// The weight of the segments on their way.
    pub(super) fn on_way(&self) -> usize {
        self.on_way
    }

    pub(super) fn selected(&self) -> usize {
        self.selected
    }

    pub(super) fn lost(&self) -> usize {
        self.lost
    }

    /// The weight of all segments that were ever lost.
    pub(super) fn lost_ever(&self) -> usize {
        self.lost_ever
    }

    /// When the first segment went last; `None` if it has not gone.
    pub(super) fn first_went(&self) -> Option<Instant> {
        let first = self.segments.front()?;
        (first.stage != FlightStage::Held).then_some(first.went)
    }

    /// Whether one segment alone is on its way.
    pub(super) fn is_single(&self) -> bool {
        self.segments.get(1).is_none_or(|second| second.stage == FlightStage::Held)
    }

    /// Takes a segment behind all others.
    pub(super) fn push(
        &mut self,
        start: TcpSeqNumber,
        end: TcpSeqNumber,
        contents: SegmentContents,
        now: Instant,
    ) {
        let (stage, stamp) = (FlightStage::Held, DeliveryStamp::NONE);
        self.segments.push_back(FlightSegment {
            start,
            end,
            contents,
            went: now,
            stamp,
            again: false,
            stage,
        });
    }

    /// The last segment, if it has not gone.
    pub(super) fn last_held(&mut self) -> Option<&mut FlightSegment> {
        self.segments.back_mut().filter(|last| last.stage == FlightStage::Held)
    }

    /// The place of the segment that goes next: the first that is lost, or the first that is held.
    pub(super) fn next(&self) -> Option<usize> {
        let due = match self.lost {
            0 => FlightStage::Held,
            _ => FlightStage::Lost,
        };
        let place = match due {
            FlightStage::Held => self.segments.partition_point(|segment| segment.stage != due),
            _ => self.segments.iter().position(|segment| segment.stage == due)?,
        };
        (place < self.segments.len()).then_some(place)
    }

    /// The place of a segment that shows what the peer has: the first that is held, or the last.
    pub(super) fn probe(&self) -> Option<usize> {
        let held = self.segments.partition_point(|segment| segment.stage != FlightStage::Held);
        let last = self.segments.len().checked_sub(1)?;
        Some(held.min(last))
    }

    pub(super) fn weight(&self, place: usize) -> usize {
        let segment = &self.segments[place];
        (segment.end - segment.start).max(self.least_weight)
    }

    /// The segment at this place goes.
    pub(super) fn send(&mut self, place: usize, stamp: DeliveryStamp, now: Instant) -> &FlightSegment {
        self.set(place, FlightStage::OnWay);
        let segment = &mut self.segments[place];
        (segment.went, segment.stamp) = (now, stamp);
        segment
    }

    fn lose(&mut self, place: usize) {
        self.lost_ever += self.weight(place);
        self.set(place, FlightStage::Lost);
    }

    fn set(&mut self, place: usize, stage: FlightStage) {
        let weight = self.weight(place);
        let segment = &mut self.segments[place];
        let before = std::mem::replace(&mut segment.stage, stage);
        // What goes and was not held goes again.
        segment.again |= stage == FlightStage::OnWay && before != FlightStage::Held;
        for (of, sign) in [(before, -1), (stage, 1)] {
            match of {
                FlightStage::Held => {}
                FlightStage::OnWay => self.on_way = self.on_way.saturating_add_signed(sign * weight as isize),
                FlightStage::Selected => self.selected = self.selected.saturating_add_signed(sign),
                FlightStage::Lost => self.lost = self.lost.saturating_add_signed(sign),
            }
        }
    }

    /// The peer has all before `wanted`, and these parts. A round trip takes `least` at least: what
    /// comes sooner after a segment went again is the answer to the first one. `spare` gets the
    /// frames.
    pub(super) fn acknowledge(
        &mut self,
        wanted: TcpSeqNumber,
        parts: [Option<(TcpSeqNumber, TcpSeqNumber)>; 3],
        least: Duration,
        spare: &mut SpareFrames,
        now: Instant,
    ) -> SegmentsGot {
        let mut delivery = SegmentsGot::default();
        while self.segments.front().is_some_and(|first| first.end <= wanted) {
            self.deliver(0, least, &mut delivery, now);
            let frame = self.segments.pop_front().and_then(|segment| segment.contents.into_frame());
            frame.into_iter().for_each(|frame| spare.keep(frame));
        }
        self.cut(wanted);
        for (first, after) in parts.into_iter().flatten() {
            let from = self.segments.partition_point(|segment| segment.start < first);
            for place in from..self.segments.len() {
                let segment = &self.segments[place];
                if segment.end > after || segment.stage == FlightStage::Held {
                    break;
                }
                if segment.stage != FlightStage::Selected {
                    self.deliver(place, least, &mut delivery, now);
                    self.set(place, FlightStage::Selected);
                }
            }
        }
        delivery
    }

    /// Cuts off what the peer has of the first segment. smoltcp's TCP, if it has all bytes of a
    /// segment and not its end, takes the end alone only.
    fn cut(&mut self, wanted: TcpSeqNumber) {
        let Some(first) = self.segments.front().filter(|first| first.start < wanted) else { return };
        let stage = first.stage;
        self.set(0, FlightStage::Held);
        let first = &mut self.segments[0];
        first.contents.skip(wanted - first.start);
        first.start = wanted;
        let again = first.again;
        self.set(0, stage);
        self.segments[0].again = again;
    }

    /// Notes that the peer has a segment, which is then taken out of the counts.
    fn deliver(&mut self, place: usize, least: Duration, delivery: &mut SegmentsGot, now: Instant) {
        let segment = &self.segments[place];
        let (went, end, again, stage) = (segment.went, segment.end, segment.again, segment.stage);
        if stage != FlightStage::Selected {
            delivery.bytes += end - segment.start;
        }
        // A peer may acknowledge what has not gone, and it learns nothing by that.
        if matches!(stage, FlightStage::OnWay | FlightStage::Lost) {
            let took = now - went;
            if delivery.latest.is_none_or(|(latest, _)| latest <= went) {
                delivery.latest = Some((went, segment.stamp));
            }
            delivery.took = (!again).then_some(took);
            self.reorders |= !again && end < self.highest;
            let later = self.latest.is_none_or(|latest| (latest.went, latest.end) < (went, end));
            if later && !(again && took < least) {
                self.latest = Some(Latest { went, end, took });
            }
        }
        if end > self.highest {
            self.highest = end;
        }
        self.set(place, FlightStage::Held);
    }

    /// Finds the segments that are lost: they went before one that the peer has, and longer ago
    /// than that took and `patience`. Returns when the next one is lost if the peer says nothing.
    pub(super) fn find_losses(&mut self, patience: Duration, now: Instant) -> Option<Instant> {
        let latest = self.latest?;
        let mut next: Option<Instant> = None;
        for place in 0..self.segments.len() {
            let segment = &self.segments[place];
            if segment.stage == FlightStage::Held {
                break;
            }
            let before = (segment.went, segment.end) < (latest.went, latest.end);
            if segment.stage != FlightStage::OnWay || !before {
                continue;
            }
            let lost_at = segment.went + latest.took + patience;
            if lost_at <= now {
                self.lose(place);
            } else {
                next = Some(next.map_or(lost_at, |at| at.min(lost_at)));
            }
        }
        next
    }

    /// The first segment is lost, unless it has just gone again.
    pub(super) fn lose_first(&mut self) {
        if self.segments.front().is_some_and(|first| first.stage == FlightStage::OnWay) {
            self.lose(0);
        }
    }

    /// All is lost that the peer does not have. A peer that has the first segment and waits for it
    /// has thrown away what it had.
    pub(super) fn lose_all(&mut self) {
        let forgot = self.segments.front().is_some_and(|first| first.stage == FlightStage::Selected);
        for place in 0..self.segments.len() {
            match self.segments[place].stage {
                FlightStage::OnWay => self.lose(place),
                FlightStage::Selected if forgot => self.lose(place),
                FlightStage::Held => break,
                _ => {}
            }
        }
    }

    /// Checks the counts and the order.
    ///
    /// # Panics
    /// If they are wrong.
    pub(super) fn check(&self) {
        let of = |stage| self.segments.iter().filter(move |segment| segment.stage == stage).count();
        let stages = [FlightStage::Selected, FlightStage::Lost].map(of);
        assert_eq!([self.selected, self.lost], stages, "selected and lost segments");
        let on_way =
            (0..self.segments.len()).filter(|place| self.segments[*place].stage == FlightStage::OnWay);
        assert_eq!(self.on_way, on_way.map(|place| self.weight(place)).sum(), "the weight on its way");
        for (segment, next) in self.segments.iter().zip(self.segments.iter().skip(1)) {
            assert!(segment.start < segment.end && segment.end == next.start, "a gap, or an overlap");
            let held = segment.stage == FlightStage::Held && next.stage != FlightStage::Held;
            assert!(!held, "a segment has gone before the one before it");
        }
    }
}
