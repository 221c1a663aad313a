//! [`LaunchedRank`]: the engine of a process that a launcher of MPI has started as one rank of a
//! job. The messages go through the MPI library of the machine.
//!
//! `world.rs` starts it, and `libmpi` makes the calls of MPI, on an OS thread of its own. Messages
//! of all contexts go through one communicator of MPI that is the engine's own, because MPI keeps
//! no order between two. What the mailbox needs of a message and MPI does not carry follows its
//! bytes, in a [`Trailer`].
//!
//! # Synchronous sends
//! The message loop takes each message at once, so MPI's own synchronous send would tell too early.
//! The receiver's mailbox tells when a receive takes the message, and then an answer goes back.
//!
//! # The end
//! A rank that has ended tells every other, after its last message. MPI is ended when all have, so
//! no message is under way then.

use crate::completion::{Completion, EndedRank};
use crate::engine::{Engine, SendMode, Sending};
use crate::envelope::{Envelope, MessageContent, OnMatch};
use crate::libmpi::{Comm, CommListener, MessageLoop, MpiError, MpiMemory, Received};
use crate::mailbox::Mailbox;
use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// One rank of a job, in a process of its own.
pub(crate) struct LaunchedRank {
    inbox: Arc<JobInbox>,
    mpi: Mutex<Option<MessageLoop>>,
}

/// The rank's side of the job, which the message loop's OS thread uses too.
struct JobInbox {
    rank: usize,
    size: usize,
    mailbox: Arc<Mailbox>,
    comm: Comm,
    state: Mutex<JobState>,
    all_have_ended: Completion<()>,
}

#[derive(Default)]
struct JobState {
    /// The synchronous sends that have no answer: the receiver, and the end of the send.
    unanswered: HashMap<u64, (usize, Arc<Completion>)>,
    next_answer: u64,
    ended: HashMap<usize, EndedRank>,
}

/// What follows the bytes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Trailer {
    kind: TrailerKind,
    context: u64,
    mark: u32,
    source: u32,
    tag: u32,
    /// The number of the answer that the sender waits for, or that this is.
    answer: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TrailerKind {
    Message = 0,
    /// A message with a sender that waits until a receive takes it.
    Synchronous = 1,
    Answer = 2,
    Returned = 3,
    Failed = 4,
}

/// The length of a trailer in bytes.
const TRAILER: usize = 29;

impl Trailer {
    fn of(kind: TrailerKind) -> Trailer {
        Trailer { kind, context: 0, mark: 0, source: 0, tag: 0, answer: 0 }
    }

    fn append(self, bytes: &mut Vec<u8>) {
        bytes.reserve(TRAILER);
        bytes.push(self.kind as u8);
        bytes.extend_from_slice(&self.context.to_le_bytes());
        bytes.extend_from_slice(&self.mark.to_le_bytes());
        bytes.extend_from_slice(&self.source.to_le_bytes());
        bytes.extend_from_slice(&self.tag.to_le_bytes());
        bytes.extend_from_slice(&self.answer.to_le_bytes());
    }

    /// Takes the trailer off the bytes. `None` if there is none.
    fn split_off(bytes: &mut Vec<u8>) -> Option<Trailer> {
        let (_, &[kind, ref rest @ ..]) = bytes.split_last_chunk::<TRAILER>()?;
        let kind = match kind {
            0 => TrailerKind::Message,
            1 => TrailerKind::Synchronous,
            2 => TrailerKind::Answer,
            3 => TrailerKind::Returned,
            4 => TrailerKind::Failed,
            _ => return None,
        };
        let (context, rest) = rest.split_first_chunk()?;
        let (mark, rest) = rest.split_first_chunk()?;
        let (source, rest) = rest.split_first_chunk()?;
        let (tag, rest) = rest.split_first_chunk()?;
        let answer = rest.first_chunk()?;
        let trailer = Trailer {
            kind,
            context: u64::from_le_bytes(*context),
            mark: u32::from_le_bytes(*mark),
            source: u32::from_le_bytes(*source),
            tag: u32::from_le_bytes(*tag),
            answer: u64::from_le_bytes(*answer),
        };
        bytes.truncate(bytes.len() - TRAILER);
        Some(trailer)
    }
}

impl LaunchedRank {
    /// Starts MPI, as all ranks of the job do.
    pub(crate) async fn start() -> Result<LaunchedRank, Box<dyn Error + Send + Sync>> {
        let mpi = on_an_os_thread(MessageLoop::start).await??;
        let comm = mpi.world().dup().await?;
        let (rank, size) = (comm.rank(), comm.size());
        let all_have_ended = Completion::new();
        if size == 1 {
            all_have_ended.complete(());
        }
        let (mailbox, state) = (Arc::new(Mailbox::new()), Mutex::default());
        let inbox = Arc::new(JobInbox { rank, size, mailbox, comm: comm.clone(), state, all_have_ended });
        comm.listen(inbox.clone());
        Ok(LaunchedRank { inbox, mpi: Mutex::new(Some(mpi)) })
    }

    pub(crate) fn rank(&self) -> usize {
        self.inbox.rank
    }

    /// This rank has ended: the others are told, and messages to it are refused.
    pub(crate) fn end(&self, ended: EndedRank) {
        let kind = if ended.failed { TrailerKind::Failed } else { TrailerKind::Returned };
        self.inbox.mailbox.close(ended);
        for other in (0..self.inbox.size).filter(|&other| other != self.inbox.rank) {
            self.inbox.post(other, Vec::new(), Trailer::of(kind), |_| {});
        }
    }

    /// Waits until all ranks have ended, and ends MPI.
    pub(crate) async fn finish(&self) -> Result<(), Box<dyn Error + Send + Sync>> {
        let here = std::panic::Location::caller();
        self.inbox.all_have_ended.wait(here, "see", || "the end of every rank".to_string()).await;
        let mpi = self.mpi.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mpi) = mpi {
            on_an_os_thread(move || mpi.finish()).await??;
        }
        Ok(())
    }
}

/// Makes a call that blocks its OS thread.
async fn on_an_os_thread<T: Send + 'static>(
    call: impl FnOnce() -> T + Send + 'static,
) -> Result<T, std::io::Error> {
    let done = Arc::new(Completion::new());
    let there = done.clone();
    thread::Builder::new().name("mpi-call".to_string()).spawn(move || there.complete(call()))?;
    done.wait(std::panic::Location::caller(), "call", || "the MPI library".to_string()).await;
    Ok(done.take().expect("the call has returned"))
}

impl JobInbox {
    fn state(&self) -> MutexGuard<'_, JobState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends bytes with their trailer. `then` gets the error, if there is one.
    fn post(
        &self,
        to: usize,
        mut bytes: Vec<u8>,
        trailer: Trailer,
        then: impl FnOnce(Option<MpiError>) + Send + 'static,
    ) {
        trailer.append(&mut bytes);
        self.comm.send_then(to, 0, MpiMemory::from(bytes), |result| then(result.err()));
    }

    /// Another rank has ended. Its receives of our messages fail, and our receives of its.
    fn ended(&self, ended: EndedRank) {
        let rank = ended.rank as usize;
        let mut state = self.state();
        if state.ended.insert(rank, ended).is_some() {
            return;
        }
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
}

impl CommListener for JobInbox {
    fn message(&self, message: Received) {
        let from = message.source;
        let Ok(mut bytes) = message.memory.into_vec::<u8>() else { return };
        let Some(trailer) = Trailer::split_off(&mut bytes) else { return };
        let Trailer { kind, context, mark, source, tag, answer } = trailer;
        let ended = |failed| EndedRank { rank: from as u32, failed };
        match kind {
            TrailerKind::Returned => return self.ended(ended(false)),
            TrailerKind::Failed => return self.ended(ended(true)),
            TrailerKind::Answer => {
                let answered = self.state().unanswered.remove(&answer);
                if let Some((_, completion)) = answered {
                    completion.complete(Ok(()));
                }
                return;
            }
            TrailerKind::Message | TrailerKind::Synchronous => {}
        }
        let matched = (kind == TrailerKind::Synchronous).then(|| {
            let comm = self.comm.clone();
            OnMatch::new(move |result| {
                // The sender of a message that no receive takes hears that this rank has ended.
                if result.is_ok() {
                    let mut bytes = Vec::new();
                    Trailer { answer, ..Trailer::of(TrailerKind::Answer) }.append(&mut bytes);
                    comm.send_then(from, 0, MpiMemory::from(bytes), drop);
                }
            })
        });
        let body = MessageContent::Bytes(bytes);
        // A rank that has ended takes no more messages.
        let _ = self.mailbox.deliver(Envelope { context, mark, source, tag, body, sent: None, matched });
    }

    fn failed(&self, _: MpiError) {
        for other in (0..self.size).filter(|&other| other != self.rank) {
            self.ended(EndedRank { rank: other as u32, failed: true });
        }
    }
}

impl Engine for LaunchedRank {
    fn name(&self) -> &'static str {
        "MPI"
    }

    fn size(&self) -> usize {
        self.inbox.size
    }

    fn moves_values(&self, to: usize) -> bool {
        to == self.inbox.rank
    }

    fn mailbox(&self, rank: usize) -> &Arc<Mailbox> {
        assert_eq!(rank, self.inbox.rank, "the rank runs in another process");
        &self.inbox.mailbox
    }

    fn send(&self, from: usize, to: usize, envelope: Envelope, mode: SendMode) -> Sending {
        if to == from {
            return self.inbox.mailbox.send_within(envelope, mode);
        }
        let mut state = self.inbox.state();
        if let Some(ended) = state.ended.get(&to) {
            return Sending::Refused(*ended);
        }
        let completion = Arc::new(Completion::new());
        let mut answer = 0;
        if mode == SendMode::Synchronous {
            state.next_answer += 1;
            answer = state.next_answer;
            state.unanswered.insert(answer, (to, completion.clone()));
        }
        drop(state);
        let Envelope { context, mark, source, tag, body, .. } = envelope;
        let MessageContent::Bytes(bytes) = body else { unreachable!("a value moves to this rank alone") };
        let kind = match mode {
            SendMode::Standard => TrailerKind::Message,
            SendMode::Synchronous => TrailerKind::Synchronous,
        };
        let sent = completion.clone();
        let then = move |error: Option<MpiError>| match (error, mode) {
            (Some(_), _) => sent.complete(Err(EndedRank { rank: to as u32, failed: true })),
            (None, SendMode::Standard) => sent.complete(Ok(())),
            // The answer ends it.
            (None, SendMode::Synchronous) => {}
        };
        self.inbox.post(to, bytes, Trailer { kind, context, mark, source, tag, answer }, then);
        Sending::Underway(completion)
    }
}

impl fmt::Debug for LaunchedRank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inbox.fmt(f)
    }
}

impl fmt::Debug for JobInbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LaunchedRank({} of {})", self.rank, self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trailer_is_read_as_it_was_written() {
        let kinds = [
            TrailerKind::Message,
            TrailerKind::Synchronous,
            TrailerKind::Answer,
            TrailerKind::Returned,
            TrailerKind::Failed,
        ];
        for kind in kinds {
            let trailer =
                Trailer { kind, context: u64::MAX - 1, mark: 2, source: 3, tag: u32::MAX, answer: 1 << 40 };
            let mut bytes = vec![7; 5];
            trailer.append(&mut bytes);
            assert_eq!(bytes.len(), 5 + TRAILER);
            assert_eq!(Trailer::split_off(&mut bytes), Some(trailer));
            assert_eq!(bytes, [7; 5]);
        }
        assert_eq!(Trailer::split_off(&mut vec![0; TRAILER - 1]), None);
        assert_eq!(Trailer::split_off(&mut vec![9; TRAILER]), None);
    }
}
