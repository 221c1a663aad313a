//! Operations in which all ranks of a communicator take part, built out of sends and receives:
//! [`CollectiveRound`] is one such operation on one rank.
//!
//! | File | |
//! |---|---|
//! | `collective.rs` | what each operation needs: its messages, and the check that all ranks call the same one |
//! | `collective/algorithms.rs` | how the messages go, once for both interfaces |
//! | `collective/content.rs` | what a rank gives, in words for that check |
//! | `collective/simple.rs` | the operations on values |
//! | `collective/started.rs` | the same without waiting for their end |
//! | `collective/values.rs` | what these two files have in common |
//! | `collective/fast.rs` | the operations on elements |
//! | `collective/started_elements.rs` | the same without waiting for their end |
//! | `collective/persistent.rs` | collectives that are started again and again; `persistent_calls.rs` makes them |
//! | `collective/start_line.rs` | the way from such a collective to its thread |
//! | `collective/elements.rs` | what these three files have in common |
//! | `collective/inter.rs` | the operations between two groups |
//! | `collective/neighbours.rs` | those of each rank with its neighbours in a grid or graph |
//! | `collective/parts.rs` | elements in a part for each rank: [`Parts`] |
//!
//! # How operations are kept apart
//! The collectives of a communicator have a context of their own, so no receive of the program sees
//! their messages. Each rank numbers its operations, and the number is the tag of their messages:
//! a rank that is two operations ahead disturbs none, and several may be under way at once. Each
//! message bears the operation and its root, and the receiver compares them with its own call.
//!
//! # The order of a reduction
//! The values are combined from the left, in the order of the ranks: `((v0 + v1) + v2) + v3`. So
//! the result has the same bits in every run and on every rank, also of floating-point numbers, and
//! the bits of the loop over the gathered values.

mod algorithms;
mod content;
mod elements;
mod fast;
mod inter;
mod neighbours;
mod parts;
mod persistent;
mod persistent_calls;
mod simple;
mod start_line;
mod started;
mod started_elements;
mod values;

use crate::communicator::{Communicator, Underway};
use crate::engine::SendMode;
use crate::envelope::Envelope;
use crate::error::{CallSite, Error, ErrorClass};
use crate::lane::MessageLane;
use crate::payload::{ReceivedPayload, SentPayload, Value, open, pack};
use crate::tag::{Source, Tags};
use content::CallContent;
pub(crate) use content::{elements_of, value_of};
pub use inter::InterRoot;
pub(crate) use neighbours::Neighbours;
pub use parts::Parts;
pub use persistent::PersistentCollective;
use std::sync::atomic::{AtomicBool, Ordering};

/// Which operation: the upper 8 bits of a mark. The lower ones are the root.
const NAMES: [&str; 28] = [
    "barrier",
    "bcast",
    "gather",
    "scatter",
    "allgather",
    "alltoall",
    "reduce",
    "allreduce",
    "reduce_scatter",
    "scan",
    "exscan",
    "split, dup, create, cartesian, neighbourhood, intercommunicator or merge",
    "agree",
    "shrink",
    "neighbour_allgather",
    "neighbour_alltoall",
    "open of a file",
    "view of a file",
    "read_at_all or read_all",
    "write_at_all or write_all",
    "read_ordered",
    "write_ordered",
    "set_len, preallocate, sync, set_atomic, seek_shared or close of a file",
    "spawn",
    "accept",
    "connect",
    "spawn_program",
    "disconnect",
];

/// The operations, by their place in [`NAMES`].
#[derive(Debug, Clone, Copy)]
pub(crate) enum CollectiveKind {
    Barrier,
    Bcast,
    Gather,
    Scatter,
    Allgather,
    Alltoall,
    Reduce,
    Allreduce,
    ReduceScatter,
    Scan,
    Exscan,
    Split,
    Agree,
    Shrink,
    NeighbourAllgather,
    NeighbourAlltoall,
    OpenFile,
    ViewFile,
    ReadFileAll,
    WriteFileAll,
    ReadFileOrdered,
    WriteFileOrdered,
    WholeFile,
    Spawn,
    Accept,
    Connect,
    SpawnProgram,
    Disconnect,
}

const ROOT_BITS: u32 = 24;

/// One collective operation on one rank.
pub(crate) struct CollectiveRound {
    communicator: Communicator,
    call: CallSite,
    lane: MessageLane,
    /// The sends that are not over.
    sends: Vec<(usize, Underway)>,
    /// What this rank gives, where the ranks compare their calls.
    content: CallContent,
    /// Whether the calls of the other ranks are still to be compared with this one.
    is_unchecked: AtomicBool,
}

impl CollectiveRound {
    /// Begins an operation with a root, or with root 0 if it has none.
    ///
    /// # Errors
    /// If the communicator has no such root.
    pub(crate) fn begin(
        communicator: &Communicator,
        call: CallSite,
        operation: CollectiveKind,
        root: usize,
    ) -> Result<CollectiveRound, Error> {
        CollectiveRound::begin_with(communicator, call, operation, root, CallContent::default)
    }

    /// As [`begin`](Self::begin). `content` says what this rank gives, if that is to be compared.
    pub(crate) fn begin_with(
        communicator: &Communicator,
        call: CallSite,
        operation: CollectiveKind,
        root: usize,
        content: impl FnOnce() -> CallContent,
    ) -> Result<CollectiveRound, Error> {
        communicator.check_rank(root, call, ErrorClass::Root)?;
        CollectiveRound::begin_across(communicator, call, operation, root, content)
    }

    /// As [`begin_with`](Self::begin_with), where the root may be in either of two groups.
    pub(crate) fn begin_across(
        communicator: &Communicator,
        call: CallSite,
        operation: CollectiveKind,
        root: usize,
        content: impl FnOnce() -> CallContent,
    ) -> Result<CollectiveRound, Error> {
        let mut round = CollectiveRound::begin_untold(communicator, call, operation, root)?;
        if communicator.checks_collectives() {
            round.tell_the_call(content())?;
        }
        Ok(round)
    }

    /// Begins an operation that does nothing but to compare the calls of all peers.
    fn begin_comparison(
        communicator: &Communicator,
        call: CallSite,
        operation: CollectiveKind,
        root: usize,
        content: CallContent,
    ) -> Result<CollectiveRound, Error> {
        let mut round = CollectiveRound::begin_untold(communicator, call, operation, root)?;
        round.tell_the_call(content)?;
        Ok(round)
    }

    fn begin_untold(
        communicator: &Communicator,
        call: CallSite,
        operation: CollectiveKind,
        root: usize,
    ) -> Result<CollectiveRound, Error> {
        let mark = (operation as u32) << ROOT_BITS | root as u32 & ((1 << ROOT_BITS) - 1);
        let lane = communicator.next_collective(mark);
        communicator.check_revoked(call, lane)?;
        Ok(CollectiveRound::with(communicator, call, lane))
    }

    fn with(communicator: &Communicator, call: CallSite, lane: MessageLane) -> CollectiveRound {
        let (communicator, is_unchecked) = (communicator.clone(), AtomicBool::new(false));
        let (sends, content) = (Vec::new(), CallContent::default());
        CollectiveRound { communicator, call, lane, sends, content, is_unchecked }
    }

    /// Sends a message to each other rank, before all messages of the operation: its mark says what
    /// this rank calls, and its value what this rank gives.
    fn tell_the_call(&mut self, content: CallContent) -> Result<(), Error> {
        for rank in self.others() {
            self.send(rank, Value(content.clone().into_words()))?;
        }
        self.content = content;
        *self.is_unchecked.get_mut() = true;
        Ok(())
    }

    /// Compares the calls of the other ranks with this one, before the first message of the
    /// operation is received. All of them are heard before an error is told: so a rank that ends
    /// because of the error does not end before another one has told it its call.
    async fn check_calls(&self) -> Result<(), Error> {
        if !self.is_unchecked.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let mut first = Ok(());
        for rank in self.others() {
            let compared = self.compare_call(rank).await;
            first = first.and(compared);
        }
        first
    }

    /// Compares the call of another rank with this one.
    async fn compare_call(&self, rank: usize) -> Result<(), Error> {
        let Value(theirs): Value<(String, String)> = self.recv_next(rank).await?;
        let (theirs, mine) = (CallContent::of_words(theirs), &self.content);
        if theirs.fits(mine) {
            return Ok(());
        }
        let (rank, call) = (self.named_peer(rank), named(self.lane.mark));
        let text = format!("{rank} calls {call} with {theirs} where this rank has {mine}");
        Err(self.error(ErrorClass::Mismatch, text))
    }

    /// Begins an agreement, which goes on where a collective fails.
    pub(crate) fn agreement(
        communicator: &Communicator,
        call: CallSite,
        operation: CollectiveKind,
    ) -> CollectiveRound {
        let lane = communicator.next_agreement((operation as u32) << ROOT_BITS);
        CollectiveRound::with(communicator, call, lane)
    }

    pub(crate) fn rank(&self) -> usize {
        self.communicator.rank()
    }

    pub(crate) fn size(&self) -> usize {
        self.communicator.size()
    }

    /// The ranks with which this one shares the operation: all peers but itself.
    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let mine = (!self.communicator.is_between_groups()).then(|| self.rank());
        (0..self.communicator.peers().size()).filter(move |&rank| Some(rank) != mine)
    }

    /// A rank in words.
    fn named_peer(&self, rank: usize) -> String {
        match self.communicator.is_between_groups() {
            true => format!("rank {rank} of the other group"),
            false => format!("rank {rank}"),
        }
    }

    pub(crate) fn error(&self, class: ErrorClass, text: impl Into<String>) -> Error {
        self.call.error(class, text)
    }

    /// Starts to send a payload to a rank.
    pub(crate) fn send<P: SentPayload>(&mut self, to: usize, payload: P) -> Result<(), Error> {
        let body = pack(self.call, payload, self.communicator.moves_values(to))?;
        let number = self.lane.number;
        let underway =
            self.communicator.start_send(self.call, self.lane, to, number, body, SendMode::Standard)?;
        if underway.is_some() {
            self.sends.push((to, underway));
        }
        Ok(())
    }

    /// Waits for the payload of a rank.
    pub(crate) async fn recv<P: ReceivedPayload>(&self, from: usize) -> Result<P, Error> {
        self.check_calls().await?;
        self.recv_next(from).await
    }

    /// Waits for the next message of a rank in this operation.
    async fn recv_next<P: ReceivedPayload>(&self, from: usize) -> Result<P, Error> {
        let tags = Tags::One(self.lane.number);
        let envelope = self.communicator.receive(self.call, self.lane, Source::Rank(from), tags).await?;
        self.open(from, envelope)
    }

    /// The next payload of an agreement, with its sender. `None` if there is none and `awaited` has
    /// ended.
    pub(crate) async fn recv_unless_ended<P: ReceivedPayload>(
        &self,
        awaited: usize,
    ) -> Result<Option<(usize, P)>, Error> {
        let received = self.communicator.receive_unless_ended(self.call, self.lane, awaited).await?;
        let Some(envelope) = received else { return Ok(None) };
        let from = envelope.source as usize;
        Ok(Some((from, self.open(from, envelope)?)))
    }

    fn open<P: ReceivedPayload>(&self, from: usize, envelope: Envelope) -> Result<P, Error> {
        if envelope.mark != self.lane.mark {
            let at = envelope.sent.map_or(String::new(), |sent| format!(" ({})", sent.place));
            let (theirs, mine) = (named(envelope.mark), named(self.lane.mark));
            let from = self.named_peer(from);
            let text = format!("{from} calls {theirs}{at} where this rank calls {mine}");
            return Err(self.error(ErrorClass::Mismatch, text));
        }
        Ok(open(self.call, envelope)?.0)
    }

    /// Ends an agreement. Its messages go their way.
    pub(crate) fn end_agreement(self) {
        self.communicator.end_agreements(self.lane);
    }

    /// Waits until the sends of this rank are over.
    pub(crate) async fn end(self) -> Result<(), Error> {
        self.check_calls().await?;
        for (to, underway) in self.sends {
            self.communicator.end_send(self.call, to, underway).await?;
        }
        Ok(())
    }
}

/// A mark in words.
fn named(mark: u32) -> String {
    let root = mark & ((1 << ROOT_BITS) - 1);
    match NAMES.get((mark >> ROOT_BITS) as usize) {
        Some(
            name @ &("bcast" | "gather" | "scatter" | "reduce" | "spawn" | "accept" | "connect"
            | "spawn_program"),
        ) => {
            format!("{name} with root {root}")
        }
        Some(name) => (*name).to_string(),
        None => "an unknown operation".to_string(),
    }
}
