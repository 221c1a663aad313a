//! [`Bell`]: how a process that sleeps learns that another has something for it.
//!
//! Each rank of a job has one, in shared memory. `attendant.rs` sleeps at it.
//!
//! # The protocol
//! A process that may go to sleep arms its bell, then looks whether something has come, and sleeps
//! if nothing has. Another process writes what it has, and then looks whether the bell is armed.
//! Between the store and the load there is a sequentially consistent fence on both sides. So at
//! least one of them sees what the other has stored: the first finds the thing, or the second finds
//! the bell armed and rings it. A bell that was rung is not armed any more, so of several that have
//! something one makes the system call.
//!
//! Ringing counts `rung` up, and the sleep is a wait for a count that differs from the count
//! before the bell was armed. So a ring between the look and the sleep ends the sleep at once.
//!
//! Several OS threads of the process may arm the bell and disarm it. One that has disarmed it looks
//! again after it has armed it, or sees to it that another OS thread looks after a short sleep. So
//! at any time the bell is armed, or an OS thread will look.
//!
//! # A process that is killed while it rings
//! It may have taken the mark that the bell is armed, and not have rung. The process at the bell
//! then sleeps although something has come, and others see no need to ring. So the end of a process
//! rings each bell, armed or not: the sleeper looks, and finds both what has come and the end.

use super::primitives::{AtomicU32, Ordering, fence};

/// The bell of one process. All zero is a bell that is not armed.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Bell {
    armed: AtomicU32,
    rung: AtomicU32,
}

impl Bell {
    /// A bell in memory of this process: for models.
    #[cfg(test)]
    pub(crate) fn new() -> Bell {
        Bell { armed: AtomicU32::new(0), rung: AtomicU32::new(0) }
    }

    /// Arms the bell. The caller looks afterwards whether something has come.
    pub(crate) fn arm(&self) {
        self.armed.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// The caller will look, so no process need ring. Whether the bell was armed. A bell that is
    /// not armed is not written, because that would take its memory from the CPUs of the others.
    pub(crate) fn disarm(&self) -> bool {
        let is_armed = self.armed.load(Ordering::Relaxed) != 0;
        if is_armed {
            self.armed.store(0, Ordering::Relaxed);
        }
        is_armed
    }

    /// Rings if the bell is armed: after the caller has written what it has. If it is true, the
    /// caller ends the sleeps for [`count`](Self::count).
    #[must_use]
    pub(crate) fn ring(&self) -> bool {
        fence(Ordering::SeqCst);
        if self.armed.load(Ordering::Relaxed) == 0 || self.armed.swap(0, Ordering::Relaxed) == 0 {
            return false;
        }
        self.rung.fetch_add(1, Ordering::Release);
        true
    }

    /// Rings whether the bell is armed or not. The caller ends the sleeps for
    /// [`count`](Self::count).
    pub(crate) fn ring_anyway(&self) {
        self.rung.fetch_add(1, Ordering::Release);
    }

    /// How often the bell was rung: read before it is armed.
    pub(crate) fn rung(&self) -> u32 {
        self.rung.load(Ordering::Acquire)
    }

    /// The word that a sleep waits for.
    pub(super) fn count(&self) -> &AtomicU32 {
        &self.rung
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_bell_rings_once_for_each_time_it_is_armed() {
        let bell = Bell::new();
        let before = bell.rung();
        assert!(!bell.ring());
        bell.arm();
        assert!(bell.ring());
        assert!(!bell.ring());
        assert_eq!(bell.rung(), before + 1);
        bell.arm();
        assert!(bell.disarm());
        assert!(!bell.disarm());
        assert!(!bell.ring());
        bell.ring_anyway();
        assert_eq!(bell.rung(), before + 2);
    }
}
