//! The directory of all CPUs of the process, by number. Wakers find the inbox of their CPU here.
//!
//! Entries are never freed, so a waker may look one up at any time. A later CPU uses the number of
//! an earlier one again.
//!
//! An [`Entry`] has what is reached from outside a CPU: its inbox, its memory, its group, and the
//! count of its cancelled sleeps. `cpu.rs` enters and leaves it. `waker.rs`, `group.rs` and
//! `remote_spawn.rs` post to it, and `quiet.rs` calls a CPU through it to look for a deadlock.

use crate::alarm::CancelCount;
use crate::arena::CpuError;
use crate::cpu::step::CpuMemory;
use crate::group::Members;
use crate::inbox::Inbox;
use crate::quiet::Quiet;
use crate::unpark::Unpark;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

const CPUS_MAX: usize = 4096;

/// Different OS threads write to the entries all the time, so no two entries share a cache line.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Entry {
    pub(crate) inbox: Inbox,
    pub(crate) cancel_count: CancelCount,
    /// The group the CPU belongs to.
    group: Mutex<Option<Arc<Members>>>,
    /// The handle that wakes the CPU's OS thread when it sleeps. It is known from the first sleep
    /// on.
    unpark: Mutex<Option<Arc<dyn Unpark>>>,
    in_use: AtomicBool,
    /// The memory of the CPU. Like the entry, it is never freed.
    pub(crate) memory: OnceLock<CpuMemory>,
}

/// Null if no CPU has had this number yet. Otherwise the entry was leaked by `enter`, and the
/// pointer does not change again.
static ENTRIES: [AtomicPtr<Entry>; CPUS_MAX] = [const { AtomicPtr::new(ptr::null_mut()) }; CPUS_MAX];
/// The numbers to be used again, and the next number that was never used.
static NUMBERS: Mutex<(Vec<u32>, u32)> = Mutex::new((Vec::new(), 0));

pub(crate) fn enter(group: Option<Arc<Members>>) -> Result<(u32, &'static Entry), CpuError> {
    let mut numbers = NUMBERS.lock().expect("no panic under this lock");
    let id = match numbers.0.pop() {
        Some(id) => id,
        None if numbers.1 as usize == CPUS_MAX => return Err(CpuError::too_many_cpus(CPUS_MAX)),
        None => {
            numbers.1 += 1;
            numbers.1 - 1
        }
    };
    let entry = known(id).unwrap_or_else(|| {
        // Only this call has the number, so no other call sets the entry.
        let entry: &'static mut Entry = Box::leak(Box::default());
        ENTRIES[id as usize].store(entry, Ordering::Release);
        entry
    });
    entry.inbox.renew();
    if let Some(group) = &group {
        group.add(id, entry);
    }
    *entry.group.lock().expect("no panic under this lock") = group;
    entry.in_use.store(true, Ordering::Release);
    Ok((id, entry))
}

pub(crate) fn leave(id: u32) {
    if let Some(entry) = known(id) {
        entry.in_use.store(false, Ordering::Release);
        entry.set_unpark(None);
        let group = entry.group.lock().expect("no panic under this lock").take();
        if let Some(group) = group {
            group.remove(id);
        }
    }
    NUMBERS.lock().expect("no panic under this lock").0.push(id);
}

/// The entry of that number, if a CPU has ever had it.
fn known(id: u32) -> Option<&'static Entry> {
    let entry = ENTRIES.get(id as usize)?.load(Ordering::Acquire);
    // SAFETY: the pointer is null, or leaked by `enter`.
    unsafe { entry.as_ref() }
}

fn entry(id: u32) -> Option<&'static Entry> {
    known(id).filter(|entry| entry.in_use.load(Ordering::Acquire))
}

/// The entries of all CPUs that are in use.
fn entries() -> impl Iterator<Item = &'static Entry> {
    (0..CPUS_MAX as u32).map_while(known).filter(|entry| entry.in_use.load(Ordering::Acquire))
}

/// Posts the key of a thread to a CPU, which then resumes the thread.
pub(crate) fn post(id: u32, key: u32) {
    if let Some(entry) = entry(id) {
        post_to(entry, key);
    }
}

/// Gives a mobile thread to the group of CPU `home`, which resumes it. The thread lies in the
/// memory of `home`, and ran last on CPU `last`.
#[cold]
pub(crate) fn post_mobile(home: u32, last: u32, key: u32) {
    let group = entry(home).and_then(|e| e.group.lock().expect("no panic under this lock").clone());
    if let Some(group) = group {
        group.post(last, key);
    }
}

pub(crate) fn post_to(entry: &Entry, key: u32) {
    if entry.inbox.post(key) {
        entry.unpark();
    }
}

/// Ends the CPU's present sleep, or its next one.
pub(crate) fn call(entry: &Entry) {
    if entry.inbox.call() {
        entry.unpark();
    }
}

/// Whether all CPUs sleep, and are quiet.
pub(crate) fn are_all_quiet() -> bool {
    entries().all(|entry| entry.inbox.is_asleep() && entry.inbox.is_quiet())
}

/// Calls a quiet CPU, so that it checks for a deadlock; but only if all CPUs sleep.
pub(crate) fn call_one() {
    let mut looks = None;
    for entry in entries() {
        if !entry.inbox.is_asleep() {
            return;
        }
        if looks.is_none() && entry.inbox.is_quiet() {
            looks = Some(entry);
        }
    }
    if let Some(entry) = looks {
        call(entry);
    }
}

impl Quiet {
    /// One more OS thread is quiet from now on. If it may have been the last active one, a
    /// scheduler checks for a deadlock.
    #[expect(clippy::new_without_default, reason = "it is a declaration, not a value")]
    pub fn new() -> Quiet {
        let quiet = Quiet::of_scheduler();
        call_one();
        quiet
    }
}

impl Entry {
    /// The number of threads that the CPU keeps. In a group it is the CPU's share of the sum.
    pub(crate) fn waiting(&self) -> isize {
        self.memory.get().map_or(0, |memory| memory.step().waiting())
    }

    fn unpark(&self) {
        let unpark = self.unpark.lock().expect("no panic under this lock").clone();
        if let Some(unpark) = unpark {
            unpark.unpark();
        }
    }

    pub(crate) fn set_unpark(&self, unpark: Option<Arc<dyn Unpark>>) {
        *self.unpark.lock().expect("no panic under this lock") = unpark;
    }
}
