//! `figures NAME`: measures one figure, ours and its peers in the same run, and prints one table.
//!
//! A figure checks its answers before it shows a time, shows the median of interleaved rounds,
//! names the machine and the command of every row, and says of a peer that is not installed that it
//! is missing. `--json FILE` writes the same rows for programs. The peers and how to install them:
//! `figures/peers/README.md`.

// # For readers of the source
//
// Each module has a table of its figures, `FIGURES`, and each compiled peer one source file. A
// figure checks its answers before it prints a time. Programs about several workers are one text
// under our runtime and tokio's (`child/runtime.rs`). `callgrind.rs` counts instructions, and
// `published.rs` compares them with the published ones. `published.json` has the published
// measurements, with the commit and the machine of each figure.
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
mod figure;
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

use crate::aims::Aims;
use crate::effort::{Effort, Purpose};
use crate::figure::Figure;
use crate::measure::NOTICED;
use crate::table::Table;
use lexopt::prelude::*;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

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

/// The tables of the figures, in the order in which they are listed and measured.
const FIGURES: &[&[Figure]] = &[
    instructions::FIGURES,
    threads::FIGURES,
    lwc::FIGURES,
    cores::FIGURES,
    pipes::FIGURES,
    stm::FIGURES,
    stamp::FIGURES,
    lazy::FIGURES,
    cnc::FIGURES,
    streams::bytes::FIGURES,
    streams::items::FIGURES,
    make::FIGURES,
    timers::FIGURES,
    simulation::FIGURES,
    echo::FIGURES,
    jobs::FIGURES,
    starts::FIGURES,
    abstractions::FIGURES,
    mpi::latency::FIGURES,
    mpi::collectives::FIGURES,
    mpi::waiting::FIGURES,
    mpi::idle::FIGURES,
    mpi::trapezoid::FIGURES,
    mpi::serialise::FIGURES,
    mpi::cnc::FIGURES,
    web::FIGURES,
    web::designs::FIGURES,
    web::application::FIGURES,
    web::multicore::FIGURES,
    web::proxied::FIGURES,
    web::programs::FIGURES,
    web::reloaded::FIGURES,
    web::cold::FIGURES,
    web::idle::FIGURES,
    web::stacked::FIGURES,
    stacks::FIGURES,
    dns::FIGURES,
    ftp::FIGURES,
    disk::FIGURES,
];

fn all_figures() -> impl Iterator<Item = &'static Figure> {
    FIGURES.iter().copied().flatten()
}

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
            for figure in all_figures() {
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
            let others = all_figures().filter(|figure| figure.name != "instructions");
            figures(&others.collect::<Vec<_>>(), effort, json)
        }
        ["all"] => figures(&all_figures().collect::<Vec<_>>(), effort, json),
        names => {
            let find =
                |name: &str| all_figures().find(|figure| figure.name == name).ok_or_else(|| name.to_owned());
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
