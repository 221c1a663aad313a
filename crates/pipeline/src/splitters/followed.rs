//! `followed_by`: a true section of one splitter, and behind it a true section of another one that
//! begins anew there. Users call it, for patterns that are put together from patterns.
//!
//! A true section of the first splitter is a candidate. The items of a candidate are kept, with
//! all that comes behind them, while a fresh clone of the second splitter takes what comes behind
//! them, until its first section has a verdict. If that is true, both sections leave as one.
//! Otherwise the candidate is false, and the items behind it are looked at again, so that the next
//! candidate may begin among them. `Said` keeps what the first splitter has said of the items that
//! are kept. [Pipes, Parting and joining the stream].

use crate::item::{Chunk, FINISHED, Flow, GO_ON, Item, Store};
use crate::role::Splitter;
use crate::splitters::split::Runs;
use crate::stage::{Sections, Split};
use std::collections::VecDeque;
use std::ops::ControlFlow::{self, Continue};

/// The stage of [`followed_by`].
#[derive(Debug, Clone)]
pub struct FollowedBy<S, T, C> {
    first: S,
    search: Search<T, C>,
}

#[derive(Debug, Clone)]
struct Search<T, C> {
    /// The second splitter, which is never fed.
    recipe: T,
    /// The items that have not left.
    items: C,
    /// What the first splitter says of the items behind the candidate.
    said: VecDeque<Said>,
    /// The first splitter has ended.
    ended: bool,
    progress: Progress<T>,
    /// The open section of the first splitter began within a match, so it is no candidate.
    begun_within: bool,
    runs: Runs,
}

/// What the first splitter says.
#[derive(Debug, Clone, Copy)]
enum Said {
    /// This number of items have this verdict.
    Items(bool, usize),
    /// The section ends.
    Close(bool),
}

#[derive(Debug, Clone)]
enum Progress<T> {
    /// There is no candidate.
    Searches,
    /// This number of items of a candidate have come, and it is open.
    Candidate(usize),
    /// The candidate has ended.
    Tries(SecondRun<T>),
}

/// The second splitter behind a candidate.
#[derive(Debug, Clone)]
struct SecondRun<T> {
    second: T,
    /// How many of the kept items have been given to it, or lie before it.
    given: usize,
    /// The kept items of the match: the candidate's, and the items that the second splitter has put
    /// into its first section.
    matched: usize,
    first_section: FirstSection,
}

/// What a splitter says of its first section. It breaks when it has heard all of it.
#[derive(Debug, Clone, Default)]
struct FirstSection {
    verdict: Option<bool>,
    items: usize,
    closed: bool,
}

impl<A: Item + ?Sized> Sections<A> for FirstSection {
    fn part(&mut self, verdict: bool, _item: &A) -> Flow {
        self.verdict = Some(verdict);
        self.items += 1;
        if verdict { GO_ON } else { FINISHED }
    }

    fn part_chunk(&mut self, verdict: bool, chunk: A::Chunk<'_>) -> Flow {
        if chunk.is_empty() {
            return GO_ON;
        }
        self.verdict = Some(verdict);
        self.items += chunk.count() as usize;
        if verdict { GO_ON } else { FINISHED }
    }

    fn close(&mut self, verdict: bool) -> Flow {
        self.verdict = Some(verdict);
        self.closed = true;
        FINISHED
    }
}

/// A true section of `first` with a true section of `second` right behind it is one true section.
/// All other items are false, in sections that are as long as possible.
///
/// `second` begins anew behind each true section of `first`, and its first section there must be
/// true. Both sections may be empty: with [`start_of`](crate::start_of) and
/// [`end_of`](crate::end_of) a section is found only at a certain place. What `first` calls true is
/// not looked at if it begins within a true section that is found.
///
/// The stream is kept from each true section of `first` until `second` has decided.
///
/// # Complexity
/// Each item is taken once by `first`, and by `second` once for each true section of `first` behind
/// which it lies, until `second` has decided there.
///
/// # Paper
/// [Pipes, Parting and joining the stream]: `followedBy` of the package SCC, which it names.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{
///     followed_by, from_chunks, group_by, line, satisfies, select, start_of, substring,
/// };
///
/// let digits = || satisfies(|c: &u8| c.is_ascii_digit());
/// let fractions = followed_by(followed_by(digits(), substring(b".")), digits());
/// let found = from_chunks(["1.5 and 2, .3 and 10", ".25"]) >> group_by(fractions);
/// assert_eq!(found.collect().iter().collect::<Vec<_>>(), [&b"1.5"[..], b"10.25"]);
///
/// // A text at the beginning of a line only.
/// let heading = followed_by(start_of(line()), substring(b"# "));
/// assert_eq!((from_chunks(["# a # b\n# c"]) >> select(heading)).collect(), b"# # ");
/// ```
#[doc(alias = "followedBy")]
pub fn followed_by<A, S, T>(
    first: Splitter<A, S>,
    second: Splitter<A, T>,
) -> Splitter<A, FollowedBy<S, T, A::Store>>
where
    A: Item + ?Sized,
    S: Split<A>,
    T: Split<A> + Clone,
{
    let search = Search {
        recipe: second.stage,
        items: A::Store::default(),
        said: VecDeque::new(),
        ended: false,
        progress: Progress::Searches,
        begun_within: false,
        runs: Runs::default(),
    };
    Splitter::new(FollowedBy { first: first.stage, search })
}

/// What the trial behind a candidate has come to.
enum Outcome {
    /// It waits for more items.
    Open,
    /// The candidate is false.
    Failed,
    /// The match has ended.
    Ended,
}

impl<T, C> Search<T, C> {
    /// Puts kept items out, which are false.
    fn pass<A: Item + ?Sized>(&mut self, from: usize, count: usize, out: &mut impl Sections<A>) -> Flow
    where
        C: Store<A>,
    {
        self.runs.next(false, out)?;
        out.part_chunk(false, self.items.chunk(from..from + count))
    }

    /// Goes on with all that is kept.
    fn advance<A: Item + ?Sized>(&mut self, out: &mut impl Sections<A>) -> Flow
    where
        T: Split<A> + Clone,
        C: Store<A>,
    {
        // The items before `done` have left. The positions of a candidate count from `done`.
        let mut done = 0;
        loop {
            match &mut self.progress {
                Progress::Searches => match self.said.pop_front() {
                    None => break,
                    Some(Said::Items(verdict, count)) if !verdict || self.begun_within => {
                        self.pass(done, count, out)?;
                        done += count;
                    }
                    Some(Said::Items(_, count)) => self.progress = Progress::Candidate(count),
                    Some(Said::Close(verdict)) => {
                        if !std::mem::take(&mut self.begun_within) && verdict {
                            self.progress = self.trial(0);
                        }
                    }
                },
                Progress::Candidate(length) => match self.said.pop_front() {
                    None => break,
                    Some(Said::Items(_, count)) => *length += count,
                    Some(Said::Close(_)) => {
                        let length = *length;
                        self.progress = self.trial(length);
                    }
                },
                Progress::Tries(_) => match self.tried(&mut done, out)? {
                    Outcome::Open => break,
                    Outcome::Failed | Outcome::Ended => self.progress = Progress::Searches,
                },
            }
        }
        if done > 0 {
            self.items.forget(done);
        }
        GO_ON
    }

    /// The trial behind a candidate of this number of items.
    fn trial(&self, length: usize) -> Progress<T>
    where
        T: Clone,
    {
        let first_section = FirstSection::default();
        Progress::Tries(SecondRun {
            second: self.recipe.clone(),
            given: length,
            matched: length,
            first_section,
        })
    }

    /// Gives the trial what it has not had, and puts out what is decided. Counts it in `done`.
    fn tried<A: Item + ?Sized>(
        &mut self,
        done: &mut usize,
        out: &mut impl Sections<A>,
    ) -> ControlFlow<(), Outcome>
    where
        T: Split<A> + Clone,
        C: Store<A>,
    {
        let Progress::Tries(SecondRun { second, given, matched, first_section }) = &mut self.progress else {
            return Continue(Outcome::Open);
        };
        let fresh = first_section.verdict.is_none();
        let rest = *done + *given..self.items.count();
        *given += rest.len();
        let mut flow = GO_ON;
        if !rest.is_empty() {
            flow = second.put_chunk(self.items.chunk(rest), first_section);
        }
        if self.ended && flow.is_continue() {
            let _heard = second.end(first_section);
        }
        match first_section.verdict {
            None if !self.ended => return Continue(Outcome::Open),
            None | Some(false) => {
                let length = *matched;
                if length > 0 {
                    self.pass(*done, length, out)?;
                    *done += length;
                }
                return Continue(Outcome::Failed);
            }
            Some(true) => {}
        }
        let more = std::mem::take(&mut first_section.items);
        let closed = first_section.closed;
        // The items of the candidate leave with the first ones behind them.
        let count = *matched + more;
        *given -= count;
        *matched = 0;
        skip(&mut self.said, &mut self.begun_within, more);
        if fresh {
            self.runs.close(out)?;
        }
        if count > 0 {
            out.part_chunk(true, self.items.chunk(*done..*done + count))?;
            *done += count;
        }
        if !closed {
            return Continue(Outcome::Open);
        }
        out.close(true)?;
        Continue(Outcome::Ended)
    }
}

/// Takes away what the first splitter has said of the next `count` items, which are in a match.
fn skip(said: &mut VecDeque<Said>, begun_within: &mut bool, mut count: usize) {
    while count > 0 {
        match said.pop_front() {
            None => return,
            Some(Said::Close(_)) => *begun_within = false,
            Some(Said::Items(verdict, items)) => {
                *begun_within = true;
                if items > count {
                    said.push_front(Said::Items(verdict, items - count));
                }
                count = count.saturating_sub(items);
            }
        }
    }
}

/// The downstream side of the first splitter.
struct Hears<'a, T, C, P> {
    search: &'a mut Search<T, C>,
    out: &'a mut P,
}

impl<A, T, C, P> Sections<A> for Hears<'_, T, C, P>
where
    A: Item + ?Sized,
    T: Split<A> + Clone,
    C: Store<A>,
    P: Sections<A>,
{
    fn part(&mut self, verdict: bool, item: &A) -> Flow {
        self.part_chunk(verdict, A::Chunk::one(item))
    }

    fn part_chunk(&mut self, verdict: bool, chunk: A::Chunk<'_>) -> Flow {
        if chunk.is_empty() {
            return GO_ON;
        }
        let search = &mut *self.search;
        if let Progress::Searches = search.progress
            && (!verdict || search.begun_within)
        {
            search.runs.next(false, self.out)?;
            return self.out.part_chunk(false, chunk);
        }
        search.items.keep_all(chunk);
        search.said.push_back(Said::Items(verdict, chunk.count() as usize));
        search.advance(self.out)
    }

    fn close(&mut self, verdict: bool) -> Flow {
        self.search.said.push_back(Said::Close(verdict));
        self.search.advance(self.out)
    }
}

impl<A, S, T, C> Split<A> for FollowedBy<S, T, C>
where
    A: Item + ?Sized,
    S: Split<A>,
    T: Split<A> + Clone,
    C: Store<A>,
{
    fn put<P: Sections<A>>(&mut self, item: &A, out: &mut P) -> Flow {
        self.first.put(item, &mut Hears { search: &mut self.search, out })
    }

    fn put_chunk<P: Sections<A>>(&mut self, chunk: A::Chunk<'_>, out: &mut P) -> Flow {
        self.first.put_chunk(chunk, &mut Hears { search: &mut self.search, out })
    }

    fn end<P: Sections<A>>(&mut self, out: &mut P) -> Flow {
        self.first.end(&mut Hears { search: &mut self.search, out })?;
        self.search.ended = true;
        self.search.advance(out)?;
        self.search.runs.close(out)
    }
}
