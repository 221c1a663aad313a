//! The timeline: what each CPU did when, in the format that `chrome://tracing` and Perfetto load.
//!
//! `recorder.rs` adds a span for each step and each wait; programs and `environment.rs` switch it
//! on ([`timeline`]) and write it ([`write_timeline`]). Only the last spans of each CPU are kept.

use crate::json;
use crate::lock::lock;
use crate::order::ordered;
use crate::words;
use selvedge_core::Time;
use selvedge_core::observe::{End, ThreadId};
use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// How many spans are kept of each CPU; 0 while no timeline is drawn.
static KEPT: AtomicUsize = AtomicUsize::new(0);

/// CPUs have their spans in different places, so that they do not wait for one another.
const PARTS: usize = 64;
static SPANS: [Mutex<VecDeque<(u32, TimedSpan)>>; PARTS] = [const { Mutex::new(VecDeque::new()) }; PARTS];

/// Something that took time.
#[derive(Debug, Clone)]
pub(crate) struct TimedSpan {
    pub(crate) began: Time,
    pub(crate) ended: Time,
    pub(crate) of: Of,
}

#[derive(Debug, Clone)]
pub(crate) enum Of {
    Step { thread: ThreadId, name: &'static str, called: Option<Arc<str>>, end: End },
    Idle,
}

#[inline]
pub(crate) fn is_on() -> bool {
    KEPT.load(Relaxed) != 0
}

/// Draws the timeline from now on, of each CPU the last `spans`: steps, and waits in the event
/// source. It begins anew. With 0 it is no longer drawn, and forgotten. [`on`](crate::on) comes
/// first.
///
/// A span takes about 100 bytes, and drawing one some 60 ns.
pub fn timeline(spans: usize) {
    KEPT.store(spans, Relaxed);
    SPANS.iter().for_each(|part| *lock(part) = VecDeque::new());
}

pub(crate) fn add(cpu: u32, span: TimedSpan) {
    let kept = KEPT.load(Relaxed);
    let mut spans = lock(&SPANS[cpu as usize % PARTS]);
    while spans.len() >= kept.max(1) {
        spans.pop_front();
    }
    spans.push_back((cpu, span));
}

/// The timeline so far, in the Chrome trace event format: a JSON array of complete events
/// (`"ph": "X"`) in order of time. The OS process is the process; each CPU is a thread of it. An
/// event is a step: called as its thread is, with the thread's number and the system call at the
/// step's end among its arguments.
///
/// A step begins where the one before ended, so that what the scheduler does in between counts as
/// the step's.
pub fn timeline_json() -> String {
    let mut spans = Vec::new();
    for part in &SPANS {
        spans.extend(lock(part).iter().cloned());
    }
    let spans = ordered(spans, |(cpu, span), (other_cpu, other)| {
        span.began.cmp(&other.began).then(cpu.cmp(other_cpu)).then(span.ended.cmp(&other.ended))
    });
    let mut cpus: Vec<u32> = Vec::new();
    for (cpu, _) in &spans {
        if !cpus.contains(cpu) {
            cpus.push(*cpu);
        }
    }
    cpus.sort_unstable();
    let process = std::process::id();
    let metadata = cpus.into_iter().map(TraceLine::Cpu);
    let lines = metadata.chain(spans.into_iter().map(|(cpu, span)| TraceLine::Span(cpu, span)));
    json::text(|json| {
        json.array(lines, |json, line| {
            json.object(|json| {
                json.number("pid", process);
                match line {
                    TraceLine::Cpu(cpu) => {
                        json.string("ph", "M");
                        json.number("tid", cpu);
                        json.string("name", "thread_name");
                        json.member("args", |json| {
                            json.object(|json| json.string("name", &format!("cpu {cpu}")));
                        });
                    }
                    TraceLine::Span(cpu, span) => write(cpu, &span, json),
                }
            });
        });
    })
}

enum TraceLine {
    Cpu(u32),
    Span(u32, TimedSpan),
}

/// Nanoseconds as microseconds, without a loss.
pub(crate) fn microseconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

fn write(cpu: u32, span: &TimedSpan, json: &mut json::Json) {
    json.string("ph", "X");
    json.number("tid", cpu);
    json.number("ts", microseconds(span.began.as_nanos()));
    json.number("dur", microseconds(span.ended.as_nanos().saturating_sub(span.began.as_nanos())));
    match &span.of {
        Of::Idle => {
            json.string("name", "idle");
            json.string("cat", "kernel");
        }
        Of::Step { thread, name, called, end } => {
            json.string("name", called.as_deref().unwrap_or(name));
            json.string("cat", "step");
            json.member("args", |json| {
                json.object(|json| {
                    json.number("thread", thread.get());
                    json.string("code", name);
                    json.string("end", &words::call(*end));
                });
            });
        }
    }
}

/// Writes [`timeline_json`] to a file.
///
/// # Errors
/// Those of writing it, with the path in the message.
pub fn write_timeline(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    std::fs::write(path, timeline_json())
        .map_err(|error| io::Error::new(error.kind(), format!("write {}: {error}", path.display())))
}
