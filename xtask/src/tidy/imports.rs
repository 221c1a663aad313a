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
//! Comments, literals and what stands under `#[cfg(test)]` are not read. Macros are not expanded: a
//! name that no item of a module has counts as defined in the module's file.

use super::Tree;
use crate::tokens::{Kind, tokens};
use std::collections::{BTreeMap, BTreeSet};

/// The arrows of a crate: from a file, to a file, and the first line that names something there.
pub(super) type Arrows<'a> = BTreeMap<&'a str, BTreeMap<&'a str, usize>>;

/// How many re-exports and globs are followed, one behind another.
const DEPTH: usize = 8;

/// The arrows among the files that belong to the crate with the file `root`.
pub(super) fn arrows<'a>(tree: &'a Tree, root: &'a str) -> Arrows<'a> {
    let mut reader = Reader { tree, modules: Vec::new(), exported: BTreeMap::new() };
    if tree.files.contains_key(root) {
        let directory = root.rsplit_once('/').map_or("", |(directory, _)| directory);
        reader.read_file(root, directory, None);
    }
    let mut arrows = Arrows::new();
    for (id, module) in reader.modules.iter().enumerate() {
        let named = module.mentions.iter().filter(|mention| mention.counts_in(module));
        let named =
            named.filter_map(|mention| Some((mention.line, reader.resolve(id, &mention.path, DEPTH)?)));
        let in_globs = module.globs.iter().flat_map(|glob| reader.named_by(glob, id));
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
    /// Names of what is declared in it, without modules.
    items: BTreeSet<&'a str>,
    /// The imports: name here, and path.
    imported: BTreeMap<&'a str, Vec<&'a str>>,
    globs: Vec<Glob<'a>>,
    mentions: Vec<Mention<'a>>,
    /// The words of its code outside of imports, fields and methods.
    words: BTreeSet<&'a str>,
}

/// A place in the code of a module that names an item.
struct Mention<'a> {
    line: usize,
    path: Vec<&'a str>,
    /// The name that an import gives it.
    name: &'a str,
    is_re_export: bool,
}

impl<'a> Mention<'a> {
    fn counts_in(&self, module: &Module<'a>) -> bool {
        !self.is_re_export || module.words.contains(self.name)
    }
}

/// `use path::*`.
struct Glob<'a> {
    line: usize,
    path: Vec<&'a str>,
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

/// A token of code with its line.
#[derive(Clone, Copy)]
struct Code<'a> {
    kind: Kind,
    text: &'a str,
    line: usize,
}

/// What the attributes before an item say of it.
#[derive(Default)]
struct Attributes<'a> {
    is_test: bool,
    is_exported: bool,
    path: Option<&'a str>,
}

/// What stands before an item.
struct Item<'a> {
    is_public: bool,
    attributes: Attributes<'a>,
}

impl<'a> Reader<'a> {
    fn add(&mut self, file: &'a str, name: &'a str, parent: Option<usize>) -> usize {
        let id = self.modules.len();
        self.modules.push(Module {
            file,
            parent,
            children: BTreeMap::new(),
            items: BTreeSet::new(),
            imported: BTreeMap::new(),
            globs: Vec::new(),
            mentions: Vec::new(),
            words: BTreeSet::new(),
        });
        if let Some(parent) = parent {
            self.modules[parent].children.insert(name, id);
        }
        id
    }

    /// Reads the file of a module, and the files of its children, which lie in `directory`.
    fn read_file(&mut self, file: &'a str, directory: &str, within: Option<(usize, &'a str)>) {
        let text = &self.tree.files[file];
        let mut line = 1;
        let mut code = Vec::new();
        for token in tokens(text) {
            if !matches!(token.kind, Kind::White | Kind::Comment) {
                code.push(Code { kind: token.kind, text: token.text, line });
            }
            line += token.text.matches('\n').count();
        }
        let (parent, name) = within.map_or((None, ""), |(parent, name)| (Some(parent), name));
        let module = self.add(file, name, parent);
        self.read(&code, module, directory);
    }

    /// Reads the code of one module.
    fn read(&mut self, code: &[Code<'a>], module: usize, directory: &str) {
        let mut depth = 0_usize;
        let mut is_public = false;
        let mut attributes = Attributes::default();
        let mut at = 0;
        while let Some(token) = code.get(at) {
            let text_at = |ahead: usize| code.get(at + ahead).map_or("", |token| token.text);
            let next = text_at(1);
            if token.text == "#" && (next == "[" || next == "!" && text_at(2) == "[") {
                let open = at + if next == "[" { 1 } else { 2 };
                let end = closing(code, open);
                attributes.read(&code[open + 1..end.saturating_sub(1).max(open + 1)]);
                at = end;
                if next == "!" && attributes.is_test {
                    return;
                }
                continue;
            }
            if attributes.is_test {
                at = item_end(code, at);
                attributes = Attributes::default();
                continue;
            }
            if token.text == "pub" {
                is_public = true;
                at += if next == "(" { closing(code, at + 1) - at } else { 1 };
                continue;
            }
            let item = Item { is_public, attributes: std::mem::take(&mut attributes) };
            match token.text {
                "{" => depth += 1,
                "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
            at += self.read_item(code, at, module, directory, depth, &item);
            is_public = false;
        }
    }

    /// Reads the item, or the part of one, that begins at `at`. Returns the number of its tokens.
    fn read_item(
        &mut self,
        code: &[Code<'a>],
        at: usize,
        module: usize,
        directory: &str,
        depth: usize,
        item: &Item<'a>,
    ) -> usize {
        let text_at = |ahead: usize| code.get(at + ahead).map_or("", |token| token.text);
        let next = text_at(1);
        let is_word = |ahead: usize| code.get(at + ahead).is_some_and(|token| token.kind == Kind::Word);
        match text_at(0) {
            "mod" if is_word(1) && text_at(2) == "{" => {
                let end = closing(code, at + 2);
                let child = self.add(self.modules[module].file, next, Some(module));
                self.read(&code[at + 3..(end - 1).max(at + 3)], child, &format!("{directory}/{next}"));
                end - at
            }
            "mod" if is_word(1) => {
                self.read_child(module, directory, next, &item.attributes);
                2
            }
            "use" if next != "<" => {
                let end = code[at..].iter().position(|token| token.text == ";");
                let end = end.map_or(code.len(), |length| at + length);
                self.read_use(&code[at + 1..end], module, item.is_public);
                end - at
            }
            "macro_rules" if next == "!" => {
                if item.attributes.is_exported {
                    self.exported.insert(text_at(2), self.modules[module].file);
                }
                self.modules[module].items.insert(text_at(2));
                3
            }
            "fn" | "struct" | "enum" | "union" | "trait" | "type" | "const" | "static"
                if depth == 0 && !follows(code, at, "*") =>
            {
                if is_word(1) {
                    let name = if next == "mut" { text_at(2) } else { next };
                    self.modules[module].items.insert(name);
                }
                // The name of a type or function may be that of a re-export in another namespace,
                // and is no use of it. `const fn` has a keyword there.
                if next == "fn" || next == "unsafe" || next == "async" { 1 } else { 2 }
            }
            _ if is_word(0) && !follows(code, at, ".") => self.read_path(code, at, module),
            _ => 1,
        }
    }

    fn read_child(&mut self, module: usize, directory: &str, name: &'a str, attributes: &Attributes<'a>) {
        let plain = name.strip_prefix("r#").unwrap_or(name);
        let files = match attributes.path {
            Some(path) => {
                let beside =
                    self.modules[module].file.rsplit_once('/').map_or("", |(directory, _)| directory);
                super::joined(beside, path).into_iter().collect()
            }
            None => vec![format!("{directory}/{plain}.rs"), format!("{directory}/{plain}/mod.rs")],
        };
        let tree = self.tree;
        let found = files.iter().find_map(|file| tree.files.get_key_value(file));
        if let Some((file, _)) = found {
            let below = match (attributes.path, file.rsplit_once('/')) {
                (Some(_), Some((beside, _))) => beside.to_string(),
                _ => format!("{directory}/{plain}"),
            };
            self.read_file(file, &below, Some((module, name)));
        }
    }

    /// Reads the path that begins at `at`, and gives its length in tokens.
    fn read_path(&mut self, code: &[Code<'a>], at: usize, module: usize) -> usize {
        let mut path = vec![code[at].text];
        let mut end = at + 1;
        while let [first, second, name, ..] = &code[end..]
            && (first.text, second.text) == (":", ":")
            && name.kind == Kind::Word
        {
            path.push(name.text);
            end += 3;
        }
        let begins = !(follows(code, at, ":") && at > 1 && code[at - 2].text == ":");
        let module = &mut self.modules[module];
        if path.len() == 1 {
            module.words.insert(code[at].text);
        } else if begins {
            module.words.insert(path[0]);
            module.mentions.push(Mention { line: code[at].line, name: path[0], path, is_re_export: false });
        }
        end - at
    }

    /// Reads the tree of imports between `use` and its semicolon.
    fn read_use(&mut self, code: &[Code<'a>], module: usize, is_public: bool) {
        let mut path: Vec<&'a str> = Vec::new();
        // The lengths of `path` where the braces around this place begin.
        let mut outer = Vec::new();
        let mut at = 0;
        while let Some(token) = code.get(at) {
            let ends = code.get(at + 1).is_none_or(|next| matches!(next.text, "," | "}" | "as"));
            match token.text {
                "{" => outer.push(path.len()),
                "," => path.truncate(outer.last().copied().unwrap_or(0)),
                "}" => path.truncate(outer.pop().unwrap_or(0)),
                "*" => self.modules[module].globs.push(Glob { line: token.line, path: path.clone() }),
                "as" => at += 1,
                "self" if !path.is_empty() => self.import(code, at, &path, module, is_public),
                name if token.kind == Kind::Word => {
                    path.push(name);
                    if ends {
                        self.import(code, at, &path, module, is_public);
                    }
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// Notes the import of `path`. The last word of it stands at `at`.
    fn import(&mut self, code: &[Code<'a>], at: usize, path: &[&'a str], module: usize, is_public: bool) {
        let renamed = code.get(at + 1).filter(|next| next.text == "as").and_then(|_| code.get(at + 2));
        let Some(name) = renamed.map(|token| token.text).or(path.last().copied()) else { return };
        let module = &mut self.modules[module];
        module.imported.insert(name, path.to_vec());
        module.mentions.push(Mention {
            line: code[at].line,
            path: path.to_vec(),
            name,
            is_re_export: is_public,
        });
    }

    /// The places that the words of a module lead to through one of its globs.
    fn named_by(&self, glob: &Glob<'a>, module: usize) -> Vec<(usize, Place<'a>)> {
        let Some(Place::Module(other)) = self.resolve(module, &glob.path, DEPTH) else { return Vec::new() };
        let own = &self.modules[module];
        let known = |word: &str| own.items.contains(word) || own.imported.contains_key(word);
        let words = own.words.iter().filter(|word| !known(word));
        words.filter_map(|word| Some((glob.line, self.look_up(other, word, DEPTH)?))).collect()
    }

    /// The place that a path in `module` leads to. `None` where it leads out of the crate.
    fn resolve(&self, module: usize, path: &[&'a str], depth: usize) -> Option<Place<'a>> {
        let (first, rest) = path.split_first()?;
        let mut place = match *first {
            "crate" => Place::Module(0),
            "self" => Place::Module(module),
            "super" => Place::Module(self.modules[module].parent?),
            name => self.look_up(module, name, depth)?,
        };
        for name in rest {
            let Place::Module(module) = place else { break };
            place = match *name {
                "super" => Place::Module(self.modules[module].parent?),
                name => self.look_up(module, name, depth).unwrap_or(Place::ItemIn(self.modules[module].file)),
            };
        }
        Some(place)
    }

    /// What `name` is in a module.
    fn look_up(&self, module: usize, name: &'a str, depth: usize) -> Option<Place<'a>> {
        let depth = depth.checked_sub(1)?;
        let found = &self.modules[module];
        if let Some(child) = found.children.get(name) {
            return Some(Place::Module(*child));
        }
        if found.items.contains(name) {
            return Some(Place::ItemIn(found.file));
        }
        if let Some(path) = found.imported.get(name) {
            // What comes from another crate is this file's choice.
            return Some(self.resolve(module, path, depth).unwrap_or(Place::ItemIn(found.file)));
        }
        let in_glob = found.globs.iter().find_map(|glob| match self.resolve(module, &glob.path, depth)? {
            Place::Module(other) => self.look_up(other, name, depth),
            Place::ItemIn(_) => None,
        });
        let exported = || self.exported.get(name).filter(|_| module == 0).map(|file| Place::ItemIn(file));
        in_glob.or_else(exported)
    }
}

impl<'a> Attributes<'a> {
    fn read(&mut self, code: &[Code<'a>]) {
        let word = |text: &str| code.iter().any(|token| token.text == text);
        match code.first().map(|token| token.text) {
            Some("cfg") if word("test") && !word("not") && !word("any") => self.is_test = true,
            Some("macro_export") => self.is_exported = true,
            Some("path") => self.path = code.last().map(|token| token.text.trim_matches('"')),
            _ => {}
        }
    }
}

fn follows(code: &[Code<'_>], at: usize, text: &str) -> bool {
    at > 0 && code[at - 1].text == text
}

/// The index behind the delimiter that closes the one at `open`.
fn closing(code: &[Code<'_>], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in code.iter().enumerate().skip(open).filter(|(_, token)| token.kind == Kind::Delimiter) {
        if matches!(token.text, "(" | "[" | "{") {
            depth += 1;
        } else {
            depth -= 1;
        }
        if depth == 0 {
            return at + 1;
        }
    }
    code.len()
}

/// The index behind the item, statement, field or variant that begins at `at`.
fn item_end(code: &[Code<'_>], at: usize) -> usize {
    const ITEMS: &[&str] = &[
        "pub",
        "fn",
        "impl",
        "use",
        "mod",
        "struct",
        "enum",
        "union",
        "trait",
        "type",
        "const",
        "static",
        "unsafe",
        "async",
        "extern",
        "macro_rules",
        "let",
    ];
    let is_item = ITEMS.contains(&code[at].text);
    let mut at = at;
    while let Some(token) = code.get(at) {
        match token.text {
            ";" => return at + 1,
            "," if !is_item => return at + 1,
            ")" | "]" | "}" => return at,
            "{" => {
                let end = closing(code, at);
                // `use a::{b, c};`
                return if code.get(end).is_some_and(|token| token.text == ";") { end + 1 } else { end };
            }
            "(" | "[" => at = closing(code, at),
            _ => at += 1,
        }
    }
    at
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
            ("a.rs", "crate::m!()"),
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
