//! Faults that tests put into this crate's own code, where its peers have theirs: a put that is
//! lost, a wake-up that is lost, a second put that is swallowed, a run that ends early. The random
//! graphs of the suite notice each of them.
//!
//! A fault is that of one OS thread, so that other tests go on beside it. Only tests have this
//! file: the four places that ask for a fault ask for nothing in other builds.

use std::cell::Cell;
use std::panic;

#[path = "../tests/suite/random_graphs/mod.rs"]
mod random_graphs;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SeededFault {
    /// A put returns, and the item is not there. In `StepContext::put_as`.
    LostPut,
    /// A step that waits for an item is forgotten when the item is put. In `StepContext::wake`.
    LostWakeUp,
    /// A second put of an item is no fault. In `StepContext::put_again`.
    SwallowedPut,
    /// A scheduler ends while a step is ready. In `Affine`.
    EarlyEnd,
}

thread_local! {
    static SEEDED: Cell<Option<SeededFault>> = const { Cell::new(None) };
}

/// Whether this OS thread has the fault.
pub(crate) fn is_seeded(fault: SeededFault) -> bool {
    SEEDED.get() == Some(fault)
}

/// How many of the random graphs are noticed to be wrong.
fn noticed(fault: Option<SeededFault>) -> usize {
    SEEDED.set(fault);
    let is_noticed = |seed: &u64| panic::catch_unwind(|| random_graphs::check(*seed)).is_err();
    let noticed = (0..12).filter(is_noticed).count();
    SEEDED.set(None);
    noticed
}

#[test]
fn each_fault_in_this_crate_is_noticed_by_the_random_graphs() {
    assert_eq!(noticed(None), 0);
    for fault in
        [SeededFault::LostPut, SeededFault::LostWakeUp, SeededFault::SwallowedPut, SeededFault::EarlyEnd]
    {
        let noticed = noticed(Some(fault));
        assert!(noticed > 0, "{fault:?} was not noticed");
    }
}

#[cfg(test)]
mod tests {
    use crate::schedulers::OneByOne;
    use crate::{GraphError, graph};

    #[test]
    #[should_panic = "1 steps wait for items, and the items know of 0"]
    fn a_step_that_its_item_forgets_is_noticed() {
        graph(|graph| {
            let tags = graph.tags::<u32>("tags");
            let items = graph.items::<u32, u32>("items");
            graph.prescribe(tags, "get", move |n, step| step.get(items, n).map(|_| ()));
            graph.initialize(|env| env.put_tag(tags, 7)).unwrap();
            assert!(matches!(graph.run(&OneByOne), Err(GraphError::Stuck(_))));
            let place = items.0.storage.find(&7).unwrap();
            drop(place.slot.state.take_waiters());
            let _ = graph.run(&OneByOne);
        });
    }
}
