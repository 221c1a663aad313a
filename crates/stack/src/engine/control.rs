//! [`SendingControl`]: how many bytes of a connection may be on their way at once, and when the
//! next ones go: by a window that losses narrow (`congestion.rs`), or by a model of the way
//! (`bbr.rs`). `recovery.rs` tells it what the peer acknowledges, and what is lost.

use super::bbr::BbrModel;
use super::congestion::CongestionWindow;
use super::delivery::DeliveryStamp;
use super::flight::{SegmentsGot, WayHeard};
use super::round_trips::RoundTripTimes;
use crate::tcp_options::Congestion;
use smoltcp::time::Instant;

#[derive(Debug)]
pub(super) enum SendingControl {
    Window(CongestionWindow),
    /// The model for segments of this length at most. There is none before something goes, and
    /// after a long rest.
    Model(u16, Option<Box<BbrModel>>),
}

impl SendingControl {
    /// A new one, with segments of this length at most.
    pub(super) fn new(control: Congestion, longest: u16) -> SendingControl {
        match control {
            Congestion::Bbr => SendingControl::Model(longest, None),
            _ => SendingControl::Window(CongestionWindow::new(control, longest)),
        }
    }

    /// The peer takes segments of this length at most.
    pub(super) fn open(&mut self, largest: u16) {
        match self {
            SendingControl::Window(window) => window.open(largest),
            SendingControl::Model(segment, _) => *segment = largest.clamp(1, *segment),
        }
    }

    /// The bytes of a segment.
    pub(super) fn segment(&self) -> usize {
        match self {
            SendingControl::Window(window) => window.segment(),
            SendingControl::Model(segment, _) => (*segment).into(),
        }
    }

    /// The most bytes on their way.
    pub(super) fn bytes(&self) -> usize {
        match self {
            SendingControl::Window(window) => window.bytes(),
            SendingControl::Model(_, model) => model.as_ref().map_or(usize::MAX, |model| model.window()),
        }
    }

    /// Something is about to go, and nothing is on its way. `rested`: for longer than a timer
    /// waits.
    pub(super) fn begin(&mut self, rested: bool, times: &RoundTripTimes, now: Instant) {
        match self {
            SendingControl::Window(window) if rested => window.rest(),
            SendingControl::Window(_) => {}
            SendingControl::Model(_, Some(model)) => model.rest(),
            SendingControl::Model(segment, model) => {
                let least = times.is_known().then(|| times.least());
                *model = Some(Box::new(BbrModel::new(*segment, least, now)));
            }
        }
    }

    /// Forgets what takes memory: the connection is at rest.
    pub(super) fn forget(&mut self) {
        if let SendingControl::Model(_, model) = self {
            *model = None;
        }
    }

    /// Takes what the peer has got. While what is lost is repaired, a window does not grow.
    pub(super) fn hear(
        &mut self,
        got: &SegmentsGot,
        way: WayHeard,
        repairs: bool,
        times: &RoundTripTimes,
        now: Instant,
    ) {
        match self {
            SendingControl::Window(window) if !repairs => {
                window.grow(got, way, times.smoothed(), now);
            }
            SendingControl::Window(_) | SendingControl::Model(_, None) => {}
            SendingControl::Model(_, Some(model)) => model.hear(got, way, now),
        }
    }

    /// A segment is lost, and none was lost in the round trip before.
    pub(super) fn lose(&mut self) {
        if let SendingControl::Window(window) = self {
            window.lose();
        }
    }

    /// A timer has expired, `again` without an acknowledgement.
    pub(super) fn time_out(&mut self, again: bool) {
        match self {
            SendingControl::Window(window) => window.time_out(again),
            SendingControl::Model(_, Some(model)) => model.time_out(),
            SendingControl::Model(_, None) => {}
        }
    }

    /// When the next segments go that are held up by the rate; `None` if they may go now.
    pub(super) fn waits_until(&self, now: Instant) -> Option<Instant> {
        match self {
            SendingControl::Model(_, Some(model)) if !model.may_go(now) => Some(model.goes_at()),
            _ => None,
        }
    }

    /// A segment with this number of bytes goes. `begins`: nothing else is on its way. `late`: its
    /// rate alone has held it up.
    pub(super) fn went(&mut self, bytes: usize, (begins, late): (bool, bool), now: Instant) -> DeliveryStamp {
        match self {
            SendingControl::Model(_, Some(model)) => model.went(bytes, (begins, late), now),
            _ => DeliveryStamp::NONE,
        }
    }

    /// All has gone that there is, and there is room for more.
    pub(super) fn limit(&mut self, on_way: usize) {
        if let SendingControl::Model(segment, Some(model)) = self
            && on_way + usize::from(*segment) <= model.window()
        {
            model.limit(on_way);
        }
    }
}
