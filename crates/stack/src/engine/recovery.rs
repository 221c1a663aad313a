//! Lost segments that smoltcp alone would repeat late.
//!
//! smoltcp repeats the first segment that has no acknowledgement when three acknowledgements have
//! told the same number, and then nothing more until a second has passed. So [`LossRecovery`]
//! notices two more signs of loss, and the engine makes the socket repeat its first segment then
//! (`repeating.rs`):
//!
//! - After a loss the peer acknowledges a part of what was on its way: the segment behind that part
//!   is lost too, as NewReno (RFC 6582) has it.
//! - The peer acknowledges nothing for two round trips: a probe, as RFC 8985 has it for the tail of
//!   what was sent. Each next one waits twice as long; after the last, smoltcp's timer is left.

use smoltcp::time::{Duration, Instant};
use smoltcp::wire::TcpSeqNumber;

/// What a probe waits for beside the round trips: the clocks of both ends.
const SLACK: Duration = Duration::from_millis(20);
/// The same if one segment is on its way: the peer may wait for a second one before it
/// acknowledges.
const PEERS_DELAY: Duration = Duration::from_millis(200);
/// The probes in a row.
const PROBES: u8 = 4;
/// More bytes than this are more than one segment.
const ONE_SEGMENT: usize = 1460;

/// What the socket repeats. The number is that after all that was on its way when it began; when
/// the peer has that, it is over.
#[derive(Clone, Copy, Debug)]
enum Repeating {
    Nothing,
    /// The first segment only.
    First(TcpSeqNumber),
    /// All in turn, because its timer has expired.
    All(TcpSeqNumber),
}

/// What a connection knows of losses. Its numbers are those of the connection.
#[derive(Debug)]
pub(super) struct LossRecovery {
    /// The smoothed round trip in microseconds; 0 before the first one.
    round_trip: u32,
    /// The number after a segment, and when the segment went.
    timed: Option<(TcpSeqNumber, Instant)>,
    repeating: Repeating,
    /// Whether a segment of the peer, or a sign of loss, is why the socket has its turn. If not,
    /// what it repeats it repeats by its timer.
    pub(super) hears: bool,
    /// When the peer last acknowledged something or was probed, or when something went after a
    /// rest.
    since: Instant,
    probes: u8,
    /// The first segment without an acknowledgement is lost.
    pub(super) is_due: bool,
}

impl LossRecovery {
    pub(super) fn new(now: Instant) -> LossRecovery {
        LossRecovery {
            round_trip: 0,
            timed: None,
            repeating: Repeating::Nothing,
            hears: false,
            since: now,
            probes: 0,
            is_due: false,
        }
    }

    /// A segment goes with the numbers from `start` to `end`. Before it, those from `wanted` to
    /// `sent_to` were on their way.
    pub(super) fn sent(
        &mut self,
        (start, end): (TcpSeqNumber, TcpSeqNumber),
        (wanted, sent_to): (TcpSeqNumber, TcpSeqNumber),
        now: Instant,
    ) {
        if end > sent_to {
            if wanted == sent_to {
                (self.since, self.probes) = (now, 0);
            }
            self.timed.get_or_insert((end, now));
        } else if start < sent_to {
            // It goes again: an acknowledgement would not tell of which time.
            self.timed = None;
            match self.repeating {
                _ if start == wanted && !self.hears => self.repeating = Repeating::All(sent_to),
                Repeating::Nothing if start == wanted => self.repeating = Repeating::First(sent_to),
                _ => {}
            }
        }
    }

    /// The peer has acknowledged all before `wanted`.
    pub(super) fn acknowledged(&mut self, wanted: TcpSeqNumber, now: Instant) {
        (self.since, self.probes) = (now, 0);
        if let Some((end, went)) = self.timed
            && wanted >= end
        {
            let sample = (now - went).total_micros().clamp(1, 60_000_000) as u32;
            self.round_trip = match self.round_trip {
                0 => sample,
                smoothed => smoothed - smoothed / 8 + sample / 8,
            };
            self.timed = None;
        }
        match self.repeating {
            Repeating::First(below) | Repeating::All(below) if wanted >= below => {
                self.repeating = Repeating::Nothing;
            }
            Repeating::First(_) => self.is_due = true,
            Repeating::All(_) | Repeating::Nothing => {}
        }
    }

    /// When the peer is to be probed, if this number of bytes is on its way.
    pub(super) fn probes_at(&self, on_way: usize) -> Option<Instant> {
        if on_way == 0 || self.round_trip == 0 || self.probes == PROBES {
            return None;
        }
        let slack = if on_way > ONE_SEGMENT { SLACK } else { PEERS_DELAY };
        let wait = Duration::from_micros(2 * u64::from(self.round_trip)) + slack;
        Some(self.since + wait * (1 << self.probes))
    }

    /// Notes that the time of a probe has come.
    pub(super) fn probe(&mut self, now: Instant) {
        (self.since, self.probes) = (now, self.probes + 1);
        self.is_due = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(value: i32) -> TcpSeqNumber {
        TcpSeqNumber(value)
    }

    fn at(millis: i64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn a_part_that_is_acknowledged_after_a_loss_tells_of_another() {
        let mut recovery = LossRecovery::new(at(0));
        recovery.hears = true;
        recovery.sent((number(0), number(3000)), (number(0), number(0)), at(0));
        recovery.acknowledged(number(1000), at(10));
        assert!(!recovery.is_due, "nothing was lost");
        recovery.sent((number(1000), number(2000)), (number(1000), number(3000)), at(20));
        recovery.acknowledged(number(2000), at(30));
        assert!(std::mem::take(&mut recovery.is_due));
        recovery.acknowledged(number(3000), at(40));
        assert!(!recovery.is_due, "all that was on its way has come");
    }

    #[test]
    fn a_socket_that_repeats_all_by_its_timer_is_left_alone() {
        let mut recovery = LossRecovery::new(at(0));
        recovery.sent((number(0), number(3000)), (number(0), number(0)), at(0));
        recovery.sent((number(0), number(1000)), (number(0), number(3000)), at(1000));
        recovery.hears = true;
        recovery.acknowledged(number(1000), at(1010));
        recovery.sent((number(1000), number(2000)), (number(1000), number(3000)), at(1010));
        recovery.acknowledged(number(2000), at(1020));
        assert!(!recovery.is_due);
    }

    #[test]
    fn a_peer_is_probed_after_two_round_trips_and_then_less_often() {
        let mut recovery = LossRecovery::new(at(0));
        assert_eq!(recovery.probes_at(3000), None, "no round trip is known");
        recovery.sent((number(0), number(3000)), (number(0), number(0)), at(0));
        recovery.acknowledged(number(3000), at(10));
        assert_eq!(recovery.probes_at(0), None);
        recovery.sent((number(3000), number(6000)), (number(3000), number(3000)), at(100));
        assert_eq!(recovery.probes_at(3000), Some(at(140)));
        assert_eq!(recovery.probes_at(1000), Some(at(320)), "a single segment");
        for (now, next) in [(140, 220), (220, 380), (380, 700)] {
            recovery.probe(at(now));
            assert_eq!(recovery.probes_at(3000), Some(at(next)));
        }
        recovery.probe(at(700));
        assert_eq!(recovery.probes_at(3000), None);
        recovery.acknowledged(number(4000), at(800));
        assert!(recovery.probes_at(2000).is_some_and(|probe| probe > at(820)), "it begins anew");
    }

    #[test]
    fn what_goes_again_measures_no_round_trip() {
        let mut recovery = LossRecovery::new(at(0));
        recovery.sent((number(0), number(1000)), (number(0), number(0)), at(0));
        recovery.sent((number(0), number(1000)), (number(0), number(1000)), at(900));
        recovery.acknowledged(number(1000), at(901));
        assert_eq!(recovery.round_trip, 0);
    }
}
