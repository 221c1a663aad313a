//! How the run of each rank has ended, and the one result of all: [`agree`].
//!
//! `DistributedGraph::run` calls it at the end of each run. Every rank gets the outcomes of all, in
//! the order of the ranks, and makes the same error of them. So the error does not depend on the
//! rank that looks.

use crate::error::{DistributedError, MissingOnRank, StuckRanks};
use crate::item_collection::MissedItems;
use selvedge_cnc::{FaultCause, GraphError, Stuck};
use selvedge_direct::wait;
use selvedge_mpi::Communicator;
use std::collections::BTreeMap;

/// The begin of the name of each step that answers fetches.
pub(crate) const FETCH: &str = "fetch of ";

/// A [`MissingOnRank`] without its rank.
type MissingMessage = (String, String, bool, Vec<(String, String)>, Option<u64>);

/// How the run of one rank has ended, as a message: its kind, the missing items, and the faults.
type OutcomeMessage = (u8, Vec<MissingMessage>, Vec<String>);

const FINISHED: u8 = 0;
const STUCK: u8 = 1;
const FAILED: u8 = 2;
/// Failed, by counts of items that are left alone: other ranks that are stuck may be the reason.
const LEFT_OVER: u8 = 3;
const CANCELLED: u8 = 4;

/// Tells the other ranks how the run has ended here, and makes one error of all ends.
///
/// # Errors
/// If a rank has not finished.
pub(crate) fn agree(
    comm: &Communicator,
    ended: Result<(), GraphError>,
    missed: &[&dyn MissedItems],
) -> Result<(), DistributedError> {
    all_outcomes(wait(comm.allgather(outcome(ended, missed)))?)
}

fn outcome(ended: Result<(), GraphError>, missed: &[&dyn MissedItems]) -> OutcomeMessage {
    match ended {
        Ok(()) => (FINISHED, Vec::new(), Vec::new()),
        Err(GraphError::Stuck(stuck)) => (STUCK, missing(stuck, missed), Vec::new()),
        Err(GraphError::Failed(faults)) => {
            let is_left_over = |why: &FaultCause| matches!(why, FaultCause::LeftOver { .. });
            let kind = if faults.iter().all(|fault| is_left_over(fault.why())) { LEFT_OVER } else { FAILED };
            (kind, Vec::new(), faults.iter().map(ToString::to_string).collect())
        }
        Err(_) => (CANCELLED, Vec::new(), Vec::new()),
    }
}

/// The items for which steps of the program wait here. A fetch of another rank waits for the same
/// item as a step there, which is told there.
fn missing(stuck: Stuck, missed: &[&dyn MissedItems]) -> Vec<MissingMessage> {
    let producers: BTreeMap<&str, BTreeMap<String, usize>> =
        missed.iter().map(|items| (items.name(), items.producers())).collect();
    let items = stuck.items.into_iter().filter_map(|item| {
        let steps: Vec<_> = item.steps.into_iter().filter(|(name, _)| !name.starts_with(FETCH)).collect();
        let producer = producers.get(&*item.collection).and_then(|of| of.get(&item.key)).copied();
        let producer = producer.map(|rank| rank as u64);
        (!steps.is_empty()).then_some((item.collection, item.key, item.was_put, steps, producer))
    });
    items.collect()
}

fn all_outcomes(all: Vec<OutcomeMessage>) -> Result<(), DistributedError> {
    let kinds: Vec<u8> = all.iter().map(|(kind, ..)| *kind).collect();
    let is_any = |kind| kinds.contains(&kind);
    let (mut items, mut faults) = (Vec::new(), Vec::new());
    for (rank, (_, of_rank, texts)) in all.into_iter().enumerate() {
        faults.extend(texts.into_iter().map(|text| (rank, text)));
        items.extend(of_rank.into_iter().map(|(collection, key, was_put, steps, producer)| {
            let producer = producer.map(|rank| rank as usize);
            MissingOnRank { rank, collection, key, was_put, steps, producer }
        }));
    }
    if is_any(FAILED) {
        Err(DistributedError::Failed(faults))
    } else if is_any(CANCELLED) {
        Err(DistributedError::Cancelled)
    } else if is_any(STUCK) {
        Err(DistributedError::Stuck(StuckRanks { items }))
    } else if is_any(LEFT_OVER) {
        Err(DistributedError::Failed(faults))
    } else {
        Ok(())
    }
}
