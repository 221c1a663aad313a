//! [`Threads`]: the engine whose ranks are groups of threads of one process.
//!
//! `world.rs` starts worlds over it. A send puts the message into the receiver's mailbox, within the
//! call, and the receive that waits there is resumed by the scheduler's own wake-up. So a message
//! between two ranks is a value that moves, and no loop runs in between.

use crate::completion::{Completion, Ended};
use crate::engine::{Engine, Mode, Sending};
use crate::envelope::Envelope;
use crate::mailbox::Mailbox;
use std::fmt;
use std::sync::Arc;

/// Ranks that are groups of threads of one process.
pub struct Threads {
    mailboxes: Box<[Arc<Mailbox>]>,
    moves_values: bool,
}

impl Threads {
    /// A world of so many ranks. `moves_values` says whether values move; otherwise they are
    /// serialised as between processes.
    pub(crate) fn new(ranks: usize, moves_values: bool) -> Threads {
        Threads { mailboxes: (0..ranks).map(|_| Arc::new(Mailbox::new())).collect(), moves_values }
    }

    /// A rank has ended. The others are told, and messages to it are refused.
    pub(crate) fn end(&self, ended: Ended) {
        for mailbox in &self.mailboxes {
            mailbox.ended(ended);
        }
        self.mailboxes[ended.rank as usize].close(ended);
    }
}

impl Engine for Threads {
    fn name(&self) -> &'static str {
        "threads"
    }

    fn size(&self) -> usize {
        self.mailboxes.len()
    }

    fn moves_values(&self, _: usize) -> bool {
        self.moves_values
    }

    fn mailbox(&self, rank: usize) -> &Arc<Mailbox> {
        &self.mailboxes[rank]
    }

    fn send(&self, _: usize, to: usize, mut envelope: Envelope, mode: Mode) -> Sending {
        let matched = (mode == Mode::Synchronous).then(|| Arc::new(Completion::new()));
        envelope.matched = matched.clone();
        match (self.mailboxes[to].deliver(envelope), matched) {
            (Err((ended, _)), _) => Sending::Refused(ended),
            (Ok(()), Some(matched)) => Sending::Underway(matched),
            (Ok(()), None) => Sending::Done,
        }
    }
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Threads({} ranks)", self.mailboxes.len())
    }
}
