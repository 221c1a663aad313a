//! Remote spawns: how an OS thread asks the scheduler of another OS thread to create a thread.
//!
//! A [`RemoteSpawn`] is one remote spawn. [`Adopt`] is the way to a scheduler, and [`Door`] is the
//! way to a single CPU. The crates above hand a [`RemoteSpawn`] to the [`Adopt`] that [`adopter`]
//! has given them.
//!
//! `sched`'s `Handle` is the caller there, and its work-stealing pool implements [`Adopt`]. The
//! `Door` of a CPU (`cpu.rs`) serves schedulers that have named no other way. A remote spawn runs
//! on the scheduler's own OS thread, because only there may a thread be created in the CPU's
//! memory.

use crate::cpu::inner::{Cpu, CpuInner, current};
use crate::directory::{self, Entry};
use crate::quietly::quietly;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

/// A function that creates a thread on the CPU that it is given. It runs on the OS thread of that
/// CPU, between two steps.
#[doc(alias = "remote spawn")]
pub type RemoteSpawn = Box<dyn FnOnce(&mut Cpu) + Send>;

/// A scheduler as other OS threads see it: it takes threads that are to be created in it.
///
/// By default each CPU is such a scheduler: one that asks its CPU for [woken](Cpu::woken) threads
/// gets the new threads too. A scheduler of several CPUs may have one [`Adopt`] for all of them,
/// which it names with [`Cpu::adopts_by`].
#[doc(alias = "remote spawn")]
pub trait Adopt: fmt::Debug + Send + Sync {
    /// Asks the scheduler to create the thread, soon.
    ///
    /// # Errors
    /// Gives `spawn` back if the scheduler has ended. The caller drops it.
    fn adopt(&self, spawn: RemoteSpawn) -> Result<(), RemoteSpawn>;

    /// The number of CPUs of the scheduler.
    fn cpus(&self) -> usize {
        1
    }

    /// Asks the scheduler to create the thread on one of its CPUs, soon. The CPUs have the numbers
    /// `0..cpus()`.
    ///
    /// # Errors
    /// As for [`adopt`](Adopt::adopt).
    ///
    /// # Panics
    /// If the scheduler has no CPU of this number.
    fn adopt_on(&self, cpu: usize, spawn: RemoteSpawn) -> Result<(), RemoteSpawn> {
        assert!(cpu == 0 && self.cpus() == 1, "the scheduler has no way to CPU {cpu}");
        self.adopt(spawn)
    }
}

/// The scheduler of the running thread. `None` outside a thread.
///
/// From now on threads may come from elsewhere, so a scheduler of one CPU can no longer tell from
/// its own threads alone that all of them wait for one another.
pub fn adopter() -> Option<Arc<dyn Adopt>> {
    current().map(|cpu| cpu.adopter())
}

/// The scheduler of the running thread, if it has several CPUs, all of which take threads from
/// elsewhere. `None` outside a thread.
pub fn adopter_of_cpus() -> Option<Arc<dyn Adopt>> {
    current().and_then(CpuInner::named_adopter).filter(|adopter| adopter.cpus() > 1)
}

/// The way to one CPU.
pub(crate) struct Door {
    entry: &'static Entry,
    spawns: Mutex<RemoteSpawns>,
}

/// The remote spawns that other OS threads have asked of a CPU.
#[derive(Default)]
struct RemoteSpawns {
    /// Whether the CPU is gone, so that it takes no more remote spawns.
    is_closed: bool,
    list: Vec<RemoteSpawn>,
}

impl Door {
    /// The way to the CPU that has this entry now.
    pub(crate) fn to(entry: &'static Entry) -> Door {
        Door { entry, spawns: Mutex::default() }
    }

    fn spawns(&self) -> MutexGuard<'_, RemoteSpawns> {
        self.spawns.lock().expect("no panic under this lock")
    }

    /// Makes the CPU take no more remote spawns. The caller drops the remaining ones, without the
    /// lock.
    #[must_use = "it is foreign code"]
    pub(crate) fn close(&self) -> Vec<RemoteSpawn> {
        let mut spawns = self.spawns();
        spawns.is_closed = true;
        std::mem::take(&mut spawns.list)
    }
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door").finish_non_exhaustive()
    }
}

impl Adopt for Door {
    fn adopt(&self, spawn: RemoteSpawn) -> Result<(), RemoteSpawn> {
        let mut spawns = self.spawns();
        if spawns.is_closed {
            return Err(spawn);
        }
        spawns.list.push(spawn);
        drop(spawns);
        // Key 0 belongs to no thread: it makes the CPU open its inbox, and then look for remote
        // spawns.
        directory::post_to(self.entry, 0);
        Ok(())
    }
}

impl Cpu {
    /// Names the scheduler that takes threads from elsewhere for this CPU: see [`Adopt`].
    pub fn adopts_by(&mut self, adopter: Arc<dyn Adopt>) {
        self.inner().set_adopter(adopter);
    }

    /// The way to this CPU alone: a remote spawn that is given to it runs here. A scheduler of
    /// several CPUs uses it for [`Adopt::adopt_on`].
    pub fn door(&mut self) -> Arc<dyn Adopt> {
        // A CPU without an adopter would not look for remote spawns.
        drop(self.inner().adopter());
        self.inner().door.clone()
    }

    /// Runs the remote spawns that were asked for.
    #[cold]
    pub(crate) fn run_remote_spawns(&mut self) {
        let spawns = std::mem::take(&mut self.inner().door.spawns().list);
        for spawn in spawns {
            // A remote spawn may wake a foreign waker, or drop a future for which there is no room.
            // Both are code of the program, which may panic.
            quietly(|| spawn(self));
        }
    }
}
