//! A check of `tidy`: the changelog has an entry for the version in `Cargo.toml`. `tidy.rs` calls
//! `check` with the packages of the workspace.
//!
//! The entry is a heading of the second level that begins with the version. Packages may carry
//! several versions, and each needs its entry.

use super::{Problem, Tree, markdown};
use crate::workspace::Package;

const FILE: &str = "CHANGELOG.md";

/// Every version that a package carries is the first word of a second-level heading.
pub(super) fn check(tree: &Tree, packages: &[Package]) -> Vec<Problem> {
    let text = tree.text(FILE).map_or("", String::as_str);
    let released: Vec<&str> = markdown::prose(text)
        .filter_map(|(_, line)| line.strip_prefix("## ")?.split_whitespace().next())
        .collect();
    let mut versions: Vec<&str> = packages.iter().map(|package| package.version.as_str()).collect();
    versions.sort_unstable();
    versions.dedup();
    versions.retain(|version| !released.contains(version));
    versions.iter().map(|version| Problem::new(FILE, 0, format!("no entry for version {version}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_version_has_an_entry() {
        let package = |version: &str| Package { version: version.to_string(), ..Package::sample("a") };
        let tree = Tree::of(&[(FILE, "# Changelog\n\n## 0.1.0\n")]);
        assert_eq!(check(&tree, &[package("0.1.0")]), []);
        let problems = check(&tree, &[package("0.1.0"), package("0.2.0"), package("0.2.0")]);
        assert_eq!(problems, [Problem::new(FILE, 0, "no entry for version 0.2.0")]);
    }
}
