//! A check of `tidy`: a function of a program has at most 70 lines. `tidy.rs` calls `check`.
//!
//! The functions of `apps`, `figures` and `xtask` count, from the line of `fn` to the closing
//! brace. The crates are left out, because there a protocol may be one long `match`.

use super::{Problem, Tree};

/// The most lines of a function.
const LINES_MAX: usize = 70;

/// Reports each function that is too long.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let counts = |file: &str| {
        file.contains("/src/")
            && ["apps/", "figures/src/", "xtask/"].iter().any(|directory| file.starts_with(directory))
    };
    tree.ending_in(".rs")
        .filter(|(file, _)| counts(file))
        .flat_map(|(file, source)| {
            long_functions(source).into_iter().map(move |(line, name, lines)| {
                Problem::new(file, line, format!("{name} has {lines} lines, at most {LINES_MAX}"))
            })
        })
        .collect()
}

/// The line, the name and the number of lines of each function that is too long. rustfmt puts the
/// closing brace of a function in the column of its first line.
fn long_functions(source: &str) -> Vec<(usize, &str, usize)> {
    let lines: Vec<&str> = source.lines().collect();
    let mut long = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        // A function on one line, and one without a body in a trait, has no brace of its own.
        let Some(name) = function(code).filter(|_| !code.ends_with(';') && !code.ends_with('}')) else {
            continue;
        };
        let closing = format!("{}}}", &line[..line.len() - code.len()]);
        let count = lines[at..].iter().position(|line| *line == closing).map_or(0, |behind| behind + 1);
        if count > LINES_MAX {
            long.push((at + 1, name, count));
        }
    }
    long
}

/// The name of the function that a line of code begins.
fn function(code: &str) -> Option<&str> {
    let mut rest = code;
    loop {
        if let Some(name) = rest.strip_prefix("fn ") {
            return name.split(['(', '<']).next();
        }
        let (word, behind) = rest.split_once(' ')?;
        let is_modifier = matches!(word, "pub" | "const" | "async" | "unsafe" | "extern" | "\"C\"");
        if !is_modifier && !word.starts_with("pub(") {
            return None;
        }
        rest = behind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function with this number of lines.
    fn of(head: &str, lines: usize) -> String {
        format!("{head} {{\n{}}}\n", "    call();\n".repeat(lines - 2))
    }

    #[test]
    fn a_long_function_is_reported_with_its_lines() {
        let text = format!("{}{}", of("fn a()", LINES_MAX), of("pub(super) async fn b<T>()", LINES_MAX + 1));
        assert_eq!(long_functions(&text), [(LINES_MAX + 1, "b", LINES_MAX + 1)]);
        assert_eq!(long_functions("trait A {\n    fn a();\n}\nfn b() {}\n"), []);
        let tree = Tree::of(&[("apps/a/src/b.rs", text.as_str()), ("crates/a/src/b.rs", text.as_str())]);
        assert_eq!(check(&tree).len(), 1);
    }
}
