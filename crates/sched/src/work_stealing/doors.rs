//! [`WorkerDoors`]: the way from any OS thread to a worker that the caller names.
//!
//! `pool.rs` has them, for `Handle::spawn_on`. A worker that has begun is reached by the door of
//! its CPU (`core`'s `remote_spawn.rs`), which wakes the worker too. What comes before the worker
//! has begun waits here, and goes through that door when the worker begins. All under one lock for
//! each worker, so that nothing comes between the look whether the worker has begun and the act.

use selvedge_core::{Adopt, RemoteSpawn};
use std::sync::{Arc, Mutex, MutexGuard};

/// The ways to the workers, by their numbers.
pub(super) struct WorkerDoors(Box<[Mutex<WorkerDoor>]>);

/// The way to one worker.
enum WorkerDoor {
    /// The worker has not begun, and has these remote spawns to take in when it begins.
    Ahead(Vec<RemoteSpawn>),
    /// The worker has begun, and this is the door of its CPU.
    Begun(Arc<dyn Adopt>),
    /// The scheduler has ended.
    Closed,
}

impl WorkerDoors {
    /// The ways to workers that have not begun.
    pub(super) fn new(workers: usize) -> WorkerDoors {
        WorkerDoors((0..workers).map(|_| Mutex::new(WorkerDoor::Ahead(Vec::new()))).collect())
    }

    fn of(&self, worker: usize) -> MutexGuard<'_, WorkerDoor> {
        self.0[worker].lock().expect("no panic under this lock")
    }

    /// Gives `spawn` to a worker.
    ///
    /// # Errors
    /// Gives `spawn` back if the worker has ended.
    ///
    /// # Panics
    /// If there is no worker of this number.
    pub(super) fn adopt(&self, worker: usize, spawn: RemoteSpawn) -> Result<(), RemoteSpawn> {
        match &mut *self.of(worker) {
            WorkerDoor::Ahead(spawns) => spawns.push(spawn),
            WorkerDoor::Begun(door) => return door.adopt(spawn),
            WorkerDoor::Closed => return Err(spawn),
        }
        Ok(())
    }

    /// The worker has begun, and `door` leads to its CPU. What came before goes through it first.
    pub(super) fn begin(&self, worker: usize, door: Arc<dyn Adopt>) {
        let mut place = self.of(worker);
        for spawn in std::mem::replace(&mut *place, WorkerDoor::Begun(door.clone())).into_ahead() {
            assert!(door.adopt(spawn).is_ok(), "the CPU has just begun");
        }
    }

    /// No worker begins any more. The caller drops what came before, without the locks.
    #[must_use = "it is foreign code"]
    pub(super) fn close(&self) -> Vec<RemoteSpawn> {
        let close = |worker| std::mem::replace(&mut *self.of(worker), WorkerDoor::Closed).into_ahead();
        (0..self.0.len()).flat_map(close).collect()
    }
}

impl WorkerDoor {
    fn into_ahead(self) -> Vec<RemoteSpawn> {
        match self {
            WorkerDoor::Ahead(spawns) => spawns,
            WorkerDoor::Begun(_) | WorkerDoor::Closed => Vec::new(),
        }
    }
}
