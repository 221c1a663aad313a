//! XML as tokens, and elements as regions of a text.
//!
//! | for | there is |
//! |---|---|
//! | tags, text, comments and so on, one by one | [`tokens`], and [`Token`] to look into one |
//! | elements of a name, with all else around them unchanged | [`element`] |
//! | what lies between the tags of an element | [`content`] |
//! | the values of an attribute | [`attribute`] |
//! | text that is written into a document, and back | [`escape`], [`unescape`] |
//!
//! The text is cut by the rules of well-formed XML: a `>` within quotes, a comment or a CDATA
//! section ends no tag. Whether tags match and names are right is not checked.

use super::failure::{StageFailure, StreamPlace};
use super::item::{FINISHED, Flow, GO_ON};
use super::list::Lists;
use super::role::{Splitter, Transducer};
use super::split::Runs;
use super::stage::{Sections, Sink, Split, Transduce};
use memchr::memchr;
use std::num::ParseIntError;
use std::ops::Range;
use std::sync::Arc;

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
    fn attribute_places(&self) -> impl Iterator<Item = (&'a [u8], Range<usize>)> + use<'a> {
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
pub struct Tokens {
    inside: OpenToken,
    /// The bytes of the open token that came in earlier chunks.
    carry: Vec<u8>,
    /// Where the tokens of a chunk end.
    ends: Vec<usize>,
    /// Text goes on chunk by chunk, so a text that reaches over the end of a chunk is several
    /// tokens.
    text_in_parts: bool,
    place: StreamPlace,
    failure: Option<StageFailure>,
}

/// Yields each token of a document: each tag, each comment and so on, and the text between two of
/// them. The lists together are the document, byte by byte.
///
/// A token lies in the block in which it came. Only a token that reaches over the end of a block is
/// copied.
///
/// # Errors
/// It fails at the end of a text within a tag or other markup. The [offset](StageFailure::offset)
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
pub fn tokens() -> Transducer<u8, [u8], Tokens> {
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
    fn for_sections() -> Tokens {
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
            self.failure = Some(StageFailure::new("xml::tokens", self.place, cause));
            return FINISHED;
        }
        self.put_carry(out)
    }

    fn failure(&self) -> Option<&StageFailure> {
        self.failure.as_ref()
    }
}

/// The stage of [`element`] and [`content`].
#[derive(Debug, Clone)]
pub struct Element {
    tokens: Tokens,
    sections: ElementSections,
}

#[derive(Debug, Clone)]
struct ElementSections {
    name: Arc<[u8]>,
    /// The tags of the element belong to its section.
    with_tags: bool,
    /// How many elements of the name are open.
    depth: u64,
    runs: Runs,
}

/// Each element `name`, from its start tag to its end tag, is a true section. All else is false. An
/// element of the name within one belongs to it.
///
/// An element that is not closed reaches to the end of the text, and markup that is not closed is
/// text.
///
/// # Complexity
/// O(length of the text), and the memory of the longest tag, comment or other markup. Text is not
/// kept, however long it is.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_chunks, suppress, wherever, xml};
///
/// let text = "<p>a <i>warp <i>and</i></i><i/> weft<b/></p>";
/// let plain = (from_chunks([text]) >> wherever(suppress(), xml::element("i"))).collect();
/// assert_eq!(plain, b"<p>a  weft<b/></p>");
/// ```
pub fn element(name: &str) -> Splitter<u8, Element> {
    let sections =
        ElementSections { name: name.as_bytes().into(), with_tags: true, depth: 0, runs: Runs::default() };
    Splitter::new(Element { tokens: Tokens::for_sections(), sections })
}

/// What lies between the tags of each element `name` is a true section, and may be empty. All else
/// is false. See [`element`].
///
/// # Examples
/// ```
/// use selvedge::pipeline::{foreach, from_chunks, id, substitute, xml};
///
/// let text = "<user><name>ann</name><key/><key>s3<b>c</b>ret</key></user>";
/// let hidden = foreach(xml::content("key"), substitute(b"*"), id());
/// let text = (from_chunks([text]) >> hidden).collect();
/// assert_eq!(text, b"<user><name>ann</name><key/><key>*</key></user>");
/// ```
pub fn content(name: &str) -> Splitter<u8, Element> {
    let sections =
        ElementSections { name: name.as_bytes().into(), with_tags: false, depth: 0, runs: Runs::default() };
    Splitter::new(Element { tokens: Tokens::for_sections(), sections })
}

/// The stage of [`attribute`].
#[derive(Debug, Clone)]
pub struct AttributeValues {
    tokens: Tokens,
    name: Arc<[u8]>,
    runs: Runs,
}

/// The value of each attribute `name`, as it is written and without its quotes, is a true section,
/// and may be empty. All else is false. The attributes of all tags are looked at, and none in
/// comments and other markup.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{foreach, from_chunks, id, substitute, xml};
///
/// let text = "<a href='x>y' id=\"1\"/><!-- <a href='z'> --><b href=\"\">href='w'</b>";
/// let hidden = foreach(xml::attribute("href"), substitute(b"#"), id());
/// let text = (from_chunks([text]) >> hidden).collect();
/// assert_eq!(text, b"<a href='#' id=\"1\"/><!-- <a href='z'> --><b href=\"#\">href='w'</b>");
/// ```
pub fn attribute(name: &str) -> Splitter<u8, AttributeValues> {
    let name = name.as_bytes().into();
    Splitter::new(AttributeValues { tokens: Tokens::for_sections(), name, runs: Runs::default() })
}

/// Tags become sections, one for each value.
struct MarkAttributes<'a, P> {
    name: &'a [u8],
    runs: &'a mut Runs,
    out: &'a mut P,
}

impl<P: Sections<u8>> MarkAttributes<'_, P> {
    fn other(&mut self, text: &[u8]) -> Flow {
        self.runs.next(false, self.out)?;
        self.out.part_chunk(false, text)
    }
}

impl<P: Sections<u8>> Sink<[u8]> for MarkAttributes<'_, P> {
    fn put(&mut self, text: &[u8]) -> Flow {
        let mut from = 0;
        for (name, value) in Token::of(text).attribute_places() {
            if name == self.name {
                self.other(&text[from..value.start])?;
                self.runs.next(true, self.out)?;
                self.out.part_chunk(true, &text[value.clone()])?;
                self.runs.close(self.out)?;
                from = value.end;
            }
        }
        self.other(&text[from..])
    }
}

impl Split<u8> for AttributeValues {
    fn put<P: Sections<u8>>(&mut self, item: &u8, out: &mut P) -> Flow {
        self.put_chunk(std::slice::from_ref(item), out)
    }

    fn put_chunk<P: Sections<u8>>(&mut self, chunk: &[u8], out: &mut P) -> Flow {
        let AttributeValues { tokens, name, runs } = self;
        tokens.put_chunk(chunk, &mut MarkAttributes { name, runs, out })
    }

    fn end<P: Sections<u8>>(&mut self, out: &mut P) -> Flow {
        let rest = std::mem::take(&mut self.tokens.carry);
        if !rest.is_empty() {
            MarkAttributes { name: &[], runs: &mut self.runs, out }.other(&rest)?;
        }
        self.runs.close(out)
    }
}

/// Tokens become sections.
struct MarkElements<'a, P> {
    sections: &'a mut ElementSections,
    out: &'a mut P,
}

impl<P: Sections<u8>> MarkElements<'_, P> {
    fn part(&mut self, verdict: bool, text: &[u8]) -> Flow {
        self.sections.runs.next(verdict, self.out)?;
        self.out.part_chunk(verdict, text)
    }
}

impl<P: Sections<u8>> Sink<[u8]> for MarkElements<'_, P> {
    fn put(&mut self, text: &[u8]) -> Flow {
        let token = Token::of(text);
        let (with_tags, depth) = (self.sections.with_tags, self.sections.depth);
        let named = token.name() == &*self.sections.name;
        match token.kind() {
            TokenKind::Start if named => {
                self.sections.depth += 1;
                if depth > 0 || with_tags {
                    return self.part(true, text);
                }
                self.part(false, text)?;
                // The section begins, also if nothing follows before the end tag.
                self.sections.runs.next(true, self.out)
            }
            TokenKind::End if named && depth == 1 => {
                self.sections.depth = 0;
                if with_tags {
                    self.part(true, text)?;
                    return self.sections.runs.close(self.out);
                }
                self.sections.runs.close(self.out)?;
                self.part(false, text)
            }
            TokenKind::Empty if named && depth == 0 && with_tags => {
                self.part(true, text)?;
                self.sections.runs.close(self.out)
            }
            kind => {
                self.sections.depth -= u64::from(kind == TokenKind::End && named && depth > 0);
                self.part(depth > 0, text)
            }
        }
    }
}

impl Split<u8> for Element {
    fn put<P: Sections<u8>>(&mut self, item: &u8, out: &mut P) -> Flow {
        self.put_chunk(std::slice::from_ref(item), out)
    }

    fn put_chunk<P: Sections<u8>>(&mut self, chunk: &[u8], out: &mut P) -> Flow {
        self.tokens.put_chunk(chunk, &mut MarkElements { sections: &mut self.sections, out })
    }

    fn end<P: Sections<u8>>(&mut self, out: &mut P) -> Flow {
        let rest = std::mem::take(&mut self.tokens.carry);
        if !rest.is_empty() {
            let verdict = self.sections.depth > 0;
            MarkElements { sections: &mut self.sections, out }.part(verdict, &rest)?;
        }
        self.sections.runs.close(out)
    }
}

/// The stage of [`escape`].
#[derive(Debug, Clone)]
pub struct Escape {
    text: Vec<u8>,
}

/// Makes of each list of bytes what stands for it in a document: `<`, `>`, `&` and quotes become
/// references.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_chunks, group_by, line, xml};
///
/// let text = (from_chunks(["a < b & \"c\""]) >> group_by(line()) >> xml::escape()).collect();
/// assert_eq!(text.iter().next(), Some(&b"a &lt; b &amp; &quot;c&quot;"[..]));
/// ```
pub fn escape() -> Transducer<[u8], [u8], Escape> {
    Transducer::new(Escape { text: Vec::new() })
}

const REFERENCES: [(&str, u8); 5] =
    [("lt", b'<'), ("gt", b'>'), ("amp", b'&'), ("quot", b'"'), ("apos", b'\'')];

impl Transduce<[u8], [u8]> for Escape {
    fn put<S: Sink<[u8]>>(&mut self, item: &[u8], out: &mut S) -> Flow {
        self.text.clear();
        for byte in item {
            match REFERENCES.iter().find(|(_, special)| special == byte) {
                Some((name, _)) => {
                    self.text.push(b'&');
                    self.text.extend_from_slice(name.as_bytes());
                    self.text.push(b';');
                }
                None => self.text.push(*byte),
            }
        }
        out.put(&self.text)
    }

    fn end<S: Sink<[u8]>>(&mut self, _out: &mut S) -> Flow {
        GO_ON
    }
}

/// The stage of [`unescape`].
#[derive(Debug, Clone)]
pub struct Unescape {
    text: Vec<u8>,
    place: StreamPlace,
    failure: Option<StageFailure>,
}

/// Replaces the references in each list of bytes by what they stand for: the five that every
/// document has, and characters by their numbers.
///
/// # Errors
/// It fails at a `&` that begins no such reference, and at the number of a character that no
/// document of XML 1.0 may have: `&#0;`, `&#x1F;`, `&#xFFFE;`.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_chunks, group_by, line, xml};
///
/// let text = |text| from_chunks([text]) >> group_by(line()) >> xml::unescape();
/// assert_eq!(text("&lt;&#252;&#xfc;").collect().iter().next(), Some("<üü".as_bytes()));
/// assert_eq!(text("a &b;").try_collect().unwrap_err().offset(), 2);
/// ```
pub fn unescape() -> Transducer<[u8], [u8], Unescape> {
    Transducer::new(Unescape { text: Vec::new(), place: StreamPlace::default(), failure: None })
}

/// Says what the `&` at the beginning of `rest` begins instead of a reference.
#[cold]
fn unknown_reference(rest: &[u8]) -> String {
    let name_ends = |byte: &u8| !byte.is_ascii_alphanumeric() && !b"#_.:-".contains(byte) && byte.is_ascii();
    let length = rest[1..].iter().position(name_ends).unwrap_or(rest.len() - 1);
    match &rest[1..=length] {
        [] => "a `&` that begins no reference; as text it is written `&amp;`".into(),
        // A name is shown as far as a line has room for it.
        name => {
            let closed = if rest.get(1 + length) == Some(&b';') { ";" } else { "" };
            let is_number = !closed.is_empty() && number(name).is_some();
            let name = String::from_utf8_lossy(&name[..name.len().min(40)]);
            if is_number {
                return format!("`&{name};` is no character of XML");
            }
            format!(
                "`&{name}{closed}` is not known: there are lt, gt, amp, quot, apos and numbers, and a `;`"
            )
        }
    }
}

/// The character for what stands between `&` and `;`.
fn referred(name: &[u8]) -> Option<char> {
    let name = std::str::from_utf8(name).ok()?;
    if let Some((_, byte)) = REFERENCES.iter().find(|(known, _)| *known == name) {
        return Some(char::from(*byte));
    }
    char::from_u32(number(name.as_bytes())?.ok()?).filter(|char| is_character(*char))
}

/// The number of a reference `#..`, or that it is larger than any. `None` if it is no number.
fn number(name: &[u8]) -> Option<Result<u32, ParseIntError>> {
    let number = std::str::from_utf8(name).ok()?.strip_prefix('#')?;
    let (digits, base) = number.strip_prefix('x').map_or((number, 10), |digits| (digits, 16));
    // The parser of numbers would take a sign too.
    let is_number = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(base));
    is_number.then(|| u32::from_str_radix(digits, base))
}

/// Whether a document may have this character: `Char` of XML 1.0.
fn is_character(char: char) -> bool {
    match char {
        '\t' | '\n' | '\r' => true,
        '\u{fffe}' | '\u{ffff}' => false,
        other => other >= ' ',
    }
}

impl Transduce<[u8], [u8]> for Unescape {
    fn put<S: Sink<[u8]>>(&mut self, item: &[u8], out: &mut S) -> Flow {
        self.text.clear();
        let mut rest = item;
        while let Some(at) = memchr(b'&', rest) {
            self.text.extend_from_slice(&rest[..at]);
            rest = &rest[at..];
            let end = memchr(b';', rest);
            let Some((end, character)) = end.and_then(|end| Some((end, referred(&rest[1..end])?))) else {
                let before = (item.len() - rest.len()) as u64;
                let place = StreamPlace { elements: self.place.elements + before, ..self.place };
                self.failure = Some(StageFailure::new("xml::unescape", place, unknown_reference(rest)));
                return FINISHED;
            };
            self.text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            rest = &rest[end + 1..];
        }
        self.text.extend_from_slice(rest);
        self.place.items += 1;
        self.place.elements += item.len() as u64;
        out.put(&self.text)
    }

    fn end<S: Sink<[u8]>>(&mut self, _out: &mut S) -> Flow {
        GO_ON
    }

    fn failure(&self) -> Option<&StageFailure> {
        self.failure.as_ref()
    }
}
