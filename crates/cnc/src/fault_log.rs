//! The faults of a graph: [`FaultLog`]. `Core` owns it, and stops the run if the log says so.

use crate::error::StepFault;
use crate::faults::settle;
use crate::primitives::{AtomicBool, Mutex, Ordering, lock};
use std::mem;

/// The faults of a graph, since it was made or reset.
pub(crate) struct FaultLog {
    /// The faults since the last report.
    faults: Mutex<Vec<StepFault>>,
    /// The faults that were reported.
    reported: Mutex<Vec<StepFault>>,
    /// Whether a fault stops the others.
    stops: AtomicBool,
}

impl FaultLog {
    pub(crate) fn new() -> FaultLog {
        FaultLog {
            faults: Mutex::new(Vec::new()),
            reported: Mutex::new(Vec::new()),
            stops: AtomicBool::new(true),
        }
    }

    /// Adds a fault. True if it is to stop the run.
    #[must_use]
    pub(crate) fn note(&self, fault: StepFault) -> bool {
        lock(&self.faults).push(fault);
        self.stops.load(Ordering::Relaxed)
    }

    /// Lets the run go on after a fault, from now on.
    pub(crate) fn go_on(&self) {
        self.stops.store(false, Ordering::Relaxed);
    }

    /// All faults so far, the smallest first. A fault that was reported before has the text of an
    /// error alone.
    pub(crate) fn report(&self) -> Vec<StepFault> {
        let mut faults = mem::take(&mut *lock(&self.faults));
        let mut reported = lock(&self.reported);
        let again: Vec<StepFault> = faults.iter().map(StepFault::again).collect();
        faults.extend(reported.iter().map(StepFault::again));
        reported.extend(again);
        settle(faults)
    }

    /// Takes all faults out, for the caller to drop. They may have errors of the program.
    pub(crate) fn take(&self) -> [Vec<StepFault>; 2] {
        [&self.faults, &self.reported].map(|faults| mem::take(&mut *lock(faults)))
    }
}
