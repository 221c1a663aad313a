//! What a scheduler has to do for the programs of these tests.

use selvedge_core::RunError;
use std::future::Future;

/// A scheduler that runs a main thread and the threads that it creates.
pub(crate) trait Scheduler {
    /// # Errors
    /// Those of the scheduler.
    fn run<F>(main: F) -> Result<F::Output, RunError>
    where
        F: Future + Send + 'static,
        F::Output: Send;
}
