//! The splitters that are made of no other splitter: `satisfies`, `everything`, `line`,
//! `whole_line` and `substring`. Users call them. The parsers and the combinators of splitters use
//! `Runs`, which closes a section where the verdict changes.
//!
//! `line` offers a `Cut`, and `substring` a `search`: these are the fast ways of `group_by` and
//! `any`. A fast way must find the same sections as `put` of each item. `substring` holds back the
//! bytes that may begin an occurrence.

use crate::edges::parts::SplitByItem;
use crate::item::lists::Cut;
use crate::item::{Chunk, Flow, GO_ON, Item};
use crate::role::Splitter;
use crate::stage::{Sections, Split};
use std::ops::Range;
use std::sync::Arc;

/// Sections that are as long as possible: a section ends where the verdict changes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Runs {
    open: Option<bool>,
}

impl Runs {
    /// The next item has this verdict.
    #[inline]
    pub(crate) fn next<A: Item + ?Sized>(&mut self, verdict: bool, out: &mut impl Sections<A>) -> Flow {
        match self.open.replace(verdict) {
            Some(before) if before != verdict => out.close(before),
            _ => GO_ON,
        }
    }

    /// Whether a section of this verdict is open.
    pub(crate) fn is_open(&self, verdict: bool) -> bool {
        self.open == Some(verdict)
    }

    /// The section that is open ends here, if one is open.
    pub(crate) fn close<A: Item + ?Sized>(&mut self, out: &mut impl Sections<A>) -> Flow {
        match self.open.take() {
            Some(before) => out.close(before),
            None => GO_ON,
        }
    }
}

/// The stage of [`satisfies`].
#[derive(Debug, Clone)]
pub struct Satisfies<F> {
    f: F,
    runs: Runs,
}

/// Items for which `f` is true make true sections, the others make false ones, each as long as
/// possible.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_chunks, group_by, satisfies};
///
/// let words = from_chunks(["warp  weft"]) >> group_by(satisfies(|c: &u8| *c != b' '));
/// let words = words.collect();
/// assert_eq!(words.iter().collect::<Vec<_>>(), [b"warp", b"weft"]);
/// ```
pub fn satisfies<A: Item + ?Sized, F: FnMut(&A) -> bool>(f: F) -> Splitter<A, Satisfies<F>> {
    Splitter::new(Satisfies { f, runs: Runs::default() })
}

impl<A: Item + ?Sized, F: FnMut(&A) -> bool> Split<A> for Satisfies<F> {
    #[inline]
    fn put<P: Sections<A>>(&mut self, item: &A, out: &mut P) -> Flow {
        let verdict = (self.f)(item);
        self.runs.next(verdict, out)?;
        out.part(verdict, item)
    }

    fn end<P: Sections<A>>(&mut self, out: &mut P) -> Flow {
        self.runs.close(out)
    }
}

/// If the function keeps nothing from one call to the next: see [`ItemByItem`](crate::ItemByItem).
impl<A: Item + ?Sized, F: FnMut(&A) -> bool> SplitByItem<A> for Satisfies<F> {}

/// The stage of [`everything`].
#[derive(Debug, Clone)]
struct Everything {
    begun: bool,
}

/// One true section that is the whole stream. An empty stream has no section.
pub fn everything<A: Item + ?Sized>() -> Splitter<A, impl SplitByItem<A> + Clone> {
    Splitter::new(Everything { begun: false })
}

impl<A: Item + ?Sized> Split<A> for Everything {
    #[inline]
    fn put<P: Sections<A>>(&mut self, item: &A, out: &mut P) -> Flow {
        self.begun = true;
        out.part(true, item)
    }

    #[inline]
    fn put_chunk<P: Sections<A>>(&mut self, chunk: A::Chunk<'_>, out: &mut P) -> Flow {
        self.begun |= !chunk.is_empty();
        out.part_chunk(true, chunk)
    }

    fn end<P: Sections<A>>(&mut self, out: &mut P) -> Flow {
        if self.begun { out.close(true) } else { GO_ON }
    }
}

impl<A: Item + ?Sized> SplitByItem<A> for Everything {}

/// Where a line ends, with its end or without.
#[derive(Debug, Clone)]
struct LineEnds {
    kept: bool,
}

impl Cut<u8> for LineEnds {
    #[inline]
    fn first(&self, stream: &[u8]) -> Option<(usize, usize)> {
        let at = memchr::memchr(b'\n', stream)?;
        Some((if self.kept { at + 1 } else { at }, at + 1))
    }

    fn last(&self, stream: &[u8]) -> usize {
        memchr::memrchr(b'\n', stream).map_or(0, |at| at + 1)
    }

    fn count(&self, stream: &[u8]) -> u64 {
        let ends = memchr::memchr_iter(b'\n', stream).count();
        ends as u64 + u64::from(self.last(stream) < stream.len())
    }

    fn is_gapless(&self) -> bool {
        self.kept
    }
}

/// The stage of [`line`](line()) and of [`whole_line`].
#[derive(Debug, Clone)]
pub struct LineSplit {
    ends: LineEnds,
    /// A byte of the open line has come.
    open: bool,
}

/// The lines are true sections, and each line end `\n` is a false one. A blank line is an empty
/// section. The `\r` of a line end `\r\n` belongs to the line: [`trim_end`](crate::trim_end) takes
/// it away.
///
/// # Paper
/// [Pipes, Pipeline examples] `line`.
///
/// # Differences
/// 1. The paper loses blank lines, and then counts the lines after them wrongly.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_chunks, group_by, line};
///
/// let lines = (from_chunks(["warp\n\nweft"]) >> group_by(line())).collect();
/// assert_eq!(lines.iter().collect::<Vec<_>>(), [&b"warp"[..], b"", b"weft"]);
/// ```
pub fn line() -> Splitter<u8, LineSplit> {
    Splitter::new(LineSplit { ends: LineEnds { kept: false }, open: false })
}

/// Each line with its line end is a true section, and nothing is false.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_chunks, group_by, whole_line};
///
/// let lines = (from_chunks(["warp\n\nweft"]) >> group_by(whole_line())).collect();
/// assert_eq!(lines.iter().collect::<Vec<_>>(), [&b"warp\n"[..], b"\n", b"weft"]);
/// ```
pub fn whole_line() -> Splitter<u8, LineSplit> {
    Splitter::new(LineSplit { ends: LineEnds { kept: true }, open: false })
}

impl LineSplit {
    pub(crate) fn ends(&self) -> &dyn Cut<u8> {
        &self.ends
    }
}

impl Split<u8> for LineSplit {
    fn put<P: Sections<u8>>(&mut self, item: &u8, out: &mut P) -> Flow {
        self.put_chunk(std::slice::from_ref(item), out)
    }

    fn put_chunk<P: Sections<u8>>(&mut self, mut chunk: &[u8], out: &mut P) -> Flow {
        while let Some((end, next)) = self.ends.first(chunk) {
            out.part_chunk(true, &chunk[..end])?;
            out.close(true)?;
            if end < next {
                out.part_chunk(false, &chunk[end..next])?;
                out.close(false)?;
            }
            chunk = &chunk[next..];
            self.open = false;
        }
        self.open |= !chunk.is_empty();
        out.part_chunk(true, chunk)
    }

    fn end<P: Sections<u8>>(&mut self, out: &mut P) -> Flow {
        if self.open { out.close(true) } else { GO_ON }
    }

    fn cut(&self) -> Option<&dyn Cut<u8>> {
        Some(&self.ends)
    }
}

/// The stage of [`substring`].
#[derive(Debug, Clone)]
struct Substring {
    needle: Arc<Needle>,
    /// The longest start of the needle that the bytes so far end with. They are held back.
    held: usize,
    runs: Runs,
}

/// What is computed from the needle once, and shared by all clones of its splitter.
#[derive(Debug)]
struct Needle {
    finder: memchr::memmem::Finder<'static>,
    /// The place of the byte that is the rarest of the needle in most data.
    rarest: usize,
    /// `fallback[n]` is the longest start of the needle that ends its first `n` bytes, and is
    /// shorter than `n`.
    fallback: Vec<usize>,
}

/// In streams that are shorter, the search for one byte gains nothing.
const SHORT: usize = 256;
/// The mean distance of the rarest byte at which the search for it is as fast as that for the
/// needle: measured, some 500 bytes.
const DISTANCE: usize = 512;
/// How often the rarest byte may be found in vain before its distance counts.
const FREE: usize = 4;

impl Needle {
    fn bytes(&self) -> &[u8] {
        self.finder.needle()
    }

    /// The first occurrence in `stream`. A search for one byte needs a third of the instructions of
    /// the search for a needle. So this looks for the rarest byte, until that proves to be
    /// frequent.
    fn find(&self, stream: &[u8]) -> Option<usize> {
        let needle = self.bytes();
        let (mut from, mut in_vain) = (0, 0);
        while stream.len() >= SHORT && in_vain * DISTANCE <= from + FREE * DISTANCE {
            let at = from + memchr::memchr(needle[self.rarest], stream.get(from + self.rarest..)?)?;
            if stream[at..].starts_with(needle) {
                return Some(at);
            }
            (from, in_vain) = (at + 1, in_vain + 1);
        }
        Some(from + self.finder.find(&stream[from..])?)
    }
}

/// Each occurrence of `needle` is a true section, and what lies between is false. Occurrences do
/// not overlap: after one, the search begins anew.
///
/// # Panics
/// If the needle is empty.
///
/// # Complexity
/// O(length of the stream). Where no occurrence begins in one chunk and ends in the next, the
/// search runs over the chunk as a whole.
///
/// # Paper
/// [Pipes, Pipeline examples] `substring`.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{foreach, from_chunks, id, substitute, substring};
///
/// let knots = foreach(substring(b"warp"), substitute(b"weft"), id());
/// assert_eq!((from_chunks(["a wa", "rp, warp"]) >> knots).collect(), b"a weft, weft");
/// ```
pub fn substring(needle: &[u8]) -> Splitter<u8, impl Split<u8> + Clone + use<>> {
    assert!(!needle.is_empty(), "substring of no bytes");
    let mut fallback = vec![0; needle.len() + 1];
    let mut matched = 0;
    for at in 1..needle.len() {
        while matched > 0 && needle[at] != needle[matched] {
            matched = fallback[matched];
        }
        matched += usize::from(needle[at] == needle[matched]);
        fallback[at + 1] = matched;
    }
    let finder = memchr::memmem::Finder::new(needle).into_owned();
    let rarest = memchr::arch::all::packedpair::Pair::new(needle).map_or(0, |pair| pair.index1().into());
    let needle = Arc::new(Needle { finder, rarest, fallback });
    Splitter::new(Substring { needle, held: 0, runs: Runs::default() })
}

impl Substring {
    fn part(&mut self, verdict: bool, part: &[u8], out: &mut impl Sections<u8>) -> Flow {
        if part.is_empty() {
            return GO_ON;
        }
        self.runs.next(verdict, out)?;
        out.part_chunk(verdict, part)
    }

    fn occurrence(&mut self, found: &[u8], out: &mut impl Sections<u8>) -> Flow {
        self.part(true, found, out)?;
        self.runs.close(out)
    }

    /// Takes bytes one by one until none is held back, or all of `chunk` is taken. Removes them
    /// from `chunk`.
    fn step(&mut self, needle: &Needle, chunk: &mut &[u8], out: &mut impl Sections<u8>) -> Flow {
        while self.held > 0
            && let [byte, rest @ ..] = *chunk
        {
            if *byte == needle.bytes()[self.held] {
                self.held += 1;
                *chunk = rest;
                if self.held == needle.bytes().len() {
                    self.held = 0;
                    self.occurrence(needle.bytes(), out)?;
                }
            } else {
                let keep = needle.fallback[self.held];
                let free = self.held - keep;
                self.held = keep;
                self.part(false, &needle.bytes()[..free], out)?;
            }
        }
        GO_ON
    }
}

impl Split<u8> for Substring {
    fn put<P: Sections<u8>>(&mut self, item: &u8, out: &mut P) -> Flow {
        self.put_chunk(std::slice::from_ref(item), out)
    }

    fn put_chunk<P: Sections<u8>>(&mut self, mut chunk: &[u8], out: &mut P) -> Flow {
        if self.held > 0 {
            let needle = self.needle.clone();
            self.step(&needle, &mut chunk, out)?;
            if self.held > 0 {
                return GO_ON;
            }
        }
        let length = self.needle.bytes().len();
        while let Some(at) = self.needle.find(chunk) {
            self.part(false, &chunk[..at], out)?;
            self.occurrence(&chunk[at..at + length], out)?;
            chunk = &chunk[at + length..];
        }
        // The last bytes may begin an occurrence that the next chunk ends.
        let tail = chunk.len().saturating_sub(length - 1);
        let begins = |at: &usize| self.needle.bytes().starts_with(&chunk[*at..]);
        let tail = (tail..chunk.len()).find(begins).unwrap_or(chunk.len());
        self.held = chunk.len() - tail;
        self.part(false, &chunk[..tail], out)
    }

    fn end<P: Sections<u8>>(&mut self, out: &mut P) -> Flow {
        let (needle, held) = (self.needle.clone(), std::mem::take(&mut self.held));
        self.part(false, &needle.bytes()[..held], out)?;
        self.runs.close(out)
    }

    fn may_begin(&self, stream: &[u8]) -> bool {
        memchr::memchr(self.needle.bytes()[0], stream).is_some()
    }

    #[inline]
    fn search(&self, stream: &[u8]) -> Result<Option<Range<usize>>, ()> {
        let found = self.needle.find(stream);
        Ok(found.map(|at| at..at + self.needle.bytes().len()))
    }
}
