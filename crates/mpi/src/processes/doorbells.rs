//! [`Doorbells`]: the bells of the ranks of a job of MPI that run on this machine.
//!
//! MPI has no descriptor that tells of a message. So a rank that has sent one rings the bell of the
//! receiver, and the message loop of that rank (`libmpi/message_loop.rs`) sleeps there.
//! `launched.rs` lets the ranks of a machine find one another's bells.

use super::bell::Bell;
use super::rings::{ring, wake};
use super::segment::JobSegment;
use rustix::thread::futex;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The bells of a job's ranks, as far as they are on this machine.
pub(crate) struct Doorbells {
    segment: Arc<JobSegment>,
    own: usize,
    /// The place of each rank's bell in the segment.
    places: Box<[Option<usize>]>,
}

impl Doorbells {
    /// `own` is the place of this rank's bell, and `places` are those of all ranks.
    pub(crate) fn new(segment: JobSegment, own: usize, places: Vec<Option<usize>>) -> Doorbells {
        Doorbells { segment: Arc::new(segment), own, places: places.into() }
    }

    /// The place of this rank among the ranks of this machine.
    pub(crate) fn own(&self) -> usize {
        self.own
    }

    /// Whether every rank can ring this one.
    pub(crate) fn are_complete(&self) -> bool {
        self.places.iter().all(Option::is_some)
    }

    /// Wakes a rank, if its loop sleeps and its bell is here.
    pub(crate) fn ring(&self, rank: usize) {
        if let Some(place) = self.places.get(rank).copied().flatten() {
            ring(self.segment.bell(place));
        }
    }

    fn bell(&self) -> &Bell {
        self.segment.bell(self.own)
    }

    /// How often this rank's bell was rung: asked before it is armed, for
    /// [`sleep`](Self::sleep).
    pub(crate) fn rung(&self) -> u32 {
        self.bell().rung()
    }

    /// Arms this rank's bell. The caller looks afterwards whether something has come.
    pub(crate) fn arm(&self) {
        self.bell().arm();
    }

    /// This rank looks by itself again. Whether the bell was armed.
    pub(crate) fn disarm(&self) -> bool {
        self.bell().disarm()
    }

    /// Sleeps until the bell has been rung more often than this, or for a time.
    pub(crate) fn sleep(&self, rung: u32, limit: Duration) {
        let limit = limit.try_into().ok();
        // However it ends, the caller looks again.
        let _ = futex::wait(self.bell().count(), futex::Flags::empty(), rung, limit.as_ref());
    }

    /// Ends a sleep of this rank.
    pub(crate) fn rouse(&self) {
        self.bell().ring_anyway();
        wake(self.bell());
    }
}

impl fmt::Debug for Doorbells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Doorbells({} of {} ranks)", self.places.iter().flatten().count(), self.places.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::segment_path;

    /// The two ranks of a machine, in one process.
    fn pair() -> [Doorbells; 2] {
        let segment = JobSegment::create(2).unwrap();
        let other = JobSegment::open(segment_path(std::process::id(), segment.descriptor())).unwrap();
        let places = vec![Some(0), Some(1), None];
        [Doorbells::new(segment, 0, places.clone()), Doorbells::new(other, 1, places)]
    }

    #[test]
    fn a_rank_that_is_rung_does_not_sleep() {
        let [ours, theirs] = pair();
        assert!(!ours.are_complete());
        let rung = ours.rung();
        ours.arm();
        theirs.ring(0);
        // It has no limit to speak of.
        ours.sleep(rung, Duration::from_secs(1 << 30));
        // Not armed, and on another machine.
        theirs.ring(0);
        theirs.ring(2);
        assert_eq!(ours.rung(), rung + 1);
        ours.arm();
        ours.disarm();
        ours.rouse();
        ours.sleep(rung + 1, Duration::from_secs(1 << 30));
    }
}
