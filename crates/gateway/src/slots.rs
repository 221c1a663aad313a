//! [`ProgramSlots`]: how many programs run at once, and how many requests wait for one.

use selvedge_io::time::timeout;
use selvedge_sync::{OwnedPermit, Semaphore};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// A limit of the programs that run at once, with a queue of limited length in front. Clones
/// share both, so one value may limit the workers of a process together.
///
/// # Examples
/// ```
/// use selvedge::gateway::ProgramSlots;
/// use std::time::Duration;
///
/// let slots = ProgramSlots::new(20).queue(100).patience(Duration::from_secs(5));
/// assert_eq!((slots.free(), slots.running(), slots.waiting()), (20, 0, 0));
/// ```
#[derive(Clone, Debug)]
pub struct ProgramSlots {
    free: Arc<Semaphore>,
    at_once: u32,
    waiting: Arc<AtomicUsize>,
    queue: usize,
    patience: Duration,
}

/// The right to run a program, until it is dropped.
pub(crate) type ProgramSlot = OwnedPermit<Arc<Semaphore>>;

impl ProgramSlots {
    /// At most `at_once` programs at once, 128 requests in the queue, and 10 s of waiting.
    pub fn new(at_once: u32) -> ProgramSlots {
        let free = Arc::new(Semaphore::new(at_once));
        let patience = Duration::from_secs(10);
        ProgramSlots { free, at_once, waiting: Arc::default(), queue: 128, patience }
    }

    /// The most requests that wait. One more is answered `503 Service Unavailable` at once.
    #[must_use]
    pub fn queue(mut self, requests: usize) -> ProgramSlots {
        self.queue = requests;
        self
    }

    /// The longest time for which a request waits. After it the answer is 503.
    #[must_use]
    pub fn patience(mut self, limit: Duration) -> ProgramSlots {
        self.patience = limit;
        self
    }

    /// The number of programs that may be started now.
    pub fn free(&self) -> u32 {
        self.free.available()
    }

    /// The number of programs that run now.
    pub fn running(&self) -> u32 {
        self.at_once.saturating_sub(self.free.available())
    }

    /// The number of requests that wait until a program may be started.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Relaxed)
    }

    /// Waits for the right to run a program. `None` if the queue is full, or the wait is too long.
    pub(crate) async fn take(&self) -> Option<ProgramSlot> {
        let acquire = Semaphore::acquire_owned(self.free.clone(), 1);
        if self.free.available() > 0 && self.waiting.load(Relaxed) == 0 {
            return timeout(self.patience, acquire).await.ok();
        }
        if self.waiting.fetch_add(1, Relaxed) >= self.queue {
            self.waiting.fetch_sub(1, Relaxed);
            return None;
        }
        let _waiting = Waiting(&self.waiting);
        timeout(self.patience, acquire).await.ok()
    }
}

/// Counts a request as waiting until it is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
