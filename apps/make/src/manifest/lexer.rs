//! The lexer: tokens between values, and the words of values and paths.
//!
//! The parser of manifests and the reader of dyndep files pull from a `Lexer`. A caller chooses
//! what comes next, because the same bytes mean different things: `token` in the frame of a
//! statement, `name` for an identifier, `path` for one path, `value` for the rest of a line.
//!
//! A path or a value is a list of `Word`s. Words borrow from the file, and variables in them are
//! not evaluated. The rules are those of the section "Lexical syntax" of ninja's manual.

use super::ManifestError;

/// A token: a word or a sign between values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Build,
    Rule,
    Pool,
    Default,
    Include,
    Subninja,
    /// Another word.
    Identifier,
    Equals,
    Colon,
    Pipe,
    DoublePipe,
    PipeAt,
    /// The spaces at the beginning of a line.
    Indent,
    Newline,
    End,
    /// A byte that begins no token.
    Strange,
}

impl Token {
    /// The token as messages name it.
    fn text(self) -> &'static str {
        match self {
            Token::Build => "'build'",
            Token::Rule => "'rule'",
            Token::Pool => "'pool'",
            Token::Default => "'default'",
            Token::Include => "'include'",
            Token::Subninja => "'subninja'",
            Token::Identifier => "identifier",
            Token::Equals => "'='",
            Token::Colon => "':'",
            Token::Pipe => "'|'",
            Token::DoublePipe => "'||'",
            Token::PipeAt => "'|@'",
            Token::Indent => "indent",
            Token::Newline => "newline",
            Token::End => "eof",
            Token::Strange => "lexing error",
        }
    }
}

/// A piece of a value, as the file has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word<'a> {
    Text(&'a [u8]),
    Variable(&'a [u8]),
}

/// A byte that a name may have.
const OF_NAME: u8 = 1;
/// A byte with which the text of a value ends.
const ENDS_VALUE: u8 = 2;
/// A byte with which the text of a path ends.
const ENDS_PATH: u8 = 4;
/// The kinds of all bytes.
const KINDS: [u8; 256] = {
    let mut kinds = [0; 256];
    let mut index = 0;
    while index < kinds.len() {
        kinds[index] = match index as u8 {
            b'$' | b'\n' | b'\r' | 0 => ENDS_VALUE | ENDS_PATH,
            b' ' | b':' | b'|' => ENDS_PATH,
            b'_' | b'.' | b'-' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => OF_NAME,
            _ => 0,
        };
        index += 1;
    }
    kinds
};

/// Reads one file from its beginning to its end.
#[derive(Clone, Debug)]
pub(crate) struct Lexer<'a> {
    file: &'a [u8],
    text: &'a [u8],
    at: usize,
    /// Where the last token or value began.
    last: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(file: &'a [u8], text: &'a [u8]) -> Lexer<'a> {
        Lexer { file, text, at: 0, last: 0 }
    }

    /// Something wrong with the last token or value.
    pub(crate) fn error(&self, message: impl Into<String>) -> ManifestError {
        ManifestError::at(self.file, self.text, self.last, message.into())
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.get(at).copied()
    }

    /// Whether a line ends at `at`, and how long the end is.
    fn line_end(&self, at: usize) -> Option<usize> {
        match self.byte(at)? {
            b'\n' => Some(1),
            b'\r' if self.byte(at + 1) == Some(b'\n') => Some(2),
            _ => None,
        }
    }

    fn spaces(&self, mut at: usize) -> usize {
        while self.byte(at) == Some(b' ') {
            at += 1;
        }
        at
    }

    /// Passes over spaces, and over ends of lines behind a `$`.
    fn skip_blanks(&mut self) {
        loop {
            self.at = self.spaces(self.at);
            match (self.byte(self.at), self.line_end(self.at + 1)) {
                (Some(b'$'), Some(end)) => self.at += 1 + end,
                _ => return,
            }
        }
    }

    /// The next token. Comments and lines of spaces are passed over.
    pub(crate) fn token(&mut self) -> Token {
        loop {
            self.last = self.at;
            let start = self.spaces(self.at);
            match self.byte(start) {
                Some(b'#') => {
                    let rest = &self.text[start..];
                    self.at = memchr::memchr(b'\n', rest).map_or(self.text.len(), |end| start + end + 1);
                }
                _ => match self.line_end(start) {
                    Some(end) => {
                        self.at = start + end;
                        return Token::Newline;
                    }
                    None if start > self.at => {
                        self.at = start;
                        return Token::Indent;
                    }
                    None => break,
                },
            }
        }
        let token = self.mark();
        if !matches!(token, Token::Newline | Token::End | Token::Strange) {
            self.skip_blanks();
        }
        token
    }

    /// The token that begins here: neither a blank nor the end of a line.
    fn mark(&mut self) -> Token {
        let (token, length) = match self.byte(self.at) {
            None | Some(0) => (Token::End, 0),
            Some(b'=') => (Token::Equals, 1),
            Some(b':') => (Token::Colon, 1),
            Some(b'|') => match self.byte(self.at + 1) {
                Some(b'|') => (Token::DoublePipe, 2),
                Some(b'@') => (Token::PipeAt, 2),
                _ => (Token::Pipe, 1),
            },
            _ => match self.word() {
                b"" => (Token::Strange, 1),
                b"build" => (Token::Build, 5),
                b"rule" => (Token::Rule, 4),
                b"pool" => (Token::Pool, 4),
                b"default" => (Token::Default, 7),
                b"include" => (Token::Include, 7),
                b"subninja" => (Token::Subninja, 8),
                other => (Token::Identifier, other.len()),
            },
        };
        self.at += length;
        token
    }

    /// The word of letters that begins here; it may be empty.
    fn word(&self) -> &'a [u8] {
        self.word_at(self.at)
    }

    /// The identifier that was the last token.
    pub(crate) fn identifier(&self) -> &'a [u8] {
        self.word_at(self.last)
    }

    fn word_at(&self, at: usize) -> &'a [u8] {
        let rest = &self.text[at..];
        let other = |byte: &u8| KINDS[usize::from(*byte)] & OF_NAME == 0;
        &rest[..rest.iter().position(other).unwrap_or(rest.len())]
    }

    /// Takes the next token if it is this one.
    pub(crate) fn take(&mut self, token: Token) -> bool {
        // Most statements have few of the tokens that may come. A look at one byte rules them out.
        let may_be = match token {
            Token::Pipe | Token::DoublePipe | Token::PipeAt => {
                matches!(self.byte(self.at), Some(b'|' | b' ' | b'#'))
            }
            Token::Indent => matches!(self.byte(self.at), Some(b' ' | b'#')),
            _ => true,
        };
        if !may_be {
            self.last = self.at;
            return false;
        }
        let before = self.at;
        if self.token() == token {
            return true;
        }
        self.at = before;
        false
    }

    /// Takes the next token, which must be this one.
    pub(crate) fn expect(&mut self, token: Token) -> Result<(), ManifestError> {
        let found = self.token();
        if found == token {
            return Ok(());
        }
        let hint = if token == Token::Colon { " ($ also escapes ':')" } else { "" };
        Err(self.error(format!("expected {}, got {}{hint}", token.text(), found.text())))
    }

    /// A token that no statement begins with.
    pub(crate) fn unexpected(&self, token: Token) -> ManifestError {
        match token {
            Token::Strange if self.byte(self.last) == Some(b'\t') => {
                self.error("tabs are not allowed, use spaces")
            }
            Token::Strange => self.error("lexing error"),
            other => self.error(format!("unexpected {}", other.text())),
        }
    }

    /// Takes a name: of a rule, a variable, a pool.
    pub(crate) fn name(&mut self, expected: &str) -> Result<&'a [u8], ManifestError> {
        self.last = self.at;
        let word = self.word();
        if word.is_empty() {
            return Err(self.error(format!("expected {expected}")));
        }
        self.at += word.len();
        self.skip_blanks();
        Ok(word)
    }

    /// Takes a value up to the end of its line, and that end.
    pub(crate) fn value(&mut self, words: &mut Vec<Word<'a>>) -> Result<(), ManifestError> {
        self.skip_blanks();
        self.words(false, words)?;
        self.at += self.line_end(self.at).unwrap_or(0);
        Ok(())
    }

    /// Takes a path, and the blanks behind it. `false`: there is none.
    pub(crate) fn path(&mut self, words: &mut Vec<Word<'a>>) -> Result<bool, ManifestError> {
        let before = words.len();
        self.words(true, words)?;
        self.skip_blanks();
        Ok(words.len() > before)
    }

    fn words(&mut self, path: bool, words: &mut Vec<Word<'a>>) -> Result<(), ManifestError> {
        self.last = self.at;
        let mut start = self.at;
        loop {
            let rest = &self.text[self.at..];
            let ends = if path { ENDS_PATH } else { ENDS_VALUE };
            self.at +=
                rest.iter().position(|byte| KINDS[usize::from(*byte)] & ends != 0).unwrap_or(rest.len());
            if start < self.at {
                words.push(Word::Text(&self.text[start..self.at]));
            }
            match self.byte(self.at) {
                None | Some(0) => {
                    self.last = self.at;
                    return Err(self.error("unexpected EOF"));
                }
                Some(b'$') => self.escape(words)?,
                Some(b'\r') if self.line_end(self.at).is_none() => {
                    self.last = self.at;
                    return Err(self.error("carriage return within a line"));
                }
                Some(_) => return Ok(()),
            }
            start = self.at;
        }
    }

    /// Takes what begins with a `$`.
    fn escape(&mut self, words: &mut Vec<Word<'a>>) -> Result<(), ManifestError> {
        let dollar = self.at;
        self.at += 1;
        if let Some(end) = self.line_end(self.at) {
            self.at = self.spaces(self.at + end);
            return Ok(());
        }
        match self.byte(self.at) {
            Some(b'$' | b' ' | b':') => {
                words.push(Word::Text(&self.text[self.at..=self.at]));
                self.at += 1;
                return Ok(());
            }
            Some(b'{') => {
                self.at += 1;
                let name = self.word();
                if !name.is_empty() && self.byte(self.at + name.len()) == Some(b'}') {
                    self.at += name.len() + 1;
                    words.push(Word::Variable(name));
                    return Ok(());
                }
            }
            Some(_) => {
                let word = self.word();
                let length = word.iter().position(|byte| *byte == b'.').unwrap_or(word.len());
                if length > 0 {
                    self.at += length;
                    words.push(Word::Variable(&word[..length]));
                    return Ok(());
                }
            }
            None => {}
        }
        self.last = dollar;
        Err(self.error("bad $-escape (literal $ must be written as $$)"))
    }
}
