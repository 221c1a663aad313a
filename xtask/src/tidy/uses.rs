//! A check of `tidy`: the imports of a module stand in one group, in rustfmt's order. `tidy.rs`
//! calls `check`.
//!
//! A blank line between two imports makes rustfmt sort the two groups apart. So files with other
//! groups would have other orders. An import with an attribute begins a group of its own: its
//! lines explain its reason.

use super::{Problem, Tree};

/// The directories with groups still. The list only shrinks.
const GROUPED: [&str; 5] = ["apps/ftpd/", "apps/httpd/", "apps/make/", "crates/cnc/", "xtask/"];

/// Reports each import that a blank line sets apart from the import before it.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    check_but(tree, &GROUPED)
}

fn check_but(tree: &Tree, grouped: &[&str]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut met = vec![false; grouped.len()];
    for (file, source) in tree.ending_in(".rs") {
        let apart = set_apart(source);
        match grouped.iter().position(|directory| file.starts_with(directory)) {
            Some(at) => met[at] |= !apart.is_empty(),
            None => problems.extend(apart.into_iter().map(|line| {
                Problem::new(file, line, "a blank line sets this import apart: one group, in rustfmt's order")
            })),
        }
    }
    let ended = grouped.iter().zip(met).filter(|(_, met)| !met);
    problems
        .extend(ended.map(|(directory, _)| Problem::new(directory, 0, "it has one group: shrink the list")));
    problems
}

/// The lines of imports behind a blank line that ends an import. Only the imports of the file's own
/// module count: they stand at the first column.
fn set_apart(source: &str) -> Vec<usize> {
    let mut lines = Vec::new();
    // Whether a line lies within an import, ends one, or is blank behind the end.
    let (mut within, mut ended, mut blank) = (false, false, false);
    for (index, line) in source.lines().enumerate() {
        if !within && line.starts_with("use ") {
            if ended && blank {
                lines.push(index + 1);
            }
            within = true;
        }
        if within {
            ended = line.ends_with(';');
            (within, blank) = (!ended, false);
        } else if line.is_empty() {
            blank = ended;
        } else {
            (ended, blank) = (false, false);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_stand_in_one_group() {
        for right in [
            "use a::b;\nuse c::{\n    d,\n};\n\nfn e() {}\n",
            "use a::b;\n\n#[cfg(test)]\nuse c::d;\n",
            "use a::b;\n\npub use c::d;\n",
            "use a::b;\n\n// Of the kernel.\nuse c::d;\n",
            "fn a() {\n    use b::c;\n\n    use d::e;\n}\n",
        ] {
            assert_eq!(set_apart(right), [0; 0], "{right}");
        }
        assert_eq!(set_apart("use a::b;\n\nuse c::d;\n"), [3]);
        assert_eq!(set_apart("use a::{\n    b,\n};\n\nuse c::d;\nuse e::f;\n\nuse g::h;\n"), [5, 8]);
    }

    #[test]
    fn the_list_of_groups_shrinks() {
        let tree = Tree::of(&[("a/src/b.rs", "use a::b;\n\nuse c::d;\n"), ("c/src/b.rs", "use a::b;\n")]);
        assert_eq!(check_but(&tree, &["a/"]), []);
        let problems = check_but(&tree, &["a/", "c/"]);
        assert_eq!(problems, [Problem::new("c/", 0, "it has one group: shrink the list")]);
    }
}
