//! How often things have happened.

use crate::json::{self, Json};
use crate::recorder;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Makes, of one list of names, the counters of a CPU as it counts and as they are given out.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// What a CPU has done since it is observed, or several have together.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Counts {
            $($(#[$doc])* pub $name: u64,)+
        }

        impl Counts {
            /// All of them, by name.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name)),+].into_iter()
            }

            /// Adds those of another CPU.
            pub(crate) fn add(&mut self, other: &Counts) {
                $(self.$name += other.$name;)+
            }
        }

        /// Counted by one OS thread, and read by others.
        #[derive(Debug, Default)]
        pub(crate) struct Counting {
            $(pub(crate) $name: Counter,)+
        }

        impl Counting {
            pub(crate) fn read(&self) -> Counts {
                Counts { $($name: self.$name.get(),)+ }
            }
        }
    };
}

counters! {
    /// Steps of threads.
    steps,
    /// Steps of another thread than the one before.
    switches,
    /// Steps of threads that had waited.
    wake_ups,
    /// Steps that ended by letting others run, or by waiting for what was there already.
    yields,
    /// Steps that ended with `fork`.
    forks,
    /// Steps that ended with a non-blocking action.
    nbios,
    /// Steps that ended waiting for something to read.
    waits_to_read,
    /// Steps that ended waiting for room to write (or for either).
    waits_to_write,
    /// Steps that ended sleeping.
    sleeps,
    /// Steps that ended with a call of the program's own.
    calls,
    /// Steps that ended waiting in a queue: for an MVar, a mutex and their like.
    blocks,
    /// Steps that ended waiting for the end of another thread.
    joins,
    /// Steps that ended waiting behind a waker of somebody else's.
    parks,
    /// Of all these, steps that ended waiting for several things.
    several,
    /// Threads that have come to their end.
    returns,
    /// Threads that have ended by a panic that nobody joined them for.
    panics,
    /// Wake-ups that came from other OS threads.
    mail,
    /// How often the scheduler has taken threads from another CPU.
    steals,
    /// How many threads it has taken.
    stolen,
    /// How often the event source has been looked at.
    turns,
    /// How often the CPU has waited in its event source, with nothing to run.
    idles,
    /// For how long, in nanoseconds: the time in the kernel.
    idle_ns,
}

/// A number that one OS thread counts up and others may read.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed) + n, Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The counters of all CPUs at one point in time, by [`counters`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Counters {
    /// Of all CPUs together, with those that are gone.
    pub total: Counts,
    /// Of each CPU there is, with its number and the name of its OS thread.
    pub cpus: Vec<(u32, String, Counts)>,
    /// Threads that are ready or running: the length of the ready queues.
    pub ready: usize,
    /// Threads that wait.
    pub waiting: usize,
}

/// Reads the counters.
///
/// Threads count that have run since the program is observed. One that was woken from a descriptor or a sleep counts as
/// waiting until it runs.
///
/// # Complexity
/// Looks at each thread once, for the lengths of the queues.
pub fn counters() -> Counters {
    let (total, cpus) = recorder::counts();
    let (ready, waiting) = recorder::queues();
    Counters { total, cpus, ready, waiting }
}

impl Counters {
    /// As JSON: `{"total": {NAME: COUNT, ..}, "cpus": [{"cpu": .., "os_thread": .., NAME: COUNT, ..}, ..], "ready": ..,
    /// "waiting": ..}`, with the names of [`Counts`].
    pub fn to_json(&self) -> String {
        json::text(|json| {
            json.object(|json| {
                json.member("total", |json| json.object(|json| write(&self.total, json)));
                json.member("cpus", |json| {
                    json.array(&self.cpus, |json, (cpu, os_thread, counts)| {
                        json.object(|json| {
                            json.number("cpu", u64::from(*cpu));
                            json.string("os_thread", os_thread);
                            write(counts, json);
                        });
                    });
                });
                json.number("ready", self.ready as u64);
                json.number("waiting", self.waiting as u64);
            });
        })
    }
}

fn write(counts: &Counts, json: &mut Json) {
    counts.iter().for_each(|(name, count)| json.number(name, count));
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "threads: {} ready or running, {} waiting", self.ready, self.waiting)?;
        write!(f, "all CPUs: {}", self.total)?;
        for (cpu, os_thread, counts) in &self.cpus {
            write!(f, "\ncpu {cpu} ({os_thread}): {counts}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        for (name, count) in self.iter().filter(|(name, count)| *count != 0 && *name != "idle_ns") {
            write!(f, "{comma}{} {count}", name.replace('_', " "))?;
            comma = ", ";
        }
        if self.idles != 0 {
            write!(f, " for {:.1?}", Duration::from_nanos(self.idle_ns))?;
        }
        if comma.is_empty() { f.write_str("nothing yet") } else { Ok(()) }
    }
}
