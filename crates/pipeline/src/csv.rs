//! Comma-separated values, by RFC 4180: records, the text of a column, rows as they are.
//!
//! | for | there is |
//! |---|---|
//! | the fields of each record | [`records`] |
//! | text of records | [`encode`] |
//! | the rows of a text, with quoted line ends in them | [`rows`] |
//! | the text of one column, with all else around it unchanged | [`column()`] |
//!
//! A row ends with `\n` or `\r\n`. A blank row is no record. A field that begins with a quote `"`
//! ends at the next quote that is not doubled, and may hold commas and line ends.
//!
//! [`records`] refuses text that RFC 4180 does not allow. The splitters take any text: for them, a
//! quote within a field that does not begin with one is a byte like others, and the bytes after a
//! closing quote belong to the field.

use super::failure::{StageFailure, StreamPlace};
use super::item::{FINISHED, Flow, GO_ON};
use super::role::{Splitter, Transducer};
use super::split::Runs;
use super::stage::{Sections, Sink, Split, Transduce};
use memchr::{memchr, memchr2, memchr3};
use std::fmt;

/// The fields of a record.
///
/// # Examples
/// ```
/// use selvedge::pipeline::csv::Fields;
///
/// let record: Fields = ["warp", "42"].into_iter().collect();
/// assert_eq!(record.get(0), Some(&b"warp"[..]));
/// assert_eq!((record.len(), record.get(2)), (2, None));
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Fields {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Fields {
    /// A record without fields.
    pub fn new() -> Fields {
        Fields::default()
    }

    /// A record without fields, with room for this number of fields and for this number of bytes in
    /// them.
    pub fn with_capacity(fields: usize, bytes: usize) -> Fields {
        Fields { text: Vec::with_capacity(bytes), ends: Vec::with_capacity(fields) }
    }

    /// How many fields there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The field at `index`, from 0, without the quotes around it.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let begin = if index == 0 { 0 } else { *self.ends.get(index - 1)? };
        Some(&self.text[begin..*self.ends.get(index)?])
    }

    /// The fields one by one.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.get(index).unwrap_or_default())
    }

    /// Adds a field at the end.
    pub fn push(&mut self, field: &[u8]) {
        self.text.extend_from_slice(field);
        self.ends.push(self.text.len());
    }

    /// Removes all fields, and keeps the memory.
    pub fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    /// The text of the field that is not ended yet.
    fn open(&self) -> &[u8] {
        &self.text[self.ends.last().copied().unwrap_or(0)..]
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for Fields {
    fn from_iter<I: IntoIterator<Item = T>>(fields: I) -> Fields {
        let mut record = Fields::new();
        for field in fields {
            record.push(field.as_ref());
        }
        record
    }
}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(String::from_utf8_lossy)).finish()
    }
}

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
const MARK: &[u8] = b"\xef\xbb\xbf";

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
pub struct ReadRecords {
    delimiter: u8,
    mark: ByteOrderMark,
    state: CsvState,
    record: Fields,
    place: StreamPlace,
    /// Where the quoted field that is open begins.
    quote: u64,
    failure: Option<StageFailure>,
}

/// Yields the fields of each record of a text, with `delimiter` between them.
///
/// The yielded [`Fields`] is the same memory for each record: a stage that keeps one clones it. A
/// byte order mark at the beginning of the text belongs to no field.
///
/// # Errors
/// It fails at a quote within a field that does not begin with one, at a byte after a closing quote
/// that ends no field, and at the end of the text within a quoted field. The
/// [offset](StageFailure::offset) is that of the byte, or of the quote that is not closed.
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
pub fn records(delimiter: u8) -> Transducer<u8, Fields, ReadRecords> {
    records_behind(delimiter, ByteOrderMark::Begun(0))
}

/// As [`records`], for a text of which the beginning has passed: a byte order mark belongs to its
/// field.
pub(super) fn later_records(delimiter: u8) -> Transducer<u8, Fields, ReadRecords> {
    records_behind(delimiter, ByteOrderMark::Passed)
}

fn records_behind(delimiter: u8, mark: ByteOrderMark) -> Transducer<u8, Fields, ReadRecords> {
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
        self.failure = Some(StageFailure::new("csv::records", place, cause));
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

    fn failure(&self) -> Option<&StageFailure> {
        self.failure.as_ref()
    }
}

/// The stage of [`encode`].
#[derive(Debug, Clone)]
pub struct Encode {
    delimiter: u8,
    text: Vec<u8>,
}

/// Yields the text of each record, with `delimiter` between its fields and `\n` after it. A field
/// is quoted where [`records`] would read something else without quotes.
///
/// A record without fields yields nothing: CSV has no such record.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{csv, from_iter};
///
/// let records = [["1", "a \"warp\""], ["", "weft"]];
/// let records = records.map(|fields| fields.into_iter().collect::<csv::Fields>());
/// let text = (from_iter(records) >> csv::encode(b',')).collect();
/// assert_eq!(text, b"1,\"a \"\"warp\"\"\"\n,weft\n");
/// ```
pub fn encode(delimiter: u8) -> Transducer<Fields, u8, Encode> {
    Transducer::new(Encode { delimiter, text: Vec::new() })
}

impl Transduce<Fields, u8> for Encode {
    fn put<S: Sink<u8>>(&mut self, record: &Fields, out: &mut S) -> Flow {
        let Encode { delimiter, text } = self;
        text.clear();
        for (index, mut field) in record.iter().enumerate() {
            if index > 0 {
                text.push(*delimiter);
            }
            let special = |byte: &u8| [*delimiter, b'"', b'\n', b'\r'].contains(byte);
            let alone = field.is_empty() && record.len() == 1;
            // Without quotes it would be the mark of the text.
            let marked = index == 0 && field.starts_with(MARK);
            if !alone && !marked && !field.iter().any(special) {
                text.extend_from_slice(field);
                continue;
            }
            text.push(b'"');
            while let Some(at) = memchr(b'"', field) {
                text.extend_from_slice(&field[..=at]);
                text.push(b'"');
                field = &field[at + 1..];
            }
            text.extend_from_slice(field);
            text.push(b'"');
        }
        if record.is_empty() {
            return GO_ON;
        }
        text.push(b'\n');
        out.put_chunk(text)
    }

    fn end<S: Sink<u8>>(&mut self, _out: &mut S) -> Flow {
        GO_ON
    }
}

/// Whether a byte of a row is within quotes, as the splitters see it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Quoting {
    /// At the beginning of a field.
    Begin,
    /// Outside of quotes, in a field.
    Outside,
    Inside,
}

/// The stage of [`rows`].
#[derive(Debug, Clone)]
pub struct Rows {
    quoting: Quoting,
    delimiter: u8,
    open: bool,
}

/// Each row with its line end is a true section, and nothing is false. A line end within quotes
/// ends no row. A blank row is a section too.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{csv, from_chunks, having, select, substring};
///
/// let text = "1,\"warp\n\"\n2,weft\n3,warp";
/// let warps = from_chunks([text]) >> select(having(csv::rows(b','), substring(b"warp")));
/// assert_eq!(warps.collect(), b"1,\"warp\n\"\n3,warp");
/// ```
pub fn rows(delimiter: u8) -> Splitter<u8, Rows> {
    Splitter::new(Rows { quoting: Quoting::Begin, delimiter, open: false })
}

impl Split<u8> for Rows {
    fn put<P: Sections<u8>>(&mut self, item: &u8, out: &mut P) -> Flow {
        self.put_chunk(std::slice::from_ref(item), out)
    }

    fn put_chunk<P: Sections<u8>>(&mut self, mut chunk: &[u8], out: &mut P) -> Flow {
        let mut at = 0;
        while at < chunk.len() {
            let rest = &chunk[at..];
            match self.quoting {
                Quoting::Begin if rest[0] == b'"' => {
                    self.quoting = Quoting::Inside;
                    at += 1;
                }
                Quoting::Begin | Quoting::Outside => {
                    let Some(found) = memchr2(self.delimiter, b'\n', rest) else {
                        self.quoting = Quoting::Outside;
                        break;
                    };
                    self.quoting = Quoting::Begin;
                    at += found + 1;
                    if rest[found] == b'\n' {
                        out.part_chunk(true, &chunk[..at])?;
                        out.close(true)?;
                        (chunk, at, self.open) = (&chunk[at..], 0, false);
                    }
                }
                // The second of two quotes begins the quotes again.
                Quoting::Inside => match memchr(b'"', rest) {
                    Some(found) => {
                        self.quoting = Quoting::Begin;
                        at += found + 1;
                    }
                    None => break,
                },
            }
        }
        self.open |= !chunk.is_empty();
        out.part_chunk(true, chunk)
    }

    fn end<P: Sections<u8>>(&mut self, out: &mut P) -> Flow {
        if self.open { out.close(true) } else { GO_ON }
    }
}

/// The stage of [`column()`].
#[derive(Debug, Clone)]
pub struct Column {
    delimiter: u8,
    wanted: usize,
    /// The column of the field that is open.
    column: usize,
    quoting: Quoting,
    /// A byte of the row has come, so that a blank row is known.
    row: bool,
    /// The last byte of the wanted field is a `\r`, which may belong to the end of its row.
    held: bool,
    runs: Runs,
}

/// The text of each row's field `column`, counted from 0 and with its quotes, is a true section.
/// All else is false: the other fields, the delimiters and the line ends. An empty field is an
/// empty section, and a blank row has none.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{csv, foreach, from_chunks, id, substitute};
///
/// let text = "ann,\"s3,\"\"cret\",1\r\nbob,,2\n";
/// let hidden = foreach(csv::column(b',', 1), substitute(b"*"), id());
/// assert_eq!((from_chunks([text]) >> hidden).collect(), b"ann,*,1\r\nbob,*,2\n");
/// ```
pub fn column(delimiter: u8, column: usize) -> Splitter<u8, Column> {
    Splitter::new(Column {
        delimiter,
        wanted: column,
        column: 0,
        quoting: Quoting::Begin,
        row: false,
        held: false,
        runs: Runs::default(),
    })
}

impl Column {
    fn part<P: Sections<u8>>(&mut self, part: &[u8], out: &mut P) -> Flow {
        let verdict = self.column == self.wanted;
        let Some((last, most)) = part.split_last() else { return GO_ON };
        self.row = true;
        self.release(verdict, out)?;
        // A `\r` outside of quotes is held until the next byte is known.
        self.held = verdict && *last == b'\r' && self.quoting != Quoting::Inside;
        let part = if self.held { most } else { part };
        if part.is_empty() {
            return GO_ON;
        }
        self.runs.next(verdict, out)?;
        out.part_chunk(verdict, part)
    }

    fn release<P: Sections<u8>>(&mut self, verdict: bool, out: &mut P) -> Flow {
        if std::mem::take(&mut self.held) {
            self.runs.next(verdict, out)?;
            out.part(verdict, &b'\r')?;
        }
        GO_ON
    }

    /// The field ends with the byte `by`, or with the text.
    fn end_field<P: Sections<u8>>(&mut self, by: &[u8], out: &mut P) -> Flow {
        let ends_row = by != [self.delimiter];
        if self.column == self.wanted && (self.row || !ends_row) {
            let cr = ends_row && std::mem::take(&mut self.held);
            // A row of `\r` alone is blank.
            if !(cr && self.column == 0 && !self.runs.is_open(true)) {
                self.release(true, out)?;
                self.runs.next(true, out)?;
                self.runs.close(out)?;
            }
            if cr {
                self.runs.next(false, out)?;
                out.part(false, &b'\r')?;
            }
        }
        if !by.is_empty() {
            self.runs.next(false, out)?;
            out.part_chunk(false, by)?;
        }
        self.quoting = Quoting::Begin;
        self.row = !ends_row;
        self.column = if ends_row { 0 } else { self.column + 1 };
        GO_ON
    }
}

impl Split<u8> for Column {
    fn put<P: Sections<u8>>(&mut self, item: &u8, out: &mut P) -> Flow {
        self.put_chunk(std::slice::from_ref(item), out)
    }

    fn put_chunk<P: Sections<u8>>(&mut self, mut chunk: &[u8], out: &mut P) -> Flow {
        while !chunk.is_empty() {
            let found = match self.quoting {
                Quoting::Begin if chunk[0] == b'"' => {
                    self.quoting = Quoting::Inside;
                    self.part(&chunk[..1], out)?;
                    chunk = &chunk[1..];
                    continue;
                }
                Quoting::Begin | Quoting::Outside => {
                    self.quoting = Quoting::Outside;
                    memchr2(self.delimiter, b'\n', chunk)
                }
                Quoting::Inside => {
                    let found = memchr(b'"', chunk).map(|at| at + 1);
                    let (part, rest) = chunk.split_at(found.unwrap_or(chunk.len()));
                    self.part(part, out)?;
                    if found.is_some() {
                        self.quoting = Quoting::Begin;
                    }
                    chunk = rest;
                    continue;
                }
            };
            let (part, rest) = chunk.split_at(found.unwrap_or(chunk.len()));
            self.part(part, out)?;
            chunk = rest;
            if found.is_some() {
                self.end_field(&rest[..1], out)?;
                chunk = &rest[1..];
            }
        }
        GO_ON
    }

    fn end<P: Sections<u8>>(&mut self, out: &mut P) -> Flow {
        if self.row {
            self.end_field(b"", out)?;
        }
        self.runs.close(out)
    }
}
