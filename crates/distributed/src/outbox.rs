//! [`Outbox`]: what the steps of a rank have put for other ranks, until the rank sends it.
//!
//! The steps put (`step.rs`, `item_collection.rs`), and `driver.rs` sends between two steps. The
//! puts to one rank in one collection are one message: a `Vec` with the number of the collection's
//! port as its tag. So a value is moved to a rank of the same process, and serialised once for
//! another process.

use crate::telling::tell;
use selvedge_mpi::{Communicator, Error, Message, Tag};
use std::any::Any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Puts of one collection for one rank.
pub(crate) trait PutBatch: Any + Send {
    /// Sends the puts as one message.
    ///
    /// # Errors
    /// If the rank has ended, or if a value cannot be serialised.
    fn send(self: Box<Self>, comm: &Communicator, to: usize, tag: Tag) -> Result<(), Error>;

    /// The number of puts.
    fn puts(&self) -> usize;
}

impl<T: Message> PutBatch for Vec<T> {
    fn send(self: Box<Self>, comm: &Communicator, to: usize, tag: Tag) -> Result<(), Error> {
        tell(comm, to, tag, *self)
    }

    fn puts(&self) -> usize {
        self.len()
    }
}

/// A message that is to be sent: to this rank, with this tag.
pub(crate) struct UnsentBatch {
    pub(crate) to: usize,
    pub(crate) tag: Tag,
    pub(crate) batch: Box<dyn PutBatch>,
}

/// The puts for other ranks that were not sent yet.
#[derive(Default)]
pub(crate) struct Outbox {
    batches: Mutex<Vec<UnsentBatch>>,
    /// The number of puts, so that a rank without any takes no lock.
    unsent: AtomicUsize,
}

impl Outbox {
    /// Puts a value for a port of another rank.
    pub(crate) fn put<T: Message>(&self, to: usize, tag: Tag, value: T) {
        let mut batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        match batches.iter_mut().find(|unsent| (unsent.to, unsent.tag) == (to, tag)) {
            Some(unsent) => {
                let values: &mut dyn Any = &mut *unsent.batch;
                let values: &mut Vec<T> = values.downcast_mut().expect("the values of a port have one type");
                values.push(value);
            }
            None => batches.push(UnsentBatch { to, tag, batch: Box::new(vec![value]) }),
        }
        drop(batches);
        self.unsent.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of puts that were not sent.
    pub(crate) fn unsent(&self) -> usize {
        self.unsent.load(Ordering::Relaxed)
    }

    /// Takes everything out.
    pub(crate) fn take(&self) -> Vec<UnsentBatch> {
        if self.unsent() == 0 {
            return Vec::new();
        }
        let mut batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        self.unsent.store(0, Ordering::Relaxed);
        std::mem::take(&mut batches)
    }
}
