//! A check of `tidy`: a function of a program has at most 70 lines. `tidy.rs` calls `check`.
//!
//! The functions of `apps`, `figures` and `xtask` count, from the line of `fn` to the closing
//! brace. The crates are left out, because there a protocol may be one long `match`.

use super::syntax::{Declaration, Declared};
use super::{Problem, Tree};

/// The most lines of a function.
const LINES_MAX: usize = 70;

/// Reports each function that is too long.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let counts = |file: &str| {
        file.contains("/src/")
            && ["apps/", "figures/src/", "xtask/"].iter().any(|directory| file.starts_with(directory))
    };
    let mut problems = Vec::new();
    for (file, syntax) in tree.syntax().iter().filter(|(file, _)| counts(file)) {
        for Declaration { kind, name, line, .. } in &syntax.declarations {
            let Declared::Function { end } = kind else { continue };
            let lines = end + 1 - line;
            if lines > LINES_MAX {
                problems.push(Problem::new(
                    file,
                    *line,
                    format!("{name} has {lines} lines, at most {LINES_MAX}"),
                ));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::super::messages;
    use super::*;

    /// A function with this number of lines.
    fn of(head: &str, lines: usize) -> String {
        format!("{head} {{\n{}}}\n", "    call();\n".repeat(lines - 2))
    }

    #[test]
    fn a_long_function_is_reported_with_its_lines() {
        let text = format!("{}{}", of("fn a()", LINES_MAX), of("pub(super) async fn b<T>()", LINES_MAX + 1));
        let short = "trait A {\n    fn a();\n}\nfn b() {}\n";
        let tree = Tree::of(&[
            ("apps/a/src/b.rs", text.as_str()),
            ("apps/a/src/c.rs", short),
            ("crates/a/src/b.rs", text.as_str()),
        ]);
        assert_eq!(messages(&check(&tree)), ["apps/a/src/b.rs:71: b has 71 lines, at most 70"]);
    }
}
