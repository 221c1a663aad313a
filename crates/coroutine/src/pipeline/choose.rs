//! Splitters that keep some of the true sections of another splitter, by the place of the section:
//! `first`, `prefix`, `start_of`, `end_of`, and `last` and `suffix`.
//!
//! The first four decide at once. `last` and `suffix` know the answer only later, so they keep a
//! true section and all that follows it until the next true section, or the end, decides. Every
//! item must leave in its order, whether its verdict changes or not. [Pipes, Parting and joining
//! the stream].

use super::item::{Chunk, Flow, GO_ON, Item, Store};
use super::role::Splitter;
use super::stage::{Sections, Split};

/// Which true sections stay true.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Which {
    First,
    Prefix,
    StartOf,
    EndOf,
}

/// The stage of [`first`], [`prefix`], [`start_of`] and [`end_of`].
#[derive(Debug, Clone)]
pub struct Choose<S> {
    splitter: S,
    place: Chosen,
}

#[derive(Debug, Clone)]
struct Chosen {
    which: Which,
    /// No later section stays true.
    over: bool,
    /// The section that is open has an item.
    inside: bool,
}

fn chosen<A: Item + ?Sized, S: Split<A>>(which: Which, splitter: Splitter<A, S>) -> Splitter<A, Choose<S>> {
    Splitter::new(Choose { splitter: splitter.stage, place: Chosen { which, over: false, inside: false } })
}

/// Only the first true section of `splitter` stays true.
///
/// # Examples
/// ```
/// use selvedge::coroutine::pipeline::{first, foreach, from_chunks, id, substitute, substring};
///
/// let once = foreach(first(substring(b"warp")), substitute(b"weft"), id());
/// assert_eq!((from_chunks(["a warp, a warp"]) >> once).collect(), b"a weft, a warp");
/// ```
pub fn first<A: Item + ?Sized, S: Split<A>>(splitter: Splitter<A, S>) -> Splitter<A, Choose<S>> {
    chosen(Which::First, splitter)
}

/// A true section of `splitter` stays true only at the beginning of the stream.
///
/// # Examples
/// ```
/// use selvedge::coroutine::pipeline::{from_chunks, prefix, satisfies, select};
///
/// let digits = || satisfies(|c: &u8| c.is_ascii_digit());
/// assert_eq!((from_chunks(["12a34"]) >> select(prefix(digits()))).collect(), b"12");
/// assert_eq!((from_chunks(["a34"]) >> select(prefix(digits()))).collect(), b"");
/// ```
pub fn prefix<A: Item + ?Sized, S: Split<A>>(splitter: Splitter<A, S>) -> Splitter<A, Choose<S>> {
    chosen(Which::Prefix, splitter)
}

/// An empty true section where each true section of `splitter` begins. All items are false.
///
/// # Examples
/// ```
/// use selvedge::coroutine::pipeline::{foreach, from_chunks, id, start_of, substitute, whole_line};
///
/// let quote = foreach(start_of(whole_line()), substitute(b"> "), id());
/// assert_eq!((from_chunks(["warp\nweft\n"]) >> quote).collect(), b"> warp\n> weft\n");
/// ```
pub fn start_of<A: Item + ?Sized, S: Split<A>>(splitter: Splitter<A, S>) -> Splitter<A, Choose<S>> {
    chosen(Which::StartOf, splitter)
}

/// An empty true section where each true section of `splitter` ends. All items are false.
pub fn end_of<A: Item + ?Sized, S: Split<A>>(splitter: Splitter<A, S>) -> Splitter<A, Choose<S>> {
    chosen(Which::EndOf, splitter)
}

struct Judge<'a, P> {
    place: &'a mut Chosen,
    out: &'a mut P,
}

impl<P> Judge<'_, P> {
    /// Puts the empty section before the first item of a section.
    fn mark<A: Item + ?Sized>(&mut self, verdict: bool) -> Flow
    where
        P: Sections<A>,
    {
        let begins = !std::mem::replace(&mut self.place.inside, true);
        if begins && verdict && self.place.which == Which::StartOf { self.out.close(true) } else { GO_ON }
    }

    /// The verdict of a section that `splitter` has given this verdict.
    fn verdict(&self, verdict: bool) -> bool {
        verdict && !self.place.over && matches!(self.place.which, Which::First | Which::Prefix)
    }
}

impl<A: Item + ?Sized, P: Sections<A>> Sections<A> for Judge<'_, P> {
    #[inline]
    fn part(&mut self, verdict: bool, item: &A) -> Flow {
        self.mark(verdict)?;
        self.out.part(self.verdict(verdict), item)
    }

    #[inline]
    fn part_chunk(&mut self, verdict: bool, chunk: A::Chunk<'_>) -> Flow {
        if chunk.is_empty() {
            return GO_ON;
        }
        self.mark(verdict)?;
        self.out.part_chunk(self.verdict(verdict), chunk)
    }

    fn close(&mut self, verdict: bool) -> Flow {
        let inside = std::mem::replace(&mut self.place.inside, false);
        match self.place.which {
            Which::First | Which::Prefix => self.out.close(self.verdict(verdict))?,
            Which::StartOf if verdict && !inside => self.out.close(true)?,
            Which::StartOf => self.out.close(false)?,
            Which::EndOf => {
                if inside || !verdict {
                    self.out.close(false)?;
                }
                if verdict {
                    self.out.close(true)?;
                }
            }
        }
        self.place.over |= verdict || self.place.which == Which::Prefix;
        GO_ON
    }
}

impl<A: Item + ?Sized, S: Split<A>> Split<A> for Choose<S> {
    fn put<P: Sections<A>>(&mut self, item: &A, out: &mut P) -> Flow {
        self.splitter.put(item, &mut Judge { place: &mut self.place, out })
    }

    fn put_chunk<P: Sections<A>>(&mut self, chunk: A::Chunk<'_>, out: &mut P) -> Flow {
        self.splitter.put_chunk(chunk, &mut Judge { place: &mut self.place, out })
    }

    fn end<P: Sections<A>>(&mut self, out: &mut P) -> Flow {
        self.splitter.end(&mut Judge { place: &mut self.place, out })
    }
}

/// Sections that are kept until it is known whether the first of them stays true.
#[derive(Debug, Clone, Default)]
struct KeptSections<C> {
    items: C,
    /// The ends of the sections that are complete.
    ends: Vec<usize>,
}

impl<C> KeptSections<C> {
    /// Passes the sections on. The first one has the verdict `first`, the others are false.
    fn release<A: Item + ?Sized>(&mut self, first: bool, out: &mut impl Sections<A>) -> Flow
    where
        C: Store<A>,
    {
        let (mut verdict, mut begin) = (first, 0);
        for end in self.ends.drain(..) {
            out.part_chunk(verdict, self.items.chunk(begin..end))?;
            out.close(verdict)?;
            (verdict, begin) = (false, end);
        }
        self.items.clear();
        GO_ON
    }
}

/// The stage of [`last`] and [`suffix`].
#[derive(Debug, Clone)]
pub struct LastOf<S, C> {
    splitter: S,
    candidate: Candidate<C>,
}

#[derive(Debug, Clone)]
struct Candidate<C> {
    /// Only the end of the stream may follow it.
    suffix: bool,
    /// The section that is open has an item.
    inside: bool,
    /// A true section is held, with all that follows it.
    holds: bool,
    held: KeptSections<C>,
}

fn candidate<A: Item + ?Sized, S: Split<A>>(
    suffix: bool,
    splitter: Splitter<A, S>,
) -> Splitter<A, LastOf<S, A::Store>> {
    let held = KeptSections { items: A::Store::default(), ends: Vec::new() };
    let candidate = Candidate { suffix, inside: false, holds: false, held };
    Splitter::new(LastOf { splitter: splitter.stage, candidate })
}

/// Only the last true section of `splitter` stays true.
///
/// The stream is kept from each true section to the next one.
///
/// # Examples
/// ```
/// use selvedge::coroutine::pipeline::{from_chunks, last, line, select};
///
/// assert_eq!((from_chunks(["warp\nweft\n"]) >> select(last(line()))).collect(), b"weft");
/// ```
pub fn last<A: Item + ?Sized, S: Split<A>>(splitter: Splitter<A, S>) -> Splitter<A, LastOf<S, A::Store>> {
    candidate(false, splitter)
}

/// A true section of `splitter` stays true only at the end of the stream.
///
/// Each true section is kept until its end.
pub fn suffix<A: Item + ?Sized, S: Split<A>>(splitter: Splitter<A, S>) -> Splitter<A, LastOf<S, A::Store>> {
    candidate(true, splitter)
}

struct Hold<'a, C, P> {
    candidate: &'a mut Candidate<C>,
    out: &'a mut P,
}

impl<C, P> Hold<'_, C, P> {
    /// A section begins.
    fn begin<A: Item + ?Sized>(&mut self, verdict: bool) -> Flow
    where
        C: Store<A>,
        P: Sections<A>,
    {
        if verdict || self.candidate.suffix {
            self.candidate.held.release(false, self.out)?;
            self.candidate.holds = verdict;
        }
        GO_ON
    }
}

impl<A: Item + ?Sized, C: Store<A>, P: Sections<A>> Sections<A> for Hold<'_, C, P> {
    fn part(&mut self, verdict: bool, item: &A) -> Flow {
        self.part_chunk(verdict, A::Chunk::one(item))
    }

    fn part_chunk(&mut self, verdict: bool, chunk: A::Chunk<'_>) -> Flow {
        if chunk.is_empty() {
            return GO_ON;
        }
        if !std::mem::replace(&mut self.candidate.inside, true) {
            self.begin(verdict)?;
        }
        if !self.candidate.holds {
            return self.out.part_chunk(verdict, chunk);
        }
        self.candidate.held.items.keep_all(chunk);
        GO_ON
    }

    fn close(&mut self, verdict: bool) -> Flow {
        if !std::mem::replace(&mut self.candidate.inside, false) {
            self.begin(verdict)?;
        }
        if !self.candidate.holds {
            return self.out.close(verdict);
        }
        let held = &mut self.candidate.held;
        held.ends.push(held.items.count());
        GO_ON
    }
}

impl<A: Item + ?Sized, S: Split<A>, C: Store<A>> Split<A> for LastOf<S, C> {
    fn put<P: Sections<A>>(&mut self, item: &A, out: &mut P) -> Flow {
        self.splitter.put(item, &mut Hold { candidate: &mut self.candidate, out })
    }

    fn put_chunk<P: Sections<A>>(&mut self, chunk: A::Chunk<'_>, out: &mut P) -> Flow {
        self.splitter.put_chunk(chunk, &mut Hold { candidate: &mut self.candidate, out })
    }

    fn end<P: Sections<A>>(&mut self, out: &mut P) -> Flow {
        self.splitter.end(&mut Hold { candidate: &mut self.candidate, out })?;
        self.candidate.held.release(true, out)
    }
}
