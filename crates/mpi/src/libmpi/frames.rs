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
//!
//! # A loan
//! A longer frame that ends with [`ANNOUNCED`] tells of bytes that the sender has lent
//! (`processes/lending.rs`): what the reader has to know, and the end of the message. The receiver
//! copies the bytes at once, wherever they are to go, and the message is whole. A sender that has
//! its bytes back before that sends them with the tag [`LATE`], which the receiver then looks for
//! as for a body. Other messages may have gone in between, so a late message has a tag of its own.
//! A rank lends once at a time, so the loans and the late messages of one sender have one order.

use super::calls::{CommHandle, MessageHead, Mpi, RequestHandle};
use super::error::{MpiError, MpiErrorClass};
use super::family::MpiHandle;
use super::memory::MpiMemory;
use super::orders::CommId;
use super::scalar::Scalar;
use crate::processes::{BorrowedBytes, Doorbells, LOAN_BYTES};
use std::collections::VecDeque;

/// The tag of frames.
pub(super) const FRAME: i32 = 1;
/// The tag of messages that were announced.
pub(super) const BODY: i32 = 0;
/// The tag of messages of which the sender had lent the bytes, in vain.
pub(super) const LATE: i32 = 2;

/// The one byte of a frame that announces a message.
pub(super) const ANNOUNCED: u8 = u8::MAX;

/// The longest frame in bytes: what the libraries send at once, so that a frame needs no answer.
pub(crate) const FRAME_MAX: usize = 4000;

/// The receives that are posted. MPI looks through them one by one.
const POSTED: usize = 8;

/// The frames of one communicator that have yet to come, and the bodies.
#[derive(Debug)]
pub(super) struct FrameStore<H> {
    /// In the order in which they were posted.
    posted: VecDeque<(RequestHandle<H>, MpiMemory)>,
    /// The memory of receives that are over.
    free: Vec<MpiMemory>,
    /// The bodies that have not been found.
    announced: VecDeque<AnnouncedBody>,
}

/// A body that has yet to be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AnnouncedBody {
    pub(super) source: i32,
    /// [`BODY`] or [`LATE`].
    pub(super) tag: i32,
    /// Its place in the order of the source's messages.
    ticket: u64,
}

/// What a frame says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FrameRead {
    Whole(Vec<u8>),
    /// The message comes with this tag.
    Announced(i32),
    /// A thread to which the message was offered has taken it.
    Taken,
}

/// A message that is offered: a frame; or the end of a message, and the bytes before it, which
/// another process has lent.
#[derive(Clone, Copy)]
pub(crate) struct OfferedFrame<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) lent: Option<&'a BorrowedBytes<'a>>,
}

/// Whether a thread takes a message of this source at once, from where it lies.
pub(super) type FrameOffer<'a> = dyn FnMut(usize, OfferedFrame<'_>) -> bool + 'a;

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
        doorbells: Option<&Doorbells>,
        offer: Option<&mut FrameOffer<'_>>,
    ) -> Result<Option<(MessageHead, FrameRead)>, MpiError> {
        if self.posted.is_empty() {
            self.post(mpi, comm)?;
        }
        let Some((request, _)) = self.posted.front_mut() else { return Ok(None) };
        let arrived = match mpi.arrived(request) {
            Ok(None) => {
                // While nothing comes, there is time for it.
                if !self.free.is_empty() {
                    self.post(mpi, comm)?;
                }
                return Ok(None);
            }
            // The receive is under way still.
            Err(error) if error.class == MpiErrorClass::ProcFailedPending => return Err(error),
            Ok(Some(head)) => Ok(head),
            Err(error) => Err(error),
        };
        let Some((_, memory)) = self.posted.pop_front() else { return Ok(None) };
        let frame = arrived.map(|head| {
            let bytes = memory.as_slice().and_then(|bytes| bytes.get(..head.bytes)).unwrap_or(&[]);
            Some((head, FrameRead::of(head.source as usize, bytes, doorbells, offer)))
        });
        self.free.push(memory);
        frame
    }

    fn post(&mut self, mpi: &Mpi<H>, comm: &CommHandle<H>) -> Result<(), MpiError> {
        while let Some(mut memory) = self.free.pop() {
            // SAFETY: the memory lies in `posted` until the request is done, or in `withdraw` has
            // been given up.
            match unsafe { mpi.post(comm, FRAME, &mut memory) } {
                Ok(request) => self.posted.push_back((request, memory)),
                Err(error) => {
                    self.free.push(memory);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// A body is announced, with this tag.
    pub(super) fn announce(&mut self, source: i32, tag: i32, ticket: u64) {
        self.announced.push_back(AnnouncedBody { source, tag, ticket });
    }

    /// A body that is announced: of several, each in turn.
    pub(super) fn announced(&mut self) -> Option<AnnouncedBody> {
        let next = self.announced.pop_front()?;
        self.announced.push_back(next);
        Some(next)
    }

    /// A body of this source was found, with this tag. Its ticket: the first that the source has.
    pub(super) fn found(&mut self, source: i32, tag: i32) -> Option<u64> {
        let all = self.announced.iter().enumerate();
        let of_source = all.filter(|(_, body)| (body.source, body.tag) == (source, tag));
        let (place, _) = of_source.min_by_key(|(_, body)| body.ticket)?;
        self.announced.remove(place).map(|body| body.ticket)
    }

    /// The tickets of the bodies that this source has announced and will not send.
    pub(super) fn forget(&mut self, source: i32) -> Vec<u64> {
        let forgotten = self.announced.iter().filter(|body| body.source == source);
        let tickets = forgotten.map(|body| body.ticket).collect();
        self.announced.retain(|body| body.source != source);
        tickets
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
    /// What a frame of this source says. A message is offered first.
    fn of(
        source: usize,
        frame: &[u8],
        doorbells: Option<&Doorbells>,
        offer: Option<&mut FrameOffer<'_>>,
    ) -> FrameRead {
        let is_taken = |offered| offer.is_some_and(|offer| offer(source, offered));
        let Some((&ANNOUNCED, told)) = frame.split_last() else {
            return match is_taken(OfferedFrame { bytes: frame, lent: None }) {
                true => FrameRead::Taken,
                false => FrameRead::Whole(frame.to_vec()),
            };
        };
        let Some((loan, bytes)) = told.split_first_chunk::<LOAN_BYTES>() else {
            return FrameRead::Announced(BODY);
        };
        let Some(lent) = doorbells.and_then(|doorbells| doorbells.borrow(source, loan)) else {
            return FrameRead::Announced(LATE);
        };
        if is_taken(OfferedFrame { bytes, lent: Some(&lent) }) {
            return FrameRead::Taken;
        }
        match lent.to_vec(bytes.len()) {
            Some(mut message) => {
                message.extend_from_slice(bytes);
                FrameRead::Whole(message)
            }
            None => FrameRead::Announced(LATE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::c_int;

    #[test]
    fn a_frame_is_a_message_or_announces_one() {
        let read = |frame: &[u8]| FrameRead::of(1, frame, None, None);
        assert_eq!(read(&[ANNOUNCED]), FrameRead::Announced(BODY));
        for message in [&[7, 8][..], &[0], &[7, ANNOUNCED, 0], &[]] {
            assert_eq!(read(message), FrameRead::Whole(message.to_vec()));
        }
        // A loan of a rank that lends nothing.
        let loan = [&[0; LOAN_BYTES][..], &[7, ANNOUNCED]].concat();
        assert_eq!(read(&loan), FrameRead::Announced(LATE));
    }

    #[test]
    fn a_message_is_offered_before_it_is_copied() {
        let mut offered = Vec::new();
        let mut offer = |source, frame: OfferedFrame<'_>| {
            offered.push((source, frame.bytes.to_vec()));
            true
        };
        assert_eq!(FrameRead::of(1, &[7, 8], None, Some(&mut offer)), FrameRead::Taken);
        assert_eq!(FrameRead::of(1, &[ANNOUNCED], None, Some(&mut offer)), FrameRead::Announced(BODY));
        assert_eq!(offered, [(1, vec![7, 8])]);
    }

    #[test]
    fn bodies_of_a_source_have_the_order_of_their_announcements() {
        let mut frames = FrameStore::<c_int>::new();
        for (source, tag, ticket) in [(5, BODY, 1), (6, BODY, 2), (5, LATE, 3), (5, BODY, 4)] {
            frames.announce(source, tag, ticket);
        }
        let mut next = || frames.announced().map(|body| (body.source, body.tag));
        let in_turn = [(5, BODY), (6, BODY), (5, LATE), (5, BODY), (5, BODY)];
        assert_eq!([(); 5].map(|()| next()), in_turn.map(Some));
        assert_eq!([5, 5, 5].map(|source| frames.found(source, BODY)), [Some(1), Some(4), None]);
        assert_eq!(
            (frames.found(5, LATE), frames.found(6, BODY), frames.announced()),
            (Some(3), Some(2), None)
        );
        for (source, ticket) in [(5, 5), (6, 6), (5, 7)] {
            frames.announce(source, BODY, ticket);
        }
        assert_eq!((frames.forget(5), frames.forget(5)), (vec![5, 7], vec![]));
        assert_eq!(frames.found(6, BODY), Some(6));
    }
}
