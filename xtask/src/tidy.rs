//! `cargo xtask tidy`: rules about the tree that the compiler cannot check.
//!
//! Each check is a function from the tree's text to the problems found in it, so that each is
//! tested on a tree of three lines.
//!
//! `main.rs` and `ci.rs` call `run`. A new check is a file in `tidy/` with a function `check`, and
//! a line in the list of `run`.

mod changelog;
mod circles;
mod clauses;
mod compile_fail;
mod errors;
mod glossary;
mod imports;
mod layers;
mod layout;
mod lengths;
mod links;
pub(crate) mod markdown;
mod names;
mod pages;
mod papers;
mod stray_paths;
mod syntax;
mod tree;
mod uses;
mod words;

use crate::workspace::Workspace;
pub(crate) use links::joined;
use tree::Problem;
#[cfg(test)]
use tree::messages;
pub(crate) use tree::{Tree, paths};

/// Whether `docs/CONCORDANCE.md` is checked or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Concordance {
    /// A stale file is a problem.
    MustBeCurrent,
    /// A stale file is replaced.
    Rewrite,
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
        tree.failures(),
        layers::check(&tree, &workspace.packages),
        circles::check(&tree, &workspace.packages),
        layout::check(&tree),
        links::check(&tree),
        papers::check(&tree),
        pages::check(&tree),
        glossary::check(&tree),
        changelog::check(&tree, &workspace.packages),
        stray_paths::check(&tree),
        words::check(&tree),
        names::check(&tree),
        errors::check(&tree),
        compile_fail::check(&tree),
        uses::check(&tree),
        lengths::check(&tree),
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
