//! Conditional requests: entity tags and the order of preconditions (RFC 9110 §8.8.3, §13):
//! [`ETag`], [`Validators`], [`evaluate`].
//!
//! `representation.rs` asks `evaluate` for each request that is answered by a file; `cache.rs`
//! makes the tag of a file. A function of bytes without I/O. A tag that is strong but belongs to
//! two versions of a file would let a client combine their ranges.

use crate::date;
use crate::range::RangeSet;
use crate::request::{Method, Request};
use std::fmt;

/// The validators of a selected representation. [`evaluate`] compares the preconditions with them.
#[derive(Clone, Copy, Debug)]
pub struct Validators {
    /// Its entity tag.
    pub etag: ETag,
    /// When it was last modified, in Unix seconds; `None` if that is not known or before 1970.
    pub modified: Option<u64>,
}

/// The entity tag of a file. It is made from the file's number, the time of its last change and its
/// length.
///
/// The time of the last change is `ctime`. A program can set the time of modification (`mtime`) to
/// any value, but not this one. So two versions of a file have different tags even if an archive or
/// a build gave them the same time of modification.
///
/// The clock of a file system is coarse. If a file was changed within the last second, a second
/// change may leave its time as it is. So its tag is weak until that second is over. A weak tag
/// matches in `If-None-Match`; it does not match in `If-Range`, because a client that combines
/// ranges needs the very same bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ETag {
    /// `W/"` and up to 16 + 16 + 8 + 16 digits, three `-`, and `"`.
    text: [u8; ETag::BYTES_MAX],
    len: u8,
}

impl ETag {
    const BYTES_MAX: usize = 3 + 16 + 1 + 16 + 1 + 8 + 1 + 16 + 1;

    /// The tag of the file with the number `inode` and `len` bytes, last changed at `changed`
    /// (seconds and nanoseconds of Unix time), as seen at `now` (Unix seconds).
    pub fn of_file(inode: u64, changed: (i64, u32), len: u64, now: u64) -> ETag {
        let (seconds, nanos) = changed;
        let mut tag = ETag { text: [0; ETag::BYTES_MAX], len: 0 };
        tag.push(if is_settled(seconds, now) { b"\"" } else { b"W/\"" });
        tag.push_hex(inode);
        tag.push(b"-");
        tag.push_hex(seconds as u64);
        tag.push(b"-");
        tag.push_hex(u64::from(nanos));
        tag.push(b"-");
        tag.push_hex(len);
        tag.push(b"\"");
        tag
    }

    /// The text of the tag in a field.
    pub fn as_bytes(&self) -> &[u8] {
        &self.text[..usize::from(self.len)]
    }

    fn push(&mut self, bytes: &[u8]) {
        let at = usize::from(self.len);
        self.text[at..at + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len() as u8;
    }

    fn push_hex(&mut self, n: u64) {
        let digits = (64 - n.leading_zeros()).div_ceil(4).max(1);
        for digit in (0..digits).rev() {
            self.push(&[b"0123456789abcdef"[(n >> (4 * digit) & 15) as usize]]);
        }
    }

    fn tag(&self) -> Tag<'_> {
        let text = self.as_bytes();
        match text.strip_prefix(b"W/") {
            Some(opaque) => Tag { weak: true, opaque },
            None => Tag { weak: false, opaque: text },
        }
    }
}

/// Whether the second `changed`, in which a file was last changed, is over at `now`. Then each
/// later change gives the file another time.
pub(crate) fn is_settled(changed: i64, now: u64) -> bool {
    changed.saturating_add(1) < i64::try_from(now).unwrap_or(i64::MAX)
}

impl fmt::Debug for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.as_bytes()))
    }
}

/// An entity tag in a field; `opaque` includes the quotes.
#[derive(Clone, Copy)]
struct Tag<'b> {
    weak: bool,
    opaque: &'b [u8],
}

impl<'b> Tag<'b> {
    /// Takes one tag off the front of `field`.
    fn take(field: &'b [u8]) -> Option<(Tag<'b>, &'b [u8])> {
        let (weak, quoted) = match field.strip_prefix(b"W/") {
            Some(quoted) => (true, quoted),
            None => (false, field),
        };
        let inner = quoted.strip_prefix(b"\"")?;
        let end = inner.iter().position(|&byte| byte == b'"')?;
        if inner[..end].iter().any(|&byte| byte <= b' ' || byte == 0x7f) {
            return None;
        }
        let (opaque, rest) = quoted.split_at(end + 2);
        Some((Tag { weak, opaque }, rest))
    }

    fn matches_strongly(self, other: Tag<'_>) -> bool {
        !self.weak && !other.weak && self.opaque == other.opaque
    }

    fn matches_weakly(self, other: Tag<'_>) -> bool {
        self.opaque == other.opaque
    }
}

/// How two tags are compared (RFC 9110 §8.8.3.2).
#[derive(Clone, Copy, PartialEq)]
enum Comparison {
    Strong,
    Weak,
}

/// Whether a field with the lines `lines` is `*`, or lists a tag that matches `etag`. A line is
/// read up to its first error.
fn any_matches<'b>(lines: impl Iterator<Item = &'b [u8]>, etag: &ETag, comparison: Comparison) -> bool {
    let ours = etag.tag();
    for line in lines {
        if line == b"*" {
            return true;
        }
        let mut rest = line;
        loop {
            rest = rest.trim_ascii_start();
            if let Some(behind) = rest.strip_prefix(b",") {
                rest = behind;
                continue;
            }
            let Some((tag, behind)) = Tag::take(rest) else { break };
            let matches = match comparison {
                Comparison::Strong => tag.matches_strongly(ours),
                Comparison::Weak => tag.matches_weakly(ours),
            };
            if matches {
                return true;
            }
            rest = behind.trim_ascii_start();
            if !rest.starts_with(b",") {
                break;
            }
        }
    }
    false
}

/// The answer that the preconditions of a request ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Answer with the whole representation.
    Whole,
    /// Answer with these ranges of it.
    Ranges(RangeSet),
    /// Answer 304.
    NotModified,
    /// Answer 412.
    PreconditionFailed,
}

/// Evaluates the preconditions of a `GET` or `HEAD` request for a representation that exists, in
/// the order of RFC 9110 §13.2.2. `now` is the Unix second that the answer's `Date` will show.
///
/// A date that is malformed or given twice is ignored. A `Range` is ignored unless the method is
/// `GET` and the field can be read. If there is an `If-Range`, it must be the strong entity tag of
/// the representation, or exactly its date of modification. That date must lie before `now`,
/// because otherwise it is not strong.
pub fn evaluate(request: &Request<'_>, validators: &Validators, now: u64) -> Outcome {
    let later_than = |field: Option<&[u8]>| -> Option<bool> {
        let date = date::parse(field?)?;
        Some(validators.modified? > date)
    };
    if request.if_match {
        if !any_matches(request.values("if-match"), &validators.etag, Comparison::Strong) {
            return Outcome::PreconditionFailed;
        }
    } else if later_than(request.if_unmodified_since) == Some(true) {
        return Outcome::PreconditionFailed;
    }
    if request.if_none_match {
        if any_matches(request.values("if-none-match"), &validators.etag, Comparison::Weak) {
            return Outcome::NotModified;
        }
    } else if later_than(request.if_modified_since) == Some(false) {
        return Outcome::NotModified;
    }
    match request.range.and_then(RangeSet::parse) {
        Some(ranges)
            if request.method == Method::Get && if_range_holds(request.if_range, validators, now) =>
        {
            Outcome::Ranges(ranges)
        }
        _ => Outcome::Whole,
    }
}

fn if_range_holds(field: Option<&[u8]>, validators: &Validators, now: u64) -> bool {
    let Some(field) = field else { return true };
    match Tag::take(field) {
        Some((tag, rest)) => rest.is_empty() && tag.matches_strongly(validators.etag.tag()),
        None => {
            date::parse(field).is_some_and(|date| validators.modified == Some(date))
                && validators.modified.is_some_and(|modified| modified < now)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Limits, parse};

    const MODIFIED: u64 = 784_111_777;
    const SAME: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const EARLIER: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const LATER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";
    const OURS: &str = "\"7-2ebc98a1-5-264\"";

    fn outcome_at(now: u64, method: &str, fields: &str) -> Outcome {
        let head = format!("{method} / HTTP/1.1\r\nHost: a\r\n{}\r\n\r\n", fields.replace('\n', "\r\n"));
        let request = parse(head.as_bytes(), &Limits::default()).unwrap().unwrap();
        let etag = ETag::of_file(7, (MODIFIED as i64, 5), 612, now);
        evaluate(&request, &Validators { etag, modified: Some(MODIFIED) }, now)
    }

    fn outcome(fields: &str) -> Outcome {
        outcome_at(MODIFIED + 100, "GET", fields)
    }

    fn ranges(field: &str) -> Outcome {
        Outcome::Ranges(RangeSet::parse(field.as_bytes()).unwrap())
    }

    #[test]
    fn tags_of_files() {
        let tag = |now| ETag::of_file(7, (MODIFIED as i64, 5), 612, now);
        assert_eq!(tag(MODIFIED + 2).as_bytes(), OURS.as_bytes());
        assert_eq!(tag(MODIFIED + 1).as_bytes(), b"W/\"7-2ebc98a1-5-264\"");
        let longest = ETag::of_file(u64::MAX, (-1, u32::MAX), u64::MAX, 9);
        let hex = "ffffffffffffffff";
        assert_eq!(longest.as_bytes(), format!("\"{hex}-{hex}-ffffffff-{hex}\"").as_bytes());
        assert_eq!(ETag::of_file(0, (0, 0), 0, 9).as_bytes(), b"\"0-0-0-0\"");
    }

    /// Files of one length with equal times of modification are told apart.
    #[test]
    fn tags_tell_files_apart() {
        let one = ETag::of_file(7, (MODIFIED as i64, 5), 612, MODIFIED + 9);
        assert!(one != ETag::of_file(8, (MODIFIED as i64, 5), 612, MODIFIED + 9));
        assert!(one != ETag::of_file(7, (MODIFIED as i64, 6), 612, MODIFIED + 9));
        assert!(one != ETag::of_file(7, (MODIFIED as i64, 5), 613, MODIFIED + 9));
    }

    #[test]
    fn single_preconditions() {
        use Outcome::*;
        for (fields, expected) in [
            (format!("If-Match: {OURS}"), Whole),
            ("If-Match: *".into(), Whole),
            (format!("If-Match: \"x\", {OURS}"), Whole),
            (format!("If-Match: \"x\"\nIf-Match: {OURS}"), Whole),
            ("If-Match: \"x\"".into(), PreconditionFailed),
            (format!("If-Match: W/{OURS}"), PreconditionFailed),
            ("If-Match: 7-2ebc98a1-5-264".into(), PreconditionFailed),
            ("If-Match:".into(), PreconditionFailed),
            (format!("If-None-Match: {OURS}"), NotModified),
            (format!("If-None-Match: W/{OURS}"), NotModified),
            ("If-None-Match: *".into(), NotModified),
            (format!("If-None-Match: \"x,y\" ,, W/\"z\",{OURS}"), NotModified),
            (format!("If-None-Match: \"x\"\nIf-None-Match: {OURS}"), NotModified),
            ("If-None-Match: \"x\"".into(), Whole),
            ("If-None-Match: \"*\"".into(), Whole),
            (format!("If-None-Match: x {OURS}"), Whole),
            (format!("If-None-Match: \"x\" {OURS}"), Whole),
            (format!("If-None-Match: w/{OURS}"), Whole),
            (format!("If-Modified-Since: {SAME}"), NotModified),
            (format!("If-Modified-Since: {LATER}"), NotModified),
            (format!("If-Modified-Since: {EARLIER}"), Whole),
            ("If-Modified-Since: yesterday".into(), Whole),
            (format!("If-Modified-Since: {SAME}\nIf-Modified-Since: {SAME}"), Whole),
            (format!("If-Unmodified-Since: {SAME}"), Whole),
            (format!("If-Unmodified-Since: {LATER}"), Whole),
            (format!("If-Unmodified-Since: {EARLIER}"), PreconditionFailed),
            ("If-Unmodified-Since: yesterday".into(), Whole),
        ] {
            assert_eq!(outcome(&fields), expected, "{fields}");
        }
    }

    #[test]
    fn precedence() {
        use Outcome::*;
        for (fields, expected) in [
            // An entity tag overrides the date of the same kind ...
            (format!("If-Match: {OURS}\nIf-Unmodified-Since: {EARLIER}"), Whole),
            (format!("If-None-Match: \"x\"\nIf-Modified-Since: {LATER}"), Whole),
            // ... 412 comes before 304 ...
            (format!("If-None-Match: {OURS}\nIf-Match: \"x\""), PreconditionFailed),
            (format!("If-Modified-Since: {LATER}\nIf-Unmodified-Since: {EARLIER}"), PreconditionFailed),
            // ... and both before the range.
            (format!("If-None-Match: {OURS}\nRange: bytes=0-1"), NotModified),
            (format!("If-Match: {OURS}\nIf-None-Match: \"x\"\nRange: bytes=0-1"), ranges("bytes=0-1")),
        ] {
            assert_eq!(outcome(&fields), expected, "{fields}");
        }
    }

    #[test]
    fn if_range() {
        use Outcome::*;
        for (fields, expected) in [
            ("Range: bytes=0-1".into(), ranges("bytes=0-1")),
            ("Range: lines=0-1".into(), Whole),
            ("Range: bytes=0-1\nRange: bytes=2-3".into(), Whole),
            (format!("Range: bytes=0-1\nIf-Range: {OURS}"), ranges("bytes=0-1")),
            (format!("Range: bytes=0-1\nIf-Range: W/{OURS}"), Whole),
            (format!("Range: bytes=0-1\nIf-Range: {OURS}, {OURS}"), Whole),
            ("Range: bytes=0-1\nIf-Range: \"x\"".into(), Whole),
            ("Range: bytes=0-1\nIf-Range: *".into(), Whole),
            (format!("Range: bytes=0-1\nIf-Range: {SAME}"), ranges("bytes=0-1")),
            (format!("Range: bytes=0-1\nIf-Range: {LATER}"), Whole),
            (format!("Range: bytes=0-1\nIf-Range: {EARLIER}"), Whole),
            (format!("Range: bytes=0-1\nIf-Range: {SAME}\nIf-Range: {SAME}"), Whole),
            (format!("If-Range: {OURS}"), Whole),
        ] {
            assert_eq!(outcome(&fields), expected, "{fields}");
        }
        assert_eq!(outcome_at(MODIFIED + 9, "HEAD", "Range: bytes=0-1"), Whole);
        // Within the second of its modification neither validator is strong.
        let range = format!("Range: bytes=0-1\nIf-Range: {SAME}");
        assert_eq!(outcome_at(MODIFIED, "GET", &range), Whole);
        let range = format!("Range: bytes=0-1\nIf-Range: {OURS}");
        assert_eq!(outcome_at(MODIFIED + 1, "GET", &range), Whole);
    }

    #[test]
    fn without_a_date_only_tags_count() {
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\nIf-Modified-Since: {LATER}\r\n\r\n");
        let request = parse(head.as_bytes(), &Limits::default()).unwrap().unwrap();
        let etag = ETag::of_file(7, (-5, 0), 612, 9);
        assert_eq!(evaluate(&request, &Validators { etag, modified: None }, 9), Outcome::Whole);
    }
}
