//! `cargo xtask ci`: every check, in one order, with one closing line.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::command::{Invocation, Tally};
use crate::tidy::{self, Concordance};
use crate::workspace::Workspace;
use crate::{fuzz, setup, soak};

/// One check: its name, and what it does.
type Step = (&'static str, fn(&mut Ci) -> Result<(), String>);

const STEPS: &[Step] = &[
    ("tidy", |_| tidy::run(Concordance::MustBeCurrent)),
    ("format", |ci| ci.cargo(2, &["fmt", "--all", "--check"])),
    ("lints", |ci| {
        ci.cargo(10, &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])
    }),
    ("docs", |ci| {
        let words = ["cargo", "doc", "--workspace", "--no-deps", "--locked"];
        ci.run(Invocation::new(minutes(8), &words).env("RUSTDOCFLAGS", "-D warnings"))
    }),
    ("tests", |ci| ci.cargo(15, &["test", "--workspace", "--no-fail-fast", "--locked"])),
    ("examples", examples),
    ("loom", loom),
    ("miri", miri),
    ("thread sanitizer", thread_sanitizer),
    ("address sanitizer", address_sanitizer),
    ("stress", stress),
    ("fuzz targets", fuzz_targets),
];

/// Packages with protocols that loom checks, in tests whose names begin with `loom_`.
const UNDER_LOOM: &[&str] = &["selvedge-core", "selvedge-sync", "selvedge-sched"];

/// Packages whose unsafe code and memory orderings Miri looks at.
const UNDER_MIRI: &[&[&str]] = &[
    &["--package", "selvedge-core", "--tests"],
    // Not all: giving up at every suspension point alone takes Miri a minute and a half.
    &[
        "--package",
        "selvedge-sync",
        "--test",
        "*_models",
        "--test",
        "*_programs",
        "--test",
        "*_threads",
        "--test",
        "*_wakers",
    ],
    &["--package", "selvedge-sched", "--lib", "--test", "work_stealing"],
];

/// Tests with several OS threads, which the sanitizer watches for data races: the package and the tests.
const UNDER_THREAD_SANITIZER: &[(&str, &[&str])] = &[
    ("selvedge-core", &["mobile", "several_cpus", "foreign_joiners"]),
    ("selvedge-sync", &["random_programs"]),
    ("selvedge-sched", &["work_stealing", "every_scheduler"]),
    ("selvedge", &["stress"]),
];
const STRESS_SECONDS: u64 = 60;

/// The clock is the machine's; and `core` says itself where it turns a number into a pointer.
const MIRI_FLAGS: &str = "-Zmiri-disable-isolation -Zmiri-permissive-provenance";

const EXAMPLES: &str = "selvedge-examples";

struct Ci<'a> {
    workspace: &'a Workspace,
    tally: &'a mut Tally,
}

/// Runs every step, also after one has failed; without the set-up none is worth running. The last line of the output
/// is the number of tests that passed and failed.
pub(crate) fn run() -> ExitCode {
    let started = Instant::now();
    let mut tally = Tally::default();
    let failed = match prepared() {
        Err(error) => {
            println!("ci: {error}");
            tally.failed += 1;
            vec!["setup"]
        }
        Ok(workspace) => every_step(&workspace, &mut tally),
    };
    println!("\nci: took {:.0} s; the test runner said:", started.elapsed().as_secs_f64());
    for summary in &tally.summaries {
        println!("{summary}");
    }
    println!("{}", closing(&failed, &tally));
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn prepared() -> Result<Workspace, String> {
    timed("setup", setup::run)?;
    Workspace::load()
}

/// The names of the steps that failed.
fn every_step(workspace: &Workspace, tally: &mut Tally) -> Vec<&'static str> {
    let mut failed = Vec::new();
    for (name, step) in STEPS {
        let failures_before = tally.failed;
        tally.step = name;
        if let Err(error) = timed(name, || step(&mut Ci { workspace, tally })) {
            println!("ci: {name} FAILED: {error}");
            failed.push(*name);
            // A check that has no tests of its own counts as one, so that the closing line never hides it.
            if tally.failed == failures_before {
                tally.failed += 1;
            }
        }
    }
    failed
}

fn closing(failed: &[&str], tally: &Tally) -> String {
    let counts = format!("{} passed, {} failed", tally.passed, tally.failed);
    if failed.is_empty() { counts } else { format!("ci failed in: {}\n{counts}", failed.join(", ")) }
}

fn timed<T>(name: &str, step: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    println!("\nci: {name} ..");
    let started = Instant::now();
    let outcome = step();
    let word = if outcome.is_ok() { "ok" } else { "failed" };
    println!("ci: {name}: {word} after {:.1} s", started.elapsed().as_secs_f64());
    outcome
}

const fn minutes(count: u64) -> Duration {
    Duration::from_secs(count * 60)
}

impl Ci<'_> {
    fn cargo(&mut self, limit_minutes: u64, words: &[&str]) -> Result<(), String> {
        let words = [&["cargo"], words].concat();
        self.run(Invocation::new(minutes(limit_minutes), &words))
    }

    fn run(&mut self, invocation: Invocation) -> Result<(), String> {
        println!("ci: {}", invocation.display());
        invocation.run(&self.workspace.root, self.tally)
    }
}

/// Every example is a program that ends by itself.
fn examples(ci: &mut Ci) -> Result<(), String> {
    ci.cargo(10, &["build", "--package", EXAMPLES, "--bins", "--examples", "--locked"])?;
    let package = ci.workspace.package(EXAMPLES).ok_or(format!("no package {EXAMPLES}"))?;
    let debug = ci.workspace.target_dir.join("debug");
    let programs: Vec<_> = package
        .targets
        .iter()
        .filter_map(|target| match target.kind.as_str() {
            "bin" => Some(debug.join(&target.name)),
            "example" => Some(debug.join("examples").join(&target.name)),
            _ => None,
        })
        .collect();
    for program in programs {
        ci.run(Invocation::new(minutes(1), &[path(&program)?]))?;
    }
    Ok(())
}

/// Every interleaving of the models, in a target directory of its own: the flag changes every crate.
fn loom(ci: &mut Ci) -> Result<(), String> {
    let target_dir = ci.workspace.target_dir.join("loom");
    let mut words = vec!["cargo", "test", "--release", "--test", "loom_*", "--locked", "--no-fail-fast"];
    words.extend(UNDER_LOOM.iter().flat_map(|package| ["--package", package]));
    let invocation = Invocation::new(minutes(10), &words)
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", path(&target_dir)?);
    ci.run(invocation)
}

fn miri(ci: &mut Ci) -> Result<(), String> {
    // Through `rustup run`, because `cargo +nightly` works only where `cargo` is rustup's proxy.
    for tests in UNDER_MIRI {
        let words =
            [&["rustup", "run", "nightly", "cargo", "miri", "test", "--no-fail-fast"], *tests].concat();
        ci.run(Invocation::new(minutes(12), &words).env("MIRIFLAGS", MIRI_FLAGS))?;
    }
    Ok(())
}

/// Data races, in a standard library that is instrumented too.
fn thread_sanitizer(ci: &mut Ci) -> Result<(), String> {
    let target_dir = ci.workspace.target_dir.join("thread-sanitizer");
    for (package, tests) in UNDER_THREAD_SANITIZER {
        let mut words = vec!["rustup", "run", "nightly", "cargo", "test", "-Zbuild-std"];
        words.extend(["--target", "x86_64-unknown-linux-gnu", "--package", package]);
        words.extend(tests.iter().flat_map(|test| ["--test", test]));
        words.extend(["--", "--include-ignored"]);
        let invocation = Invocation::new(minutes(8), &words)
            .env("RUSTFLAGS", "-Zsanitizer=thread")
            .env("STRESS_SECONDS", "15")
            .env("CARGO_TARGET_DIR", path(&target_dir)?);
        ci.run(invocation)?;
    }
    Ok(())
}

/// Stacks that threads are switched between, and unwound.
fn address_sanitizer(ci: &mut Ci) -> Result<(), String> {
    let target_dir = ci.workspace.target_dir.join("address-sanitizer");
    let words = ["rustup", "run", "nightly", "cargo", "test", "--target", "x86_64-unknown-linux-gnu"];
    let words = [&words[..], &["--package", "selvedge-direct", "--tests"]].concat();
    let invocation = Invocation::new(minutes(8), &words)
        .env("RUSTFLAGS", "-Zsanitizer=address")
        .env("CARGO_TARGET_DIR", path(&target_dir)?);
    ci.run(invocation)
}

fn stress(ci: &mut Ci) -> Result<(), String> {
    ci.run(soak::STRESS.invocation(STRESS_SECONDS))
}

/// The fuzz targets lie outside the workspace, so nothing else would notice that one no longer builds.
fn fuzz_targets(ci: &mut Ci) -> Result<(), String> {
    ci.cargo(5, &["clippy", "--manifest-path", fuzz::MANIFEST, "--", "-D", "warnings"])
}

fn path(path: &Path) -> Result<&str, String> {
    path.to_str().ok_or_else(|| format!("{} is not UTF-8", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_line_is_last_and_the_failed_steps_are_named() {
        let mut tally = Tally::default();
        tally.read_line("test result: FAILED. 7 passed; 2 failed; 0 ignored");
        assert_eq!(closing(&[], &tally), "7 passed, 2 failed");
        assert_eq!(closing(&["lints", "miri"], &tally), "ci failed in: lints, miri\n7 passed, 2 failed");
    }

    #[test]
    fn a_failed_step_counts_even_if_it_has_no_tests() {
        // There is no such directory, so no command can start in it.
        let nowhere = Path::new("/selvedge/no/such/directory");
        let workspace = Workspace { root: nowhere.into(), target_dir: nowhere.into(), packages: Vec::new() };
        let mut tally = Tally::default();
        let failed = every_step(&workspace, &mut tally);
        assert!(failed.contains(&"lints") && failed.contains(&"miri"), "{failed:?}");
        assert_eq!(tally.failed as usize, failed.len());
    }
}
