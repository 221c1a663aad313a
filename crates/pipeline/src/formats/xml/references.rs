//! `escape` and `unescape`: text that is written into a document, and back.

use crate::error::StageError;
use crate::item::place::StreamPlace;
use crate::item::{FINISHED, Flow, GO_ON};
use crate::role::Transducer;
use crate::stage::{Sink, Transduce};
use memchr::memchr;
use std::num::ParseIntError;

/// The stage of [`escape`].
#[derive(Debug, Clone)]
struct Escape {
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
pub fn escape() -> Transducer<[u8], [u8], impl Transduce<[u8], [u8]> + Clone> {
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
struct Unescape {
    text: Vec<u8>,
    place: StreamPlace,
    failure: Option<StageError>,
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
pub fn unescape() -> Transducer<[u8], [u8], impl Transduce<[u8], [u8]> + Clone> {
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
                self.failure = Some(StageError::new("xml::unescape", place, unknown_reference(rest)));
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

    fn failure(&self) -> Option<&StageError> {
        self.failure.as_ref()
    }
}
