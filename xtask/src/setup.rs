//! `cargo xtask setup`: installs the programs that tests and checkers need beyond the stable
//! toolchain. `main.rs` calls `run`, and so do `ci.rs` and `prove.rs` before their
//! steps. `peers.rs` takes
//! `install`.
//!
//! Only root installs Debian packages, and a message comes before, because the machine is changed.
//! Another user gets the names of the packages. A program that is not required stops nothing.

use crate::command::{Invocation, Tally, on_path};
use crate::{mpi_builds, workspace};
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::time::Duration;

/// A program that comes from a Debian package.
#[derive(Debug)]
struct Program {
    /// Its name in the search path; of a library, the absolute path of its header; of another
    /// package, that of one of its files.
    name: &'static str,
    package: &'static str,
    /// Its purpose, as a line of output says it.
    purpose: &'static str,
    need: Need,
}

/// Whether work stops without a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
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
    Program { name: "valgrind", package: "valgrind", purpose: "counts instructions", need: Need::Required },
    Program {
        name: "ninja",
        package: "ninja-build",
        purpose: "what selvedge-make's tests compare it to",
        need: Need::Required,
    },
    Program {
        name: "make",
        package: "make",
        purpose: "shares jobs with selvedge-make in its tests",
        need: Need::Required,
    },
    Program {
        name: "cmake",
        package: "cmake",
        purpose: "writes a project for selvedge-make's tests",
        need: Need::Required,
    },
    Program {
        name: "jq",
        package: "jq",
        purpose: "what selvedge-pipe's tests compare it to",
        need: Need::Required,
    },
    Program {
        name: "zstd",
        package: "zstd",
        purpose: "unpacks what selvedge-httpd packs in its tests",
        need: Need::Required,
    },
    Program {
        name: "python3",
        package: "python3",
        purpose: "CSV and a terminal in selvedge-pipe's tests",
        need: Need::Required,
    },
    Program {
        name: "/usr/include/sqlite3.h",
        package: "libsqlite3-dev",
        purpose: "database of a program and of the guide's web application",
        need: Need::Required,
    },
    Program {
        name: "mpirun.openmpi",
        package: "openmpi-bin",
        purpose: "starts the ranks in the tests of the MPI library",
        need: Need::Optional,
    },
    Program {
        name: "mpirun.mpich",
        package: "mpich",
        purpose: "another MPI for the same tests",
        need: Need::Optional,
    },
    Program {
        name: "pip3",
        package: "python3-pip",
        purpose: "fetches builds of MPI for the same tests",
        need: Need::Optional,
    },
    Program {
        name: "/usr/share/doc/php-fpm/copyright",
        package: "php-fpm",
        purpose: "runs a site in PHP behind the server in its tests",
        need: Need::Optional,
    },
    Program {
        name: "/usr/share/dokuwiki/doku.php",
        package: "dokuwiki",
        purpose: "a site in PHP, for the server's tests",
        need: Need::Optional,
    },
    Program {
        name: "/usr/lib/python3/dist-packages/prometheus_client/parser.py",
        package: "python3-prometheus-client",
        purpose: "reads the server's metrics in its tests",
        need: Need::Optional,
    },
    Program {
        name: "mighty",
        package: "mighttpd2",
        purpose: "what selvedge-httpd's tests compare it to, with Mighttpd's own files",
        need: Need::Optional,
    },
    Program {
        name: "websockify",
        package: "websockify",
        purpose: "an application with WebSockets behind the server in its tests",
        need: Need::Optional,
    },
    Program {
        name: "slowhttptest",
        package: "slowhttptest",
        purpose: "slow clients in the server's tests",
        need: Need::Optional,
    },
    Program {
        name: "delv",
        package: "bind9-dnsutils",
        purpose: "validates what selvedge-dns serves in its tests",
        need: Need::Optional,
    },
    Program {
        name: "kdig",
        package: "knot-dnsutils",
        purpose: "asks selvedge-dns over TLS in its tests",
        need: Need::Optional,
    },
    Program {
        name: "lftp",
        package: "lftp",
        purpose: "client of selvedge-ftpd over TLS in its tests",
        need: Need::Optional,
    },
];

const APT_LIMIT: Duration = Duration::from_secs(15 * 60);
const RUSTUP_LIMIT: Duration = Duration::from_secs(10 * 60);

/// Which checks a machine is made ready for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The tests.
    Tests,
    /// The tests, and then the proofs.
    TestsAndProofs,
}

/// `cargo xtask setup`: installs the programs that the checks of this extent need.
pub(crate) fn run(extent: Extent) -> Result<(), String> {
    programs(PROGRAMS)?;
    if !on_path("rustup") {
        return Err("rustup is needed to install toolchains; see https://rustup.rs".to_string());
    }
    components()?;
    if let Err(error) = mpi_builds::fetch() {
        println!("setup: going on without builds of MPI: {error}");
    }
    match extent {
        Extent::Tests => Ok(()),
        Extent::TestsAndProofs => nightly(),
    }
}

/// Installs the packages of those `programs` that are missing, when run as root.
///
/// # Errors
/// When a required program is missing and cannot be installed; the message names the packages.
fn programs(programs: &[Program]) -> Result<(), String> {
    let missing: Vec<&Program> = programs.iter().filter(|program| !on_path(program.name)).collect();
    for program in &missing {
        println!("setup: {} is missing ({}; package {})", program.name, program.purpose, program.package);
    }
    let packages = |need| -> Vec<&str> {
        missing.iter().filter(|program| program.need == need).map(|program| program.package).collect()
    };
    install(&packages(Need::Required))?;
    if let Err(error) = install(&packages(Need::Optional)) {
        println!("setup: going on without: {error}");
    }
    Ok(())
}

/// Installs Debian packages. Says so before, because it changes the machine.
///
/// # Errors
/// When there are any and the user is not root, or apt fails.
pub(crate) fn install(packages: &[&str]) -> Result<(), String> {
    if packages.is_empty() {
        return Ok(());
    }
    if !on_path("apt-get") || !is_root() {
        return Err(by_hand(packages));
    }
    println!("setup: running as root, so installing: {}", packages.join(" "));
    let apt = |words: &[&str]| {
        let lock = "DPkg::Lock::Timeout=300"; // another apt may be at work
        let command = [&["apt-get", "-q", "-y", "-o", lock], words].concat();
        Invocation::new(APT_LIMIT, &command)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .run(&workspace::root(), &mut Tally::default())
    };
    apt(&["update"])?;
    apt(&[&["install", "--no-install-recommends"], packages].concat())
}

fn by_hand(packages: &[&str]) -> String {
    format!(
        "not root, so nothing was installed; install these packages and try again: {}",
        packages.join(" ")
    )
}

fn rustup(words: &[&str]) -> Result<(), String> {
    println!("setup: rustup {}", words.join(" "));
    let command = [&["rustup"], words].concat();
    Invocation::new(RUSTUP_LIMIT, &command).run(&workspace::root(), &mut Tally::default())
}

/// The stable toolchain's checkers.
fn components() -> Result<(), String> {
    for (program, component) in [("cargo-fmt", "rustfmt"), ("cargo-clippy", "clippy")] {
        if !on_path(program) {
            rustup(&["component", "add", component])?;
        }
    }
    Ok(())
}

/// A nightly toolchain with Miri, and with the sources that the sanitizers build the standard
/// library from.
fn nightly() -> Result<(), String> {
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

    #[test]
    fn nothing_missing_is_fine() {
        let shell = Program { name: "sh", package: "dash", purpose: "a test", need: Need::Required };
        assert_eq!(programs(&[shell]), Ok(()));
        assert_eq!(install(&[]), Ok(()));
    }

    #[test]
    fn what_is_to_be_installed_by_hand_is_named() {
        assert!(by_hand(&["curl", "gcc"]).ends_with(": curl gcc"));
    }
}
