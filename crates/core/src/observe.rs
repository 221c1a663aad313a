//! Observing CPUs: [`observe`] gives each CPU an [`Observer`], and the CPU tells the observer of
//! every step.
//!
//! `selvedge-see` observes. The CPUs, the schedulers and the leaf futures call the functions here.
//! While the program is not observed, this costs one comparison for each turn of a scheduler, and
//! nothing for a step. Being observed is one of several rare conditions of a step. One test at the
//! end of the step checks all of them.

use crate::arena::Key;
use crate::cpu::inner::{Cpu, current};
use crate::cpu::step::Step;
use crate::directory;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use crate::deadlock::cycles;
pub use crate::grouped::{Line, grouped};
pub use crate::observer::{End, Ended, Lengths, Note, Object, Observer, WaitReason};
pub use crate::standstill::notice_standstill_after;
pub use crate::thread_info::{Seen, ThreadId};

impl ThreadId {
    /// The Selvedge thread that is running on this OS thread, if there is one.
    pub fn current() -> Option<ThreadId> {
        Some(ThreadId(current()?.running()?.1))
    }
}

/// A function that makes the observer of a CPU, given the number of the CPU.
pub type Observers = fn(u32) -> Box<dyn Observer>;

struct Hook {
    /// Counts the calls of [`observe`]; 0 before the first.
    version: u32,
    make: Option<Observers>,
    /// The CPUs that have an observer.
    observed: Vec<(u32, Watched)>,
}

/// The part of an observed CPU that other OS threads may read, while the CPU is in the list.
struct Watched(*const Step);

// SAFETY: other OS threads read only the atomic words of the [`Step`] behind it.
unsafe impl Send for Watched {}

static HOOK: Mutex<Hook> = Mutex::new(Hook { version: 0, make: None, observed: Vec::new() });
/// A copy of the hook's version. A CPU compares it with its own version once per turn.
static VERSION: AtomicU32 = AtomicU32::new(0);

fn hook() -> MutexGuard<'static, Hook> {
    HOOK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on each CPU of the process has an observer, which `make` makes. With `None`, the
/// observers are taken away. A CPU that runs already follows at its next turn.
pub fn observe(make: Option<Observers>) {
    let mut hook = hook();
    hook.make = make;
    hook.version = hook.version.wrapping_add(1).max(1);
    VERSION.store(hook.version, Ordering::Release);
    let observed: Vec<u32> = hook.observed.iter().map(|(cpu, _)| *cpu).collect();
    drop(hook);
    observed.into_iter().for_each(nudge);
}

/// Makes [`is_on`] true from now on, also if the program is not observed: a CPU asks its threads.
pub(crate) fn be_heard() {
    // No call of `observe` sets this version, unless there were four billion.
    let _ = VERSION.compare_exchange(0, u32::MAX, Ordering::Release, Ordering::Relaxed);
}

/// Makes a CPU that sleeps in its event source have a turn.
pub fn nudge(cpu: u32) {
    directory::post(cpu, 0);
}

/// The observed CPUs that are running a step now, by number, each with the thread that makes the
/// step.
pub fn running() -> Vec<(u32, ThreadId)> {
    let hook = hook();
    let running = hook.observed.iter().filter_map(|(cpu, step)| {
        // SAFETY: the CPU is alive, because `leave` takes it out of the list before it is freed,
        // and we hold the lock of the list.
        let running = unsafe { &(*step.0).running };
        Some((*cpu, ThreadId(Key::new(running.load(Ordering::Relaxed))?)))
    });
    running.collect()
}

/// Tells the observer the name of the running thread, if there is one.
#[inline]
pub fn named(name: &Arc<str>) {
    if let Some(cpu) = current()
        && let Some((_, thread)) = cpu.running()
    {
        cpu.tell(|observer| observer.named(ThreadId(thread), name));
    }
}

/// Tells the observer, if there is one, that the running thread is about to wait for the thread
/// with the number `other`. That thread holds the object that the running thread wants, or is to
/// deliver it. `tie` says which, as the sentence goes on: "which holds the mutex".
///
/// Call this only if no other thread than `other` can end the wait, because reports of deadlocks
/// rely on it.
#[inline]
pub fn waits_for(other: u32, tie: &'static str) {
    if let Some(cpu) = current() {
        cpu.tell(|observer| observer.waits_for(other, tie));
    }
}

/// Tells the observer, if there is one, for which reason the running thread is about to wait,
/// behind a waker or in a queue. A future that returns `Pending` calls this each time.
#[inline]
pub fn waits_on(reason: impl FnOnce() -> WaitReason) {
    if let Some(cpu) = current() {
        cpu.tell(|observer| observer.waits_on(reason()));
    }
}

/// Whether the program is observed, or has been, or a deadlock has been reported.
#[inline(always)]
pub fn is_on() -> bool {
    VERSION.load(Ordering::Relaxed) != 0
}

impl Cpu {
    /// Tells the observer, if there is one, of an action of the scheduler.
    #[inline]
    pub fn note(&self, note: Note) {
        self.inner().tell(|observer| observer.note(note));
    }

    /// Tells the observer, if there is one and it asks for them, the lengths of the scheduler's
    /// queues. A scheduler calls this before each [`poll`](Cpu::poll), which tells the lengths of
    /// the queues of the CPU and of the event source.
    #[inline]
    pub fn survey(&self, lengths: impl FnOnce(&mut Lengths<'_>)) {
        self.inner().tell(|observer| {
            if observer.surveys() {
                lengths(&mut |queue, length| observer.length(queue, length));
            }
        });
    }

    /// As [`survey`](Cpu::survey), for the queue of the CPU and the queues of the event source,
    /// which `lengths` tells. It ends the survey.
    #[cold]
    pub(crate) fn survey_all(&self, lengths: impl FnOnce(&mut Lengths<'_>)) {
        self.inner().tell(|observer| {
            if observer.surveys() {
                let mut say = |queue, length| observer.length(queue, length);
                say("woken", self.inner().woken_len());
                lengths(&mut say);
                observer.surveyed();
            }
        });
    }

    /// Once per turn: installs or removes the observer if need be, and tells it of the turn. True
    /// if the program is observed, or has been.
    #[inline(always)]
    pub(crate) fn turn(&self) -> bool {
        let observed = is_on();
        if observed {
            self.observed_turn();
        }
        observed
    }

    #[cold]
    fn observed_turn(&self) {
        let cpu = self.inner();
        let version = VERSION.load(Ordering::Acquire);
        if cpu.observing.replace(version) != version {
            let mut hook = hook();
            let id = cpu.step.id;
            hook.observed.retain(|(cpu, _)| *cpu != id);
            let make = hook.make;
            if make.is_some() {
                hook.observed.push((id, Watched(&raw const cpu.step)));
            }
            drop(hook);
            cpu.set_observer(make.map(|make| make(id)));
        }
        cpu.tell(|observer| observer.turn(self));
    }
}

/// Takes a CPU that is about to be freed out of the list of observed CPUs.
pub(crate) fn leave(step: &Step) {
    if is_on() {
        hook().observed.retain(|(_, watched)| !std::ptr::eq(watched.0, step));
    }
}
