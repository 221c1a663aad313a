//! What the checks of `tidy` read and what they give: [`Tree`], the files of the repository with
//! their texts, and [`Problem`].

use super::syntax::{self, Syntax};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

/// The files under version control: path from the root, and text. A file that is not UTF-8 has
/// empty text.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) files: BTreeMap<String, String>,
    /// What the Rust files declare, once a check has asked.
    syntax: OnceLock<BTreeMap<String, Syntax>>,
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

    /// The Rust files, read by `syn` at the first call. A file that is put into the tree later is
    /// not among them.
    pub(super) fn syntax(&self) -> &BTreeMap<String, Syntax> {
        self.syntax.get_or_init(|| syntax::read(&self.ending_in(".rs").collect::<Vec<_>>()))
    }

    /// Reports each file that `syn` cannot read, because the other checks see nothing in it.
    pub(super) fn failures(&self) -> Vec<Problem> {
        let failures =
            self.syntax().iter().filter_map(|(file, syntax)| Some((file, syntax.failure.as_ref()?)));
        failures.map(|(file, (line, why))| Problem::new(file, *line, format!("no Rust: {why}"))).collect()
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
        let files = files.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect();
        Tree { files, ..Tree::default() }
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
    fn a_file_that_is_no_rust_is_a_problem() {
        let tree = Tree::of(&[("a.rs", "fn a() {}\n"), ("b.rs", "fn a() {}\nfn b( {}\n")]);
        let found = messages(&tree.failures());
        assert!(found.len() == 1 && found[0].starts_with("b.rs:2: no Rust: "), "{found:?}");
    }

    #[test]
    fn reads_the_tree_it_is_built_from() {
        let tree = Tree::read(&crate::workspace::root()).unwrap();
        assert!(tree.text("xtask/src/tidy/tree.rs").unwrap().contains("reads_the_tree_it_is_built_from"));
    }
}
