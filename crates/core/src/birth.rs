//! Creation of threads from elsewhere: how an OS thread asks the scheduler of another OS thread for
//! a thread.
//!
//! [`Adopt`] is the way to a scheduler, and [`Door`] is the way to a single CPU. The crates above
//! hand a [`Birth`] to the [`Adopt`] that [`adopter`] has given them.

use crate::Cpu;
use crate::cpu::inner;
use crate::directory::{self, Entry};
use crate::quietly::quietly;
use std::fmt;
use std::sync::Arc;

/// A function that creates a thread on the CPU that it is given. It runs on the OS thread of that
/// CPU, between two steps.
pub type Birth = Box<dyn FnOnce(&mut Cpu) + Send>;

/// A scheduler as other OS threads see it: it takes threads that are to be created in it.
///
/// By default each CPU is such a scheduler: one that asks its CPU for [woken](Cpu::woken) threads
/// gets the new threads too. A scheduler of several CPUs may have one [`Adopt`] for all of them,
/// which it names with [`Cpu::adopts_by`].
pub trait Adopt: fmt::Debug + Send + Sync {
    /// Has the scheduler create the thread, soon.
    ///
    /// # Errors
    /// Gives `birth` back if the scheduler has ended. The caller drops it.
    fn adopt(&self, birth: Birth) -> Result<(), Birth>;
}

/// The scheduler of the running thread. `None` outside a thread.
pub fn adopter() -> Option<Arc<dyn Adopt>> {
    inner::current().map(|cpu| cpu.adopter())
}

/// The births that other OS threads have asked of a CPU.
#[derive(Default)]
pub(crate) struct Births {
    /// The number of CPUs that have had this number before, so that a door to an earlier CPU does
    /// not lead to a later one.
    life: u64,
    /// Whether the CPU still takes births.
    is_open: bool,
    list: Vec<Birth>,
}

/// The way to one CPU.
pub(crate) struct Door {
    entry: &'static Entry,
    life: u64,
}

impl Door {
    /// The way to the CPU that has this entry now. It opens the entry, so that births may come from
    /// now on.
    pub(crate) fn to(entry: &'static Entry) -> Door {
        let mut births = entry.births();
        births.is_open = true;
        Door { entry, life: births.life }
    }
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door").finish_non_exhaustive()
    }
}

impl Adopt for Door {
    fn adopt(&self, birth: Birth) -> Result<(), Birth> {
        let mut births = self.entry.births();
        if !births.is_open || births.life != self.life {
            return Err(birth);
        }
        births.list.push(birth);
        drop(births);
        // Key 0 belongs to no thread: it makes the CPU open its inbox, and then look for births.
        directory::post_to(self.entry, 0);
        Ok(())
    }
}

impl Cpu {
    /// Names the scheduler that takes threads from elsewhere for this CPU: see [`Adopt`].
    pub fn adopts_by(&mut self, adopter: Arc<dyn Adopt>) {
        self.inner().set_adopter(adopter);
    }

    /// Runs the births that were asked for.
    #[cold]
    pub(crate) fn bear(&mut self) {
        let births = std::mem::take(&mut self.inner().entry.births().list);
        for birth in births {
            // The birth may wake a foreign waker, or drop a future for which there is no room. Both
            // are code of the program, which may panic.
            quietly(|| birth(self));
        }
    }
}

impl Births {
    /// The CPU takes no more births. The caller drops those that are left, without the lock.
    #[must_use = "it is foreign code"]
    pub(crate) fn close(&mut self) -> Vec<Birth> {
        self.is_open = false;
        self.life += 1;
        std::mem::take(&mut self.list)
    }
}
