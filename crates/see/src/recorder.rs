//! The observer of each CPU (`Recorder`), and its records: [`ThreadRecord`] for each thread, and
//! [`Seat`] for each observed CPU.
//!
//! `on` (`lib.rs`) gives a recorder to each CPU of the process, and the CPU calls it at the end of
//! each step. `dump.rs`, `counters.rs` and `helper.rs` read the records; `timeline.rs` gets its
//! spans from here. Counters belong to the CPU. The record of a thread lies in a table of the
//! process, because threads move between CPUs. The table is cut into parts by the chunk of memory
//! in which a thread lies, so that mostly one CPU alone uses a part. The lock of a part is taken in
//! each step, so no slow work belongs under it.

use crate::counters::{Counts, LiveCounts};
use crate::descriptors::Descriptors;
use crate::timeline::{self, TimedSpan};
use selvedge_core::observe::{self, End, Ended, Note, Observer, Seen, ThreadId, WaitReason};
use selvedge_core::{Cpu, Interest, Lock, Time, WordLock};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

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
/// How old the lengths of queues may become without one.
const LENGTHS_MAX: Duration = Duration::from_millis(100);

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

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn with_part<R>(thread: ThreadId, f: impl FnOnce(&mut Records) -> R) -> R {
    let part = (thread.get() >> CHUNK_SHIFT) as usize % PARTS;
    TABLE[part].with(|records, _| f(records))
}

/// The observer.
struct Recorder {
    seat: Arc<Seat>,
    /// The time, as of the last turn; of the last step while a timeline is drawn.
    now: Time,
    /// The time of the last tick of the scheduler that this recorder has taken notice of.
    tick: Option<Time>,
    /// The number of the census that was answered.
    census: u64,
    /// The thread of the step before.
    before: Option<ThreadId>,
    /// The reason of its wait that the running thread has told in this step.
    waits_for: Option<(u32, &'static str)>,
    reason: Option<WaitReason>,
    /// When the lengths of the queues were asked for last, for which survey, and what they are.
    surveyed: Time,
    survey: u64,
    lengths: Vec<(&'static str, usize)>,
}

/// Makes the observer of a CPU.
pub(crate) fn recorder(cpu: u32) -> Box<dyn Observer> {
    let seat = Arc::new(Seat {
        cpu,
        os_thread: std::thread::current().name().unwrap_or("unnamed").to_owned(),
        counting: LiveCounts::default(),
        asleep: AtomicU64::new(0),
        last: AtomicU64::new(Time::now().as_nanos()),
        census: Mutex::default(),
        lengths: Mutex::default(),
    });
    lock(&SEATS).push(seat.clone());
    Box::new(Recorder {
        seat,
        now: Time::now(),
        tick: None,
        census: 0,
        before: None,
        waits_for: None,
        reason: None,
        surveyed: Time::default(),
        survey: 0,
        lengths: Vec::new(),
    })
}

/// Whether a step that ends so leaves its thread waiting.
pub(crate) fn is_wait(end: End) -> bool {
    matches!(end, End::Wait(_) | End::Sleep(_) | End::Call(_) | End::Block(_) | End::Join | End::Park)
}

impl Recorder {
    fn read_clock(&mut self) {
        self.set_clock(Time::now());
    }

    fn set_clock(&mut self, now: Time) {
        self.now = now;
        self.seat.last.store(now.as_nanos(), Relaxed);
    }
}

impl Observer for Recorder {
    fn ended(&mut self, step: Ended) {
        let Ended { thread, end, several, .. } = step;
        let began = self.now;
        if timeline::is_on() {
            self.read_clock();
        }
        let count = &self.seat.counting;
        count.steps.add(1);
        if self.before.replace(thread) != Some(thread) {
            count.switches.add(1);
        }
        match end {
            End::Yield => count.yields.add(1),
            End::Fork(_) => count.forks.add(1),
            End::Nbio => count.nbios.add(1),
            End::Wait(readiness) if readiness.interest == Interest::READ => count.waits_to_read.add(1),
            End::Wait(_) => count.waits_to_write.add(1),
            End::Sleep(_) => count.sleeps.add(1),
            End::Call(_) => count.calls.add(1),
            End::Block(_) => count.blocks.add(1),
            End::Join => count.joins.add(1),
            End::Park => count.parks.add(1),
            End::Return => count.returns.add(1),
            End::Panic => count.panics.add(1),
            _ => {}
        }
        if several {
            count.several.add(1);
        }
        let waits_for = self.waits_for.take().filter(|_| is_wait(end) && !several);
        let reason = self.reason.take().filter(|_| is_wait(end)).map(Box::new);
        let (now, cpu) = (self.now, self.seat.cpu);
        let before = with_part(thread, |records| {
            if matches!(end, End::Return | End::Panic) {
                return records.remove(&thread.get()).map(|record| (record.end, record.called));
            }
            let record = records.entry(thread.get()).or_insert_with(|| ThreadRecord::new(thread, cpu));
            let before = record.end.replace(end);
            (record.several, record.since, record.cpu, record.waits_for) = (several, now, cpu, waits_for);
            record.reason = reason;
            record.steps += 1;
            Some((before, if timeline::is_on() { record.called.clone() } else { None }))
        });
        let (before, called) = before.unwrap_or_default();
        if before.is_some_and(is_wait) {
            count.wake_ups.add(1);
        }
        if timeline::is_on() {
            let name = thread.info().map_or("", |info| info.name());
            timeline::add(
                cpu,
                TimedSpan { began, ended: now, of: timeline::Of::Step { thread, name, called, end } },
            );
        }
    }

    fn turn(&mut self, cpu: &Cpu) {
        match self.tick.replace(cpu.now()) {
            // The event source has just read the clock.
            Some(before) if before != cpu.now() => self.set_clock(cpu.now()),
            _ => self.read_clock(),
        }
        self.seat.counting.turns.add(1);
        let wanted = CENSUS.load(Relaxed);
        if self.census != wanted {
            self.census = wanted;
            let threads = cpu.threads().into_iter().map(|info| info.thread()).collect();
            *lock(&self.seat.census) = (wanted, threads);
        }
    }

    fn asleep(&mut self) {
        // It is the time of the turn that has just begun.
        self.seat.asleep.store(self.now.as_nanos().max(1), Relaxed);
    }

    fn awake(&mut self) {
        let since = Time::from_nanos(self.seat.asleep.load(Relaxed));
        self.seat.asleep.store(0, Relaxed);
        if self.now <= since {
            // The event source has not read the clock.
            self.read_clock();
        }
        self.seat.counting.idles.add(1);
        self.seat.counting.idle_ns.add(self.now.since(since).as_nanos() as u64);
        if timeline::is_on() {
            timeline::add(self.seat.cpu, TimedSpan { began: since, ended: self.now, of: timeline::Of::Idle });
        }
    }

    fn note(&mut self, note: Note) {
        match note {
            Note::Mail(n) => self.seat.counting.mail.add(n as u64),
            Note::Stole(n) => {
                self.seat.counting.steals.add(1);
                self.seat.counting.stolen.add(n as u64);
            }
            _ => {}
        }
    }

    fn named(&mut self, thread: ThreadId, name: &Arc<str>) {
        let cpu = self.seat.cpu;
        with_part(thread, |records| {
            let record = records.entry(thread.get()).or_insert_with(|| ThreadRecord::new(thread, cpu));
            if !record.called.as_ref().is_some_and(|called| Arc::ptr_eq(called, name)) {
                record.called = Some(name.clone());
            }
        });
    }

    fn waits_for(&mut self, other: u32, tie: &'static str) {
        self.waits_for = Some((other, tie));
    }

    fn waits_not(&mut self) {
        (self.waits_for, self.reason) = (None, None);
    }

    fn waits_on(&mut self, reason: WaitReason) {
        self.reason = Some(reason);
    }

    fn surveys(&mut self) -> bool {
        self.survey != SURVEY.load(Relaxed) || self.now.since(self.surveyed) > LENGTHS_MAX
    }

    fn length(&mut self, queue: &'static str, length: usize) {
        match self.lengths.iter_mut().find(|(other, _)| *other == queue) {
            Some((_, before)) => *before = length,
            None => self.lengths.push((queue, length)),
        }
    }

    fn surveyed(&mut self) {
        self.surveyed = self.now;
        self.survey = SURVEY.load(Relaxed);
        *lock(&self.seat.lengths) = (self.survey, self.lengths.clone());
    }

    fn seen(&self, thread: ThreadId) -> Option<Seen> {
        let record = with_part(thread, |records| records.get(&thread.get()).cloned())?;
        let now = Time::now();
        Some(Seen {
            call: record.words(now, &mut Descriptors::default())?,
            called: record.called,
            since: Some(now.since(record.since)),
            waits_for: record.waits_for,
        })
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let mut seats = lock(&SEATS);
        seats.retain(|seat| !Arc::ptr_eq(seat, &self.seat));
        // Before the lock is released: it counts either here or there.
        lock(&PAST).get_or_insert_default().add(&self.seat.counting.read());
    }
}

impl ThreadRecord {
    fn new(thread: ThreadId, cpu: u32) -> ThreadRecord {
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
            Some(end) => is_wait(end),
            None => false,
        }
    }
}

/// Forgets all records.
pub(crate) fn forget() {
    TABLE.iter().for_each(|part| drop(part.with(|records, _| std::mem::take(records))));
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
