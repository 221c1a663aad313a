//! `cargo xtask fuzz SECONDS [TARGET]`: libFuzzer over the targets under `fuzz/`. `main.rs` calls
//! `run`; `ci.rs` and `soak.rs` take `invocations`.
//!
//! The targets are the files in `fuzz/fuzz_targets`. They are a workspace of their own, because
//! only they need the nightly toolchain. Each target calls a function of a crate, so that the
//! ordinary tests can call that function too.

use std::path::Path;
use std::time::Duration;

use crate::command::{Invocation, Tally, on_path};
use crate::workspace;

/// The fuzz targets' own workspace: only they need the nightly toolchain.
pub(crate) const MANIFEST: &str = "fuzz/Cargo.toml";

const TARGETS: &str = "fuzz/fuzz_targets";

/// Time to install cargo-fuzz or to build one target, on top of the fuzzing itself.
const BUILD_LIMIT: Duration = Duration::from_secs(15 * 60);

/// How long `cargo xtask ci` runs each target.
pub(crate) const CI_SECONDS: u64 = 5;

/// Runs `only`, or every target in turn, for `seconds`.
///
/// # Errors
/// When `seconds` is no number, a target does not exist, or a target finds a crash.
pub(crate) fn run(seconds: &str, only: Option<&str>) -> Result<(), String> {
    let seconds: u64 = seconds.parse().map_err(|_| format!("fuzz: not a number of seconds: {seconds}"))?;
    let root = workspace::root();
    for invocation in invocations(seconds, only)? {
        println!("fuzz: {}", invocation.display());
        invocation.run(&root, &mut Tally::default())?;
    }
    Ok(())
}

/// The commands that run `only`, or every target in turn, for `seconds`. If cargo-fuzz is missing,
/// the command that installs it comes first.
///
/// # Errors
/// When a target does not exist.
pub(crate) fn invocations(seconds: u64, only: Option<&str>) -> Result<Vec<Invocation>, String> {
    let install = (!on_path("cargo-fuzz"))
        .then(|| Invocation::new(BUILD_LIMIT, &["cargo", "install", "cargo-fuzz", "--locked"]));
    let total = format!("-max_total_time={seconds}");
    let run = |target: String| {
        // Without the address sanitizer, which makes the build half as long again: all code under
        // the targets is in crates that forbid unsafe code.
        let cargo_fuzz = ["rustup", "run", "nightly", "cargo", "fuzz", "run", "--sanitizer", "none", &target];
        let options = ["--", &total, "-verbosity=0", "-print_final_stats=1"];
        Invocation::new(BUILD_LIMIT + Duration::from_secs(seconds), &[&cargo_fuzz[..], &options].concat())
    };
    let targets = chosen(targets(&workspace::root())?, only)?;
    Ok(install.into_iter().chain(targets.into_iter().map(run)).collect())
}

fn targets(root: &Path) -> Result<Vec<String>, String> {
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
