//! Seeing what CPUs do: each is given an observer, if the program has asked for it, and tells it of every step.
//!
//! While nobody observes, this costs one comparison for each turn of a scheduler, and a step nothing at all: that it is observed is one
//! more of the conditions under which a step does not end in one of the usual ways, which are looked at together.

use crate::arena::Key;
use crate::cpu::{Step, current};
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

/// The identity of a thread, as long as it lives; a later thread may have it again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(pub(crate) Key);

impl ThreadId {
    /// The thread that is running on this OS thread, if it is one of ours.
    pub fn current() -> Option<ThreadId> {
        Some(ThreadId(current()?.running()?.1))
    }

    /// The number: [`Thread::id`](crate::Thread::id), [`ThreadInfo::id`].
    pub fn get(self) -> u32 {
        self.0.get()
    }

    /// What can be said of it from any OS thread: its name, and whether it waits; but not where. `None` if it is over.
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
    /// It lets others run, or was woken before its step had ended.
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
    /// It is over by a panic that nobody joins it for.
    Panic,
}

/// The end of a step, as an [`Observer`] is told of it: just before the thread goes to whoever has it next.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Ended {
    /// Whose step.
    pub thread: ThreadId,
    /// How it ended.
    pub end: End,
    /// Whether the thread waits for other things too: of these `end` is one.
    pub several: bool,
}

/// What a thread that waits behind a waker waits for, as who took its request describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Errand {
    /// What is being done, as "waits to ..." goes on: `read`, `look up`.
    pub call: &'static str,
    /// With what.
    pub object: Object,
}

/// What an [`Errand`] is done with.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Object {
    /// With nothing that has a name.
    None,
    /// An open file.
    Descriptor(RawFd),
    /// A part of an open file.
    Part {
        /// Its descriptor.
        fd: RawFd,
        /// Where the part begins.
        offset: u64,
        /// How many bytes it has.
        length: u64,
    },
    /// Something by its name: the path of a file, a host.
    Name(Arc<str>),
    /// Code of the program, by the name of its type.
    Code(&'static str),
    /// A process by its number.
    Process(u32),
}

/// What an observer knows of a thread that waits, for the report of a [`Deadlock`](crate::Deadlock).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The name it was given.
    pub called: Option<Arc<str>>,
    /// What it waits for, in words.
    pub call: String,
    /// For how long it has waited.
    pub since: Duration,
    /// Who would wake it: nobody else can. See [`waits_for`].
    pub waits_for: Option<(u32, &'static str)>,
}

/// What a scheduler has done besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// It has taken so many threads from another CPU of its group.
    Stole(usize),
    /// So many wake-ups have come from other OS threads.
    Mail(usize),
}

/// Who is told what a CPU does, on the CPU's own OS thread. An observer that makes system calls or wakes threads disturbs what it
/// observes; one that panics takes the scheduler down.
pub trait Observer: Send {
    /// A step has ended.
    fn ended(&mut self, step: Ended);

    /// The scheduler's turn: it is about to look for events, or has just done so.
    fn turn(&mut self, _cpu: &Cpu) {}

    /// The CPU is about to wait in its event source.
    fn asleep(&mut self) {}

    /// The wait in the event source is over.
    fn awake(&mut self) {}

    /// The scheduler has done something else of note.
    fn note(&mut self, _note: Note) {}

    /// The running thread has said what it is called.
    fn named(&mut self, _thread: ThreadId, _name: &Arc<str>) {}

    /// The running thread is about to wait for what thread `whom` is to do. See [`waits_for`].
    fn waits_for(&mut self, _whom: u32, _tie: &'static str) {}

    /// The running thread has taken back what it was about to wait for. It goes on, and whom it has named in this step was named for that.
    fn waits_not(&mut self) {}

    /// The running thread is about to wait for this, behind a waker.
    fn waits_on(&mut self, _errand: Errand) {}

    /// Whether the lengths of the queues are wanted now. Asked once per turn.
    fn surveys(&mut self) -> bool {
        false
    }

    /// The length of a queue: `woken` is the CPU's own, which is the ready queue of a simple scheduler; the others are its scheduler's or
    /// its event source's.
    fn length(&mut self, _queue: &'static str, _length: usize) {}

    /// All lengths have been told.
    fn surveyed(&mut self) {}

    /// What is known of a thread that waits.
    fn seen(&self, _thread: ThreadId) -> Option<Seen> {
        None
    }
}

/// To whom the length of a queue is told, by the queue's name.
pub type Lengths<'a> = dyn FnMut(&'static str, usize) + 'a;

/// Makes the observer of a CPU, by the CPU's number.
pub type Observers = fn(u32) -> Box<dyn Observer>;

struct Hook {
    /// Counts the calls of [`observe`]; 0 before the first.
    version: u32,
    make: Option<Observers>,
    /// The CPUs that have an observer.
    observed: Vec<(u32, Watched)>,
}

/// The part of a CPU that other OS threads may look at, while the CPU is in the list.
struct Watched(*const Step);

// SAFETY: behind it only atomic words are read.
unsafe impl Send for Watched {}

static HOOK: Mutex<Hook> = Mutex::new(Hook { version: 0, make: None, observed: Vec::new() });
/// A copy of the hook's version. A CPU compares it with its own once per turn.
static VERSION: AtomicU32 = AtomicU32::new(0);

fn hook() -> MutexGuard<'static, Hook> {
    HOOK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on each CPU of the process has an observer that `make` makes for it; with `None`, none has any more. CPUs that run already
/// take notice with their next turn.
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

/// The observed CPUs that are running a step now, by number, and whose step it is.
pub fn running() -> Vec<(u32, ThreadId)> {
    let hook = hook();
    let running = hook.observed.iter().filter_map(|(cpu, step)| {
        // SAFETY: a CPU leaves the list, under the lock that we hold, before it is freed.
        let running = unsafe { &(*step.0).running };
        Some((*cpu, ThreadId(Key::new(running.load(Ordering::Relaxed))?)))
    });
    running.collect()
}

/// Tells the observer what the running thread is called, if there is one.
#[inline]
pub fn named(name: &Arc<str>) {
    if let Some(cpu) = current()
        && let Some((_, thread)) = cpu.running()
    {
        cpu.tell(|observer| observer.named(ThreadId(thread), name));
    }
}

/// Tells the observer, if there is one, that the running thread is about to wait for the thread with the number `whom`: the one that
/// holds what it wants to have, or is to deliver it. `tie` says which, as a sentence goes on: "which holds the mutex".
///
/// To be said only if nobody but `whom` can end the wait: from this, deadlocks are told.
#[inline]
pub fn waits_for(whom: u32, tie: &'static str) {
    if let Some(cpu) = current() {
        cpu.tell(|observer| observer.waits_for(whom, tie));
    }
}

/// Tells the observer, if there is one, what the running thread is about to wait for behind a waker. To be called by a future that
/// returns `Pending`, each time.
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
    /// Tells the observer, if there is one, what the scheduler has done.
    #[inline]
    pub fn note(&self, note: Note) {
        self.inner().tell(|observer| observer.note(note));
    }

    /// Tells the observer, if there is one and it wants to know, the lengths of a scheduler's queues: to be called before each
    /// [`poll`](Cpu::poll), which tells those of the CPU and of the event source.
    #[inline]
    pub fn survey(&self, lengths: impl FnOnce(&mut Lengths<'_>)) {
        self.inner().tell(|observer| {
            if observer.surveys() {
                lengths(&mut |queue, length| observer.length(queue, length));
            }
        });
    }

    /// As [`survey`](Cpu::survey), of the CPU's own queue and the event source's. It ends the survey.
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

    /// Once per turn: has the observer look, if there is or should be one. Whether the program is observed, or has been.
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

/// The CPU is about to be freed.
pub(crate) fn leave(step: &Step) {
    if is_on() {
        hook().observed.retain(|(_, watched)| !std::ptr::eq(watched.0, step));
    }
}

impl End {
    /// Of a step that has ended without any request of the thread's own.
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
