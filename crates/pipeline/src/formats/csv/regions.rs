//! The splitters of a text: `rows` and `column`. They take any text.

use crate::item::{Flow, GO_ON};
use crate::role::Splitter;
use crate::splitters::split::Runs;
use crate::stage::{Sections, Split};
use memchr::{memchr, memchr2};

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
struct Rows {
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
pub fn rows(delimiter: u8) -> Splitter<u8, impl Split<u8> + Clone> {
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
struct Column {
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
pub fn column(delimiter: u8, column: usize) -> Splitter<u8, impl Split<u8> + Clone> {
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
