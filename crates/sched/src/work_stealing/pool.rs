//! [`WorkerPool`]: the state that the workers of one scheduler and its handles share.
//!
//! `start.rs` makes it and starts the workers with it. A `Handle` adopts threads through it. The
//! workers look here for idle workers, for threads from outside, and for the end of the scheduler.

use super::desk::WorkerView;
use super::doors::WorkerDoors;
use super::idle_workers::IdleWorkers;
use crate::elsewhere::SleeperCpus;
use selvedge_core::{Adopt, RemoteSpawn, SendThread, Unpark};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// The state that workers and handles share.
pub(super) struct WorkerPool {
    /// The workers that search and sleep, and the threads that come from outside.
    pub(super) idle: IdleWorkers<SendThread, RemoteSpawn>,
    pub(super) views: Box<[WorkerView]>,
    /// The CPUs of each worker while it sleeps.
    pub(super) cpus: Box<[SleeperCpus]>,
    /// The way to each worker, for threads from outside that are to begin there.
    pub(super) doors: WorkerDoors,
    /// The unparker of each worker. The worker sets it before it first sleeps.
    unparkers: Box<[OnceLock<Arc<dyn Unpark>>]>,
    stopped: AtomicBool,
    /// Whether a worker has found that all threads wait for one another.
    pub(super) deadlocked: AtomicBool,
    /// Orders the start of a worker and the stop of all: either the stop finds the worker's
    /// unparker, or the worker finds that it is to stop.
    starting: Mutex<()>,
}

impl fmt::Debug for WorkerPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerPool").field("workers", &self.idle.workers()).finish_non_exhaustive()
    }
}

impl Adopt for WorkerPool {
    /// Puts `spawn` into the injector, from which the first worker that looks takes it.
    fn adopt(&self, spawn: RemoteSpawn) -> Result<(), RemoteSpawn> {
        self.unpark(self.idle.inject(spawn)?);
        Ok(())
    }

    fn cpus(&self) -> usize {
        self.idle.workers()
    }

    /// Gives `spawn` to the CPU of worker `cpu`. A worker in a long step takes it after the step.
    fn adopt_on(&self, cpu: usize, spawn: RemoteSpawn) -> Result<(), RemoteSpawn> {
        self.doors.adopt(cpu, spawn)
    }
}

impl WorkerPool {
    /// A pool of workers that have not started.
    pub(super) fn new(idle: IdleWorkers<SendThread, RemoteSpawn>, views: Vec<WorkerView>) -> WorkerPool {
        WorkerPool {
            unparkers: views.iter().map(|_| OnceLock::new()).collect(),
            cpus: SleeperCpus::of_workers(views.len()),
            doors: WorkerDoors::new(views.len()),
            idle,
            views: views.into(),
            stopped: AtomicBool::new(false),
            deadlocked: AtomicBool::new(false),
            starting: Mutex::new(()),
        }
    }

    pub(super) fn unpark(&self, worker: Option<usize>) {
        if let Some(unparker) = worker.and_then(|worker| self.unparkers[worker].get()) {
            unparker.unpark();
        }
    }

    /// Unparks a worker that is to help the calling one, which computes on.
    pub(super) fn call(&self, worker: Option<usize>) {
        if let Some(helper) = worker {
            self.cpus[helper].begin_elsewhere();
            self.unpark(worker);
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Notes the unparker of a worker that is about to start.
    pub(super) fn enlist(&self, worker: usize, unparker: Arc<dyn Unpark>) {
        let _starting = self.starting.lock().expect("no panic under this lock");
        self.unparkers[worker].set(unparker).expect("each worker starts once");
    }

    /// Stops all workers at the end of their step.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        drop(self.starting.lock().expect("no panic under this lock"));
        (0..self.unparkers.len()).for_each(|worker| self.unpark(Some(worker)));
    }
}
