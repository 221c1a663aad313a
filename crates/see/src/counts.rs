//! [`Counts`]: how often each thing has happened on a CPU: steps, waits, wake-ups and others; and
//! [`LiveCounts`], in which the observer of a CPU (`recorder.rs`) counts.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Makes, of one list of names, the counters of a CPU as it counts and as they are given out.
macro_rules! counters {
    ($($(#[doc = $doc:literal])* $name:ident),+ $(,)?) => {
        /// What a CPU has done since it is observed, or several have together.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Counts {
            $($(#[doc = $doc])* pub $name: u64,)+
        }

        /// The names of the counters, and what each counts.
        pub(crate) const MEANINGS: &[(&str, &str)] = &[$((stringify!($name), concat!($($doc),*))),+];

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
        pub(crate) struct LiveCounts {
            $(pub(crate) $name: Counter,)+
        }

        impl LiveCounts {
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
    /// Steps that ended waiting behind a waker of other code.
    parks,
    /// Of all these, steps that ended waiting for several things.
    several,
    /// Threads that have come to their end.
    returns,
    /// Threads that ended by a panic and were joined by no thread.
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
    /// For how long, in nanoseconds.
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
