//! The project's own commands: `cargo xtask help` lists them.
//!
//! `cargo xtask ci` is the one description of what must hold before a change is taken. The file
//! `.ci/run` calls it and does nothing else.
#![forbid(unsafe_code)]

mod ci;
mod command;
mod fuzz;
mod peers;
mod programs;
mod publish;
mod setup;
mod soak;
mod tidy;
mod workspace;

use ci::Extent;
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask COMMAND

  test                    setup, tidy, format, lints, docs, tests, examples: a few minutes
  ci                      the same, and the proofs: programs 20 times in each surrounding, a minute of
                          stress, the figures' answers and instructions, loom, Miri, the thread and address sanitizers
  setup                   install what the tests need (as root), or say which packages to install
  tidy [--write]          check layers, links, paper headings, glossary, changelog and stray paths;
                          --write regenerates docs/CONCORDANCE.md
  fuzz SECONDS [TARGET]   run each fuzz target, or the one named, for SECONDS
  soak SECONDS            the web server under resets, half-closes and load; memory and descriptors stay constant
  stress SECONDS          threads that wait for, cancel and steal everything at once; the same stays constant
  programs RUNS [NAMES]   run the programs of programs/ RUNS times under each runner, or those with NAMES
  peers                   install and build the systems the figures are measured against
  publish FILE..          put what `figures --json FILE` measured into the README and the site
  help                    this text
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match args.as_slice() {
        ["test"] => return ci::run(Extent::Tests),
        ["ci"] => return ci::run(Extent::TestsAndProofs),
        ["setup"] => setup::run(Extent::TestsAndProofs),
        ["tidy"] => tidy::run(tidy::Concordance::MustBeCurrent),
        ["tidy", "--write"] => tidy::run(tidy::Concordance::Rewrite),
        ["fuzz", seconds] => fuzz::run(seconds, None),
        ["fuzz", seconds, target] => fuzz::run(seconds, Some(target)),
        ["soak", seconds] => soak::SOAK.run(seconds),
        ["stress", seconds] => soak::STRESS.run(seconds),
        ["programs", runs] => programs::run(runs, ""),
        ["programs", runs, names] => programs::run(runs, names),
        ["peers"] => peers::run(),
        ["publish", files @ ..] if !files.is_empty() => publish::run(files),
        ["help" | "--help" | "-h"] | [] => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("xtask: no such command: {}\n\n{HELP}", args.join(" "));
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
