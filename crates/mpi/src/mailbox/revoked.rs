//! What a mailbox does when a communicator is revoked: it ends each call of its rank that waits in
//! that communicator, drops the messages that came, and hands the revocation on.
//!
//! # Every rank hears of it
//! A process that is killed while it tells the others has told some of them. Each rank that a rank
//! of another process has told tells all others in turn, once, before it goes on. So if one rank
//! that lives has heard of it, each hears of it. A rank of the same process has told all, because
//! it tells them in one piece.

use super::{After, EntryKey, Mailbox, MailboxState, ReceiveOutcome};
use crate::completion::Completion;
use crate::lane::revocable;
use crate::revocation::Revocation;
use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

/// Tells the other ranks of a revocation.
pub(super) type HandOn = Box<dyn Fn(&Revocation) + Send + Sync>;

/// The communicators that are revoked, and what ends when one is.
#[derive(Default)]
pub(super) struct RevokedContexts {
    contexts: HashSet<u64>,
    /// The sends that wait for a receive, in each context.
    sends: HashMap<u64, Vec<Weak<Completion>>>,
    /// What came before this rank could hand it on.
    early: Vec<Revocation>,
}

impl Mailbox {
    /// How this rank hands revocations on from now on. The world of the rank calls it once.
    pub(crate) fn hand_revocations_on(&self, hand_on: impl Fn(&Revocation) + Send + Sync + 'static) {
        let mut state = self.lock();
        if self.hand_on.set(Box::new(hand_on)).is_err() {
            return;
        }
        let early = mem::take(&mut state.revoked.early);
        drop(state);
        for revocation in early {
            self.hand_on(&revocation);
        }
    }

    fn hand_on(&self, revocation: &Revocation) {
        if let Some(hand_on) = self.hand_on.get() {
            hand_on(revocation);
        }
    }

    /// A communicator is revoked. What waits in it ends, and the other ranks are told.
    pub(crate) fn revoke(&self, revocation: &Revocation) {
        let context = revocation.context;
        let mut after = After::default();
        let mut state = self.lock();
        if !state.revoked.contexts.insert(context) {
            return;
        }
        self.has_revoked.store(true, Ordering::Release);
        if self.hand_on.get().is_none() {
            state.revoked.early.push(revocation.clone());
        }
        let is_of_it = |it: u64| revocable(it) == context;
        let posted = state.posted.iter().filter(|(_, pattern, _)| is_of_it(pattern.context));
        let posted: Vec<EntryKey> = posted.map(|(key, ..)| key).collect();
        state.end_receives(posted, || ReceiveOutcome::Revoked, &mut after);
        let arrived = state.arrived.iter().filter(|(.., arrived)| is_of_it(arrived.envelope.context));
        let arrived: Vec<EntryKey> = arrived.map(|(key, ..)| key).collect();
        let left: Vec<_> = arrived.into_iter().map(|key| state.arrived.remove(key)).collect();
        let sends = state.revoked.sends.remove(&context).unwrap_or_default();
        drop(state);
        after.happen(self);
        // The senders of these messages end by the revocation that they hear of.
        drop(left);
        for send in sends.iter().filter_map(Weak::upgrade) {
            // The sender asks whether its communicator is revoked.
            send.complete(Ok(()));
        }
        self.hand_on(revocation);
    }

    /// Whether a communicator is revoked.
    #[inline]
    pub(crate) fn is_revoked(&self, context: u64) -> bool {
        self.has_revoked.load(Ordering::Acquire) && self.lock().is_revoked(context)
    }

    /// A send that waits for a receive ends when its communicator is revoked.
    ///
    /// # Complexity
    /// Constant on average: the sends that are over are thrown out when the list would grow.
    pub(crate) fn end_with_revocation(&self, context: u64, send: &Arc<Completion>) {
        let mut state = self.lock();
        if state.is_revoked(context) {
            drop(state);
            return send.complete(Ok(()));
        }
        let sends = state.revoked.sends.entry(context).or_default();
        if sends.len() == sends.capacity() {
            sends.retain(|send| send.strong_count() > 0);
            sends.reserve(sends.len() + 1);
        }
        sends.push(Arc::downgrade(send));
    }
}

impl MailboxState {
    /// Whether the communicator of a message or receive is revoked.
    pub(super) fn is_revoked(&self, context: u64) -> bool {
        !self.revoked.contexts.is_empty() && self.revoked.contexts.contains(&revocable(context))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// The list holds the sends that wait, and not all that ever did.
    #[test]
    fn sends_that_are_over_are_forgotten() {
        let mailbox = Mailbox::new();
        let waits = Arc::new(Completion::new());
        mailbox.end_with_revocation(7, &waits);
        for _ in 0..1_000 {
            mailbox.end_with_revocation(7, &Arc::new(Completion::new()));
        }
        let kept = mailbox.lock().revoked.sends[&7].len();
        assert!(kept < 10, "{kept} sends are kept");
        assert!(!waits.has_come());
        mailbox.revoke(&Revocation { context: 7, group: Arc::new([0]), from: 0 });
        assert!(waits.has_come());
        // A later one ends at once.
        let late = Arc::new(Completion::new());
        mailbox.end_with_revocation(7, &late);
        assert!(late.has_come());
    }
}
