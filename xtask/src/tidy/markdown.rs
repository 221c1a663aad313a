//! As much of Markdown as the checks need: headings, tables and links outside of code. The checks
//! of `tidy` call it, and `publish/guide.rs` and `publish/html.rs` take its links and anchors.
//!
//! Fenced code is no prose: every function reads through `prose`, which leaves it out. The anchors
//! are formed as GitHub forms them, and the site's pages use the same ones.

use std::collections::BTreeMap;

/// The lines outside fenced code blocks, numbered from 1.
pub(super) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence: Option<&str> = None;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let start = line.trim_start();
        let marker = ["```", "~~~"].into_iter().find(|marker| start.starts_with(marker));
        match (fence, marker) {
            (None, Some(marker)) => fence = Some(marker),
            (Some(open), Some(marker)) if open == marker => fence = None,
            (None, None) => return Some((index + 1, line)),
            _ => {}
        }
        None
    })
}

/// A table: the cells of its header, and those of each row with the row's line number.
#[derive(Debug, Default)]
pub(super) struct Table<'a> {
    pub(super) header: Vec<&'a str>,
    pub(super) rows: Vec<(usize, Vec<&'a str>)>,
}

/// Every table of a file, in order.
pub(super) fn tables(text: &str) -> Vec<Table<'_>> {
    let mut tables: Vec<Table<'_>> = Vec::new();
    let mut last_line = 0;
    for (line, content) in prose(text) {
        let Some(inner) = content.trim().strip_prefix('|') else { continue };
        let cells: Vec<&str> = inner.strip_suffix('|').unwrap_or(inner).split('|').map(str::trim).collect();
        let rule = cells.iter().all(|cell| !cell.is_empty() && cell.chars().all(|c| "-: ".contains(c)));
        match tables.last_mut() {
            Some(table) if last_line + 1 == line => {
                if !rule {
                    table.rows.push((line, cells));
                }
            }
            _ => tables.push(Table { header: cells, rows: Vec::new() }),
        }
        last_line = line;
    }
    tables
}

/// The table with a header that starts with these cells.
pub(super) fn table_with<'a>(text: &'a str, header: &[&str]) -> Option<Table<'a>> {
    tables(text).into_iter().find(|table| table.header.starts_with(header))
}

/// The text of every `code` span in a cell.
pub(super) fn code_spans(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// The names that `#name` links to a file may use: one for each heading, formed as GitHub forms
/// them.
pub(crate) fn anchors(text: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = Vec::new();
    for (_, line) in prose(text) {
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let slug: String = heading
            .trim()
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric() || "-_ ".contains(*c))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        let count = seen.entry(slug.clone()).and_modify(|count| *count += 1).or_insert(0);
        anchors.push(if *count == 0 { slug } else { format!("{slug}-{count}") });
    }
    anchors
}

/// The targets of every link, image and link definition, with their lines.
pub(crate) fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (line, content) in prose(text) {
        let content = without_code(content);
        let definition = content.trim_start().strip_prefix('[').and_then(|rest| rest.split_once("]: "));
        if let Some((_, target)) = definition {
            links.push((line, first_word(target)));
        }
        for (at, _) in content.match_indices("](") {
            let target = &content[at + 2..];
            if let Some(end) = target.find(')') {
                links.push((line, first_word(&target[..end])));
            }
        }
    }
    links
}

/// Drops a link's title.
fn first_word(target: &str) -> String {
    target.split_whitespace().next().unwrap_or("").trim_matches(['<', '>']).to_string()
}

/// The line without its `code` spans, because text in them is no link.
fn without_code(line: &str) -> String {
    // The text of a link may itself be code: only the span goes, the brackets around it stay.
    line.split('`').step_by(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_not_prose() {
        let text = "one\n```rust\n[a](b)\n```\ntwo `[c](d)` [`e`](f)\n";
        assert_eq!(prose(text).map(|(line, _)| line).collect::<Vec<_>>(), [1, 5]);
        assert_eq!(links(text), [(5, "f".to_string())]);
    }

    #[test]
    fn links_definitions_and_titles() {
        let text = "[a](x.md#y \"title\") ![b](c.svg)\n[d]: e.md\n";
        let targets: Vec<String> = links(text).into_iter().map(|(_, target)| target).collect();
        assert_eq!(targets, ["x.md#y", "c.svg", "e.md"]);
    }

    #[test]
    fn tables_are_told_apart() {
        let text = "| A | B |\n|---|:-:|\n| 1 | 2 |\n\n| C |\n|---|\n| 3 |\n";
        assert_eq!(tables(text).len(), 2);
        assert_eq!(table_with(text, &["C"]).unwrap().rows, [(7, vec!["3"])]);
        assert!(table_with(text, &["D"]).is_none());
    }

    #[test]
    fn anchors_as_github_forms_them() {
        let text = "# The `Trace`, seen twice\n## Code map\n## Code map\n#no\n";
        assert_eq!(anchors(text), ["the-trace-seen-twice", "code-map", "code-map-1"]);
    }
}
