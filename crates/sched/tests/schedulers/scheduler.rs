//! What a scheduler has to do for the programs of these tests.

use selvedge_core::RunError;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

/// A main thread. It is boxed, so that the compiler builds each test once, and not once for each
/// scheduler.
pub(crate) type Main = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A scheduler that runs a main thread and the threads that it creates.
#[derive(Clone, Copy)]
pub(crate) struct Scheduler(pub(crate) fn(Main) -> Result<(), RunError>);

/// Runs `main` under `scheduler`, and returns its result.
///
/// # Errors
/// Those of the scheduler.
pub(crate) fn run<F>(scheduler: Scheduler, main: F) -> Result<F::Output, RunError>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    let output = Arc::new(Mutex::new(None));
    let place = Arc::clone(&output);
    (scheduler.0)(Box::pin(async move {
        let result = main.await;
        *place.lock().unwrap() = Some(result);
    }))?;
    Ok(output.lock().unwrap().take().expect("the main thread has ended"))
}
