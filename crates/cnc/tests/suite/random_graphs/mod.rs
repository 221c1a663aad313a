//! Random graphs, against an interpreter that evaluates their nodes one after the other.
//!
//! `interpreted.rs` checks many of them. The crate's own tests (`src/seeded.rs`) check some after
//! they have put a fault into the crate.

mod run;
mod spec;

use selvedge_cnc::schedulers::{Affine, OneByOne, Scheduler, Stealing, TaskPool};

pub(crate) use spec::Outcome;
use spec::Spec;

/// Compares the graph of a seed with the interpreter, under several schedulers. Returns what the
/// interpreter says, and whether the items were counted.
pub(crate) fn check(seed: u64) -> (Outcome, bool) {
    let spec = Spec::random(seed);
    let (expected, counts) = spec.interpret();
    let workers = 1 + seed as usize % 4;
    let schedulers: [&dyn Scheduler; 5] = [
        &OneByOne,
        &Stealing::new(workers),
        &TaskPool::fuzz(workers, seed),
        &TaskPool::fifo(workers),
        &Affine::new(workers),
    ];
    for (number, scheduler) in schedulers.into_iter().enumerate() {
        assert_eq!(spec.run(scheduler, None), expected, "seed {seed}, scheduler {number}");
        if let Some(counts) = &counts {
            let counted = spec.run(scheduler, Some(counts));
            assert_eq!(counted, expected, "seed {seed}, scheduler {number}, counted");
        }
    }
    (expected, counts.is_some())
}
