//! Rust's tokens: [`tokens`] takes a text apart, and [`code_of`] gives the code of a text without
//! its comments and its layout. Proofs take their digests over `code_of`.
//!
//! The lexer accepts every text. Where a literal or a comment has no end, it goes on to the end of
//! the text. The texts of all tokens, one after another, are the text that was taken apart.

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    White,
    /// A line comment without the end of its line, or a block comment with those within it.
    /// Documentation too.
    Comment,
    /// A keyword or an identifier, `r#` included.
    Word,
    Lifetime,
    Number,
    /// A character, a string or bytes, with prefix and suffix.
    Literal,
    /// One of `()[]{}`.
    Delimiter,
    /// One character of punctuation.
    Mark,
}

/// A token, and its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a str,
}

/// The text of a Rust file without comments, and with its layout made regular: one space stands
/// between two tokens, and nothing between two marks of punctuation that touch (`&&` is another
/// token than `& &`).
///
/// Two texts have the same result if and only if the compiler sees the same tokens in both, but for
/// what comments and places say to it: documentation with its tests, and `line!()`.
pub(crate) fn code_of(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut before = None;
    for token in tokens(text) {
        if !matches!(token.kind, Kind::White | Kind::Comment) {
            let touches = before == Some(Kind::Mark) && token.kind == Kind::Mark;
            if !code.is_empty() && !touches {
                code.push(' ');
            }
            code.push_str(token.text);
        }
        before = Some(token.kind);
    }
    code
}

/// The tokens of a text in their order, white space and comments among them.
pub(crate) fn tokens(text: &str) -> impl Iterator<Item = Token<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (kind, length) = first(rest)?;
        let (text, after) = rest.split_at(length);
        rest = after;
        Some(Token { kind, text })
    })
}

/// The kind and the length of the token that `text` begins with.
fn first(text: &str) -> Option<(Kind, usize)> {
    let first = text.chars().next()?;
    Some(match first {
        _ if first.is_whitespace() => {
            (Kind::White, text.find(|c: char| !c.is_whitespace()).unwrap_or(text.len()))
        }
        '/' if text.starts_with("//") => (Kind::Comment, text.find('\n').unwrap_or(text.len())),
        '/' if text.starts_with("/*") => (Kind::Comment, block(text)),
        '(' | ')' | '[' | ']' | '{' | '}' => (Kind::Delimiter, 1),
        '\'' => match quoted(text) {
            Some(length) => (Kind::Literal, length + word(&text[length..])),
            None => (Kind::Lifetime, 1 + word(&text[1..])),
        },
        '0'..='9' => (Kind::Number, number(text)),
        _ => match literal(text) {
            Some(length) => (Kind::Literal, length + word(&text[length..])),
            None => match word(text) {
                0 => (Kind::Mark, first.len_utf8()),
                length => (Kind::Word, length),
            },
        },
    })
}

/// The length of the block comment that `text` begins with.
fn block(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    at
}

/// The length of the character literal that `text` begins with. A lifetime is none.
fn quoted(text: &str) -> Option<usize> {
    let mut chars = text.char_indices().skip(1);
    let escaped = chars.next().is_some_and(|(_, c)| c == '\\');
    let mut closing = chars.skip(usize::from(escaped));
    closing.find(|&(_, c)| c == '\'' || !escaped).and_then(|(at, c)| (c == '\'').then_some(at + 1))
}

/// The length of the string, the bytes or the byte that `text` begins with, without a suffix.
fn literal(text: &str) -> Option<usize> {
    let prefix =
        ["br", "cr", "r", "b", "c"].into_iter().find(|prefix| text.starts_with(prefix)).unwrap_or("");
    let after = &text[prefix.len()..];
    if prefix == "b" && after.starts_with('\'') {
        return quoted(after).map(|length| prefix.len() + length);
    }
    if prefix.ends_with('r') {
        let hashes = after.len() - after.trim_start_matches('#').len();
        let inside = after[hashes..].strip_prefix('"')?;
        let end = format!("\"{}", "#".repeat(hashes));
        return Some(inside.find(&end).map_or(text.len(), |at| text.len() - inside.len() + at + end.len()));
    }
    let inside = after.strip_prefix('"')?;
    let mut escaped = false;
    let end = inside.find(|c| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    Some(end.map_or(text.len(), |at| text.len() - inside.len() + at + 1))
}

/// The length of the word that `text` begins with, or 0.
fn word(text: &str) -> usize {
    let raw = text.strip_prefix("r#").filter(|name| name.starts_with(begins_word));
    let name = raw.unwrap_or(text);
    if !name.starts_with(begins_word) {
        return 0;
    }
    text.len() - name.len() + name.find(|c| !continues_word(c)).unwrap_or(name.len())
}

fn begins_word(c: char) -> bool {
    c == '_' || c.is_alphabetic()
}

fn continues_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// The length of the number that `text` begins with, its suffix included.
fn number(text: &str) -> usize {
    let digits = |from: usize| text[from..].find(|c| !continues_word(c)).map_or(text.len(), |at| from + at);
    let mut end = digits(0);
    if ["0x", "0o", "0b"].iter().any(|base| text.starts_with(base)) {
        return end;
    }
    let is_digit = |c: char| c.is_ascii_digit() || c == '_';
    if text[..end].chars().all(is_digit) && text[end..].starts_with('.') {
        match text[end + 1..].chars().next() {
            Some('0'..='9') => end = digits(end + 1),
            // A range, or a method of the number.
            Some(c) if c == '.' || begins_word(c) => return end,
            _ => return end + 1,
        }
    }
    let exponent = text[..end].strip_suffix(['e', 'E']);
    let is_float = exponent.is_some_and(|digits| digits.chars().all(|c| is_digit(c) || c == '.'));
    let sign =
        text[end..].starts_with(['+', '-']) && text[end + 1..].starts_with(|c: char| c.is_ascii_digit());
    if is_float && sign { digits(end + 1) } else { end }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Vec<(Kind, &str)> {
        let code = tokens(text).filter(|token| !matches!(token.kind, Kind::White | Kind::Comment));
        code.map(|token| (token.kind, token.text)).collect()
    }

    #[test]
    fn each_token_has_its_kind_and_its_extent() {
        for (kind, texts) in [
            (Kind::Word, &["a", "_", "été", "r#fn", "r", "br", "b1"][..]),
            (Kind::Lifetime, &["'a", "'static", "'_", "'r#fn"]),
            (Kind::Number, &["0", "1_000u32", "0xfe", "1.5", "1.", "1e3", "1.5e-3f64", "2E+1", "1usize"]),
            (
                Kind::Literal,
                &[
                    "'a'",
                    "'\"'",
                    "'\\''",
                    "'\\\\'",
                    "'\\u{1F600}'",
                    "'é'",
                    "b'\\''",
                    "b'x'",
                    "\"\"",
                    "\"// no /* comment\"",
                    "\"\\\"\"",
                    "\"\\\\\"",
                    "b\"x\"",
                    "c\"x\"",
                    "r\"\\\"",
                    "r#\"a\" // \"#",
                    "br##\"\"# \"##",
                    "cr\"\"",
                    "\"é\"suffix",
                    "\"a\nb\"",
                ],
            ),
            (Kind::Delimiter, &["(", "]", "{"]),
            (Kind::Mark, &["&", ":", "#", "→"]),
        ] {
            for text in texts {
                assert_eq!(code(text), [(kind, *text)]);
                // The token ends before what follows it.
                let before_another = format!("{text}; 'b c");
                if *text != "1." {
                    assert_eq!(code(&before_another)[0], (kind, *text), "{before_another}");
                }
            }
        }
    }

    #[test]
    fn tokens_that_touch_are_told_apart() {
        use Kind::{Delimiter, Lifetime, Literal, Mark, Number, Word};
        for (text, expected) in [
            ("0..1", &[(Number, "0"), (Mark, "."), (Mark, "."), (Number, "1")][..]),
            ("1.max", &[(Number, "1"), (Mark, "."), (Word, "max")]),
            ("0xe-3", &[(Number, "0xe"), (Mark, "-"), (Number, "3")]),
            ("1usize-3", &[(Number, "1usize"), (Mark, "-"), (Number, "3")]),
            ("<'a,'b>", &[(Mark, "<"), (Lifetime, "'a"), (Mark, ","), (Lifetime, "'b"), (Mark, ">")]),
            ("'a'/'b'", &[(Literal, "'a'"), (Mark, "/"), (Literal, "'b'")]),
            ("for r in\"r\"", &[(Word, "for"), (Word, "r"), (Word, "in"), (Literal, "\"r\"")]),
            ("#[a]", &[(Mark, "#"), (Delimiter, "["), (Word, "a"), (Delimiter, "]")]),
        ] {
            assert_eq!(code(text), expected, "{text}");
        }
    }

    #[test]
    fn comments_and_layout_are_not_code() {
        let plain = "fn a<'b>(c: &'b str) -> char { d(\"//\", '\"', r#\"/*\"#); 'e' }";
        for other in [
            "// One.\nfn a<'b>(c: &'b str) -> char { d(\"//\", '\"', r#\"/*\"#); 'e' }",
            "//! Two.\n\n/// Three.\nfn a<'b>(c: &'b str) -> char { d(\"//\", '\"', r#\"/*\"#); 'e' } // \"",
            "/** Four. */\nfn a<'b>(c: &'b str)\n  -> char {\n\td(\"//\", '\"', r#\"/*\"#);\n\t'e'\n}\n",
            "fn/* \" /* ' */ // */a<'b>(c: &'b str)->char{d(\"//\",'\"',r#\"/*\"#);'e'}",
        ] {
            assert_eq!(code_of(other), code_of(plain), "{other}");
        }
        assert_eq!(code_of("/* without an end \" "), "");
        assert_eq!(code_of("a/**/b"), "a b");
    }

    #[test]
    fn what_the_compiler_sees_is_code() {
        let different = [
            "a(\"//\")",
            "a(\"// \")",
            "a(\"/\")",
            "a('\"')",
            "a(\"'\")",
            "a(r\"//\")",
            "a(r#\"//\"#)",
            "a(b\"//\")",
            "a(\"\\\"//\")",
            "a(\" //\")",
            "a('a')",
            "a(&'a)",
            "a(& &b)",
            "a(&&b)",
            "a(&b)",
            "ab()",
            "a b()",
            "a(1.0)",
            "a(1. 0)",
            "a(1 .0)",
            "a(1e-3)",
            "a(1e - 3)",
            "a(r#b)",
            "a(r # b)",
            "a(\"a\nb\")",
            "a(\"a b\")",
            "a(\"x\" y)",
            "a(\"x\"y)",
            "a(b'x')",
            "a(b 'x')",
        ];
        for (at, one) in different.iter().enumerate() {
            for other in &different[..at] {
                assert_ne!(code_of(one), code_of(other), "{one} {other}");
            }
        }
    }

    /// On real files: the tokens are the whole text, its code has the same tokens, and comments
    /// between them change nothing.
    #[test]
    fn real_files_keep_their_tokens() {
        let tree = crate::tidy::Tree::read(&crate::workspace::root()).unwrap();
        for (path, text) in tree.files.iter().filter(|(path, _)| path.ends_with(".rs")) {
            // All files would take seconds.
            if !path.starts_with("xtask/") && !path.starts_with("crates/core/") {
                continue;
            }
            let mut whole = String::new();
            let mut commented = String::new();
            for token in tokens(text) {
                whole += token.text;
                commented += token.text;
                if matches!(token.kind, Kind::Comment | Kind::Word | Kind::Delimiter) {
                    commented += "\n/* \" */\n// '\n";
                }
            }
            assert_eq!(whole, *text, "{path}");
            let without = code_of(text);
            assert!(code(&without) == code(text), "{path}");
            assert!(code_of(&commented) == without, "{path}");
        }
    }
}
