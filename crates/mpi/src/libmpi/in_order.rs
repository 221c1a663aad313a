//! [`SourceOrder`]: messages in the order in which their sources sent them.
//!
//! `driver.rs` has one for each communicator. It finds messages in their order, but a long one may
//! be received later than a short one behind it. So a message that is there waits for those before
//! it. Messages of different sources do not wait for one another.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

/// The messages of one communicator that are being received.
#[derive(Debug)]
pub(super) struct SourceOrder<M> {
    /// For each source with such messages, the ticket of each and what is known of it.
    sources: HashMap<i32, VecDeque<(u64, Incoming<M>)>>,
    tickets: u64,
}

#[derive(Debug)]
enum Incoming<M> {
    /// It is being received.
    Begun,
    Here(M),
    Lost,
}

impl<M> SourceOrder<M> {
    pub(super) fn new() -> SourceOrder<M> {
        SourceOrder { sources: HashMap::new(), tickets: 0 }
    }

    /// Whether no message is being received.
    pub(super) fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Whether a message of this source is being received.
    pub(super) fn has(&self, source: i32) -> bool {
        self.sources.contains_key(&source)
    }

    /// A message of this source is found. Its ticket.
    pub(super) fn begin(&mut self, source: i32) -> u64 {
        self.tickets += 1;
        self.sources.entry(source).or_default().push_back((self.tickets, Incoming::Begun));
        self.tickets
    }

    /// A message is there, or lost without one. Hands over the messages that need not wait, in
    /// their order.
    pub(super) fn end(&mut self, source: i32, ticket: u64, message: Option<M>, mut hand_over: impl FnMut(M)) {
        let Entry::Occupied(mut queue) = self.sources.entry(source) else {
            unreachable!("`begin` has made it")
        };
        let place = queue.get().partition_point(|&(other, _)| other < ticket);
        queue.get_mut()[place].1 = message.map_or(Incoming::Lost, Incoming::Here);
        let is_over = |(_, incoming): &mut (u64, Incoming<M>)| !matches!(incoming, Incoming::Begun);
        while let Some((_, incoming)) = queue.get_mut().pop_front_if(is_over) {
            if let Incoming::Here(message) = incoming {
                hand_over(message);
            }
        }
        if queue.get().is_empty() {
            queue.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_waits_for_those_of_its_source() {
        let mut messages = SourceOrder::new();
        let mut handed = Vec::new();
        let long = messages.begin(1);
        let lost = messages.begin(1);
        let short = messages.begin(1);
        let other = messages.begin(2);
        messages.end(1, short, Some("short"), |message| handed.push(message));
        messages.end(2, other, Some("other"), |message| handed.push(message));
        messages.end(1, lost, None, |message| handed.push(message));
        assert_eq!(handed, ["other"]);
        assert_eq!([1, 2].map(|source| messages.has(source)), [true, false]);
        messages.end(1, long, Some("long"), |message| handed.push(message));
        assert_eq!(handed, ["other", "long", "short"]);
        assert!(messages.is_empty());
    }
}
