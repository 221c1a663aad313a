//! [`Posted`]: the caller's side of a receive, or a probe, that a mailbox may have in its table.

use super::receive_cell::ReceiveCell;
use super::{Arrived, Mailbox, Post, ReceiveOutcome};
use crate::error::CallSite;
use crate::matching::EntryKey;
use std::ops::Deref;
use std::ptr;
use std::sync::Arc;

/// A receive or a probe that may be in the table. Dropping it gives it up: the message that it has
/// got and that no call has collected is delivered again.
///
/// A request owns its mailbox. A receive that is awaited borrows it, and counts no reference.
#[derive(Debug)]
pub(crate) struct Posted<M: Deref<Target = Mailbox> = Arc<Mailbox>> {
    pub(super) mailbox: M,
    pub(super) cell: ReceiveCell,
    /// Its place in the table, if it was put there.
    pub(super) key: Option<EntryKey>,
    /// The outcome has come, and a call has it.
    pub(super) is_collected: bool,
}

/// What a receive that asks for a message finds.
#[derive(Debug)]
pub(crate) enum TakenOrPosted<M: Deref<Target = Mailbox>> {
    /// The message was there.
    Taken(Arrived),
    /// It waits for the message, or it will never come.
    Posted(Posted<M>),
}

impl Posted {
    /// A receive, or a probe, from the null rank: its outcome has come.
    pub(crate) fn of_null_rank(mailbox: Arc<Mailbox>, takes: bool) -> Posted {
        let arrived = Arrived::of_null_rank();
        let outcome = match takes {
            true => ReceiveOutcome::Took(arrived),
            false => ReceiveOutcome::Saw(arrived.status()),
        };
        Posted::ended(mailbox, outcome)
    }
}

impl<M: Deref<Target = Mailbox>> Posted<M> {
    /// A receive with an outcome that has come.
    pub(super) fn ended(mailbox: M, outcome: ReceiveOutcome) -> Posted<M> {
        let cell = ReceiveCell::new();
        cell.complete(outcome);
        Posted { mailbox, cell, key: None, is_collected: false }
    }

    /// The outcome, if it has come.
    #[inline]
    pub(crate) fn try_collect(&mut self) -> Option<ReceiveOutcome> {
        let outcome = self.cell.take()?;
        self.is_collected = true;
        Some(outcome)
    }

    /// Whether the outcome has come.
    pub(crate) fn has_come(&self) -> bool {
        self.cell.has_come()
    }

    /// Waits until the outcome has come.
    pub(crate) fn wait<O: Fn() -> String>(
        &self,
        call: CallSite,
        reason: O,
    ) -> impl Future<Output = ()> + use<'_, M, O> {
        self.cell.wait(call.place, "receive", reason)
    }

    /// The outcome, after [`wait`](Self::wait).
    #[inline]
    pub(crate) fn collect(&mut self) -> ReceiveOutcome {
        self.try_collect().expect("the outcome has come, and this borrow of it is the only one")
    }

    /// Leaves the table; or delivers the message again, if a delivery has taken the receive out of
    /// the table.
    #[cold]
    fn give_up(&mut self) {
        if let Some(key) = self.key {
            let mut state = self.mailbox.lock();
            let is_mine = |post: &&Post| ptr::eq(Arc::as_ptr(&post.cell), &raw const *self.cell);
            if state.posted.find(key).filter(is_mine).is_some() {
                let post = state.posted.remove(key);
                drop(state);
                return drop(post);
            }
        }
        // A delivery that has not come yet finds the mark, and puts the message back.
        if let Some(ReceiveOutcome::Took(arrived)) = self.cell.take_or_give_up() {
            self.mailbox.put_back(arrived);
        }
    }
}

impl<M: Deref<Target = Mailbox>> Drop for Posted<M> {
    fn drop(&mut self) {
        if !self.is_collected {
            self.give_up();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::{After, AwaitedRanks};
    use super::*;
    use crate::envelope::{Envelope, MessageContent};
    use crate::matching::Pattern;

    const PATTERN: Pattern = Pattern { context: 5, source: Some(0), tag: Some(1) };

    fn message(mark: u32) -> Envelope {
        let body = MessageContent::Bytes(Vec::new());
        Envelope { context: 5, mark, source: 0, tag: 1, body, sent: None, matched: None }
    }

    fn post(mailbox: &Arc<Mailbox>) -> Posted {
        mailbox.post(PATTERN, AwaitedRanks::One(0), true)
    }

    /// A delivery has taken the first posted receive out of the table, and has not completed it.
    fn begin_delivery(mailbox: &Mailbox, mark: u32) -> After {
        let mut after = After::default();
        let mut state = mailbox.lock();
        let order = state.number();
        state.place(Arrived { envelope: message(mark), order }, &mut after);
        after
    }

    #[test]
    fn a_receive_that_is_given_up_within_a_delivery_leaves_the_message_to_the_next() {
        let mailbox = Arc::new(Mailbox::new());
        let given_up = post(&mailbox);
        let delivery = begin_delivery(&mailbox, 1);
        // The next receive has the place of the first in the table, and keeps it.
        let mut next = post(&mailbox);
        drop(given_up);
        assert_eq!(mailbox.load(), (0, 1));
        delivery.happen(&mailbox);
        mailbox.deliver(message(2)).unwrap();
        let Some(ReceiveOutcome::Took(arrived)) = next.try_collect() else { panic!("no message") };
        assert_eq!((arrived.envelope.mark, mailbox.load()), (1, (1, 0)));
    }

    #[test]
    fn a_message_that_comes_back_is_before_the_later_ones() {
        let mailbox = Arc::new(Mailbox::new());
        let given_up = post(&mailbox);
        let delivery = begin_delivery(&mailbox, 1);
        drop(given_up);
        delivery.happen(&mailbox);
        mailbox.deliver(message(2)).unwrap();
        let marks = [(); 2].map(|()| mailbox.try_take(&PATTERN).unwrap().into_envelope().mark);
        assert_eq!(marks, [1, 2]);
    }
}
