//! Observing CPUs: [`observe`] gives each CPU an [`Observer`], and the CPU tells the observer of
//! every step.
//!
//! `selvedge-see` observes. The CPUs, the schedulers and the leaf futures call the functions here.
//! While the program is not observed, this costs one comparison for each turn of a scheduler, and
//! nothing for a step. Being observed is one of several rare conditions of a step. One test at the
//! end of the step checks all of them.

use crate::arena::Key;
use crate::cpu::inner::current;
use crate::cpu::step::Step;
use crate::place::{Place, ThreadInfo};
use crate::trace::{Readiness, Request};
use crate::{Cpu, Events, Time, directory};
use std::fmt;
use std::os::fd::RawFd;
use std::panic::Location;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use crate::deadlock::cycles;

/// The identity of a thread while it lives. A later thread may have the same identity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(pub(crate) Key);

impl ThreadId {
    /// The Selvedge thread that is running on this OS thread, if there is one.
    pub fn current() -> Option<ThreadId> {
        Some(ThreadId(current()?.running()?.1))
    }

    /// The number: [`Thread::id`](crate::Thread::id), [`ThreadInfo::id`].
    pub fn get(self) -> u32 {
        self.0.get()
    }

    /// The facts about the thread that any OS thread can read: its name, and whether it waits, but
    /// not its place. `None` if it is over.
    pub fn info(self) -> Option<ThreadInfo> {
        ThreadInfo::at(self.0)
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ThreadId({})", self.0)
    }
}

/// How a step ended: by which system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// It lets other threads run, or it was woken before its step ended.
    Yield,
    /// It has created a thread by [`fork`](crate::fork).
    Fork(ThreadId),
    /// It asks for a non-blocking action.
    Nbio,
    /// It waits for a descriptor.
    Wait(Readiness),
    /// It waits for a point in time.
    Sleep(Time),
    /// It waits for the answer to a call of the program's own, by the type of the call.
    Call(&'static str),
    /// It waits in a queue, at this place of the program.
    Block(Option<&'static Location<'static>>),
    /// It waits for the end of another thread.
    Join,
    /// It waits behind a waker.
    Park,
    /// It is over.
    Return,
    /// It is over by a panic, and no join handle gets the panic.
    Panic,
}

/// The end of a step, as an [`Observer`] is told of it, just before the CPU hands the thread on.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Ended {
    /// The thread that made the step.
    pub thread: ThreadId,
    /// How it ended.
    pub end: End,
    /// Whether the thread waits for other things too. Then `end` is one of them.
    pub several: bool,
}

/// The thing for which a thread waits behind a waker. The server of the request describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Errand {
    /// The action, as the sentence "waits to ..." goes on: `read`, `look up`.
    pub call: &'static str,
    /// The object of the action.
    pub object: Object,
}

/// The object of an [`Errand`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Object {
    /// There is none, or it has no name.
    None,
    /// An open file.
    Descriptor(RawFd),
    /// A part of an open file.
    Part {
        /// The descriptor of the file.
        fd: RawFd,
        /// The position at which the part begins, in bytes.
        offset: u64,
        /// The length of the part, in bytes.
        length: u64,
    },
    /// A thing by its name: the path of a file, or a host.
    Name(Arc<str>),
    /// Code of the program, by the name of its type.
    Code(&'static str),
    /// A process by its number.
    Process(u32),
}

/// The facts that an observer knows of a waiting thread, for the report of a
/// [`Deadlock`](crate::Deadlock).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The name that the thread was given.
    pub called: Option<Arc<str>>,
    /// The thing it waits for, in words.
    pub call: String,
    /// The time that it has waited.
    pub since: Duration,
    /// The only thread that can wake it, and why. See [`waits_for`].
    pub waits_for: Option<(u32, &'static str)>,
}

/// Other actions of a scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// It has taken this many threads from another CPU of its group.
    Stole(usize),
    /// This many wake-ups have come from other OS threads.
    Mail(usize),
}

/// An observer of one CPU. The CPU calls it on its own OS thread. An observer that makes system
/// calls or wakes threads disturbs the program that it observes. An observer that panics takes the
/// scheduler down.
pub trait Observer: Send {
    /// A step has ended.
    fn ended(&mut self, step: Ended);

    /// The scheduler's turn: the CPU is about to look for events, or has just done so.
    fn turn(&mut self, _cpu: &Cpu) {}

    /// The CPU is about to wait in its event source.
    fn asleep(&mut self) {}

    /// The wait in the event source is over.
    fn awake(&mut self) {}

    /// The scheduler has done something else that is worth a note.
    fn note(&mut self, _note: Note) {}

    /// The running thread has given itself a name.
    fn named(&mut self, _thread: ThreadId, _name: &Arc<str>) {}

    /// The running thread is about to wait until thread `other` acts. See [`waits_for`].
    fn waits_for(&mut self, _other: u32, _tie: &'static str) {}

    /// The running thread has taken back its request, and goes on. The thread that it has named in
    /// this step with `waits_for` was named for that request.
    fn waits_not(&mut self) {}

    /// The running thread is about to wait behind a waker for this errand.
    fn waits_on(&mut self, _errand: Errand) {}

    /// Whether the observer wants the lengths of the queues now. The CPU asks once per turn.
    fn surveys(&mut self) -> bool {
        false
    }

    /// The length of a queue. `woken` is the queue of the CPU, which is also the ready queue of a
    /// simple scheduler. The other queues belong to the scheduler or to the event source.
    fn length(&mut self, _queue: &'static str, _length: usize) {}

    /// All lengths have been told.
    fn surveyed(&mut self) {}

    /// The facts that the observer knows of a waiting thread.
    fn seen(&self, _thread: ThreadId) -> Option<Seen> {
        None
    }
}

/// A function that is told the length of a queue, by the name of the queue.
pub type Lengths<'a> = dyn FnMut(&'static str, usize) + 'a;

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

/// Tells the observer, if there is one, for which errand the running thread is about to wait behind
/// a waker. A future that returns `Pending` calls this each time.
#[inline]
pub fn waits_on(errand: impl FnOnce() -> Errand) {
    if let Some(cpu) = current() {
        cpu.tell(|observer| observer.waits_on(errand()));
    }
}

/// Whether the program is observed, or has been.
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

    /// As [`survey`](Cpu::survey), for the queue of the CPU and the queues of the event source. It
    /// ends the survey.
    #[cold]
    pub(crate) fn survey_all<E: Events + ?Sized>(&self, events: &E) {
        self.inner().tell(|observer| {
            if observer.surveys() {
                let mut say = |queue, length| observer.length(queue, length);
                say("woken", self.inner().woken_len());
                events.lengths(&mut say);
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

impl End {
    /// The end of a step without a request in the slot; `request` is the last one that was made on
    /// behalf of a waker.
    pub(crate) fn of_request(request: Option<&Request>) -> End {
        match request {
            None => End::Park,
            Some(Request::Wait(readiness)) => End::Wait(*readiness),
            Some(Request::Sleep(alarm)) => End::Sleep(alarm.until()),
            Some(Request::Call(call)) => End::Call(call.name()),
        }
    }

    pub(crate) fn of_place(place: Place) -> End {
        if place.is_join() { End::Join } else { End::Block(place.location()) }
    }
}
