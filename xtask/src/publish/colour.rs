//! The colours of Rust code on the site: keywords, strings and comments, by the classes of
//! `site/style.css`. `html.rs` calls `rust` for each block of code.
//!
//! A scan over letters is enough for the guide's code. It has no raw strings, and the scan does not
//! know them. The text of the code, without the tags, must stay as it is.

use super::svg::escaped;

const KEYWORDS: [&str; 34] = [
    "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum", "false", "fn",
    "for", "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub", "ref", "return", "self",
    "static", "struct", "trait", "true", "type", "use", "where", "while",
];

/// The code as HTML.
pub(super) fn rust(code: &str) -> String {
    let mut html = String::new();
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let (class, length) = if rest.starts_with("//") {
            ("c", rest.find('\n').unwrap_or(rest.len()))
        } else if first == '"' {
            ("s", string(rest))
        } else if first.is_alphanumeric() || first == '_' {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
            // `b"..."` is a string of bytes.
            match &rest[..end] {
                "b" if rest[end..].starts_with('"') => ("s", end + string(&rest[end..])),
                word if KEYWORDS.contains(&word) => ("k", end),
                _ => ("", end),
            }
        } else {
            ("", first.len_utf8())
        };
        let (part, after) = rest.split_at(length);
        match class {
            "" => html.push_str(&escaped(part)),
            _ => html.push_str(&format!("<span class=\"{class}\">{}</span>", escaped(part))),
        }
        rest = after;
    }
    html
}

/// The length of the string literal at the beginning.
fn string(text: &str) -> usize {
    let mut escape = false;
    let end = text.char_indices().skip(1).find(|(_, c)| {
        let ends = *c == '"' && !escape;
        escape = *c == '\\' && !escape;
        ends
    });
    end.map_or(text.len(), |(at, _)| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_strings_and_comments() {
        assert_eq!(
            rust("let letter = b\"a \\\" b\"; // for <you>\n"),
            "<span class=\"k\">let</span> letter = <span class=\"s\">b&quot;a \\&quot; b&quot;</span>; \
             <span class=\"c\">// for &lt;you&gt;</span>\n"
        );
    }

    #[test]
    fn no_letter_is_lost() {
        let code = "fn f(&self) -> Vec<u8> { \"ä\".into() } // end";
        let html = rust(code);
        let mut text = String::new();
        let mut tag = false;
        for c in html.chars() {
            match c {
                '<' => tag = true,
                '>' => tag = false,
                c if !tag => text.push(c),
                _ => {}
            }
        }
        assert_eq!(text, escaped(code));
    }
}
