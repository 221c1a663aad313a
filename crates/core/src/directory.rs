//! The directory of all CPUs of the process, by number: where a waker finds its CPU's inbox.
//!
//! Entries are never freed, so that a waker may look one up at any time; a number is used again by a later CPU.

use crate::alarm::GivenUp;
use crate::inbox::Inbox;
use crate::{Unavailable, Unpark};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

const CPUS_MAX: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct Entry {
    pub(crate) inbox: Inbox,
    pub(crate) given_up: GivenUp,
    /// How to wake the CPU's OS thread when it sleeps; known from the first sleep on.
    unpark: Mutex<Option<Arc<dyn Unpark>>>,
    in_use: AtomicBool,
}

static ENTRIES: [OnceLock<Entry>; CPUS_MAX] = [const { OnceLock::new() }; CPUS_MAX];
/// Numbers to be used again, and the next never used.
static NUMBERS: Mutex<(Vec<u32>, u32)> = Mutex::new((Vec::new(), 0));

pub(crate) fn enter() -> Result<(u32, &'static Entry), Unavailable> {
    let mut numbers = NUMBERS.lock().expect("no panic under this lock");
    let id = match numbers.0.pop() {
        Some(id) => id,
        None if numbers.1 as usize == CPUS_MAX => return Err(Unavailable::too_many_cpus(CPUS_MAX)),
        None => {
            numbers.1 += 1;
            numbers.1 - 1
        }
    };
    let entry = ENTRIES[id as usize].get_or_init(Entry::default);
    entry.inbox.open();
    entry.in_use.store(true, Ordering::Release);
    Ok((id, entry))
}

pub(crate) fn leave(id: u32) {
    if let Some(entry) = ENTRIES[id as usize].get() {
        entry.in_use.store(false, Ordering::Release);
        entry.set_unpark(None);
    }
    NUMBERS.lock().expect("no panic under this lock").0.push(id);
}

/// Tells a CPU to resume a thread.
pub(crate) fn post(id: u32, key: u32) {
    let Some(entry) = ENTRIES.get(id as usize).and_then(OnceLock::get) else { return };
    if entry.in_use.load(Ordering::Acquire) && entry.inbox.post(key) {
        let unpark = entry.unpark.lock().expect("no panic under this lock").clone();
        if let Some(unpark) = unpark {
            unpark.unpark();
        }
    }
}

/// Whether every CPU but `me` sleeps without mail.
pub(crate) fn all_asleep_but(me: &Entry) -> bool {
    let entries = ENTRIES.iter().map_while(OnceLock::get);
    entries.filter(|e| !std::ptr::eq(*e, me) && e.in_use.load(Ordering::Acquire)).all(|e| e.inbox.is_asleep())
}

impl Entry {
    pub(crate) fn set_unpark(&self, unpark: Option<Arc<dyn Unpark>>) {
        *self.unpark.lock().expect("no panic under this lock") = unpark;
    }
}
