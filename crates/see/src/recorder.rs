//! The observer of each CPU (`Recorder`).
//!
//! `on` (`lib.rs`) gives a recorder to each CPU of the process, and the CPU calls it at the end of
//! each step. It writes the records of the threads (`records.rs`), the counters and answers of its
//! CPU (`seats.rs`), and the spans of the timeline (`timeline.rs`).

use crate::counts::LiveCounts;
use crate::descriptors::Descriptors;
use crate::lock::lock;
use crate::records::{ThreadRecord, with_part};
use crate::seats::{self, CENSUS, SURVEY, Seat};
use crate::timeline::{self, TimedSpan};
use crate::words::is_wait;
use selvedge_core::observe::{End, Ended, Note, Observer, Seen, ThreadId, WaitReason};
use selvedge_core::{Cpu, Interest, Time};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How old the lengths of queues may become without a survey.
const LENGTHS_MAX: Duration = Duration::from_millis(100);

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
    seats::add(seat.clone());
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
        seats::take_out(&self.seat);
    }
}
