//! How far the steps of a collection are: [`StepProgress`]. `Monitor::progress` returns it, and the
//! pictures of a monitor have it at their steps.

use std::fmt;

/// How far the steps of a collection are.
///
/// # Examples
/// See [`Graph::monitor`](crate::Graph::monitor).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StepProgress {
    /// The name of the collection.
    pub name: String,
    /// The number of instances that have ended. Of a range step, the numbers for which the body has
    /// ended.
    pub ended: u64,
    /// The number of instances for which tags were put so far. If the environment puts all tags,
    /// that is the number of all instances.
    pub known: u64,
    /// The number of instances that wait for items.
    pub waiting: u64,
    /// The number of instances that run.
    pub running: u64,
}

impl StepProgress {
    /// The progress of steps of which nothing is known yet.
    pub(crate) fn none(name: String) -> StepProgress {
        StepProgress { name, ended: 0, known: 0, waiting: 0, running: 0 }
    }

    /// A bar of `width` characters, one `#` for each part that has ended.
    pub fn bar(&self, width: usize) -> String {
        let full = self.ended.saturating_mul(width as u64).checked_div(self.known).unwrap_or(0);
        let full = (full as usize).min(width);
        format!("[{}{}]", "#".repeat(full), ".".repeat(width - full))
    }
}

impl fmt::Display for StepProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} of {}", self.name, self.ended, self.known)?;
        if self.waiting > 0 { write!(f, ", {} wait", self.waiting) } else { Ok(()) }
    }
}
