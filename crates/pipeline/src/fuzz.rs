//! The checks of the parsers over any bytes: `csv`, `json`, `xml`, `records` and `gzip`. The fuzz
//! targets under `fuzz/` and the tests of the crate call them.
//!
//! Each function panics if an invariant does not hold. The main invariant is that the cuts of the
//! input into chunks change no output and no failure. A new parser needs a function here and a
//! target in `fuzz/`.

use crate::binary::{self, Prefix};
use crate::csv::{self, Fields};
use crate::*;
use std::fmt::Debug;
use std::ops::ControlFlow;

/// The pieces of `data` if each is `length` bytes long.
fn pieces(data: &[u8], length: usize) -> impl Iterator<Item = &[u8]> {
    data.chunks(length.max(1))
}

/// What a transducer yields, and why it failed.
fn outcome<'a, B, T>(
    stage: &Transducer<u8, B, T>,
    input: impl Iterator<Item = &'a [u8]>,
) -> (B::Store, Option<String>)
where
    B: Item + ?Sized,
    T: Transduce<u8, B> + Clone,
{
    let (mut stage, mut made) = (stage.clone().step(), B::Store::default());
    input.for_each(|piece| made.keep_all(stage.put_chunk(piece)));
    made.keep_all(stage.end());
    let failure = stage.failure().map(ToString::to_string);
    (made, failure)
}

/// A transducer does the same whatever the cuts of its input. Returns what it does.
fn at_every_cut<B, T>(stage: &Transducer<u8, B, T>, data: &[u8]) -> (B::Store, Option<String>)
where
    B: Item + ?Sized,
    B::Store: PartialEq + Debug,
    T: Transduce<u8, B> + Clone,
{
    let whole = outcome(stage, pieces(data, data.len()));
    for length in [1, 2, 3, 7] {
        assert_eq!(outcome(stage, pieces(data, length)), whole, "in pieces of {length}");
    }
    // Every cut in two, of short inputs.
    for cut in 1..data.len().min(64) {
        let (first, second) = data.split_at(cut);
        assert_eq!(outcome(stage, [first, second].into_iter()), whole, "cut at {cut}");
    }
    whole
}

/// What an iteratee reads from the stream, again and again, until the stream has ended or it fails.
fn read_in_turn<I, R>(recipe: &Iteratee<u8, I>, data: &[u8]) -> Vec<R>
where
    I: Consume<u8, Result = Option<R>> + Clone,
{
    let mut stream = from_chunks(data.chunks(3).map(<[u8]>::to_vec)).pull();
    std::iter::from_fn(|| stream.read(recipe.clone()).ok().flatten()).collect()
}

/// The sections of a stream: their verdicts and their bytes.
type SeenSections = Vec<(bool, Vec<u8>)>;

#[derive(Default)]
struct SeeSections {
    sections: SeenSections,
    open: Option<(bool, Vec<u8>)>,
}

impl Sections<u8> for SeeSections {
    fn part(&mut self, verdict: bool, item: &u8) -> Flow {
        let (open, bytes) = self.open.get_or_insert((verdict, Vec::new()));
        assert_eq!(*open, verdict, "one verdict for a section");
        bytes.push(*item);
        ControlFlow::Continue(())
    }

    fn close(&mut self, verdict: bool) -> Flow {
        let section = self.open.take().unwrap_or((verdict, Vec::new()));
        assert_eq!(section.0, verdict, "a section is closed with its verdict");
        self.sections.push(section);
        ControlFlow::Continue(())
    }
}

fn sections<'a, S: Split<u8> + Clone>(
    splitter: &Splitter<u8, S>,
    input: impl Iterator<Item = &'a [u8]>,
) -> SeenSections {
    let (mut splitter, mut seen) = (splitter.clone().into_stage(), SeeSections::default());
    for piece in input {
        assert!(splitter.put_chunk(piece, &mut seen).is_continue());
    }
    assert!(splitter.end(&mut seen).is_continue());
    assert_eq!(seen.open, None, "the last section is closed");
    seen.sections
}

/// A splitter says the same whatever the cuts of its input, and its sections are the input. Returns
/// the sections.
fn split_at_every_cut<S: Split<u8> + Clone>(splitter: &Splitter<u8, S>, data: &[u8]) -> SeenSections {
    let whole = sections(splitter, pieces(data, data.len()));
    let bytes: Vec<u8> = whole.iter().flat_map(|(_, bytes)| bytes).copied().collect();
    assert_eq!(bytes, data, "each byte is in its place");
    for length in [1, 2, 3, 7] {
        assert_eq!(sections(splitter, pieces(data, length)), whole, "in pieces of {length}");
    }
    for cut in 1..data.len().min(64) {
        let (first, second) = data.split_at(cut);
        assert_eq!(sections(splitter, [first, second].into_iter()), whole, "cut at {cut}");
    }
    whole
}

/// CSV: records and regions at every cut; the records are written and read again, also one by one;
/// a column has the fields that the records have.
pub fn csv(data: &[u8]) {
    let (records, failure) = at_every_cut(&csv::records(b','), data);
    let text = (from_iter(records.clone()) >> csv::encode(b',')).collect();
    let again = outcome(&csv::records(b','), pieces(&text, text.len()));
    assert_eq!(again, (records.clone(), None));
    // Regions have the byte order mark in them, and so has a record that is read by itself.
    if data.starts_with("\u{feff}".as_bytes()) {
        return;
    }
    assert_eq!(read_in_turn(&read::csv_record(b','), data), records);
    let rows = split_at_every_cut(&csv::rows(b','), data);
    for wanted in 0..3 {
        let column = split_at_every_cut(&csv::column(b',', wanted), data);
        if failure.is_some() {
            continue;
        }
        let fields = column.iter().filter(|(verdict, _)| *verdict);
        let unquoted = |(_, field): &(bool, Vec<u8>)| match field.strip_prefix(b"\"") {
            Some(rest) => String::from_utf8_lossy(rest.strip_suffix(b"\"").unwrap()).replace("\"\"", "\""),
            None => String::from_utf8_lossy(field).into_owned(),
        };
        let of_records = records.iter().filter_map(|record| record.get(wanted));
        let of_records: Vec<_> =
            of_records.map(|field| String::from_utf8_lossy(field).into_owned()).collect();
        assert_eq!(fields.map(unquoted).collect::<Vec<_>>(), of_records, "column {wanted}");
    }
    if failure.is_none() {
        let blank = |row: &[u8]| matches!(row, b"\n" | b"\r\n" | b"\r");
        let row = |(_, row): &(bool, Vec<u8>)| -> Option<Fields> {
            // Not by `csv::records`, which takes each row for the beginning of a text.
            let made = read_in_turn(&read::csv_record(b','), row);
            assert_eq!(made.len(), usize::from(!blank(row)));
            made.into_iter().next()
        };
        assert_eq!(rows.iter().filter_map(row).collect::<Vec<_>>(), records);
    }
}

/// JSON: regions at every cut; a value that is cut out is one value; values are read one by one;
/// strings are written and read again.
pub fn json(data: &[u8]) {
    let values = split_at_every_cut(&json::values(), data);
    let whole: Vec<_> =
        values.iter().filter(|(verdict, _)| *verdict).map(|(_, value)| value.clone()).collect();
    assert_eq!(read_in_turn(&read::json_value(), data), whole);
    for (verdict, value) in values {
        let again = sections(&json::values(), [&value[..]].into_iter());
        assert_eq!(again, [(verdict, value)]);
    }
    for name in ["a", "", "a\\\"b"] {
        for (verdict, value) in split_at_every_cut(&json::member(name), data) {
            if verdict {
                let again = sections(&json::values(), [&value[..]].into_iter());
                assert_eq!(again, [(true, value)]);
            }
        }
    }
    let strings = group_by(json::values()) >> json::decode_strings();
    let (texts, _) = at_every_cut(&strings, data);
    if std::str::from_utf8(data).is_err() {
        return;
    }
    for text in texts.iter().chain([data]) {
        let encode = group_by(everything()) >> json::encode_strings() >> json::decode_strings();
        let (again, failure) = outcome(&encode, [text].into_iter().filter(|text| !text.is_empty()));
        assert_eq!((again.iter().collect::<Vec<_>>().concat(), failure), (text.to_vec(), None));
    }
}

/// XML: tokens and regions at every cut; the tokens are the text, and are read one by one; escaped
/// text is read again.
pub fn xml(data: &[u8]) {
    let (tokens, failure) = at_every_cut(&xml::tokens(), data);
    let text = tokens.iter().collect::<Vec<_>>().concat();
    assert!(data.starts_with(&text));
    assert_eq!(failure.is_none(), text.len() == data.len());
    assert!(read_in_turn(&read::xml_token(), data).iter().eq(tokens.iter()));
    for token in tokens.iter().map(xml::Token::of) {
        assert_eq!(token.attributes().count(), token.attributes().count());
        let tag = matches!(token.kind(), xml::TokenKind::Start | xml::TokenKind::Empty | xml::TokenKind::End);
        assert!(tag || token.name().is_empty());
    }
    split_at_every_cut(&xml::element("a"), data);
    split_at_every_cut(&xml::content("a"), data);
    let values = split_at_every_cut(&xml::attribute("b"), data).into_iter().filter(|(verdict, _)| *verdict);
    let of_tokens = tokens.iter().flat_map(|token| xml::Token::of(token).attributes());
    let of_tokens = of_tokens.filter(|(name, _)| name == b"b").map(|(_, value)| value.to_vec());
    assert!(values.map(|(_, value)| value).eq(of_tokens));
    let escaped = group_by(everything()) >> xml::escape() >> xml::unescape();
    let (again, failure) = outcome(&escaped, [data].into_iter());
    assert_eq!((again.iter().collect::<Vec<_>>().concat(), failure), (data.to_vec(), None));
}

/// Records of bytes at every cut, and written again.
pub fn records(data: &[u8]) {
    let (lists, failure) = at_every_cut(&binary::fixed(3), data);
    assert_eq!((lists.iter().count(), failure.is_none()), (data.len() / 3, data.len().is_multiple_of(3)));
    let prefixes = [Prefix::U8, Prefix::U16Be, Prefix::U16Le, Prefix::U32Be, Prefix::U32Le, Prefix::Varint];
    for prefix in prefixes {
        let (records, failure) = at_every_cut(&binary::unframe(prefix, 1000), data);
        let mut framing = binary::frame(prefix).step();
        let again: Vec<u8> =
            records.iter().flat_map(|record| framing.put_chunk(Lists::single(record)).to_vec()).collect();
        let (same, none) = outcome(&binary::unframe(prefix, 1000), [&again[..]].into_iter());
        assert_eq!((same, none), (records, None));
        // A varint may be written with more bytes than it needs.
        if prefix != Prefix::Varint {
            assert!(data.starts_with(&again));
            assert_eq!(failure.is_none(), again.len() == data.len());
        }
    }
    for split in [true, false] {
        let lines = if split { group_by(line()) } else { group_by(whole_line()) };
        let (lists, _) = at_every_cut(&lines, data);
        let slow: Vec<&[u8]> = data
            .split_inclusive(|byte| *byte == b'\n')
            .map(|line| if split { line.strip_suffix(b"\n").unwrap_or(line) } else { line })
            .collect();
        assert_eq!(lists.iter().collect::<Vec<_>>(), slow);
    }
}

/// Compressed streams: `gunzip` of any bytes gives the same at every cut, or fails at every cut;
/// what is packed is unpacked.
#[cfg(feature = "gzip")]
pub fn gzip(data: &[u8]) {
    let (whole, failure) = outcome(&gzip::gunzip(), pieces(data, data.len()));
    for length in [1, 2, 3, 7] {
        let (made, failed) = outcome(&gzip::gunzip(), pieces(data, length));
        assert_eq!(failed.is_some(), failure.is_some(), "in pieces of {length}");
        // How much comes before a failure depends on the cuts.
        let same = if failed.is_some() { whole.len().min(made.len()) } else { whole.len().max(made.len()) };
        assert_eq!(made.get(..same), whole.get(..same), "in pieces of {length}");
    }
    let packed = outcome(&gzip::gzip(u32::from(data.first().copied().unwrap_or(0)) % 10), pieces(data, 5));
    assert_eq!(packed.1, None);
    assert_eq!(outcome(&gzip::gunzip(), pieces(&packed.0, 3)), (data.to_vec(), None));
}
