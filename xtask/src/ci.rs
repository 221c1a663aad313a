//! `cargo xtask test` and `cargo xtask ci`: every check, in one order, with one closing line.
//!
//! `test` runs the checks of a few minutes that each change needs. `ci` runs the same checks, and
//! then the proofs.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::command::{Invocation, Tally};
use crate::tidy::{self, Concordance};
use crate::workspace::Workspace;
use crate::{binaries, fuzz, packages, programs, setup, side_by_side, soak};

/// One check: its name, and its function.
type Step = (&'static str, fn(&mut Ci) -> Result<(), String>);

/// The checks of `cargo xtask test`. They run one after the other, because each uses all CPUs.
const TESTS: &[Step] = &[
    ("tidy", |_| tidy::run(Concordance::MustBeCurrent)),
    ("format", |ci| ci.cargo(2, &["fmt", "--all", "--check"])),
    // The fuzz targets are a workspace of their own, and a step of `ci` builds them.
    ("lock files", |ci| {
        ci.cargo(2, &["tree", "--quiet", "--locked", "--depth", "0", "--manifest-path", fuzz::MANIFEST])
    }),
    ("lints", |ci| {
        ci.cargo(10, &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])
    }),
    ("docs", |ci| {
        let words = ["cargo", "doc", "--workspace", "--no-deps", "--locked"];
        ci.run(Invocation::new(minutes(8), &words).env("RUSTDOCFLAGS", "-D warnings"))
    }),
    ("tests", |ci| binaries::run(ci.workspace, ci.tally)),
    // After the tests, because these build the examples.
    ("examples", examples),
];

/// The proofs that run alone, because they use all CPUs or measure time.
const PROOFS_ALONE: &[Step] = &[
    ("programs", |ci| ci.run(programs::invocation(programs::RUNS, ""))),
    ("stress", stress),
    // Each crate builds from the package that would be published.
    ("packages", |ci| packages::run(ci.workspace, ci.tally)),
];

/// The proofs that run alone, and need what `PROOFS_SIDE_BY_SIDE` has built.
const PROOFS_LAST: &[Step] = &[
    // The answers of every program of every figure, with small numbers.
    ("figures", |ci| ci.figures(12, &["--check", "all"])),
    // No figure overlooks a wrong answer of ours.
    ("figures' faults", |ci| ci.figures(12, &["--faults", "all"])),
    // No operation takes more instructions than were published last.
    ("instructions", |ci| ci.figures(8, &["check-instructions"])),
];

/// The proofs that run two at a time, the longest first. Each runs mostly on one CPU and bears a
/// slow one. Each has a target directory of its own, or builds little.
const PROOFS_SIDE_BY_SIDE: &[Step] = &[
    // The compiler is on one CPU for most of it, because it optimizes each crate as a whole.
    ("figures' build", |ci| ci.cargo(15, BUILD_FIGURES)),
    ("fuzz targets", fuzz_targets),
    ("miri sched", |ci| ci.miri(&["--package", "selvedge-sched", "--lib", "--test", "work_stealing"])),
    ("miri sync", |ci| ci.miri(SYNC_UNDER_MIRI)),
    ("miri core", |ci| ci.miri(&["--package", "selvedge-core", "--lib", "--test", NOT_LOOM])),
    ("miri scope", |ci| ci.miri(&["--package", "selvedge-scope", "--lib", "--test", NOT_LOOM])),
    ("miri compat", |ci| ci.miri(COMPAT_UNDER_MIRI)),
    ("miri schedulers", |ci| ci.miri(SCHEDULERS_UNDER_MIRI)),
    ("miri stm", |ci| ci.miri(STM_UNDER_MIRI)),
    ("miri lazy", |ci| ci.miri(LAZY_UNDER_MIRI)),
    ("miri cnc", |ci| ci.miri(CNC_UNDER_MIRI)),
    ("thread sanitizer", thread_sanitizer),
    ("loom", loom),
    ("optimized", optimized),
    ("address sanitizer", address_sanitizer),
    ("shared library", shared_library),
];

/// Packages with protocols that loom checks, in tests with names that begin with `loom_`.
const UNDER_LOOM: &[&str] =
    &["selvedge-core", "selvedge-sync", "selvedge-sched", "selvedge-stm", "selvedge-lazy", "selvedge-cnc"];

/// All tests but loom's. Those are empty without loom, and Miri would take two seconds for each.
const NOT_LOOM: &str = "[!l]*";

/// Those tests of `stm` in which memory is freed while others may read it, under the default
/// engine. The other engines free it by the same code.
const STM_UNDER_MIRI: &[&str] = &[
    "--package",
    "selvedge-stm",
    "--test",
    "semantics",
    "--test",
    "os_threads",
    "--test",
    "structures",
    "--",
    "--skip",
    "figure3::",
    "--skip",
    "norec::",
    "--skip",
    "global_lock::",
];

/// Those tests of `lazy` that stay on their stacks. Their sizes are small under Miri.
const LAZY_UNDER_MIRI: &[&str] =
    &["--package", "selvedge-lazy", "--test", "suite", "--", "--skip", IN_DIRECT_STYLE];

/// Those tests of `cnc` that reach all of its unsafe code. The others do the same more often.
const CNC_UNDER_MIRI: &[&str] = &[
    "--package",
    "selvedge-cnc",
    "--test",
    "suite",
    "--",
    "cleaning::",
    "composing::a_loan",
    "errors::a_fault_in_a_destructor",
    "errors::an_async_step_that_forgets",
    "errors::stuck_async_steps",
    "errors::two_steps_that_take",
    "outliving::",
    "recording::a_record_of_one_worker",
    "results::a_key_may_use",
    "results::a_wavefront_in_hashed_words",
    "results::a_wavefront_in_pages",
    "results::counted_tiles",
    "results::forks_and_items",
    "results::items_are_dropped_once",
    "results::tags_and_keys",
    "results::the_three_kinds",
];

/// Those tests of `sync` that run without the kernel's help: without tokio's.
const SYNC_UNDER_MIRI: &[&str] = &[
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
    "--test",
    "reentry",
    "--test",
    "every_*",
    "--test",
    "refusals",
];

/// The programs of every scheduler, under the one that Miri runs in two minutes. Their sizes under
/// Miri are their own.
const SCHEDULERS_UNDER_MIRI: &[&str] = &[
    "--package",
    "selvedge-sched",
    "--test",
    "every_scheduler",
    "--",
    "round_robin::",
    "--skip",
    IN_DIRECT_STYLE,
];

/// Those tests of `compat` that make no system call: hyper over the simulated network.
const COMPAT_UNDER_MIRI: &[&str] =
    &["--package", "selvedge-compat", "--features", "hyper-server", "--test", "simulated"];

/// Packages with tests of several OS threads, which the sanitizer watches for data races.
const UNDER_THREAD_SANITIZER: &[&str] =
    &["selvedge-core", "selvedge-sync", "selvedge-sched", "selvedge-stm", "selvedge-cnc", "selvedge"];
/// Those tests. A name stands for the tests of that name in all these packages.
const WITH_OS_THREADS: &[&str] = &[
    "foreign_joiners",
    "mobile",
    "several_cpus",
    "random_programs",
    "every_scheduler",
    "work_stealing",
    "os_threads",
    "suite",
    "stress",
];
const KNOWN_RACES: &str = "xtask/thread-sanitizer.txt";
/// The part of a test's name that says that it switches stacks, which the thread sanitizer does not
/// know.
const IN_DIRECT_STYLE: &str = "in_direct_style";
/// A test of `cnc` with a million steps. The thread sanitizer would take a minute, and the test has
/// one OS thread.
const ON_ONE_THREAD: &str = "a_million_stuck_steps";
const STRESS_SECONDS: u64 = 30;

/// The clock is the machine's; and `core` says itself where it turns a number into a pointer.
const MIRI_FLAGS: &str = "-Zmiri-disable-isolation -Zmiri-permissive-provenance";

const EXAMPLES: &str = "selvedge-examples";

/// The figures' program, and the web server that it starts.
const BUILD_FIGURES: &[&str] =
    &["build", "--release", "--package", "figures", "--package", "selvedge-httpd", "--locked"];

struct Ci<'a> {
    workspace: &'a Workspace,
    tally: &'a mut Tally,
}

/// The outcome of a step.
struct Outcome {
    name: &'static str,
    seconds: f64,
    tally: Tally,
    result: Result<(), String>,
}

impl Outcome {
    /// The step's name and its error, if it failed.
    fn failure(&self) -> Option<String> {
        self.result.as_ref().err().map(|error| format!("{}: {error}", self.name))
    }
}

/// Which checks a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The checks that each change needs.
    Tests,
    /// The tests, and then the proofs.
    TestsAndProofs,
}

/// Runs every step, also after one has failed. Without the set-up it runs none. The last line of
/// the output is the number of tests that passed and failed.
pub(crate) fn run(extent: Extent) -> ExitCode {
    let started = Instant::now();
    let setup = step("setup", false, |_| setup::run(extent));
    let mut outcomes = vec![setup];
    if outcomes[0].result.is_ok() {
        match Workspace::load() {
            Ok(workspace) => outcomes.extend(every_step(&workspace, extent)),
            Err(error) => outcomes.push(step("workspace", false, |_| Err(error))),
        }
    }
    let failed: Vec<_> = outcomes.iter().filter_map(Outcome::failure).collect();
    println!("\nci: took {:.0} s", started.elapsed().as_secs_f64());
    println!("{:<18} {:>7} {:>7} {:>7}", "step", "seconds", "passed", "failed");
    let mut tally = Tally::default();
    for Outcome { name, seconds, tally: of_step, .. } in outcomes {
        println!("{name:<18} {seconds:>7.0} {:>7} {:>7}", of_step.passed, of_step.failed);
        tally.add(of_step);
    }
    println!("\nci: the test runner said:");
    for summary in &tally.summaries {
        println!("{summary}");
    }
    // Behind all summaries, because the last lines of a long output are those that are kept.
    for report in &tally.reports {
        println!("\nci: a failure:\n{report}");
    }
    println!("{}", closing(&failed, &tally));
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn every_step(workspace: &Workspace, extent: Extent) -> Vec<Outcome> {
    let run = |(name, check): Step, beside_others| {
        step(name, beside_others, |tally| check(&mut Ci { workspace, tally }))
    };
    let mut outcomes: Vec<Outcome> = TESTS.iter().map(|check| run(*check, false)).collect();
    if extent == Extent::Tests {
        return outcomes;
    }
    outcomes.extend(PROOFS_ALONE.iter().map(|proof| run(*proof, false)));
    outcomes.extend(side_by_side::each(PROOFS_SIDE_BY_SIDE, |proof| run(*proof, true)));
    outcomes.extend(PROOFS_LAST.iter().map(|proof| run(*proof, false)));
    outcomes
}

/// Runs one step. One that fails without a test that has failed counts as a test, so that the
/// closing line never hides it.
fn step(
    name: &'static str,
    beside_others: bool,
    check: impl FnOnce(&mut Tally) -> Result<(), String>,
) -> Outcome {
    println!("\nci: {name} ..");
    let started = Instant::now();
    let mut tally = Tally::of(name, beside_others);
    let result = check(&mut tally);
    let seconds = started.elapsed().as_secs_f64();
    match &result {
        Ok(()) => println!("ci: {name}: ok after {seconds:.1} s"),
        Err(error) => {
            println!("ci: {name} FAILED after {seconds:.1} s: {error}");
            tally.failed = tally.failed.max(1);
        }
    }
    Outcome { name, seconds, tally, result }
}

fn closing(failed: &[String], tally: &Tally) -> String {
    let counts = format!("{} passed, {} failed", tally.passed, tally.failed);
    if failed.is_empty() { counts } else { format!("ci failed in:\n{}\n{counts}", failed.join("\n")) }
}

const fn minutes(count: u64) -> Duration {
    Duration::from_secs(count * 60)
}

impl Ci<'_> {
    fn cargo(&mut self, limit_minutes: u64, words: &[&str]) -> Result<(), String> {
        let words = [&["cargo"], words].concat();
        self.run(Invocation::new(minutes(limit_minutes), &words))
    }

    /// Runs the figures' program, which is built first.
    fn figures(&mut self, limit_minutes: u64, words: &[&str]) -> Result<(), String> {
        self.cargo(15, BUILD_FIGURES)?;
        let run = ["run", "--quiet", "--release", "--package", "figures", "--locked", "--"];
        self.cargo(limit_minutes, &[&run, words].concat())
    }

    fn run(&mut self, invocation: Invocation) -> Result<(), String> {
        self.tally.say(&format!("ci: {}", invocation.display()));
        let begun = Instant::now();
        let result = invocation.run(&self.workspace.root, self.tally);
        self.tally.say(&format!("ci: it took {:.1} s", begun.elapsed().as_secs_f64()));
        result
    }

    /// Undefined behaviour, as far as Miri finds it. Through `rustup run`, because `cargo +nightly`
    /// works only where `cargo` is rustup's proxy.
    fn miri(&mut self, tests: &[&str]) -> Result<(), String> {
        let words =
            [&["rustup", "run", "nightly", "cargo", "miri", "test", "--no-fail-fast"], tests].concat();
        self.run(Invocation::new(minutes(25), &words).env("MIRIFLAGS", MIRI_FLAGS))
    }
}

/// Every example is a program that ends by itself. The step `tests` has built them, with the
/// features that the whole workspace asks for.
fn examples(ci: &mut Ci) -> Result<(), String> {
    let package = ci.workspace.package(EXAMPLES).ok_or(format!("no package {EXAMPLES}"))?;
    let built = ci.workspace.target_dir.join("debug/examples");
    let examples = package.targets.iter().filter(|target| target.kind == "example");
    let programs: Vec<_> = examples.map(|target| built.join(&target.name)).collect();
    for program in programs {
        ci.run(Invocation::new(minutes(1), &[path(&program)?]))?;
    }
    Ok(())
}

/// Every interleaving of the models, in a target directory of its own: the flag changes every
/// crate.
fn loom(ci: &mut Ci) -> Result<(), String> {
    let target_dir = ci.workspace.target_dir.join("loom");
    let mut words = vec!["cargo", "test", "--profile", soak::CHECKED];
    words.extend(["--test", "loom_*", "--locked", "--no-fail-fast"]);
    words.extend(UNDER_LOOM.iter().flat_map(|package| ["--package", package]));
    let invocation = Invocation::new(minutes(15), &words)
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", path(&target_dir)?);
    ci.run(invocation)
}

/// Tests in an optimized build: every primitive under 10,000 seeds and in every order of its
/// threads, programs on a network in many orders of its arrivals, and stacks that threads are
/// switched between. A name stands for the tests of that name in all packages: with the whole
/// workspace, what is built for the proofs before is not built again.
fn optimized(ci: &mut Ci) -> Result<(), String> {
    let mut words = vec!["test", "--profile", soak::CHECKED, "--workspace", "--locked"];
    let of_stacks = ["borrowed_wakers", "processes", "switches", "threads"];
    words.extend(["primitives", "every_order"].iter().chain(&of_stacks).flat_map(|test| ["--test", test]));
    ci.cargo(10, &words)
}

/// Data races, in a standard library that is instrumented too. A report that is left out says why
/// in the file of `KNOWN_RACES`.
fn thread_sanitizer(ci: &mut Ci) -> Result<(), String> {
    let target_dir = ci.workspace.target_dir.join("thread-sanitizer");
    let known_races = ci.workspace.root.join(KNOWN_RACES);
    let options = format!("suppressions={}", path(&known_races)?);
    // One command for all packages, because their features differ when each is built alone, and
    // what they share would be built again.
    let mut words = vec!["rustup", "run", "nightly", "cargo", "test", "--no-fail-fast", "-Zbuild-std"];
    words.extend(["--target", "x86_64-unknown-linux-gnu"]);
    words.extend(UNDER_THREAD_SANITIZER.iter().flat_map(|package| ["--package", package]));
    words.extend(WITH_OS_THREADS.iter().flat_map(|test| ["--test", test]));
    words.extend(["--", "--include-ignored", "--skip", IN_DIRECT_STYLE, "--skip", ON_ONE_THREAD]);
    let invocation = Invocation::new(minutes(20), &words)
        .env("RUSTFLAGS", "-Zsanitizer=thread")
        .env("TSAN_OPTIONS", &options)
        .env("STRESS_SECONDS", "10")
        .env("STRESS_WITHOUT_STACKS", "1")
        .env("CNC_SEEDS", "4")
        .env("CARGO_TARGET_DIR", path(&target_dir)?);
    ci.run(invocation)
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

/// Threads that an executable creates in a shared library with the whole of Selvedge. The package
/// lies outside the workspace, because the flag holds for all crates.
fn shared_library(ci: &mut Ci) -> Result<(), String> {
    let target_dir = ci.workspace.target_dir.join("shared-library");
    let invocation =
        Invocation::new(minutes(8), &["cargo", "test", "--manifest-path", "programs/shared/Cargo.toml"])
            .env("RUSTFLAGS", "-C prefer-dynamic")
            .env("CARGO_TARGET_DIR", path(&target_dir)?);
    ci.run(invocation)
}

fn stress(ci: &mut Ci) -> Result<(), String> {
    ci.run(soak::STRESS.invocation(STRESS_SECONDS))
}

/// The fuzz targets lie outside the workspace, so that the step `lints` does not see them. Each
/// runs for some seconds. The lints take what that step has compiled.
fn fuzz_targets(ci: &mut Ci) -> Result<(), String> {
    let words = ["cargo", "clippy", "--locked", "--manifest-path", fuzz::MANIFEST, "--", "-D", "warnings"];
    let lints = Invocation::new(minutes(5), &words);
    ci.run(lints.env("CARGO_TARGET_DIR", path(&ci.workspace.target_dir)?))?;
    fuzz::invocations(fuzz::CI_SECONDS, None)?.into_iter().try_for_each(|target| ci.run(target))
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
        let failed = ["lints: a warning".to_string(), "miri: a race".to_string()];
        assert_eq!(
            closing(&failed, &tally),
            "ci failed in:\nlints: a warning\nmiri: a race\n7 passed, 2 failed"
        );
    }

    #[test]
    fn a_failed_step_counts_even_if_it_has_no_tests() {
        // There is no such directory, so no command can start in it.
        let nowhere = Path::new("/selvedge/no/such/directory");
        let workspace = Workspace { root: nowhere.into(), target_dir: nowhere.into(), packages: Vec::new() };
        let failed: Vec<_> = every_step(&workspace, Extent::TestsAndProofs)
            .into_iter()
            .filter(|step| step.result.is_err())
            .collect();
        for name in ["lints", "miri core"] {
            assert!(failed.iter().any(|step| step.name == name), "{name}");
        }
        assert!(failed.iter().all(|step| step.tally.failed == 1));
    }
}
