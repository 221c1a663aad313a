//! A check of `tidy`: the file of a module stands beside the directory of its children, as `x.rs`
//! beside `x/`, and not in it as `x/mod.rs`. `tidy.rs` calls `check`.
//!
//! The modules that tests share (`tests/common/mod.rs`) are not in a `src`, and keep the name that
//! cargo does not take for a test.

use super::{Problem, Tree};

/// The crates that have the other layout still. The list only shrinks.
const OTHER: [&str; 1] = ["crates/io/src/"];

/// Reports each `mod.rs` below a `src`, and each entry of [`OTHER`] that has none.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let files = || tree.ending_in("/mod.rs").map(|(file, _)| file).filter(|file| file.contains("/src/"));
    let is_other = |file: &&str| OTHER.iter().any(|directory| file.starts_with(directory));
    let wrong = files().filter(|file| !is_other(file)).map(|file| {
        let beside = file.trim_end_matches("/mod.rs");
        Problem::new(file, 0, format!("a module's file stands beside its directory: {beside}.rs"))
    });
    let ended = OTHER.iter().filter(|directory| !files().any(|file| file.starts_with(*directory)));
    let ended = ended.map(|directory| Problem::new(directory, 0, "it has no mod.rs: shrink the list"));
    wrong.chain(ended).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_stands_beside_its_directory() {
        let other = "crates/io/src/fs/mod.rs";
        let tree =
            Tree::of(&[(other, ""), ("a/src/b.rs", ""), ("a/src/b/c.rs", ""), ("a/tests/d/mod.rs", "")]);
        assert_eq!(check(&tree), []);
        let problems = check(&Tree::of(&[(other, ""), ("a/src/b/mod.rs", "")]));
        let message = "a module's file stands beside its directory: a/src/b.rs";
        assert_eq!(problems, [Problem::new("a/src/b/mod.rs", 0, message)]);
    }

    #[test]
    fn a_crate_that_has_the_layout_leaves_the_list() {
        let problems = check(&Tree::of(&[("crates/io/src/fs.rs", "")]));
        assert_eq!(problems, [Problem::new("crates/io/src/", 0, "it has no mod.rs: shrink the list")]);
    }
}
