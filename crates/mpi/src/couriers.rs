//! [`Couriers`]: threads that carry messages between ranks of one process, so that a message takes
//! time, as between machines.
//!
//! `threads.rs` has them in a world that is [`delayed`](crate::Ranks::delayed), and `world.rs` runs
//! them. Without them a message is in the mailbox when the send returns. Then no message of one
//! rank can be late, and overtaken by news of it that goes through a third rank.
//!
//! # Which orders there are
//! There is a courier for each pair of ranks, which keeps the order of that pair's messages. The
//! scheduler runs the couriers when it likes. So in a simulated world the seed determines how long
//! each message takes, and an exploration runs all orders that MPI allows.

use crate::completion::{Completion, EndedRank};
use crate::engine::{SendMode, Sending};
use crate::envelope::{Envelope, OnMatch};
use crate::mailbox::Mailbox;
use selvedge_core::yield_now;
use std::collections::VecDeque;
use std::panic::Location;
use std::sync::{Arc, Mutex, PoisonError};

/// A courier for each pair of ranks of a world.
pub(crate) struct Couriers {
    mailboxes: Box<[Arc<Mailbox>]>,
    /// Those of the first sender come first.
    all: Box<[Arc<Courier>]>,
}

/// It carries the messages from one rank to another.
pub(crate) struct Courier {
    from: usize,
    to: usize,
    mailbox: Arc<Mailbox>,
    parcels: Mutex<VecDeque<Parcel>>,
    /// There is a parcel.
    called: Completion<()>,
}

/// What a courier brings.
enum Parcel {
    Message(Envelope),
    /// The sender has ended, so this is the last parcel.
    Ended(EndedRank),
}

impl Couriers {
    pub(crate) fn between(mailboxes: Box<[Arc<Mailbox>]>) -> Couriers {
        let pairs = (0..mailboxes.len()).flat_map(|from| (0..mailboxes.len()).map(move |to| (from, to)));
        let courier = |(from, to): (usize, usize)| {
            let mailbox = mailboxes[to].clone();
            Arc::new(Courier { from, to, mailbox, parcels: Mutex::default(), called: Completion::new() })
        };
        Couriers { all: pairs.map(courier).collect(), mailboxes }
    }

    /// Each of them, to be run by a thread.
    pub(crate) fn all(&self) -> &[Arc<Courier>] {
        &self.all
    }

    fn of(&self, from: usize, to: usize) -> &Courier {
        &self.all[from * self.mailboxes.len() + to]
    }

    /// Gives a message to its courier. It is refused if the sender has heard that the receiver has
    /// ended.
    pub(crate) fn send(&self, from: usize, to: usize, mut envelope: Envelope, mode: SendMode) -> Sending {
        if let Some(ended) = self.mailboxes[from].end_of(to as u32) {
            return Sending::Refused(ended);
        }
        let mut sending = Sending::Done;
        if mode == SendMode::Synchronous {
            let taken = Arc::new(Completion::new());
            sending = Sending::Underway(taken.clone());
            envelope.matched = Some(OnMatch::new(move |result| taken.complete(result)));
        }
        self.of(from, to).carry(Parcel::Message(envelope));
        sending
    }

    /// A rank has ended: the others hear of it after its last message.
    pub(crate) fn end(&self, ended: EndedRank) {
        for to in 0..self.mailboxes.len() {
            self.of(ended.rank as usize, to).carry(Parcel::Ended(ended));
        }
    }
}

impl Courier {
    fn carry(&self, parcel: Parcel) {
        self.parcels.lock().unwrap_or_else(PoisonError::into_inner).push_back(parcel);
        self.called.complete(());
    }

    /// The thread of the courier. It returns when the sender has ended.
    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            let parcel = self.parcels.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            match parcel {
                None => {
                    let object = || format!("a message from rank {} to rank {}", self.from, self.to);
                    self.called.wait(Location::caller(), "carry", object).await;
                    self.called.take();
                }
                Some(Parcel::Ended(ended)) => return self.mailbox.ended(ended),
                Some(Parcel::Message(envelope)) => {
                    if let Err((ended, envelope)) = self.mailbox.deliver(envelope)
                        && let Some(matched) = envelope.matched
                    {
                        matched.tell(Err(ended));
                    }
                    // Another courier may be faster with its next parcel.
                    yield_now().await;
                }
            }
        }
    }
}
