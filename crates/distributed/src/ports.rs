//! [`Ports`]: what a rank does with the messages of its collections.
//!
//! Each collection of a distributed graph has a port, and a collection that is fetched has another
//! one for the fetches. The number of a port is the tag of its messages. The ranks define their
//! collections in the same order, so a number means the same on all of them;
//! `DistributedGraph::run` compares the names and types.
//!
//! `driver.rs` opens a message, and has the graph run the step "received" for it, with the number
//! of the sender as its tag. The step puts what the message holds. So a report names the sender of
//! a put as the rank from which it was received.

use selvedge_cnc::{StepContext, StepResult};
use selvedge_mpi::{Error, Matched, Message, Tag};
use std::any::type_name;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Puts what a message holds.
pub(crate) type ReceivedPuts<'g> = Box<dyn FnOnce(&StepContext<'g>) -> StepResult + Send + 'g>;

/// What is done with a message of one port.
type OpenPort<'g> = Box<dyn Fn(Matched) -> Result<ReceivedPuts<'g>, Error> + 'g>;

/// The ports of a rank, by their numbers from 0.
#[derive(Default)]
pub(crate) struct Ports<'g> {
    open: Vec<OpenPort<'g>>,
    /// The name and the type of each.
    text: String,
}

/// The tag of the messages between the drivers. The ports have the tags above it.
pub(crate) const DRIVERS: Tag = Tag(0);

impl<'g> Ports<'g> {
    /// The tag of the port that is added next.
    pub(crate) fn next_tag(&self) -> Tag {
        Tag(self.open.len() as u32 + 1)
    }

    /// Adds a port. `put` gets the sender, and puts one value of a message.
    pub(crate) fn add<T: Message>(
        &mut self,
        name: &str,
        put: impl Fn(usize, T, &StepContext<'g>) -> StepResult + Clone + Send + 'g,
    ) {
        self.text += &format!("{name}: {}\n", type_name::<T>());
        self.open.push(Box::new(move |message| {
            let from = message.status().source;
            let values = message.recv::<Vec<T>>()?;
            let put = put.clone();
            Ok(Box::new(move |step| values.into_iter().try_for_each(|value| put(from, value, step))))
        }));
    }

    /// Opens a message.
    ///
    /// # Errors
    /// If it holds no values of the port's type.
    pub(crate) fn open(&self, message: Matched) -> Result<ReceivedPuts<'g>, Error> {
        let port = message.status().tag.0 as usize - 1;
        (self.open[port])(message)
    }

    /// The names and types of all ports, to be compared between the ranks.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// The messages that were opened, and that the step "received" puts.
pub(crate) struct ReceivedQueue<'g> {
    by_rank: Mutex<Vec<VecDeque<ReceivedPuts<'g>>>>,
}

impl<'g> ReceivedQueue<'g> {
    pub(crate) fn new(ranks: usize) -> ReceivedQueue<'g> {
        ReceivedQueue { by_rank: Mutex::new((0..ranks).map(|_| VecDeque::new()).collect()) }
    }

    pub(crate) fn push(&self, from: usize, puts: ReceivedPuts<'g>) {
        self.by_rank.lock().unwrap_or_else(PoisonError::into_inner)[from].push_back(puts);
    }

    /// Puts what the next message of a rank holds: the body of the step "received".
    pub(crate) fn put_next(&self, from: u32, step: &StepContext<'g>) -> StepResult {
        let puts = {
            let mut by_rank = self.by_rank.lock().unwrap_or_else(PoisonError::into_inner);
            by_rank[from as usize].pop_front()
        };
        puts.map_or(Ok(()), |puts| puts(step))
    }
}
