//! The contenders of the figures: the command that starts a program of ours or of a peer, and the
//! answers that the program must print. Every file with a figure builds its `Contender`s by
//! `inner`, `outer` and `outer_on`; `measure.rs` runs them.
//!
//! A contender without an answer is not checked. So a new one calls `answers`, and `figures
//! --faults` finds a contender for which a wrong answer is not noticed.

use crate::machine::Machine;
use crate::measure::{Better, Contender, Metric};
use crate::peers::{Compiled, GHC};
use crate::pinned::BOTH_CPUS;
use crate::table::{Row, Table};
use std::time::Duration;

/// CPU time of an operation.
pub(crate) const NS: Metric = Metric { key: "ns", unit: "ns", better: Better::Lower };
/// Time of an operation on the wall's clock, which several CPUs share.
pub(crate) const WALL_NS: Metric = Metric { key: "wall_ns", unit: "ns", better: Better::Lower };

/// How long one run may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Ours.
pub(crate) const OURS: &str = "selvedge";
/// tokio.
pub(crate) const TOKIO: &str = "tokio";
/// Go.
pub(crate) const GOROUTINES: &str = "Go";
/// GHC's threads.
pub(crate) const FORK_IO: &str = "GHC forkIO";

/// A program of this binary: tokio's if its name says so, otherwise ours.
pub(crate) fn inner(system: &str, program: &str, numbers: &[u64]) -> Contender {
    let command = std::env::current_exe().map_err(|error| error.to_string()).map(|path| {
        let mut words = vec![path.display().to_string(), "child".to_owned(), program.to_owned()];
        words.extend(numbers.iter().map(u64::to_string));
        words
    });
    Contender {
        system: system.to_owned(),
        ours: !program.starts_with("tokio"),
        command,
        environment: vec![],
        cpus: &BOTH_CPUS[..1],
        input: None,
        may_fail: false,
        answers: vec![],
    }
}

/// A compiled peer, on one CPU.
pub(crate) fn outer(peer: Compiled, system: &str, program: &str, numbers: &[u64]) -> Contender {
    outer_on(1, peer, system, program, numbers)
}

/// A compiled peer, on as many CPUs as it is given.
pub(crate) fn outer_on(
    cpus: usize,
    peer: Compiled,
    system: &str,
    program: &str,
    numbers: &[u64],
) -> Contender {
    let command = peer.executable().map(|path| {
        let mut words = vec![path, program.to_owned()];
        words.extend(numbers.iter().map(u64::to_string));
        if peer == GHC || peer.is_threaded_ghc() {
            // A large nursery is its fastest; a small one and a compacting collector are its
            // smallest.
            let is_about_memory = matches!(program, "memory" | "parked");
            let sizes: &[&str] = if is_about_memory { &["-A256k", "-c"] } else { &["-A64m"] };
            words.push("+RTS".to_owned());
            words.extend(sizes.iter().map(|&word| word.to_owned()));
        }
        if peer.is_threaded_ghc() {
            words.push(format!("-N{cpus}"));
        }
        words
    });
    let environment = match cpus {
        1 if peer.is_go() => vec![("GOMAXPROCS", "1")],
        2 if peer.is_go() => vec![("GOMAXPROCS", "2")],
        _ => vec![],
    };
    Contender {
        system: system.to_owned(),
        ours: false,
        command,
        environment,
        cpus: &BOTH_CPUS[..cpus],
        input: None,
        may_fail: false,
        answers: vec![],
    }
}

impl Contender {
    /// On this number of CPUs: 1 or 2.
    pub(crate) fn on(mut self, cpus: usize) -> Contender {
        self.cpus = &BOTH_CPUS[..cpus];
        self
    }

    /// The file that it reads, which is in the page cache when a run begins.
    pub(crate) fn reads(mut self, path: &str) -> Contender {
        self.input = Some(path.to_owned());
        self
    }

    /// The answer a run has to print.
    pub(crate) fn answers(mut self, name: &'static str, value: u64) -> Contender {
        self.answers.push((name, value as f64));
        self
    }
}

/// A table without notes.
pub(crate) fn table(name: &'static str, title: &str, machine: Machine, rows: Vec<Row>) -> Table {
    Table { name, title: title.to_owned(), machine, rows, notes: vec![] }
}

/// Threads in words: `1`, `1000`, `10 million`.
pub(crate) fn threads(n: u64) -> String {
    match n {
        1 => "1 thread".to_owned(),
        n if n >= 1_000_000_000 && n % 1_000_000_000 == 0 => format!("{} billion threads", n / 1_000_000_000),
        n if n >= 1_000_000 && n % 1_000_000 == 0 => format!("{} million threads", n / 1_000_000),
        n => format!("{n} threads"),
    }
}
