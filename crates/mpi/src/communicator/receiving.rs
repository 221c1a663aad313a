//! The side of a communicator that receives: what all receives and probes are made of.

use super::{Communicator, revoked};
use crate::completion::EndedRank;
use crate::engine::{PassedMessage, ReceiveRoom};
use crate::envelope::{Envelope, Status};
use crate::error::{CallSite, Error, ErrorClass};
use crate::lane::MessageLane;
use crate::mailbox::{Arrived, AwaitedRanks, Mailbox, Posted, ReceiveOutcome, TakenOrPosted};
use crate::matching::Pattern;
use crate::tag::{Source, Tags};
use selvedge_core::budget;
use std::ops::Deref;

/// What a receive makes of its message.
pub(crate) trait OpensMessage<T>: Send {
    /// Where the bytes are to go, if they may go there before the message is opened.
    fn room(&mut self) -> Option<ReceiveRoom<'_>> {
        None
    }

    /// The result of a message.
    fn open(self, envelope: Envelope) -> Result<T, Error>;

    /// The result of a message with this status, of which the bytes are in the room.
    fn opened(self, status: Status) -> Result<T, Error>;
}

/// A function that opens a message, and has no room for its bytes.
pub(crate) struct Opened<F>(pub(crate) F);

impl<T, F: FnOnce(Envelope) -> Result<T, Error> + Send> OpensMessage<T> for Opened<F> {
    fn open(self, envelope: Envelope) -> Result<T, Error> {
        (self.0)(envelope)
    }

    fn opened(self, _: Status) -> Result<T, Error> {
        unreachable!("it has no room")
    }
}

impl Communicator {
    /// What a receive or probe asks the mailbox for. `None` if it is of the null rank: it is over
    /// at once.
    ///
    /// # Errors
    /// If the communicator is revoked, or there is no such rank.
    fn asked(
        &self,
        call: CallSite,
        lane: MessageLane,
        source: Source,
        tags: Tags,
    ) -> Result<Option<(Pattern, AwaitedRanks)>, Error> {
        self.check_revoked(call, lane)?;
        if source.is_null() {
            return Ok(None);
        }
        let (source, awaited) = match source {
            Source::Rank(rank) => {
                self.check_rank(rank, call, ErrorClass::Rank)?;
                (Some(rank as u32), AwaitedRanks::One(self.world_rank(rank) as u32))
            }
            Source::Any => (None, AwaitedRanks::AnyOf(self.peers().world_ranks().clone())),
        };
        let tag = match tags {
            Tags::One(tag) => Some(tag.0),
            Tags::Any => None,
        };
        Ok(Some((Pattern { context: lane.context, source, tag }, awaited)))
    }

    /// Posts a receive, or a probe.
    pub(crate) fn post(
        &self,
        call: CallSite,
        lane: MessageLane,
        source: Source,
        tags: Tags,
        takes: bool,
    ) -> Result<Posted, Error> {
        Ok(match self.asked(call, lane, source, tags)? {
            Some((pattern, awaited)) => self.mailbox().post(pattern, awaited, takes),
            None => Posted::of_null_rank(self.mailbox().clone(), takes),
        })
    }

    /// Waits for the outcome of a posted receive or probe.
    pub(crate) async fn outcome<M: Deref<Target = Mailbox>>(
        &self,
        call: CallSite,
        lane: MessageLane,
        posted: &mut Posted<M>,
        source: Source,
        tags: Tags,
    ) -> Result<ReceiveOutcome, Error> {
        posted.wait(call, || awaited_message(call, lane, source, tags)).await;
        match posted.collect() {
            outcome @ (ReceiveOutcome::Took(_) | ReceiveOutcome::Saw(_)) => Ok(outcome),
            outcome => Err(self.in_vain(call, lane, &outcome, source, tags)),
        }
    }

    /// The error of a receive or probe with this outcome.
    #[cold]
    fn in_vain(
        &self,
        call: CallSite,
        lane: MessageLane,
        outcome: &ReceiveOutcome,
        source: Source,
        tags: Tags,
    ) -> Error {
        match outcome {
            ReceiveOutcome::Ended(ended) if lane.is_collective() => {
                self.ended(call, *ended, &format!("no part of {source} will come"))
            }
            ReceiveOutcome::Ended(ended) => self.no_message(call, *ended, source, tags),
            ReceiveOutcome::Revoked => revoked(call),
            other => unreachable!("a receive takes its message, and this has none: {other:?}"),
        }
    }

    /// The error of a receive for which no message will come.
    pub(crate) fn no_message(&self, call: CallSite, ended: EndedRank, source: Source, tags: Tags) -> Error {
        self.ended(call, ended, &format!("no message from {source} with {tags} will come"))
    }

    /// The first message that matches, if it is there.
    pub(crate) fn try_take(
        &self,
        call: CallSite,
        lane: MessageLane,
        source: Source,
        tags: Tags,
    ) -> Result<Option<Arrived>, Error> {
        Ok(match self.asked(call, lane, source, tags)? {
            Some((pattern, _)) => self.mailbox().try_take(&pattern),
            None => Some(Arrived::of_null_rank()),
        })
    }

    /// The status of the first message of the program that matches, if it is there.
    pub(crate) fn try_see(
        &self,
        call: CallSite,
        source: Source,
        tags: Tags,
    ) -> Result<Option<Status>, Error> {
        Ok(match self.asked(call, self.own(), source, tags)? {
            Some((pattern, _)) => self.mailbox().try_see(&pattern),
            None => Some(Arrived::of_null_rank().status()),
        })
    }

    /// Puts a message back that was taken, at its place in the order.
    pub(crate) fn put_back(&self, arrived: Arrived) {
        self.mailbox().put_back(arrived);
    }

    /// The first message that matches, when it comes.
    pub(crate) fn receive(
        &self,
        call: CallSite,
        lane: MessageLane,
        source: Source,
        tags: Tags,
    ) -> impl Future<Output = Result<Envelope, Error>> + Send {
        self.receive_with(call, lane, source, tags, Opened(Ok))
    }

    /// What `open` makes of the first message that matches, when it comes.
    #[expect(clippy::manual_async_fn, reason = "an async function has its arguments twice in its memory")]
    pub(crate) fn receive_with<T>(
        &self,
        call: CallSite,
        lane: MessageLane,
        source: Source,
        tags: Tags,
        mut open: impl OpensMessage<T>,
    ) -> impl Future<Output = Result<T, Error>> + Send {
        async move {
            // Paid before, because a message that was taken would be lost if this were dropped
            // here.
            budget::pay(1).await;
            if self.shared.engine.looks_out() {
                match self.looked_out(call, lane, source, tags, open.room())? {
                    Some(PassedMessage::Whole(envelope)) => return open.open(envelope),
                    Some(PassedMessage::InRoom(status)) => return open.opened(status),
                    None => {}
                }
            }
            let mut posted = match self.begin_receive(call, lane, source, tags)? {
                TakenOrPosted::Taken(arrived) => return open.open(arrived.into_envelope()),
                TakenOrPosted::Posted(posted) => posted,
            };
            posted.wait(call, || awaited_message(call, lane, source, tags)).await;
            match posted.collect() {
                ReceiveOutcome::Took(arrived) => open.open(arrived.into_envelope()),
                outcome => Err(self.in_vain(call, lane, &outcome, source, tags)),
            }
        }
    }

    /// Takes the first message that matches, or posts a receive for it. The price of the message
    /// has been paid.
    fn begin_receive(
        &self,
        call: CallSite,
        lane: MessageLane,
        source: Source,
        tags: Tags,
    ) -> Result<TakenOrPosted<&Mailbox>, Error> {
        let Some((pattern, awaited)) = self.asked(call, lane, source, tags)? else {
            return Ok(TakenOrPosted::Taken(Arrived::of_null_rank()));
        };
        let found = Mailbox::take_or_post(&**self.mailbox(), pattern, awaited);
        if matches!(found, TakenOrPosted::Posted(_)) {
            // Its price belongs to a message that is there.
            budget::refund(1);
        }
        Ok(found)
    }

    /// The first message that matches, if it is there or comes while the engine looks out for it.
    fn looked_out(
        &self,
        call: CallSite,
        lane: MessageLane,
        source: Source,
        tags: Tags,
        room: Option<ReceiveRoom<'_>>,
    ) -> Result<Option<PassedMessage>, Error> {
        let Some((pattern, _)) = self.asked(call, lane, source, tags)? else { return Ok(None) };
        let mut found = self.mailbox().try_take(&pattern);
        let passed = match &found {
            Some(_) => None,
            None => self.shared.engine.look_out_for(self.own_world_rank(), &pattern, room, &mut || {
                found = self.mailbox().try_take(&pattern);
                found.is_some()
            }),
        };
        Ok(found.map(|arrived| PassedMessage::Whole(arrived.into_envelope())).or(passed))
    }

    /// The next message of an agreement, of any rank. `None` if there is none and `awaited` has
    /// ended.
    ///
    /// # Errors
    /// If this rank itself has ended.
    pub(crate) async fn receive_unless_ended(
        &self,
        call: CallSite,
        lane: MessageLane,
        awaited: usize,
    ) -> Result<Option<Envelope>, Error> {
        let pattern = Pattern { context: lane.context, source: None, tag: Some(lane.number.0) };
        let awaits = AwaitedRanks::One(self.world_rank(awaited) as u32);
        let mut posted = self.mailbox().post(pattern, awaits, true);
        let CallSite { name, rank, place } = call;
        let object = || format!("the message of {name} from rank {awaited}, as rank {rank}, at {place}");
        posted.wait(call, object).await;
        match posted.collect() {
            ReceiveOutcome::Took(arrived) => Ok(Some(arrived.into_envelope())),
            ReceiveOutcome::Ended(ended) if ended.rank as usize == self.world_rank(rank) => {
                Err(self.ended(call, ended, "it takes no part"))
            }
            ReceiveOutcome::Ended(_) => Ok(None),
            other => unreachable!("no revocation ends the receive of an agreement: {other:?}"),
        }
    }
}

/// What a receive or probe waits for, in words.
fn awaited_message(call: CallSite, lane: MessageLane, source: Source, tags: Tags) -> String {
    let CallSite { name, rank, place } = call;
    match lane.is_collective() {
        true => format!("the message of {name} from {source}, as rank {rank}, at {place}"),
        false => format!("a message from {source} with {tags}, as rank {rank}, at {place}"),
    }
}
