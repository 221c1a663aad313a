//! Lines as text: stages over bytes that do what `lines` and some stages behind it do, where the
//! next stage takes nothing but the text. They keep no line, however long it is.
//!
//! `stage::leading` and `parts.rs` choose them. Each of them works on the bytes as they come, and
//! gathers what it makes in a block of its own, because a call for each piece would cost more.

use super::line_number;
use crate::regex::chomp;
use regex_automata::meta::Regex;
use selvedge_pipeline::{
    Chunk, Cut, Flow, GroupBy, LineSplit, Lists, Number, PartByPart, PlaceKnown, Sink, StreamPlace,
    Transduce, Transducer, group_by, whole_line,
};
use std::ops::ControlFlow;

/// How many bytes a stage gathers before it passes them on.
const ROOM: usize = 64 << 10;

/// Bytes that go on in blocks.
struct TextBlocks<'a, S> {
    made: &'a mut Vec<u8>,
    out: &'a mut S,
}

impl<S: Sink<u8>> TextBlocks<'_, S> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Flow {
        if bytes.len() >= ROOM {
            self.flush()?;
            return self.out.put_chunk(bytes);
        }
        self.made.extend_from_slice(bytes);
        if self.made.len() < ROOM { ControlFlow::Continue(()) } else { self.flush() }
    }

    fn flush(&mut self) -> Flow {
        if self.made.is_empty() {
            return ControlFlow::Continue(());
        }
        let flow = self.out.put_chunk(self.made);
        self.made.clear();
        flow
    }
}

/// The stage of [`complete_text`].
#[derive(Debug, Clone)]
pub struct CompleteText {
    /// The last line has begun, and has not ended.
    open: bool,
}

/// Gives a line end to the last line, if it has none.
pub fn complete_text() -> Transducer<u8, u8, CompleteText> {
    Transducer::new(CompleteText { open: false })
}

impl Transduce<u8, u8> for CompleteText {
    const CHUNKS: bool = true;

    fn put<S: Sink<u8>>(&mut self, item: &u8, out: &mut S) -> Flow {
        self.put_chunk(std::slice::from_ref(item), out)
    }

    fn put_chunk<S: Sink<u8>>(&mut self, chunk: &[u8], out: &mut S) -> Flow {
        if let Some(last) = chunk.last() {
            self.open = *last != b'\n';
        }
        out.put_chunk(chunk)
    }

    fn end<S: Sink<u8>>(&mut self, out: &mut S) -> Flow {
        if self.open { out.put_chunk(b"\n") } else { ControlFlow::Continue(()) }
    }
}

/// The stage of [`around_lines`] and [`number_lines`].
#[derive(Debug, Clone)]
pub struct AroundLines {
    /// The number of the last line, if lines have numbers.
    number: Option<u64>,
    before: Vec<u8>,
    after: Vec<u8>,
    /// The line has begun, and has not ended.
    open: bool,
    made: Vec<u8>,
    /// It is asked for the ends of lines alone.
    lines: GroupBy<LineSplit, u8>,
}

impl AroundLines {
    fn new(number: Option<u64>, before: &[u8], after: &[u8]) -> Transducer<u8, u8, AroundLines> {
        let (before, after, lines) = (before.to_vec(), after.to_vec(), group_by(whole_line()).into_stage());
        Transducer::new(AroundLines { number, before, after, open: false, made: Vec::new(), lines })
    }
}

/// Puts `before` before each line and `after` behind its text. The last line gets its end.
pub fn around_lines(before: &[u8], after: &[u8]) -> Transducer<u8, u8, AroundLines> {
    AroundLines::new(None, before, after)
}

/// Writes the number of each line before it. The last line gets its end.
pub fn number_lines() -> Transducer<u8, u8, AroundLines> {
    AroundLines::new(Some(0), b"", b"")
}

impl Transduce<u8, u8> for AroundLines {
    const CHUNKS: bool = true;

    fn put<S: Sink<u8>>(&mut self, item: &u8, out: &mut S) -> Flow {
        self.put_chunk(std::slice::from_ref(item), out)
    }

    fn put_chunk<S: Sink<u8>>(&mut self, chunk: &[u8], out: &mut S) -> Flow {
        let AroundLines { number, before, after, open, made, .. } = self;
        let mut pieces = TextBlocks { made, out };
        let mut rest = chunk;
        while !rest.is_empty() {
            if !std::mem::replace(open, true) {
                if let Some(number) = number {
                    *number += 1;
                    line_number(*number, pieces.made);
                }
                pieces.put(before)?;
            }
            let Some(end) = memchr::memchr(b'\n', rest) else {
                pieces.put(rest)?;
                break;
            };
            let (line, others) = rest.split_at(end + 1);
            if after.is_empty() {
                pieces.put(line)?;
            } else {
                pieces.put(&line[..end])?;
                pieces.put(after)?;
                pieces.put(b"\n")?;
            }
            (*open, rest) = (false, others);
        }
        pieces.flush()
    }

    fn end<S: Sink<u8>>(&mut self, out: &mut S) -> Flow {
        if !self.open {
            return ControlFlow::Continue(());
        }
        out.put_chunk(&self.after)?;
        out.put_chunk(b"\n")
    }
}

impl PartByPart<u8, u8> for AroundLines {
    const NEEDS: PlaceKnown = PlaceKnown::Items;

    fn ends(&self) -> &dyn Cut<u8> {
        self.lines.ends()
    }

    fn begin_part(&mut self, place: StreamPlace) -> StreamPlace {
        (self.number, self.open) = (self.number.map(|_| place.items), false);
        StreamPlace::default()
    }
}

/// The stage of [`change_case`].
#[derive(Debug, Clone)]
pub struct ChangeCase {
    change: fn(&mut [u8]),
    made: Vec<u8>,
}

/// Changes the bytes as `change` does, which looks at each byte alone.
pub fn change_case(change: fn(&mut [u8])) -> Transducer<u8, u8, ChangeCase> {
    Transducer::new(ChangeCase { change, made: Vec::new() })
}

impl Transduce<u8, u8> for ChangeCase {
    const CHUNKS: bool = true;

    fn put<S: Sink<u8>>(&mut self, item: &u8, out: &mut S) -> Flow {
        self.put_chunk(std::slice::from_ref(item), out)
    }

    fn put_chunk<S: Sink<u8>>(&mut self, chunk: &[u8], out: &mut S) -> Flow {
        chunk.chunks(ROOM).try_for_each(|block| {
            self.made.clear();
            self.made.extend_from_slice(block);
            (self.change)(&mut self.made);
            out.put_chunk(&self.made)
        })
    }

    fn end<S: Sink<u8>>(&mut self, _out: &mut S) -> Flow {
        ControlFlow::Continue(())
    }
}

/// The stage of [`count_lines`].
#[derive(Debug, Clone)]
pub struct CountLines {
    /// The last line has begun, and has not ended.
    open: bool,
}

/// Yields how many lines end in each chunk, and counts a last line without its end.
/// [`add_counts`](super::add_counts) makes one number of them.
pub fn count_lines() -> Transducer<u8, Number, CountLines> {
    Transducer::new(CountLines { open: false })
}

impl Transduce<u8, Number> for CountLines {
    const CHUNKS: bool = true;

    fn put<S: Sink<Number>>(&mut self, item: &u8, out: &mut S) -> Flow {
        self.put_chunk(std::slice::from_ref(item), out)
    }

    fn put_chunk<S: Sink<Number>>(&mut self, chunk: &[u8], out: &mut S) -> Flow {
        if let Some(last) = chunk.last() {
            self.open = *last != b'\n';
        }
        out.put(&Number::from(memchr::memchr_iter(b'\n', chunk).count() as u64))
    }

    fn end<S: Sink<Number>>(&mut self, out: &mut S) -> Flow {
        if self.open { out.put(&Number::from(1_u64)) } else { ControlFlow::Continue(()) }
    }
}

/// Calls `put` with the pieces of a line in which `with` stands in place of each match. `with` may
/// name groups. Its expansions are written to `expanded`, which is empty.
pub fn replaced(
    regex: &Regex,
    with: &[u8],
    line: &[u8],
    expanded: &mut Vec<u8>,
    mut put: impl FnMut(&[u8]) -> Flow,
) -> Flow {
    let text = chomp(line);
    let mut from = 0;
    if with.contains(&b'$') {
        for captures in regex.captures_iter(text) {
            let Some(found) = captures.get_match() else { continue };
            put(&text[from..found.start()])?;
            captures.interpolate_bytes_into(text, with, expanded);
            let flow = put(expanded);
            expanded.clear();
            flow?;
            from = found.end();
        }
    } else {
        for found in regex.find_iter(text) {
            put(&text[from..found.start()])?;
            put(with)?;
            from = found.end();
        }
    }
    put(&line[from..])
}

/// The stage of [`replace_in_lines`].
#[derive(Debug, Clone)]
pub struct ReplaceInLines {
    regex: Regex,
    with: Vec<u8>,
    made: Vec<u8>,
    expanded: Vec<u8>,
}

/// Puts `with` in place of each match in a line, and yields the text of the lines.
pub fn replace_in_lines(regex: Regex, with: &[u8]) -> Transducer<[u8], u8, ReplaceInLines> {
    Transducer::new(ReplaceInLines { regex, with: with.to_vec(), made: Vec::new(), expanded: Vec::new() })
}

impl Transduce<[u8], u8> for ReplaceInLines {
    const CHUNKS: bool = true;

    fn put<S: Sink<u8>>(&mut self, line: &[u8], out: &mut S) -> Flow {
        self.put_chunk(Lists::single(line), out)
    }

    fn put_chunk<S: Sink<u8>>(&mut self, chunk: Lists<'_, u8>, out: &mut S) -> Flow {
        let ReplaceInLines { regex, with, made, expanded } = self;
        let mut pieces = TextBlocks { made, out };
        chunk.each(|line| replaced(regex, with, line, expanded, |bytes| pieces.put(bytes)))?;
        pieces.flush()
    }

    fn end<S: Sink<u8>>(&mut self, _out: &mut S) -> Flow {
        ControlFlow::Continue(())
    }
}
