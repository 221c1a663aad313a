//! Real projects of CMake, built from nothing and then again by a build runner that is a process of
//! its own. The sources are those that `cargo xtask projects` fetches.
//!
//! `child/mod.rs` calls [`project`] for the figure in `figures/src/make.rs`, which asks
//! [`commands`] how many commands a build must run.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::fault;
use super::make::{BuildTree, MAKE, print};
use crate::peers::target_directory;

/// The projects, by the numbers that a figure gives: Debian's names of their sources.
pub(crate) const PROJECTS: [&str; 2] = ["cjson", "yajl"];
/// The number of ninja among the build runners.
const NINJA: u64 = 1;

fn source(project: u64) -> PathBuf {
    target_directory().join("projects").join(PROJECTS[project as usize]).join("source")
}

/// A configured project. The first call runs CMake, and the later ones find its files.
fn configured(runner: u64, project: u64) -> Result<BuildTree, String> {
    let tree = BuildTree::kept(PROJECTS[project as usize], runner);
    let (generator, manifest) = match runner {
        MAKE => ("Unix Makefiles", "Makefile"),
        _ => ("Ninja", "build.ninja"),
    };
    if !tree.path().join(manifest).exists() {
        let mut cmake = Command::new("cmake");
        cmake.args(["-G", generator, "-S"]).arg(source(project)).arg("-B").arg(tree.path());
        succeed(cmake.stdout(Stdio::null()).stderr(Stdio::null()))?;
    }
    Ok(tree)
}

fn succeed(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{command:?}: {}", output.status)),
    }
}

fn ninja(directory: &Path, arguments: &[&str]) -> Result<String, String> {
    succeed(Command::new("ninja").arg("-C").arg(directory).args(arguments))
}

/// How many commands a build of the project runs, as ninja tells.
///
/// # Errors
/// For the table: the source is missing, or CMake or ninja.
pub(crate) fn commands(project: u64) -> Result<u64, String> {
    if !source(project).is_dir() {
        return Err("missing (cargo xtask projects 600)".to_string());
    }
    let tree = configured(NINJA, project)?;
    Ok(ninja(tree.path(), &["-t", "commands", "all"])?.lines().count() as u64)
}

/// Builds a project from nothing, and once more with nothing to do.
pub(super) fn project(runner: u64, project: u64) -> Result<(), String> {
    let tree = configured(runner, project)?;
    match runner {
        MAKE => drop(tree.build(&["clean"])),
        _ => drop(ninja(tree.path(), &["-t", "clean"])?),
    }
    if fault() > 0 {
        tree.build(&["-j2"]);
    }
    let (commands, wall, cpu) = tree.build(&["-j2"]);
    print(commands, wall, cpu);
    let (again, wall, _) = tree.build(&["-j2"]);
    println!("again {again}");
    println!("null_ms {:.4}", wall.as_secs_f64() * 1e3);
    Ok(())
}
