//! A check of `tidy`: no file of the tree names a place that exists on one machine only, such as a
//! home directory or a replaced registry. `tidy.rs` calls `check`.
//!
//! The places are written here in two parts, so that this file does not name them. A place counts
//! only where a path starts with it.

use super::{Problem, Tree};

/// Written in two parts, so that this file does not name them.
const PLACES: [&str; 3] = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];

/// Where Cargo.lock says crates come from.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Settings that put another host in the place of the public registries.
const REPLACEMENTS: [&str; 5] = [
    concat!("replace", "-with"),
    concat!("index", "-url"),
    concat!("sparse", "+http"),
    concat!("GO", "PROXY="),
    concat!("RUSTUP_DIST", "_SERVER"),
];

/// A place counts where a path starts with it: the same words deep in a path or in an address are
/// not of this machine.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (file, text) in &tree.files {
        for (index, line) in text.lines().enumerate() {
            let path = PLACES.iter().find(|place| starts_in(line, place));
            let host = REPLACEMENTS.iter().find(|setting| line.contains(*setting));
            let registry = line.contains(concat!("registry", "+")) && !line.contains(CRATES_IO);
            if let Some(what) = path.or(host) {
                problems.push(Problem::new(file, index + 1, format!("{what} belongs to one machine")));
            } else if registry && file.ends_with("Cargo.lock") {
                problems.push(Problem::new(file, index + 1, "a registry other than crates.io"));
            }
        }
    }
    problems
}

fn starts_in(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !(c.is_alphanumeric() || "/.-_~}$*]".contains(c)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(file: &str, text: &str) -> usize {
        check(&Tree::of(&[(file, text)])).len()
    }

    #[test]
    fn a_machine_s_path_is_found() {
        for place in PLACES {
            assert_eq!(count("a.sh", &format!("\ncd {place}x\n")), 1, "{place}");
            assert_eq!(count("a.sh", &format!("CARGO_HOME={place}x\n")), 1, "{place}");
        }
    }

    #[test]
    fn a_part_of_an_address_is_not() {
        for place in PLACES {
            assert_eq!(count("a.md", &format!("http://example.org{place}x")), 0, "{place}");
        }
    }

    #[test]
    fn another_registry_is_found() {
        assert_eq!(count("Cargo.lock", &format!("source = \"{CRATES_IO}\"\n")), 0);
        assert_eq!(count("Cargo.lock", "source = \"registry+https://example.org/index\"\n"), 1);
        for setting in REPLACEMENTS {
            assert_eq!(count("config", &format!("{setting} = \"x\"\n")), 1, "{setting}");
        }
    }
}
