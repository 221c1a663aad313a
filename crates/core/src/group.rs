//! Groups of CPUs ([`Group`]): mobile threads move among the CPUs of a group.
//!
//! The work-stealing scheduler of `sched` makes one for its workers. `directory.rs` calls
//! `Members::post` for a mobile thread that is woken outside of its group; `events.rs` asks
//! `all_asleep_but` before it looks for a deadlock. How a thread changes its CPU is in `state.rs`.

use crate::directory::{self, Entry};
use std::fmt;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// CPUs among which threads with `Send` futures move.
///
/// A CPU of a group, [`Cpu::new_in`](crate::Cpu::new_in), creates **mobile** threads: those of
/// [`spawn`](crate::spawn) and [`fork`](crate::fork). Such a thread becomes a
/// [`SendThread`](crate::SendThread), crosses to another OS thread, and goes on with a CPU of the
/// group there. While it waits it belongs to no CPU. If it is woken on a CPU of the group, that CPU
/// makes it ready. A wake-up from elsewhere goes to a CPU of the group that sleeps, or else to the
/// CPU on which the thread ran last.
///
/// Threads of [`spawn_local`](crate::spawn_local) and [`fork_local`](crate::fork_local) stay on
/// their CPU, in a group too.
///
/// The CPUs of a group must be dropped together, when none of them runs a step any more. Each CPU
/// then cancels the waiting threads that lie in its memory.
///
/// # Paper
/// [LZ07 §4.4, Figure 17]: several `worker_main` loops on the same threads.
#[derive(Clone)]
pub struct Group {
    pub(crate) members: Arc<Members>,
}

/// The state that the CPUs of a group share.
pub(crate) struct Members {
    pub(crate) id: NonZeroU32,
    entries: Mutex<Vec<(u32, &'static Entry)>>,
}

impl Group {
    /// A group without CPUs.
    #[expect(clippy::new_without_default, reason = "each is another group: it has an identity")]
    pub fn new() -> Group {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        // After four thousand million groups the numbers repeat. Two groups that live at the same
        // time still differ in practice.
        let id = NonZeroU32::new(NEXT.fetch_add(1, Ordering::Relaxed)).unwrap_or(NonZeroU32::MAX);
        Group { members: Arc::new(Members { id, entries: Mutex::default() }) }
    }

    /// The number of threads of the group that wait for other threads or behind wakers. It is exact
    /// while none of its CPUs runs a step.
    pub fn waiting(&self) -> usize {
        self.members.waiting()
    }
}

impl Members {
    fn entries(&self) -> MutexGuard<'_, Vec<(u32, &'static Entry)>> {
        self.entries.lock().expect("no panic under this lock")
    }

    pub(crate) fn add(&self, id: u32, entry: &'static Entry) {
        self.entries().push((id, entry));
    }

    pub(crate) fn remove(&self, id: u32) {
        self.entries().retain(|(member, _)| *member != id);
    }

    pub(crate) fn waiting(&self) -> usize {
        let sum: isize = self.entries().iter().map(|(_, entry)| entry.waiting()).sum();
        sum.max(0) as usize
    }

    /// Whether all members except `me` sleep without mail.
    pub(crate) fn all_asleep_but(&self, me: &Entry) -> bool {
        self.entries().iter().all(|(_, entry)| std::ptr::eq(*entry, me) || entry.inbox.is_asleep())
    }

    /// Gives a mobile thread to a member, which resumes it: to `last` if it sleeps, else to another
    /// member that sleeps, else to `last`.
    pub(crate) fn post(&self, last: u32, key: u32) {
        let entries = self.entries();
        let asleep = |&&(_, entry): &&(u32, &Entry)| entry.inbox.is_asleep();
        let of_last = entries.iter().find(|(id, _)| *id == last);
        let chosen = of_last
            .filter(asleep)
            .or_else(|| entries.iter().find(asleep))
            .or(of_last)
            .or_else(|| entries.first())
            .map(|&(_, entry)| entry);
        drop(entries);
        if let Some(entry) = chosen {
            directory::post_to(entry, key);
        }
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("id", &self.members.id).field("waiting", &self.waiting()).finish()
    }
}
