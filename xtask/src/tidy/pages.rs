//! A check of `tidy`: the pages that `cargo xtask publish` makes are as it makes them. `tidy.rs`
//! calls `check`, which makes all pages anew and compares them with the tree.
//!
//! So a made page is never edited by hand, and `publish` must make the same bytes on each machine.
//! A page without a source is a problem too.

use super::{Problem, Tree};
use crate::publish;

/// A page that differs from the page that its sources make, and a page without a source.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let pages = match publish::pages(&tree.files) {
        Ok(pages) => pages,
        Err(error) => return vec![Problem::new("site", 0, error)],
    };
    let differs = pages.iter().filter(|(file, text)| tree.text(file) != Some(text));
    let changed = differs.map(|(file, _)| Problem::new(file, 0, "stale; `cargo xtask publish` writes it"));
    let stale = publish::stale(&tree.files, &pages);
    changed
        .chain(stale.map(|file| Problem::new(file, 0, "no source; `cargo xtask publish` removes it")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::messages;
    use super::*;

    #[test]
    fn a_stale_page_and_a_stray_one_are_found() {
        let mut tree = Tree::read(&crate::workspace::root()).unwrap();
        tree.files.extend(publish::pages(&tree.files).unwrap());
        assert_eq!(messages(&check(&tree)), [""; 0]);
        tree.files.insert("docs/guide/threads.md".to_string(), "# Threads\n".to_string());
        tree.files.insert("site/figures/stray.svg".to_string(), "<svg/>".to_string());
        let found = messages(&check(&tree)).join("\n");
        assert!(found.contains("site/guide/threads/index.html: stale"), "{found}");
        assert!(found.contains("site/figures/stray.svg: no source"), "{found}");
        tree.files.remove("figures/published.json");
        assert!(messages(&check(&tree)).join("\n").contains("figures/published.json does not exist"));
    }
}
