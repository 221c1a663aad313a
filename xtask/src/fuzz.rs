//! `cargo xtask fuzz SECONDS [TARGET]`: libFuzzer over the targets under `fuzz/`. `main.rs` calls
//! `run`, and so does `soak.rs`; `proofs.rs` takes `invocations`.
//!
//! The targets are the files in `fuzz/fuzz_targets`. They are a workspace of their own, because
//! every crate below them is built with the compiler's flags that count the edges which an input
//! reaches. The flags are those of cargo-fuzz, without the address sanitizer, because all code
//! under the targets is in crates that forbid unsafe code. So a stable compiler builds the targets,
//! and cargo-fuzz need not be built. Each target calls a function of a crate, so that the ordinary
//! tests can call that function too.

use crate::command::{Invocation, Tally};
use crate::workspace;
use std::path::Path;
use std::time::Duration;

/// The fuzz targets' own workspace.
pub(crate) const MANIFEST: &str = "fuzz/Cargo.toml";

const TARGETS: &str = "fuzz/fuzz_targets";

/// With a target named, cargo does not pass the flags to build scripts.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Counters at the edges between blocks, and the operands of comparisons, for libFuzzer.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
     -Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions";

/// Where cargo puts what it builds.
const BUILT: &str = "fuzz/target";

/// Time to build the targets, and that of a target on top of the fuzzing itself.
const BUILD_LIMIT: Duration = Duration::from_secs(15 * 60);
const BESIDES: Duration = Duration::from_secs(5 * 60);

/// How long a proof runs each target.
pub(crate) const CI_SECONDS: u64 = 20;

/// Runs `only`, or every target in turn, for `seconds`.
///
/// # Errors
/// When `seconds` is no number, a target does not exist, or a target finds a crash.
pub(crate) fn run(seconds: &str, only: Option<&str>) -> Result<(), String> {
    let seconds: u64 = seconds.parse().map_err(|_| format!("fuzz: not a number of seconds: {seconds}"))?;
    let root = workspace::root();
    let targets = chosen(targets(&root)?, only)?;
    let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
    for invocation in invocations(seconds, &targets) {
        println!("fuzz: {}", invocation.display());
        invocation.run(&root, &mut Tally::default())?;
    }
    Ok(())
}

/// The commands that build these targets, and run each for `seconds`. A target takes the inputs of
/// `fuzz/corpus` and adds to them, and writes the input of a crash to `fuzz/artifacts`.
pub(crate) fn invocations(seconds: u64, targets: &[&str]) -> Vec<Invocation> {
    let mut words = vec!["cargo", "build", "--release", "--locked", "--target", PLATFORM];
    words.extend(["--manifest-path", MANIFEST]);
    words.extend(targets.iter().flat_map(|target| ["--bin", target]));
    let build = Invocation::new(BUILD_LIMIT, &words).env("RUSTFLAGS", FLAGS).env("CARGO_TARGET_DIR", BUILT);
    let runs = targets.iter().flat_map(|target| {
        let corpus = format!("fuzz/corpus/{target}");
        let artifacts = format!("fuzz/artifacts/{target}/");
        let program = format!("{BUILT}/{PLATFORM}/release/{target}");
        let prefix = format!("-artifact_prefix={artifacts}");
        let total = format!("-max_total_time={seconds}");
        let words = [program.as_str(), &prefix, &total, "-verbosity=0", "-print_final_stats=1", &corpus];
        [
            Invocation::new(BESIDES, &["mkdir", "-p", &corpus, &artifacts]),
            Invocation::new(BESIDES + Duration::from_secs(seconds), &words),
        ]
    });
    [build].into_iter().chain(runs).collect()
}

/// Every target there is, in the order of the names.
///
/// # Errors
/// When the directory of the targets cannot be read.
pub(crate) fn targets(root: &Path) -> Result<Vec<String>, String> {
    let entries = std::fs::read_dir(root.join(TARGETS)).map_err(|e| format!("{TARGETS}: {e}"))?;
    let mut targets: Vec<String> = entries
        .filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.strip_suffix(".rs")?.to_string()))
        .collect();
    targets.sort();
    Ok(targets)
}

fn chosen(targets: Vec<String>, only: Option<&str>) -> Result<Vec<String>, String> {
    match only {
        None => Ok(targets),
        Some(name) if targets.iter().any(|target| target == name) => Ok(vec![name.to_string()]),
        Some(name) => Err(format!("fuzz: no target {name}; there are: {}", targets.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_target_is_refused_with_the_known_ones() {
        let all = || vec!["head".to_string(), "path".to_string()];
        assert_eq!(chosen(all(), None), Ok(all()));
        assert_eq!(chosen(all(), Some("path")), Ok(vec!["path".to_string()]));
        assert!(chosen(all(), Some("tail")).unwrap_err().ends_with("head, path"));
    }

    #[test]
    fn seconds_are_a_number() {
        assert!(run("soon", None).is_err());
    }
}
