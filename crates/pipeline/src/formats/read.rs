//! Parsers that read one value from the front of a stream and leave the rest.
//!
//! | the result is | iteratee |
//! |---|---|
//! | a line, without its end | [`line()`] |
//! | this number of items | [`exactly`] |
//! | a record with its length before it | [`framed`] |
//! | the first record of CSV, behind a byte order mark | [`csv_head`] |
//! | a record of CSV | [`csv_record`] |
//! | a value of JSON | [`json_value`] |
//! | a tag, a text or other token of XML | [`xml_token`] |
//!
//! Each result is `None` if the stream has ended before such a value. Several iteratees read one
//! stream in turn: [`Pulling::read`](crate::Pulling::read) for a generator, `read` of `flow` for a
//! source that waits, and [`Feeding::put_some`](crate::Feeding::put_some) for a holder of your own.
//!
//! [`Consume::put_some`] says how much an iteratee took. A number of JSON or a text of XML ends
//! where the next byte does not belong to it: `looks_ahead` says so, and this byte stays in the
//! stream.

use crate::binary::{Prefix, unframe};
use crate::csv::{self, Fields};
use crate::error::StageError;
use crate::item::place::StreamPlace;
use crate::item::{FINISHED, Flow, GO_ON};
use crate::json;
use crate::role::Iteratee;
use crate::sections::group::group_by;
use crate::stage::{Consume, Sink, Transduce, put_now};
use crate::stages::consume::head;
use crate::xml;
use memchr::memchr;

/// The stage of [`line()`].
#[derive(Debug, Clone)]
struct ReadLine {
    line: Vec<u8>,
    begun: bool,
}

/// The next line, without its end. The last line may lack an end.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{collect, from_chunks, read};
///
/// let mut stream = from_chunks(["3 wa", "rps\nrest"]).pull();
/// assert_eq!(stream.read(read::line()).unwrap().unwrap(), b"3 warps");
/// assert_eq!(stream.read(collect()).unwrap(), b"rest");
/// assert_eq!(stream.read(read::line()).unwrap(), None);
/// ```
pub fn line() -> Iteratee<u8, impl Consume<u8, Result = Option<Vec<u8>>> + Clone> {
    Iteratee::new(ReadLine { line: Vec::new(), begun: false })
}

impl Consume<u8> for ReadLine {
    type Result = Option<Vec<u8>>;

    const CHUNKS: bool = true;

    fn put(&mut self, item: &u8) -> Flow {
        self.put_chunk(std::slice::from_ref(item))
    }

    fn put_chunk(&mut self, chunk: &[u8]) -> Flow {
        self.put_some(chunk).1
    }

    fn put_some(&mut self, chunk: &[u8]) -> (usize, Flow) {
        let end = memchr(b'\n', chunk);
        let length = end.unwrap_or(chunk.len());
        self.begun |= !chunk.is_empty();
        self.line.extend_from_slice(&chunk[..length]);
        match end {
            Some(end) => (end + 1, FINISHED),
            None => (length, GO_ON),
        }
    }

    fn end(self) -> Option<Vec<u8>> {
        self.begun.then_some(self.line)
    }
}

/// The stage of [`exactly`].
#[derive(Debug, Clone)]
struct ReadExactly<E> {
    items: Vec<E>,
    count: usize,
    failure: Option<StageError>,
}

/// The next `count` items.
///
/// # Errors
/// If the stream ends after some of them.
///
/// # Panics
/// If `count` is 0.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_iter, read};
///
/// let mut numbers = from_iter(1..=5).pull();
/// assert_eq!(numbers.read(read::exactly(2)).unwrap(), Some(vec![1, 2]));
/// assert_eq!(numbers.read(read::exactly(2)).unwrap(), Some(vec![3, 4]));
/// let failed = numbers.read(read::exactly(2)).unwrap_err();
/// let told = "read::exactly: item 2, offset 1: the stream ends within a record";
/// assert_eq!(failed.to_string(), told);
/// ```
pub fn exactly<E: Clone + 'static>(
    count: usize,
) -> Iteratee<E, impl Consume<E, Result = Option<Vec<E>>> + Clone> {
    assert!(count > 0, "read::exactly of no items");
    Iteratee::new(ReadExactly { items: Vec::new(), count, failure: None })
}

impl<E: Clone + 'static> Consume<E> for ReadExactly<E> {
    type Result = Option<Vec<E>>;

    const CHUNKS: bool = true;

    fn put(&mut self, item: &E) -> Flow {
        self.put_chunk(std::slice::from_ref(item))
    }

    fn put_chunk(&mut self, chunk: &[E]) -> Flow {
        self.put_some(chunk).1
    }

    fn put_some(&mut self, chunk: &[E]) -> (usize, Flow) {
        let taken = chunk.len().min(self.count - self.items.len());
        self.items.extend_from_slice(&chunk[..taken]);
        (taken, if self.items.len() == self.count { FINISHED } else { GO_ON })
    }

    fn finish(&mut self) -> Flow {
        let items = self.items.len() as u64;
        if (1..self.count as u64).contains(&items) && self.failure.is_none() {
            let place = StreamPlace { items, elements: items };
            let cause = "the stream ends within a record";
            self.failure = Some(StageError::new("read::exactly", place, cause));
        }
        GO_ON
    }

    fn end(self) -> Option<Vec<E>> {
        (!self.items.is_empty()).then_some(self.items)
    }

    fn failure(&self) -> Option<&StageError> {
        self.failure.as_ref()
    }
}

/// The stage of [`framed`], [`json_value`] and [`xml_token`]: the first list that a stage yields.
#[derive(Debug, Clone)]
struct ReadList<T> {
    stage: T,
    list: Option<Vec<u8>>,
    over: bool,
    /// Whether the end of such a list is seen only at the byte behind it.
    looks_ahead: fn(&[u8]) -> bool,
}

impl<T: Transduce<u8, [u8]>> ReadList<T> {
    fn new(stage: T, looks_ahead: fn(&[u8]) -> bool) -> Iteratee<u8, ReadList<T>> {
        Iteratee::new(ReadList { stage, list: None, over: false, looks_ahead })
    }
}

/// Keeps the first list, and breaks.
struct KeepFirst<'a>(&'a mut Option<Vec<u8>>);

impl Sink<[u8]> for KeepFirst<'_> {
    fn put(&mut self, item: &[u8]) -> Flow {
        *self.0 = Some(item.to_vec());
        FINISHED
    }
}

impl<T: Transduce<u8, [u8]>> Consume<u8> for ReadList<T> {
    type Result = Option<Vec<u8>>;

    fn put(&mut self, item: &u8) -> Flow {
        let flow = put_now(&mut self.stage, item, &mut KeepFirst(&mut self.list));
        self.over |= flow.is_break();
        flow
    }

    fn put_some(&mut self, chunk: &[u8]) -> (usize, Flow) {
        for (place, byte) in chunk.iter().enumerate() {
            if self.put(byte).is_break() {
                let ahead = self.list.as_deref().is_some_and(self.looks_ahead);
                return (place + usize::from(!ahead), FINISHED);
            }
        }
        (chunk.len(), GO_ON)
    }

    fn finish(&mut self) -> Flow {
        if !self.over {
            self.over = true;
            let _over = self.stage.end(&mut KeepFirst(&mut self.list));
        }
        GO_ON
    }

    fn end(self) -> Option<Vec<u8>> {
        self.list
    }

    fn failure(&self) -> Option<&StageError> {
        self.stage.failure()
    }
}

/// The next record, which has its length before it.
///
/// # Errors
/// As [`unframe`].
///
/// # Complexity
/// A call for each byte.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{binary::Prefix, from_chunks, read};
///
/// let mut stream = from_chunks(["\x04wa", "rp!"]).pull();
/// assert_eq!(stream.read(read::framed(Prefix::U8, 100)).unwrap().unwrap(), b"warp");
/// assert_eq!(stream.next_chunk(), Some(&b"!"[..]));
/// ```
pub fn framed(
    prefix: Prefix,
    limit: u64,
) -> Iteratee<u8, impl Consume<u8, Result = Option<Vec<u8>>> + Clone> {
    ReadList::new(unframe(prefix, limit).stage, |_| false)
}

/// The first record of a text of CSV, as [`csv::records`] reads it: a byte order mark before it
/// belongs to no field. Its line end is taken too.
///
/// # Errors
/// As [`csv::records`].
///
/// # Complexity
/// A call for each byte.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_chunks, read};
///
/// let mut stream = from_chunks(["\u{feff}name,\"of\nwarp\"\n1,2\n"]).pull();
/// let head = stream.read(read::csv_head(b',')).unwrap().unwrap();
/// assert_eq!(head.iter().collect::<Vec<_>>(), [&b"name"[..], b"of\nwarp"]);
/// assert_eq!(stream.next_chunk(), Some(&b"1,2\n"[..]));
/// ```
pub fn csv_head(delimiter: u8) -> Iteratee<u8, impl Consume<u8, Result = Option<Fields>> + Clone> {
    csv::records(delimiter) >> head()
}

/// The next record of CSV, wherever it stands in a text. Its line end is taken too. The character
/// U+FEFF at its beginning belongs to its first field; [`csv_head`] passes over it.
///
/// # Errors
/// As [`csv::records`].
///
/// # Complexity
/// A call for each byte.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_chunks, read};
///
/// let mut stream = from_chunks(["name\n\u{feff}1,\"2\n\"\n3"]).pull();
/// let _head = stream.read(read::csv_head(b',')).unwrap();
/// let record = stream.read(read::csv_record(b',')).unwrap().unwrap();
/// assert_eq!(record.iter().collect::<Vec<_>>(), ["\u{feff}1".as_bytes(), b"2\n"]);
/// assert_eq!(stream.next_chunk(), Some(&b"3"[..]));
/// ```
pub fn csv_record(delimiter: u8) -> Iteratee<u8, impl Consume<u8, Result = Option<Fields>> + Clone> {
    csv::later_records(delimiter) >> head()
}

/// The next value of JSON, as [`json::values`] finds it. What lies before it is taken: white space,
/// commas and colons.
///
/// # Complexity
/// A call for each byte.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_chunks, read};
///
/// let mut stream = from_chunks(["{\"warp\": [1]}42", "\nrest"]).pull();
/// assert_eq!(stream.read(read::json_value()).unwrap().unwrap(), b"{\"warp\": [1]}");
/// assert_eq!(stream.read(read::json_value()).unwrap().unwrap(), b"42");
/// assert_eq!(stream.next_chunk(), Some(&b"\nrest"[..]));
/// ```
pub fn json_value() -> Iteratee<u8, impl Consume<u8, Result = Option<Vec<u8>>> + Clone> {
    // Brackets and quotes end a value themselves. Numbers and words do not.
    ReadList::new(group_by(json::values()).stage, |value| !b"{[\"".contains(&value[0]))
}

/// The next token of a document, as [`xml::tokens`] finds it.
///
/// # Errors
/// As [`xml::tokens`].
///
/// # Complexity
/// A call for each byte.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_chunks, read};
///
/// let mut stream = from_chunks(["<a k='1'>te", "xt</a>"]).pull();
/// assert_eq!(stream.read(read::xml_token()).unwrap().unwrap(), b"<a k='1'>");
/// assert_eq!(stream.read(read::xml_token()).unwrap().unwrap(), b"text");
/// assert_eq!(stream.next_chunk(), Some(&b"</a>"[..]));
/// ```
pub fn xml_token() -> Iteratee<u8, impl Consume<u8, Result = Option<Vec<u8>>> + Clone> {
    // A text ends before the `<` of the next token.
    ReadList::new(xml::tokens().stage, |token| token[0] != b'<')
}
