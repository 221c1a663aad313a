//! `cargo xtask test` and `cargo xtask ci`: every check, in one order, with one closing line.
//!
//! `test` builds once and runs the tests. `ci` runs the same, then the checks of the tree's form
//! (`CHECKS`), and then proofs: the proofs that are not recorded, and one in eight of the others,
//! by `prove.rs`.

use crate::command::{Invocation, Tally, minutes};
use crate::prove::{self, Choice};
use crate::setup::Extent;
use crate::steps::{self, Outcome};
use crate::tidy::{self, Concordance};
use crate::workspace::Workspace;
use crate::{binaries, disk, fuzz, setup};
use std::process::ExitCode;
use std::time::Instant;

/// One check: its name, and its function.
type Step = (&'static str, fn(&Workspace, &mut Tally) -> Result<(), String>);

/// The checks of `cargo xtask test`. They run one after the other, because each uses all CPUs.
const TESTS: &[Step] = &[
    ("tests", binaries::run),
    // After the tests, because these build the examples.
    ("examples", examples),
];

/// What `cargo xtask ci` checks before the proofs: words, layers, format, lints, documents.
const CHECKS: &[Step] = &[
    ("tidy", |_, _| tidy::run(Concordance::MustBeCurrent)),
    ("format", |workspace, tally| cargo(workspace, tally, 2, &["fmt", "--all", "--check"])),
    ("lints", |workspace, tally| {
        let words = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
        cargo(workspace, tally, 10, &words)
    }),
    // A feature that one package of the workspace turns on is on for all: so the public crates are
    // built once by themselves, without the engines of `stm` that the figures compare.
    ("lints of the default build", |workspace, tally| {
        let words = ["clippy", "--package", "selvedge", "--locked", "--", "-D", "warnings"];
        cargo(workspace, tally, 10, &words)
    }),
    ("lints of fuzz", lints_of_the_fuzz_targets),
    ("docs", |workspace, tally| {
        let words = ["cargo", "doc", "--workspace", "--no-deps", "--locked"];
        let invocation = Invocation::new(minutes(8), &words).env("RUSTDOCFLAGS", "-D warnings");
        invocation.run(&workspace.root, tally)
    }),
    ("disk", disk::check),
];

const EXAMPLES: &str = "selvedge-examples";

/// Runs the tests.
pub(crate) fn test() -> ExitCode {
    run("test", Extent::Tests, |workspace, _| of_list(workspace, TESTS))
}

/// Runs the tests, the checks and the chosen proofs.
pub(crate) fn ci(choice: Choice) -> ExitCode {
    run("ci", Extent::TestsAndProofs, |workspace, started| {
        let mut outcomes = of_list(workspace, TESTS);
        outcomes.extend(of_list(workspace, CHECKS));
        outcomes.extend(prove::every(choice, started));
        outcomes
    })
}

/// Runs every step, also after one has failed. Without the set-up it runs none. `rest` is told
/// when the command began. The last line of the output is the number of tests that passed and
/// failed.
fn run(command: &str, extent: Extent, rest: impl FnOnce(&Workspace, Instant) -> Vec<Outcome>) -> ExitCode {
    let started = Instant::now();
    let mut outcomes = vec![steps::one(Tally::of("setup", false), |_| setup::run(extent))];
    if outcomes[0].result.is_ok() {
        match Workspace::load() {
            Ok(workspace) => {
                outcomes.extend(rest(&workspace, started));
                println!("\n{command}: {}", disk::used(&workspace));
            }
            Err(error) => outcomes.push(steps::one(Tally::of("workspace", false), |_| Err(error))),
        }
    }
    steps::close(command, started.elapsed().as_secs_f64(), outcomes)
}

fn of_list(workspace: &Workspace, list: &[Step]) -> Vec<Outcome> {
    let one = |(name, check): &Step| steps::one(Tally::of(name, false), |tally| check(workspace, tally));
    list.iter().map(one).collect()
}

fn cargo(workspace: &Workspace, tally: &mut Tally, limit: u64, words: &[&str]) -> Result<(), String> {
    let words = [&["cargo"], words].concat();
    Invocation::new(minutes(limit), &words).run(&workspace.root, tally)
}

/// The fuzz targets lie outside the workspace, so that the step `lints` does not see them. They
/// take what that step has compiled. `--locked` tells a lock file that is stale.
fn lints_of_the_fuzz_targets(workspace: &Workspace, tally: &mut Tally) -> Result<(), String> {
    let target_dir = workspace.target_dir.to_str().ok_or("the target directory is not UTF-8")?;
    let words = ["cargo", "clippy", "--locked", "--manifest-path", fuzz::MANIFEST, "--", "-D", "warnings"];
    Invocation::new(minutes(5), &words).env("CARGO_TARGET_DIR", target_dir).run(&workspace.root, tally)
}

/// Every example is a program that ends by itself. The step `tests` has built them, with the
/// features that the whole workspace asks for.
fn examples(workspace: &Workspace, tally: &mut Tally) -> Result<(), String> {
    let package = workspace.package(EXAMPLES).ok_or(format!("no package {EXAMPLES}"))?;
    let built = workspace.target_dir.join("debug/examples");
    for example in package.targets.iter().filter(|target| target.kind == "example") {
        let program = built.join(&example.name);
        let program = program.to_str().ok_or_else(|| format!("{} is not UTF-8", program.display()))?;
        tally.say(&format!("ci: {program}"));
        Invocation::new(minutes(1), &[program]).run(&workspace.root, tally)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_check_runs_also_after_one_has_failed() {
        // There is no such directory, so no command can start in it.
        let nowhere = Path::new("/selvedge/no/such/directory");
        let workspace = Workspace { root: nowhere.into(), target_dir: nowhere.into(), packages: Vec::new() };
        let outcomes: Vec<_> =
            [TESTS, CHECKS].into_iter().flat_map(|list| of_list(&workspace, list)).collect();
        for name in ["tests", "examples", "format", "lints", "docs"] {
            let outcome = outcomes.iter().find(|outcome| outcome.name == name).unwrap();
            assert!(outcome.result.is_err() && outcome.tally.failed == 1, "{name}");
        }
    }
}
