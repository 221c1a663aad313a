//! A check of `tidy`, and a file that it makes: the headings `# Paper` in the documentation of the
//! code. Every key is listed in `docs/PAPERS.md`. `docs/CONCORDANCE.md` tells where each section of
//! each paper is implemented. `tidy.rs` calls `check`, and `concordance` for `tidy --write`.
//!
//! Only text under such a heading counts. A reference is a key and a place in brackets, and a key
//! without a place is a problem.

use super::markdown::{code_spans, table_with};
use super::{Problem, Tree};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

const PAPERS: &str = "docs/PAPERS.md";

/// The generated file.
pub(super) const CONCORDANCE: &str = "docs/CONCORDANCE.md";

const HEADING: &str = "# Paper";

/// One reference from an item to a place in a paper.
#[derive(Debug, PartialEq, Eq)]
struct Citation {
    key: String,
    /// `§3.1, Figure 13`
    section: String,
    item: String,
    file: String,
    line: usize,
}

/// The text under one `# Paper` heading.
struct PaperHeading {
    item: String,
    file: String,
    line: usize,
    text: String,
}

/// Keys and titles, in the order of docs/PAPERS.md.
fn keys(tree: &Tree) -> Vec<(&str, &str)> {
    let Some(table) = tree.text(PAPERS).and_then(|text| table_with(text, &["Key", "Title"])) else {
        return Vec::new();
    };
    let brackets = ['[', ']', '`', '*', '\\'];
    table
        .rows
        .iter()
        .filter_map(|(_, cells)| Some((cells.first()?.trim_matches(brackets), *cells.get(1)?)))
        .collect()
}

fn headings(tree: &Tree) -> Vec<PaperHeading> {
    let mut headings = Vec::new();
    // xtask's own sources hold the headings of its tests.
    for (file, syntax) in tree.syntax().iter().filter(|(file, _)| !file.starts_with("xtask/")) {
        for doc in &syntax.docs {
            let text: Vec<&str> = doc.lines.iter().map(|(_, line)| line.as_str()).collect();
            let Some(at) = text.iter().position(|line| *line == HEADING) else { continue };
            let section = &text[at + 1..];
            let end = section.iter().position(|line| line.starts_with('#')).unwrap_or(section.len());
            headings.push(PaperHeading {
                item: doc.item.clone().unwrap_or_else(|| module_name(file)),
                file: file.to_string(),
                line: doc.lines[at].0,
                text: section[..end].join(" ").replace('\\', ""),
            });
        }
    }
    headings
}

/// `crates/core/src/gate.rs` is the module `core::gate`; the file that opens a directory is named
/// by the directory.
fn module_name(file: &str) -> String {
    let parts: Vec<&str> = file.trim_end_matches(".rs").split('/').filter(|part| *part != "crates").collect();
    let named = parts.iter().filter(|part| !["src", "lib", "main", "mod"].contains(*part));
    named.copied().collect::<Vec<_>>().join("::")
}

/// Splits the text of a heading at the keys it names.
fn citations(heading: &PaperHeading, keys: &[(&str, &str)]) -> Vec<Citation> {
    let text = &heading.text;
    let mut places: Vec<(usize, &str)> = Vec::new();
    for (key, _) in keys {
        let is_part = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        places.extend(text.match_indices(key).filter_map(|(at, _)| {
            let whole =
                !is_part(text[..at].chars().next_back()) && !is_part(text[at + key.len()..].chars().next());
            whole.then_some((at, *key))
        }));
    }
    places.sort_unstable();
    let ends = places.iter().skip(1).map(|(at, _)| *at).chain([text.len()]);
    places
        .iter()
        .zip(ends)
        .map(|((at, key), end)| Citation {
            key: key.to_string(),
            section: section(&text[..end], at + key.len()),
            item: heading.item.clone(),
            file: heading.file.clone(),
            line: heading.line,
        })
        .collect()
}

/// The place that a reference names after its key, which ends at `at`: the rest of its brackets. If
/// it has no brackets, the text up to the end of the reference in its sentence.
fn section(text: &str, at: usize) -> String {
    let rest = &text[at..];
    let bracketed = rest.starts_with([' ', ',']) && text[..at].rfind('[') > text[..at].rfind(']');
    if let Some((inner, _)) = rest.split_once(']')
        && bracketed
    {
        return inner.trim_matches([',', ' ']).to_string();
    }
    let text = rest.trim_start_matches([']', ',', ' ', '*', '`']);
    let end = [". ", "; ", ": ", " (", "|", "`", "["]
        .iter()
        .filter_map(|stop| text.find(stop))
        .min()
        .unwrap_or(text.len());
    let text = text[..end].trim().trim_end_matches(['.', ',', ';', ':', ' ']);
    text.strip_suffix(" and").unwrap_or(text).trim_end_matches(',').to_string()
}

/// Bracketed words that look like a key and are none.
fn unknown_keys<'a>(text: &'a str, keys: &[(&str, &str)]) -> Vec<&'a str> {
    text.match_indices('[')
        .filter_map(|(at, _)| {
            let inner = &text[at + 1..];
            let (inner, after) = inner.split_once(']')?;
            let word = inner.split([' ', ',']).next()?;
            let looks = word.starts_with(|c: char| c.is_ascii_uppercase())
                && word.chars().all(|c| c.is_ascii_alphanumeric())
                && !after.starts_with(['(', '[']);
            (looks && !keys.iter().any(|(key, _)| *key == word)).then_some(word)
        })
        .collect()
}

/// Keys exist, every heading cites a place, and the concordance is current.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let keys = keys(tree);
    if keys.is_empty() {
        return vec![Problem::new(PAPERS, 0, "no table with the columns Key, Title")];
    }
    let mut problems = Vec::new();
    let mut cited: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    let headings = headings(tree);
    for heading in &headings {
        let problem = |message: String| Problem::new(&heading.file, heading.line, message);
        for word in unknown_keys(&heading.text, &keys) {
            problems.push(problem(format!("[{word}] is not a key of {PAPERS}")));
        }
        let citations = citations(heading, &keys);
        for citation in &citations {
            cited.entry(citation.key.clone()).or_default().extend(part(&heading.file));
        }
        if citations.is_empty() {
            problems.push(problem(format!("{HEADING} names no paper")));
        }
        for citation in citations.iter().filter(|citation| citation.section.is_empty()) {
            problems.push(problem(format!("[{}] without a section, figure or listing", citation.key)));
        }
    }
    problems.extend(places(tree, &cited));
    if tree.text(CONCORDANCE) != Some(&concordance(tree)) {
        problems.push(Problem::new(CONCORDANCE, 0, "is stale: run `cargo xtask tidy --write`"));
    }
    problems
}

/// The part of the house that a file belongs to, as PAPERS.md names it: `core`, `apps/httpd`.
/// Examples and figures are no such part.
fn part(file: &str) -> Option<&str> {
    match file.split('/').collect::<Vec<_>>()[..] {
        ["crates", name, ..] => Some(name),
        ["apps", name, ..] => Some(&file[.."apps/".len() + name.len()]),
        _ => None,
    }
}

/// The column Where of PAPERS.md names the parts that cite each paper, if it has that column.
fn places(tree: &Tree, cited: &BTreeMap<String, BTreeSet<&str>>) -> Vec<Problem> {
    let Some(table) = tree.text(PAPERS).and_then(|text| table_with(text, &["Key", "Title"])) else {
        return Vec::new();
    };
    let Some(column) = table.header.iter().position(|name| *name == "Where") else { return Vec::new() };
    let none = BTreeSet::new();
    let one = |(line, cells): (usize, Vec<&str>)| {
        let key = cells[0].trim_matches('*');
        let (said, cited) = (code_spans(cells.get(column)?).collect(), cited.get(key).unwrap_or(&none));
        let cited_in = cited.iter().map(|part| format!("`{part}`")).collect::<Vec<_>>().join(", ");
        (cited != &said).then(|| Problem::new(PAPERS, line, format!("{key} is cited in: {cited_in}")))
    };
    table.rows.into_iter().filter_map(one).collect()
}

/// The text that docs/CONCORDANCE.md is to have.
pub(super) fn concordance(tree: &Tree) -> String {
    let keys = keys(tree);
    let mut by_key: BTreeMap<String, Vec<Citation>> = BTreeMap::new();
    for heading in headings(tree) {
        for citation in citations(&heading, &keys) {
            by_key.entry(citation.key.clone()).or_default().push(citation);
        }
    }
    let mut text =
        "# Concordance\n\nWhere each place in the [papers](PAPERS.md) is implemented. Generated from the \
        `# Paper` headings by\n`cargo xtask tidy --write`; do not edit.\n"
            .to_string();
    for (key, title) in &keys {
        let Some(citations) = by_key.get_mut(*key) else { continue };
        citations.sort_by(|a, b| {
            natural(&a.section, &b.section).then_with(|| (&a.file, a.line).cmp(&(&b.file, b.line)))
        });
        let _ = write!(text, "\n## {key}: {title}\n\n| Place | Item | File |\n|---|---|---|\n");
        for Citation { section, item, file, .. } in citations {
            let _ = writeln!(text, "| {section} | `{item}` | [{file}](../{file}) |");
        }
    }
    text
}

/// Order in which `§3.9` comes before `§3.10`.
fn natural(a: &str, b: &str) -> Ordering {
    let parts = |text: &str| -> Vec<(u64, String)> {
        let mut parts = Vec::new();
        let mut digits = String::new();
        for c in text.chars().chain(['\0']) {
            if c.is_ascii_digit() {
                digits.push(c);
                continue;
            }
            if !digits.is_empty() {
                parts.push((digits.parse().unwrap_or(u64::MAX), String::new()));
                digits.clear();
            }
            parts.push((0, c.to_string()));
        }
        parts
    };
    parts(a).cmp(&parts(b))
}

#[cfg(test)]
mod tests {
    use super::super::messages;
    use super::*;

    const KEYS: &str =
        "| Key | Title | Authors |\n|---|---|---|\n| **LZ07** | Events | Li |\n| **Del** | Light | De |\n";

    fn tree(source: &str) -> Tree {
        let mut tree = Tree::of(&[(PAPERS, KEYS), ("crates/a/src/b.rs", source)]);
        let table = concordance(&tree);
        tree.files.insert(CONCORDANCE.to_string(), table);
        tree
    }

    fn found(source: &str) -> String {
        messages(&check(&tree(source))).join("\n")
    }

    #[test]
    fn a_heading_becomes_rows() {
        let source = "/// A.\n///\n/// # Paper\n/// \\[LZ07\\] §3.10, Figure 13: the loop; `[Del]` §2.1.\n///\n/// # Panics\n/// Del §9\npub fn a() {}\n\
            \nimpl A {\n    /// # Paper\n    /// [LZ07 §3.9, Figures 5 and 6]: more.\n    fn b() {}\n}\n";
        assert_eq!(found(source), "");
        let table = concordance(&tree(source));
        let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| §")).collect();
        assert_eq!(
            rows,
            [
                "| §3.9, Figures 5 and 6 | `A::b` | [crates/a/src/b.rs](../crates/a/src/b.rs) |",
                "| §3.10, Figure 13 | `a` | [crates/a/src/b.rs](../crates/a/src/b.rs) |",
                "| §2.1 | `a` | [crates/a/src/b.rs](../crates/a/src/b.rs) |",
            ]
        );
        assert!(table.contains("## LZ07: Events"));
    }

    #[test]
    fn an_unknown_key_is_found() {
        let found = found("/// # Paper\n/// [LZ08] §3; see [`Trace`], [Del] §1\npub fn a() {}\n");
        assert_eq!(found, "crates/a/src/b.rs:1: [LZ08] is not a key of docs/PAPERS.md");
    }

    #[test]
    fn a_heading_without_a_paper_or_a_place_is_found() {
        assert!(found("//! # Paper\n//! Somewhere.\n").contains("names no paper"));
        assert!(found("/// # Paper\n/// [Del].\npub fn a() {}\n").contains("without a section"));
    }

    #[test]
    fn the_parts_that_cite_a_paper_are_named() {
        let source = "/// A gate.\n///\n/// # Paper\n/// [LZ07 §3.1]: it.\npub struct Gate;\n";
        let found = |place: &str| {
            let papers = format!("| Key | Title | Where |\n|---|---|---|\n| **LZ07** | T | {place} |\n");
            let files =
                [(PAPERS, &papers[..]), ("crates/core/src/gate.rs", source), ("apps/d/src/a.rs", source)];
            messages(&check(&Tree::of(&files))).join("\n")
        };
        assert!(!found("`core`, `apps/d`").contains("cited"), "{}", found("`core`, `apps/d`"));
        assert!(found("`core`").contains("docs/PAPERS.md:3: LZ07 is cited in: `apps/d`, `core`"));
        assert!(found("`core`, `apps/d`, `io`").contains("cited in"));
    }

    #[test]
    fn a_stale_concordance_is_found() {
        let mut tree = tree("/// # Paper\n/// [Del] §1\npub fn a() {}\n");
        tree.files.insert(CONCORDANCE.to_string(), "# Concordance\n".to_string());
        assert!(messages(&check(&tree)).join("").contains("is stale"));
    }

    #[test]
    fn papers_must_be_listed() {
        assert!(messages(&check(&Tree::of(&[(PAPERS, "# Papers\n")]))).join("").contains("no table"));
    }

    #[test]
    fn modules_are_named_by_their_files() {
        assert_eq!(module_name("crates/core/src/gate.rs"), "core::gate");
        assert_eq!(module_name("crates/core/src/lib.rs"), "core");
        assert_eq!(module_name("figures/src/main.rs"), "figures");
    }
}
