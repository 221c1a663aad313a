//! The report of a deadlock: [`Deadlock`] lists the waiting threads with their places, and the
//! cycles of threads that wait for one another.
//!
//! Schedulers return it in [`RunError::Deadlock`](crate::RunError::Deadlock). `selvedge-see` uses
//! [`cycles`] too.

use crate::cpu::witness::Witness;
use crate::grouped::{Line, grouped};
use crate::{Cpu, ThreadInfo};
use std::collections::HashMap;
use std::fmt;

/// All threads that are left wait for one another, or for something that is not there.
///
/// The report has for each thread its name, what it waits for, and which thread would wake it, if
/// that is known. It also names the cycles of threads that wait for one another. If the program is
/// observed ([`observe`](crate::observe)), it says how long each has waited, too.
///
/// # Paper
/// [Del §2.1] leaves this case open: there `start` returns as if all had ended.
#[doc(alias = "deadlock detection")]
#[derive(Clone)]
pub struct Deadlock {
    /// The threads, and where each waits.
    pub threads: Vec<ThreadInfo>,
}

impl Cpu {
    /// The report of a deadlock, for a scheduler that has found one: all threads that live in this
    /// CPU's memory.
    ///
    /// If the program is not observed, each waiting thread is polled once more, so that it says
    /// what it waits for. So the caller must be certain of the deadlock, and must not run threads
    /// afterwards.
    ///
    /// # Complexity
    /// As [`threads`](Cpu::threads), and one step for each waiting thread.
    pub fn deadlock(&mut self) -> Deadlock {
        let threads = self.threads();
        let mut witness = Witness::of(self.inner());
        let seen = threads.into_iter().map(|info| {
            let seen = match &mut witness {
                Some(witness) => witness.ask(self, &info),
                None => self.inner().seen(info.thread()),
            };
            info.with_seen(seen)
        });
        let threads = seen.collect();
        if let Some(witness) = witness {
            witness.end(self);
        }
        Deadlock { threads }
    }
}

impl Deadlock {
    /// The cycles of threads, as their numbers: each thread waits for the next, and the last for
    /// the first.
    pub fn cycles(&self) -> Vec<Vec<u32>> {
        cycles(self.threads.iter().filter_map(|info| Some((info.id(), info.seen()?.waits_for?.0))))
    }
}

/// The cycles among threads of which each waits for at most one other. The argument has pairs of a
/// thread and the thread it waits for. Each cycle begins with its smallest number.
///
/// # Examples
/// ```
/// use selvedge::observe::cycles;
///
/// assert_eq!(cycles([(1, 2), (2, 3), (3, 2), (4, 4), (5, 6)]), [vec![2, 3], vec![4]]);
/// ```
pub fn cycles(waits_for: impl IntoIterator<Item = (u32, u32)>) -> Vec<Vec<u32>> {
    let next = &waits_for.into_iter().collect::<HashMap<u32, u32>>();
    // For each visited thread, the first thread of the walk that visited it.
    let mut walked: HashMap<u32, u32> = HashMap::new();
    // Around a cycle, once, from one of its threads.
    let around = |first: u32| {
        std::iter::successors(Some(first), move |one| Some(next[one]).filter(|&one| one != first))
    };
    // The smallest thread of each cycle.
    let mut firsts = Vec::new();
    for &start in next.keys() {
        let mut at = start;
        while let Some(&other) = next.get(&at)
            && !walked.contains_key(&at)
        {
            walked.insert(at, start);
            at = other;
        }
        if next.contains_key(&at) && walked.get(&at) == Some(&start) {
            // This walk has come back to a thread that it visited itself.
            firsts.extend(around(at).min());
        }
    }
    firsts.sort_unstable();
    firsts.into_iter().map(|first| around(first).collect()).collect()
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LINES_MAX: usize = 20;
        let n = self.threads.len();
        write!(
            f,
            "deadlock: {n} thread{} wait{} and nothing can wake ",
            if n == 1 { "" } else { "s" },
            if n == 1 { "s" } else { "" }
        )?;
        write!(f, "{}", if n == 1 { "it" } else { "them" })?;
        for cycle in self.cycles() {
            f.write_str("\n  cycle: ")?;
            for (i, &id) in cycle.iter().enumerate() {
                f.write_str(if i == 0 { "" } else { "; " })?;
                self.write_tie(id, f)?;
            }
        }
        let lines = grouped(&self.threads, ThreadInfo::doing);
        for line in lines.iter().take(LINES_MAX) {
            write!(f, "\n  {line}")?;
        }
        match lines.iter().skip(LINES_MAX).map(Line::threads).sum() {
            0_usize => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}

/// Writes the same report, because a `main` that returns a `Result` prints its error with `Debug`.
impl fmt::Debug for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Deadlock {
    /// Writes for which other thread a thread of a cycle waits.
    fn write_tie(&self, id: u32, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seen = |id: u32| self.threads.iter().find(|info| info.id() == id).and_then(ThreadInfo::seen);
        let called = |id: u32| seen(id).and_then(|seen| seen.called.as_deref());
        let write = |id: u32, f: &mut fmt::Formatter<'_>| match called(id) {
            Some(called) => write!(f, "thread {id} \"{called}\""),
            None => write!(f, "thread {id}"),
        };
        let Some((other, tie)) = seen(id).and_then(|seen| seen.waits_for) else { return Ok(()) };
        write(id, f)?;
        f.write_str(" waits for ")?;
        match other == id {
            true => f.write_str("itself")?,
            false => write(other, f)?,
        }
        write!(f, ", {tie}")
    }
}
