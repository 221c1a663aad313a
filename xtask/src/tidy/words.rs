//! The words and the width of comments and documents.
//!
//! A sentence names its actor by type or role, because a reader with another first language cannot
//! guess which thread a pronoun stands for. The check refuses the pronouns in `REFUSED`, and the
//! clauses of `clauses.rs`. Code is no prose, so the check leaves out code spans and the code of
//! fenced blocks.
//!
//! `tidy.rs` calls `check`.

use super::clauses::{self, Clauses};
use super::{Problem, Tree, markdown};
use crate::tokens::{Kind, tokens};

/// The words that hide the actor of a sentence.
const REFUSED: [&str; 10] =
    ["who", "whom", "whoever", "whose", "nobody", "somebody", "anybody", "he", "him", "his"];

/// The largest number of columns of a line that holds a comment.
const WIDTH: usize = 100;

/// The documents of the root that the check reads beside those under `docs/`.
const DOCUMENTS: [&str; 5] =
    ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "GLOSSARY.md", "README.md"];

/// Reports each refused word and clause, and each line of comment that is too wide.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (file, source) in tree.ending_in(".rs") {
        in_comments(file, source, &mut problems);
    }
    for (file, text) in tree.ending_in(".md") {
        if file.starts_with("docs/") || DOCUMENTS.contains(&file) {
            in_document(file, text, &mut problems);
        }
    }
    problems
}

fn in_comments(file: &str, source: &str, problems: &mut Vec<Problem>) {
    let mut paragraph = Paragraph::default();
    let (mut fenced, mut documented) = (false, false);
    for (index, (line, whole)) in lines(source).iter().zip(source.lines()).enumerate() {
        if line.comment.is_empty() || line.has_code {
            (paragraph, fenced) = (Paragraph::default(), false);
        }
        let documents = line.comment.starts_with("///");
        let begins = documents && !std::mem::replace(&mut documented, documents);
        documented = documents;
        let text = line.comment.trim_start_matches(['/', '!', '*']).trim();
        if begins && clauses::holds_for(file) && clauses::is_causative(text) {
            let message = "\"Has .. do\": begin with what it does: Prevents, Returns, Wakes";
            problems.push(Problem::new(file, index + 1, message));
        }
        let fence = text.starts_with("```") || text.starts_with("~~~");
        if fence {
            (paragraph, fenced) = (Paragraph::default(), !fenced);
        } else if fenced {
            // The code of an example is not prose, but its comments are.
            let comment = text.split_once("//").map_or("", |(_, comment)| comment);
            Paragraph::default().read(file, index + 1, comment, problems);
        } else {
            paragraph.read(file, index + 1, text, problems);
        }
        let columns = whole.chars().count();
        if columns > WIDTH && !line.comment.is_empty() && !cannot_be_cut(text) {
            let message = format!("a comment's line of {columns} columns; {WIDTH} at most");
            problems.push(Problem::new(file, index + 1, message));
        }
    }
}

/// A line of source, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct SourceLine<'a> {
    has_code: bool,
    /// The comment of the line with its mark, or its part of one; empty where there is none.
    comment: &'a str,
}

/// Every line of a file, its code told apart from its comment.
fn lines(source: &str) -> Vec<SourceLine<'_>> {
    let mut lines = vec![SourceLine::default(); source.lines().count() + 1];
    let mut at = 0;
    for token in tokens(source) {
        for (index, text) in token.text.split('\n').enumerate() {
            at += index.min(1);
            match token.kind {
                Kind::White => {}
                Kind::Comment => lines[at].comment = text,
                _ => lines[at].has_code = true,
            }
        }
    }
    lines
}

/// A row of a table, a link definition, a word that is too long by itself.
fn cannot_be_cut(text: &str) -> bool {
    let text = text.strip_prefix("- ").unwrap_or(text);
    let definition = text.starts_with('[') && text.contains("]: ");
    text.starts_with('|') || definition || !text.contains(' ')
}

fn in_document(file: &str, text: &str, problems: &mut Vec<Problem>) {
    let mut paragraph = Paragraph::default();
    for (line, text) in markdown::prose(text) {
        paragraph.read(file, line, text, problems);
    }
}

/// Reads a paragraph line by line, because a code span may reach from one line to the next.
#[derive(Default)]
struct Paragraph {
    in_code_span: bool,
    clauses: Clauses,
}

impl Paragraph {
    fn read(&mut self, file: &str, line: usize, text: &str, problems: &mut Vec<Problem>) {
        if text.trim().is_empty() {
            *self = Paragraph::default();
        }
        for (index, part) in text.split('`').enumerate() {
            if index > 0 {
                self.in_code_span = !self.in_code_span;
                self.clauses.end();
            }
            if !self.in_code_span {
                self.prose(file, line, part, problems);
            }
        }
    }

    fn prose(&mut self, file: &str, line: usize, text: &str, problems: &mut Vec<Problem>) {
        for piece in text.split_whitespace() {
            if piece.starts_with(|c: char| !c.is_alphanumeric()) {
                self.clauses.end();
            }
            let words = piece.split(|c: char| !(c.is_alphanumeric() || c == '_'));
            for word in words.filter(|word| !word.is_empty()) {
                if REFUSED.contains(&word.to_lowercase().as_str()) {
                    let message = format!("\"{word}\" hides the actor: name it by type or role");
                    problems.push(Problem::new(file, line, message));
                }
                let clause = self.clauses.next(word);
                problems.extend(
                    clause
                        .filter(|_| clauses::holds_for(file))
                        .map(|message| Problem::new(file, line, message)),
                );
            }
            if piece.ends_with(|c: char| !c.is_alphanumeric()) {
                self.clauses.end();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::messages;
    use super::*;

    fn found(file: &str, text: &str) -> Vec<String> {
        messages(&check(&Tree::of(&[(file, text)])))
    }

    #[test]
    fn a_comment_is_told_from_code_and_from_literals() {
        for (source, has_code, comment) in [
            ("a(); // b", true, "// b"),
            (r#"a("// \" b"); // c"#, true, "// c"),
            ("a(/* b */ c); // d", true, "// d"),
            ("    //! b", false, "//! b"),
            ("for r in a {", true, ""),
        ] {
            assert_eq!(lines(source)[0], SourceLine { has_code, comment }, "{source}");
        }
        let over_lines = lines("a(\"b\n// c\n\"); // d\n/* e\nf /* */\n*/ g\n\n");
        let found: Vec<_> = over_lines.iter().map(|line| (line.has_code, line.comment)).collect();
        let code = |comment| (true, comment);
        let none = |comment| (false, comment);
        let expected =
            [code(""), code(""), code("// d"), none("/* e"), none("f /* */"), code("*/"), none(""), none("")];
        assert_eq!(found, expected);
    }

    #[test]
    fn each_refused_word_is_found_in_comments() {
        for word in REFUSED {
            for line in ["// {} waits", "/// {}'s turn", "//! so ({}) waits", "a(); // {}"] {
                let problems = found("a/src/lib.rs", &line.replace("{}", word));
                assert_eq!(problems.len(), 1, "{line}: {problems:?}");
                let place = format!("a/src/lib.rs:1: \"{word}\" hides the actor");
                assert!(problems[0].starts_with(&place), "{problems:?}");
            }
        }
        assert_eq!(found("a.rs", "/* one\nHe waits.\n*/").len(), 1);
    }

    #[test]
    fn code_is_not_read_for_words() {
        for source in [
            "let he = his(\"who // whom\");",
            "// the field `whom` of the_one_who_waits",
            "// the type `a\n// whom` waits",
            "/// ```\n/// let he = 1;\n/// ```\n/// The thread waits.",
            "// others, there, whole, this, history",
        ] {
            assert_eq!(found("a.rs", source), [""; 0], "{source}");
        }
    }

    #[test]
    fn the_comments_of_an_example_and_the_text_after_it_are_read() {
        assert_eq!(found("a.rs", "/// ```\n/// f(); // he waits\n/// ```").len(), 1);
        assert_eq!(found("a.rs", "/// ```\n/// f();\n/// ```\n/// He waits.").len(), 1);
        assert_eq!(found("a.rs", "// A lone ` mark.\n\n// He waits.").len(), 1);
    }

    #[test]
    fn documents_are_read_outside_code() {
        for file in ["README.md", "docs/guide/threads.md"] {
            assert_eq!(found(file, "a\n\n- Nobody waits for `whom`.\n```\nhe\n```\n").len(), 1);
        }
        assert_eq!(found("crates/a/notes.md", "he").len(), 0);
    }

    #[test]
    fn a_clause_is_found_over_the_end_of_a_line() {
        assert_eq!(found("a.rs", "// wakes those\n// that wait").len(), 1);
        assert_eq!(found("docs/a.md", "wakes the one\nthat waits\n").len(), 1);
        for source in ["// those\n\n// that", "// those: that", "// those `a` that", "// those (that)"] {
            assert_eq!(found("a.rs", source), [""; 0], "{source}");
        }
        assert_eq!(found("programs/src/a.rs", "// those that wait"), [""; 0]);
    }

    #[test]
    fn only_the_first_line_of_a_documentation_is_asked_for_its_verb() {
        assert_eq!(found("a.rs", "/// Has the worker sleep.\nfn f() {}").len(), 1);
        assert_eq!(found("a.rs", "/// A flag.\n/// Has no default.\nfn f() {}").len(), 0);
        assert_eq!(found("a.rs", "// Has the worker sleep.").len(), 0);
    }

    #[test]
    fn a_wide_comment_is_found() {
        let words = "word ".repeat(20); // 100 columns
        for line in [format!("// {words}"), format!("    //! {words}"), format!("a(); // {words}")] {
            let problems = found("a.rs", &line);
            assert_eq!(problems.len(), 1, "{line}: {problems:?}");
            assert!(problems[0].contains("columns; 100 at most"), "{problems:?}");
        }
        assert_eq!(found("a.rs", &format!("let a = \"{words}\";")).len(), 0);
        assert_eq!(found("a.rs", &format!("// {}", &words[..97])).len(), 0);
        assert_eq!(found("a.rs", &format!("// {}", "é ".repeat(48))).len(), 0);
    }

    #[test]
    fn a_row_a_link_definition_and_a_long_word_may_be_wide() {
        let url = format!("https://example.org/{}", "a".repeat(100));
        let row = format!("//! | {} |", "word ".repeat(20));
        for line in [row, format!("// {url}"), format!("/// [a b]: {url}"), format!("// - {url}")] {
            assert_eq!(found("a.rs", &line).len(), 0, "{line}");
        }
        assert_eq!(found("a.rs", &format!("// see {url}")).len(), 1);
    }
}
