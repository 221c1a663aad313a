//! What the checks of `tidy` read and what they give: [`Tree`], the files of the repository with
//! their texts, and [`Problem`].

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::Command;

/// The files under version control: path from the root, and text. A file that is not UTF-8 has
/// empty text.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) files: BTreeMap<String, String>,
}

/// Something to mend, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) file: String,
    /// Counted from 1; 0 is the file as a whole.
    line: usize,
    message: String,
}

impl Problem {
    pub(super) fn new(file: &str, line: usize, message: impl Into<String>) -> Problem {
        Problem { file: file.to_string(), line, message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.message),
            line => write!(f, "{}:{line}: {}", self.file, self.message),
        }
    }
}

/// Every path that git tracks, or would track if it were added. A file that is deleted and not yet
/// staged is among them.
pub(crate) fn paths(root: &Path) -> Result<Vec<String>, String> {
    let output = Command::new("git")
        // A clone that belongs to another user is as good to read.
        .args(["-c", &format!("safe.directory={}", root.display())])
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|e| format!("cannot run git ls-files: {e}"))?;
    if !output.status.success() {
        return Err(format!("git ls-files: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    let paths = String::from_utf8_lossy(&output.stdout);
    Ok(paths.split('\0').filter(|path| !path.is_empty()).map(str::to_string).collect())
}

impl Tree {
    /// Reads the files of [`paths`].
    pub(crate) fn read(root: &Path) -> Result<Tree, String> {
        let mut tree = Tree::default();
        for path in paths(root)? {
            if let Ok(bytes) = std::fs::read(root.join(&path)) {
                tree.files.insert(path, String::from_utf8(bytes).unwrap_or_default());
            }
        }
        Ok(tree)
    }

    pub(super) fn text(&self, path: &str) -> Option<&String> {
        self.files.get(path)
    }

    /// The files with names that end in `suffix`, in order of path.
    pub(super) fn ending_in<'a>(&'a self, suffix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files
            .iter()
            .filter(move |(path, _)| path.ends_with(suffix))
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Tree {
        Tree { files: files.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect() }
    }
}

/// The messages alone, for tests.
#[cfg(test)]
pub(super) fn messages(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_says_where_it_is() {
        assert_eq!(Problem::new("a.md", 3, "odd").to_string(), "a.md:3: odd");
        assert_eq!(Problem::new("a.md", 0, "odd").to_string(), "a.md: odd");
    }

    #[test]
    fn reads_the_tree_it_is_built_from() {
        let tree = Tree::read(&crate::workspace::root()).unwrap();
        assert!(tree.text("xtask/src/tidy/tree.rs").unwrap().contains("reads_the_tree_it_is_built_from"));
    }
}
