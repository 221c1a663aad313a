//! `figures NAME`: measures one figure, ours and its peers in the same run, and prints one table.
//!
//! A figure checks its answers before it shows a time, shows the median of interleaved rounds,
//! names the machine and the command of every row, and says of a peer that is not installed that it
//! is missing. `--json FILE` writes the same rows for programs. The peers and how to install them:
//! `figures/peers/README.md`.

// # For readers of the source
//
// One module for each figure, one source file for each compiled peer. A figure checks its answers
// before it prints a time. Programs about several workers are one text under our runtime and
// tokio's (`child/runtime.rs`). `callgrind.rs` counts instructions, and `published.rs` compares
// them with the published ones. `published.json` has the published measurements, with the commit
// and the machine of each figure.
//
// Invariant: no number is printed that the same run did not measure. A peer that is not installed
// is a row that says so.

#![deny(unsafe_code)]

mod abstractions;
mod aims;
mod callgrind;
mod child;
mod cnc;
mod contender;
mod cores;
mod disk;
mod dns;
mod echo;
mod effort;
mod ftp;
mod instructions;
mod jobs;
mod lazy;
mod lwc;
mod machine;
mod make;
mod measure;
mod mpi;
mod peers;
mod pinned;
mod pipes;
mod published;
mod serving;
mod simulation;
mod stacks;
mod stamp;
mod starts;
mod stm;
mod streams;
mod table;
mod threads;
mod timers;
mod web;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use lexopt::prelude::*;

use crate::aims::Aims;
use crate::effort::{Effort, Purpose};
use crate::measure::NOTICED;
use crate::table::Table;

const HELP: &str = "\
Measures a figure beside its peers and prints one table.

usage: figures [--json FILE] [--rounds N] [--seconds S] [--check | --faults] NAME...
       figures list          the figures there are
       figures all           every figure, one after the other
       figures build-peers   build the peer programs, say which peers are missing
       figures packages      the Debian packages that bring the peers
       figures check-instructions   count ours and compare them with figures/instructions.json
       figures write-instructions   count ours and write them there

  --check       check the answers of every program with small numbers, and the names in figures/aims.toml; show
                no times
  --faults      tell each program of ours to give a wrong answer, and fail if its figure does not notice
  --json FILE   also write the rows as JSON, which `cargo xtask publish` reads
  --rounds N    interleaved rounds; the median is shown (5)
  --seconds S   length of one run of a web figure (2); one against an echo server takes 0.4 of it, and what goes
                through pipes in one run is proportional to it
";

/// A figure: its name, its content, and how to measure it.
struct Figure {
    name: &'static str,
    about: &'static str,
    measure: fn(Effort) -> Result<Table, String>,
}

const FIGURES: &[Figure] = &[
    Figure {
        name: "instructions",
        about: "user instructions of one operation, by callgrind",
        measure: instructions::instructions,
    },
    Figure {
        name: "threads-memory",
        about: "bytes per yield-loop thread; a billion at once",
        measure: threads::memory,
    },
    Figure {
        name: "threads-switch",
        about: "time per yield, 1 to 100 million live threads",
        measure: threads::switch,
    },
    Figure { name: "threads-spawn", about: "time to spawn a thread that finishes", measure: threads::spawn },
    Figure {
        name: "mvar-ring",
        about: "time per hand-over in a ring of 2 and 1000 threads",
        measure: threads::ring,
    },
    Figure {
        name: "foreign-wake",
        about: "ping-pong through a waker-based primitive",
        measure: threads::foreign_wake,
    },
    Figure {
        name: "lwc",
        about: "three programs over nine kinds of light threads, beside GHC, Lwt, Go, Erlang, Java, tokio",
        measure: lwc::lwc,
    },
    Figure {
        name: "mp-speedup",
        about: "1024 threads that compute, on one worker and on two",
        measure: cores::speed_up,
    },
    Figure {
        name: "threads-switch-mc",
        about: "yields, spawn + join, rings with two workers",
        measure: cores::switch,
    },
    Figure {
        name: "fifo-idle",
        about: "128 pairs over 4 KB pipes, beside up to a million idle threads",
        measure: pipes::idle,
    },
    Figure { name: "fifo-busy", about: "4 to 4096 pairs over 4 KB pipes", measure: pipes::busy },
    Figure {
        name: "stm-counter",
        about: "a shared counter: transactions, mutex and atomic",
        measure: stm::counter,
    },
    Figure { name: "stm-size", about: "transactions of 10 to 1000 reads", measure: stm::size },
    Figure {
        name: "stm-disjoint",
        about: "counters that no two threads share, 1 and 2 threads",
        measure: stm::disjoint,
    },
    Figure { name: "stm-bank", about: "transfers between 1024 accounts, and audits", measure: stm::bank },
    Figure {
        name: "stm-retry",
        about: "transactions that wait: ping-pong, a herd, 100,000 parked",
        measure: stm::retry,
    },
    Figure { name: "stm-sets", about: "list, tree and hash map over variables", measure: stm::sets },
    Figure {
        name: "stamp",
        about: "the STAMP programs over transactions of ours and of GHC",
        measure: stamp::stamp,
    },
    Figure {
        name: "lazy-force",
        about: "the first force of a lazy value, and the next",
        measure: lazy::force,
    },
    Figure { name: "lazy-suite", about: "lazy programs under each engine", measure: lazy::suite },
    Figure {
        name: "black-hole-wake",
        about: "the wake-up of a thread that waits for a lazy value, beside others",
        measure: lazy::wake,
    },
    Figure {
        name: "lazy-conflicts",
        about: "duplicated evaluations with two threads",
        measure: lazy::conflicts,
    },
    Figure { name: "spark", about: "fib(30) with joins", measure: lazy::spark },
    Figure { name: "cnc-steps", about: "steps of a graph: empty, with a put, chains", measure: cnc::steps },
    Figure { name: "cnc-miss", about: "steps each of which misses an item", measure: cnc::miss },
    Figure { name: "cnc-wavefront", about: "a step for each cell of a table", measure: cnc::wavefront },
    Figure { name: "cnc-items", about: "puts and gets in each kind of storage", measure: cnc::items },
    Figure { name: "cnc-six", about: "the six programs of the paper", measure: cnc::six },
    Figure { name: "cnc-cholesky", about: "a factor of a matrix in tiles", measure: cnc::cholesky },
    Figure { name: "cnc-async", about: "steps with continuations", measure: cnc::asynchronous },
    Figure { name: "cnc-trace", about: "steps of a graph that is looked at", measure: cnc::trace },
    Figure {
        name: "cnc-schedulers",
        about: "the six programs under every scheduler",
        measure: cnc::schedulers,
    },
    Figure {
        name: "pipe-grep",
        about: "the paper's grep and grep -n over 500 MB, beside GNU grep, ripgrep, conduit",
        measure: streams::bytes::grep,
    },
    Figure {
        name: "pipe-shell",
        about: "the command selvedge-pipe over 500 MB, beside ripgrep, GNU grep and mawk",
        measure: streams::bytes::shell,
    },
    Figure { name: "pipe-lines", about: "a closure for each line of 500 MB", measure: streams::bytes::lines },
    Figure {
        name: "pipe-rewrite",
        about: "each occurrence replaced in 500 MB, beside GNU sed",
        measure: streams::bytes::rewrite,
    },
    Figure {
        name: "pipe-xml",
        about: "elements with an attribute in 200 MB, beside quick-xml and xmllint",
        measure: streams::bytes::xml,
    },
    Figure {
        name: "pipe-sort",
        about: "a merge sort with a cycle, beside a network of threads and sort -n",
        measure: streams::bytes::sort,
    },
    Figure {
        name: "pipe-stages",
        about: "five lifted stages over 100 million numbers, five coroutines over 10 million",
        measure: streams::items::stages,
    },
    Figure { name: "pipe-hop", about: "one chunk over one edge", measure: streams::items::hop },
    Figure {
        name: "pipe-branch",
        about: "two branches that merge in order, against a plain hop",
        measure: streams::items::branch,
    },
    Figure {
        name: "pipe-ahead",
        about: "two halves of the work on two CPUs",
        measure: streams::items::ahead,
    },
    Figure {
        name: "pipe-memory",
        about: "10,000 idle pipelines of four stages",
        measure: streams::items::memory,
    },
    Figure {
        name: "make-speedup",
        about: "module graphs built by two commands at a time against one",
        measure: make::speed_up,
    },
    Figure {
        name: "make-overhead",
        about: "build runners: 10,000 edges, nothing to do and -n",
        measure: make::overhead,
    },
    Figure {
        name: "make-overhead-large",
        about: "build runners: 100,000 edges, nothing to do and -n",
        measure: make::overhead_large,
    },
    Figure {
        name: "make-commands",
        about: "build runners: commands that do nothing",
        measure: make::commands,
    },
    Figure {
        name: "make-projects",
        about: "build runners: real projects from nothing, and nothing to do",
        measure: make::projects,
    },
    Figure { name: "timers", about: "a million timers: set, cancel, fire", measure: timers::timers },
    Figure {
        name: "simulation",
        about: "steps a second of programs in an order that a seed determines",
        measure: simulation::simulation,
    },
    Figure { name: "server-echo", about: "TCP echo, 1 to 9000 connections", measure: echo::echo },
    Figure { name: "server-http", about: "hello world of hyper, on ours and on tokio", measure: echo::http },
    Figure {
        name: "job-queue",
        about: "jobs over TCP: transactions, and a log on disk",
        measure: jobs::jobs,
    },
    Figure {
        name: "blocking-call",
        about: "a call on an OS thread of the blocking pool",
        measure: starts::blocking_call,
    },
    Figure {
        name: "runner-start",
        about: "a runner that starts, does little, and ends",
        measure: starts::runner_start,
    },
    Figure { name: "skynet", about: "a tree of a million threads", measure: cores::skynet },
    Figure {
        name: "cost-of-abstractions",
        about: "join, select, time-out, a foreign future",
        measure: abstractions::costs,
    },
    Figure {
        name: "mpi-latency",
        about: "messages to and fro between two ranks, beside C, rsmpi, mpi4py",
        measure: mpi::latency::latency,
    },
    Figure {
        name: "mpi-bandwidth",
        about: "bytes a second from one rank to another",
        measure: mpi::latency::bandwidth,
    },
    Figure {
        name: "mpi-collectives",
        about: "calls of all ranks: 2 ranks, and 8 ranks on 2 CPUs",
        measure: mpi::collectives::collectives,
    },
    Figure {
        name: "mpi-waiting",
        about: "10,000 threads of a rank that wait for a message each",
        measure: mpi::waiting::waiting,
    },
    Figure {
        name: "mpi-idle",
        about: "a rank that waits: its CPU, and how soon it wakes",
        measure: mpi::idle::idle,
    },
    Figure {
        name: "mpi-trapezoid",
        about: "the area under a curve by ranks, beside C",
        measure: mpi::trapezoid::trapezoid,
    },
    Figure {
        name: "mpi-serialise",
        about: "values as bytes, beside other formats",
        measure: mpi::serialise::serialise,
    },
    Figure { name: "web-small", about: "a 612-byte file over 64 connections, log on", measure: web::small },
    Figure { name: "web-16k", about: "a 16 KiB file over 64 connections, log on", measure: web::sixteen_k },
    Figure {
        name: "web-pipelined",
        about: "the 612-byte file, 16 requests at a time",
        measure: web::pipelined,
    },
    Figure { name: "web-log", about: "CPU per request, access log on against off", measure: web::log },
    Figure { name: "log-designs", about: "five designs of an access log, and ours", measure: web::designs },
    Figure {
        name: "web-app",
        about: "an application: JSON, a body, a part of the path",
        measure: web::application,
    },
    Figure { name: "web-multicore", about: "a 612-byte file by two workers", measure: web::multicore },
    Figure { name: "web-proxy", about: "a reverse proxy, small and large answers", measure: web::proxied },
    Figure { name: "web-cgi", about: "CGI and FastCGI", measure: web::programs },
    Figure { name: "web-reload", about: "ten reloads a second under load", measure: web::reloaded },
    Figure { name: "web-disk", about: "files that are not in memory", measure: web::cold },
    Figure {
        name: "stack-web",
        about: "the web server over the kernel's TCP and over its own, behind devices",
        measure: web::stacked,
    },
    Figure { name: "stack-loss", about: "a transfer on a way that loses packets", measure: stacks::loss },
    Figure { name: "web-idle", about: "memory of 15,000 idle connections", measure: web::idle },
    Figure {
        name: "dns",
        about: "DNS servers: answers from a cache, and of an authority",
        measure: dns::dns,
    },
    Figure { name: "ftp", about: "FTP servers: a file of 1 GB", measure: ftp::ftp },
    Figure {
        name: "disk-random",
        about: "random 4 KB reads past the page cache, 1 to 65536 threads; a million that wait",
        measure: disk::random,
    },
];

/// The aims of all figures.
const AIMS: &str = include_str!("../aims.toml");

fn main() -> ExitCode {
    // The two ways this program is its own tool: running a program pinned to a CPU, and being one
    // of our programs.
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["pinned", cpus, program, ..] => match pinned::list(cpus) {
            Some(cpus) => Err((pinned::exec(&cpus, program, &words[3..]), 127)),
            None => Err((format!("no CPUs: {cpus}"), 2)),
        },
        ["child", ..] => child::run(&words[1..]).map_err(|error| (error, 2)),
        _ => command_line(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err((message, status)) => {
            eprintln!("figures: {message}");
            ExitCode::from(status)
        }
    }
}

/// Runs the command that the user gave. An error carries the exit status: 2 for usage, 1 for
/// everything else.
fn command_line() -> Result<(), (String, u8)> {
    let usage = |error: lexopt::Error| (format!("{error}\n\n{HELP}"), 2);
    let mut names = Vec::new();
    let mut json = None;
    let mut effort = Effort { rounds: 5, seconds: 2, purpose: Purpose::Times };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next().map_err(usage)? {
        match argument {
            Long("json") => json = Some(PathBuf::from(parser.value().map_err(usage)?)),
            Long("rounds") => effort.rounds = parser.value().and_then(|v| v.parse()).map_err(usage)?,
            Long("seconds") => effort.seconds = parser.value().and_then(|v| v.parse()).map_err(usage)?,
            Long("check") => effort = Effort { rounds: 1, purpose: Purpose::Answers, ..effort },
            Long("faults") => effort = Effort { rounds: 1, purpose: Purpose::Faults, ..effort },
            Long("help") | Short('h') => {
                print!("{HELP}");
                return Ok(());
            }
            Value(name) => names.push(name.string().map_err(usage)?),
            other => return Err(usage(other.unexpected())),
        }
    }
    if effort.rounds == 0 || effort.seconds == 0 {
        return Err(("at least one round of at least one second".into(), 2));
    }
    match names.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => Err((format!("which figure?\n\n{HELP}"), 2)),
        ["list"] => {
            for figure in FIGURES {
                println!("{:<21} {}", figure.name, figure.about);
            }
            Ok(())
        }
        ["packages"] => {
            println!("{}", peers::PACKAGES.join("\n"));
            Ok(())
        }
        ["build-peers"] => peers::build_all().map_err(|error| (error, 1)),
        ["check-instructions"] => published::check().map_err(|error| (error, 1)),
        ["write-instructions"] => published::write().map_err(|error| (error, 1)),
        ["all"] if effort.is_small() => {
            // Instructions have a check of their own.
            let others = FIGURES.iter().filter(|figure| figure.name != "instructions");
            figures(&others.collect::<Vec<_>>(), effort, json)
        }
        ["all"] => figures(&FIGURES.iter().collect::<Vec<_>>(), effort, json),
        names => {
            let find =
                |name: &str| FIGURES.iter().find(|figure| figure.name == name).ok_or_else(|| name.to_owned());
            let chosen: Result<Vec<&Figure>, String> = names.iter().map(|name| find(name)).collect();
            let chosen = chosen
                .map_err(|name| (format!("no figure is called {name}; `figures list` names them"), 2))?;
            figures(&chosen, effort, json)
        }
    }
}

/// Measures and prints the figures. If one fails, the others are shown all the same.
fn figures(chosen: &[&Figure], effort: Effort, json: Option<PathBuf>) -> Result<(), (String, u8)> {
    let mut measured = Vec::new();
    let mut failed = Vec::new();
    let aims = Aims::read(AIMS).map_err(|error| (error, 1))?;
    for figure in chosen {
        match (figure.measure)(effort).and_then(|table| table.aimed(&aims, effort.purpose)) {
            Ok(table) if effort.is_small() => println!("{}", checked(&table)),
            Ok(table) => {
                println!("{}", table.text());
                measured.push(table.json());
            }
            Err(error) => {
                eprintln!("figures: {}: {error}", figure.name);
                failed.push(figure.name);
            }
        }
    }
    if let Some(path) = json {
        let text = format!("{:#}\n", serde_json::Value::Array(measured));
        fs::write(&path, text).map_err(|error| (format!("{}: {error}", path.display()), 1))?;
    }
    if failed.is_empty() { Ok(()) } else { Err((format!("without a result: {}", failed.join(", ")), 1)) }
}

/// The line of a figure in a run that checks answers: no times, and why there was nothing to check.
fn checked(table: &Table) -> String {
    let right = table.rows.iter().filter(|row| row.value.is_ok()).count();
    let (noticed, others): (Vec<_>, Vec<_>) = table
        .rows
        .iter()
        .filter_map(|row| Some((row, row.value.as_ref().err()?)))
        .partition(|(_, why)| *why == NOTICED);
    let mut others: Vec<String> =
        others.into_iter().map(|(row, why)| format!("\n  {}: {why}", row.system)).collect();
    others.sort();
    others.dedup();
    let counts = format!("{right} rows right, faults of {} rows noticed", noticed.len());
    format!("{}: {counts}{}", table.name, others.concat())
}
