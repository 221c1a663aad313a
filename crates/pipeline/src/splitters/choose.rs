//! Splitters that keep some of the true sections of another splitter, by the place of the section:
//! `first`, `even`, `prefix`, `start_of`, `end_of`, and `last`, `suffix`, `last_and_after`,
//! `upto_first`.
//!
//! The first five decide at once. The others know the answer only later. `LastOf` keeps a true
//! section and all that follows it until the next true section, or the end, decides. `UptoFirst`
//! keeps all that lies before the first true section. Every item must leave in its order, whether
//! its verdict changes or not. [Pipes, Parting and joining the stream].

use crate::item::{Chunk, Flow, GO_ON, Item, Store};
use crate::role::Splitter;
use crate::stage::{Sections, Split};
use std::ops::ControlFlow;

/// Which true sections stay true.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Which {
    First,
    Even,
    Prefix,
    StartOf,
    EndOf,
}

/// The stage of [`first`], [`even`], [`prefix`], [`start_of`] and [`end_of`].
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
    /// An odd number of true sections have ended.
    even: bool,
    /// The section that is open has an item.
    inside: bool,
}

fn chosen<A: Item + ?Sized, S: Split<A>>(which: Which, splitter: Splitter<A, S>) -> Splitter<A, Choose<S>> {
    let place = Chosen { which, over: false, even: false, inside: false };
    Splitter::new(Choose { splitter: splitter.stage, place })
}

/// Only the first true section of `splitter` stays true.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{first, foreach, from_chunks, id, substitute, substring};
///
/// let once = foreach(first(substring(b"warp")), substitute(b"weft"), id());
/// assert_eq!((from_chunks(["a warp, a warp"]) >> once).collect(), b"a weft, a warp");
/// ```
pub fn first<A: Item + ?Sized, S: Split<A>>(splitter: Splitter<A, S>) -> Splitter<A, Choose<S>> {
    chosen(Which::First, splitter)
}

/// Every second true section of `splitter` stays true: the second, the fourth and so on. An empty
/// section counts too.
///
/// # Paper
/// [Pipes, Parting and joining the stream]: `even` of the package SCC, which it names.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{even, from_chunks, lift121, wherever, whole_line};
///
/// let upper = lift121(|c: &u8| c.to_ascii_uppercase());
/// let striped = from_chunks(["warp\nweft\nknot\nloom\n"]) >> wherever(upper, even(whole_line()));
/// assert_eq!(striped.collect(), b"warp\nWEFT\nknot\nLOOM\n");
/// ```
pub fn even<A: Item + ?Sized, S: Split<A>>(splitter: Splitter<A, S>) -> Splitter<A, Choose<S>> {
    chosen(Which::Even, splitter)
}

/// A true section of `splitter` stays true only at the beginning of the stream.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_chunks, prefix, satisfies, select};
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
/// use selvedge::pipeline::{foreach, from_chunks, id, start_of, substitute, whole_line};
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
        match self.place.which {
            Which::First | Which::Prefix => verdict && !self.place.over,
            Which::Even => verdict && self.place.even,
            Which::StartOf | Which::EndOf => false,
        }
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
            Which::First | Which::Even | Which::Prefix => self.out.close(self.verdict(verdict))?,
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
        self.place.even ^= verdict;
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

/// Sections that are kept until it is known which of them are true.
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

    /// Passes the items of all sections on, in a true section that stays open.
    fn release_as_one<A: Item + ?Sized>(&mut self, out: &mut impl Sections<A>) -> Flow
    where
        C: Store<A>,
    {
        self.ends.clear();
        let items = std::mem::take(&mut self.items);
        if items.count() == 0 { GO_ON } else { out.part_chunk(true, items.all()) }
    }
}

/// Which sections [`LastOf`] leaves true.
#[derive(Debug, Clone, Copy, PartialEq)]
enum WhichLast {
    Last,
    Suffix,
    LastAndAfter,
}

/// The stage of [`last`], [`suffix`] and [`last_and_after`].
#[derive(Debug, Clone)]
pub struct LastOf<S, C> {
    splitter: S,
    candidate: Candidate<C>,
}

#[derive(Debug, Clone)]
struct Candidate<C> {
    which: WhichLast,
    /// The section that is open has an item.
    inside: bool,
    /// A true section is held, with all that follows it.
    holds: bool,
    held: KeptSections<C>,
}

fn candidate<A: Item + ?Sized, S: Split<A>>(
    which: WhichLast,
    splitter: Splitter<A, S>,
) -> Splitter<A, LastOf<S, A::Store>> {
    let held = KeptSections { items: A::Store::default(), ends: Vec::new() };
    let candidate = Candidate { which, inside: false, holds: false, held };
    Splitter::new(LastOf { splitter: splitter.stage, candidate })
}

/// Only the last true section of `splitter` stays true.
///
/// The stream is kept from each true section to the next one.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_chunks, last, line, select};
///
/// assert_eq!((from_chunks(["warp\nweft\n"]) >> select(last(line()))).collect(), b"weft");
/// ```
pub fn last<A: Item + ?Sized, S: Split<A>>(splitter: Splitter<A, S>) -> Splitter<A, LastOf<S, A::Store>> {
    candidate(WhichLast::Last, splitter)
}

/// A true section of `splitter` stays true only at the end of the stream.
///
/// Each true section is kept until its end.
pub fn suffix<A: Item + ?Sized, S: Split<A>>(splitter: Splitter<A, S>) -> Splitter<A, LastOf<S, A::Store>> {
    candidate(WhichLast::Suffix, splitter)
}

/// The last true section of `splitter` and all that comes after it are one true section. All before
/// it is false. If `splitter` has no true section, all is false.
///
/// The stream is kept from each true section to the next one.
///
/// # Paper
/// [Pipes, Parting and joining the stream]: `lastAndAfter` of the package SCC, which it names.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_chunks, last_and_after, select, substring};
///
/// let path = from_chunks(["usr/lib/warp.so"]);
/// assert_eq!((path >> select(last_and_after(substring(b"/")))).collect(), b"/warp.so");
/// ```
#[doc(alias = "lastAndAfter")]
pub fn last_and_after<A: Item + ?Sized, S: Split<A>>(
    splitter: Splitter<A, S>,
) -> Splitter<A, LastOf<S, A::Store>> {
    candidate(WhichLast::LastAndAfter, splitter)
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
        if verdict || self.candidate.which == WhichLast::Suffix {
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
        let Candidate { which, held, .. } = &mut self.candidate;
        if *which != WhichLast::LastAndAfter || held.ends.is_empty() {
            return held.release(true, out);
        }
        held.release_as_one(out)?;
        out.close(true)
    }
}

/// The stage of [`upto_first`].
#[derive(Debug, Clone)]
pub struct UptoFirst<S, C> {
    splitter: S,
    upto: Upto<C>,
}

#[derive(Debug, Clone)]
struct Upto<C> {
    reached: Reached,
    /// The sections before the first true one.
    held: KeptSections<C>,
}

/// How far the stream has come.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Reached {
    /// No true section has begun.
    Before,
    /// The first true section is open.
    Inside,
    /// It has ended.
    After,
}

/// All up to the end of the first true section of `splitter` is one true section. All after it is
/// false. If `splitter` has no true section, all is false.
///
/// The stream is kept until the first true section begins. `!between(end_of(first(splitter)),
/// !everything())` keeps nothing, and is true of the whole stream if `splitter` has no true
/// section.
///
/// # Paper
/// [Pipes, Parting and joining the stream]: `uptoFirst` of the package SCC, which it names.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_chunks, select, substring, upto_first};
///
/// // The head of a message ends with the first blank line.
/// let head = || select(upto_first(substring(b"\r\n\r\n")));
/// let message = from_chunks(["a: warp\r\n\r", "\nweft\r\n\r\nknot"]);
/// assert_eq!((message >> head()).collect(), b"a: warp\r\n\r\n");
/// assert_eq!((from_chunks(["a: warp\r\n"]) >> head()).collect(), b"");
/// ```
#[doc(alias = "uptoFirst")]
pub fn upto_first<A: Item + ?Sized, S: Split<A>>(
    splitter: Splitter<A, S>,
) -> Splitter<A, UptoFirst<S, A::Store>> {
    let held = KeptSections { items: A::Store::default(), ends: Vec::new() };
    Splitter::new(UptoFirst { splitter: splitter.stage, upto: Upto { reached: Reached::Before, held } })
}

struct Upwards<'a, C, P> {
    upto: &'a mut Upto<C>,
    out: &'a mut P,
}

impl<C, P> Upwards<'_, C, P> {
    /// The section of this verdict goes on, or ends. Returns whether it is kept.
    fn is_kept<A: Item + ?Sized>(&mut self, verdict: bool) -> ControlFlow<(), bool>
    where
        C: Store<A>,
        P: Sections<A>,
    {
        if self.upto.reached == Reached::Before && verdict {
            self.upto.reached = Reached::Inside;
            self.upto.held.release_as_one(self.out)?;
        }
        ControlFlow::Continue(self.upto.reached == Reached::Before)
    }
}

impl<A: Item + ?Sized, C: Store<A>, P: Sections<A>> Sections<A> for Upwards<'_, C, P> {
    fn part(&mut self, verdict: bool, item: &A) -> Flow {
        if self.is_kept(verdict)? {
            self.upto.held.items.keep(item);
            return GO_ON;
        }
        self.out.part(self.upto.reached == Reached::Inside, item)
    }

    fn part_chunk(&mut self, verdict: bool, chunk: A::Chunk<'_>) -> Flow {
        if chunk.is_empty() {
            return GO_ON;
        }
        if self.is_kept(verdict)? {
            self.upto.held.items.keep_all(chunk);
            return GO_ON;
        }
        self.out.part_chunk(self.upto.reached == Reached::Inside, chunk)
    }

    fn close(&mut self, verdict: bool) -> Flow {
        if self.is_kept(verdict)? {
            let held = &mut self.upto.held;
            held.ends.push(held.items.count());
            return GO_ON;
        }
        self.out.close(std::mem::replace(&mut self.upto.reached, Reached::After) == Reached::Inside)
    }
}

impl<A: Item + ?Sized, S: Split<A>, C: Store<A>> Split<A> for UptoFirst<S, C> {
    fn put<P: Sections<A>>(&mut self, item: &A, out: &mut P) -> Flow {
        self.splitter.put(item, &mut Upwards { upto: &mut self.upto, out })
    }

    fn put_chunk<P: Sections<A>>(&mut self, chunk: A::Chunk<'_>, out: &mut P) -> Flow {
        self.splitter.put_chunk(chunk, &mut Upwards { upto: &mut self.upto, out })
    }

    fn end<P: Sections<A>>(&mut self, out: &mut P) -> Flow {
        self.splitter.end(&mut Upwards { upto: &mut self.upto, out })?;
        // There is no true section if sections are kept now.
        self.upto.held.release(false, out)
    }
}
