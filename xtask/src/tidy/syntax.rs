//! [`Syntax`]: what a Rust file declares, documents and names, as `syn` reads it. `Tree::syntax`
//! keeps it for each file, so that a run parses a file once.
//!
//! What `syn` reads stays in the thread that has read it, and is large. So each thread takes from
//! it what the checks ask for (`reader.rs`), and drops it.

mod reader;
mod scope;

use reader::SyntaxReader;
pub(super) use scope::{Child, Glob, Mention, Scope};
use std::collections::{BTreeMap, BTreeSet};
use std::thread;

#[derive(Debug, Default)]
pub(super) struct Syntax {
    /// In the order of the text.
    pub(super) declarations: Vec<Declaration>,
    pub(super) docs: Vec<Doc>,
    /// The names in `#[doc(alias = "..")]`.
    pub(super) aliases: BTreeSet<String>,
    /// The types that implement `Error`, with the lines of the implementations.
    pub(super) errors: Vec<(usize, String)>,
    /// The module that the file is.
    pub(super) scope: Scope,
    /// The line at which the file is no Rust, and the reason. All else is empty then.
    pub(super) failure: Option<(usize, String)>,
}

/// An item, or a member of one.
#[derive(Debug)]
pub(super) struct Declaration {
    pub(super) kind: Declared,
    pub(super) name: String,
    pub(super) line: usize,
    /// Whether only tests compile it.
    pub(super) for_tests: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Declared {
    /// A struct, an enum, a union, a trait or an alias.
    Type,
    /// A function with a body, which ends in the line `end`.
    Function {
        end: usize,
    },
    /// A module with a file of its own.
    File,
    Other,
}

/// The documentation of one item.
#[derive(Debug)]
pub(super) struct Doc {
    /// Its lines with their numbers, without the comment marks.
    pub(super) lines: Vec<(usize, String)>,
    /// The item: `Type::method`. `None` for the module around the comment.
    pub(super) item: Option<String>,
}

/// Reads each of the files, on all CPUs.
pub(super) fn read(files: &[(&str, &str)]) -> BTreeMap<String, Syntax> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let read = |files: &[(&str, &str)]| {
        files.iter().map(|(file, text)| (file.to_string(), Syntax::of(text))).collect::<Vec<_>>()
    };
    thread::scope(|scope| {
        let shares = files.chunks(files.len().div_ceil(threads).max(1));
        let shares: Vec<_> = shares.map(|files| scope.spawn(move || read(files))).collect();
        shares.into_iter().flat_map(|share| share.join().expect("each text is read")).collect()
    })
}

impl Syntax {
    fn of(text: &str) -> Syntax {
        syn::parse_file(text).map_or_else(
            |error| Syntax {
                failure: Some((error.span().start().line, error.to_string())),
                ..Syntax::default()
            },
            |file| SyntaxReader::default().read(&file),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_and_their_members_are_declared() {
        let source = "use a::{B};\npub enum C {\n    D { r#in: u8 },\n}\nimpl C {\n    fn e() {\n        f(G)\n    }\n}\n\
            #[cfg(all(test, unix))]\nmod h {\n    static I: u8 = 0;\n}\n#[cfg(not(test))]\nmod j;\nk! { union L {} }\n";
        let declarations = Syntax::of(source).declarations;
        let found: Vec<_> =
            declarations.iter().map(|d| (d.kind, d.name.as_str(), d.line, d.for_tests)).collect();
        let expected = [
            (Declared::Type, "C", 2, false),
            (Declared::Other, "D", 3, false),
            (Declared::Other, "in", 3, false),
            (Declared::Function { end: 8 }, "e", 6, false),
            (Declared::Other, "h", 11, true),
            (Declared::Other, "I", 12, true),
            (Declared::File, "j", 15, false),
            (Declared::Type, "L", 16, false),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_tokens_of_a_macro_declare_by_name() {
        let source = "macro_rules! a {\n    ($b:ident) => {\n        /// C.\n        pub(crate) struct C;\n\
            \x20       /// B.\n        enum $b {}\n        impl std::error::Error for C {}\n        impl Error for $b {}\n    };\n}\n\
            d! {\n    #[cfg(test)]\n    fn e(x in 1) {\n        x\n    }\n    fn f(x in 1);\n    struct enum union g\n}\n";
        let syntax = Syntax::of(source);
        let found: Vec<_> =
            syntax.declarations.iter().map(|d| (d.kind, d.name.as_str(), d.line, d.for_tests)).collect();
        let expected = [
            (Declared::Other, "a", 1, false),
            (Declared::Type, "C", 4, false),
            (Declared::Function { end: 15 }, "e", 13, true),
            (Declared::Other, "f", 16, false),
        ];
        assert_eq!(found, expected);
        assert_eq!(syntax.errors, [(7, "C".to_string())]);
        let docs: Vec<_> = syntax.docs.iter().map(|doc| (doc.lines[0].0, doc.item.as_deref())).collect();
        assert_eq!(docs, [(3, Some("C")), (5, None)]);
    }

    #[test]
    fn a_doc_comment_belongs_to_the_item_after_it() {
        let source = "//! Inside.\n\n/// One.\n///  Two.\n#[doc(\n    alias = \"x\"\n)]\npub struct A;\n\
            \nimpl<T: Fn() -> u8> b::B<T> {\n    /// Method.\n    #[inline]\n    pub fn go(&self) {}\n}\n\
            \npub enum C {\n    /// Variant.\n    D,\n}\nmod e {\n    /// F.\n    fn f() {}\n}\n";
        let syntax = Syntax::of(source);
        let found: Vec<_> = syntax.docs.iter().map(|doc| (doc.lines[0].0, doc.item.as_deref())).collect();
        let expected = [(1, None), (3, Some("A")), (11, Some("B::go")), (17, Some("C::D")), (21, Some("f"))];
        assert_eq!(found, expected);
        assert_eq!(syntax.docs[1].lines, [(3, "One.".to_string()), (4, " Two.".to_string())]);
        assert_eq!(syntax.aliases, BTreeSet::from(["x".to_string()]));
    }
}
