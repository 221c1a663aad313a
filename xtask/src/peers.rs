//! `cargo xtask peers`: installs the systems that the figures are measured against, and builds
//! their programs. It also fetches the projects that the build runners build. `main.rs` calls
//! `run`.
//!
//! The figures have the list of the packages (`figures/src/peers.rs`), and this command asks them
//! for it. A package or a project that cannot be had stops nothing, because the figures show it as
//! missing.

use crate::command::{Invocation, Tally};
use crate::workspace;
use crate::{projects, setup};
use std::process::Command;
use std::time::Duration;

const FIGURES: [&str; 7] = ["cargo", "run", "--quiet", "--release", "--package", "figures", "--"];

/// Installs the packages that the figures name, as root, then lets the figures build their peer
/// programs.
///
/// # Errors
/// When the figures cannot be built or a peer program does not compile. A package that cannot be
/// had is reported and stops nothing: the figures show its peer as missing.
pub(crate) fn run() -> Result<(), String> {
    let figures = |word: &'static str| [&FIGURES[..], &[word]].concat();
    let words = figures("packages");
    let output = Command::new(words[0])
        .args(&words[1..])
        .current_dir(workspace::root())
        .output()
        .map_err(|e| format!("cannot run {}: {e}", words[0]))?;
    if !output.status.success() {
        return Err(format!("`{}`: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim()));
    }
    for package in String::from_utf8_lossy(&output.stdout).lines().filter(|package| !is_installed(package)) {
        if let Err(error) = setup::install(&[package]) {
            println!("peers: going on without {package}: {error}");
        }
    }
    if let Err(error) = projects::fetch(&[]) {
        println!("peers: going on without real projects: {error}");
    }
    let invocation = Invocation::new(Duration::from_secs(30 * 60), &figures("build-peers"));
    println!("peers: {}", invocation.display());
    invocation.run(&workspace::root(), &mut Tally::default())
}

fn is_installed(package: &str) -> bool {
    let output =
        Command::new("dpkg-query").args(["--show", "--showformat=${db:Status-Status}", package]).output();
    output.is_ok_and(|output| output.stdout == b"installed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_distribution_has_is_not_installed() {
        assert!(!is_installed("selvedge-no-such-package"));
    }
}
