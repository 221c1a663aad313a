//! [`Counters`]: what all CPUs have done, and their queues, at one point in time.
//!
//! Programs read them. The observer of a CPU (`recorder.rs`) counts the steps in its `Counts`
//! (`counts.rs`), and `selvedge-io` the system calls.

use crate::counts::{Counts, MEANINGS};
use crate::json::{self, Json};
use crate::lock::lock;
use crate::order::ordered;
use crate::records;
use crate::seats::{self, SURVEY};
use selvedge_io::calls::{self, Calls, Tally};
use selvedge_io::pool::{self, Load};
use std::fmt::{self, Write};
use std::sync::atomic::Ordering::Relaxed;

/// The counters of the process at one point in time, by [`counters`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Counters {
    /// Of all CPUs together, also of dropped CPUs.
    pub total: Counts,
    /// Of each CPU there is.
    pub cpus: Vec<CpuCounters>,
    /// Threads that are ready or running.
    pub ready: usize,
    /// Threads that wait.
    pub waiting: usize,
    /// The system calls of all OS threads, by kind, with the time that they took. Calls that waited
    /// for events are apart.
    pub calls: Calls,
    /// The same of each OS thread there is, with its name.
    pub os_threads: Vec<(String, Calls)>,
    /// The blocking pool, and the length of its queue.
    pub pool: Load,
}

/// The counters of one CPU.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CpuCounters {
    /// Its number.
    pub cpu: u32,
    /// The name of its OS thread.
    pub os_thread: String,
    /// The counts of its events.
    pub counts: Counts,
    /// The lengths of its queues, by name. Of the CPU: `woken`, threads that are to run and that
    /// the scheduler has not taken yet (with a simple scheduler, its ready queue). Of the
    /// scheduler: `ready`, its ready threads, with the threads of `work_stealing` that other
    /// workers may take; `local`, the ready threads that stay; `injector`, the threads that come
    /// from outside, told by one worker for all. Of the event loop: `descriptors` it has
    /// registered, of which some may be closed by now, and waits for them; `sleepers`; `deadlines`,
    /// the timers of those waits; `disk_queued` and `disk_begun`, operations that wait and that the
    /// kernel has.
    pub queues: Vec<(&'static str, usize)>,
}

/// Reads the counters.
///
/// Only threads count that have run since the program is observed. A thread that was woken from a
/// descriptor or a sleep counts as waiting until it runs. Each CPU is asked for the lengths of its
/// queues, and has 50 ms to answer. For a CPU in a long step, such as the caller's, the lengths are
/// up to 100 ms older than that step.
///
/// # Complexity
/// Looks at each thread once, and at each descriptor.
pub fn counters() -> Counters {
    let survey = SURVEY.fetch_add(1, Relaxed) + 1;
    seats::ask(&seats::seats(), |seat| lock(&seat.lengths).0 >= survey);
    // Some that were asked may be gone.
    let (mut total, seats) = seats::past_and_seats();
    let mut cpus: Vec<CpuCounters> = Vec::new();
    for seat in seats {
        let counts = seat.counting.read();
        total.add(&counts);
        let queues = lock(&seat.lengths).1.clone();
        cpus.push(CpuCounters { cpu: seat.cpu, os_thread: seat.os_thread.clone(), counts, queues });
    }
    let cpus = ordered(cpus, |one, other| one.cpu.cmp(&other.cpu));
    let (ready, waiting) = records::queues();
    let (calls, os_threads) = calls::counted();
    Counters { total, cpus, ready, waiting, calls, os_threads, pool: pool::load() }
}

impl Counters {
    /// As JSON: `{"total": {NAME: COUNT, ..}, "cpus": [{"cpu": .., "os_thread": .., NAME: COUNT,
    /// .., "queues": {NAME: LENGTH, ..}}, ..], "ready": .., "waiting": .., "calls": {NAME:
    /// {"calls": .., "ns": ..}, ..}, "waits": .., "os_threads": [{"os_thread": .., "calls": ..,
    /// "waits": ..}, ..], "pool": {"threads": .., "idle": .., "queued": .., "in_line": .., "taken":
    /// ..}}`, with the names of [`Counts`], of [`CpuCounters::queues`] and of system calls.
    pub fn to_json(&self) -> String {
        json::text(|json| {
            json.object(|json| {
                json.member("total", |json| json.object(|json| write(&self.total, json)));
                json.member("cpus", |json| {
                    json.array(&self.cpus, |json, cpu| {
                        json.object(|json| {
                            json.number("cpu", cpu.cpu);
                            json.string("os_thread", &cpu.os_thread);
                            write(&cpu.counts, json);
                            json.member("queues", |json| {
                                json.object(|json| {
                                    cpu.queues.iter().for_each(|(name, n)| json.number(name, n))
                                });
                            });
                        });
                    });
                });
                json.number("ready", self.ready);
                json.number("waiting", self.waiting);
                write_calls(&self.calls, json);
                json.member("os_threads", |json| {
                    json.array(&self.os_threads, |json, (name, calls)| {
                        json.object(|json| {
                            json.string("os_thread", name);
                            write_calls(calls, json);
                        });
                    });
                });
                json.member("pool", |json| {
                    json.object(|json| self.pool().for_each(|(name, n)| json.number(name, n)));
                });
            });
        })
    }

    fn pool(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let Load { threads, idle, queued, in_line, taken, .. } = self.pool;
        let of = |n: usize| n as u64;
        [
            ("threads", of(threads)),
            ("idle", of(idle)),
            ("queued", of(queued)),
            ("in_line", of(in_line)),
            ("taken", taken),
        ]
        .into_iter()
    }

    /// As the text that Prometheus reads (version 0.0.4): for a handler that a server has for it.
    /// Times are in seconds.
    ///
    /// # Examples
    /// ```
    /// selvedge::see::on();
    /// let text = selvedge::see::counters().to_prometheus();
    /// let steps = "# TYPE selvedge_steps_total counter\nselvedge_steps_total ";
    /// assert!(text.contains(steps), "{text}");
    /// ```
    pub fn to_prometheus(&self) -> String {
        let mut text = String::new();
        for ((name, count), (_, meaning)) in self.total.iter().zip(MEANINGS) {
            if name == "idle_ns" {
                continue;
            }
            metric(&mut text, &format!("{name}_total"), "counter", meaning);
            sample(&mut text, &format!("{name}_total"), &[], count);
        }
        metric(
            &mut text,
            "idle_seconds_total",
            "counter",
            "How long CPUs have waited in their event sources.",
        );
        sample(&mut text, "idle_seconds_total", &[], self.total.idle_ns as f64 / 1e9);
        metric(&mut text, "threads", "gauge", "Threads there are.");
        sample(&mut text, "threads", &[("state", "ready")], self.ready);
        sample(&mut text, "threads", &[("state", "waiting")], self.waiting);
        metric(
            &mut text,
            "queue_length",
            "gauge",
            "What is in the queues of a CPU, its scheduler and its event loop.",
        );
        for cpu in &self.cpus {
            for (queue, length) in &cpu.queues {
                let labels =
                    [("cpu", &*cpu.cpu.to_string()), ("os_thread", &cpu.os_thread), ("queue", queue)];
                sample(&mut text, "queue_length", &labels, length);
            }
        }
        metric(&mut text, "pool", "gauge", "The blocking pool: its OS threads, and what waits for them.");
        for (name, n) in self.pool().filter(|(name, _)| *name != "taken") {
            sample(&mut text, "pool", &[("what", name)], n);
        }
        metric(
            &mut text,
            "system_calls_total",
            "counter",
            "System calls by kind, but for those that waited for events.",
        );
        for (name, tally) in &self.calls.kinds {
            sample(&mut text, "system_calls_total", &[("call", name)], tally.calls);
        }
        metric(&mut text, "system_call_seconds_total", "counter", "How long they took.");
        for (name, tally) in &self.calls.kinds {
            sample(&mut text, "system_call_seconds_total", &[("call", name)], tally.time.as_secs_f64());
        }
        metric(&mut text, "event_waits_total", "counter", "System calls that waited for events.");
        sample(&mut text, "event_waits_total", &[], self.calls.waits);
        text
    }
}

fn metric(text: &mut String, name: &str, kind: &str, meaning: &str) {
    let meaning = meaning.trim();
    let _ = writeln!(text, "# HELP selvedge_{name} {meaning}\n# TYPE selvedge_{name} {kind}");
}

fn sample(text: &mut String, name: &str, labels: &[(&str, &str)], value: impl fmt::Display) {
    let _ = write!(text, "selvedge_{name}");
    for (i, (label, value)) in labels.iter().enumerate() {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let _ = write!(text, "{}{label}=\"{value}\"", if i == 0 { '{' } else { ',' });
    }
    let _ = writeln!(text, "{} {value}", if labels.is_empty() { "" } else { "}" });
}

fn write(counts: &Counts, json: &mut Json) {
    counts.iter().for_each(|(name, count)| json.number(name, count));
}

fn write_calls(calls: &Calls, json: &mut Json) {
    let tally = |json: &mut Json, name: &str, tally: &Tally| {
        json.member(name, |json| {
            json.object(|json| {
                json.number("calls", tally.calls);
                json.number("ns", tally.time.as_nanos());
            });
        });
    };
    json.member("calls", |json| {
        json.object(|json| calls.kinds.iter().for_each(|(name, of)| tally(json, name, of)));
    });
    json.number("waits", calls.waits);
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "threads: {} ready or running, {} waiting", self.ready, self.waiting)?;
        write!(f, "all CPUs: {}", self.total)?;
        for cpu in &self.cpus {
            write!(f, "\ncpu {} ({}): {}", cpu.cpu, cpu.os_thread, cpu.counts)?;
            let queues = cpu.queues.iter().filter(|(_, length)| *length != 0);
            let queues: Vec<_> = queues.map(|(name, n)| format!("{} {n}", name.replace('_', " "))).collect();
            let queues = if queues.is_empty() { "nothing".to_owned() } else { queues.join(", ") };
            write!(f, "\n  in its queues: {queues}")?;
        }
        let Load { threads, idle, queued, in_line, taken, .. } = self.pool;
        if taken > 0 {
            write!(f, "\nblocking pool: {threads} OS threads, {idle} of them idle, {queued} jobs queued, ")?;
            write!(f, "{in_line} callers in line, {taken} jobs taken")?;
        }
        let Tally { calls, time, .. } = self.calls.total();
        let waits = self.calls.waits;
        write!(f, "\nsystem calls: {calls}, for {time:.1?}; and {waits} that waited for events")?;
        let kinds = ordered(self.calls.kinds.clone(), |(one, of_one), (other, of_other)| {
            of_other.time.cmp(&of_one.time).then(one.cmp(other))
        });
        for (name, Tally { calls, time, .. }) in kinds {
            let each = time / u32::try_from(calls).unwrap_or(u32::MAX).max(1);
            write!(f, "\n  {name:<14} {calls:>10}, for {time:>9.1?}: {each:.1?} each")?;
        }
        Ok(())
    }
}
