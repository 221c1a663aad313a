//! Installs what the tests and checkers need beyond the stable toolchain.

use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::time::Duration;

use crate::command::{Invocation, Tally, on_path};
use crate::workspace;

/// A program that comes from a Debian package.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) package: &'static str,
    /// What it is for, as a line of output says it.
    pub(crate) purpose: &'static str,
    pub(crate) need: Need,
}

/// Whether work stops without a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    Required,
    Optional,
}

const PROGRAMS: &[Program] = &[
    Program { name: "cc", package: "gcc", purpose: "links every binary", need: Need::Required },
    Program {
        name: "c++",
        package: "g++",
        purpose: "builds the fuzzer's run-time part",
        need: Need::Required,
    },
    Program { name: "curl", package: "curl", purpose: "client in the server's tests", need: Need::Required },
    Program {
        name: "chromium",
        package: "chromium",
        purpose: "browser in the site's test",
        need: Need::Required,
    },
    Program {
        name: "slowhttptest",
        package: "slowhttptest",
        purpose: "slow clients in the server's tests",
        need: Need::Optional,
    },
];

const APT_LIMIT: Duration = Duration::from_secs(15 * 60);
const RUSTUP_LIMIT: Duration = Duration::from_secs(10 * 60);

/// `cargo xtask setup`.
pub(crate) fn run() -> Result<(), String> {
    debian(PROGRAMS)?;
    toolchains()
}

/// Installs the packages of those `programs` that are missing, when run as root.
///
/// # Errors
/// When a required program is missing and cannot be installed; the message names the packages.
pub(crate) fn debian(programs: &[Program]) -> Result<(), String> {
    let missing: Vec<&Program> = programs.iter().filter(|program| !on_path(program.name)).collect();
    for program in &missing {
        println!("setup: {} is missing ({}; package {})", program.name, program.purpose, program.package);
    }
    if missing.is_empty() {
        return Ok(());
    }
    if !on_path("apt-get") || !is_root() {
        return without_installing(&missing);
    }
    println!("setup: running as root, so installing: {}", packages(&missing));
    let apt = |words: &[&str]| {
        let lock = "DPkg::Lock::Timeout=300"; // another apt may be at work
        let command = [&["apt-get", "-q", "-y", "-o", lock], words].concat();
        Invocation::new(APT_LIMIT, &command)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .run(&workspace::root(), &mut Tally::default())
    };
    apt(&["update"])?;
    let (required, optional): (Vec<&Program>, Vec<&Program>) =
        missing.iter().partition(|program| program.need == Need::Required);
    for (group, need) in [(required, Need::Required), (optional, Need::Optional)] {
        if group.is_empty() {
            continue;
        }
        let mut words = vec!["install", "--no-install-recommends"];
        words.extend(group.iter().map(|program| program.package));
        match (apt(&words), need) {
            (Err(error), Need::Required) => return Err(error),
            (Err(error), Need::Optional) => println!("setup: going on without: {error}"),
            (Ok(()), _) => {}
        }
    }
    Ok(())
}

fn without_installing(missing: &[&Program]) -> Result<(), String> {
    let required: Vec<&Program> =
        missing.iter().copied().filter(|program| program.need == Need::Required).collect();
    if required.is_empty() {
        return Ok(());
    }
    Err(format!(
        "not root, so nothing was installed; install these packages and try again: {}",
        packages(&required)
    ))
}

fn packages(programs: &[&Program]) -> String {
    programs.iter().map(|program| program.package).collect::<Vec<_>>().join(" ")
}

/// The stable toolchain's checkers, and a nightly toolchain with Miri.
fn toolchains() -> Result<(), String> {
    if !on_path("rustup") {
        return Err("rustup is needed to install the nightly toolchain; see https://rustup.rs".to_string());
    }
    let rustup = |words: &[&str]| {
        println!("setup: rustup {}", words.join(" "));
        let command = [&["rustup"], words].concat();
        Invocation::new(RUSTUP_LIMIT, &command).run(&workspace::root(), &mut Tally::default())
    };
    for (program, component) in [("cargo-fmt", "rustfmt"), ("cargo-clippy", "clippy")] {
        if !on_path(program) {
            rustup(&["component", "add", component])?;
        }
    }
    if !rustup_lists(&["toolchain", "list"], "nightly") {
        rustup(&["toolchain", "install", "nightly", "--profile", "minimal"])?;
    }
    for component in ["miri", "rust-src"] {
        if !rustup_lists(&["component", "list", "--toolchain", "nightly", "--installed"], component) {
            rustup(&["component", "add", "--toolchain", "nightly", component])?;
        }
    }
    Ok(())
}

fn rustup_lists(words: &[&str], name: &str) -> bool {
    let output = Command::new("rustup").args(words).output();
    output.is_ok_and(|output| {
        String::from_utf8_lossy(&output.stdout).lines().any(|line| line.starts_with(name))
    })
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABSENT: Program =
        Program { name: "absent", package: "absent-package", purpose: "a test", need: Need::Required };

    #[test]
    fn nothing_missing_is_fine() {
        let shell = Program { name: "sh", package: "dash", purpose: "a test", need: Need::Required };
        assert_eq!(debian(&[shell]), Ok(()));
    }

    #[test]
    fn a_required_program_is_named_by_its_package() {
        assert!(without_installing(&[&ABSENT]).unwrap_err().ends_with(": absent-package"));
    }

    #[test]
    fn an_optional_program_may_be_missing() {
        assert_eq!(without_installing(&[&Program { need: Need::Optional, ..ABSENT }]), Ok(()));
    }
}
