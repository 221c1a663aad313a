//! The side of a communicator that sends: what all sends are made of.

use super::{Communicator, Underway};
use crate::byte_pieces::BytePieces;
use crate::completion::EndedRank;
use crate::engine::{SendMode, Sending};
use crate::envelope::{Envelope, MessageContent, MessageKey};
use crate::error::{CallSite, Error, ErrorClass};
use crate::lane::MessageLane;
use crate::payload::{SentPayload, pack};
use crate::spare_memory::{SPARE_MIN, spare};
use crate::tag::{PROC_NULL, Tag};
use selvedge_core::budget;

/// The bytes of which a copy takes as long as an operation between threads.
const COPIED: usize = 1 << 10;

/// More than a step may do.
const CHARGED_MAX: usize = 2 * budget::BUDGET as usize;

impl Communicator {
    /// Sends a payload as a message of the program, and waits for the end of the send.
    #[expect(clippy::manual_async_fn, reason = "an async function has its arguments twice in its memory")]
    pub(crate) fn send_payload<P: SentPayload>(
        &self,
        call: CallSite,
        to: usize,
        tag: Tag,
        payload: P,
        mode: SendMode,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        async move {
            budget::pay(1).await;
            let bytes = payload.copied_bytes();
            match self.begin(call, to, tag, payload, mode, true)? {
                None => {
                    if bytes >= SPARE_MIN && self.moves_values(to) {
                        // The receiver is to have a turn while the cache has what was copied.
                        budget::charge((bytes / COPIED).min(CHARGED_MAX) as u32);
                    }
                    Ok(())
                }
                underway => self.end_send(call, to, underway).await,
            }
        }
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
        self.begin(call, to, tag, payload, mode, false)
    }

    /// Starts to send a payload. With `may_wait` the caller waits for the end of the send next.
    fn begin<P: SentPayload>(
        &self,
        call: CallSite,
        to: usize,
        tag: Tag,
        payload: P,
        mode: SendMode,
        may_wait: bool,
    ) -> Result<Underway, Error> {
        self.check_peer(to, call)?;
        let moves = self.moves_values(to);
        let may_go_at_once = !moves && mode == SendMode::Standard;
        let mut was_tried = !may_wait;
        let mut head = Vec::new();
        if may_go_at_once && let Some(bytes) = payload.lying(&mut head) {
            if self.send_at_once(to, tag, bytes, may_wait) {
                return Ok(None);
            }
            was_tried = true;
        }
        let mut body = pack(call, payload, moves)?;
        if let MessageContent::Bytes(bytes) = &mut body
            && may_go_at_once
            && !was_tried
            && self.send_at_once(to, tag, [&[], bytes], true)
        {
            spare().keep(std::mem::take(bytes));
            return Ok(None);
        }
        self.start_send(call, self.own(), to, tag, body, mode)
    }

    /// Sends bytes to a rank of another process, if that is possible at once. `false` if nothing
    /// was sent, also because of an error, which [`start_send`](Self::start_send) then finds.
    fn send_at_once(&self, to: usize, tag: Tag, bytes: BytePieces<'_>, may_wait: bool) -> bool {
        if tag > Tag::MAX || self.knows_of_revocation() {
            return false;
        }
        let MessageLane { context, mark, .. } = self.own();
        let key = MessageKey { context, mark, source: self.rank() as u32, tag: tag.0 };
        let (from, to) = (self.own_world_rank(), self.world_rank(to));
        self.shared.engine.send_at_once(from, to, key, bytes, may_wait)
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::job::{JobLink, JobRank, MessageOffer, PostEnd};
    use crate::job_header::JobHeader;
    use std::sync::{Arc, Mutex};

    /// A link that takes the first message at once, and no other.
    #[derive(Default)]
    struct NotingLink {
        /// Where the bytes lay of messages that were to go at once.
        places: Mutex<Vec<usize>>,
        posted: Mutex<Vec<Vec<u8>>>,
    }

    impl JobLink for NotingLink {
        const NAME: &'static str = "noting";

        fn try_post(&self, _: usize, _: &JobHeader, [_, bytes]: BytePieces<'_>) -> bool {
            let mut places = self.places.lock().unwrap();
            places.push(bytes.as_ptr().addr());
            places.len() == 1
        }

        fn post(&self, _: usize, _: JobHeader, bytes: Vec<u8>, end: PostEnd) {
            self.posted.lock().unwrap().push(bytes);
            end.sent();
        }

        fn look_out(&self, _: bool, _: &mut MessageOffer<'_>, until: &mut dyn FnMut() -> bool) {
            until();
        }
    }

    #[test]
    fn a_slice_goes_from_where_it_lies_if_it_goes_at_once() {
        let link = Arc::new(NotingLink::default());
        let job = Arc::new(JobRank::new(0, 2, link.clone()));
        let world = Communicator::world(job.clone(), 0);
        static ELEMENTS: [u8; 2] = [5, 6];
        selvedge_core::round_robin(async move {
            world.send_slice(1, (), &ELEMENTS).await.unwrap();
            world.send_slice(1, (), &ELEMENTS).await.unwrap();
            let error = world.send_slice(2, (), &ELEMENTS).await.unwrap_err();
            assert_eq!(error.class(), ErrorClass::Rank, "{error}");
            let error = world.send_slice(1, Tag(Tag::MAX.0 + 1), &ELEMENTS).await.unwrap_err();
            assert_eq!(error.class(), ErrorClass::Tag, "{error}");
            job.ended(EndedRank { rank: 1, failed: false });
            let error = world.send_slice(1, (), &ELEMENTS).await.unwrap_err();
            assert_eq!(error.class(), ErrorClass::Ended, "{error}");
        })
        .unwrap();
        let here = ELEMENTS.as_ptr().addr();
        let places = link.places.lock().unwrap();
        // The second one was offered twice: as a slice, and in memory of its own.
        assert_eq!(places.iter().map(|&place| place == here).collect::<Vec<_>>(), [true, true, false]);
        assert_eq!(*link.posted.lock().unwrap(), [vec![5, 6]]);
    }
}
