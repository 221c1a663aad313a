//! A check of `tidy`: the files of a crate that import each other in a circle. `tidy.rs` calls
//! `check`; `imports.rs` says what an arrow between two files is.
//!
//! Files with a way from each to each other are one component. A component has at most three files,
//! because a reader has to read all of it before changing one. A larger one would stand in
//! `xtask/circles.txt`, with the reason why it stays one. That list only shrinks: a file that
//! enters a component is a problem, and so is a file that has left one and is still listed.

use super::imports::{Arrows, arrows};
use super::{Problem, Tree};
use crate::workspace::Package;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const LIST: &str = "xtask/circles.txt";
/// The largest component that needs no place in the list.
const MOST: usize = 3;

/// Every component of more than three files stands in the list with a reason, and the list has
/// nothing else.
pub(super) fn check(tree: &Tree, packages: &[Package]) -> Vec<Problem> {
    let listed = listed(tree.text(LIST).map_or("", String::as_str));
    let mut problems = Vec::new();
    let mut found = BTreeSet::new();
    for root in packages.iter().flat_map(|package| roots(tree, &package.dir)) {
        let arrows = arrows(tree, root);
        for component in components(&arrows).into_iter().filter(|component| component.len() > MOST) {
            let allowed = listed
                .iter()
                .map(|listed| &listed.files)
                .max_by_key(|files| files.intersection(&component).count());
            let new = component.iter().find(|file| !allowed.is_some_and(|allowed| allowed.contains(*file)));
            if let Some(new) = new {
                // Where all of it is new, the shortest of all its circles says most.
                let is_listed = allowed.is_some_and(|allowed| !allowed.is_disjoint(&component));
                let starts: Vec<&str> =
                    if is_listed { vec![new] } else { component.iter().copied().collect() };
                problems.push(problem(&arrows, &component, &starts));
            }
            found.insert(component);
        }
    }
    for Listed { line, has_reason, files } in listed {
        let left = files.iter().find(|file| !found.iter().any(|component| component.contains(*file)));
        let parts = found.iter().filter(|component| !component.is_disjoint(&files)).count();
        let message = match left {
            Some(left) => format!("{left} is in no circle of more than {MOST} files: shrink the list"),
            None if parts > 1 => format!("these files are {parts} components: shrink the list"),
            None if !has_reason => {
                "these files have no reason to import each other: give it in a comment above them".to_string()
            }
            None => continue,
        };
        problems.push(Problem::new(LIST, line, message));
    }
    problems
}

/// A component of the list.
struct Listed<'a> {
    /// The line of its first file.
    line: usize,
    /// Whether a comment among its lines says why it stays.
    has_reason: bool,
    files: BTreeSet<&'a str>,
}

/// The components of the list. Blank lines part them, and `#` begins a comment. Comments without
/// files are about the list itself.
fn listed(text: &str) -> Vec<Listed<'_>> {
    let mut listed = Vec::new();
    let lines: Vec<(usize, &str)> = (1..).zip(text.lines()).collect();
    for part in lines.split(|(_, line)| line.is_empty()) {
        let is_comment = |(_, line): &&(usize, &str)| line.starts_with('#');
        let mut files = part.iter().filter(|line| !is_comment(line)).peekable();
        if let Some(&&(line, _)) = files.peek() {
            let has_reason = part.iter().any(|line| is_comment(&line));
            listed.push(Listed { line, has_reason, files: files.map(|(_, file)| *file).collect() });
        }
    }
    listed
}

/// The files in which cargo begins to read the library and the programs of a package.
fn roots<'a>(tree: &'a Tree, dir: &str) -> impl Iterator<Item = &'a str> {
    let source = format!("{dir}/src/");
    let files = tree.files.range(source.clone()..).map(|(file, _)| file.as_str());
    files
        .take_while({
            let source = source.clone();
            move |file| file.starts_with(&source)
        })
        .filter(move |file| {
            let below = &file[source.len()..];
            let program = below.strip_prefix("bin/").is_some_and(|program| {
                program.ends_with(".rs") && !program.contains('/')
                    || program.strip_suffix("/main.rs").is_some_and(|name| !name.contains('/'))
            });
            program || ["lib.rs", "main.rs"].contains(&below)
        })
}

fn problem(arrows: &Arrows<'_>, component: &BTreeSet<&str>, starts: &[&str]) -> Problem {
    let circles = starts.iter().map(|start| shortest_circle(arrows, component, start));
    let circle = circles.min_by_key(Vec::len).unwrap_or_default();
    let steps: Vec<String> = circle.iter().map(|(file, line)| format!("{file}:{line}")).collect();
    let &(file, line) = circle.first().unwrap_or(&("", 0));
    let names: Vec<&str> = component.iter().copied().collect();
    let message = format!(
        "{} files import each other, and at most {MOST} may (or those in {LIST}): {}; one circle: {} -> {file}",
        component.len(),
        names.join(", "),
        steps.join(" -> "),
    );
    Problem::new(file, line, message)
}

/// The files of a shortest circle through `start`, each with the line that names the next one.
fn shortest_circle<'a>(
    arrows: &Arrows<'a>,
    component: &BTreeSet<&'a str>,
    start: &'a str,
) -> Vec<(&'a str, usize)> {
    let mut before: BTreeMap<&str, (&str, usize)> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(file) = queue.pop_front() {
        for (&to, &line) in arrows.get(file).into_iter().flatten().filter(|(to, _)| component.contains(*to)) {
            if !before.contains_key(to) {
                before.insert(to, (file, line));
                queue.push_back(to);
            }
        }
    }
    let mut circle = Vec::new();
    let mut at = start;
    while let Some(&(file, line)) = before.get(at) {
        circle.push((file, line));
        at = file;
        if at == start {
            break;
        }
    }
    circle.reverse();
    circle
}

/// The strongly connected components, by Tarjan's algorithm.
fn components<'a>(arrows: &Arrows<'a>) -> Vec<BTreeSet<&'a str>> {
    let mut search = Search { arrows, visited: BTreeMap::new(), stack: Vec::new(), found: Vec::new() };
    for file in arrows.keys() {
        if !search.visited.contains_key(file) {
            search.visit(file);
        }
    }
    search.found
}

struct Search<'s, 'a> {
    arrows: &'s Arrows<'a>,
    /// The files met, each with its number in the order of the visit.
    visited: BTreeMap<&'a str, usize>,
    /// The files met that are in no component yet.
    stack: Vec<&'a str>,
    found: Vec<BTreeSet<&'a str>>,
}

impl<'a> Search<'_, 'a> {
    /// Visits a file and all below it, and returns the lowest number that they lead to.
    fn visit(&mut self, file: &'a str) -> usize {
        let number = self.visited.len();
        self.visited.insert(file, number);
        let height = self.stack.len();
        self.stack.push(file);
        let mut lowest = number;
        let arrows = self.arrows;
        for to in arrows.get(file).into_iter().flat_map(BTreeMap::keys) {
            match self.visited.get(to) {
                None => lowest = lowest.min(self.visit(to)),
                Some(number) if self.stack.contains(to) => lowest = lowest.min(*number),
                Some(_) => {}
            }
        }
        if lowest == number {
            self.found.push(self.stack.drain(height..).collect());
        }
        lowest
    }
}

#[cfg(test)]
mod tests {
    use super::super::messages;
    use super::*;

    /// A crate with these files besides its root. Each imports from the named files.
    fn found(list: &str, files: &[(&str, &str)]) -> Vec<String> {
        let mut texts = vec![(LIST.to_string(), list.to_string())];
        let mut root = String::new();
        for (name, names) in files {
            root += &format!("mod {name};\n");
            let uses = names.split_whitespace().map(|other| format!("use crate::{other}::Item;\n"));
            texts.push((format!("a/src/{name}.rs"), uses.collect::<String>() + "struct Item;\n"));
        }
        texts.push(("a/src/lib.rs".to_string(), root));
        let texts: Vec<_> = texts.iter().map(|(file, text)| (file.as_str(), text.as_str())).collect();
        messages(&check(&Tree::of(&texts), &[Package::sample("a")]))
    }

    const LISTED: &str = "# A word.\n\n# A reason.\na/src/b.rs\na/src/c.rs\na/src/d.rs\na/src/e.rs\n";
    const FOUR: &[(&str, &str)] = &[("b", "c"), ("c", "b d"), ("d", "e"), ("e", "b")];

    #[test]
    fn three_files_may_and_ways_without_return_are_free() {
        assert_eq!(found("", &[("b", "c"), ("c", "d"), ("d", "b")]), [""; 0]);
        assert_eq!(found("", &[("b", "c d e"), ("c", "d e"), ("d", "e"), ("e", "")]), [""; 0]);
        let two_pairs = [("b", "c"), ("c", "b d"), ("d", "e"), ("e", "d")];
        assert_eq!(found("", &two_pairs), [""; 0]);
    }

    #[test]
    fn four_files_that_are_not_listed_are_named_with_a_shortest_circle() {
        let found = found("", FOUR);
        let expected = "a/src/b.rs:1: 4 files import each other, and at most 3 may (or those in xtask/circles.txt): \
             a/src/b.rs, a/src/c.rs, a/src/d.rs, a/src/e.rs; one circle: a/src/b.rs:1 -> a/src/c.rs:1 -> a/src/b.rs";
        assert_eq!(found, [expected]);
    }

    #[test]
    fn the_list_is_as_long_as_today() {
        assert_eq!(found(LISTED, FOUR), [""; 0]);
    }

    #[test]
    fn each_component_of_the_list_has_a_reason() {
        let without = LISTED.replace("# A reason.\n", "");
        let missing = "xtask/circles.txt:3: these files have no reason to import each other: \
             give it in a comment above them";
        assert_eq!(found(&without, FOUR), [missing]);
        // A comment that a blank line parts from the files is none of theirs.
        assert_eq!(found(&LISTED.replace("reason.\n", "reason.\n\n"), FOUR).len(), 1);
    }

    #[test]
    fn a_file_that_enters_is_named_with_its_circle() {
        let five = [("b", "c"), ("c", "b d"), ("d", "e"), ("e", "b f"), ("f", "d")];
        let found = found(LISTED, &five);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("a/src/f.rs:1: 5 files"), "{found:?}");
        assert!(
            found[0].ends_with("a/src/f.rs:1 -> a/src/d.rs:1 -> a/src/e.rs:2 -> a/src/f.rs"),
            "{found:?}"
        );
    }

    #[test]
    fn a_file_that_leaves_shrinks_the_list() {
        let left = "xtask/circles.txt:4: a/src/b.rs is in no circle of more than 3 files: shrink the list";
        assert_eq!(found(LISTED, &[("b", "c"), ("c", "d"), ("d", "e"), ("e", "")]), [left]);
        let five = format!("{LISTED}a/src/f.rs\n");
        let gone = "xtask/circles.txt:4: a/src/f.rs is in no circle of more than 3 files: shrink the list";
        assert_eq!(found(&five, FOUR), [gone]);
        assert_eq!(found(&format!("\n\n{LISTED}\na/src/x.rs\n"), FOUR).len(), 1);
    }

    #[test]
    fn a_component_that_falls_apart_shrinks_the_list_and_two_that_join_do_not_fit_it() {
        let eight = |joined: &'static str| {
            [
                ("b", "c"),
                ("c", "d"),
                ("d", "e"),
                ("e", joined),
                ("f", "g"),
                ("g", "h"),
                ("h", "i"),
                ("i", "f b"),
            ]
        };
        let second = "a/src/f.rs\na/src/g.rs\na/src/h.rs\na/src/i.rs\n";
        let apart = format!("{LISTED}{second}");
        assert_eq!(found(&apart, &eight("b f")), [""; 0]);
        let parts = "xtask/circles.txt:4: these files are 2 components: shrink the list";
        assert_eq!(found(&apart, &eight("b")), [parts]);
        let two = format!("{LISTED}\n# A reason.\n{second}");
        assert_eq!(found(&two, &eight("b")), [""; 0]);
        let joined = found(&two, &eight("b f"));
        assert!(joined.len() == 1 && joined[0].contains("8 files import each other"), "{joined:?}");
    }

    #[test]
    fn the_library_and_each_program_are_crates() {
        let files = "a/src/lib.rs a/src/main.rs a/src/b.rs a/src/bin/p.rs a/src/bin/q/main.rs \
             a/src/bin/q/b.rs a/src/bin/q/r/main.rs a/tests/main.rs ab/src/lib.rs";
        let files: Vec<_> = files.split(' ').map(|file| (file, "")).collect();
        let tree = Tree::of(&files);
        let roots: Vec<&str> = roots(&tree, "a").collect();
        assert_eq!(roots, ["a/src/bin/p.rs", "a/src/bin/q/main.rs", "a/src/lib.rs", "a/src/main.rs"]);
    }
}
