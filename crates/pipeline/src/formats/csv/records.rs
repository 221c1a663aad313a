//! `records`: a text as records.

use super::Fields;
use crate::error::StageError;
use crate::item::place::StreamPlace;
use crate::item::{FINISHED, Flow, GO_ON};
use crate::role::Transducer;
use crate::stage::{Sink, Transduce};
use memchr::{memchr, memchr3};

/// Where the parser is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum CsvState {
    /// At the beginning of a record.
    Row,
    /// At the beginning of a field that is not the first one.
    Field,
    Plain,
    Quoted,
    /// After a quote in a quoted field: it ends the field, or the next quote doubles it.
    Quote,
    /// After the `\r` that follows a quoted field.
    Return,
}

/// The character U+FEFF in UTF-8, with which some programs begin a text.
pub(super) const MARK: &[u8] = b"\xef\xbb\xbf";

/// What is known of a byte order mark at the beginning of the text.
#[derive(Debug, Clone, Copy, PartialEq)]
enum ByteOrderMark {
    /// The number of its bytes that have come.
    Begun(usize),
    /// It is over, or there is none.
    Passed,
}

/// The stage of [`records`].
#[derive(Debug, Clone)]
struct ReadRecords {
    delimiter: u8,
    mark: ByteOrderMark,
    state: CsvState,
    record: Fields,
    place: StreamPlace,
    /// Where the quoted field that is open begins.
    quote: u64,
    failure: Option<StageError>,
}

/// Yields the fields of each record of a text, with `delimiter` between them.
///
/// The yielded [`Fields`] is the same memory for each record: a stage that keeps one clones it. A
/// byte order mark at the beginning of the text belongs to no field.
///
/// # Errors
/// It fails at a quote within a field that does not begin with one, at a byte after a closing quote
/// that ends no field, and at the end of the text within a quoted field. The
/// [offset](StageError::offset) is that of the byte, or of the quote that is not closed.
///
/// # Complexity
/// O(length of the text), and the memory of the longest record.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{csv, from_chunks};
///
/// let text = "name,word\r\n1,\"a \"\"warp\"\"\nand weft\"\r\n";
/// let records = (from_chunks([text]) >> csv::records(b',')).collect();
/// assert_eq!(records[1].get(1), Some(&b"a \"warp\"\nand weft"[..]));
///
/// let failed = (from_chunks(["a,b\n1,x\"y"]) >> csv::records(b',')).try_collect().unwrap_err();
/// assert_eq!((failed.item(), failed.offset()), (2, 7));
/// ```
pub fn records(delimiter: u8) -> Transducer<u8, Fields, impl Transduce<u8, Fields> + Clone> {
    records_behind(delimiter, ByteOrderMark::Begun(0))
}

/// As [`records`], for a text of which the beginning has passed: a byte order mark belongs to its
/// field.
pub(crate) fn later_records(delimiter: u8) -> Transducer<u8, Fields, impl Transduce<u8, Fields> + Clone> {
    records_behind(delimiter, ByteOrderMark::Passed)
}

fn records_behind(
    delimiter: u8,
    mark: ByteOrderMark,
) -> Transducer<u8, Fields, impl Transduce<u8, Fields> + Clone> {
    Transducer::new(ReadRecords {
        delimiter,
        mark,
        state: CsvState::Row,
        record: Fields::new(),
        place: StreamPlace::default(),
        quote: 0,
        failure: None,
    })
}

impl ReadRecords {
    fn fail(&mut self, offset: u64, cause: &'static str) -> Flow {
        let place = StreamPlace { elements: offset, ..self.place };
        self.failure = Some(StageError::new("csv::records", place, cause));
        FINISHED
    }

    fn end_field(&mut self) {
        self.record.ends.push(self.record.text.len());
        self.state = CsvState::Field;
    }

    fn end_record<S: Sink<Fields>>(&mut self, out: &mut S) -> Flow {
        self.end_field();
        self.state = CsvState::Row;
        let flow = out.put(&self.record);
        self.place.items += 1;
        self.record.clear();
        flow
    }

    /// `\n` after a field without quotes. A `\r` before it belongs to the row's end.
    fn end_plain<S: Sink<Fields>>(&mut self, out: &mut S) -> Flow {
        if self.record.open().last() == Some(&b'\r') {
            self.record.text.pop();
            if self.record.is_empty() && self.record.text.is_empty() {
                // A blank row that ends with `\r\n`.
                self.state = CsvState::Row;
                return GO_ON;
            }
        }
        self.end_record(out)
    }

    /// Takes the bytes at the beginning of the text, where the mark may be.
    fn begin<S: Sink<Fields>>(&mut self, chunk: &[u8], out: &mut S) -> Flow {
        let mut rest = chunk;
        while let (ByteOrderMark::Begun(length), Some((byte, after))) = (self.mark, rest.split_first()) {
            if *byte != MARK[length] {
                self.pass_mark(length, out)?;
                break;
            }
            rest = after;
            self.mark = ByteOrderMark::Begun(length + 1);
            if length + 1 == MARK.len() {
                self.mark = ByteOrderMark::Passed;
                self.place.elements += MARK.len() as u64;
            }
        }
        self.parse(rest, out)?;
        self.place.elements += rest.len() as u64;
        GO_ON
    }

    /// The first bytes of the text were no mark: they belong to the first field.
    fn pass_mark<S: Sink<Fields>>(&mut self, length: usize, out: &mut S) -> Flow {
        self.mark = ByteOrderMark::Passed;
        self.parse(&MARK[..length], out)?;
        self.place.elements += length as u64;
        GO_ON
    }

    fn parse<S: Sink<Fields>>(&mut self, chunk: &[u8], out: &mut S) -> Flow {
        let (begin, mut at) = (self.place.elements, 0);
        while at < chunk.len() {
            let rest = &chunk[at..];
            let byte = rest[0];
            match self.state {
                CsvState::Row if byte == b'\n' => at += 1,
                CsvState::Row | CsvState::Field if byte == b'"' => {
                    self.quote = begin + at as u64;
                    self.state = CsvState::Quoted;
                    at += 1;
                }
                CsvState::Row | CsvState::Field | CsvState::Plain => {
                    self.state = CsvState::Plain;
                    let found = memchr3(self.delimiter, b'\n', b'"', rest);
                    let length = found.unwrap_or(rest.len());
                    self.record.text.extend_from_slice(&rest[..length]);
                    at += length;
                    match found.map(|found| rest[found]) {
                        Some(b'\n') => self.end_plain(out)?,
                        Some(b'"') => {
                            let cause = "a quote within a field that does not begin with one";
                            return self.fail(begin + at as u64, cause);
                        }
                        Some(_) => self.end_field(),
                        None => {}
                    }
                    at += usize::from(found.is_some());
                }
                CsvState::Quoted => {
                    let found = memchr(b'"', rest);
                    let length = found.unwrap_or(rest.len());
                    self.record.text.extend_from_slice(&rest[..length]);
                    at += length;
                    if found.is_some() {
                        self.state = CsvState::Quote;
                        at += 1;
                    }
                }
                CsvState::Quote if byte == b'"' => {
                    self.record.text.push(b'"');
                    self.state = CsvState::Quoted;
                    at += 1;
                }
                CsvState::Quote if byte == b'\r' => {
                    self.state = CsvState::Return;
                    at += 1;
                }
                CsvState::Quote | CsvState::Return if byte == b'\n' => {
                    self.end_record(out)?;
                    at += 1;
                }
                CsvState::Quote if byte == self.delimiter => {
                    self.end_field();
                    at += 1;
                }
                CsvState::Quote | CsvState::Return => {
                    return self.fail(begin + at as u64, "a byte after the closing quote of a field");
                }
            }
        }
        GO_ON
    }
}

impl Transduce<u8, Fields> for ReadRecords {
    const CHUNKS: bool = true;

    fn put<S: Sink<Fields>>(&mut self, item: &u8, out: &mut S) -> Flow {
        self.put_chunk(std::slice::from_ref(item), out)
    }

    fn put_chunk<S: Sink<Fields>>(&mut self, chunk: &[u8], out: &mut S) -> Flow {
        if let ByteOrderMark::Begun(_) = self.mark {
            return self.begin(chunk, out);
        }
        self.parse(chunk, out)?;
        self.place.elements += chunk.len() as u64;
        GO_ON
    }

    fn end<S: Sink<Fields>>(&mut self, out: &mut S) -> Flow {
        if let ByteOrderMark::Begun(length) = self.mark {
            self.pass_mark(length, out)?;
        }
        match self.state {
            CsvState::Row => GO_ON,
            CsvState::Quoted => self.fail(self.quote, "a quoted field that is not closed"),
            CsvState::Plain => self.end_plain(out),
            CsvState::Field | CsvState::Quote | CsvState::Return => self.end_record(out),
        }
    }

    fn failure(&self) -> Option<&StageError> {
        self.failure.as_ref()
    }
}
