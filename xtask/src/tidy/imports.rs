//! [`arrows`]: which file of a crate names what another file of it defines. `circles.rs` calls it.
//!
//! An arrow goes from the file that names an item to the file that defines it. It is read from
//! `use` and from paths in code, with `crate`, `super`, `self`, a module or an imported name at the
//! beginning. A re-export is followed to the file that defines the item, because a file that only
//! re-exports its children would close circles that are none. For the same reason these are no
//! arrows:
//! - `mod child;`,
//! - the import of a module, or of all its names: what is named through it counts,
//! - a `pub use` of a name that the file itself does not use.
//!
//! `syntax.rs` reads the names of one module. Macros are not expanded: a name that no item of a
//! module has counts as defined in the module's file.

use super::Tree;
use super::syntax::{Child, Glob, Mention, Scope};
use std::collections::BTreeMap;

/// The arrows of a crate: from a file, to a file, and the first line that names something there.
pub(super) type Arrows<'a> = BTreeMap<&'a str, BTreeMap<&'a str, usize>>;

/// How many re-exports and globs are followed, one behind another.
const DEPTH: usize = 8;

/// The arrows among the files that belong to the crate with the file `root`.
pub(super) fn arrows<'a>(tree: &'a Tree, root: &str) -> Arrows<'a> {
    let mut reader = Reader { tree, modules: Vec::new(), exported: BTreeMap::new() };
    let directory = root.rsplit_once('/').map_or("", |(directory, _)| directory);
    if let Some((root, syntax)) = tree.syntax().get_key_value(root) {
        reader.read(root, &syntax.scope, directory, None);
    }
    let mut arrows = Arrows::new();
    for (id, module) in reader.modules.iter().enumerate() {
        let named = module.scope.mentions.iter().filter(|mention| module.counts(mention));
        let named =
            named.filter_map(|mention| Some((mention.line, reader.resolve(id, &mention.path, DEPTH)?)));
        let in_globs = module.scope.globs.iter().flat_map(|glob| reader.named_by(glob, id));
        for (line, place) in named.chain(in_globs) {
            let Place::ItemIn(to) = place else { continue };
            if to != module.file {
                let first = arrows.entry(module.file).or_default().entry(to).or_insert(line);
                *first = line.min(*first);
            }
        }
    }
    arrows
}

/// A module, which has a file of its own or stands inline in one.
struct Module<'a> {
    file: &'a str,
    parent: Option<usize>,
    children: BTreeMap<&'a str, usize>,
    scope: &'a Scope,
}

impl Module<'_> {
    fn counts(&self, mention: &Mention) -> bool {
        !mention.is_re_export || self.scope.words.contains(&mention.name)
    }
}

/// What a path leads to.
#[derive(Clone, Copy)]
enum Place<'a> {
    Module(usize),
    ItemIn(&'a str),
}

struct Reader<'a> {
    tree: &'a Tree,
    /// The root comes first.
    modules: Vec<Module<'a>>,
    /// The macros under `#[macro_export]`, which are items of the root, and their files.
    exported: BTreeMap<&'a str, &'a str>,
}

impl<'a> Reader<'a> {
    /// Reads a module in `file`, and its children. Their files lie in `directory`.
    fn read(&mut self, file: &'a str, scope: &'a Scope, directory: &str, within: Option<(usize, &'a str)>) {
        let id = self.modules.len();
        let parent = within.map(|(parent, _)| parent);
        self.modules.push(Module { file, parent, children: BTreeMap::new(), scope });
        if let Some((parent, name)) = within {
            self.modules[parent].children.insert(name, id);
        }
        self.exported.extend(scope.exported.iter().map(|name| (name.as_str(), file)));
        for child in &scope.children {
            let below = format!("{directory}/{}", child.name);
            match &child.scope {
                Some(scope) => self.read(file, scope, &below, Some((id, &child.name))),
                None => self.read_file(file, child, below, id),
            }
        }
    }

    /// Reads the file of a child that `file` declares.
    fn read_file(&mut self, file: &str, child: &'a Child, below: String, parent: usize) {
        let beside = |file: &str| file.rsplit_once('/').map_or("", |(directory, _)| directory).to_string();
        let (files, is_beside) = match &child.path {
            Some(path) => (super::joined(&beside(file), path).into_iter().collect(), true),
            None => (vec![format!("{below}.rs"), format!("{below}/mod.rs")], false),
        };
        let found = files.iter().find_map(|file| self.tree.syntax().get_key_value(file));
        if let Some((file, syntax)) = found {
            let below = if is_beside { beside(file) } else { below };
            self.read(file, &syntax.scope, &below, Some((parent, &child.name)));
        }
    }

    /// The places that the words of a module lead to through one of its globs.
    fn named_by(&self, glob: &'a Glob, module: usize) -> Vec<(usize, Place<'a>)> {
        let Some(Place::Module(other)) = self.resolve(module, &glob.path, DEPTH) else { return Vec::new() };
        let own = self.modules[module].scope;
        let known = |word: &str| own.items.contains(word) || own.imported.contains_key(word);
        let words = own.words.iter().filter(|word| !known(word));
        words.filter_map(|word| Some((glob.line, self.look_up(other, word, DEPTH)?))).collect()
    }

    /// The place that a path in `module` leads to. `None` where it leads out of the crate.
    fn resolve(&self, module: usize, path: &'a [String], depth: usize) -> Option<Place<'a>> {
        let (first, rest) = path.split_first()?;
        let mut place = match first.as_str() {
            "crate" => Place::Module(0),
            "self" => Place::Module(module),
            "super" => Place::Module(self.modules[module].parent?),
            name => self.look_up(module, name, depth)?,
        };
        for name in rest {
            let Place::Module(module) = place else { break };
            place = match name.as_str() {
                "super" => Place::Module(self.modules[module].parent?),
                name => self.look_up(module, name, depth).unwrap_or(Place::ItemIn(self.modules[module].file)),
            };
        }
        Some(place)
    }

    /// What `name` is in a module.
    fn look_up(&self, module: usize, name: &'a str, depth: usize) -> Option<Place<'a>> {
        let depth = depth.checked_sub(1)?;
        let Module { file, children, scope, .. } = &self.modules[module];
        if let Some(child) = children.get(name) {
            return Some(Place::Module(*child));
        }
        if scope.items.contains(name) {
            return Some(Place::ItemIn(file));
        }
        if let Some(path) = scope.imported.get(name) {
            // What comes from another crate is this file's choice.
            return Some(self.resolve(module, path, depth).unwrap_or(Place::ItemIn(file)));
        }
        let in_glob = scope.globs.iter().find_map(|glob| match self.resolve(module, &glob.path, depth)? {
            Place::Module(other) => self.look_up(other, name, depth),
            Place::ItemIn(_) => None,
        });
        let exported = || self.exported.get(name).filter(|_| module == 0).map(|file| Place::ItemIn(file));
        in_glob.or_else(exported)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arrows of the crate `c`, as `from:line to`.
    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<(String, &str)> =
            files.iter().map(|(file, text)| (format!("c/src/{file}"), *text)).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(file, text)| (file.as_str(), *text)).collect();
        let tree = Tree::of(&files);
        let name = |file: &str| file.trim_start_matches("c/src/").to_string();
        let arrows = arrows(&tree, "c/src/lib.rs");
        let arrows =
            arrows.iter().flat_map(|(from, to)| to.iter().map(move |(to, line)| (*from, *line, *to)));
        arrows.map(|(from, line, to)| format!("{}:{line} {}", name(from), name(to))).collect()
    }

    /// The same for a file `a.rs` with this text. Beside it are `b.rs` with `B`, its child `b/c.rs`
    /// with `C`, and a root with `R`.
    fn of_a(text: &str) -> Vec<String> {
        found(&[
            ("lib.rs", "mod a;\nmod b;\nstruct R;\n"),
            ("a.rs", text),
            ("b.rs", "pub(crate) mod c;\npub(crate) use c::C;\npub(crate) fn B() {}\n"),
            ("b/c.rs", "pub(crate) struct C;\n"),
        ])
    }

    #[test]
    fn each_way_to_name_an_item_is_an_arrow() {
        for text in [
            "use crate::b::B;",
            "use super::b::{B};",
            "use crate::{b::{B as D}};",
            "use crate::b::{self, B};",
            "fn a() { crate::b::B() }",
            "fn a() { let a = [super::b::B; 2]; }",
            "use crate::b; fn a() { b::B() }",
            "use crate::b as d; fn a() { d::B() }",
            "use crate::b::*; fn a() { B() }",
            "macro_rules! a { () => { $crate::b::B() } }",
            "macro_rules! a { () => { use $crate::b::{B}; } }",
            "fn a() { m!(x => [1, crate::b::B]) }",
            "fn a() { let crate::b::B::<u8> = 1; }",
            "use crate::b::*; fn a() { match 1 { B => {} } }",
            "mod inline { use super::super::b::B; }",
            "use crate::b::made_by_a_macro;",
            "use std::a;\n#[cfg(test)]\nmod tests {}\n#[cfg(not(test))]\nuse crate::b::B;",
        ] {
            let line = 1 + text.matches('\n').count();
            assert_eq!(of_a(text), [format!("a.rs:{line} b.rs")], "{text}");
        }
        assert_eq!(of_a("use crate::R;"), ["a.rs:1 lib.rs"]);
        assert_eq!(of_a("impl\n  super::b::c::C {} use super::b::B;"), ["a.rs:2 b.rs", "a.rs:2 b/c.rs"]);
    }

    #[test]
    fn what_names_no_item_of_another_file_is_no_arrow() {
        for text in [
            "use std::b::B;",
            "use crate::b;",
            "// use crate::b::B;\n/* crate::b::B */ /// [`crate::b::B`]\nfn a() { \"crate::b::B\" }",
            "struct B; use self::B as C; fn a() { self::B }",
            "#[cfg(test)] mod tests { use crate::b::B; }",
            "#[cfg(all(test, not_loom))]\nmod tests {\n use crate::b::B;\n fn a() { {} }\n}",
            "#[cfg(test)] use crate::b::{B, c::C}; #[cfg(test)] fn a(b: [u8; 2]) -> u8 { crate::b::B() }",
            "struct A { #[cfg(test)] a: crate::b::B, b: u8 }",
            "#![cfg(test)] use crate::b::B;",
            "fn a() { #[cfg(test)] crate::b::B(); #[cfg(test)] { crate::b::B() } }",
            "fn a() { match 1 { #[cfg(test)] 2 => crate::b::B(), _ => {} } }",
            "#[crate::b::B] fn a() { m!(#[crate::b::B] x, ::crate::b::B, x.crate::b::B) }",
            "pub use crate::b::B;",
            "pub(super) use crate::b::B; fn a() { x.B() }",
            "pub(in crate::b) fn a(x: impl Fn() + use<'a>) {}",
            "use crate::b::*; fn a() { D() }",
        ] {
            assert_eq!(of_a(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_re_export_is_followed_to_the_file_of_the_item() {
        for text in ["use crate::b::C;", "use crate::b::*; fn a() -> C {}", "use crate::b; fn a() { b::C }"] {
            assert_eq!(of_a(text), ["a.rs:1 b/c.rs"], "{text}");
        }
        assert_eq!(of_a("pub use crate::b::C; fn a() -> C {}"), ["a.rs:1 b/c.rs"]);
        let through = |face: &str| {
            found(&[
                ("lib.rs", &format!("mod a;\nmod b;\n{face}")),
                ("a.rs", "use crate::B;"),
                ("b.rs", "#[macro_export] macro_rules! m {} pub struct B;"),
            ])
        };
        for face in [
            "pub use b::B;",
            "pub use b::*;",
            "pub use self::b::{B as C, B};",
            "pub use b::B as A; pub use A as B;",
        ] {
            assert_eq!(through(face), ["a.rs:1 b.rs"], "{face}");
        }
        // The root chooses between crates.
        assert_eq!(through("pub use other::B;"), ["a.rs:1 lib.rs"]);
        let exported = [
            ("lib.rs", "mod a;\nmod b;"),
            ("a.rs", "crate::m!();"),
            ("b.rs", "#[macro_export]\nmacro_rules! m {}"),
        ];
        assert_eq!(found(&exported), ["a.rs:1 b.rs"]);
        // Two names that stand for each other end.
        assert_eq!(through("pub use C as B; pub use B as C;"), ["a.rs:1 lib.rs"]);
    }

    #[test]
    fn modules_are_found_where_cargo_finds_them() {
        let found = found(&[
            (
                "lib.rs",
                "mod a;\nmod b { mod c; }\n#[path = \"other/d.rs\"]\nmod e;\n#[cfg(test)]\nmod t;\nstruct R;",
            ),
            ("a/mod.rs", "mod r#f; use crate::R;"),
            ("a/f.rs", "use super::super::R;"),
            ("b/c.rs", "use super::super::R;"),
            ("other/d.rs", "mod g; use super::R;"),
            ("other/g.rs", "use crate::R;"),
            ("t.rs", "use crate::R;"),
            ("stray.rs", "use crate::R;"),
        ]);
        assert_eq!(
            found,
            [
                "a/f.rs:1 lib.rs",
                "a/mod.rs:1 lib.rs",
                "b/c.rs:1 lib.rs",
                "other/d.rs:1 lib.rs",
                "other/g.rs:1 lib.rs"
            ]
        );
    }
}
