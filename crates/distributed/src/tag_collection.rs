//! Tag collections over ranks: the handle [`DistributedTags`], and what it refers to.
//!
//! A tag goes to one rank, which `compute_on` names, and runs the steps of the collection there. So
//! a memoised collection remembers each tag on one rank.

use crate::error::DistributedFault;
use crate::item_collection::PutScope;
use crate::outbox::Outbox;
use selvedge_cnc::{ItemKey, StepContext, StepResult, TagCol};
use selvedge_mpi::{Message, Tag};
use std::fmt;
use std::sync::Arc;

/// A handle of a tag collection of all ranks.
///
/// The handle is a copy of references, and belongs to one graph.
pub struct DistributedTags<'g, T> {
    pub(crate) local: TagCol<'g, T>,
    pub(crate) shared: &'g TagsOfRanks<T>,
}

impl<T> Clone for DistributedTags<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for DistributedTags<'_, T> {}

impl<'g, T> DistributedTags<'g, T> {
    /// The tags that go to this rank. A step that the graph of this rank prescribes for them runs
    /// here: see [`DistributedGraph::local`](crate::DistributedGraph::local).
    pub fn local(&self) -> TagCol<'g, T> {
        self.local
    }
}

impl<T> fmt::Debug for DistributedTags<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DistributedTags({})", self.local.name())
    }
}

/// What a rank knows of a collection.
pub(crate) struct TagsOfRanks<T> {
    pub(crate) rank: usize,
    pub(crate) ranks: usize,
    pub(crate) compute_on: Box<dyn Fn(&T) -> usize + Send + Sync>,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) tag: Tag,
}

impl<T: ItemKey + Message> TagsOfRanks<T> {
    /// Puts a tag. True if it was put for another rank.
    pub(crate) fn put<'g>(
        &self,
        local: TagCol<'g, T>,
        tag: T,
        step: &StepContext<'g>,
        scope: PutScope,
    ) -> StepResult<bool> {
        let (rank, ranks) = ((self.compute_on)(&tag), self.ranks);
        if rank >= ranks {
            let (collection, key) = (local.name().to_string(), format!("{tag:?}"));
            return Err(DistributedFault::NoSuchRank { collection, key, rank, ranks }.into());
        }
        if rank == self.rank {
            return step.put_tag(local, tag).map(|()| false);
        }
        if scope == PutScope::ThisRank {
            return Ok(false);
        }
        self.outbox.put(rank, self.tag, tag);
        Ok(true)
    }
}
