//! Byte ranges (RFC 9110 §14): parsing, resolving against a length, and multipart/byteranges.
//!
//! **Policy.** The server ignores a `Range` that it cannot read, and one with more than
//! [`RANGES_MAX`] ranges: it sends the whole representation. If no ranges overlap, it sends them in
//! the order of the request. If some overlap, it merges those, and sends all ranges in ascending
//! order. So it sends no byte twice, and a reply is at most [`RANGES_MAX`] part heads longer than
//! the representation.
//!
//! `conditional.rs` reads the field, `representation.rs` resolves it, and `connection/outgoing.rs`
//! writes the parts of a reply with several ranges.

use crate::response::put_number;
use std::hash::{BuildHasher, RandomState};

/// The most ranges that one request may name.
pub const RANGES_MAX: usize = 16;

/// One range of a request, before the length of the representation is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spec {
    /// `first-last`, or `first-` with `last` the largest number.
    Int { first: u64, last: u64 },
    /// `-length`
    Suffix { length: u64 },
}

/// A `Range` field that asks for one to [`RANGES_MAX`] ranges of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeSet {
    specs: Vec<Spec>,
}

/// Bytes `start..end` of a representation; never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The first byte.
    pub start: u64,
    /// The byte after the last one.
    pub end: u64,
}

impl Span {
    /// Length in bytes, at least 1.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u64 {
        self.end - self.start
    }
}

/// A range set resolved against a representation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// Send everything.
    Whole,
    /// Send one span, 206 with `Content-Range`.
    One(Span),
    /// Send several spans as multipart/byteranges.
    Many(Vec<Span>),
    /// No range can be satisfied: send 416.
    NotSatisfiable,
}

impl RangeSet {
    /// Reads the value of a `Range` field. `None` if the server must ignore the field.
    ///
    /// # Examples
    /// ```
    /// use selvedge::http::range::{RangeSet, Resolved, Span};
    /// let set = RangeSet::parse(b"bytes=0-1,-3").unwrap();
    /// let spans = vec![Span { start: 0, end: 2 }, Span { start: 7, end: 10 }];
    /// assert_eq!(set.resolve(10), Resolved::Many(spans));
    /// assert_eq!(RangeSet::parse(b"bytes=5-2"), None);
    /// ```
    pub fn parse(field: &[u8]) -> Option<RangeSet> {
        let (unit, set) = field.split_at_checked(6)?;
        if !unit.eq_ignore_ascii_case(b"bytes=") {
            return None;
        }
        let mut specs = Vec::new();
        for spec in set.split(|&byte| byte == b',') {
            let spec = spec.trim_ascii();
            if spec.is_empty() {
                continue;
            }
            if specs.len() == RANGES_MAX {
                return None;
            }
            specs.push(Spec::parse(spec)?);
        }
        (!specs.is_empty()).then_some(RangeSet { specs })
    }

    /// The parts of a representation of `len` bytes that this set selects.
    ///
    /// An empty representation has no span. But RFC 9110 §14.1.2 calls a suffix of it satisfiable,
    /// so a suffix selects the whole of it.
    pub fn resolve(&self, len: u64) -> Resolved {
        if len == 0 && self.specs.iter().any(|spec| matches!(spec, Spec::Suffix { length: 1.. })) {
            return Resolved::Whole;
        }
        let mut spans: Vec<Span> = self.specs.iter().filter_map(|spec| spec.resolve(len)).collect();
        let mut ascending = spans.clone();
        ascending.sort_unstable();
        if ascending.windows(2).any(|pair| pair[1].start < pair[0].end) {
            ascending.dedup_by(|next, merged| {
                let overlaps = next.start < merged.end;
                if overlaps {
                    merged.end = merged.end.max(next.end);
                }
                overlaps
            });
            spans = ascending;
        }
        match spans[..] {
            [] => Resolved::NotSatisfiable,
            [span] => Resolved::One(span),
            _ => Resolved::Many(spans),
        }
    }
}

impl Spec {
    fn parse(spec: &[u8]) -> Option<Spec> {
        let dash = spec.iter().position(|&byte| byte == b'-')?;
        match (&spec[..dash], &spec[dash + 1..]) {
            (b"", length) => Some(Spec::Suffix { length: number(length)? }),
            (first, b"") => Some(Spec::Int { first: number(first)?, last: u64::MAX }),
            (first, last) => {
                let (first, last) = (number(first)?, number(last)?);
                (first <= last).then_some(Spec::Int { first, last })
            }
        }
    }

    fn resolve(self, len: u64) -> Option<Span> {
        let span = match self {
            Spec::Int { first, last } => Span { start: first, end: last.saturating_add(1).min(len) },
            Spec::Suffix { length } => Span { start: len.saturating_sub(length), end: len },
        };
        (span.start < span.end).then_some(span)
    }
}

/// Reads `1*DIGIT`. A number that does not fit into a `u64` counts as the largest one.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0u64, |n, digit| n.saturating_mul(10).saturating_add(u64::from(digit - b'0'))))
}

/// Appends `bytes 0-1/10`, the value of a `Content-Range` field for `span` of `len` bytes.
pub fn put_content_range(span: Span, len: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"bytes ");
    put_number(span.start, out);
    out.push(b'-');
    put_number(span.end - 1, out);
    out.push(b'/');
    put_number(len, out);
}

/// The body of a multipart/byteranges reply. It has a head and the bytes of a span for each part,
/// and an end mark.
#[derive(Clone, Debug)]
pub struct Parts {
    spans: Vec<Span>,
    boundary: [u8; Parts::BOUNDARY_BYTES],
    content_type: &'static str,
    /// Length of the whole representation.
    len: u64,
}

impl Parts {
    const BOUNDARY_BYTES: usize = 24;

    /// Parts for `spans` of a representation of `len` bytes and type `content_type`. The boundary
    /// is random, so that the author of a file cannot know it and write it into the file.
    pub fn new(spans: Vec<Span>, content_type: &'static str, len: u64) -> Parts {
        let mut boundary = *b"selvedge0000000000000000";
        let mut random = RandomState::new().hash_one(len);
        for digit in &mut boundary[8..] {
            *digit = b"0123456789abcdef"[(random & 15) as usize];
            random >>= 4;
        }
        Parts { spans, boundary, content_type, len }
    }

    /// The spans, in the order in which they are sent.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The boundary between the parts, without its dashes.
    pub fn boundary(&self) -> &[u8] {
        &self.boundary
    }

    /// Appends the head of part `index`, which comes before the bytes of its span.
    ///
    /// # Panics
    /// If there is no such part.
    pub fn put_part_head(&self, index: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\r\n--");
        out.extend_from_slice(&self.boundary);
        out.extend_from_slice(b"\r\nContent-Type: ");
        out.extend_from_slice(self.content_type.as_bytes());
        out.extend_from_slice(b"\r\nContent-Range: ");
        put_content_range(self.spans[index], self.len, out);
        out.extend_from_slice(b"\r\n\r\n");
    }

    /// Appends the end mark, which comes behind the last part.
    pub fn put_end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\r\n--");
        out.extend_from_slice(&self.boundary);
        out.extend_from_slice(b"--\r\n");
    }

    /// The length of the body: part heads, spans and end.
    pub fn content_length(&self) -> u64 {
        let mut framing = Vec::with_capacity(256 * self.spans.len());
        (0..self.spans.len()).for_each(|index| self.put_part_head(index, &mut framing));
        self.put_end(&mut framing);
        framing.len() as u64 + self.spans.iter().map(Span::len).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn resolved(field: &str, len: u64) -> Option<Resolved> {
        Some(RangeSet::parse(field.as_bytes())?.resolve(len))
    }

    fn span(start: u64, end: u64) -> Span {
        Span { start, end }
    }

    #[test]
    fn single_ranges() {
        use Resolved::*;
        for (field, expected) in [
            ("bytes=0-0", Some(One(span(0, 1)))),
            ("BYTES=2-5", Some(One(span(2, 6)))),
            ("bytes=9-", Some(One(span(9, 10)))),
            ("bytes=0-99999999999999999999999", Some(One(span(0, 10)))),
            ("bytes=-3", Some(One(span(7, 10)))),
            ("bytes=-30", Some(One(span(0, 10)))),
            ("bytes= 1-2 ", Some(One(span(1, 3)))),
            ("bytes=,1-2,,", Some(One(span(1, 3)))),
            ("bytes=10-", Some(NotSatisfiable)),
            ("bytes=10-20,30-40", Some(NotSatisfiable)),
            ("bytes=99999999999999999999999-", Some(NotSatisfiable)),
            ("bytes=-0", Some(NotSatisfiable)),
            ("bytes=-0,1-1", Some(One(span(1, 2)))),
            ("bytes=5-2", None),
            ("bytes=1-2,5-2", None),
            ("bytes=", None),
            ("bytes=,", None),
            ("bytes=-", None),
            ("bytes=1", None),
            ("bytes=a-b", None),
            ("bytes=+1-2", None),
            ("bytes=1-2-3", None),
            ("bytes=1 - 2", None),
            ("bytes 1-2", None),
            ("lines=1-2", None),
            ("", None),
        ] {
            assert_eq!(resolved(field, 10), expected, "{field}");
        }
        assert_eq!(resolved("bytes=0-", 0), Some(NotSatisfiable));
        assert_eq!(resolved("bytes=-1", 0), Some(Whole));
        assert_eq!(resolved("bytes=-0", 0), Some(NotSatisfiable));
        assert_eq!(resolved("bytes=0-", u64::MAX), Some(One(span(0, u64::MAX))));
    }

    #[test]
    fn several_ranges() {
        use Resolved::*;
        assert_eq!(resolved("bytes=0-1,4-5", 10), Some(Many(vec![span(0, 2), span(4, 6)])));
        assert_eq!(resolved("bytes=4-5,0-1", 10), Some(Many(vec![span(4, 6), span(0, 2)])));
        assert_eq!(resolved("bytes=0-1,2-3", 10), Some(Many(vec![span(0, 2), span(2, 4)])));
        assert_eq!(resolved("bytes=2-3,0-1", 10), Some(Many(vec![span(2, 4), span(0, 2)])));
        assert_eq!(resolved("bytes=5-7,0-1,6-9", 10), Some(Many(vec![span(0, 2), span(5, 10)])));
        assert_eq!(resolved("bytes=0-5,-8", 10), Some(One(span(0, 10))));
        let many = |n| format!("bytes={}", vec!["0-"; n].join(","));
        assert_eq!(resolved(&many(RANGES_MAX), 10), Some(One(span(0, 10))));
        assert_eq!(resolved(&many(RANGES_MAX + 1), 10), None);
        assert_eq!(resolved(&many(1000), 10), None);
    }

    #[test]
    fn content_length_is_the_length_of_the_parts() {
        let parts = Parts::new(vec![span(0, 2), span(995, 1000)], "text/plain; charset=utf-8", 1000);
        let mut body = Vec::new();
        for (index, span) in parts.spans().iter().enumerate() {
            parts.put_part_head(index, &mut body);
            body.extend(vec![b'x'; span.len() as usize]);
        }
        parts.put_end(&mut body);
        assert_eq!(parts.content_length(), body.len() as u64);
        let boundary = String::from_utf8(parts.boundary().to_vec()).unwrap();
        let expected = format!(
            "\r\n--{boundary}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes 0-1/1000\r\n\r\nxx\
             \r\n--{boundary}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes 995-999/1000\r\n\r\n\
             xxxxx\r\n--{boundary}--\r\n"
        );
        assert_eq!(String::from_utf8(body).unwrap(), expected);
        let other = Parts::new(vec![span(0, 1)], "text/plain", 1000);
        assert_ne!(parts.boundary(), other.boundary());
    }

    /// The slow obvious version: for each range the numbers of the bytes that it names.
    fn oracle(specs: &[(Option<u64>, Option<u64>)], len: u64) -> Vec<Vec<u64>> {
        let named = |&(first, last): &(Option<u64>, Option<u64>)| -> Vec<u64> {
            (0..len)
                .filter(|&byte| match (first, last) {
                    (Some(first), Some(last)) => first <= byte && byte <= last,
                    (Some(first), None) => first <= byte,
                    (None, Some(length)) => byte + length >= len,
                    (None, None) => false,
                })
                .collect()
        };
        specs.iter().map(named).filter(|bytes| !bytes.is_empty()).collect()
    }

    fn specs() -> impl Strategy<Value = Vec<(Option<u64>, Option<u64>)>> {
        let spec = prop_oneof![
            (0u64..40, 0u64..40).prop_map(|(a, b)| (Some(a.min(b)), Some(a.max(b)))),
            (0u64..40).prop_map(|first| (Some(first), None)),
            (0u64..40).prop_map(|length| (None, Some(length))),
        ];
        prop::collection::vec(spec, 1..=RANGES_MAX)
    }

    proptest! {
        #[test]
        fn the_set_and_the_oracle_name_the_same_bytes(specs in specs(), len in 1u64..32) {
            let text = |n: Option<u64>| n.map_or(String::new(), |n| n.to_string());
            let list: Vec<String> = specs.iter().map(|&(a, b)| format!("{}-{}", text(a), text(b))).collect();
            let wanted = oracle(&specs, len);
            let found: Vec<Vec<u64>> = match resolved(&format!("bytes={}", list.join(", ")), len).unwrap() {
                Resolved::One(span) => vec![(span.start..span.end).collect()],
                Resolved::Many(spans) => spans.iter().map(|span| (span.start..span.end).collect()).collect(),
                Resolved::NotSatisfiable => vec![],
                Resolved::Whole => panic!("the representation is not empty"),
            };
            let (wanted_flat, found_flat) = (wanted.concat(), found.concat());
            let distinct: std::collections::BTreeSet<u64> = wanted_flat.iter().copied().collect();
            // Each byte that the request names is sent once, and no other byte.
            prop_assert_eq!(found_flat.iter().copied().collect::<std::collections::BTreeSet<_>>(), distinct.clone());
            prop_assert_eq!(found_flat.len(), distinct.len());
            if wanted_flat.len() == distinct.len() {
                prop_assert_eq!(found, wanted);
            } else {
                prop_assert!(found_flat.is_sorted());
            }
        }

        #[test]
        fn never_panics(field in "(bytes=)?[0-9,\\- ]{0,30}", len: u64) {
            resolved(&field, len);
        }
    }
}
