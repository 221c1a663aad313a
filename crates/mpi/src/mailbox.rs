//! The mailbox of one rank: [`Mailbox`], where arriving messages meet the receives of the rank's
//! threads.
//!
//! An engine delivers into it, and the communicators post receives. The state lies under one lock,
//! which no code of the program's runs under: wakers are called and messages dropped after it.
//!
//! # No message is lost
//! A receive that finds no message is posted: its pattern lies in the table `posted`, with a
//! [`Completion`] that it shares with its `Posted`. A message that arrives takes the receive out of
//! the table under the lock. After the lock, the delivery puts the message into the completion. So
//! a posted receive is in one of three states: it is in the table, a delivery is about to complete
//! it, or its completion has come.
//!
//! A receive that is given up looks under the lock whether it is in the table, and leaves it then.
//! Otherwise it asks its completion, under the lock of that. If the message is there, the receive
//! delivers it again, with its old number in the order of arrival. If it is not, the receive leaves
//! a mark, and the delivery that finds the mark does the same. A delivery ends before the next
//! message of the same sender is delivered. So the next receive finds the messages as if the other
//! had never been.

mod ending;
mod outcome;
mod posted;
mod receive_cell;
mod revoked;

use crate::completion::{BeforeEnd, Completion, EndedRank, HearsEnd};
use crate::envelope::{Envelope, OnMatch, Status};
use crate::matching::{EntryKey, MatchTable, Pattern};
use crate::revocation::Revocation;
use crate::sending::{SendMode, Sending};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

pub(crate) use outcome::{Arrived, ReceiveOutcome};
pub(crate) use posted::{Posted, TakenOrPosted};
use receive_cell::ReceiveCell;
use revoked::{HandOn, RevokedContexts};

/// The messages that have come for one rank, and the receives that wait for some.
pub struct Mailbox {
    state: Mutex<MailboxState>,
    /// The number of messages that wait for a receive, and above it the number of receives that
    /// wait for a message: asked without the lock.
    load: AtomicU64,
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
    /// In each lane of agreements, the number of the first that is not over: messages of earlier
    /// ones are dropped.
    agreements: HashMap<u64, u32>,
    /// The engines in which this rank has a second number, with the number.
    seats: Vec<(Weak<dyn HearsEnd>, u32)>,
}

/// The right to the state. Dropping it notes the load, and releases the lock.
struct MailboxGuard<'a> {
    state: MutexGuard<'a, MailboxState>,
    load: &'a AtomicU64,
}

impl Deref for MailboxGuard<'_> {
    type Target = MailboxState;

    #[inline]
    fn deref(&self) -> &MailboxState {
        &self.state
    }
}

impl DerefMut for MailboxGuard<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut MailboxState {
        &mut self.state
    }
}

impl Drop for MailboxGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        let (arrived, posted) = (self.state.arrived.len() as u64, self.state.posted.len() as u64);
        self.load.store(posted << 32 | arrived, Ordering::Relaxed);
    }
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

/// What must be done after the lock is released.
#[derive(Default)]
struct After {
    first: Option<EndedReceive>,
    /// Mostly there is one, and a vector of one would be an allocation.
    further: Vec<EndedReceive>,
    matched: Option<OnMatch>,
}

/// A receive or probe that has left the table, and its outcome.
struct EndedReceive {
    cell: Arc<Completion<ReceiveOutcome>>,
    /// It is there until the completion has it.
    outcome: Option<ReceiveOutcome>,
}

impl After {
    #[inline]
    fn end(&mut self, cell: Arc<Completion<ReceiveOutcome>>, outcome: ReceiveOutcome) {
        let ended = EndedReceive { cell, outcome: Some(outcome) };
        match &self.first {
            None => self.first = Some(ended),
            Some(_) => self.further.push(ended),
        }
    }

    #[inline]
    fn happen(mut self, mailbox: &Mailbox) {
        if let Some(ended) = &mut self.first {
            ended.complete(mailbox);
        }
        for ended in &mut self.further {
            ended.complete(mailbox);
        }
        if let Some(matched) = self.matched {
            matched.tell(Ok(()));
        }
    }
}

impl EndedReceive {
    #[inline]
    fn complete(&mut self, mailbox: &Mailbox) {
        self.cell.complete_unless_given_up(&mut self.outcome);
        if let Some(ReceiveOutcome::Took(arrived)) = self.outcome.take() {
            mailbox.put_back(arrived);
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
            agreements: HashMap::new(),
            seats: Vec::new(),
        };
        let (has_revoked, hand_on) = (AtomicBool::new(false), OnceLock::new());
        let load = AtomicU64::new(0);
        Mailbox { state: Mutex::new(state), load, has_revoked, hand_on, before_end: Mutex::default() }
    }

    #[inline]
    fn lock(&self) -> MailboxGuard<'_> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        MailboxGuard { state, load: &self.load }
    }

    /// A message has arrived for this rank.
    ///
    /// # Errors
    /// Gives the message back if the rank has ended.
    ///
    /// # Complexity
    /// Constant, however many messages and receives are there.
    #[inline]
    #[expect(clippy::result_large_err, reason = "a refused message is given back, which is rare")]
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
        after.happen(self);
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
        after.happen(self);
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
        after.happen(self);
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
        self.end_of(rank).is_some()
    }

    /// The end of a rank, if this mailbox has been told of it.
    pub(crate) fn end_of(&self, rank: u32) -> Option<EndedRank> {
        self.lock().ended.get(&rank).copied()
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
    #[inline]
    pub fn load(&self) -> (usize, usize) {
        let load = self.load.load(Ordering::Relaxed);
        ((load as u32) as usize, (load >> 32) as usize)
    }

    /// Whether a thread that asks for `wanted` may have this message, which matches, although it
    /// has no receive in the table: no receive there matches, and no message that lies there is
    /// before it. The engine delivers nothing to this mailbox meanwhile.
    ///
    /// What another thread has put into the mailbox before a moment that the caller knows of is
    /// seen, also without the lock, because the load was noted before.
    pub(crate) fn lets_pass(&self, message: &Pattern, wanted: &Pattern) -> bool {
        if self.load() == (0, 0) {
            return true;
        }
        let mut state = self.lock();
        state.posted.first_receive(message).is_none() && state.arrived.first_message(wanted).is_none()
    }

    /// Takes the first message that matches.
    pub(crate) fn try_take(&self, pattern: &Pattern) -> Option<Arrived> {
        if self.load().0 == 0 {
            return None;
        }
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
        if takes {
            return match Mailbox::take_or_post(self.clone(), pattern, awaited) {
                TakenOrPosted::Posted(posted) => posted,
                TakenOrPosted::Taken(arrived) => Posted::ended(self.clone(), ReceiveOutcome::Took(arrived)),
            };
        }
        let mut state = self.lock();
        match state.arrived.first_message(&pattern) {
            Some(first) => {
                let status = state.arrived.get(first).envelope.status();
                drop(state);
                Posted::ended(self.clone(), ReceiveOutcome::Saw(status))
            }
            None => state.post(self.clone(), pattern, awaited, false),
        }
    }

    /// Takes the first message that matches; or posts a receive, as [`post`](Self::post).
    pub(crate) fn take_or_post<M>(mailbox: M, pattern: Pattern, awaited: AwaitedRanks) -> TakenOrPosted<M>
    where
        M: Deref<Target = Mailbox> + Clone,
    {
        let of_lock = mailbox.clone();
        let mut state = of_lock.lock();
        let Some(first) = state.arrived.first_message(&pattern) else {
            return TakenOrPosted::Posted(state.post(mailbox, pattern, awaited, true));
        };
        let mut arrived = state.arrived.remove(first);
        drop(state);
        arrived.told();
        TakenOrPosted::Taken(arrived)
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
        after.happen(self);
        drop(left);
    }
}

impl MailboxState {
    /// Posts a receive, or a probe, for which no message is there.
    fn post<M>(&mut self, mailbox: M, pattern: Pattern, awaited: AwaitedRanks, takes: bool) -> Posted<M>
    where
        M: Deref<Target = Mailbox>,
    {
        if self.is_revoked(pattern.context) {
            return Posted::ended(mailbox, ReceiveOutcome::Revoked);
        }
        if let Some(ended) = self.hopeless(&pattern, &awaited) {
            return Posted::ended(mailbox, ReceiveOutcome::Ended(ended));
        }
        let (cell, order) = (ReceiveCell::new(), self.number());
        let key = self.posted.post(pattern, order, Post { cell: cell.share(), awaited, takes });
        Posted { mailbox, cell, key: Some(key), is_collected: false }
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
                after.end(cell, ReceiveOutcome::Took(arrived));
                return;
            }
            after.end(cell, ReceiveOutcome::Saw(arrived.envelope.status()));
        }
        let order = arrived.order;
        self.arrived.arrive(pattern, order, arrived);
    }

    fn end_receives(&mut self, keys: Vec<EntryKey>, outcome: impl Fn() -> ReceiveOutcome, after: &mut After) {
        for key in keys {
            let post = self.posted.remove(key);
            after.end(post.cell, outcome());
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
