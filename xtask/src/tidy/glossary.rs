//! A check of `tidy`: the terms of `GLOSSARY.md` are names in the code. `tidy.rs` calls `check`.
//!
//! Code in the first column is an item or a `#[doc(alias)]`, and code in the second column is an
//! item. The check finds that a name is gone, but not that it means another thing.

use super::markdown::{code_spans, table_with};
use super::{Problem, Tree};
use std::collections::BTreeSet;

const FILE: &str = "GLOSSARY.md";

/// The names that a search of the crates finds.
#[derive(Default)]
struct Index<'a> {
    /// Items, variants and fields.
    items: BTreeSet<&'a str>,
    /// `#[doc(alias = "..")]`
    aliases: BTreeSet<&'a str>,
}

impl<'a> Index<'a> {
    fn of(tree: &'a Tree) -> Index<'a> {
        let mut index = Index::default();
        for (_, syntax) in tree.syntax().iter().filter(|(file, _)| file.starts_with("crates/")) {
            index.items.extend(syntax.declarations.iter().map(|declaration| declaration.name.as_str()));
            index.aliases.extend(syntax.aliases.iter().map(String::as_str));
        }
        index
    }

    /// A path is found when each of its parts is; the crate's own name needs no declaration.
    fn has_item(&self, path: &str) -> bool {
        let parts = path.trim_end_matches("()").trim_end_matches('!').split("::");
        let mut parts = parts.map(|part| part.split(['<', '(']).next().unwrap_or("")).peekable();
        parts.next_if(|first| first.starts_with("selvedge"));
        parts.all(|part| self.items.contains(part))
    }
}

/// In each row, code in the first column is an alias or an item, code in the second an item.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let Some(table) = tree.text(FILE).and_then(|text| table_with(text, &["Paper's term", "Here"])) else {
        return vec![Problem::new(FILE, 0, "no table with the columns Paper's term, Here")];
    };
    let index = Index::of(tree);
    let mut problems = Vec::new();
    for (line, cells) in table.rows {
        for term in code_spans(cells[0]).filter(|term| !index.aliases.contains(term) && !index.has_item(term))
        {
            problems.push(Problem::new(FILE, line, format!("searching the docs for {term} finds nothing")));
        }
        let here = cells.get(1).copied().unwrap_or("");
        if code_spans(here).next().is_none() {
            problems.push(Problem::new(FILE, line, "the second column names no item"));
        }
        for name in code_spans(here).filter(|name| !index.has_item(name)) {
            problems.push(Problem::new(FILE, line, format!("{name} is not declared in crates/")));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::super::messages;
    use super::*;

    const SOURCE: &str = "#[doc(alias = \"sys_fork\", alias = \"fork\")]\npub fn spawn() {}\n\
        pub enum Trace {\n    /// Y.\n    Yield(Thread),\n}\nimpl Thread {\n    pub fn step(self) -> Trace {}\n}\n\
        pub struct Thread;\n// pub fn commented() {}\n";

    fn found(row: &str) -> String {
        let table = format!("| Paper's term | Here | Note |\n|---|---|---|\n{row}\n");
        messages(&check(&Tree::of(&[(FILE, &table), ("crates/a/src/lib.rs", SOURCE)]))).join("\n")
    }

    #[test]
    fn items_variants_methods_and_aliases_are_found() {
        assert_eq!(found("| `sys_fork`, a spawn | `spawn`, `Trace::Yield` | |"), "");
        assert_eq!(found("| step | `selvedge_core::Thread::step` | |"), "");
    }

    #[test]
    fn a_term_that_leads_nowhere_is_found() {
        assert!(found("| `sys_join` | `spawn` | |").contains("sys_join finds nothing"));
        assert!(found("| a | `commented` | |").contains("commented is not declared"));
        assert!(found("| a | `Trace::Sleep` | |").contains("not declared"));
        assert!(found("| a | plain | |").contains("names no item"));
    }

    #[test]
    fn an_alias_is_no_item() {
        assert!(found("| a | `sys_fork` | |").contains("not declared"));
    }
}
