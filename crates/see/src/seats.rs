//! [`Seat`]: one observed CPU, with its counters and its answers; and the questions that all CPUs
//! are asked.
//!
//! The observer of the CPU (`recorder.rs`) writes its seat; `dump.rs`, `counters.rs` and
//! `helper.rs` read it.

use crate::counts::{Counts, LiveCounts};
use crate::lock::lock;
use selvedge_core::observe::{self, ThreadId};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// One observed CPU.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) cpu: u32,
    pub(crate) os_thread: String,
    pub(crate) counting: LiveCounts,
    /// Since when it waits in its event source, in nanoseconds; 0 if it does not.
    pub(crate) asleep: AtomicU64,
    /// When its last step ended, or its last turn was, in nanoseconds.
    pub(crate) last: AtomicU64,
    /// The number of the census that it has answered last, and the answer: all threads in its
    /// memory.
    pub(crate) census: Mutex<(u64, Vec<ThreadId>)>,
    /// The number of the survey that it has answered last, and the answer: the lengths of its
    /// queues.
    pub(crate) lengths: Mutex<(u64, Vec<(&'static str, usize)>)>,
}

static SEATS: Mutex<Vec<Arc<Seat>>> = Mutex::new(Vec::new());
/// The counts of CPUs that are gone.
static PAST: Mutex<Option<Counts>> = Mutex::new(None);
/// The number of the census that is wanted.
pub(crate) static CENSUS: AtomicU64 = AtomicU64::new(0);
/// The number of the survey that is wanted.
pub(crate) static SURVEY: AtomicU64 = AtomicU64::new(0);

/// Adds the seat of a CPU that is observed from now on.
pub(crate) fn add(seat: Arc<Seat>) {
    lock(&SEATS).push(seat);
}

/// Takes out the seat of a CPU that is gone, and keeps its counts.
pub(crate) fn take_out(seat: &Arc<Seat>) {
    let mut seats = lock(&SEATS);
    seats.retain(|other| !Arc::ptr_eq(other, seat));
    // Before the lock is released: it counts either here or there.
    lock(&PAST).get_or_insert_default().add(&seat.counting.read());
}

/// Forgets the counts of CPUs that are gone.
pub(crate) fn forget_past() {
    *lock(&PAST) = None;
}

/// How long CPUs have to answer a question.
const ANSWER_MAX: Duration = Duration::from_millis(50);

/// Makes all CPUs take notice of a question, and waits for [`ANSWER_MAX`] at most until each has
/// answered. It does not wait for the CPU of the caller, which cannot answer meanwhile.
pub(crate) fn ask(seats: &[Arc<Seat>], has_answered: impl Fn(&Seat) -> bool) {
    seats.iter().for_each(|seat| observe::nudge(seat.cpu));
    let until = Instant::now() + ANSWER_MAX;
    let here = ThreadId::current();
    for seat in seats {
        let own = || here.is_some_and(|here| observe::running().contains(&(seat.cpu, here)));
        while !has_answered(seat) && !own() && Instant::now() < until {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

pub(crate) fn seats() -> Vec<Arc<Seat>> {
    lock(&SEATS).clone()
}

/// The counters of the CPUs that are gone, and the seats of the others.
pub(crate) fn past_and_seats() -> (Counts, Vec<Arc<Seat>>) {
    let seats = lock(&SEATS);
    (lock(&PAST).unwrap_or_default(), seats.clone())
}
