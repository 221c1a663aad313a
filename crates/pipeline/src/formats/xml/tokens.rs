//! `tokens` cuts a document into tokens, and `Token` looks into one.

use crate::error::StageError;
use crate::item::lists::Lists;
use crate::item::place::StreamPlace;
use crate::item::{FINISHED, Flow, GO_ON};
use crate::role::Transducer;
use crate::stage::{Sink, Transduce};
use memchr::memchr;
use std::ops::Range;

/// One token of a document, as [`tokens`] yields it: a look into its bytes.
///
/// # Examples
/// ```
/// use selvedge::pipeline::xml::{TokenKind, Token};
///
/// let token = Token::of(b"<thread color='red' ply=\"2\"/>");
/// assert_eq!((token.kind(), token.name()), (TokenKind::Empty, &b"thread"[..]));
/// assert_eq!(token.attribute("ply"), Some(&b"2"[..]));
/// let names: Vec<_> = token.attributes().map(|(name, _)| name).collect();
/// assert_eq!(names, [b"color" as &[u8], b"ply"]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    text: &'a [u8],
}

/// What a [`Token`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// Text between tags, as it is written.
    Text,
    /// `<name ..>`
    Start,
    /// `</name>`
    End,
    /// `<name ../>`
    Empty,
    /// `<!-- .. -->`
    Comment,
    /// `<![CDATA[ .. ]]>`
    CData,
    /// `<? .. ?>`
    Instruction,
    /// `<!DOCTYPE ..>`
    Doctype,
}

impl<'a> Token<'a> {
    /// The token with this text.
    pub fn of(text: &'a [u8]) -> Token<'a> {
        Token { text }
    }

    /// What the token is.
    pub fn kind(&self) -> TokenKind {
        match self.text {
            [b'<', b'/', ..] => TokenKind::End,
            [b'<', b'?', ..] => TokenKind::Instruction,
            [b'<', b'!', b'-', ..] => TokenKind::Comment,
            [b'<', b'!', b'[', ..] => TokenKind::CData,
            [b'<', b'!', ..] => TokenKind::Doctype,
            [b'<', .., b'/', b'>'] => TokenKind::Empty,
            [b'<', ..] => TokenKind::Start,
            _ => TokenKind::Text,
        }
    }

    /// The name of a tag, or nothing of another token.
    pub fn name(&self) -> &'a [u8] {
        let after = match self.kind() {
            TokenKind::Start | TokenKind::Empty => &self.text[1..],
            TokenKind::End => &self.text[2..],
            _ => return b"",
        };
        &after[..name_length(after)]
    }

    /// The names and values of a tag's attributes, as they are written, without the quotes.
    pub fn attributes(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let text = self.text;
        self.attribute_places().map(move |(name, value)| (name, &text[value]))
    }

    /// The names of a tag's attributes, and where their values lie in its text.
    pub(super) fn attribute_places(&self) -> impl Iterator<Item = (&'a [u8], Range<usize>)> + use<'a> {
        let text = self.text;
        let mut rest = match text {
            [b'<', b'/' | b'?' | b'!', ..] => b"",
            [b'<', tag @ ..] => &tag[name_length(tag)..],
            _ => b"",
        };
        std::iter::from_fn(move || {
            rest = rest.trim_ascii_start();
            // A name is short, so a search by vectors would begin too late.
            let equals = rest.iter().position(|byte| *byte == b'=')?;
            let name = rest[..equals].trim_ascii_end();
            let value = rest[equals + 1..].trim_ascii_start();
            let (quote, inside) = value.split_first()?;
            if !matches!(quote, b'"' | b'\'') {
                return None;
            }
            let end = memchr(*quote, inside)?;
            rest = &inside[end + 1..];
            let begin = text.len() - inside.len();
            Some((name, begin..begin + end))
        })
    }

    /// The value of an attribute, as it is written.
    pub fn attribute(&self, name: &str) -> Option<&'a [u8]> {
        self.attributes().find(|(found, _)| *found == name.as_bytes()).map(|(_, value)| value)
    }
}

/// How long the name is that a tag begins with.
#[inline]
fn name_length(tag: &[u8]) -> usize {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>');
    tag.iter().position(ends).unwrap_or(tag.len())
}

/// Where the open token is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum OpenToken {
    Text,
    /// After `<`, with fewer bytes than tell what it is.
    Opened,
    /// In a tag: outside of quotes, or within this quote.
    Tag(u8),
    /// In markup that ends with these bytes.
    Until(&'static [u8]),
    /// In a document type: within this quote, and so deep in `<`.
    Doctype {
        quote: u8,
        depth: u32,
    },
    /// In a comment or an instruction within a document type: the place behind its first bytes, its
    /// end, and how deep in `<` it is.
    WithinDoctype {
        since: usize,
        end: &'static [u8],
        depth: u32,
    },
}

/// The bytes that a search through a tag stops at: `>`, and the quotes.
static STOPS_TAG: [bool; 256] = {
    let mut stops = [false; 256];
    stops[b'>' as usize] = true;
    stops[b'"' as usize] = true;
    stops[b'\'' as usize] = true;
    stops
};

/// The stage of [`tokens`].
#[derive(Debug, Clone)]
pub(super) struct Tokens {
    inside: OpenToken,
    /// The bytes of the open token that came in earlier chunks.
    pub(super) carry: Vec<u8>,
    /// Where the tokens of a chunk end.
    ends: Vec<usize>,
    /// Text goes on chunk by chunk, so a text that reaches over the end of a chunk is several
    /// tokens.
    text_in_parts: bool,
    place: StreamPlace,
    failure: Option<StageError>,
}

/// Yields each token of a document: each tag, each comment and so on, and the text between two of
/// them. The lists together are the document, byte by byte.
///
/// A token lies in the block in which it came. Only a token that reaches over the end of a block is
/// copied.
///
/// # Errors
/// It fails at the end of a text within a tag or other markup. The [offset](StageError::offset)
/// is that of its `<`.
///
/// # Complexity
/// O(length of the text), and the memory of the longest token.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{count, filter, from_chunks, xml};
///
/// let text = "<cloth><thread ply='2'/><!-- <thread ply='3'/> --><thread>a > b</thread></cloth>";
/// let plied = filter(|token: &[u8]| xml::Token::of(token).attribute("ply").is_some());
/// assert_eq!((from_chunks([text]) >> xml::tokens() >> plied >> count()).run(), 1);
/// let failed = (from_chunks(["<cloth>", "<thread "]) >> xml::tokens()).try_collect().unwrap_err();
/// assert_eq!(failed.to_string(), "xml::tokens: item 2, offset 7: markup that is not closed");
/// ```
pub fn tokens() -> Transducer<u8, [u8], impl Transduce<u8, [u8]> + Clone> {
    Transducer::new(Tokens::new())
}

impl Tokens {
    fn new() -> Tokens {
        Tokens {
            inside: OpenToken::Text,
            carry: Vec::new(),
            ends: Vec::new(),
            text_in_parts: false,
            place: StreamPlace::default(),
            failure: None,
        }
    }

    /// For a splitter: a section has as many parts as it likes, so no text need be kept.
    pub(super) fn for_sections() -> Tokens {
        Tokens { text_in_parts: true, ..Tokens::new() }
    }

    /// What the open token is, of which these are the first bytes and `<` is the first.
    fn opened(text: &[u8]) -> Option<OpenToken> {
        Some(match text {
            [_, b'?', ..] => OpenToken::Until(b"?>"),
            [_, b'!', b'-', b'-', ..] => OpenToken::Until(b"-->"),
            [_, b'!', b'-'] | [_, b'!'] | [_] => return None,
            [_, b'!', b'[', ..] => OpenToken::Until(b"]]>"),
            [_, b'!', ..] => OpenToken::Doctype { quote: 0, depth: 1 },
            _ => OpenToken::Tag(0),
        })
    }

    /// Looks for the end of the open token, which `text` begins. No end lies before `from`. Returns
    /// the end, or `None` if more bytes are needed.
    #[inline]
    fn end_of(&mut self, text: &[u8], from: usize) -> Option<usize> {
        let mut at = from;
        loop {
            match &mut self.inside {
                OpenToken::Text => return Some(at + memchr(b'<', &text[at..])?),
                OpenToken::Opened => {
                    self.inside = Tokens::opened(text)?;
                    at = match self.inside {
                        OpenToken::Until(b"-->") => 4,
                        OpenToken::Until(b"]]>") => 3,
                        OpenToken::Tag(_) => 1,
                        _ => 2,
                    };
                }
                OpenToken::Tag(within) => {
                    // Names and values are short, so a search by vectors would begin too often.
                    loop {
                        let rest = &text[at..];
                        if *within != 0 {
                            at += rest.iter().position(|byte| byte == within)? + 1;
                            *within = 0;
                            continue;
                        }
                        at += rest.iter().position(|byte| STOPS_TAG[usize::from(*byte)])? + 1;
                        match text[at - 1] {
                            b'>' => return Some(at),
                            quote => *within = quote,
                        }
                    }
                }
                OpenToken::Until(end) => {
                    // The end may have begun in an earlier chunk, but not in what tells its kind.
                    let opening = if end.len() == 2 { 2 } else { 4.min(text.len()) };
                    let begin = at.saturating_sub(end.len() - 1).max(opening);
                    let (last, before) = end.split_last()?;
                    let mut at = begin + before.len();
                    // A search for one byte begins sooner than one for the whole end.
                    loop {
                        at += memchr(*last, text.get(at..)?)?;
                        if text[begin..at].ends_with(before) {
                            return Some(at + 1);
                        }
                        at += 1;
                    }
                }
                OpenToken::Doctype { quote: 0, depth } => {
                    let rest = &text[at..];
                    let found = rest.iter().position(|byte| b"<>\"'-?".contains(byte))?;
                    at += found + 1;
                    match rest[found] {
                        b'<' => *depth += 1,
                        b'>' if *depth == 1 => return Some(at),
                        b'>' => *depth -= 1,
                        b'-' | b'?' => {
                            let end: &[u8] = match &text[..at] {
                                [.., b'<', b'!', b'-', b'-'] => b"-->",
                                [.., b'<', b'?'] => b"?>",
                                _ => continue,
                            };
                            // Its `<` has been counted.
                            self.inside = OpenToken::WithinDoctype { since: at, end, depth: *depth - 1 };
                        }
                        quote => {
                            let depth = *depth;
                            self.inside = OpenToken::Doctype { quote, depth };
                        }
                    }
                }
                OpenToken::WithinDoctype { since, end, depth } => {
                    at += memchr(b'>', &text[at..])? + 1;
                    if text[*since..at].ends_with(end) {
                        self.inside = OpenToken::Doctype { quote: 0, depth: *depth };
                    }
                }
                OpenToken::Doctype { quote, .. } => {
                    at += memchr(*quote, &text[at..])? + 1;
                    *quote = 0;
                }
            }
        }
    }

    /// A token has ended before `rest`.
    fn next_token(&mut self, rest: &[u8]) {
        self.inside = if rest.first() == Some(&b'<') { OpenToken::Opened } else { OpenToken::Text };
    }

    /// The token in `carry` has ended.
    fn put_carry<S: Sink<[u8]>>(&mut self, out: &mut S) -> Flow {
        let flow = if self.carry.is_empty() { GO_ON } else { out.put(&self.carry) };
        self.place.items += u64::from(!self.carry.is_empty());
        self.place.elements += self.carry.len() as u64;
        self.carry.clear();
        flow
    }
}

impl Transduce<u8, [u8]> for Tokens {
    const CHUNKS: bool = true;

    fn put<S: Sink<[u8]>>(&mut self, item: &u8, out: &mut S) -> Flow {
        self.put_chunk(std::slice::from_ref(item), out)
    }

    fn put_chunk<S: Sink<[u8]>>(&mut self, mut chunk: &[u8], out: &mut S) -> Flow {
        if chunk.is_empty() {
            return GO_ON;
        }
        if self.carry.is_empty() {
            self.next_token(chunk);
        } else {
            let carried = self.carry.len();
            let mut carry = std::mem::take(&mut self.carry);
            carry.extend_from_slice(chunk);
            let end = self.end_of(&carry, carried);
            carry.truncate(end.unwrap_or(carry.len()));
            self.carry = carry;
            let Some(end) = end else { return GO_ON };
            self.put_carry(out)?;
            chunk = &chunk[end - carried..];
            self.next_token(chunk);
        }
        self.ends.clear();
        let mut begin = 0;
        while begin < chunk.len() {
            let rest = &chunk[begin..];
            let end = match self.end_of(rest, 0) {
                Some(end) => end,
                None if self.text_in_parts && self.inside == OpenToken::Text => rest.len(),
                None => {
                    self.carry.extend_from_slice(rest);
                    break;
                }
            };
            begin += end;
            self.ends.push(begin);
            self.next_token(&chunk[begin..]);
        }
        let flow =
            if self.ends.is_empty() { GO_ON } else { out.put_chunk(Lists::with_ends(chunk, &self.ends)) };
        self.place.items += self.ends.len() as u64;
        self.place.elements += begin as u64;
        flow
    }

    fn end<S: Sink<[u8]>>(&mut self, out: &mut S) -> Flow {
        if self.inside != OpenToken::Text && !self.carry.is_empty() {
            let cause = "markup that is not closed";
            self.failure = Some(StageError::new("xml::tokens", self.place, cause));
            return FINISHED;
        }
        self.put_carry(out)
    }

    fn failure(&self) -> Option<&StageError> {
        self.failure.as_ref()
    }
}
