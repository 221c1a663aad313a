//! A check of `tidy`: the name of a type that is an error ends in `Error`. `tidy.rs` calls `check`.
//!
//! A type is an error if it implements `std::error::Error`. The types of tests do not count.

use super::{Problem, Tree};
use std::collections::BTreeSet;

/// The errors that have other names, each with its reason. The list only shrinks.
const OTHERS: [(&str, &str); 3] = [
    ("Elapsed", "tokio's name of the same error"),
    ("Exception", "the papers' word: sys_throw and sys_catch"),
    ("Rejection", "the name in axum and warp of why an extractor refuses a request"),
];

/// Reports each error with another name, and each entry of [`OTHERS`] that is no error.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    check_against(tree, &OTHERS.map(|(name, _)| name))
}

fn check_against(tree: &Tree, others: &[&str]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut met = BTreeSet::new();
    for (file, syntax) in tree.syntax().iter().filter(|(file, _)| file.contains("/src/")) {
        for (line, name) in &syntax.errors {
            if others.contains(&name.as_str()) {
                met.insert(name.as_str());
            } else if !name.ends_with("Error") {
                let message = format!("{name} is an error, and its name does not end in Error");
                problems.push(Problem::new(file, *line, message));
            }
        }
    }
    let gone = others.iter().filter(|name| !met.contains(**name));
    let message = |name: &&str| format!("{name} is the name of no error: shrink the list");
    problems.extend(gone.map(|name| Problem::new(file!(), 0, message(name))));
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_called_so() {
        let told = |text: &str| check_against(&Tree::of(&[("a/src/b.rs", text)]), &["Lost"]);
        let known = "impl std::error::Error for Lost {}\n";
        for right in [
            "impl Error for BadError {}",
            "impl<T: Debug> std::error::Error for BadError<T> {}",
            "impl From<BadError> for Bad {}",
            "impl From<io::Error> for Bad {}",
            "// impl Error for Bad {}",
        ] {
            assert_eq!(told(&format!("{known}{right}\n")), [], "{right}");
        }
        let problem = Problem::new("a/src/b.rs", 2, "Bad is an error, and its name does not end in Error");
        for wrong in [
            "impl Error for Bad {}",
            "impl<T> core::error::Error for Bad<T> {}",
            "mod a { impl Error for Bad {} }",
        ] {
            assert_eq!(told(&format!("{known}{wrong}\n")), std::slice::from_ref(&problem), "{wrong}");
        }
    }

    #[test]
    fn the_list_of_other_names_shrinks() {
        let problems =
            check_against(&Tree::of(&[("a/src/b.rs", "impl Error for Broken {}\n")]), &["Broken", "Lost"]);
        assert_eq!(problems, [Problem::new(file!(), 0, "Lost is the name of no error: shrink the list")]);
    }
}
