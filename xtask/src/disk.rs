//! What the builds take on disk: a line at the end of `cargo xtask test` and `ci`, and a check of
//! `ci`. `ci.rs` calls both.

use crate::workspace::Workspace;
use std::path::Path;

/// What all builds of one run may take, in bytes. A directory that has seen several compilers or
/// many changes has more; `cargo clean` empties it.
const MOST: u64 = 12_000_000_000;

/// Directories below the root that builds write, beside the target directory.
const OTHERS: [&str; 2] = ["fuzz/target", "fuzz/corpus"];

/// What the builds take, as a line of output says it.
pub(crate) fn used(workspace: &Workspace) -> String {
    line(bytes_of_builds(workspace))
}

fn line(bytes: u64) -> String {
    format!("what was built takes {:.1} GB on disk; `cargo clean` frees it", bytes as f64 / 1e9)
}

/// Holds a run in a fresh clone to [`MOST`], and only tells elsewhere: CI's machines set `CI`.
///
/// # Errors
/// When `CI` is set, and the builds take more.
pub(crate) fn check(workspace: &Workspace, tally: &mut crate::command::Tally) -> Result<(), String> {
    let bytes = bytes_of_builds(workspace);
    tally.say(&format!("ci: {}", line(bytes)));
    let held = std::env::var_os("CI").is_some();
    if held && bytes > MOST { Err(format!("the builds take {bytes} bytes of {MOST}")) } else { Ok(()) }
}

fn bytes_of_builds(workspace: &Workspace) -> u64 {
    OTHERS.iter().map(|other| bytes_of(&workspace.root.join(other))).sum::<u64>()
        + bytes_of(&workspace.target_dir)
}

/// The bytes of all files beneath a directory. What cannot be read counts as nothing, and of a file
/// with several names each counts once: cargo gives an executable two.
fn bytes_of(directory: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = std::fs::read_dir(directory) else { return 0 };
    let bytes = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        let metadata = entry.metadata().ok()?;
        match metadata.is_dir() {
            true => Some(bytes_of(&entry.path())),
            false => Some(metadata.blocks() * 512 / metadata.nlink().max(1)),
        }
    });
    bytes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_two_names_counts_once() {
        let dir = tempfile::tempdir().unwrap();
        let below = dir.path().join("below");
        std::fs::create_dir(&below).unwrap();
        std::fs::write(below.join("a"), vec![1; 100_000]).unwrap();
        let one = bytes_of(dir.path());
        assert!((100_000..120_000).contains(&one), "{one}");
        std::fs::hard_link(below.join("a"), dir.path().join("b")).unwrap();
        assert_eq!(bytes_of(dir.path()), one);
        assert_eq!(bytes_of(&dir.path().join("nothing")), 0);
    }
}
