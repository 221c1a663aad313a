//! `any` and `all`: splitters of lists. The verdict on a list depends on the verdicts of another
//! splitter on the elements of that list. `Detector` stops at the first element that decides;
//! `foreach.rs` uses it too.
//!
//! The slow way clones the inner splitter for each list. The fast way asks `Split::search` for a
//! place in the elements of all lists and looks for the list around that place. Both ways must give
//! the same verdicts, because a chunk decides which of them runs. [Pipes, Parting and joining the
//! stream].

use crate::edges::parts::SplitByItem;
use crate::item::lists::{KnownEnds, Lists, ZippedLists};
use crate::item::{Chunk, FINISHED, Flow, GO_ON, Item};
use crate::role::Splitter;
use crate::splitters::split::Runs;
use crate::stage::{Sections, Split};

/// Looks for an item with the verdict `wanted`, and breaks when one comes.
#[derive(Debug, Clone)]
pub(crate) struct Detector {
    wanted: bool,
    pub(crate) found: bool,
}

impl Detector {
    pub(crate) fn of(wanted: bool) -> Detector {
        Detector { wanted, found: false }
    }
}

impl<A: Item + ?Sized> Sections<A> for Detector {
    #[inline]
    fn part(&mut self, verdict: bool, _item: &A) -> Flow {
        self.found |= verdict == self.wanted;
        if self.found { FINISHED } else { GO_ON }
    }

    #[inline]
    fn part_chunk(&mut self, verdict: bool, chunk: A::Chunk<'_>) -> Flow {
        self.found |= verdict == self.wanted && !chunk.is_empty();
        if self.found { FINISHED } else { GO_ON }
    }

    #[inline]
    fn close(&mut self, _verdict: bool) -> Flow {
        GO_ON
    }
}

/// The stage of [`any`] and [`all`].
#[derive(Debug, Clone)]
pub struct Within<S> {
    splitter: S,
    /// The verdict of an element that decides about its list. The list then has this verdict too.
    wanted: bool,
    runs: Runs,
}

/// A list is true if `splitter` deems any of its elements true. The splitter begins anew for each
/// list.
///
/// If `splitter` is a [`substring`](crate::substring), then the search runs over many lists at
/// once, and only the lists around the places it finds are cut out.
///
/// # Paper
/// [Pipes, Parting and joining the stream] `any`.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{any, from_chunks, group_by, line, select, substring};
///
/// let lines = from_chunks(["warp\nweft\nno warp\n"]) >> group_by(line());
/// let knots = lines >> select(any(substring(b"warp")));
/// assert_eq!(knots.collect().iter().collect::<Vec<_>>(), [&b"warp"[..], b"no warp"]);
/// ```
pub fn any<E: Clone + 'static, S: Split<E> + Clone>(splitter: Splitter<E, S>) -> Splitter<[E], Within<S>> {
    Splitter::new(Within { splitter: splitter.stage, wanted: true, runs: Runs::default() })
}

/// A list is false if `splitter` deems any of its elements false. The splitter begins anew for each
/// list.
///
/// # Paper
/// [Pipes, Parting and joining the stream] `all`.
pub fn all<E: Clone + 'static, S: Split<E> + Clone>(splitter: Splitter<E, S>) -> Splitter<[E], Within<S>> {
    Splitter::new(Within { splitter: splitter.stage, wanted: false, runs: Runs::default() })
}

impl<S> Within<S> {
    fn verdict<E: Clone + 'static>(&self, list: &[E]) -> bool
    where
        S: Split<E> + Clone,
    {
        if self.wanted
            && let Ok(found) = self.splitter.search(list)
        {
            return found.is_some();
        }
        let mut detector = Detector::of(self.wanted);
        let mut splitter = self.splitter.clone();
        if splitter.put_chunk(list, &mut detector).is_continue() {
            let _found = splitter.end(&mut detector);
        }
        detector.found == self.wanted
    }

    /// Searches all lists at once, and looks up the list of each place that is found.
    fn put_known<E: Clone + 'static>(
        &mut self,
        known: &KnownEnds<'_, E>,
        out: &mut impl Sections<[E]>,
    ) -> Flow
    where
        S: Split<E> + Clone,
    {
        // The lists before `first` are decided. No true section begins before `from`.
        let (mut first, mut from) = (0, 0);
        while let Ok(Some(found)) = self.splitter.search(&known.flat[from..]) {
            let found = from + found.start..from + found.end;
            let list = known.holder(first, found.start);
            if found.end > known.end(list) {
                // It reaches into the next list, so it is in no list.
                from = found.start + 1;
                continue;
            }
            self.part(false, known.lists(first, list), out)?;
            self.part(true, known.lists(list, list + 1), out)?;
            (first, from) = (list + 1, known.end(list));
        }
        self.part(false, known.lists(first, known.count()), out)
    }

    /// Searches the right lists alone, because no true section begins in a left one.
    fn put_zipped<E: Clone + 'static>(
        &mut self,
        zipped: &ZippedLists<'_, E>,
        out: &mut impl Sections<[E]>,
    ) -> Flow
    where
        S: Split<E> + Clone,
    {
        let (stream, cut) = zipped.right();
        // The lists before `first` are decided, and `begin` is where that one begins. No true
        // section begins before `from`.
        let (mut first, mut begin, mut from) = (0, 0, 0);
        while let Ok(Some(found)) = self.splitter.search(&stream[from..]) {
            let found = from + found.start..from + found.end;
            let list = begin + cut.last(&stream[begin..found.start]);
            let rest = stream.len() - list;
            let (end, next) = cut.first(&stream[list..]).unwrap_or((rest, rest));
            if found.end > list + end {
                // It reaches into the separator or into the next list, so it is in no list.
                from = found.start + 1;
                continue;
            }
            let (before, index) = zipped.part(first, begin..list);
            self.part(false, before.lists(), out)?;
            let (found, index) = zipped.part(index, list..list + next);
            self.part(true, found.lists(), out)?;
            (first, begin, from) = (index, list + next, list + next);
        }
        self.part(false, zipped.part(first, begin..stream.len()).0.lists(), out)
    }

    fn part<E: Clone + 'static>(
        &mut self,
        verdict: bool,
        lists: Lists<'_, E>,
        out: &mut impl Sections<[E]>,
    ) -> Flow {
        if lists.is_empty() {
            return GO_ON;
        }
        self.runs.next(verdict, out)?;
        out.part_chunk(verdict, lists)
    }
}

impl<E: Clone + 'static, S: Split<E> + Clone> Split<[E]> for Within<S> {
    #[inline]
    fn put<P: Sections<[E]>>(&mut self, item: &[E], out: &mut P) -> Flow {
        let verdict = self.verdict(item);
        self.runs.next(verdict, out)?;
        out.part(verdict, item)
    }

    fn put_chunk<P: Sections<[E]>>(&mut self, chunk: Lists<'_, E>, out: &mut P) -> Flow {
        let searches = self.wanted && self.splitter.search(&[]).is_ok();
        if let Some(zipped) = chunk.zipped().filter(|_| searches)
            && !self.splitter.may_begin(zipped.left())
        {
            return self.put_zipped(zipped, out);
        }
        if let Some(known) = chunk.known().filter(|_| searches) {
            return self.put_known(&known, out);
        }
        let Some((stream, cut)) = chunk.searchable().filter(|_| searches) else {
            return chunk.each(|list| self.put(list, out));
        };
        // The lists before `begin` are decided. No true section begins before `from`.
        let (mut begin, mut from) = (0, 0);
        while let Ok(Some(found)) = self.splitter.search(&stream[from..]) {
            let found = from + found.start..from + found.end;
            let list = begin + cut.last(&stream[begin..found.start]);
            let rest = stream.len() - list;
            let (end, next) = cut.first(&stream[list..]).unwrap_or((rest, rest));
            if found.end > list + end {
                // It reaches into the separator or into the next list, so it is in no list.
                from = found.start + 1;
                continue;
            }
            self.part(false, Lists::cut(&stream[begin..list], cut), out)?;
            self.part(true, Lists::cut(&stream[list..list + next], cut), out)?;
            (begin, from) = (list + next, list + next);
        }
        self.part(false, Lists::cut(&stream[begin..], cut), out)
    }

    fn end<P: Sections<[E]>>(&mut self, out: &mut P) -> Flow {
        self.runs.close(out)
    }
}

impl<E: Clone + 'static, S: Split<E> + Clone> SplitByItem<[E]> for Within<S> {}
