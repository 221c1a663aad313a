//! `Times`: the clocks by which the measured programs of this binary measure themselves, and
//! `rss_bytes`, the memory of the process. Every file of `child` calls them.
//!
//! A program reads the clocks around its operations, so that its start and its end do not count.
//! CPU time is that of the whole process. The printed names are the keys of the metrics in
//! `contender.rs`.

use nix::time::{ClockId, clock_gettime};
use std::fs;
use std::time::Instant;

/// A moment, on the clock of this process's CPU time and on the wall's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    cpu_ns: f64,
    wall: Instant,
}

impl Times {
    /// This moment.
    pub(super) fn now() -> Times {
        let cpu = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("Linux has this clock");
        Times { cpu_ns: cpu.tv_sec() as f64 * 1e9 + cpu.tv_nsec() as f64, wall: Instant::now() }
    }

    /// The seconds on the wall's clock from this moment to `last`.
    pub(super) fn seconds_until(self, last: Times) -> f64 {
        (last.wall - self.wall).as_secs_f64()
    }

    /// Prints the CPU time from this moment to `last` under a name of its own, divided by the
    /// number of operations between them.
    pub(super) fn print_as(self, name: &str, last: Times, operations: u64) {
        println!("{name} {:.4}", (last.cpu_ns - self.cpu_ns) / operations as f64);
    }

    /// Prints the time from this moment to `last`, divided by the number of operations between
    /// them.
    pub(super) fn print_until(self, last: Times, operations: u64) {
        let operations = operations as f64;
        println!("ns {:.4}", (last.cpu_ns - self.cpu_ns) / operations);
        println!("wall_ns {:.4}", (last.wall - self.wall).as_nanos() as f64 / operations);
    }

    /// Prints how many operations there were in a second from this moment to `last`, and how much
    /// CPU time each took.
    pub(super) fn print_rate_until(self, last: Times, operations: u64) {
        let operations = operations as f64;
        println!("rate {:.1}", operations / (last.wall - self.wall).as_secs_f64());
        println!("cpu_us {:.4}", (last.cpu_ns - self.cpu_ns) / 1e3 / operations);
    }
}

/// The memory this process has resident now, in bytes, without the pages of the executable, more of
/// which come in as more of it runs. It is counted for the question: the running count in
/// `/proc/self/statm` may be some hundred pages off.
///
/// # Panics
///
/// When `/proc/self/smaps_rollup` is not as Linux writes it.
pub(super) fn rss_bytes() -> u64 {
    let text = fs::read_to_string("/proc/self/smaps_rollup").expect("Linux tells a process its size");
    let line = text.lines().find_map(|line| line.strip_prefix("Anonymous:")).expect("there is such a line");
    let kib: u64 = line.trim().strip_suffix(" kB").and_then(|kib| kib.parse().ok()).expect("it is in kB");
    kib * 1024
}
