//! [`Stop`]: the signal that the server must stop, from one OS thread to all others. It comes once.
//!
//! The program requests it, as `selvedge-httpd` does at SIGTERM. The loops that accept connections
//! wait for it.

use selvedge_core::{Queue, Role, Shared, WaitQueue};
use std::fmt;
use std::sync::Arc;

/// A switch that is thrown once. Any number of threads, on any OS threads, may wait for it. Clones
/// are the same switch.
///
/// # Examples
/// ```
/// use selvedge::{round_robin, spawn};
/// use selvedge::http::Stop;
///
/// round_robin(async {
///     let stop = Stop::new();
///     let told = stop.clone();
///     let waiter = spawn(async move { told.requested().await });
///     stop.request();
///     waiter.await.unwrap();
///     assert!(stop.is_requested());
/// })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[derive(Clone)]
pub struct Stop {
    thrown: Arc<WaitQueue<bool, (), Shared>>,
}

/// Waits until the switch is thrown, and leaves it thrown.
enum Thrown {}

impl Role<bool, ()> for Thrown {
    type Output = ();

    fn attempt(thrown: &mut bool, _: &mut Queue<()>, (): &mut ()) -> Option<()> {
        thrown.then_some(())
    }

    fn granted((): &mut ()) {}

    fn abandoned(_: &mut bool, _: &mut Queue<()>, (): &mut ()) {}
}

impl Stop {
    /// A switch that is not thrown.
    pub fn new() -> Stop {
        Stop { thrown: Arc::new(WaitQueue::new(false)) }
    }

    /// Throws the switch. All threads that wait for it go on.
    pub fn request(&self) {
        self.thrown.with(|thrown, queue| {
            *thrown = true;
            while !queue.is_empty() {
                queue.grant();
            }
        });
    }

    /// Whether it has been thrown.
    pub fn is_requested(&self) -> bool {
        self.thrown.with(|thrown, _| *thrown)
    }

    /// Waits until it is thrown.
    pub async fn requested(&self) {
        self.thrown.wait::<Thrown>(()).await;
    }
}

impl Default for Stop {
    fn default() -> Stop {
        Stop::new()
    }
}

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stop").field(&self.is_requested()).finish()
    }
}
