//! The driver's side that receives.

use super::{LONG_MESSAGE, MpiDriver, Undone};
use crate::libmpi::calls::{MessageHandle, MessageHead};
use crate::libmpi::error::MpiError;
use crate::libmpi::family::MpiHandle;
use crate::libmpi::frames::{BODY, FrameRead};
use crate::libmpi::memory::MpiMemory;
use crate::libmpi::orders::{CommId, WORLD};
use crate::libmpi::received::Received;
use selvedge_core::internal::quietly;

impl<H: MpiHandle> MpiDriver<H> {
    /// Looks for messages where listeners want some, and takes at most this number from each
    /// communicator.
    pub(super) fn find(&mut self, messages: usize) -> bool {
        let mut has_happened = false;
        let mut next = WORLD;
        while let Some((&comm, _)) = self.lines.range(next..).next() {
            next = comm + 1;
            for _ in 0..messages {
                let Some(line) = self.lines.get_mut(&comm).filter(|line| line.wants_messages()) else {
                    break;
                };
                let found = match line.frames {
                    Some(_) => self.next_frame(comm),
                    None => self.next_message(comm, None),
                };
                match found {
                    Ok(false) => break,
                    Ok(true) => {}
                    Err(error) => self.receive_no_more(comm, error),
                }
                has_happened = true;
            }
        }
        has_happened
    }

    /// The driver does not look again, because the error would come again.
    fn receive_no_more(&mut self, comm: CommId, error: MpiError) {
        let listener = self.lines.get_mut(&comm).and_then(|line| line.listener.take());
        if let Some(listener) = listener {
            quietly(|| listener.failed(error));
        }
    }

    /// Takes the next frame of a communicator, or a body that was announced.
    fn next_frame(&mut self, comm: CommId) -> Result<bool, MpiError> {
        let Some(line) = self.lines.get_mut(&comm) else { return Ok(false) };
        let Some(frames) = &mut line.frames else { return Ok(false) };
        match frames.next(&self.mpi, &line.comm)? {
            Some((MessageHead { source, tag, .. }, FrameRead::Whole(message))) => {
                let message = Received { source: source as usize, tag, memory: message.into() };
                if line.incoming.is_empty() {
                    line.hand_over(message);
                } else {
                    let ticket = line.incoming.begin(source);
                    line.end(source, ticket, Ok(message));
                }
                Ok(true)
            }
            Some((MessageHead { source, .. }, FrameRead::Announced)) => {
                let ticket = line.incoming.begin(source);
                frames.announce(source, ticket);
                Ok(true)
            }
            None => match frames.announced() {
                Some(source) => self.next_message(comm, Some(source)),
                None => Ok(false),
            },
        }
    }

    /// Receives the next message of a communicator; or the next body of a source, which was
    /// announced.
    fn next_message(&mut self, comm: CommId, source: Option<i32>) -> Result<bool, MpiError> {
        let Some(line) = self.lines.get_mut(&comm) else { return Ok(false) };
        let tag = source.map(|_| BODY);
        let Some((head, message)) = self.mpi.find_message(&line.comm, source, tag)? else {
            return Ok(false);
        };
        let ticket = line.frames.as_mut().and_then(|frames| frames.found(head.source));
        self.receive(comm, head, message, ticket);
        Ok(true)
    }

    /// Receives a message that was found, at the place in the order that it has, or at the end.
    fn receive(&mut self, comm: CommId, head: MessageHead, message: MessageHandle<H>, ticket: Option<u64>) {
        let Some(line) = self.lines.get_mut(&comm) else { return };
        let ticket = ticket.unwrap_or_else(|| line.incoming.begin(head.source));
        // SAFETY: a message that is received writes all its bytes, and `CommLine::end` hands over
        // no memory of one that has failed.
        let mut memory = unsafe { MpiMemory::unwritten(head.bytes) };
        // SAFETY: the memory goes into the call, by the invariant at the head of the file.
        match unsafe { self.mpi.receive(message, &mut memory) } {
            Ok(request) => {
                if head.bytes >= LONG_MESSAGE {
                    line.ring(head.source);
                }
                self.begin(request, Undone::Receive { comm, head, ticket, memory });
            }
            Err(error) => line.end(head.source, ticket, Err(error)),
        }
    }
}
