//! One name, one meaning: a type's name stands in one file of a crate, and in few crates.
//!
//! The check counts the structs, enums, traits, unions and type aliases in the `src` of each crate.
//! Associated types do not count, because their trait names them; nor do the types of tests.
//!
//! `tidy.rs` calls `check`. A name that two crates need is one of a small number: see
//! `NAMES_TO_A_SHARED_ONE`.

use super::syntax::{Declaration, Declared};
use super::{Problem, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// Of this number of names of the library crates, one may stand in several crates.
const NAMES_TO_A_SHARED_ONE: usize = 20;

/// Reports each name that two files of one crate declare, and the names that too many crates share.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut places: BTreeMap<(&str, &str), Vec<(&str, usize)>> = BTreeMap::new();
    let mut crates: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let tests = test_files(tree);
    for (file, syntax) in tree.syntax() {
        let Some(package) = package(file).filter(|_| !tests.contains(file)) else { continue };
        let types = syntax.declarations.iter();
        let types = types.filter(|declaration| declaration.kind == Declared::Type && !declaration.for_tests);
        for Declaration { name, line, .. } in types {
            places.entry((package, name)).or_default().push((file, *line));
            if package.starts_with("crates/") && !package.contains("/src/") {
                crates.entry(name).or_default().insert(package);
            }
        }
    }
    let mut problems = Vec::new();
    for ((_, name), places) in places {
        let (first, line) = places[0];
        for &(file, at) in places.iter().filter(|(file, _)| *file != first) {
            let message = format!("{name} is also the name of a type in {first}:{line}");
            problems.push(Problem::new(file, at, message));
        }
    }
    let most = crates.len() / NAMES_TO_A_SHARED_ONE;
    crates.retain(|_, crates| crates.len() > 1);
    if crates.len() > most {
        let names: Vec<&str> = crates.keys().copied().collect();
        let (count, names) = (names.len(), names.join(", "));
        let message = format!("{count} names stand in several crates, {most} at most: {names}");
        problems.push(Problem::new("crates", 0, message));
    }
    problems
}

/// The directory of the package, where the file is in its `src`. A file or a directory in `src/bin`
/// is a crate of its own.
fn package(file: &str) -> Option<&str> {
    let (package, inner) = file.split_once("/src/")?;
    let Some(program) = inner.strip_prefix("bin/") else { return Some(package) };
    let below = program.find('/').map_or(0, |at| program.len() - at);
    Some(&file[..file.len() - below])
}

/// The files of modules that only tests compile.
fn test_files(tree: &Tree) -> BTreeSet<String> {
    let mut files = BTreeSet::new();
    for (file, syntax) in tree.syntax() {
        let (directory, name) = file.rsplit_once('/').unwrap_or(("", file));
        let directory = match name {
            "lib.rs" | "main.rs" | "mod.rs" => directory,
            _ => file.trim_end_matches(".rs"),
        };
        let modules = syntax.declarations.iter();
        let modules =
            modules.filter(|declaration| declaration.for_tests && declaration.kind == Declared::File);
        files.extend(modules.map(|module| format!("{directory}/{}.rs", module.name)));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::super::messages;
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        messages(&check(&Tree::of(files)))
    }

    #[test]
    fn a_name_in_two_files_of_a_crate_is_found_with_both_places() {
        for second in [
            "\npub(crate) enum Entry {}\n",
            "\nunsafe trait Entry: Send {}\n",
            "\nunion Entry {}\n",
            "\ntype Entry<T> = Vec<T>;\n",
            "\nmod inner {\n    struct Entry;\n}\n",
            "\nwrapped! {\n    struct Entry;\n}\n",
            "\nmacro_rules! a {\n    ($b:ident) => {\n        struct Entry($b);\n    };\n}\n",
            "\npub(in crate::b) struct Entry;\n",
        ] {
            let files = [("crates/a/src/lib.rs", "pub struct Entry<T>(T);\n"), ("crates/a/src/b.rs", second)];
            let problems = found(&files);
            assert_eq!(problems.len(), 1, "{second}");
            assert!(problems[0].contains("Entry is also the name of a type"), "{problems:?}");
            for place in ["crates/a/src/lib.rs:1", "crates/a/src/b.rs:"] {
                assert!(problems[0].contains(place), "{problems:?}");
            }
        }
    }

    #[test]
    fn what_is_no_second_meaning() {
        let one = ("crates/a/src/lib.rs", "struct Entry;\n");
        for (file, source) in [
            ("crates/a/src/b.rs", "impl A for B {\n    type Entry = u8;\n}\n"),
            ("crates/a/src/b.rs", "impl<T> A for B<T>\nwhere\n    T: C,\n{\n    type Entry = u8;\n}\n"),
            ("crates/a/src/b.rs", "pub trait A {\n    /// E.\n    type Entry;\n}\n"),
            ("crates/a/src/b.rs", "#[cfg(test)]\nmod tests {\n    struct Entry;\n}\n"),
            ("crates/a/src/b.rs", "// struct Entry;\nfn a() {\n    \"\nstruct Entry;\n\";\n}\n"),
            ("crates/a/tests/b.rs", "struct Entry;\n"),
            ("apps/b/src/main.rs", "struct Entry;\n"),
            ("crates/a/src/bin/b.rs", "struct Entry;\n"),
        ] {
            assert_eq!(found(&[one, (file, source)]), [""; 0], "{source}");
        }
        let test_file = [
            one,
            ("crates/a/src/b.rs", "#[cfg(test)]\nmod tests;\n"),
            ("crates/a/src/b/tests.rs", "struct Entry;\n"),
        ];
        assert_eq!(found(&test_file), [""; 0]);
    }

    #[test]
    fn the_code_after_a_test_item_or_an_impl_is_read() {
        for before in ["#[cfg(test)]\nmod tests {\n    struct A;\n}\n", "impl C {}\n", "impl C {\n}\n"] {
            let after = format!("{before}\ntype Entry = u8;\n");
            let files = [("crates/a/src/lib.rs", "struct Entry;\n"), ("crates/a/src/b.rs", &after)];
            assert_eq!(found(&files).len(), 1, "{before}");
        }
    }

    #[test]
    fn too_many_names_in_several_crates_are_found() {
        // 40 names, so that two may stand in both crates.
        let declare = |numbers: std::ops::Range<usize>| -> String {
            numbers.map(|number| format!("struct A{number};\n")).collect()
        };
        let shared = |count: usize| {
            let sources = [declare(0..20), declare(20 - count..40 - count)];
            let rest = declare(40 - count..40);
            let files = ["crates/a/src/lib.rs", "crates/b/src/lib.rs", "crates/a/src/rest.rs"];
            found(&[(files[0], &sources[0]), (files[1], &sources[1]), (files[2], &rest)])
        };
        assert_eq!(shared(2), [""; 0]);
        let problems = shared(3);
        assert_eq!(problems.len(), 1);
        assert!(problems[0].contains("3 names stand in several crates, 2 at most"), "{problems:?}");
    }
}
