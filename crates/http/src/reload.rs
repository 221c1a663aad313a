//! [`Reload`]: the signal that files have changed, from one OS thread to all others. It may come many
//! times.
//!
//! The program requests it, as `selvedge-httpd` does at SIGHUP. A thread of each worker waits for
//! it, and then has the worker's `Site` look all files up anew.

use selvedge_core::{Queue, Role, Shared, WaitQueue};
use std::fmt;
use std::sync::Arc;

/// A bell that any number of threads, on any OS threads, wait for. Clones are the same bell.
///
/// # Examples
/// ```
/// use selvedge_core::{round_robin, spawn};
/// use selvedge_http::Reload;
///
/// round_robin(async {
///     let reload = Reload::new();
///     let told = reload.clone();
///     let listener = spawn(async move {
///         let mut heard = 0;
///         told.requested(&mut heard).await;
///         heard
///     });
///     reload.request();
///     assert_eq!(listener.await.unwrap(), 1);
/// })?;
/// # Ok::<(), selvedge_core::RunError>(())
/// ```
#[derive(Clone)]
pub struct Reload {
    requests: Arc<WaitQueue<u64, u64, Shared>>,
}

/// Waits until there were more requests than the waiter has counted.
enum Newer {}

impl Role<u64, u64> for Newer {
    type Output = ();

    fn attempt(requests: &mut u64, _: &mut Queue<u64>, heard: &mut u64) -> Option<()> {
        (*requests > *heard).then_some(())
    }

    fn granted(_: &mut u64) {}

    fn abandoned(_: &mut u64, _: &mut Queue<u64>, _: &mut u64) {}
}

impl Reload {
    /// A bell with no ring yet.
    pub fn new() -> Reload {
        Reload { requests: Arc::new(WaitQueue::new(0)) }
    }

    /// Rings the bell. All threads that wait for it go on.
    pub fn request(&self) {
        self.requests.with(|requests, queue| {
            *requests += 1;
            while !queue.is_empty() {
                queue.grant();
            }
        });
    }

    /// Waits until the number of rings is greater than `heard`, and then sets `heard` to that
    /// number. So the caller sees several rings between two calls as one.
    pub async fn requested(&self, heard: &mut u64) {
        self.requests.wait::<Newer>(*heard).await;
        *heard = self.requests.with(|requests, _| *requests);
    }
}

impl Default for Reload {
    fn default() -> Reload {
        Reload::new()
    }
}

impl fmt::Debug for Reload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reload").field(&self.requests.with(|requests, _| *requests)).finish()
    }
}
