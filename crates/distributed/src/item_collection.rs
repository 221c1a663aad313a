//! Item collections over ranks: the handle [`DistributedItems`], and what it refers to.
//!
//! Each rank has a local collection of the same name, in its own graph. A put goes to the local
//! collections of the ranks that [`ItemPlacement`](crate::ItemPlacement) names: to this one at
//! once, to others through the `Outbox`. A get is one of the local collection. A get that misses an
//! item of another rank sends a fetch, the first time; the answer is a put here, and wakes the
//! steps that wait for it, as any put.
//!
//! A fetch is a step on the rank that keeps the item. It gets the item as every step does, so it
//! waits if the item is not there yet, and is in the count of a counted item.

use crate::error::DistributedStepError;
use crate::outbox::Outbox;
use crate::placement::{ItemPlacement, PlacementWay};
use selvedge_cnc::{ItemCol, ItemKey, StepContext, StepResult};
use selvedge_mpi::{Message, Tag};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A handle of an item collection of all ranks.
///
/// The handle is a copy of references, and belongs to one graph.
pub struct DistributedItems<'g, K, V> {
    pub(crate) local: ItemCol<'g, K, V>,
    pub(crate) shared: &'g ItemsOfRanks<K>,
}

impl<K, V> Clone for DistributedItems<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for DistributedItems<'_, K, V> {}

impl<'g, K, V> DistributedItems<'g, K, V> {
    /// This rank's part of it: what was put here, sent here and fetched.
    pub fn local(&self) -> ItemCol<'g, K, V> {
        self.local
    }
}

impl<K, V> fmt::Debug for DistributedItems<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DistributedItems({})", self.local.name())
    }
}

/// What a rank knows of a collection.
pub(crate) struct ItemsOfRanks<K> {
    rank: usize,
    ranks: usize,
    name: String,
    placement: ItemPlacement<K>,
    outbox: Arc<Outbox>,
    /// The port of the puts. That of the fetches is the next one.
    tag: Tag,
    /// The items that a step here has missed, with the rank that should put them. An item that is
    /// fetched is in it from the fetch on.
    missed: Mutex<BTreeMap<K, usize>>,
}

/// What a put does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PutScope {
    /// It puts on every rank that is to have the item.
    AllRanks,
    /// All ranks make the same put, so each puts its own part.
    ThisRank,
}

impl<K: ItemKey + Message> ItemsOfRanks<K> {
    pub(crate) fn new(
        (rank, ranks): (usize, usize),
        name: &str,
        placement: ItemPlacement<K>,
        outbox: &Arc<Outbox>,
        tag: Tag,
    ) -> ItemsOfRanks<K> {
        let (name, outbox) = (name.to_string(), outbox.clone());
        ItemsOfRanks { rank, ranks, name, placement, outbox, tag, missed: Mutex::default() }
    }

    pub(crate) fn is_fetched(&self) -> bool {
        matches!(self.placement.way, PlacementWay::Fetched)
    }

    /// The rank, if there is one with this number.
    fn checked(&self, rank: usize, key: &K) -> StepResult<usize> {
        if rank < self.ranks {
            return Ok(rank);
        }
        let (collection, key) = (self.name.clone(), format!("{key:?}"));
        Err(DistributedStepError::NoSuchRank { collection, key, rank, ranks: self.ranks }.into())
    }

    /// The ranks to which a put of the key goes, in order.
    fn homes(&self, key: &K) -> StepResult<Vec<usize>> {
        let mut homes = Vec::new();
        match (&self.placement.way, &self.placement.producer) {
            (PlacementWay::Pushed(each), _) => each(key, &mut |rank| homes.push(rank)),
            (PlacementWay::Fetched, producer) => homes.extend(producer.as_ref().map(|rank| rank(key))),
        }
        homes.sort_unstable();
        homes.dedup();
        homes.iter().try_for_each(|&rank| self.checked(rank, key).map(drop))?;
        Ok(homes)
    }

    /// Another rank that makes the item, if that is known.
    pub(crate) fn producer_elsewhere(&self, key: &K) -> Option<usize> {
        let rank = self.placement.producer.as_ref()?(key);
        (rank != self.rank).then_some(rank)
    }

    /// A step here has missed an item of another rank.
    pub(crate) fn note_missed(&self, key: K, producer: usize) {
        // A fetch of no rank would not be sent; the put of the item tells the fault.
        if producer >= self.ranks {
            return;
        }
        let mut missed = self.missed.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = missed.insert(key.clone(), producer).is_none();
        drop(missed);
        if is_first && self.is_fetched() {
            self.outbox.put(producer, Tag(self.tag.0 + 1), key);
        }
    }

    /// Puts an item; `put_here` puts it on this rank. True if it was put for another rank.
    pub(crate) fn put<V>(
        &self,
        key: K,
        value: V,
        scope: PutScope,
        put_here: impl FnOnce(K, V) -> StepResult,
    ) -> StepResult<bool>
    where
        V: Message + Clone + Sync,
    {
        let homes = self.homes(&key)?;
        let is_here = homes.contains(&self.rank);
        let mut others: Vec<usize> = match scope {
            PutScope::AllRanks => homes.into_iter().filter(|&home| home != self.rank).collect(),
            PutScope::ThisRank => Vec::new(),
        };
        // The last one gets the value itself.
        let last = if is_here { None } else { others.pop() };
        for &other in &others {
            self.outbox.put(other, self.tag, (key.clone(), value.clone()));
        }
        match last {
            Some(last) => self.outbox.put(last, self.tag, (key, value)),
            None if is_here => put_here(key, value)?,
            None => {}
        }
        Ok(!others.is_empty() || last.is_some())
    }

    /// Answers a fetch: the body of the step that another rank has asked for.
    pub(crate) fn answer<'g, V>(
        &self,
        local: ItemCol<'g, K, V>,
        (to, key): (u32, K),
        step: &StepContext<'g>,
    ) -> StepResult
    where
        V: Message + Clone + Sync,
    {
        let value = step.get(local, key.clone())?.clone();
        self.outbox.put(to as usize, self.tag, (key, value));
        Ok(())
    }
}

/// A collection, whatever its types, for the report of items that were never put.
pub(crate) trait MissedItems: Send + Sync {
    fn name(&self) -> &str;

    /// The items of other ranks that steps have missed here, by the texts of their keys, with the
    /// ranks that should put them.
    fn producers(&self) -> BTreeMap<String, usize>;
}

impl<K: ItemKey + Message> MissedItems for ItemsOfRanks<K> {
    fn name(&self) -> &str {
        &self.name
    }

    fn producers(&self) -> BTreeMap<String, usize> {
        let missed = self.missed.lock().unwrap_or_else(PoisonError::into_inner);
        missed.iter().map(|(key, producer)| (format!("{key:?}"), *producer)).collect()
    }
}
