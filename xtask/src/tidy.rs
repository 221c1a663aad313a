//! `cargo xtask tidy`: rules about the tree that the compiler cannot check.
//!
//! Each check is a function from the tree's text to the problems found in it, so that each is
//! tested on a tree of three lines.
//!
//! `main.rs` and `ci.rs` call `run`. A new check is a file in `tidy/` with a function `check`, and
//! a line in the list of `run`.

mod changelog;
mod glossary;
mod layers;
mod links;
pub(crate) mod markdown;
mod names;
mod pages;
mod papers;
mod rust;
mod stray_paths;
mod words;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::Command;

use crate::workspace::Workspace;
pub(crate) use links::joined;

/// Whether `docs/CONCORDANCE.md` is checked or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Concordance {
    /// A stale file is a problem.
    MustBeCurrent,
    /// A stale file is replaced.
    Rewrite,
}

/// The files under version control: path from the root, and text. A file that is not UTF-8 has
/// empty text.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) files: BTreeMap<String, String>,
}

/// Something to mend, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Problem {
    file: String,
    /// Counted from 1; 0 is the file as a whole.
    line: usize,
    message: String,
}

impl Problem {
    fn new(file: &str, line: usize, message: impl Into<String>) -> Problem {
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

/// Prints every problem found.
///
/// # Errors
/// When there was one.
pub(crate) fn run(concordance: Concordance) -> Result<(), String> {
    let workspace = Workspace::load()?;
    let mut tree = Tree::read(&workspace.root)?;
    let table = papers::concordance(&tree);
    if concordance == Concordance::Rewrite && tree.text(papers::CONCORDANCE) != Some(&table) {
        let path = workspace.root.join(papers::CONCORDANCE);
        std::fs::write(&path, &table).map_err(|e| format!("{}: {e}", path.display()))?;
        println!("tidy: wrote {}", papers::CONCORDANCE);
        tree.files.insert(papers::CONCORDANCE.to_string(), table);
    }
    let problems = [
        layers::check(&tree, &workspace.packages),
        links::check(&tree),
        papers::check(&tree),
        pages::check(&tree),
        glossary::check(&tree),
        changelog::check(&tree, &workspace.packages),
        stray_paths::check(&tree),
        words::check(&tree),
        names::check(&tree),
    ]
    .concat();
    for problem in &problems {
        println!("tidy: {problem}");
    }
    match problems.len() {
        0 => Ok(()),
        1 => Err("tidy found 1 problem".to_string()),
        count => Err(format!("tidy found {count} problems")),
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
    /// Reads every file that git tracks, or would track if it were added.
    pub(crate) fn read(root: &Path) -> Result<Tree, String> {
        let mut tree = Tree::default();
        for path in paths(root)? {
            // A file deleted and not yet staged is still listed.
            if let Ok(bytes) = std::fs::read(root.join(&path)) {
                tree.files.insert(path, String::from_utf8(bytes).unwrap_or_default());
            }
        }
        Ok(tree)
    }

    fn text(&self, path: &str) -> Option<&String> {
        self.files.get(path)
    }

    /// The files with names that end in `suffix`, in order of path.
    fn ending_in<'a>(&'a self, suffix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files
            .iter()
            .filter(move |(path, _)| path.ends_with(suffix))
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    #[cfg(test)]
    fn of(files: &[(&str, &str)]) -> Tree {
        Tree { files: files.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect() }
    }
}

/// The messages alone, for tests.
#[cfg(test)]
fn messages(problems: &[Problem]) -> Vec<String> {
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
        assert!(tree.text("xtask/src/tidy.rs").unwrap().contains("reads_the_tree_it_is_built_from"));
    }
}
