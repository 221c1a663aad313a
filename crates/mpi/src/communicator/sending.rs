//! The side of a communicator that sends: what all sends are made of.

use super::{Communicator, Underway};
use crate::completion::EndedRank;
use crate::engine::{SendMode, Sending};
use crate::envelope::{Envelope, MessageContent};
use crate::error::{CallSite, Error, ErrorClass};
use crate::lane::MessageLane;
use crate::payload::{SentPayload, pack};
use crate::tag::{PROC_NULL, Tag};
use selvedge_core::budget;

impl Communicator {
    /// Sends a payload as a message of the program, and waits for the end of the send.
    pub(crate) async fn send_payload<P: SentPayload>(
        &self,
        call: CallSite,
        to: usize,
        tag: Tag,
        payload: P,
        mode: SendMode,
    ) -> Result<(), Error> {
        budget::pay(1).await;
        let underway = self.begin_payload(call, to, tag, payload, mode)?;
        self.end_send(call, to, underway).await
    }

    /// Starts to send a payload as a message of the program.
    pub(crate) fn begin_payload<P: SentPayload>(
        &self,
        call: CallSite,
        to: usize,
        tag: Tag,
        payload: P,
        mode: SendMode,
    ) -> Result<Underway, Error> {
        self.check_peer(to, call)?;
        let body = pack(call, payload, self.moves_values(to))?;
        self.start_send(call, self.own(), to, tag, body, mode)
    }

    /// Starts a send. The completion, if there is one, ends it.
    ///
    /// # Errors
    /// If the receiver has ended, or there is no such rank or tag.
    pub(crate) fn start_send(
        &self,
        call: CallSite,
        lane: MessageLane,
        to: usize,
        tag: Tag,
        body: MessageContent,
        mode: SendMode,
    ) -> Result<Underway, Error> {
        self.check_revoked(call, lane)?;
        self.check_peer(to, call)?;
        if tag > Tag::MAX {
            return Err(call.error(ErrorClass::Tag, format!("to rank {to}: tag {tag} is above {}", Tag::MAX)));
        }
        if to == PROC_NULL {
            return Ok(None);
        }
        let envelope = Envelope {
            context: lane.context,
            mark: lane.mark,
            source: self.rank() as u32,
            tag: tag.0,
            body,
            sent: Some(call),
            matched: None,
        };
        let (from, to_world) = (self.own_world_rank(), self.world_rank(to));
        match self.shared.engine.send(from, to_world, envelope, mode) {
            Sending::Done => Ok(None),
            Sending::Underway(completion) => {
                if mode == SendMode::Synchronous {
                    self.mailbox().end_with_revocation(self.shared.context, &completion);
                }
                Ok(Some(completion))
            }
            Sending::Refused(ended) => Err(self.ended(call, ended, "no message can be sent to it")),
        }
    }

    /// Waits for the end of a send.
    pub(crate) async fn end_send(&self, call: CallSite, to: usize, underway: Underway) -> Result<(), Error> {
        let Some(completion) = underway else { return Ok(()) };
        if !completion.has_come() {
            self.shared.engine.look_out(self.own_world_rank(), &mut || completion.has_come());
        }
        let object = || format!("a message to rank {to}, as rank {}, at {}", call.rank, call.place);
        completion.wait(call.place, "send", object).await;
        self.sent(call, completion.take())
    }

    /// The result of a send that has ended.
    pub(crate) fn sent(&self, call: CallSite, end: Option<Result<(), EndedRank>>) -> Result<(), Error> {
        self.check_revoked(call, self.own())?;
        match end {
            Some(Err(ended)) => Err(self.ended(call, ended, "no receive has taken the message")),
            _ => Ok(()),
        }
    }
}
