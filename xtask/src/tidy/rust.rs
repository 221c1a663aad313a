//! As much of Rust's surface as the checks need: the lines of a file with code and comment apart
//! (`lines`), and the doc comments with the item that each describes (`docs`). `glossary.rs`,
//! `names.rs`, `papers.rs` and `words.rs` call it.
//!
//! The source must be as rustfmt formats it, because the item is found by the words at the
//! beginning of a line. Macros are not expanded.

/// A line of source, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SourceLine<'a> {
    /// The code of the line. A string literal is reduced to its quotes.
    pub(super) code: String,
    /// The comment of the line with its mark; empty where there is none.
    pub(super) comment: &'a str,
}

/// The construct that the scanner of [`lines`] is in at the end of a line.
#[derive(Clone, Copy)]
enum Scan {
    Code,
    Literal,
    /// A raw string literal, with its number of `#`.
    RawLiteral(usize),
    /// A block comment, with the depth of its nesting.
    Block(usize),
}

/// Every line of a file, its code told apart from its comment.
pub(super) fn lines(source: &str) -> Vec<SourceLine<'_>> {
    let mut scan = Scan::Code;
    source.lines().map(|line| split(line, &mut scan)).collect()
}

fn split<'a>(line: &'a str, scan: &mut Scan) -> SourceLine<'a> {
    let mut code = String::new();
    let mut comment = if matches!(scan, Scan::Block(_)) { line } else { "" };
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let mut taken = first.len_utf8();
        match *scan {
            Scan::Code if rest.starts_with("//") => {
                comment = rest;
                break;
            }
            Scan::Code if rest.starts_with("/*") => {
                comment = rest;
                *scan = Scan::Block(1);
                taken = 2;
            }
            Scan::Code if first == '\'' => {
                taken = quoted(rest);
                code.push_str(&rest[..taken]);
            }
            Scan::Code => {
                code.push(first);
                let after = rest.trim_start_matches('r').trim_start_matches('#');
                if first == '"' {
                    *scan = Scan::Literal;
                } else if first == 'r' && after.starts_with('"') {
                    let hashes = rest[1..].len() - after.len();
                    code.push('"');
                    *scan = Scan::RawLiteral(hashes);
                    taken = 1 + hashes + 1;
                }
            }
            Scan::Literal if first == '\\' => {
                taken += rest[1..].chars().next().map_or(0, char::len_utf8);
            }
            Scan::Literal if first == '"' => {
                code.push('"');
                *scan = Scan::Code;
            }
            Scan::RawLiteral(hashes) if first == '"' && rest[1..].starts_with(&"#".repeat(hashes)) => {
                code.push('"');
                *scan = Scan::Code;
                taken += hashes;
            }
            Scan::Block(depth) if rest.starts_with("*/") => {
                *scan = if depth == 1 { Scan::Code } else { Scan::Block(depth - 1) };
                taken = 2;
            }
            Scan::Block(depth) if rest.starts_with("/*") => {
                *scan = Scan::Block(depth + 1);
                taken = 2;
            }
            Scan::Literal | Scan::RawLiteral(_) | Scan::Block(_) => {}
        }
        rest = &rest[taken..];
    }
    SourceLine { code, comment }
}

/// The length of the character literal that `text` begins with, or of the quote of a lifetime.
fn quoted(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    let escaped = chars.next().is_some_and(|(_, c)| c == '\\');
    let mut closing = chars.skip(usize::from(escaped));
    match closing.find(|&(_, c)| c == '\'' || !escaped) {
        Some((at, '\'')) => at + 1,
        _ => 1,
    }
}

/// A block of doc-comment lines.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Doc {
    /// Line of its first line, counted from 1.
    pub(super) line: usize,
    /// Its lines, without the comment marks.
    pub(super) text: Vec<String>,
    /// The item it describes: `Type::method`, or the file's own name for a `//!` block.
    pub(super) item: String,
}

/// Every doc comment of a file. `file_name` stands for the module in blocks that describe it from
/// inside.
pub(super) fn docs(source: &str, file_name: &str) -> Vec<Doc> {
    let lines: Vec<&str> = source.lines().collect();
    let mut docs = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let Some(mark) = ["///", "//!"].into_iter().find(|mark| is_doc(lines[at], mark)) else {
            at += 1;
            continue;
        };
        let start = at;
        let mut text = Vec::new();
        while at < lines.len() && is_doc(lines[at], mark) {
            let line = lines[at].trim_start()[mark.len()..].trim_end();
            text.push(line.strip_prefix(' ').unwrap_or(line).to_string());
            at += 1;
        }
        let item = if mark == "//!" { Some(file_name.to_string()) } else { item_from(&lines, at) };
        if let Some(item) = item {
            docs.push(Doc { line: start + 1, text, item });
        }
    }
    docs
}

fn is_doc(line: &str, mark: &str) -> bool {
    let line = line.trim_start();
    line.starts_with(mark) && !line.starts_with("////")
}

/// The name of the first item at or after line `at`, with that of the type or trait around it.
fn item_from(lines: &[&str], at: usize) -> Option<String> {
    let mut depth = 0_usize; // of brackets in an attribute that spans lines
    for (index, line) in lines.iter().enumerate().skip(at) {
        let text = line.trim();
        if depth > 0 || text.starts_with("#[") {
            depth += text.matches('[').count();
            depth -= text.matches(']').count().min(depth);
            continue;
        }
        if text.is_empty() || text.starts_with("//") {
            continue;
        }
        let name = declared(text).or_else(|| member(text))?;
        return Some(match enclosing(lines, index) {
            Some(outer) => format!("{outer}::{name}"),
            None => name.to_string(),
        });
    }
    None
}

/// The name that a line declares with a keyword: function, type, trait, constant, module, macro.
pub(super) fn declared(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    if let Some(after) = rest.strip_prefix("pub(") {
        rest = after.split_once(')')?.1.trim_start();
    }
    loop {
        let (word, after) = rest.split_once(' ')?;
        let after = after.trim_start();
        match word {
            "pub" | "unsafe" | "async" | "default" | "auto" => rest = after,
            "extern" => rest = after.trim_start_matches(|c| c != ' ').trim_start(),
            "const" if ["fn ", "unsafe ", "extern ", "async "].iter().any(|w| after.starts_with(w)) => {
                rest = after
            }
            "fn" | "struct" | "enum" | "union" | "trait" | "type" | "const" | "mod" | "macro_rules!" => {
                return identifier(after);
            }
            "static" => return identifier(after.strip_prefix("mut ").unwrap_or(after)),
            _ => return None,
        }
    }
}

/// Every name that a file declares, with the variants and fields of its types.
pub(super) fn names(source: &str) -> Vec<&str> {
    let mut names = Vec::new();
    // The indentation of the type that has the line in its body.
    let mut within: Option<usize> = None;
    for line in source.lines().filter(|line| !line.trim().is_empty()) {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        within = within.filter(|outer| indent > *outer);
        if text.starts_with("//") || text.starts_with('#') {
            continue;
        }
        if let Some(name) = declared(text) {
            names.push(name);
            let is_type = ["struct ", "enum ", "union "].iter().any(|keyword| text.contains(keyword));
            if is_type && text.ends_with('{') {
                within = Some(indent);
            }
        } else if within.is_some() {
            names.extend(member(text));
        }
    }
    names
}

/// The name of a variant or field.
fn member(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = line.strip_prefix("pub ").unwrap_or(line);
    let name = identifier(line)?;
    let after = &line[name.len()..];
    let ends = after.is_empty() || [",", "(", " {", ":", " ="].iter().any(|end| after.starts_with(end));
    (ends && !after.starts_with("::")).then_some(name)
}

fn identifier(text: &str) -> Option<&str> {
    let text = text.strip_prefix("r#").unwrap_or(text);
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    (end > 0 && !text.starts_with(|c: char| c.is_ascii_digit())).then(|| &text[..end])
}

/// The type or trait that an indented line stands in.
fn enclosing(lines: &[&str], at: usize) -> Option<String> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut within = indent(lines[at]);
    for line in lines[..at].iter().rev() {
        if line.trim().is_empty()
            || indent(line) >= within
            || line.trim_start().starts_with(['/', '#', '}', ')', '>'])
        {
            continue;
        }
        within = indent(line);
        let text = line.trim_start();
        let text = text.strip_prefix("unsafe ").unwrap_or(text);
        if text.starts_with("impl") {
            return implementor(text).map(str::to_string);
        }
        if !text.starts_with("mod ") && !text.starts_with("pub mod ") && text.ends_with('{') {
            return declared(text).map(str::to_string);
        }
        if within == 0 {
            return None;
        }
    }
    None
}

/// `Type` of `impl<'a, T> Trait<T> for Type<T> {`.
fn implementor(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl")?;
    let rest = if rest.starts_with('<') { after_generics(rest) } else { rest };
    let rest = rest.split_once(" for ").map_or(rest, |(_, implementor)| implementor);
    let rest = rest.trim_start().trim_start_matches(['&', '\'']);
    let path = rest.split(['<', ' ', '{']).next()?;
    identifier(path.rsplit("::").next()?)
}

fn after_generics(text: &str) -> &str {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' if !text[..at].ends_with('-') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[at + 1..];
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_is_told_from_code_and_from_literals() {
        let taken_apart = |source| {
            let lines = lines(source).into_iter();
            lines.map(|line| (line.code, line.comment.to_string())).collect::<Vec<_>>()
        };
        for (source, code, comment) in [
            ("a(); // b", "a(); ", "// b"),
            (r#"a("// \" b"); // c"#, r#"a(""); "#, "// c"),
            (r##"a(r#"" // b"#); // c"##, r#"a(r""); "#, "// c"),
            ("a('\"', '\\'', b'\\\\', &'a b); // c", "a('\"', '\\'', b'\\\\', &'a b); ", "// c"),
            ("a(/* b */ c); // d", "a( c); ", "// d"),
            ("for r in a {", "for r in a {", ""),
        ] {
            assert_eq!(taken_apart(source), [(code.to_string(), comment.to_string())], "{source}");
        }
        let over_lines = taken_apart("a(\"b\n// c\n\"); // d\n/* e\nf /* */\n*/ g");
        let comments: Vec<&str> = over_lines.iter().map(|(_, comment)| comment.as_str()).collect();
        assert_eq!(comments, ["", "", "// d", "/* e", "f /* */", "*/ g"]);
        assert_eq!(over_lines[5].0, " g");
    }

    #[test]
    fn declarations() {
        for (line, name) in [
            ("pub fn spawn<F>(f: F) {", Some("spawn")),
            ("    pub(crate) const unsafe fn raw() {", Some("raw")),
            ("pub unsafe extern \"C\" fn entry() {", Some("entry")),
            ("const NEVER: u32 = 0;", Some("NEVER")),
            ("pub enum Trace {", Some("Trace")),
            ("pub static mut X: u8 = 0;", Some("X")),
            ("macro_rules! each {", Some("each")),
            ("let fn_name = 3;", None),
            ("impl Trace {", None),
        ] {
            assert_eq!(declared(line), name, "{line}");
        }
    }

    #[test]
    fn names_are_those_of_items_and_their_members() {
        let source = "use a::{\n    B,\n};\npub enum C {\n    /// D.\n    D(u8),\n}\nimpl C {\n    fn e() {\n        f(\n            G,\n        )\n    }\n}\n";
        assert_eq!(names(source), ["C", "D", "e"]);
    }

    #[test]
    fn members() {
        assert_eq!(member("    Yield(Thread),"), Some("Yield"));
        assert_eq!(member("    Fork {"), Some("Fork"));
        assert_eq!(member("    pub fd: RawFd,"), Some("fd"));
        assert_eq!(member("    Ret,"), Some("Ret"));
        assert_eq!(member("    std::mem::drop(x);"), None);
    }

    #[test]
    fn a_doc_comment_belongs_to_the_item_after_it() {
        let source = "//! Inside.\n\n/// One.\n/// Two.\n#[doc(\n    alias = \"x\"\n)]\npub struct A;\n\
            \nimpl<T: Fn() -> u8> B<T> {\n    /// Method.\n    #[inline]\n    pub fn go(&self) {}\n}\n\
            \npub enum C {\n    /// Variant.\n    D,\n}\n";
        let found: Vec<(usize, String)> = docs(source, "m").into_iter().map(|d| (d.line, d.item)).collect();
        let expected = [(1, "m"), (3, "A"), (11, "B::go"), (17, "C::D")];
        assert_eq!(found, expected.map(|(line, item)| (line, item.to_string())));
    }

    #[test]
    fn an_item_in_a_module_block_keeps_its_plain_name() {
        let source = "mod a {\n    /// F.\n    fn f() {}\n}\n";
        assert_eq!(docs(source, "m")[0].item, "f");
    }
}
