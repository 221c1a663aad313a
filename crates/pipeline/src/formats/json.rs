//! JSON as regions of a text: values in a row, and the values of a member.
//!
//! | for | there is |
//! |---|---|
//! | the values that follow one another in a text, also over lines | [`values`] |
//! | JSON lines | [`line`](crate::line()), because no line end lies within such a value |
//! | the values of a member, with all else around them unchanged | [`member`] |
//! | text of strings, and strings of text | [`decode_strings`], [`encode_strings`] |
//!
//! This is no wrapper of `serde_json`. A splitter has to say at which byte each value begins and
//! ends, is given the text in chunks that end anywhere, and gives back all bytes unchanged.
//! `serde_json` pulls values out of a reader, and ends at the first mistake.
//!
//! The splitters find values by brackets and quotes, and do not check what lies between. So they
//! take any text, and a mistake within one value does not hide the next one.

use crate::error::StageError;
use crate::item::place::StreamPlace;
use crate::item::{FINISHED, Flow, GO_ON};
use crate::role::{Splitter, Transducer};
use crate::splitters::split::Runs;
use crate::stage::{Sections, Sink, Split, Transduce};
use memchr::memchr2;
use std::sync::Arc;

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// Where a scan is within one value.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
enum InValue {
    /// Nothing of the value has come.
    #[default]
    Nothing,
    /// A number, or one of the three words.
    Word,
    String {
        /// The last byte was a `\` that takes away the meaning of the next one.
        escaped: bool,
        depth: u64,
    },
    /// Within this number of brackets, and in no string.
    Brackets(u64),
}

/// How a scan of some bytes ended.
enum Scan {
    /// All bytes belong to the value, and more may.
    More,
    /// The value has ended before this byte.
    Ended(usize),
}

impl InValue {
    /// Scans on in `bytes`, of which the first one belongs to the value if nothing of it has come.
    fn scan(&mut self, bytes: &[u8]) -> Scan {
        let mut at = 0;
        while at < bytes.len() {
            match self {
                InValue::Nothing => {
                    *self = match bytes[at] {
                        b'"' => InValue::String { escaped: false, depth: 0 },
                        b'{' | b'[' => InValue::Brackets(1),
                        _ => InValue::Word,
                    };
                    at += 1;
                }
                InValue::Word => {
                    let ends = |byte: &u8| is_space(*byte) || b",:\"{}[]".contains(byte);
                    match bytes[at..].iter().position(ends) {
                        Some(length) => return Scan::Ended(at + length),
                        None => return Scan::More,
                    }
                }
                InValue::String { escaped, .. } if *escaped => {
                    *escaped = false;
                    at += 1;
                }
                InValue::String { escaped, depth } => {
                    let Some(found) = memchr2(b'"', b'\\', &bytes[at..]) else { return Scan::More };
                    at += found + 1;
                    if bytes[at - 1] == b'\\' {
                        *escaped = true;
                    } else if *depth == 0 {
                        return Scan::Ended(at);
                    } else {
                        *self = InValue::Brackets(*depth);
                    }
                }
                InValue::Brackets(depth) => {
                    let special = |byte: &u8| b"\"{}[]".contains(byte);
                    let Some(found) = bytes[at..].iter().position(special) else { return Scan::More };
                    at += found + 1;
                    match bytes[at - 1] {
                        b'"' => *self = InValue::String { escaped: false, depth: *depth },
                        b'{' | b'[' => *depth += 1,
                        _ if *depth == 1 => return Scan::Ended(at),
                        _ => *depth -= 1,
                    }
                }
            }
        }
        Scan::More
    }
}

/// True sections that are values, with false ones between them.
#[derive(Debug, Clone, Default)]
struct ValueSections {
    /// The value that is open.
    within: InValue,
    runs: Runs,
}

impl ValueSections {
    /// Passes a chunk on. `seek` says where in the bytes outside of a value the next value begins.
    fn put_chunk<P: Sections<u8>>(
        &mut self,
        mut chunk: &[u8],
        out: &mut P,
        mut seek: impl FnMut(&[u8]) -> Option<usize>,
    ) -> Flow {
        while !chunk.is_empty() {
            if self.within == InValue::Nothing {
                let begin = seek(chunk);
                let (between, rest) = chunk.split_at(begin.unwrap_or(chunk.len()));
                if !between.is_empty() {
                    self.runs.next(false, out)?;
                    out.part_chunk(false, between)?;
                }
                chunk = rest;
                if begin.is_none() {
                    return GO_ON;
                }
            }
            self.runs.next(true, out)?;
            match self.within.scan(chunk) {
                Scan::More => return out.part_chunk(true, chunk),
                Scan::Ended(end) => {
                    out.part_chunk(true, &chunk[..end])?;
                    self.runs.close(out)?;
                    self.within = InValue::Nothing;
                    chunk = &chunk[end..];
                }
            }
        }
        GO_ON
    }
}

/// The stage of [`values`].
#[derive(Debug, Clone)]
struct Values {
    sections: ValueSections,
}

/// Each value of a text is a true section: an object, an array, a string, a number or a word. What
/// lies between is false: white space, and stray commas, colons and closing brackets.
///
/// # Complexity
/// O(length of the text). Nothing is kept but the depth of the brackets.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_chunks, group_by, json};
///
/// let text = "{\"warp\": [1, \"}\"]}\n\n 42 \"we\\\"ft\"[\n]";
/// let values = (from_chunks([text]) >> group_by(json::values())).collect();
/// let values: Vec<_> = values.iter().map(|v| std::str::from_utf8(v).unwrap()).collect();
/// assert_eq!(values, ["{\"warp\": [1, \"}\"]}", "42", "\"we\\\"ft\"", "[\n]"]);
/// ```
pub fn values() -> Splitter<u8, impl Split<u8> + Clone> {
    Splitter::new(Values { sections: ValueSections::default() })
}

impl Split<u8> for Values {
    fn put<P: Sections<u8>>(&mut self, item: &u8, out: &mut P) -> Flow {
        self.put_chunk(std::slice::from_ref(item), out)
    }

    fn put_chunk<P: Sections<u8>>(&mut self, chunk: &[u8], out: &mut P) -> Flow {
        let stray = |byte: &u8| is_space(*byte) || b",:}]".contains(byte);
        self.sections.put_chunk(chunk, out, |bytes| bytes.iter().position(|byte| !stray(byte)))
    }

    fn end<P: Sections<u8>>(&mut self, out: &mut P) -> Flow {
        self.sections.runs.close(out)
    }
}

/// Where [`MemberSeeker`] is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Seek {
    /// Outside of strings and of wanted values.
    Outside,
    /// In a string, of which this number of bytes are those of the name, up to its first escape.
    /// `None`: it is not the name.
    String { matched: Option<usize>, escaped: bool },
    /// After a string. `true`: it was the name.
    AfterString(bool),
    /// After the name and its colon.
    Colon,
    /// At the first byte of a wanted value.
    Value,
}

/// The stage of [`member`].
#[derive(Debug, Clone)]
struct MemberOf {
    seeker: MemberSeeker,
    sections: ValueSections,
}

/// Looks for the name of a member, outside of the values that are wanted.
#[derive(Debug, Clone)]
struct MemberSeeker {
    name: Arc<[u8]>,
    place: Seek,
    /// A string with an escape that may be the name, from its first quote on; empty if there is
    /// none. It is kept because an escape may be cut, and it is six times the name at most.
    raw: Vec<u8>,
}

/// The value of each member `name` is a true section, at any depth, and all else is false. Within
/// such a value, members of that name belong to the value.
///
/// The name is compared as text: an escape in it is the character that it stands for.
///
/// # Complexity
/// O(length of the text). Nothing is kept but the depth of the brackets and a name with escapes, up
/// to six times the length of `name`.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{foreach, from_chunks, id, json, substitute};
///
/// let lines = "{\"user\": \"ann\", \"key\": [1, 2]}\n{\"key\":true}\n";
/// let hidden = foreach(json::member("key"), substitute(b"null"), id());
/// let text = (from_chunks([lines]) >> hidden).collect();
/// assert_eq!(text, b"{\"user\": \"ann\", \"key\": null}\n{\"key\":null}\n");
/// ```
pub fn member(name: &str) -> Splitter<u8, impl Split<u8> + Clone + use<>> {
    let seeker = MemberSeeker { name: name.as_bytes().into(), place: Seek::Outside, raw: Vec::new() };
    Splitter::new(MemberOf { seeker, sections: ValueSections::default() })
}

impl MemberSeeker {
    /// Scans on until the next value that is wanted begins. Returns where. The next call begins
    /// after that value.
    fn seek(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            match &mut self.place {
                Seek::Value => {
                    self.place = Seek::Outside;
                    return Some(at);
                }
                Seek::Outside => {
                    at += memchr::memchr(b'"', &bytes[at..])? + 1;
                    self.place = Seek::String { matched: Some(0), escaped: false };
                }
                Seek::String { escaped, matched } => {
                    let rest = &bytes[at..];
                    let found = match *escaped {
                        true => None,
                        false => memchr2(b'"', b'\\', rest),
                    };
                    let part = match *escaped {
                        true => &rest[..1],
                        false => &rest[..found.unwrap_or(rest.len())],
                    };
                    *escaped = false;
                    at += part.len() + usize::from(found.is_some());
                    if self.raw.is_empty() {
                        let goes_on = |count: &usize| self.name[*count..].starts_with(part);
                        *matched = matched.filter(goes_on).map(|count| count + part.len());
                    } else if self.raw.len() + part.len() <= 6 * self.name.len() + 1 {
                        self.raw.extend_from_slice(part);
                    } else {
                        *matched = None;
                        self.raw.clear();
                    }
                    match found.map(|found| rest[found]) {
                        Some(b'\\') => {
                            *escaped = true;
                            if let (Some(count), true) = (*matched, self.raw.is_empty()) {
                                self.raw.push(b'"');
                                self.raw.extend_from_slice(&self.name[..count]);
                            }
                            if matched.is_some() {
                                self.raw.push(b'\\');
                            }
                        }
                        Some(_) if self.raw.is_empty() => {
                            self.place = Seek::AfterString(*matched == Some(self.name.len()));
                        }
                        Some(_) => {
                            self.raw.push(b'"');
                            let mut text = Vec::with_capacity(self.raw.len());
                            let is_name = decode(&self.raw, &mut text).is_ok() && text == *self.name;
                            self.raw.clear();
                            self.place = Seek::AfterString(is_name);
                        }
                        None => {}
                    }
                }
                Seek::AfterString(is_name) => match bytes[at] {
                    byte if is_space(byte) => at += 1,
                    b':' if *is_name => {
                        self.place = Seek::Colon;
                        at += 1;
                    }
                    _ => self.place = Seek::Outside,
                },
                Seek::Colon => match bytes[at] {
                    byte if is_space(byte) => at += 1,
                    b',' | b':' | b'}' | b']' => self.place = Seek::Outside,
                    _ => self.place = Seek::Value,
                },
            }
        }
        None
    }
}

impl Split<u8> for MemberOf {
    fn put<P: Sections<u8>>(&mut self, item: &u8, out: &mut P) -> Flow {
        self.put_chunk(std::slice::from_ref(item), out)
    }

    fn put_chunk<P: Sections<u8>>(&mut self, chunk: &[u8], out: &mut P) -> Flow {
        let MemberOf { seeker, sections } = self;
        sections.put_chunk(chunk, out, |bytes| seeker.seek(bytes))
    }

    fn end<P: Sections<u8>>(&mut self, out: &mut P) -> Flow {
        self.sections.runs.close(out)
    }
}

/// The stage of [`encode_strings`].
#[derive(Debug, Clone)]
struct EncodeStrings {
    string: Vec<u8>,
}

/// Makes a JSON string of each list of bytes, which is to be UTF-8.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{append, concatenate, from_chunks, group_by, json, line};
///
/// let strings = group_by(line()) >> json::encode_strings() >> append(b"\n") >> concatenate();
/// let text = (from_chunks(["a \"warp\"\n\tweft\n"]) >> strings).collect();
/// assert_eq!(text, b"\"a \\\"warp\\\"\"\n\"\\tweft\"\n");
/// ```
pub fn encode_strings() -> Transducer<[u8], [u8], impl Transduce<[u8], [u8]> + Clone> {
    Transducer::new(EncodeStrings { string: Vec::new() })
}

impl Transduce<[u8], [u8]> for EncodeStrings {
    fn put<S: Sink<[u8]>>(&mut self, item: &[u8], out: &mut S) -> Flow {
        let string = &mut self.string;
        string.clear();
        string.push(b'"');
        let mut rest = item;
        while let Some(at) = rest.iter().position(|byte| *byte < 0x20 || matches!(byte, b'"' | b'\\')) {
            string.extend_from_slice(&rest[..at]);
            match rest[at] {
                byte @ (b'"' | b'\\') => string.extend_from_slice(&[b'\\', byte]),
                b'\n' => string.extend_from_slice(b"\\n"),
                b'\r' => string.extend_from_slice(b"\\r"),
                b'\t' => string.extend_from_slice(b"\\t"),
                byte => {
                    let hex = |digit: u8| b"0123456789abcdef"[usize::from(digit)];
                    string.extend_from_slice(b"\\u00");
                    string.extend_from_slice(&[hex(byte >> 4), hex(byte & 15)]);
                }
            }
            rest = &rest[at + 1..];
        }
        string.extend_from_slice(rest);
        string.push(b'"');
        out.put(string)
    }

    fn end<S: Sink<[u8]>>(&mut self, _out: &mut S) -> Flow {
        GO_ON
    }
}

/// The stage of [`decode_strings`].
#[derive(Debug, Clone)]
struct DecodeStrings {
    text: Vec<u8>,
    place: StreamPlace,
    failure: Option<StageError>,
}

/// Makes the text of each JSON string.
///
/// # Errors
/// It fails at an item that is no JSON string: quotes that are missing or within it, a control
/// character, an escape that does not exist, half of a surrogate pair, bytes that are no UTF-8.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_chunks, group_by, json};
///
/// let texts = group_by(json::values()) >> json::decode_strings();
/// let text = (from_chunks([r#""a \"warp\"" "\u00fc\ud83e\uddf5""#]) >> texts).collect();
/// assert_eq!(text.iter().collect::<Vec<_>>(), ["a \"warp\"".as_bytes(), "ü🧵".as_bytes()]);
/// ```
pub fn decode_strings() -> Transducer<[u8], [u8], impl Transduce<[u8], [u8]> + Clone> {
    Transducer::new(DecodeStrings { text: Vec::new(), place: StreamPlace::default(), failure: None })
}

/// Decodes a JSON string into `text`. An error is the first place in the string where something is
/// wrong, and what.
fn decode(string: &[u8], text: &mut Vec<u8>) -> Result<(), (usize, &'static str)> {
    let decoded = decode_bytes(string, text);
    match std::str::from_utf8(string) {
        Err(error) if decoded.is_ok() || decoded.is_err_and(|(at, _)| at > error.valid_up_to()) => {
            Err((error.valid_up_to(), "bytes that are no UTF-8"))
        }
        _ => decoded,
    }
}

/// As [`decode`], for text that may be no UTF-8.
fn decode_bytes(string: &[u8], text: &mut Vec<u8>) -> Result<(), (usize, &'static str)> {
    let Some(inside) = string.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")) else {
        return Err((0, "no JSON string"));
    };
    let mut at = 0;
    while let Some(byte) = inside.get(at).copied() {
        let place = at + 1;
        at += 1;
        match byte {
            b'"' => return Err((place, "a quote within a string")),
            0..0x20 => return Err((place, "a control character within a string")),
            b'\\' => {}
            _ => {
                let special = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\');
                let plain = inside[at..].iter().position(special).unwrap_or(inside.len() - at);
                text.extend_from_slice(&inside[at - 1..at + plain]);
                at += plain;
                continue;
            }
        }
        let escape = inside.get(at).copied().unwrap_or(0);
        at += 1;
        text.push(match escape {
            b'"' | b'\\' | b'/' => escape,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let wrong = (place, "an escape that is no character");
                let mut code = hex(inside, at).ok_or(wrong)?;
                at += 4;
                if (0xd800..0xdc00).contains(&code) && inside[at..].starts_with(b"\\u") {
                    let low = hex(inside, at + 2).filter(|low| (0xdc00..0xe000).contains(low));
                    code = 0x10000 + ((code - 0xd800) << 10) + (low.ok_or(wrong)? - 0xdc00);
                    at += 6;
                }
                let character = char::from_u32(code).ok_or(wrong)?;
                text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
            _ => return Err((place, "an escape that does not exist")),
        });
    }
    Ok(())
}

/// The four hexadecimal digits at `at`.
fn hex(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + 4)?;
    digits.iter().try_fold(0, |code, digit| Some(code * 16 + char::from(*digit).to_digit(16)?))
}

impl Transduce<[u8], [u8]> for DecodeStrings {
    fn put<S: Sink<[u8]>>(&mut self, item: &[u8], out: &mut S) -> Flow {
        self.text.clear();
        if let Err((at, cause)) = decode(item, &mut self.text) {
            let elements = self.place.elements + at as u64;
            let place = StreamPlace { elements, ..self.place };
            self.failure = Some(StageError::new("json::decode_strings", place, cause));
            return FINISHED;
        }
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
