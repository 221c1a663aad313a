//! [`ThreadRecord`]: what is known of a thread, in a table of the process.
//!
//! The observer of each CPU (`recorder.rs`) writes the records; `dump.rs`, `counters.rs` and
//! `helper.rs` read them. The table belongs to the process, because threads move between CPUs. It
//! is cut into parts by the chunk of memory in which a thread lies, so that mostly one CPU alone
//! uses a part. The lock of a part is taken in each step, so no slow work belongs under it.

use crate::descriptors::Descriptors;
use crate::words;
use selvedge_core::observe::{self, End, ThreadId, WaitReason};
use selvedge_core::{Lock, Time, WordLock};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, LazyLock};

/// The record of a thread.
#[derive(Debug, Clone)]
pub(crate) struct ThreadRecord {
    pub(crate) thread: ThreadId,
    /// How its last step ended; `None` in its first step.
    pub(crate) end: Option<End>,
    pub(crate) several: bool,
    /// When its last step ended.
    pub(crate) since: Time,
    /// The CPU it ran on.
    pub(crate) cpu: u32,
    /// The only thread that would wake it, and why that thread.
    pub(crate) waits_for: Option<(u32, &'static str)>,
    /// The reason of its wait, as the operation itself has told it.
    pub(crate) reason: Option<Box<WaitReason>>,
    pub(crate) called: Option<Arc<str>>,
    pub(crate) steps: u64,
}

impl ThreadRecord {
    pub(crate) fn new(thread: ThreadId, cpu: u32) -> ThreadRecord {
        ThreadRecord::unrun(thread, cpu, Time::now())
    }

    /// The record of a thread that has made no step since the program is observed.
    pub(crate) fn unrun(thread: ThreadId, cpu: u32, since: Time) -> ThreadRecord {
        let (waits_for, reason, called) = (None, None, None);
        ThreadRecord { thread, end: None, several: false, since, cpu, waits_for, reason, called, steps: 0 }
    }

    /// Whether the thread waits, as far as the recorder knows. A thread that an event source has
    /// given back counts as waiting until it runs.
    pub(crate) fn waits(&self) -> bool {
        match self.end {
            Some(End::Block(_) | End::Join | End::Park) => {
                self.thread.info().is_some_and(|info| info.is_waiting())
            }
            Some(end) => words::is_wait(end),
            None => false,
        }
    }

    /// The thing that the thread waits for, in words; `None` if its last step has not left it
    /// waiting.
    pub(crate) fn words(&self, now: Time, descriptors: &mut Descriptors) -> Option<String> {
        let mut words = words::wait(self.end?, self.reason.as_deref(), now, descriptors)?;
        if self.several {
            words.push_str(", among other things");
        }
        Some(words)
    }
}

const PARTS: usize = 64;
/// Chunks of threads are of this number of bits.
const CHUNK_SHIFT: u32 = 17;
/// It is locked once for each step, so with the lock that costs least.
static TABLE: [LazyLock<WordLock<Records>>; PARTS] =
    [const { LazyLock::new(|| WordLock::new(Records::default(), 0)) }; PARTS];

pub(crate) type Records = HashMap<u32, ThreadRecord, BuildHasherDefault<Spread>>;

/// A hash of one number, quick.
#[derive(Default)]
pub(crate) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only threads' numbers are hashed");
    }

    fn write_u32(&mut self, n: u32) {
        self.0 = u64::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}

pub(crate) fn with_part<R>(thread: ThreadId, f: impl FnOnce(&mut Records) -> R) -> R {
    let part = (thread.get() >> CHUNK_SHIFT) as usize % PARTS;
    TABLE[part].with(|records, _| f(records))
}

/// Forgets all records.
pub(crate) fn forget() {
    TABLE.iter().for_each(|part| drop(part.with(|records, _| std::mem::take(records))));
}

/// How many threads are ready or running, and how many wait.
pub(crate) fn queues() -> (usize, usize) {
    let running = observe::running();
    let (mut ready, mut waiting) = (0, 0);
    each(|record| {
        let waits = record.waits() && running.iter().all(|(_, thread)| *thread != record.thread);
        *if waits { &mut waiting } else { &mut ready } += 1;
    });
    (ready, waiting)
}

/// Calls `f` with the record of each thread, and forgets the records of threads that are gone.
pub(crate) fn each(mut f: impl FnMut(&ThreadRecord)) {
    for part in &TABLE {
        part.with(|records, _| {
            records.retain(|_, record| {
                let lives = record.thread.info().is_some();
                if lives {
                    f(record);
                }
                lives
            });
        });
    }
}

/// The name of a thread, if it has one.
pub(crate) fn called(thread: ThreadId) -> Option<Arc<str>> {
    with_part(thread, |records| records.get(&thread.get()).and_then(|record| record.called.clone()))
}
