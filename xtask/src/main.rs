//! The project's own commands: `cargo xtask help` lists them.
//!
//! The lists of what a change must pass are in `ci.rs` and `proofs.rs`, and `cargo xtask ci` runs
//! both. The file `.ci/run` calls it and does nothing else.

// # For readers of the source
//
// A proof (loom, Miri, sanitizers, fuzzing, programs, stress, packages, the figures' answers) takes
// minutes, so it runs when its inputs have changed. `proofs/digest.rs` takes a digest of them.
// `proofs.json` records the digest with which each proof has passed, with the day, the machine and
// the time. `prove.rs` runs the proofs that are not recorded, and records the proofs that pass. CI
// also draws one in eight of the recorded proofs by the commit's hash, so that a record that should
// not be there does not last. None of these begins after CI has taken 25 minutes, and CI names the
// proofs that it left out. Miri, loom and the sanitizers run on one CPU each and bear a slow one,
// so two of them run at a time.
//
// `publish.rs` makes the README's table, `docs/FIGURES.md`, and the plots and generated pages of
// `site/`. Its function `pages` goes from texts to texts: from `figures/published.json` and
// `docs/guide/` to the pages. `cargo xtask publish` writes them, and `tidy/pages.rs` compares them
// with the committed ones.

#![forbid(unsafe_code)]

mod binaries;
mod ci;
mod command;
mod disk;
mod fuzz;
mod mpi_builds;
mod packages;
mod peers;
mod programs;
mod projects;
mod proofs;
mod prove;
mod publish;
mod semver;
mod setup;
mod side_by_side;
mod soak;
mod steps;
mod tidy;
mod tokens;
mod workspace;

use prove::Choice;
use setup::Extent;
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask COMMAND

  test                    setup, every test, every example: a few minutes
  ci [--all]              the same; tidy, format, lints, docs; and the proofs that are not recorded in
                          proofs.json for what they prove now, and one in eight of the others; with --all
                          every proof
  prove [NAMES]           run the proofs that are not recorded, or those with one of NAMES in their names, and
                          record those that pass: loom, Miri, sanitizers, fuzzing, programs, stress, packages,
                          the figures' answers and instructions
  prove --all | --list    run every proof; or tell the state of each, and where its last output is
  setup                   install the programs that the tests need (as root), or name their packages; fetch
                          builds of MPI into the target directory
  tidy [--write]          check layers, links, paper headings, glossary, changelog, generated pages,
                          stray paths, the words, clauses and widths of comments, the names of types,
                          circles of files, lengths of functions, where modules and imports stand;
                          --write regenerates docs/CONCORDANCE.md
  fuzz SECONDS [TARGET]   run each fuzz target, or the one named, for SECONDS
  soak SECONDS [server]   the list of a night, SECONDS for each part: the web server under resets, half-closes
                          and load, `stress`, what transactions see, graphs under 1,000 seeds, builds that are
                          killed, `fuzz`, and `projects`; with `server` the first part alone
  projects SECONDS [NAMES]
                          fetch real projects from Debian's sources, and build each with ninja and with
                          selvedge-make, or those with NAMES: the same commands, the same files; none is
                          begun after SECONDS
  projects fetch [NAMES]  fetch the sources alone
  stress SECONDS          threads that wait for, cancel and steal everything at once; memory and descriptors
                          stay constant
  programs RUNS [NAMES]   run the programs of programs/ RUNS times under each runner, or those with NAMES
  packages                pack every crate that may be published, and build all of them from their packages
  peers                   install and build the systems the figures are measured against
  publish [FILE..]        take the figures that `figures --json FILE` measured into
                          figures/published.json; write the README's table, docs/FIGURES.md, and the
                          plots and pages of the site
  semver [COMMIT]         compare the public API with the last tag, or with COMMIT, by cargo-semver-checks
  help                    this text
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match args.as_slice() {
        ["test"] => return ci::test(),
        ["ci"] => return ci::ci(Choice::NewAndSome),
        ["ci", "--all"] => return ci::ci(Choice::All),
        ["prove", words @ ..] => return prove::command(words),
        ["setup"] => setup::run(Extent::TestsAndProofs),
        ["tidy"] => tidy::run(tidy::Concordance::MustBeCurrent),
        ["tidy", "--write"] => tidy::run(tidy::Concordance::Rewrite),
        ["fuzz", seconds] => fuzz::run(seconds, None),
        ["fuzz", seconds, target] => fuzz::run(seconds, Some(target)),
        ["soak", seconds] => soak::night(seconds),
        ["soak", seconds, "server"] => soak::SOAK.run(seconds),
        ["stress", seconds] => soak::STRESS.run(seconds),
        ["projects", "fetch", names @ ..] => projects::fetch(names),
        ["projects", seconds, names @ ..] => projects::run(seconds, names),
        ["programs", runs] => programs::run(runs, ""),
        ["programs", runs, names] => programs::run(runs, names),
        ["packages"] => workspace::Workspace::load()
            .and_then(|workspace| packages::run(&workspace, &mut command::Tally::default())),
        ["peers"] => peers::run(),
        ["publish", files @ ..] => publish::run(files),
        ["semver"] => semver::run(None),
        ["semver", commit] => semver::run(Some(commit)),
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
