//! Programs that do not fit, for the tests of this crate and of `coroutine`.
//!
//! Each case is compiled by `rustc` against the library that the test is linked with. It is refused
//! with its mistake, and accepted with what mends it in the same place. So a case is refused for
//! its mistake alone.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A program with a mistake.
pub(crate) struct Misuse {
    /// The program, with `@` at the mistake.
    pub(crate) program: &'static str,
    /// What is wrong at `@`, and what is right there.
    pub(crate) at: [&'static str; 2],
    /// What the message says.
    pub(crate) says: &'static [&'static str],
}

/// The library `name` that the test is linked with: the newest library of this name beside the
/// test. Returns it with its directory.
fn library(name: &str) -> (PathBuf, PathBuf) {
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let files = deps.read_dir().unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    let start = format!("lib{name}-");
    let ours = files.filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(&start) && name.ends_with(".rlib")
    });
    let newest = ours.max_by_key(|path| path.metadata().and_then(|file| file.modified()).ok());
    (newest.expect("cargo has built the library for this test"), deps)
}

/// What the compiler says of a program over the library `name`; `None` if it accepts the program.
fn compile(directory: &Path, name: &str, program: &str) -> Option<String> {
    let (library, deps) = library(name);
    let text = format!("#![allow(unused)]\nuse {name}::*;\npub fn main() {{\n{program}\n}}\n");
    let source = directory.join("misuse.rs");
    std::fs::write(&source, text).unwrap();
    // The compiler of this cargo.
    let rustc = std::env::var_os("CARGO").map(|cargo| Path::new(&cargo).with_file_name("rustc"));
    let rustc = rustc.filter(|rustc| rustc.is_file()).unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args(["--edition", "2024", "--crate-type", "lib", "--emit", "metadata", "--color", "never"])
        .arg("--extern")
        .arg(format!("{name}={}", library.display()))
        .arg("-L")
        .arg(format!("dependency={}", deps.display()))
        .arg("--out-dir")
        .arg(directory)
        .arg(&source)
        .output()
        .unwrap();
    (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Each misuse of the library `name` is refused with its words, and accepted once it is mended.
pub(crate) fn check(name: &str, misuses: &[Misuse]) {
    let directory = std::env::temp_dir().join(format!("messages-{}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    for misuse in misuses {
        let [wrong, right] = misuse.at.map(|part| misuse.program.replace('@', part));
        let said = compile(&directory, name, &wrong);
        let said = said.unwrap_or_else(|| panic!("the compiler accepts: {wrong}"));
        for words in misuse.says {
            assert!(said.contains(words), "{wrong}\nis refused without the words: {words}\n{said}");
        }
        if let Some(said) = compile(&directory, name, &right) {
            panic!("the compiler refuses what mends it: {right}\n{said}");
        }
    }
    std::fs::remove_dir_all(&directory).unwrap();
}
