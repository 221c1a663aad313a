//! A check of `tidy`: the layer table of `ARCHITECTURE.md` against the real dependencies of the
//! crates, by `workspace.rs`. `tidy.rs` calls `check`.
//!
//! A package depends only on packages of lower layers, and dependencies of tests count. Only
//! examples in documentation may import from the facade above. A new crate needs a row in the
//! table. The file is a map, so its size has a limit.

use super::markdown::{code_spans, table_with};
use super::{Problem, Tree};
use crate::workspace::{FACADE, Package};
use std::collections::BTreeMap;

const FILE: &str = "ARCHITECTURE.md";

/// The largest size of the map. What describes one crate belongs at the top of its `lib.rs`.
const BYTES_MAX: usize = 20_000;

/// Every package has one row with its directory, and depends only on packages of lower layers;
/// tests included. Only the examples in the documentation of a crate import from the facade above
/// it.
pub(super) fn check(tree: &Tree, packages: &[Package]) -> Vec<Problem> {
    let table = tree.text(FILE).and_then(|text| table_with(text, &["Layer", "Crate", "Directory"]));
    let Some(table) = table else {
        return vec![Problem::new(FILE, 0, "no table with the columns Layer, Crate, Directory")];
    };
    let mut problems = Vec::new();
    let bytes = tree.text(FILE).map_or(0, String::len);
    if bytes > BYTES_MAX {
        problems.push(Problem::new(FILE, 0, format!("{bytes} bytes; a map has {BYTES_MAX} at most")));
    }
    let mut layers: BTreeMap<&str, (u32, usize)> = BTreeMap::new();
    for (line, cells) in &table.rows {
        let number = cells[0].parse::<u32>();
        let name = cells.get(1).and_then(|cell| code_spans(cell).next());
        let (Ok(layer), Some(name)) = (number, name) else {
            problems.push(Problem::new(FILE, *line, "a row is: number, `crate`, `directory`, .."));
            continue;
        };
        if layers.insert(name, (layer, *line)).is_some() {
            problems.push(Problem::new(FILE, *line, format!("{name} has two rows")));
        }
        let Some(package) = packages.iter().find(|package| package.name == name) else {
            problems.push(Problem::new(FILE, *line, format!("{name} is no crate of the workspace")));
            continue;
        };
        let dir = cells.get(2).and_then(|cell| code_spans(cell).next());
        if dir != Some(&package.dir) {
            problems.push(Problem::new(FILE, *line, format!("{name} lies in {}", package.dir)));
        }
    }
    for package in packages {
        let Some(&(layer, line)) = layers.get(package.name.as_str()) else {
            problems.push(Problem::new(FILE, 0, format!("{} has no row in the layer table", package.name)));
            continue;
        };
        let facade = layers.get(FACADE).map(|(layer, _)| *layer);
        if facade.is_some_and(|facade| layer < facade) {
            problems.extend(uses_of_the_facade(tree, &package.dir));
        }
        for dependency in &package.dependencies {
            let Some(&(below, _)) = layers.get(dependency.as_str()) else { continue };
            // A dev-dependency on oneself only switches features on.
            if below >= layer && *dependency != package.name {
                let message = format!(
                    "{} (layer {layer}) depends on {dependency} (layer {below}): arrows only go down",
                    package.name
                );
                problems.push(Problem::new(FILE, line, message));
            }
        }
    }
    problems
}

/// Code below a directory that names the facade. Comments may.
fn uses_of_the_facade<'a>(tree: &'a Tree, dir: &str) -> impl Iterator<Item = Problem> + use<'a> {
    let below = format!("{dir}/");
    let name = format!("{FACADE}::");
    let files = tree.files.iter().filter(move |(file, _)| file.starts_with(&below) && file.ends_with(".rs"));
    files.flat_map(move |(file, text)| {
        let name = name.clone();
        let code = text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
        code.filter(move |(_, line)| {
            let mut found = line.match_indices(&name);
            found.any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || "_\"".contains(c)))
        })
        .map(|(index, _)| Problem::new(file, index + 1, "only examples in documentation use the facade"))
    })
}

#[cfg(test)]
mod tests {
    use super::super::messages;
    use super::*;

    const TABLE: &str =
        "| Layer | Crate | Directory |\n|---|---|---|\n| 1 | `top` | `top` |\n| 0 | `base` | `base` |\n";

    fn package(name: &str, dependencies: &[&str]) -> Package {
        let dependencies = dependencies.iter().map(ToString::to_string).collect();
        Package { dependencies, ..Package::sample(name) }
    }

    fn found(table: &str, packages: &[Package]) -> String {
        messages(&check(&Tree::of(&[(FILE, table)]), packages)).join("\n")
    }

    #[test]
    fn down_is_fine() {
        assert_eq!(found(TABLE, &[package("top", &["base", "serde"]), package("base", &[])]), "");
    }

    #[test]
    fn up_is_not() {
        let found = found(TABLE, &[package("top", &[]), package("base", &["top"])]);
        assert_eq!(found, "ARCHITECTURE.md:4: base (layer 0) depends on top (layer 1): arrows only go down");
    }

    #[test]
    fn beside_is_not() {
        let table = TABLE.replace("| 0 |", "| 1 |");
        assert!(found(&table, &[package("top", &["base"]), package("base", &[])]).contains("only go down"));
    }

    #[test]
    fn only_documentation_uses_the_facade() {
        let table = TABLE.replace("`top`", "`selvedge`");
        let packages = [package("selvedge", &[]), package("base", &[])];
        let found = |text: &str| {
            let tree = Tree::of(&[(FILE, &table), ("base/src/a.rs", text)]);
            messages(&check(&tree, &packages)).join("\n")
        };
        assert_eq!(found("/// use selvedge::run;\nuse selvedge_core::run;\n"), "");
        assert!(found("\nuse selvedge::run;\n").starts_with("base/src/a.rs:2: only examples"));
    }

    #[test]
    fn both_directions_of_the_table() {
        let packages = [package("top", &[]), package("new", &[])];
        let found = found(TABLE, &packages);
        assert!(found.contains("base is no crate of the workspace"), "{found}");
        assert!(found.contains("new has no row"), "{found}");
    }

    #[test]
    fn the_directory_is_checked() {
        let table = TABLE.replace("| `base` |\n", "| `crates/base` |\n");
        assert!(found(&table, &[package("top", &[]), package("base", &[])]).contains("base lies in base"));
    }

    #[test]
    fn a_map_that_has_grown_is_a_problem() {
        let packages = [package("top", &[]), package("base", &[])];
        let text = |bytes: usize| format!("{TABLE}\n{}", "a".repeat(bytes - TABLE.len() - 1));
        assert_eq!(found(&text(BYTES_MAX), &packages), "");
        assert!(found(&text(BYTES_MAX + 1), &packages).contains("20001 bytes; a map has 20000 at most"));
    }

    #[test]
    fn a_missing_table_is_a_problem() {
        assert!(found("# Architecture\n", &[]).contains("no table"));
    }
}
