//! The lexer: cuts a script into words, strings and signs.
//!
//! `parse` in `language/parse.rs` calls [`tokens`]. Every character that is no blank, sign or quote
//! belongs to a word, so the parser itself finds numbers and comparisons among the words.

use super::error::{ScriptError, Span};

/// What a token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenKind {
    /// A bare word.
    Word(String),
    /// `"..."` or `'...'`
    Text(Vec<u8>),
    /// `` `...` ``
    Command(String),
    /// `|`
    Pipe,
    /// `;`
    Semicolon,
    /// `(`
    Open,
    /// `)`
    Close,
}

/// A token, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Where it is.
    pub span: Span,
}

/// Whether a character can be in a bare word.
pub fn is_word(char: char) -> bool {
    !char.is_whitespace() && !"|;()\"'`".contains(char)
}

/// Cuts a script into tokens.
///
/// # Errors
/// A string that does not end, or an unknown escape.
pub fn tokens(text: &str) -> Result<Vec<Token>, ScriptError> {
    let mut made = Vec::new();
    // Some editors begin a file with a byte order mark.
    let mut at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    while let Some(char) = text[at..].chars().next() {
        let begin = at;
        at += char.len_utf8();
        let kind = match char {
            '#' => {
                at = text[at..].find('\n').map_or(text.len(), |end| at + end);
                continue;
            }
            '|' => TokenKind::Pipe,
            ';' => TokenKind::Semicolon,
            '(' => TokenKind::Open,
            ')' => TokenKind::Close,
            '\'' | '`' => {
                let Some(length) = text[at..].find(char) else {
                    return Err(ScriptError::new(
                        Span::new(begin, begin + 1),
                        format!("no {char} ends this text"),
                    ));
                };
                let inner = &text[at..at + length];
                at += length + 1;
                if char == '`' {
                    TokenKind::Command(inner.to_string())
                } else {
                    TokenKind::Text(inner.into())
                }
            }
            '"' => TokenKind::Text(escaped(text, begin, &mut at)?),
            _ if char.is_whitespace() => continue,
            _ => {
                at = text[at..].find(|char| !is_word(char)).map_or(text.len(), |end| at + end);
                TokenKind::Word(text[begin..at].to_string())
            }
        };
        made.push(Token { kind, span: Span::new(begin, at) });
    }
    Ok(made)
}

/// The bytes of a string with escapes. `at` is behind its first quote, and then behind its last
/// one.
fn escaped(text: &str, begin: usize, at: &mut usize) -> Result<Vec<u8>, ScriptError> {
    let mut bytes = Vec::new();
    loop {
        let open = || ScriptError::new(Span::new(begin, begin + 1), "no \" ends this text");
        let char = text[*at..].chars().next().ok_or_else(open)?;
        let from = *at;
        *at += char.len_utf8();
        match char {
            '"' => return Ok(bytes),
            '\\' => {
                let next = text[*at..].chars().next().ok_or_else(open)?;
                *at += next.len_utf8();
                bytes.push(match next {
                    'n' => b'\n',
                    't' => b'\t',
                    'r' => b'\r',
                    '0' => 0,
                    '\\' | '"' => next as u8,
                    'x' => {
                        let digits =
                            text.get(*at..*at + 2).filter(|two| two.bytes().all(|b| b.is_ascii_hexdigit()));
                        let Some(digits) = digits else {
                            let span = Span::new(from, *at);
                            return Err(ScriptError::new(span, "`\\x` needs two hexadecimal digits"));
                        };
                        *at += 2;
                        u8::from_str_radix(digits, 16).unwrap_or_default()
                    }
                    _ => {
                        let error =
                            ScriptError::new(Span::new(from, *at), format!("there is no escape `\\{next}`"));
                        let help =
                            "there are \\n \\t \\r \\0 \\\\ \\\" \\xHH; within '..' a backslash is itself";
                        return Err(error.with_help(help));
                    }
                });
            }
            _ => bytes.extend_from_slice(&text.as_bytes()[from..*at]),
        }
    }
}
