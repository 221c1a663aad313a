//! The memory that the workers of a graph share: [`WorkerMemory`]. `Core` owns it, and each
//! `StepContext` takes its pools and its numbers from there.

use crate::frames::FrameMemory;
use crate::primitives::{AtomicU64, Ordering};
use crate::waiters::WaiterMemory;

/// How many numbers for async steps a worker takes at a time.
pub(crate) const SERIALS: u64 = 1 << 16;

/// What workers take places and numbers from. `R` is a step that is ready.
pub(crate) struct WorkerMemory<R> {
    /// The places of steps that wait for items.
    pub(crate) waiters: WaiterMemory<R>,
    /// The places of the futures of async steps.
    pub(crate) frames: FrameMemory,
    /// The numbers for async steps that no worker has taken. The first one is a multiple of
    /// [`SERIALS`].
    serials: AtomicU64,
}

impl<R> WorkerMemory<R> {
    pub(crate) fn new() -> WorkerMemory<R> {
        WorkerMemory { waiters: WaiterMemory::new(), frames: FrameMemory::new(), serials: AtomicU64::new(0) }
    }

    /// Takes [`SERIALS`] numbers for async steps. Returns the first one.
    pub(crate) fn new_serials(&self) -> u64 {
        self.serials.fetch_add(SERIALS, Ordering::Relaxed)
    }
}
