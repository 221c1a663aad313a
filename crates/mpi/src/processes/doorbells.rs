//! [`Doorbells`]: what the ranks of a job of MPI that run on one machine share: their bells, and
//! their loans (`lending.rs`).
//!
//! MPI has no descriptor that tells of a message. So a rank that has sent one rings the bell of the
//! receiver, and the message loop of that rank (`libmpi/message_loop.rs`) sleeps there.
//! `launched.rs` lets the ranks of a machine find one another's bells.

use super::bell::Bell;
use super::lending::{BorrowedBytes, LOAN_BYTES, LentBytes};
use super::rings::{ring, wake};
use super::segment::JobSegment;
use crate::byte_pieces::BytePieces;
use rustix::thread::futex;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The bells of a job's ranks, as far as they are on this machine.
pub(crate) struct Doorbells {
    segment: Arc<JobSegment>,
    own: usize,
    /// The place of each rank in the segment.
    places: Box<[Option<usize>]>,
    /// For each place, whether that rank has been found unable to read memory of this process.
    refusals: Box<[AtomicBool]>,
}

impl Doorbells {
    /// `own` is the place of this rank's bell, and `places` are those of all ranks.
    pub(crate) fn new(segment: JobSegment, own: usize, places: Vec<Option<usize>>) -> Doorbells {
        // The number of the process is for the readers of its loans.
        let _ = segment.take_rank(own);
        let refusals = (0..segment.size()).map(|_| AtomicBool::new(false)).collect();
        Doorbells { segment: Arc::new(segment), own, places: places.into(), refusals }
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
        if let Some(place) = self.place(rank) {
            ring(self.segment.bell(place));
        }
    }

    fn place(&self, rank: usize) -> Option<usize> {
        self.places.get(rank).copied().flatten()
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

    /// Lends bytes to a rank, if it is another one of this machine and can read them. A rank lends
    /// once at a time.
    pub(crate) fn lend<'a>(&'a self, to: usize, bytes: BytePieces<'a>) -> Option<LentBytes<'a>> {
        let place = self.place(to).filter(|&place| place != self.own)?;
        LentBytes::new(bytes, self.segment.loan(self.own), &self.refusals[place])
    }

    /// Takes the loan of which a rank has told. `None` if it is over.
    pub(crate) fn borrow(&self, from: usize, told: &[u8; LOAN_BYTES]) -> Option<BorrowedBytes<'_>> {
        let place = self.place(from)?;
        BorrowedBytes::take(self.segment.loan(place), self.segment.process(place)?, told)
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
    use crate::receive_room::ReceiveRoom;

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

    #[test]
    fn what_is_lent_is_copied_once_or_is_back() {
        let [ours, theirs] = pair();
        let bytes: Vec<u8> = (0..100_000_u32).map(|it| it as u8).collect();

        let mut lent = ours.lend(1, [b"head", &bytes]).unwrap();
        assert!(ours.lend(1, [&[], &bytes]).is_none());
        let borrowed = theirs.borrow(0, &lent.told()).unwrap();
        let mut copy = vec![0; bytes.len() + 4];
        let mut room = ReceiveRoom::new(&mut copy);
        assert!(borrowed.copy_to(room.of(bytes.len() + 4).unwrap()));
        assert!(copy[..4] == *b"head" && copy[4..] == bytes);
        assert_eq!(borrowed.to_vec(0), None);
        assert!(lent.are_noticed() && lent.end());
        drop(lent);

        let lent = ours.lend(1, [&bytes[..7], &bytes[7..]]).unwrap();
        let borrowed = theirs.borrow(0, &lent.told()).unwrap();
        let copy = borrowed.to_vec(9).unwrap();
        assert!(copy == bytes && copy.capacity() >= bytes.len() + 9);
        drop(lent);

        let mut lent = ours.lend(1, [&bytes, &[]]).unwrap();
        let told = lent.told();
        assert!(!lent.end());
        assert!(theirs.borrow(0, &told).is_none());
        drop(lent);
        assert!(theirs.borrow(0, &told).is_none());
    }

    #[test]
    fn bytes_are_lent_to_other_ranks_of_this_machine_that_can_read_them() {
        let [ours, theirs] = pair();
        assert!(ours.lend(0, [&[], b"to itself"]).is_none());
        assert!(ours.lend(2, [&[], b"to another machine"]).is_none());
        let mut lent = ours.lend(1, [b"at no address", &[]]).unwrap();
        let mut told = lent.told();
        told[..8].fill(u8::MAX);
        assert_eq!(theirs.borrow(0, &told).unwrap().to_vec(0), None);
        assert!(!lent.end());
        drop(lent);
        assert!(ours.lend(1, [&[], b"it has refused"]).is_none());
    }
}
