//! [`FrameStore`]: the messages of a communicator on which only this crate sends, so that a short one
//! costs one test of a receive that is posted.
//!
//! `driver/receiving.rs` receives by it, and `driver.rs` sends. A communicator that anything may
//! send on is looked at with a matched probe, which takes three calls for a message and is slow
//! when nothing has come.
//!
//! # The form
//! A short message is a frame, which goes with the tag [`FRAME`]. Its last byte is not
//! [`ANNOUNCED`], which its sender sees to. Another message is announced by a frame with the one
//! byte [`ANNOUNCED`], and then goes with the tag [`BODY`]. The sender begins both before anything
//! else, so the announcements and the bodies of one sender have one order.
//!
//! The frames of one sender come in their order, and say the order of its messages: a body takes
//! the place of its announcement. Receives of frames are posted in advance, so the oldest of them
//! has the next frame. Bodies are looked for while some are announced.

use super::calls::{CommHandle, MessageHead, Mpi, RequestHandle};
use super::error::MpiError;
use super::family::MpiHandle;
use super::memory::MpiMemory;
use super::orders::CommId;
use super::scalar::Scalar;
use std::collections::VecDeque;

/// The tag of frames.
pub(super) const FRAME: i32 = 1;
/// The tag of messages that were announced.
pub(super) const BODY: i32 = 0;

/// The one byte of a frame that announces a message.
pub(super) const ANNOUNCED: u8 = u8::MAX;

/// The longest frame in bytes: what the libraries send at once, so that a frame needs no answer.
pub(super) const FRAME_MAX: usize = 4000;

/// The receives that are posted. MPI looks through them one by one.
const POSTED: usize = 8;

/// The frames of one communicator that have yet to come, and the bodies.
#[derive(Debug)]
pub(super) struct FrameStore<H> {
    /// In the order in which they were posted.
    posted: VecDeque<(RequestHandle<H>, MpiMemory)>,
    /// The memory of receives that are over.
    free: Vec<MpiMemory>,
    /// The sources of bodies that have not been found, with their tickets.
    announced: VecDeque<(i32, u64)>,
}

/// What a frame says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FrameRead {
    Whole(Vec<u8>),
    Announced,
    /// A thread to which the message was offered has taken it.
    Taken,
}

/// Whether a thread takes a message of this source at once, from where it lies.
pub(super) type FrameOffer<'a> = dyn FnMut(usize, &[u8]) -> bool + 'a;

/// A thread that looks by itself, to which the frames of a communicator are offered.
pub(super) struct OfferedFrames<'a, 'b> {
    pub(super) comm: CommId,
    pub(super) offer: &'a mut FrameOffer<'b>,
}

impl<H: MpiHandle> FrameStore<H> {
    pub(super) fn new() -> FrameStore<H> {
        let free = (0..POSTED).map(|_| MpiMemory::zeroed(Scalar::U8, FRAME_MAX)).collect();
        FrameStore { posted: VecDeque::new(), free, announced: VecDeque::new() }
    }

    /// The next frame, if it has come, and its source. A message is offered before its bytes are
    /// copied.
    pub(super) fn next(
        &mut self,
        mpi: &Mpi<H>,
        comm: &CommHandle<H>,
        offer: Option<&mut FrameOffer<'_>>,
    ) -> Result<Option<(MessageHead, FrameRead)>, MpiError> {
        if self.posted.is_empty() {
            self.post(mpi, comm)?;
        }
        let Some((request, _)) = self.posted.front_mut() else { return Ok(None) };
        let Some(head) = mpi.arrived(request)? else {
            // While nothing comes, there is time for it.
            self.post(mpi, comm)?;
            return Ok(None);
        };
        let Some((_, memory)) = self.posted.pop_front() else { return Ok(None) };
        let bytes = memory.as_slice().and_then(|bytes| bytes.get(..head.bytes)).unwrap_or(&[]);
        let frame = match FrameRead::is_announcement(bytes) {
            true => FrameRead::Announced,
            false if offer.is_some_and(|offer| offer(head.source as usize, bytes)) => FrameRead::Taken,
            false => FrameRead::Whole(bytes.to_vec()),
        };
        self.free.push(memory);
        Ok(Some((head, frame)))
    }

    fn post(&mut self, mpi: &Mpi<H>, comm: &CommHandle<H>) -> Result<(), MpiError> {
        while let Some(mut memory) = self.free.pop() {
            // SAFETY: the memory lies in `posted` until the request is done, or in `withdraw` has
            // been given up.
            let request = unsafe { mpi.post(comm, FRAME, &mut memory) }?;
            self.posted.push_back((request, memory));
        }
        Ok(())
    }

    /// A body is announced.
    pub(super) fn announce(&mut self, source: i32, ticket: u64) {
        self.announced.push_back((source, ticket));
    }

    /// A source of which a body is announced: of several, each in turn.
    pub(super) fn announced(&mut self) -> Option<i32> {
        let next = self.announced.pop_front()?;
        self.announced.push_back(next);
        Some(next.0)
    }

    /// A body of this source was found. Its ticket: the first that the source has.
    pub(super) fn found(&mut self, source: i32) -> Option<u64> {
        let of_source = self.announced.iter().enumerate().filter(|(_, (other, _))| *other == source);
        let (place, _) = of_source.min_by_key(|(_, (_, ticket))| *ticket)?;
        self.announced.remove(place).map(|(_, ticket)| ticket)
    }

    /// No frame is received any more. MPI uses no memory of them afterwards.
    pub(super) fn withdraw(self, mpi: &Mpi<H>) {
        for (request, memory) in self.posted {
            if mpi.withdraw(request).is_err() {
                // MPI may still write to it.
                std::mem::forget(memory);
            }
        }
    }
}

impl FrameRead {
    fn is_announcement(frame: &[u8]) -> bool {
        frame == [ANNOUNCED]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::c_int;

    #[test]
    fn a_frame_is_a_message_or_announces_one() {
        assert!(FrameRead::is_announcement(&[ANNOUNCED]));
        assert!([&[7, 8][..], &[0], &[7, ANNOUNCED], &[]].iter().all(|it| !FrameRead::is_announcement(it)));
    }

    #[test]
    fn bodies_of_a_source_have_the_order_of_their_announcements() {
        let mut frames = FrameStore::<c_int>::new();
        for (source, ticket) in [(5, 1), (6, 2), (5, 3)] {
            frames.announce(source, ticket);
        }
        assert_eq!([(); 4].map(|()| frames.announced()), [5, 6, 5, 5].map(Some));
        assert_eq!([5, 5, 5].map(|source| frames.found(source)), [Some(1), Some(3), None]);
        assert_eq!((frames.announced(), frames.found(6), frames.announced()), (Some(6), Some(2), None));
    }
}
