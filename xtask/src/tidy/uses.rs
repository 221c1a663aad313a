//! A check of `tidy`: the imports of a module stand in one group, in rustfmt's order. `tidy.rs`
//! calls `check`.
//!
//! A blank line between two imports makes rustfmt sort the two groups apart. So files with other
//! groups would have other orders. An import with an attribute begins a group of its own: its
//! lines explain its reason.

use super::{Problem, Tree};

/// Reports each import that a blank line sets apart from the import before it.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let message = "a blank line sets this import apart: one group, in rustfmt's order";
    tree.ending_in(".rs")
        .flat_map(|(file, source)| {
            set_apart(source).into_iter().map(move |line| Problem::new(file, line, message))
        })
        .collect()
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
    fn an_import_that_is_set_apart_is_reported() {
        let tree = Tree::of(&[("a/src/b.rs", "use a::b;\n\nuse c::d;\n"), ("c/src/b.rs", "use a::b;\n")]);
        let problems = check(&tree);
        assert_eq!(problems.len(), 1);
        assert!(format!("{:?}", problems[0]).contains("a/src/b.rs"), "{problems:?}");
    }
}
