//! The mailbox of one rank: [`Mailbox`], where arriving messages meet the receives of the rank's
//! threads.
//!
//! An engine delivers into it, and the communicators post receives. The state lies under one lock,
//! which no code of the program's runs under: wakers are called and messages dropped after it.
//!
//! # No message is lost
//! A receive that finds no message is posted: its pattern lies in the table `posted`, with a
//! [`Completion`] that it shares with its `Posted`. Under the lock, a message that arrives takes
//! the receive out of the table and puts itself into the completion. So under the lock a posted
//! receive is in one of two states: it is in the table, or its completion has come. A receive that
//! is given up looks under the lock which of the two it is. In the first it leaves the table, in
//! the second it takes the message out of the completion and delivers it again, with its old number
//! in the order of arrival. So the next receive finds the messages as if the other had never been.

mod ending;
mod posted;
mod revoked;

use crate::completion::{BeforeEnd, Completion, EndedRank, HearsEnd};
use crate::envelope::{Envelope, OnMatch, Status};
use crate::matching::{EntryKey, MatchTable, Pattern};
use crate::revocation::Revocation;
use crate::sending::{SendMode, Sending};
use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::mem;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

pub(crate) use posted::Posted;
use revoked::{HandOn, RevokedContexts};

/// The messages that have come for one rank, and the receives that wait for some.
pub struct Mailbox {
    state: Mutex<MailboxState>,
    /// Whether any context is revoked: asked without the lock.
    has_revoked: AtomicBool,
    hand_on: OnceLock<HandOn>,
    /// What the run of this rank waits for: ranks that it has spawned, other worlds.
    before_end: Mutex<Vec<BeforeEnd>>,
}

struct MailboxState {
    arrived: MatchTable<Arrived>,
    posted: MatchTable<Post>,
    /// The number of the next message or receive in the order of arrival.
    next: u64,
    ended: HashMap<u32, EndedRank>,
    /// In each context, the failed ranks that a wildcard receive bears.
    acknowledged: HashMap<u64, HashSet<u32>>,
    /// The rank of this mailbox has ended: nothing comes in any more.
    closed: Option<EndedRank>,
    /// Counts the contexts that this rank has proposed.
    contexts: u64,
    revoked: RevokedContexts,
    /// Completions of receives that are over.
    spare: VecDeque<Arc<Completion<ReceiveOutcome>>>,
    /// In each lane of agreements, the number of the first that is not over: messages of earlier
    /// ones are dropped.
    agreements: HashMap<u64, u32>,
    /// The engines in which this rank has a second number, with the number.
    seats: Vec<(Weak<dyn HearsEnd>, u32)>,
}

/// A message with its number in the order of arrival.
#[derive(Debug)]
pub(crate) struct Arrived {
    envelope: Envelope,
    order: u64,
}

/// A receive or a probe in the table.
struct Post {
    cell: Arc<Completion<ReceiveOutcome>>,
    awaited: AwaitedRanks,
    /// Whether it takes the message; a probe does not.
    takes: bool,
}

/// The world ranks of which a message is awaited.
#[derive(Debug, Clone)]
pub(crate) enum AwaitedRanks {
    One(u32),
    AnyOf(Arc<[u32]>),
}

/// How a receive or probe ends.
#[derive(Debug)]
pub(crate) enum ReceiveOutcome {
    Took(Arrived),
    Saw(Status),
    Ended(EndedRank),
    Revoked,
}

/// What must be done after the lock is released.
#[derive(Default)]
struct After {
    first: Option<Arc<Completion<ReceiveOutcome>>>,
    /// Mostly there is one, and a vector of one would be an allocation.
    further: Vec<Arc<Completion<ReceiveOutcome>>>,
    matched: Option<OnMatch>,
}

impl After {
    fn wake(&mut self, cell: Arc<Completion<ReceiveOutcome>>) {
        match &self.first {
            None => self.first = Some(cell),
            Some(_) => self.further.push(cell),
        }
    }

    fn happen(self) {
        for cell in self.first.into_iter().chain(self.further) {
            cell.wake();
        }
        if let Some(matched) = self.matched {
            matched.tell(Ok(()));
        }
    }
}

impl Mailbox {
    /// The mailbox of a rank to which nothing has come.
    pub fn new() -> Mailbox {
        let state = MailboxState {
            arrived: MatchTable::new(),
            posted: MatchTable::new(),
            next: 0,
            ended: HashMap::new(),
            acknowledged: HashMap::new(),
            closed: None,
            contexts: 0,
            revoked: RevokedContexts::default(),
            spare: VecDeque::new(),
            agreements: HashMap::new(),
            seats: Vec::new(),
        };
        let (has_revoked, hand_on) = (AtomicBool::new(false), OnceLock::new());
        Mailbox { state: Mutex::new(state), has_revoked, hand_on, before_end: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, MailboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A message has arrived for this rank.
    ///
    /// # Errors
    /// Gives the message back if the rank has ended.
    ///
    /// # Complexity
    /// Constant, however many messages and receives are there.
    pub fn deliver(&self, envelope: Envelope) -> Result<(), (EndedRank, Envelope)> {
        let mut after = After::default();
        let mut state = self.lock();
        if let Some(ended) = state.closed {
            return Err((ended, envelope));
        }
        if let Some(revocation) = Revocation::told_by(&envelope) {
            drop(state);
            self.revoke(&revocation);
            return Ok(());
        }
        if state.is_unwanted(&envelope) {
            // It is dropped after the lock.
            drop(state);
            return Ok(());
        }
        let order = state.number();
        state.place(Arrived { envelope, order }, &mut after);
        drop(state);
        after.happen();
        Ok(())
    }

    /// Sends a message to this rank from its own process: what [`Engine::send`] is then.
    ///
    /// [`Engine::send`]: crate::engine::Engine::send
    pub(crate) fn send_within(&self, mut envelope: Envelope, mode: SendMode) -> Sending {
        let mut sending = Sending::Done;
        if mode == SendMode::Synchronous {
            let taken = Arc::new(Completion::new());
            sending = Sending::Underway(taken.clone());
            envelope.matched = Some(OnMatch::new(move |result| taken.complete(result)));
        }
        match self.deliver(envelope) {
            Ok(()) => sending,
            Err((ended, _)) => Sending::Refused(ended),
        }
    }

    /// The rank with this number in the world has ended, and no more messages come from it.
    /// Receives that wait for it alone fail, and if it has failed, wildcard receives too.
    pub fn ended(&self, ended: EndedRank) {
        let mut after = After::default();
        let mut state = self.lock();
        state.ended.insert(ended.rank, ended);
        let hopeless: Vec<EntryKey> = state
            .posted
            .iter()
            .filter(|(_, _, post)| match &post.awaited {
                AwaitedRanks::One(rank) => *rank == ended.rank,
                AwaitedRanks::AnyOf(ranks) => ended.failed && ranks.contains(&ended.rank),
            })
            .map(|(key, ..)| key)
            .collect();
        state.end_receives(hopeless, || ReceiveOutcome::Ended(ended), &mut after);
        drop(state);
        after.happen();
    }

    /// The rank of this mailbox has ended: messages are refused from now on. The senders of
    /// messages that no receive has taken are told. Gives the number of these messages.
    pub fn close(&self, ended: EndedRank) -> usize {
        let mut after = After::default();
        let mut state = self.lock();
        state.closed = Some(ended);
        let arrived = mem::replace(&mut state.arrived, MatchTable::new());
        let posted: Vec<EntryKey> = state.posted.iter().map(|(key, ..)| key).collect();
        state.end_receives(posted, || ReceiveOutcome::Ended(ended), &mut after);
        let seats = mem::take(&mut state.seats);
        drop(state);
        after.happen();
        for (engine, rank) in seats {
            if let Some(engine) = engine.upgrade() {
                engine.rank_ended(EndedRank { rank, ..ended });
            }
        }
        let left = arrived.len();
        for arrived in arrived.into_values() {
            if let Some(matched) = arrived.envelope.matched {
                matched.tell(Err(ended));
            }
        }
        left
    }

    /// The ranks of a group that have failed. Wildcard receives of this context bear these from now
    /// on.
    pub(crate) fn acknowledge(&self, context: u64, group: &[u32]) -> Vec<u32> {
        let mut state = self.lock();
        let failed = |rank: &u32| state.ended.get(rank).is_some_and(|ended| ended.failed);
        let failed: Vec<u32> = group.iter().copied().filter(failed).collect();
        state.acknowledged.entry(context).or_default().extend(&failed);
        failed
    }

    /// Whether this mailbox has been told that a rank has ended.
    pub(crate) fn has_ended(&self, rank: u32) -> bool {
        self.lock().ended.contains_key(&rank)
    }

    /// The agreements of this lane before the one with this number are over.
    pub(crate) fn end_agreements(&self, context: u64, before: u32) {
        let mut state = self.lock();
        state.agreements.insert(context, before);
        let over: Vec<EntryKey> = state
            .arrived
            .iter()
            .filter(|(.., it)| state.is_unwanted(&it.envelope))
            .map(|(key, ..)| key)
            .collect();
        let over: Vec<Arrived> = over.into_iter().map(|key| state.arrived.remove(key)).collect();
        drop(state);
        drop(over);
    }

    /// A number that no other call on this mailbox gives.
    pub(crate) fn propose(&self) -> u64 {
        let mut state = self.lock();
        state.contexts += 1;
        state.contexts
    }

    /// How many messages wait for a receive, and how many receives for a message.
    pub fn load(&self) -> (usize, usize) {
        let state = self.lock();
        (state.arrived.len(), state.posted.len())
    }

    /// Takes the first message that matches.
    pub(crate) fn try_take(&self, pattern: &Pattern) -> Option<Arrived> {
        let mut state = self.lock();
        let key = state.arrived.first_message(pattern)?;
        let mut arrived = state.arrived.remove(key);
        drop(state);
        arrived.told();
        Some(arrived)
    }

    /// The status of the first message that matches.
    pub(crate) fn try_see(&self, pattern: &Pattern) -> Option<Status> {
        let mut state = self.lock();
        let key = state.arrived.first_message(pattern)?;
        Some(state.arrived.get(key).envelope.status())
    }

    /// Takes the first message that matches, or sees it; or posts a receive, or a probe, that fails
    /// if it waits for ranks that have ended.
    pub(crate) fn post(self: &Arc<Mailbox>, pattern: Pattern, awaited: AwaitedRanks, takes: bool) -> Posted {
        let mut taken = None;
        let mut state = self.lock();
        let cell = state.cell();
        let mut key = None;
        if let Some(first) = state.arrived.first_message(&pattern) {
            match takes {
                true => taken = Some(state.arrived.remove(first)),
                false => cell.set(ReceiveOutcome::Saw(state.arrived.get(first).envelope.status())),
            }
        } else if state.is_revoked(pattern.context) {
            cell.set(ReceiveOutcome::Revoked);
        } else if let Some(ended) = state.hopeless(&pattern, &awaited) {
            cell.set(ReceiveOutcome::Ended(ended));
        } else {
            let order = state.number();
            key = Some(state.posted.post(pattern, order, Post { cell: cell.clone(), awaited, takes }));
        }
        drop(state);
        if let Some(mut arrived) = taken {
            arrived.told();
            cell.set(ReceiveOutcome::Took(arrived));
        }
        Posted { mailbox: self.clone(), cell, key }
    }

    /// Puts a message back that was taken, at its place in the order. One of the null rank has no
    /// place.
    pub(crate) fn put_back(&self, arrived: Arrived) {
        if arrived.envelope.is_of_null_rank() {
            return;
        }
        let mut after = After::default();
        let mut state = self.lock();
        let left = match state.closed.is_some() || state.is_unwanted(&arrived.envelope) {
            true => Some(arrived),
            false => {
                state.place(arrived, &mut after);
                None
            }
        };
        drop(state);
        after.happen();
        drop(left);
    }
}

/// The number of completions that a mailbox keeps for later receives.
const SPARE: usize = 16;

impl MailboxState {
    /// The completion of a new receive: an event that has not come.
    fn cell(&mut self) -> Arc<Completion<ReceiveOutcome>> {
        if let Some(mut cell) = self.spare.pop_front() {
            // The delivery of its last message may be about to wake the thread that waited.
            if Arc::get_mut(&mut cell).is_some() {
                return cell;
            }
            self.spare.push_back(cell);
        }
        Arc::default()
    }

    /// A receive is over, and its completion is empty and in no table.
    fn spare(&mut self, cell: &Arc<Completion<ReceiveOutcome>>) {
        if self.spare.len() < SPARE {
            self.spare.push_back(cell.clone());
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Gives a message to the receive that waits for it, or puts it among the others. The probes
    /// before that receive see it.
    fn place(&mut self, mut arrived: Arrived, after: &mut After) {
        let pattern = arrived.envelope.pattern();
        while let Some(key) = self.posted.first_receive(&pattern) {
            let Post { cell, takes, .. } = self.posted.remove(key);
            if takes {
                after.matched = arrived.envelope.matched.take();
                cell.set(ReceiveOutcome::Took(arrived));
                after.wake(cell);
                return;
            }
            cell.set(ReceiveOutcome::Saw(arrived.envelope.status()));
            after.wake(cell);
        }
        let order = arrived.order;
        self.arrived.arrive(pattern, order, arrived);
    }

    fn end_receives(&mut self, keys: Vec<EntryKey>, outcome: impl Fn() -> ReceiveOutcome, after: &mut After) {
        for key in keys {
            let post = self.posted.remove(key);
            post.cell.set(outcome());
            after.wake(post.cell);
        }
    }

    /// Whether no receive will take this message: its communicator is revoked, or its agreement is
    /// over.
    fn is_unwanted(&self, envelope: &Envelope) -> bool {
        self.is_revoked(envelope.context)
            || self.agreements.get(&envelope.context).is_some_and(|&first| envelope.tag < first)
    }

    /// The rank because of which a receive that finds no message would wait in vain.
    fn hopeless(&self, pattern: &Pattern, awaited: &AwaitedRanks) -> Option<EndedRank> {
        if self.closed.is_some() {
            return self.closed;
        }
        if self.ended.is_empty() {
            return None;
        }
        match awaited {
            AwaitedRanks::One(rank) => self.ended.get(rank).copied(),
            AwaitedRanks::AnyOf(ranks) => {
                let borne = self.acknowledged.get(&pattern.context);
                let is_borne = |rank: &u32| borne.is_some_and(|borne| borne.contains(rank));
                let mut ended =
                    ranks.iter().filter(|rank| !is_borne(rank)).filter_map(|rank| self.ended.get(rank));
                ended.find(|ended| ended.failed).copied()
            }
        }
    }
}

impl Arrived {
    /// The empty message of the null rank.
    pub(crate) fn of_null_rank() -> Arrived {
        Arrived { envelope: Envelope::of_null_rank(), order: 0 }
    }

    pub(crate) fn into_envelope(self) -> Envelope {
        self.envelope
    }

    pub(crate) fn status(&self) -> Status {
        self.envelope.status()
    }

    /// A receive has taken the message: a synchronous sender is told.
    fn told(&mut self) {
        if let Some(matched) = self.envelope.matched.take() {
            matched.tell(Ok(()));
        }
    }
}

impl Default for Mailbox {
    fn default() -> Mailbox {
        Mailbox::new()
    }
}

impl fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (messages, receives) = self.load();
        write!(f, "Mailbox({messages} messages, {receives} receives)")
    }
}
