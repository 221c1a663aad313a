//! Threads that are created from elsewhere: how another OS thread asks for one.

use crate::directory::{self, Entry};
use crate::thread::quietly;
use crate::{Cpu, cpu};
use std::fmt;
use std::sync::Arc;

/// Creates a thread on the CPU that it is given. It runs on that one's OS thread, between two steps.
pub type Birth = Box<dyn FnOnce(&mut Cpu) + Send>;

/// A scheduler as others see it: it takes threads that are to be created in it.
///
/// Each CPU is one by itself: a scheduler that asks it for [woken](Cpu::woken) threads has those too. A scheduler of several
/// CPUs may have one for all of them, which it names with [`Cpu::adopts_by`].
pub trait Adopt: fmt::Debug + Send + Sync {
    /// Has the thread created, soon.
    ///
    /// # Errors
    /// Gives it back if the scheduler has ended. It is for the caller to drop.
    fn adopt(&self, birth: Birth) -> Result<(), Birth>;
}

/// The scheduler of the running thread. `None` outside a thread.
pub fn adopter() -> Option<Arc<dyn Adopt>> {
    cpu::current().map(|cpu| cpu.adopter())
}

/// What other OS threads have asked of a CPU.
#[derive(Default)]
pub(crate) struct Births {
    /// How many CPUs have had this number, so that a way to an earlier one does not lead to a later one.
    life: u64,
    /// Whether the CPU still comes to them.
    is_open: bool,
    list: Vec<Birth>,
}

/// The way to one CPU.
pub(crate) struct Door {
    entry: &'static Entry,
    life: u64,
}

impl Door {
    /// The way to the CPU that has this entry now. Anything may come by it from now on.
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
        // A key that is no thread's: the CPU opens its inbox, and looks for what was born.
        directory::post_to(self.entry, 0);
        Ok(())
    }
}

impl Cpu {
    /// Names the scheduler that takes threads from elsewhere for this CPU: see [`Adopt`].
    pub fn adopts_by(&mut self, adopter: Arc<dyn Adopt>) {
        self.inner().set_adopter(adopter);
    }

    /// Creates what was asked for.
    #[cold]
    pub(crate) fn bear(&mut self) {
        let births = std::mem::take(&mut self.inner().entry.births().list);
        for birth in births {
            // It may wake a foreign waker, or drop a future for which there is no room.
            quietly(|| birth(self));
        }
    }
}

impl Births {
    /// The CPU comes to them no more. What is left is to be dropped, without the lock.
    #[must_use = "it is foreign code"]
    pub(crate) fn close(&mut self) -> Vec<Birth> {
        self.is_open = false;
        self.life += 1;
        std::mem::take(&mut self.list)
    }
}
