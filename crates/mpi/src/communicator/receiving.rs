//! The side of a communicator that receives: what all receives and probes are made of.

use super::{Communicator, revoked};
use crate::completion::EndedRank;
use crate::envelope::{Envelope, Status};
use crate::error::{CallSite, Error, ErrorClass};
use crate::lane::MessageLane;
use crate::mailbox::{Arrived, AwaitedRanks, Posted, ReceiveOutcome};
use crate::matching::Pattern;
use crate::tag::{Source, Tags};
use selvedge_core::budget;

impl Communicator {
    /// What a receive or probe asks the mailbox for.
    ///
    /// # Errors
    /// If there is no such rank.
    fn asked(
        &self,
        call: CallSite,
        lane: MessageLane,
        source: Source,
        tags: Tags,
    ) -> Result<(Pattern, AwaitedRanks), Error> {
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
        Ok((Pattern { context: lane.context, source, tag }, awaited))
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
        self.check_revoked(call, lane)?;
        if source.is_null() {
            return Ok(Posted::of_null_rank(self.mailbox().clone(), takes));
        }
        let (pattern, awaited) = self.asked(call, lane, source, tags)?;
        Ok(self.mailbox().post(pattern, awaited, takes))
    }

    /// Waits for the outcome of a posted receive or probe.
    pub(crate) async fn outcome(
        &self,
        call: CallSite,
        lane: MessageLane,
        posted: &mut Posted,
        source: Source,
        tags: Tags,
    ) -> Result<ReceiveOutcome, Error> {
        let object = || {
            let CallSite { name, rank, place } = call;
            match lane.is_collective() {
                true => format!("the message of {name} from {source}, as rank {rank}, at {place}"),
                false => format!("a message from {source} with {tags}, as rank {rank}, at {place}"),
            }
        };
        match posted.collect(call, object).await {
            ReceiveOutcome::Ended(ended) if lane.is_collective() => {
                Err(self.ended(call, ended, &format!("no part of {source} will come")))
            }
            ReceiveOutcome::Ended(ended) => Err(self.no_message(call, ended, source, tags)),
            ReceiveOutcome::Revoked => Err(revoked(call)),
            outcome => Ok(outcome),
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
        self.check_revoked(call, lane)?;
        if source.is_null() {
            return Ok(Some(Arrived::of_null_rank()));
        }
        let (pattern, _) = self.asked(call, lane, source, tags)?;
        Ok(self.mailbox().try_take(&pattern))
    }

    /// The status of the first message of the program that matches, if it is there.
    pub(crate) fn try_see(
        &self,
        call: CallSite,
        source: Source,
        tags: Tags,
    ) -> Result<Option<Status>, Error> {
        self.check_revoked(call, self.own())?;
        if source.is_null() {
            return Ok(Some(Arrived::of_null_rank().status()));
        }
        let (pattern, _) = self.asked(call, self.own(), source, tags)?;
        Ok(self.mailbox().try_see(&pattern))
    }

    /// Puts a message back that was taken, at its place in the order.
    pub(crate) fn put_back(&self, arrived: Arrived) {
        self.mailbox().put_back(arrived);
    }

    /// The first message that matches, when it comes.
    pub(crate) async fn receive(
        &self,
        call: CallSite,
        lane: MessageLane,
        source: Source,
        tags: Tags,
    ) -> Result<Envelope, Error> {
        // Paid before, because a message that was taken would be lost if this were dropped here.
        budget::pay(1).await;
        if let Some(arrived) = self.try_take(call, lane, source, tags)? {
            return Ok(arrived.into_envelope());
        }
        budget::refund(1);
        let mut found = Ok(None);
        self.shared.engine.look_out(self.own_world_rank(), &mut || {
            found = self.try_take(call, lane, source, tags);
            !matches!(found, Ok(None))
        });
        if let Some(arrived) = found? {
            return Ok(arrived.into_envelope());
        }
        let mut posted = self.post(call, lane, source, tags, true)?;
        match self.outcome(call, lane, &mut posted, source, tags).await? {
            ReceiveOutcome::Took(arrived) => Ok(arrived.into_envelope()),
            other => unreachable!("a receive takes its message: {other:?}"),
        }
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
        match posted.collect(call, object).await {
            ReceiveOutcome::Took(arrived) => Ok(Some(arrived.into_envelope())),
            ReceiveOutcome::Ended(ended) if ended.rank as usize == self.world_rank(rank) => {
                Err(self.ended(call, ended, "it takes no part"))
            }
            ReceiveOutcome::Ended(_) => Ok(None),
            other => unreachable!("no revocation ends the receive of an agreement: {other:?}"),
        }
    }
}
