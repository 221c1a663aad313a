//! Whether a CPU is free on which a worker may run: [`Vacancy`]. `crowding.rs` says why it matters.

use crate::elsewhere::{CpuSet, HasCpus, OsThread};
use selvedge_core::Time;
use std::time::Duration;

/// The kernel counts idle time in ticks of this number of milliseconds.
const TICK_MS: u64 = 10;
/// The shortest time over which idle time tells something: one tick is a tenth of it.
const WINDOW_MIN: Duration = Duration::from_millis(100);
/// A reading that is older than this tells nothing of the present.
const WINDOW_MAX: Duration = Duration::from_secs(4);

/// The idle time of a worker's CPUs, as the worker has read it last.
#[derive(Debug, Default)]
pub(super) struct Vacancy {
    last: Option<(Time, Duration)>,
}

impl Vacancy {
    /// Whether the CPUs on which the calling OS thread may run were all in use since the last
    /// reading: together they were idle for less than half of that time. False if the last reading
    /// is too old, or if the kernel does not say.
    ///
    /// # Complexity
    /// A file of the kernel is read, once in [`WINDOW_MIN`] at most.
    pub(super) fn is_none(&mut self, now: Time) -> bool {
        let window = self.last.map_or(Duration::MAX, |(read, _)| now.since(read));
        window >= WINDOW_MIN && idle_time().is_some_and(|idle| self.learn(now, idle))
    }

    /// Learns the idle time until `now`.
    fn learn(&mut self, now: Time, idle: Duration) -> bool {
        let last = self.last.replace((now, idle));
        last.is_some_and(|(read, before)| {
            let window = now.since(read);
            window <= WINDOW_MAX && idle.saturating_sub(before) < window / 2
        })
    }
}

/// How long the CPUs on which the calling OS thread may run have been idle, in all.
fn idle_time() -> Option<Duration> {
    let cpus = OsThread::caller().cpus()?;
    idle_time_in(&std::fs::read_to_string("/proc/stat").ok()?, &cpus)
}

/// Adds up the idle times of some CPUs in the kernel's text. It has a line for each CPU: its name,
/// and its times at user's work, at nice work, in the system, idle, in wait for a disk, and more.
fn idle_time_in(text: &str, cpus: &CpuSet) -> Option<Duration> {
    let mut ticks = 0_u64;
    for line in text.lines().skip(1).map_while(|line| line.strip_prefix("cpu")) {
        let mut words = line.split_ascii_whitespace();
        if cpus.contains(words.next()?.parse().ok()?) {
            let mut time = || words.next()?.parse::<u64>().ok();
            let [_user, _nice, _system, idle, disk] = [time()?, time()?, time()?, time()?, time()?];
            ticks = ticks.checked_add(idle)?.checked_add(disk)?;
        }
    }
    Some(Duration::from_millis(ticks.checked_mul(TICK_MS)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// The kernel's text for more CPUs than a set has.
    fn text(idle: &str) -> String {
        let first = String::from("cpu  1 2 3 4 5 6 7 8 9 10\n");
        let lines = (0..1024).map(|cpu| format!("cpu{cpu} 10 20 30 {idle} 5 6 7 8 9 10\n"));
        first + &lines.collect::<String>() + "intr 1 2 3\ncpu0 1 1 1 1 1\n"
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the system for the CPU")]
    fn the_kernels_text_has_a_line_for_each_cpu() {
        let mine = CpuSet::mine();
        assert_eq!(idle_time_in(&text("40"), &mine), Some(450 * MS));
        assert_eq!(idle_time_in(&text("forty"), &mine), None);
        assert_eq!(idle_time_in(&text("18446744073709551615"), &mine), None);
    }

    #[test]
    #[cfg_attr(miri, ignore = "reads a file of the system")]
    fn idle_time_grows_on_a_cpu_that_is_idle_and_this_kernel_tells_it() {
        assert!(idle_time().is_some());
    }

    #[test]
    fn cpus_are_in_use_if_they_were_idle_for_less_than_half_of_the_time() {
        let (mut vacancy, start) = (Vacancy::default(), Time::default() + 1000 * MS);
        assert!(!vacancy.learn(start, 500 * MS), "it has read nothing before");
        assert!(vacancy.learn(start + 100 * MS, 540 * MS));
        assert!(!vacancy.learn(start + 200 * MS, 600 * MS));
        assert!(!vacancy.learn(start + 201 * MS + WINDOW_MAX, 600 * MS), "that was long ago");
    }
}
