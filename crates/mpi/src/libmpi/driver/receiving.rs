//! The driver's side that receives.

use super::{LONG_MESSAGE, MpiDriver, Undone};
use crate::libmpi::calls::{MessageHandle, MessageHead};
use crate::libmpi::error::MpiError;
use crate::libmpi::family::MpiHandle;
use crate::libmpi::frames::{AnnouncedBody, FrameRead, OfferedFrames};
use crate::libmpi::memory::MpiMemory;
use crate::libmpi::received::Received;
use selvedge_core::internal::quietly;

impl<H: MpiHandle> MpiDriver<H> {
    /// Looks for messages where listeners want some, and takes at most this number from each
    /// communicator.
    pub(super) fn find(&mut self, messages: usize, mut offered: Option<&mut OfferedFrames<'_, '_>>) -> bool {
        let mut has_happened = false;
        // No call of this adds a communicator or gives one up.
        for place in 0..self.lines.len() {
            for _ in 0..messages {
                let (_, line) = self.lines.at(place);
                if !line.wants_messages() {
                    break;
                }
                let found = match line.frames {
                    Some(_) => self.next_frame(place, offered.as_deref_mut()),
                    None => self.next_message(place, None),
                };
                match found {
                    Ok(false) => {
                        self.lines.at(place).1.tell_of_deaths();
                        break;
                    }
                    Ok(true) => {}
                    Err(error) if error.tells_of_a_death() => self.note_deaths(place, error),
                    Err(error) => self.receive_no_more(place, error),
                }
                has_happened = true;
            }
        }
        has_happened
    }

    /// A rank of a communicator has died. The driver goes on looking.
    fn note_deaths(&mut self, place: usize, error: MpiError) {
        let (_, line) = self.lines.at(place);
        let is_new = self.mpi.dead_ranks(&line.comm).map(|ranks| line.note_deaths(ranks));
        match is_new {
            Ok(true) => self.has_deaths = true,
            // The error would come again.
            Ok(false) | Err(_) => self.receive_no_more(place, error),
        }
    }

    /// The driver does not look again, because the error would come again.
    fn receive_no_more(&mut self, place: usize, error: MpiError) {
        let (_, line) = self.lines.at(place);
        if let Some(listener) = line.listener.take() {
            quietly(|| listener.failed(error));
        }
    }

    /// Takes the next frame of a communicator, or a body that was announced.
    fn next_frame(
        &mut self,
        place: usize,
        offered: Option<&mut OfferedFrames<'_, '_>>,
    ) -> Result<bool, MpiError> {
        let (comm, line) = self.lines.at(place);
        let Some(frames) = &mut line.frames else { return Ok(false) };
        // A message that has begun to come is before this one.
        let is_next = line.incoming.is_empty();
        let offer = offered.filter(|offered| is_next && offered.comm == comm).map(|it| &mut *it.offer);
        match frames.next(&self.mpi, &line.comm, line.doorbells.as_deref(), offer)? {
            Some((_, FrameRead::Taken)) => Ok(true),
            Some((MessageHead { source, tag, .. }, FrameRead::Whole(message))) => {
                let message = Received { source: source as usize, tag, memory: message.into() };
                if line.incoming.is_empty() {
                    line.hand_over(message);
                } else {
                    let ticket = line.incoming.begin(source);
                    line.end(source, ticket, Ok(Some(message)));
                }
                Ok(true)
            }
            Some((MessageHead { source, .. }, FrameRead::Announced(tag))) => {
                let ticket = line.incoming.begin(source);
                frames.announce(source, tag, ticket);
                Ok(true)
            }
            None => match frames.announced() {
                Some(body) => self.next_message(place, Some(body)),
                None => Ok(false),
            },
        }
    }

    /// Receives the next message of a communicator; or the next body of a source and with a tag
    /// that were announced.
    fn next_message(&mut self, place: usize, body: Option<AnnouncedBody>) -> Result<bool, MpiError> {
        let (_, line) = self.lines.at(place);
        let (source, tag) = (body.map(|body| body.source), body.map(|body| body.tag));
        let Some((head, message)) = self.mpi.find_message(&line.comm, source, tag)? else {
            return Ok(false);
        };
        let ticket = line.frames.as_mut().and_then(|frames| frames.found(head.source, head.tag));
        self.receive(place, head, message, ticket);
        Ok(true)
    }

    /// Receives a message that was found, at the place in the order that it has, or at the end.
    fn receive(&mut self, place: usize, head: MessageHead, message: MessageHandle<H>, ticket: Option<u64>) {
        let (comm, line) = self.lines.at(place);
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
            Err(error) => line.end(head.source, ticket, MpiError::unless_dead(Err(error))),
        }
    }
}
