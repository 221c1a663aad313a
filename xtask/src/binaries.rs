//! The step `tests` of `cargo xtask test`: builds the test binaries of every package, and then runs
//! them and the documentation's examples two at a time.
//!
//! `cargo test` would run the same binaries one after the other. Many of them wait for timers, for
//! processes or for one OS thread, so that half of the CPUs would be idle.

use crate::command::{Invocation, NOT_INCREMENTAL, Tally};
use crate::side_by_side;
use crate::workspace::Workspace;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// What builds every test binary, and every example. It finds nothing to do when the binaries are
/// up to date.
const BUILD: [&str; 5] = ["cargo", "test", "--workspace", "--no-run", "--locked"];
const BUILD_LIMIT: Duration = Duration::from_secs(30 * 60);
const EXAMPLES: [&str; 6] = ["cargo", "test", "--workspace", "--doc", "--no-fail-fast", "--locked"];
const RUN_LIMIT: Duration = Duration::from_secs(5 * 60);

/// The tests that take longest, by source, the longest first. They begin first, so that none of
/// them goes on alone when all others have ended.
const LONGEST: [&str; 8] = [
    "apps/httpd/tests/suite/main.rs",
    "crates/io/tests/faults.rs",
    "apps/pipe/tests/suite/main.rs",
    "crates/cnc/tests/suite/main.rs",
    "crates/sim/tests/suite/main.rs",
    "crates/stack/tests/memory.rs",
    "crates/stack/tests/suite/main.rs",
    "crates/http/tests/suite/main.rs",
];

/// A job beside others.
#[derive(Debug)]
enum Job {
    /// The examples in the documentation of all packages.
    Examples,
    Binary(Binary),
}

/// A test binary.
#[derive(Debug, PartialEq, Eq)]
struct Binary {
    /// The line by which cargo announces it.
    announced: String,
    executable: String,
    source: PathBuf,
    /// The directory of its package, in which it runs.
    dir: PathBuf,
}

/// Builds the tests, and runs all of them, also after one has failed.
///
/// # Errors
/// When something cannot be built, and when a test fails. The message names the binaries.
pub(crate) fn run(workspace: &Workspace, tally: &mut Tally) -> Result<(), String> {
    Invocation::new(BUILD_LIMIT, &BUILD).run(&workspace.root, tally)?;
    let mut jobs = vec![Job::Examples];
    let mut binaries = binaries(&workspace.root)?;
    binaries.sort_by_key(|binary| binary.rank(&workspace.root));
    jobs.extend(binaries.into_iter().map(Job::Binary));
    let mut failed = Vec::new();
    let step = tally.step.clone();
    for (of_job, result) in side_by_side::each(&jobs, |job| one(job, &step, &workspace.root)) {
        tally.add(of_job);
        failed.extend(result.err());
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ")) }
}

/// Runs one job, and prints its output when it has ended.
fn one(job: &Job, step: &str, root: &Path) -> (Tally, Result<(), String>) {
    let mut tally = Tally::held(step);
    let result = match job {
        Job::Examples => Invocation::new(BUILD_LIMIT, &EXAMPLES).run(root, &mut tally),
        Job::Binary(binary) => {
            tally.say(&binary.announced);
            tally.read_line(&binary.announced);
            let dir = binary.dir.to_str().unwrap_or_default();
            Invocation::new(RUN_LIMIT, &[&binary.executable])
                .env("CARGO_MANIFEST_DIR", dir)
                .run(&binary.dir, &mut tally)
        }
    };
    tally.release();
    (tally, result)
}

/// The binaries that [`BUILD`] has built, in cargo's order.
fn binaries(root: &Path) -> Result<Vec<Binary>, String> {
    let output = Command::new(BUILD[0])
        .args(&BUILD[1..])
        .args(["--quiet", "--message-format=json"])
        .env(NOT_INCREMENTAL.0, NOT_INCREMENTAL.1)
        .current_dir(root)
        .output()
        .map_err(|e| format!("cannot run cargo: {e}"))?;
    if !output.status.success() {
        return Err(format!("cargo test --no-run: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let messages = messages.lines().filter_map(|line| serde_json::from_str(line).ok());
    let binaries: Vec<Binary> = messages.filter_map(|message| Binary::from_message(&message)).collect();
    // A change in the form of cargo's messages must not look like a pass.
    if binaries.is_empty() { Err("cargo names no test binary".to_string()) } else { Ok(binaries) }
}

impl Binary {
    /// Its place in [`LONGEST`]; all others are behind these.
    fn rank(&self, root: &Path) -> usize {
        let place = |longest: &&str| self.source == root.join(longest);
        LONGEST.iter().position(place).unwrap_or(LONGEST.len())
    }

    /// The binary of a message of cargo, if the message is about a test binary.
    fn from_message(message: &Value) -> Option<Binary> {
        let text = |pointer: &str| message.pointer(pointer)?.as_str();
        if text("/reason")? != "compiler-artifact" || !message.pointer("/profile/test")?.as_bool()? {
            return None;
        }
        let executable = text("/executable")?;
        let dir = Path::new(text("/manifest_path")?).parent()?;
        let source = Path::new(text("/target/src_path")?);
        let shown = source.strip_prefix(dir).ok()?.to_str()?;
        let kind = if text("/target/kind/0")? == "test" { "" } else { "unittests " };
        Some(Binary {
            announced: format!("     Running {kind}{shown} ({executable})"),
            executable: executable.to_string(),
            source: source.to_path_buf(),
            dir: dir.to_path_buf(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn message(kind: &str, source: &str, test: bool) -> Value {
        json!({
            "reason": "compiler-artifact", "manifest_path": "/src/crates/a/Cargo.toml",
            "target": {"kind": [kind], "src_path": format!("/src/crates/a/{source}")},
            "profile": {"test": test}, "executable": "/target/debug/deps/a-1f",
        })
    }

    #[test]
    fn a_test_binary_is_announced_as_cargo_announces_it() {
        let of = |kind, source| Binary::from_message(&message(kind, source, true)).unwrap();
        let suite = of("test", "tests/suite/main.rs");
        assert_eq!(suite.announced, "     Running tests/suite/main.rs (/target/debug/deps/a-1f)");
        assert_eq!(suite.dir, Path::new("/src/crates/a"));
        assert!(of("lib", "src/lib.rs").announced.contains("Running unittests src/lib.rs ("));
    }

    #[test]
    fn what_takes_longest_is_there_and_begins_first() {
        let root = crate::workspace::root();
        for source in LONGEST {
            assert!(root.join(source).is_file(), "{source}");
        }
        let of = |source: &str| {
            let mut message = message("test", "tests/x.rs", true);
            message["target"]["src_path"] = root.join(source).to_str().into();
            message["manifest_path"] = root.join("Cargo.toml").to_str().into();
            Binary::from_message(&message).unwrap().rank(&root)
        };
        assert_eq!((of(LONGEST[1]), of("crates/core/src/lib.rs")), (1, LONGEST.len()));
    }

    #[test]
    fn a_program_that_is_no_test_is_not_run() {
        assert_eq!(Binary::from_message(&message("bin", "src/main.rs", false)), None);
        assert_eq!(Binary::from_message(&json!({"reason": "build-finished", "success": true})), None);
    }

    #[test]
    fn a_binary_that_fails_is_named_and_the_others_run() {
        let workspace_root = Path::new("/");
        let binary = |program: &str| {
            Job::Binary(Binary {
                announced: format!("     Running tests/x.rs ({program})"),
                executable: program.to_string(),
                source: PathBuf::new(),
                dir: workspace_root.to_path_buf(),
            })
        };
        let outcomes =
            side_by_side::each(&[binary("false"), binary("true")], |job| one(job, "tests", workspace_root).1);
        let failed: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
        assert_eq!(failed.len(), 1);
        assert!(failed[0].contains("false"), "{failed:?}");
    }
}
