//! The thread dump ([`dump`], [`Dump`]): every thread, what it waits for, since when, and which
//! thread would wake it.
//!
//! Programs call it, and so does the answer to a signal (`environment.rs`). It reads what the
//! observer of each CPU has written down (`records.rs`), and asks the CPUs for threads that have
//! not run yet. No CPU is stopped for it, so a dump is not of one moment.

use crate::descriptors::Descriptors;
use crate::json::{self, Json};
use crate::lock::lock;
use crate::order::ordered;
use crate::records::{self, Records, ThreadRecord};
use crate::seats::{self, CENSUS};
use crate::words;
use selvedge_core::Time;
use selvedge_core::observe::{self, ThreadId, grouped};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// All threads and CPUs at one point in time, by [`dump`].
///
/// Its `Display` is a text with a line for each CPU and each thread. Of many threads that wait at
/// the same place, the first two have a line each, and a third line counts the others.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Dump {
    /// The CPUs, in the order of their numbers.
    pub cpus: Vec<CpuState>,
    /// The threads: first the running threads, then the waiting threads, the longest wait first,
    /// then the ready threads.
    pub threads: Vec<ThreadState>,
    /// The circles of threads that wait for one another for ever. A circle has the numbers of its
    /// threads: each waits for the next, and the last for the first.
    pub cycles: Vec<Vec<u32>>,
}

/// The state of a CPU.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CpuState {
    /// Its number.
    pub cpu: u32,
    /// The name of its OS thread.
    pub os_thread: String,
    /// The thread that runs a step on it.
    pub running: Option<u32>,
    /// How long it has been in this step, at most; or how long it has waited in its event source.
    pub since: Duration,
    /// Whether it waits in its event source.
    pub asleep: bool,
}

/// The state of a thread.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ThreadState {
    /// Its number: [`Thread::id`](selvedge_core::Thread::id).
    pub id: u32,
    /// The function or the type of the program that its future comes from.
    pub name: &'static str,
    /// The name that it was [given](crate::named).
    pub called: Option<Arc<str>>,
    /// Whether it runs, is ready, or waits.
    pub doing: Doing,
    /// How long it has been in that state, to the turn of the scheduler. For a running thread, the
    /// longest that it can have been. `None` for a thread that has not run yet.
    pub since: Option<Duration>,
    /// The thing that it waits for, or its last system call, in words.
    pub call: String,
    /// The only thread that would wake it, if that is known: the thread that it joins, or that
    /// holds the mutex, writes or reads under the readers-writer lock, makes the value of the
    /// `OnceCell`, or owns the promise. `None` also for a thread that waits for several things.
    pub waits_for: Option<u32>,
    /// The part of the other thread, such as `which holds the mutex`.
    pub tie: Option<&'static str>,
    /// The CPU it runs on, or ran on last.
    pub cpu: Option<u32>,
    /// How many steps it has made.
    pub steps: u64,
}

/// Whether a thread runs, is ready, or waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Doing {
    /// It is in a step.
    Running,
    /// It waits. A thread that the event source has just given back waits until it runs.
    Waiting,
    /// It is ready to run.
    Ready,
}

/// The state of all threads and CPUs. Call [`on`](crate::on) before. Any OS thread may call this,
/// at any time.
///
/// This asks the CPUs for their threads, and waits 50 ms at most for the answers. A CPU in a long
/// step does not answer, and neither does the caller's own. Threads of such a CPU that have run
/// since the program is observed are in the dump all the same. Only threads that have not run yet
/// are missing.
///
/// # Complexity
/// Linear in the number of threads. It holds up each CPU while it copies a part of the records.
pub fn dump() -> Dump {
    let unrun = census();
    let now = Time::now();
    let running = observe::running();
    let mut cpus: Vec<CpuState> = Vec::new();
    for seat in seats::seats() {
        let asleep = Time::from_nanos(seat.asleep.load(Relaxed));
        let last = Time::from_nanos(seat.last.load(Relaxed));
        cpus.push(CpuState {
            cpu: seat.cpu,
            os_thread: seat.os_thread.clone(),
            running: running.iter().find(|(cpu, _)| *cpu == seat.cpu).map(|(_, thread)| thread.get()),
            since: now.since(if asleep == Time::default() { last } else { asleep }),
            asleep: asleep != Time::default(),
        });
    }
    let cpus = ordered(cpus, |one, other| one.cpu.cmp(&other.cpu));

    let mut records = Records::default();
    records::each(|record| {
        records.insert(record.thread.get(), record.clone());
    });
    for (thread, cpu) in unrun {
        records.entry(thread.get()).or_insert_with(|| ThreadRecord::unrun(thread, cpu, Time::default()));
    }
    for &(cpu, thread) in &running {
        records.entry(thread.get()).or_insert_with(|| ThreadRecord::unrun(thread, cpu, Time::default()));
    }
    let mut descriptors = Descriptors::default();
    let mut threads = Vec::new();
    for record in records.into_values() {
        // Not if the thread has ended meanwhile.
        let Some(info) = record.thread.info() else { continue };
        let on = cpus.iter().find(|cpu| cpu.running == Some(info.id()));
        let doing = match on {
            Some(_) => Doing::Running,
            None if record.waits() || record.end.is_none() && info.is_waiting() => Doing::Waiting,
            None => Doing::Ready,
        };
        threads.push(ThreadState {
            id: info.id(),
            name: info.name(),
            doing,
            since: on.map(|cpu| cpu.since).or_else(|| record.end.map(|_| now.since(record.since))),
            call: match (doing, record.end) {
                (Doing::Running, _) => "is in a step".into(),
                (Doing::Ready, None) => "has not run yet".into(),
                (Doing::Ready, Some(end)) if words::is_wait(end) => "was woken".into(),
                (Doing::Ready, Some(_)) => "is ready".into(),
                (Doing::Waiting, None) => "waits since before it was observed".into(),
                (Doing::Waiting, Some(end)) => {
                    record.words(now, &mut descriptors).unwrap_or_else(|| words::call(end))
                }
            },
            waits_for: record.waits_for.filter(|_| doing == Doing::Waiting).map(|(other, _)| other),
            tie: record.waits_for.filter(|_| doing == Doing::Waiting).map(|(_, tie)| tie),
            cpu: on.map(|cpu| cpu.cpu).or_else(|| Some(record.cpu).filter(|_| record.steps > 0)),
            steps: record.steps,
            called: record.called,
        });
    }
    let threads = ordered(threads, |one, other| {
        one.doing.cmp(&other.doing).then(other.since.cmp(&one.since)).then(one.id.cmp(&other.id))
    });
    let cycles = observe::cycles(threads.iter().filter_map(|thread| Some((thread.id, thread.waits_for?))));
    Dump { cpus, threads, cycles }
}

/// Asks all CPUs for their threads. The result has the threads of the CPUs that answer in time.
fn census() -> Vec<(ThreadId, u32)> {
    let number = CENSUS.fetch_add(1, Relaxed) + 1;
    let seats = seats::seats();
    seats::ask(&seats, |seat| lock(&seat.census).0 >= number);
    let mut answered = Vec::new();
    for seat in seats {
        let census = lock(&seat.census);
        if census.0 >= number {
            answered.extend(census.1.iter().map(|thread| (*thread, seat.cpu)));
        }
    }
    answered
}

impl Dump {
    /// As JSON: `{"cpus": [{"cpu", "os_thread", "running", "asleep", "since_ns"}, ..], "threads":
    /// [{"id", "name", "called", "doing", "call", "since_ns", "waits_for", "tie", "cpu", "steps"},
    /// ..], "cycles": [[ID, ..], ..]}`. Facts that are not known are left out.
    pub fn to_json(&self) -> String {
        json::text(|json| {
            json.object(|json| {
                json.member("cpus", |json| {
                    json.array(&self.cpus, |json, cpu| json.object(|json| cpu.write(json)));
                });
                json.member("threads", |json| {
                    json.array(&self.threads, |json, thread| json.object(|json| thread.write(json)));
                });
                json.member("cycles", |json| {
                    json.array(&self.cycles, |json, cycle| json.array(cycle, |json, id| json.value(id)));
                });
            });
        })
    }
}

impl Dump {
    /// The other thread that a thread waits for, in words.
    fn tie(&self, id: u32) -> String {
        let thread = |id: u32| self.threads.iter().find(|thread| thread.id == id);
        let name = |id: u32| match thread(id).and_then(|thread| thread.called.as_deref()) {
            Some(called) => format!("thread {id} \"{called}\""),
            None => format!("thread {id}"),
        };
        let waits = thread(id).and_then(|thread| Some((thread.waits_for?, thread.tie?)));
        let (other, tie) = waits.unwrap_or_default();
        let other = if other == id { "itself".to_owned() } else { name(other) };
        format!("{} waits for {other}, {tie}", name(id))
    }
}

impl CpuState {
    fn write(&self, json: &mut Json) {
        json.number("cpu", self.cpu);
        json.string("os_thread", &self.os_thread);
        json.maybe("running", self.running);
        json.number("asleep", self.asleep);
        json.number("since_ns", self.since.as_nanos());
    }
}

impl ThreadState {
    /// What it does, in the words that it has in common with others that do the same.
    fn group(&self) -> String {
        match (self.waits_for, self.tie) {
            (Some(other), Some(tie)) => format!("{}; for thread {other}, {tie}", self.call),
            // Each has another time to go.
            _ if self.call.starts_with("sleeps") => "sleeps".into(),
            _ => self.call.clone(),
        }
    }

    fn write(&self, json: &mut Json) {
        json.number("id", self.id);
        json.string("name", self.name);
        if let Some(called) = &self.called {
            json.string("called", called);
        }
        json.string("doing", &format!("{:?}", self.doing).to_lowercase());
        json.string("call", &self.call);
        json.maybe("since_ns", self.since.map(|since| since.as_nanos()));
        json.maybe("waits_for", self.waits_for);
        if let Some(tie) = self.tie {
            json.string("tie", tie);
        }
        json.maybe("cpu", self.cpu);
        json.number("steps", self.steps);
    }
}

impl fmt::Display for Dump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |doing| self.threads.iter().filter(|thread| thread.doing == doing).count();
        let [running, waiting, ready] = [Doing::Running, Doing::Waiting, Doing::Ready].map(count);
        write!(f, "{} threads: {running} running, {waiting} waiting, {ready} ready", self.threads.len())?;
        for cpu in &self.cpus {
            write!(f, "\n{cpu}")?;
        }
        for cycle in &self.cycles {
            let threads: Vec<String> = cycle.iter().map(|&id| self.tie(id)).collect();
            write!(f, "\ndeadlock: {}", threads.join("; "))?;
        }
        for line in grouped(&self.threads, ThreadState::group) {
            write!(f, "\n{line}")?;
        }
        Ok(())
    }
}

impl fmt::Display for CpuState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cpu {} ({}): ", self.cpu, self.os_thread)?;
        match (self.running, self.asleep) {
            (Some(thread), _) => write!(f, "runs thread {thread}, for at most {:.1?}", self.since),
            (None, true) => write!(f, "has waited for events for {:.1?}", self.since),
            (None, false) => f.write_str("is between steps"),
        }
    }
}

impl fmt::Display for ThreadState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "thread {} ", self.id)?;
        if let Some(called) = &self.called {
            write!(f, "\"{called}\" ")?;
        }
        write!(f, "({}): {}", self.name, self.call)?;
        if let Some(since) = self.since {
            write!(f, ", for {}{since:.1?}", if self.doing == Doing::Running { "at most " } else { "" })?;
        }
        if let Some(cpu) = self.cpu {
            write!(f, ", on cpu {cpu}")?;
        }
        if let Some(other) = self.waits_for {
            write!(f, "; for thread {other}, {}", self.tie.unwrap_or_default())?;
        }
        Ok(())
    }
}
