//! What the program sees of a graph over ranks after a run that has ended well: [`FinishedRanks`].
//! `DistributedGraph::run` makes it on each rank.

use crate::driver::RankTraffic;
use crate::item_collection::DistributedItems;
use selvedge_cnc::{FinishedGraph, ItemKey, Statistics, View};
use selvedge_direct::wait;
use selvedge_mpi::{Communicator, Error, Message};
use std::fmt;

/// A graph that has run to its end on all ranks, as one of them sees it.
pub struct FinishedRanks<'g> {
    finished: FinishedGraph<'g>,
    comm: Communicator,
    traffic: RankTraffic,
}

impl<'g> FinishedRanks<'g> {
    pub(crate) fn new(finished: FinishedGraph<'g>, comm: Communicator, traffic: RankTraffic) -> Self {
        FinishedRanks { finished, comm, traffic }
    }

    /// Looks at the items of this rank: at [`DistributedItems::local`].
    pub fn finalize<A>(&self, look: impl FnOnce(&View<'g>) -> A) -> A {
        self.finished.finalize(look)
    }

    /// How often each step has run on this rank, and how many items were put here.
    pub fn statistics(&self) -> Statistics {
        self.finished.statistics()
    }

    /// What this rank has sent to others.
    pub fn traffic(&self) -> RankTraffic {
        self.traffic
    }

    /// Gathers the items of a collection, in the order of their keys, on rank `root`; the others
    /// get `None`. All ranks make the call. An item that several ranks have is gathered once.
    ///
    /// # Errors
    /// If a rank has failed, or there is no such root.
    ///
    /// # Panics
    /// Outside of the `build` of [`graph`](crate::graph()).
    pub fn gather<K, V>(
        &self,
        root: usize,
        items: DistributedItems<'g, K, V>,
    ) -> Result<Option<Vec<(K, V)>>, Error>
    where
        K: ItemKey + Message,
        V: Message + Clone + Sync,
    {
        let own = self.finalize(|view| {
            view.iter(items.local).map(|(key, value)| (key, value.clone())).collect::<Vec<_>>()
        });
        let parts = wait(self.comm.gather(root, own))?;
        Ok(parts.map(|parts| {
            let mut all: Vec<(K, V)> = parts.into_iter().flatten().collect();
            all.sort_by(|(a, _), (b, _)| a.cmp(b));
            all.dedup_by(|(a, _), (b, _)| a == b);
            all
        }))
    }
}

impl fmt::Debug for FinishedRanks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FinishedRanks").finish_non_exhaustive()
    }
}
