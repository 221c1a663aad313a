//! [`RankThreads`]: the engine in which ranks are groups of threads of one process.
//!
//! `world.rs` starts worlds over it. A send puts the message into the receiver's mailbox, within
//! the call, and the receive that waits there is resumed by the scheduler's own wake-up. So a
//! message between two ranks is a value that moves, and no loop runs in between. In a world with
//! `Couriers` the message takes time.

use crate::completion::EndedRank;
use crate::couriers::Couriers;
use crate::engine::{Engine, SendMode, Sending};
use crate::envelope::Envelope;
use crate::mailbox::Mailbox;
use std::fmt;
use std::sync::Arc;

/// Ranks that are groups of threads of one process.
pub struct RankThreads {
    mailboxes: Box<[Arc<Mailbox>]>,
    moves_values: bool,
    checks_collectives: bool,
    /// They are there if messages take time.
    couriers: Option<Couriers>,
}

impl RankThreads {
    /// A world of this number of ranks. `moves_values` says whether values move; otherwise they are
    /// serialised as between processes.
    pub(crate) fn new(ranks: usize, moves_values: bool) -> RankThreads {
        let mailboxes = (0..ranks).map(|_| Arc::new(Mailbox::new())).collect();
        RankThreads { mailboxes, moves_values, checks_collectives: false, couriers: None }
    }

    /// The same world, in which collectives are checked.
    pub(crate) fn that_checks_collectives(self) -> RankThreads {
        RankThreads { checks_collectives: true, ..self }
    }

    /// The same world, in which messages take time. Each of its couriers is to be run.
    pub(crate) fn with_couriers(self) -> RankThreads {
        let couriers = Couriers::between(self.mailboxes.clone());
        RankThreads { couriers: Some(couriers), ..self }
    }

    /// The couriers, if messages take time.
    pub(crate) fn couriers(&self) -> Option<&Couriers> {
        self.couriers.as_ref()
    }

    /// A rank has ended. The others are told, and messages to it are refused.
    pub(crate) fn end(&self, ended: EndedRank) {
        match &self.couriers {
            Some(couriers) => couriers.end(ended),
            None => self.mailboxes.iter().for_each(|mailbox| mailbox.ended(ended)),
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

    fn checks_collectives(&self) -> bool {
        self.checks_collectives
    }

    fn send(&self, from: usize, to: usize, envelope: Envelope, mode: SendMode) -> Sending {
        match &self.couriers {
            Some(couriers) => couriers.send(from, to, envelope, mode),
            None => self.mailboxes[to].send_within(envelope, mode),
        }
    }
}

impl fmt::Debug for RankThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RankThreads({} ranks)", self.mailboxes.len())
    }
}
