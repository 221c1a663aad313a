//! `cargo xtask semver [COMMIT]`: whether the version in `Cargo.toml` allows what changed in the
//! public API since the last tag, or since the commit that is named. `cargo-semver-checks` compares
//! the two trees, without the packages that are never published.

use crate::command::{Invocation, Tally, on_path};
use crate::workspace;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const TOOL: &str = "cargo-semver-checks";
/// The comparison builds the documentation of both trees.
const LIMIT: Duration = Duration::from_secs(60 * 60);

/// Compares the tree with a commit, by default with the last tag.
///
/// # Errors
/// When the version has to be a higher one, when there is neither a commit nor a tag to compare
/// with, when the tool is not installed, and when git fails.
pub(crate) fn run(commit: Option<&str>) -> Result<(), String> {
    let root = workspace::root();
    let baseline = baseline(&root, commit)?;
    if !on_path(TOOL) {
        return Err(format!("{TOOL} is needed: cargo install {TOOL} --locked"));
    }
    println!("semver: compared with {baseline}");
    let words = ["cargo", "semver-checks", "check-release", "--workspace", "--baseline-rev", &baseline];
    Invocation::new(LIMIT, &words).run(&root, &mut Tally::default())
}

/// The commit or the tag to compare with.
fn baseline(root: &Path, commit: Option<&str>) -> Result<String, String> {
    match commit {
        Some(commit) => Ok(commit.to_string()),
        None => last_tag(root)?.ok_or_else(|| {
            "there is no tag v* to compare with: name a commit, cargo xtask semver COMMIT".to_string()
        }),
    }
}

/// The highest version among the tags of the commits below this one.
fn last_tag(root: &Path) -> Result<Option<String>, String> {
    let output = Command::new("git")
        .args(["-c", &format!("safe.directory={}", root.display())])
        .args(["tag", "--merged", "HEAD", "--sort=-version:refname", "--list", "v*"])
        .current_dir(root)
        .output()
        .map_err(|e| format!("cannot run git tag: {e}"))?;
    if !output.status.success() {
        return Err(format!("git tag: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_string))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_tag_is_the_highest_version() {
        let root = std::env::temp_dir().join(format!("selvedge-semver-{}", std::process::id()));
        std::fs::create_dir_all(&root).unwrap();
        let git = |words: &[&str]| {
            let names = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
            let output = Command::new("git").args(names).args(words).current_dir(&root).output().unwrap();
            assert!(output.status.success(), "{output:?}");
        };
        git(&["init", "-q"]);
        git(&["commit", "-q", "--allow-empty", "-m", "a"]);
        assert_eq!(last_tag(&root), Ok(None));
        assert!(baseline(&root, None).is_err_and(|error| error.starts_with("there is no tag v*")));
        assert_eq!(baseline(&root, Some("HEAD~1")), Ok("HEAD~1".to_string()));
        for tag in ["v0.2.0", "v0.10.0", "v0.9.0", "other"] {
            git(&["tag", tag]);
        }
        assert_eq!(last_tag(&root), Ok(Some("v0.10.0".to_string())));
        assert_eq!(baseline(&root, None), Ok("v0.10.0".to_string()));
        std::fs::remove_dir_all(&root).unwrap();
        assert!(last_tag(&root).is_err());
    }
}
