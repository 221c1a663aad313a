//! [`JobRank`]: the engine of a process that is one rank of a job. It is the same for every way in
//! which the processes send bytes to one another, which is a [`JobLink`].
//!
//! `launched.rs` has the link over an MPI library, and `processes/` the one over shared memory.
//! What the mailbox needs of a message beside its bytes goes with these, in a [`JobHeader`].
//!
//! # Synchronous sends
//! A link takes each message at once, so the receiver's mailbox tells when a receive has taken it,
//! and then an answer goes back.
//!
//! # The end
//! A rank that has ended tells every other, after its last message. The link is ended when all
//! have, so no message is under way then.

use crate::completion::{Completion, EndedRank};
use crate::engine::{BytePieces, Engine, PassedMessage, ReceiveRoom, RoomPieces, SendMode, Sending};
use crate::envelope::{Envelope, MessageContent, MessageKey, OnMatch, Status};
use crate::job_header::{JobHeader, JobMessageKind};
use crate::mailbox::Mailbox;
use crate::matching::Pattern;
use crate::processes::BorrowedBytes;
use crate::tag::Tag;
use selvedge_core::internal::CallUnderWay;
use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// How bytes go from this process to the others of its job.
pub(crate) trait JobLink: Send + Sync + 'static {
    /// The name of the engine, for reports.
    const NAME: &'static str;

    /// Sends a whole message if that is possible at once. `false` if nothing was sent.
    fn try_post(&self, to: usize, header: &JobHeader, bytes: BytePieces<'_>) -> bool;

    /// Sends a whole long message by letting the receiver copy it from where it lies, for which
    /// the caller waits a short time. `false` if nothing was sent. `others_wait` says that other
    /// threads of the rank wait for messages.
    fn try_lend(&self, _to: usize, _header: &JobHeader, _bytes: BytePieces<'_>, _others_wait: bool) -> bool {
        false
    }

    /// Sends a message after all earlier ones to this rank. It does not wait.
    fn post(&self, to: usize, header: JobHeader, bytes: Vec<u8>, end: PostEnd);

    /// Takes messages in for a short time, until `until` is true: see [`Engine::look_out`].
    /// `others_wait` says that other threads of the rank wait for messages. A link may offer the
    /// messages that come to `offer`, in their order.
    fn look_out(&self, others_wait: bool, offer: &mut MessageOffer<'_>, until: &mut dyn FnMut() -> bool);
}

/// Whether a thread takes a message of another rank at once. Else the message goes to the mailbox.
pub(crate) type MessageOffer<'a> = dyn FnMut(usize, &JobHeader, OfferedBytes<'_>) -> bool + 'a;

/// The bytes of a message that is offered.
#[derive(Clone, Copy)]
pub(crate) enum OfferedBytes<'a> {
    Here(&'a [u8]),
    /// They lie in another process.
    Lent(&'a BorrowedBytes<'a>),
}

impl OfferedBytes<'_> {
    fn len(self) -> usize {
        match self {
            OfferedBytes::Here(bytes) => bytes.len(),
            OfferedBytes::Lent(bytes) => bytes.len(),
        }
    }

    /// Copies the bytes to the room, which is for this number of them. `false` if they are there no
    /// more.
    fn copy_to(self, into: RoomPieces<'_>) -> bool {
        match self {
            OfferedBytes::Here(bytes) => into.copy_from(bytes),
            OfferedBytes::Lent(bytes) => return bytes.copy_to(into),
        }
        true
    }

    /// The bytes, if they are there still.
    fn to_vec(self) -> Option<Vec<u8>> {
        match self {
            OfferedBytes::Here(bytes) => Some(bytes.to_vec()),
            OfferedBytes::Lent(bytes) => bytes.to_vec(0),
        }
    }
}

/// One rank of a job, in a process of its own.
pub(crate) struct JobRank<L> {
    rank: usize,
    size: usize,
    mailbox: Arc<Mailbox>,
    link: Arc<L>,
    state: Mutex<JobState>,
    all_have_ended: Completion<()>,
    /// Whether any other rank has ended: asked without the lock.
    has_ended: AtomicBool,
    /// Counts the messages that have come from other ranks.
    arrivals: AtomicU32,
    /// The count of `arrivals` when a thread has looked out last without finding anything.
    in_vain: AtomicU32,
    checks_collectives: AtomicBool,
}

#[derive(Default)]
struct JobState {
    /// The synchronous sends that have no answer: the receiver, and the end of the send.
    unanswered: HashMap<u64, (usize, Arc<Completion>)>,
    next_answer: u64,
    ended: HashMap<usize, EndedRank>,
}

/// What happens when a link has sent a message, or cannot.
#[derive(Debug, Default)]
pub(crate) struct PostEnd(Option<(Arc<Completion>, SendMode)>);

impl PostEnd {
    /// The message is on its way.
    pub(crate) fn sent(self) {
        // The answer ends a synchronous send.
        if let Some((completion, SendMode::Standard)) = self.0 {
            completion.complete(Ok(()));
        }
    }

    /// The message will not reach this rank.
    pub(crate) fn failed(self, to: usize) {
        if let Some((completion, _)) = self.0 {
            completion.complete(Err(EndedRank { rank: to as u32, failed: true }));
        }
    }
}

impl<L: JobLink> JobRank<L> {
    pub(crate) fn new(rank: usize, size: usize, link: Arc<L>) -> JobRank<L> {
        let all_have_ended = Completion::new();
        if size == 1 {
            all_have_ended.complete(());
        }
        JobRank {
            rank,
            size,
            mailbox: Arc::new(Mailbox::new()),
            link,
            state: Mutex::default(),
            all_have_ended,
            has_ended: AtomicBool::new(false),
            arrivals: AtomicU32::new(0),
            in_vain: AtomicU32::new(u32::MAX),
            checks_collectives: AtomicBool::new(false),
        }
    }

    /// Collectives are checked from now on: before the first of them.
    pub(crate) fn check_collectives(&self) {
        self.checks_collectives.store(true, Ordering::Relaxed);
    }

    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    pub(crate) fn link(&self) -> &Arc<L> {
        &self.link
    }

    fn state(&self) -> MutexGuard<'_, JobState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn others(&self) -> impl Iterator<Item = usize> {
        let rank = self.rank;
        (0..self.size).filter(move |&other| other != rank)
    }

    /// This rank has ended: the others are told, and messages to it are refused.
    pub(crate) fn end(&self, ended: EndedRank) {
        let kind = if ended.failed { JobMessageKind::Failed } else { JobMessageKind::Returned };
        self.mailbox.close(ended);
        for other in self.others() {
            self.link.post(other, JobHeader::of(kind), Vec::new(), PostEnd::default());
        }
    }

    /// Waits until all ranks have ended.
    pub(crate) async fn all_have_ended(&self) {
        let here = std::panic::Location::caller();
        self.all_have_ended.wait(here, "see", || "the end of every rank".to_string()).await;
    }

    /// Another rank has ended. Its receives of our messages fail, and our receives of its.
    pub(crate) fn ended(&self, ended: EndedRank) {
        let rank = ended.rank as usize;
        let mut state = self.state();
        if state.ended.contains_key(&rank) {
            return;
        }
        state.ended.insert(rank, ended);
        self.has_ended.store(true, Ordering::Release);
        let all = state.ended.len() == self.size - 1;
        let unanswered = std::mem::take(&mut state.unanswered);
        let (lost, kept): (HashMap<_, _>, HashMap<_, _>) =
            unanswered.into_iter().partition(|(_, (to, _))| *to == rank);
        state.unanswered = kept;
        drop(state);
        for (_, completion) in lost.into_values() {
            completion.complete(Err(ended));
        }
        self.mailbox.ended(ended);
        if all {
            self.all_have_ended.complete(());
        }
    }

    /// Begins a send to a rank that has not ended. A synchronous one has a number for its answer.
    fn begin_send(&self, to: usize, mode: SendMode) -> Result<Option<(Arc<Completion>, u64)>, EndedRank> {
        // Without the lock, because most sends find neither.
        if mode == SendMode::Standard && !self.has_ended.load(Ordering::Acquire) {
            return Ok(None);
        }
        let mut state = self.state();
        if let Some(ended) = state.ended.get(&to) {
            return Err(*ended);
        }
        Ok((mode == SendMode::Synchronous).then(|| {
            let completion = Arc::new(Completion::new());
            state.next_answer += 1;
            let answer = state.next_answer;
            state.unanswered.insert(answer, (to, completion.clone()));
            (completion, answer)
        }))
    }

    /// No rank can be reached any more.
    pub(crate) fn all_are_lost(&self) {
        for other in self.others() {
            self.ended(EndedRank { rank: other as u32, failed: true });
        }
    }

    /// A message has come from another rank.
    pub(crate) fn arrived(&self, from: usize, header: JobHeader, bytes: Vec<u8>) {
        self.arrivals.fetch_add(1, Ordering::Relaxed);
        let JobHeader { kind, context, mark, source, tag, answer } = header;
        let ended = |failed| EndedRank { rank: from as u32, failed };
        match kind {
            JobMessageKind::Returned => return self.ended(ended(false)),
            JobMessageKind::Failed => return self.ended(ended(true)),
            JobMessageKind::Answer => {
                let answered = self.state().unanswered.remove(&answer);
                if let Some((_, completion)) = answered {
                    completion.complete(Ok(()));
                }
                return;
            }
            JobMessageKind::Message | JobMessageKind::Synchronous => {}
        }
        let matched = (kind == JobMessageKind::Synchronous).then(|| {
            let link = self.link.clone();
            OnMatch::new(move |result| {
                // The sender of a message that no receive takes hears that this rank has ended.
                if result.is_ok() {
                    let header = JobHeader { answer, ..JobHeader::of(JobMessageKind::Answer) };
                    link.post(from, header, Vec::new(), PostEnd::default());
                }
            })
        });
        let body = MessageContent::Bytes(bytes);
        // A rank that has ended takes no more messages.
        let _ = self.mailbox.deliver(Envelope { context, mark, source, tag, body, sent: None, matched });
    }
}

impl<L: JobLink> JobRank<L> {
    fn look_out_with(&self, offer: &mut MessageOffer<'_>, until: &mut dyn FnMut() -> bool) {
        let waiting = self.mailbox.load().1;
        let arrivals = self.arrivals.load(Ordering::Relaxed);
        // Where many threads wait, all of them would look in vain when no message comes.
        if waiting > 0 && self.in_vain.load(Ordering::Relaxed) == arrivals {
            return;
        }
        let mut has_come = false;
        self.link.look_out(waiting > 0, offer, &mut || {
            // The message of another thread may be for one that this CPU is to execute.
            has_come = until() || waiting > 0 && self.mailbox.load().1 < waiting;
            has_come
        });
        let in_vain = self.in_vain.load(Ordering::Relaxed) == arrivals;
        if in_vain == has_come {
            // A message that was offered and taken is in no count.
            let next = if has_come { arrivals.wrapping_sub(1) } else { arrivals };
            self.in_vain.store(next, Ordering::Relaxed);
        }
    }
}

impl<L: JobLink> Engine for JobRank<L> {
    fn name(&self) -> &'static str {
        L::NAME
    }

    fn size(&self) -> usize {
        self.size
    }

    fn moves_values(&self, to: usize) -> bool {
        to == self.rank
    }

    fn is_here(&self, rank: usize) -> bool {
        rank == self.rank
    }

    fn mailbox(&self, rank: usize) -> &Arc<Mailbox> {
        assert_eq!(rank, self.rank, "the rank runs in another process");
        &self.mailbox
    }

    fn checks_collectives(&self) -> bool {
        self.checks_collectives.load(Ordering::Relaxed)
    }

    fn send(&self, from: usize, to: usize, envelope: Envelope, mode: SendMode) -> Sending {
        if to == from {
            return self.mailbox.send_within(envelope, mode);
        }
        let synchronous = match self.begin_send(to, mode) {
            Ok(synchronous) => synchronous,
            Err(ended) => return Sending::Refused(ended),
        };
        let Envelope { context, mark, source, tag, body, .. } = envelope;
        let MessageContent::Bytes(bytes) = body else { unreachable!("a value moves to this rank alone") };
        let (kind, answer) = match &synchronous {
            None => (JobMessageKind::Message, 0),
            Some((_, answer)) => (JobMessageKind::Synchronous, *answer),
        };
        let header = JobHeader { kind, context, mark, source, tag, answer };
        let is_sent = self.link.try_post(to, &header, [&[], &bytes]);
        let completion = match synchronous {
            None if is_sent => return Sending::Done,
            None => Arc::new(Completion::new()),
            Some((completion, _)) => completion,
        };
        if !is_sent {
            self.link.post(to, header, bytes, PostEnd(Some((completion.clone(), mode))));
        }
        Sending::Underway(completion)
    }

    fn send_at_once(
        &self,
        from: usize,
        to: usize,
        key: MessageKey,
        bytes: BytePieces<'_>,
        may_wait: bool,
    ) -> bool {
        // A rank that has ended is an error, which `send` tells.
        if to == from || self.has_ended.load(Ordering::Acquire) {
            return false;
        }
        let MessageKey { context, mark, source, tag } = key;
        let header = JobHeader { kind: JobMessageKind::Message, context, mark, source, tag, answer: 0 };
        may_wait && self.link.try_lend(to, &header, bytes, self.mailbox.load().1 > 0)
            || self.link.try_post(to, &header, bytes)
    }

    fn looks_out(&self) -> bool {
        true
    }

    fn look_out(&self, _: usize, until: &mut dyn FnMut() -> bool) {
        self.look_out_with(&mut |_, _, _| false, until);
    }

    fn look_out_for(
        &self,
        _: usize,
        wanted: &Pattern,
        mut room: Option<ReceiveRoom<'_>>,
        until: &mut dyn FnMut() -> bool,
    ) -> Option<PassedMessage> {
        let (passed, has_passed) = (Cell::new(None), Cell::new(false));
        let mut offer = |_: usize, header: &JobHeader, bytes: OfferedBytes<'_>| {
            let JobHeader { kind, context, mark, source, tag, .. } = *header;
            let message = Pattern { context, source: Some(source), tag: Some(tag) };
            let is_wanted = !has_passed.get()
                && kind == JobMessageKind::Message
                && wanted.matches(&message)
                && self.mailbox.lets_pass(&message, wanted);
            if !is_wanted {
                return false;
            }
            let taken = match room.as_mut().and_then(|room| room.of(bytes.len())) {
                Some(room) => bytes.copy_to(room).then(|| {
                    let status = Status { source: source as usize, tag: Tag(tag), bytes: bytes.len() };
                    PassedMessage::InRoom(status)
                }),
                None => bytes.to_vec().map(|bytes| {
                    let body = MessageContent::Bytes(bytes);
                    let envelope = Envelope { context, mark, source, tag, body, sent: None, matched: None };
                    PassedMessage::Whole(envelope)
                }),
            };
            has_passed.set(taken.is_some());
            passed.set(taken);
            has_passed.get()
        };
        self.look_out_with(&mut offer, &mut || has_passed.get() || until());
        passed.into_inner()
    }
}

impl<L> fmt::Debug for JobRank<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JobRank({} of {})", self.rank, self.size)
    }
}

/// Makes a call that blocks its OS thread.
pub(crate) async fn on_an_os_thread<T: Send + 'static>(
    call: impl FnOnce() -> T + Send + 'static,
) -> Result<T, io::Error> {
    let done = Arc::new(Completion::new());
    let there = done.clone();
    let under_way = CallUnderWay::new();
    let call = move || {
        there.complete(call());
        drop(under_way);
    };
    thread::Builder::new().name("mpi-call".to_string()).spawn(call)?;
    done.wait(std::panic::Location::caller(), "call", || "another OS thread".to_string()).await;
    Ok(done.take().expect("the call has returned"))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::mailbox::AwaitedRanks;

    /// Each look of a thread finds a message of rank 1 with this tag.
    struct OfferingLink(u32);

    impl JobLink for OfferingLink {
        const NAME: &'static str = "offering";

        fn try_post(&self, _: usize, _: &JobHeader, _: BytePieces<'_>) -> bool {
            false
        }

        fn post(&self, _: usize, _: JobHeader, _: Vec<u8>, end: PostEnd) {
            end.sent();
        }

        fn look_out(&self, _: bool, offer: &mut MessageOffer<'_>, until: &mut dyn FnMut() -> bool) {
            assert_eq!(offer(1, &header(self.0), OfferedBytes::Here(b"late")), until());
        }
    }

    fn header(tag: u32) -> JobHeader {
        JobHeader { source: 1, tag, ..JobHeader::of(JobMessageKind::Message) }
    }

    fn tagged(tag: Option<u32>) -> Pattern {
        Pattern { context: 0, source: Some(1), tag }
    }

    /// The bytes of the message that a thread gets past the mailbox when it looks for one of tag 5.
    fn passed(job: &JobRank<OfferingLink>) -> Option<Vec<u8>> {
        match job.look_out_for(0, &tagged(Some(5)), None, &mut || false)? {
            PassedMessage::Whole(Envelope { body: MessageContent::Bytes(bytes), .. }) => Some(bytes),
            other => panic!("there is no room, and the message came from another process: {other:?}"),
        }
    }

    #[test]
    fn a_message_that_passes_goes_into_the_room_if_it_fits() {
        let job = JobRank::new(0, 2, Arc::new(OfferingLink(5)));
        let look = |room: ReceiveRoom<'_>| job.look_out_for(0, &tagged(Some(5)), Some(room), &mut || false);
        let mut elements = [0_u8; 6];
        let passed = look(ReceiveRoom::new(&mut elements));
        assert!(matches!(passed, Some(PassedMessage::InRoom(Status { source: 1, tag: Tag(5), bytes: 4 }))));
        assert_eq!(elements, *b"late\0\0");
        // Too short, and of other elements.
        let mut short = [7_u8; 3];
        assert!(matches!(look(ReceiveRoom::new(&mut short)), Some(PassedMessage::Whole(_))));
        let mut longs = [7_u64; 3];
        assert!(matches!(look(ReceiveRoom::new(&mut longs)), Some(PassedMessage::Whole(_))));
        assert_eq!((short, longs), ([7; 3], [7; 3]));
    }

    #[test]
    fn a_message_passes_the_mailbox_only_if_nothing_there_is_before_it() {
        let job = |tag| JobRank::new(0, 2, Arc::new(OfferingLink(tag)));
        assert_eq!(passed(&job(5)).as_deref(), Some(&b"late"[..]));
        assert_eq!(passed(&job(6)), None);

        let with_another = job(5);
        with_another.arrived(1, header(6), Vec::new());
        let waits = with_another.mailbox.post(tagged(Some(7)), AwaitedRanks::One(1), true);
        assert_eq!(passed(&with_another).as_deref(), Some(&b"late"[..]));
        drop(waits);

        let with_an_earlier = job(5);
        with_an_earlier.arrived(1, header(5), Vec::new());
        assert_eq!(passed(&with_an_earlier), None);

        let with_a_receive = job(5);
        let waits = with_a_receive.mailbox.post(tagged(None), AwaitedRanks::One(1), true);
        assert_eq!(passed(&with_a_receive), None);
        drop(waits);
        assert_eq!(passed(&with_a_receive).as_deref(), Some(&b"late"[..]));
    }
}
