//! Real projects of CMake and Meson, built from nothing and then again by a build runner that is a
//! process of its own. `cargo xtask projects fetch` fetches the sources.
//!
//! `child.rs` calls [`project`] for the figure in `figures/src/make.rs`, which asks
//! [`commands`] how many commands a build must run.

use super::fault;
use super::make::{BuildTree, MAKE, print};
use crate::peers::target_directory;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The projects, by the numbers that a figure gives: Debian's names of their sources, and for Meson
/// the directory of the `meson.build`.
pub(crate) const PROJECTS: [(&str, Option<&str>); 3] =
    [("yajl", None), ("cjson", None), ("lz4", Some("contrib/meson"))];
/// The number of ninja among the build runners.
const NINJA: u64 = 1;

fn source(project: u64) -> PathBuf {
    target_directory().join("projects").join(PROJECTS[project as usize].0).join("source")
}

/// A configured project. The first call runs CMake or Meson, and the later ones find the files.
fn configured(runner: u64, project: u64) -> Result<BuildTree, String> {
    let (name, meson) = PROJECTS[project as usize];
    let tree = BuildTree::kept(name, runner);
    let (generator, manifest) = match runner {
        MAKE => ("Unix Makefiles", "Makefile"),
        _ => ("Ninja", "build.ninja"),
    };
    if tree.path().join(manifest).exists() {
        return Ok(tree);
    }
    let mut configure = Command::new(if meson.is_some() { "meson" } else { "cmake" });
    match meson {
        Some(below) => configure.arg("setup").arg(tree.path()).arg(source(project).join(below)),
        None => configure.args(["-G", generator, "-S"]).arg(source(project)).arg("-B").arg(tree.path()),
    };
    succeed(configure.stdout(Stdio::null()).stderr(Stdio::null()))?;
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
/// For the table: the source is missing, or CMake, Meson or ninja.
pub(crate) fn commands(project: u64) -> Result<u64, String> {
    if !source(project).is_dir() {
        return Err("missing (cargo xtask projects fetch)".to_string());
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
