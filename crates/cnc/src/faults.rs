//! The order of faults in a report, and the faults of an item that several steps have put.
//!
//! `StepContext::fault`, `StepContext::double_put` and `Core::left_over` make faults.
//! `FaultLog::report` and `Core::left_over` sort them with [`settle`]. The order has no time and
//! no worker in it, so it does not depend on the schedule.
//!
//! **The pairs of a double put.** A put finds the put that came first in time. If three steps put
//! an item, which pairs are found depends on the schedule, but all three steps are in them. So
//! [`settle`] collects the steps of each item, and pairs the first in the order of steps with each
//! of the others.

use crate::error::{FaultCause, StepFault};
use std::collections::{BTreeMap, BTreeSet};

/// The order of faults: by the cause, the number of the collection or step, the word of the key or
/// tag, and the text of both.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FaultOrder {
    pub(crate) cause: u8,
    pub(crate) collection: usize,
    pub(crate) word: u64,
    pub(crate) key: String,
    pub(crate) step: String,
    pub(crate) tag: String,
}

/// An item, as faults and reports name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FaultyItem {
    /// The number of the collection in the order of reports; see `ItemStore::report_number`.
    pub(crate) order: usize,
    /// The number of the collection.
    pub(crate) store: usize,
    pub(crate) collection: String,
    /// The word of the key, if it fits.
    pub(crate) word: u64,
    pub(crate) key: String,
}

/// A step that has put an item: its place in the order of steps, then its name and its tag.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PutBy {
    /// The number of the step collection.
    pub(crate) row: usize,
    /// The word of the tag, if it fits.
    pub(crate) word: u64,
    pub(crate) step: String,
    pub(crate) tag: String,
}

/// The two puts of a [`FaultCause::DoublePut`].
#[derive(Clone, Debug)]
pub(crate) struct DoublePut {
    pub(crate) item: FaultyItem,
    pub(crate) puts: [PutBy; 2],
}

impl DoublePut {
    pub(crate) fn fault(self) -> StepFault {
        let DoublePut { item, mut puts } = self;
        puts.sort();
        let order = FaultOrder {
            cause: FaultCause::DOUBLE_PUT,
            collection: item.order,
            word: item.word,
            key: item.key.clone(),
            step: puts[0].step.clone(),
            tag: puts[0].tag.clone(),
        };
        let steps = puts.each_ref().map(|put| (put.step.clone(), put.tag.clone()));
        let (collection, key) = (item.collection.clone(), item.key.clone());
        let why = FaultCause::DoublePut { collection, key, steps };
        StepFault { order, puts: Some(DoublePut { item, puts }), why }
    }
}

/// Pairs the steps of each item that was put several times, and sorts the faults.
pub(crate) fn settle(faults: Vec<StepFault>) -> Vec<StepFault> {
    let mut steps_of: BTreeMap<FaultyItem, BTreeSet<PutBy>> = BTreeMap::new();
    let mut settled = Vec::new();
    for fault in faults {
        match fault.puts {
            Some(double) => steps_of.entry(double.item).or_default().extend(double.puts),
            None => settled.push(fault),
        }
    }
    for (item, steps) in steps_of {
        let mut steps = steps.into_iter();
        let Some(first) = steps.next() else { continue };
        let mut pair = |other| {
            let (item, puts) = (item.clone(), [first.clone(), other]);
            settled.push(DoublePut { item, puts }.fault());
        };
        match steps.next() {
            // One step has put the item twice, or several steps with tags that are not known.
            None => pair(first.clone()),
            Some(second) => std::iter::once(second).chain(steps).for_each(pair),
        }
    }
    settled.sort_by_cached_key(|fault| {
        let later = fault.puts.as_ref().map(|double| double.puts[1].clone());
        (fault.order.clone(), later, fault.to_string())
    });
    settled
}
