//! Projects of one manifest and a few files.

use crate::projects::{OURS, output};
use std::fs;
use tempfile::TempDir;

pub(crate) fn tree(manifest: &str) -> TempDir {
    let tree = tempfile::tempdir().unwrap();
    fs::write(tree.path().join("build.ninja"), manifest).unwrap();
    tree
}

/// The standard output, and the status.
pub(crate) fn run(tree: &TempDir, arguments: &[&str]) -> (String, i32) {
    let output = output(OURS, tree.path(), arguments);
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (text, output.status.code().unwrap())
}

pub(crate) fn read(tree: &TempDir, name: &str) -> String {
    fs::read_to_string(tree.path().join(name)).unwrap()
}

pub(crate) fn write(tree: &TempDir, name: &str, text: &str) {
    fs::write(tree.path().join(name), text).unwrap();
}
