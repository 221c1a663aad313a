//! All implementations by name ([`ALL`]), and a program under one of them, measured and checked
//! ([`run`]).
//!
//! The command line and the figure `lwc` call `run`; the suite goes through `ALL`.

use crate::apps::{AppFound, answers, kpn, sieve, sorter};
use crate::equeue::{After, Directed, InTurn};
use crate::{
    Async, Callcc, ContMonad, Direct, Dlcont, Equeue, Indirect, LibraryThreads, PromiseMonad, Selvedge,
    SelvedgeDirect, Sys, Tasks, Tramp, Vm,
};
use std::fmt;
use std::fs;
use std::time::{Duration, Instant};

/// A way to make threads, with the three applications over it.
#[derive(Debug, Clone, Copy)]
pub struct Implementation {
    /// Its name on the command line: the paper's, if it has one.
    pub name: &'static str,
    /// How the programs are written for it.
    pub style: Style,
    /// How many of the numbers 2^a 3^b 5^c, from the smallest on.
    pub kpn: fn(usize) -> AppFound,
    /// The primes up to a number.
    pub sieve: fn(u64) -> AppFound,
    /// This number of numbers sorted, or the network for them only built.
    pub sorter: fn(usize, bool) -> AppFound,
}

/// How a program is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// An operation that blocks looks like any other call.
    Direct,
    /// Continuations are written as closures.
    Indirect,
    /// The compiler makes the continuations.
    Async,
}

const fn direct<S: Direct>(name: &'static str) -> Implementation {
    let (kpn, sieve, sorter) = (kpn::direct::<S>, sieve::direct::<S>, sorter::direct::<S>);
    Implementation { name, style: Style::Direct, kpn, sieve, sorter }
}

const fn indirect<S: Indirect>(name: &'static str) -> Implementation {
    let (kpn, sieve, sorter) = (kpn::indirect::<S>, sieve::indirect::<S>, sorter::indirect::<S>);
    Implementation { name, style: Style::Indirect, kpn, sieve, sorter }
}

const fn awaited<S: Async>(name: &'static str) -> Implementation {
    let (kpn, sieve, sorter) = (kpn::awaited::<S>, sieve::awaited::<S>, sorter::awaited::<S>);
    Implementation { name, style: Style::Async, kpn, sieve, sorter }
}

/// Every implementation.
pub const ALL: &[Implementation] = &[
    awaited::<Selvedge>("selvedge"),
    direct::<SelvedgeDirect>("selvedge-direct"),
    awaited::<LibraryThreads>("selvedge-library"),
    direct::<Sys>("sys"),
    direct::<Vm>("vm"),
    direct::<Callcc>("callcc"),
    direct::<Dlcont>("dlcont"),
    indirect::<Tramp>("tramp"),
    indirect::<ContMonad>("cont"),
    indirect::<PromiseMonad>("promise"),
    indirect::<Equeue<InTurn>>("equeue"),
    indirect::<Equeue<After>>("equeue-after"),
    indirect::<Equeue<Directed>>("equeue-directed"),
    awaited::<Tasks>("async"),
];

/// The implementation of a name.
pub fn named(name: &str) -> Option<&'static Implementation> {
    ALL.iter().find(|implementation| implementation.name == name)
}

/// A program with its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Application {
    /// This number of numbers of the network with circles.
    Kpn(usize),
    /// The primes up to the first that is not below the number.
    Sieve(u64),
    /// This number of numbers sorted.
    Sorter(usize),
    /// The network for this number of numbers, built and not started.
    SorterBuilt(usize),
}

/// A program that ran, with the right answer.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// How long one round took.
    pub time: Duration,
    /// How many threads a round has created.
    pub threads: u64,
    /// By how much the memory of the process has grown at its largest.
    pub bytes: u64,
    /// One number for the answer, which depends on the order.
    pub digest: u64,
}

/// The numbers differ from the numbers of plain sequential code, or a thread panicked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrongAnswerError;

impl fmt::Display for WrongAnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the threads have found other numbers than plain sequential code, or one has panicked")
    }
}

impl std::error::Error for WrongAnswerError {}

/// Runs a program this number of times, and checks what it finds each time.
///
/// # Errors
/// If an answer is wrong.
pub fn run(program: Application, by: &Implementation, rounds: u32) -> Result<Measured, WrongAnswerError> {
    let answer = match program {
        Application::Kpn(n) => answers::hamming(n),
        Application::Sieve(last) => answers::primes(last),
        Application::Sorter(n) => answers::sorted(n),
        Application::SorterBuilt(_) => vec![],
    };
    let before = memory("VmRSS");
    let (mut time, mut threads) = (Duration::ZERO, 0);
    for _ in 0..rounds {
        let start = Instant::now();
        let found = match program {
            Application::Kpn(n) => (by.kpn)(n),
            Application::Sieve(last) => (by.sieve)(last),
            Application::Sorter(n) => (by.sorter)(n, false),
            Application::SorterBuilt(n) => (by.sorter)(n, true),
        };
        time += start.elapsed();
        if found.numbers != answer || found.ended.panicked > 0 {
            return Err(WrongAnswerError);
        }
        threads = found.threads;
    }
    let bytes = memory("VmHWM").saturating_sub(before);
    Ok(Measured { time: time / rounds.max(1), threads, bytes, digest: answers::digest(&answer) })
}

/// A line of the process's status in bytes; 0 where there is none.
fn memory(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
