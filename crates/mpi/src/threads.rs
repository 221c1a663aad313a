//! [`RankThreads`]: the engine in which ranks are groups of threads of one process.
//!
//! `world.rs` starts worlds over it. A send puts the message into the receiver's mailbox, within
//! the call, and the receive that waits there is resumed by the scheduler's own wake-up. So a
//! message between two ranks is a value that moves, and no loop runs in between.

use crate::completion::EndedRank;
use crate::engine::{Engine, SendMode, Sending};
use crate::envelope::Envelope;
use crate::mailbox::Mailbox;
use std::fmt;
use std::sync::Arc;

/// Ranks that are groups of threads of one process.
pub struct RankThreads {
    mailboxes: Box<[Arc<Mailbox>]>,
    moves_values: bool,
}

impl RankThreads {
    /// A world of this number of ranks. `moves_values` says whether values move; otherwise they are
    /// serialised as between processes.
    pub(crate) fn new(ranks: usize, moves_values: bool) -> RankThreads {
        RankThreads { mailboxes: (0..ranks).map(|_| Arc::new(Mailbox::new())).collect(), moves_values }
    }

    /// A rank has ended. The others are told, and messages to it are refused.
    pub(crate) fn end(&self, ended: EndedRank) {
        for mailbox in &self.mailboxes {
            mailbox.ended(ended);
        }
        self.mailboxes[ended.rank as usize].close(ended);
    }
}

impl Engine for RankThreads {
    fn name(&self) -> &'static str {
        "threads"
    }

    fn size(&self) -> usize {
        self.mailboxes.len()
    }

    fn moves_values(&self, _: usize) -> bool {
        self.moves_values
    }

    fn is_here(&self, _: usize) -> bool {
        true
    }

    fn mailbox(&self, rank: usize) -> &Arc<Mailbox> {
        &self.mailboxes[rank]
    }

    fn send(&self, _: usize, to: usize, envelope: Envelope, mode: SendMode) -> Sending {
        self.mailboxes[to].send_within(envelope, mode)
    }
}

impl fmt::Debug for RankThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RankThreads({} ranks)", self.mailboxes.len())
    }
}
