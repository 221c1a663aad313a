//! Builds of MPI from Python's package index, in the directory `mpi` of the target directory: the
//! tests of `crates/mpi` run their jobs with each of them. Debian has one version of an MPI, and
//! these are newer ones. Open MPI 5 goes on when a rank has died.
//!
//! `setup.rs` calls [`fetch`]. Without a build the tests say that they leave it out, so a package
//! that cannot be had stops nothing.

use crate::command::{Invocation, Tally};
use crate::workspace::Workspace;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// A package with a build of MPI, and its version.
const BUILDS: [(&str, &str); 2] = [("openmpi", "5.0.11"), ("mpich", "5.0.2")];

/// How long one command may take. A package has some 50 MB.
const LIMIT: Duration = Duration::from_secs(3 * 60);

/// Fetches the builds that are not there.
///
/// # Errors
/// When a build cannot be had. The others are there all the same.
pub(crate) fn fetch() -> Result<(), String> {
    let directory = Workspace::load()?.target_dir.join("mpi");
    let mut missing = Vec::new();
    for (package, version) in BUILDS {
        let build = directory.join(format!("{package}-{version}"));
        if build.join("bin/mpirun").is_file() {
            continue;
        }
        println!("setup: fetching {package} {version} for the tests of crates/mpi");
        if let Err(error) = install(&build, &format!("{package}=={version}")) {
            missing.push(format!("{package} {version}: {error}"));
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(missing.join("; ")) }
}

/// Installs a package into a directory of its own.
fn install(build: &Path, package: &str) -> Result<(), String> {
    // Beside it, so that what is there is whole.
    let begun = build.with_added_extension("begun");
    let _ = fs::remove_dir_all(&begun);
    let python = begun.join("bin/python3");
    let (Some(begun_path), Some(python)) = (begun.to_str(), python.to_str()) else {
        return Err("the target directory is not UTF-8".to_string());
    };
    let commands: [&[&str]; 2] = [
        &["python3", "-m", "venv", "--without-pip", begun_path],
        &[
            "python3",
            "-m",
            "pip",
            "--python",
            python,
            "--disable-pip-version-check",
            "--retries",
            "1",
            "install",
            "--quiet",
            "--no-deps",
            "--no-compile",
            package,
        ],
    ];
    for command in commands {
        Invocation::new(LIMIT, command).run(Path::new("."), &mut Tally::default())?;
    }
    fs::rename(&begun, build).map_err(|error| format!("{}: {error}", build.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_index_has_is_an_error_and_leaves_nothing() {
        let build = std::env::temp_dir().join(format!("selvedge-mpi-{}", std::process::id()));
        // The name is none that an index can have.
        assert!(install(&build, "selvedge mpi").is_err());
        assert!(!build.exists());
        let _ = fs::remove_dir_all(build.with_added_extension("begun"));
    }
}
