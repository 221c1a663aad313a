//! Boolean logic of splitters for users: `!a`, `a & b`, `a | b`, and `between(a, b)`.
//!
//! `Zipped` feeds both splitters with the same stream. Each of them decides at its own time, so
//! `Marks` keep the verdicts that one splitter has given first, and the items wait in a store until
//! both have decided. `Runs` closes a section of the result where the verdict of the result
//! changes. [Pipes, Parting and joining the stream].

use crate::edges::parts::SplitByItem;
use crate::item::{Flow, GO_ON, Item, Store};
use crate::role::Splitter;
use crate::splitters::record::{Mark, Marks};
use crate::splitters::split::Runs;
use crate::stage::{Sections, Split};
use std::ops::{BitAnd, BitOr, Not, Range};

/// The stage of `!splitter`.
#[derive(Debug, Clone)]
pub struct Negated<S> {
    splitter: S,
}

/// The true sections become false, and the false ones true.
///
/// # Paper
/// [Pipes, Parting and joining the stream] `not`.
impl<A: Item + ?Sized, S: Split<A>> Not for Splitter<A, S> {
    type Output = Splitter<A, Negated<S>>;

    fn not(self) -> Self::Output {
        Splitter::new(Negated { splitter: self.stage })
    }
}

/// Turns the verdicts round.
struct Inverted<'a, P>(&'a mut P);

impl<A: Item + ?Sized, P: Sections<A>> Sections<A> for Inverted<'_, P> {
    #[inline]
    fn part(&mut self, verdict: bool, item: &A) -> Flow {
        self.0.part(!verdict, item)
    }

    #[inline]
    fn part_chunk(&mut self, verdict: bool, chunk: A::Chunk<'_>) -> Flow {
        self.0.part_chunk(!verdict, chunk)
    }

    #[inline]
    fn close(&mut self, verdict: bool) -> Flow {
        self.0.close(!verdict)
    }
}

impl<A: Item + ?Sized, S: Split<A>> Split<A> for Negated<S> {
    #[inline]
    fn put<P: Sections<A>>(&mut self, item: &A, out: &mut P) -> Flow {
        self.splitter.put(item, &mut Inverted(out))
    }

    #[inline]
    fn put_chunk<P: Sections<A>>(&mut self, chunk: A::Chunk<'_>, out: &mut P) -> Flow {
        self.splitter.put_chunk(chunk, &mut Inverted(out))
    }

    fn end<P: Sections<A>>(&mut self, out: &mut P) -> Flow {
        self.splitter.end(&mut Inverted(out))
    }
}

impl<A: Item + ?Sized, S: SplitByItem<A>> SplitByItem<A> for Negated<S> {}

/// How the marks of two splitters make one.
#[derive(Debug, Clone)]
enum Rule {
    And,
    Or,
    /// How many sections are open.
    Between(u64),
}

impl Rule {
    /// The verdict of an item, and whether a section begins with it even if the verdict is the same
    /// as before.
    fn combine(&mut self, left: Mark, right: Mark) -> (bool, bool) {
        match self {
            Rule::And => (left.verdict && right.verdict, left.cut || right.cut),
            Rule::Or => (left.verdict || right.verdict, left.cut || right.cut),
            Rule::Between(open) => {
                *open = (*open + u64::from(left.starts)).saturating_sub(u64::from(right.starts));
                (*open > 0, false)
            }
        }
    }
}

/// The stage of `a & b`, `a | b` and [`between`].
#[derive(Debug, Clone)]
pub struct Zipped<S, T, C> {
    left: S,
    right: T,
    marks: (Marks, Marks),
    /// The items that not both have decided.
    items: C,
    rule: Rule,
    runs: Runs,
}

fn zipped<A: Item + ?Sized, S: Split<A>, T: Split<A>>(
    rule: Rule,
    left: Splitter<A, S>,
    right: Splitter<A, T>,
) -> Splitter<A, Zipped<S, T, A::Store>> {
    let marks = (Marks::new(), Marks::new());
    let (left, right) = (left.stage, right.stage);
    Splitter::new(Zipped { left, right, marks, items: A::Store::default(), rule, runs: Runs::default() })
}

/// An item is true if both splitters say so. A section ends where one of either splitter ends.
///
/// Empty sections of the two are lost, because there is no item that both could decide. Items are
/// kept until both splitters have decided them.
///
/// # Paper
/// [Pipes, Parting and joining the stream] `and`.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_iter, satisfies, select};
///
/// let even = || satisfies(|n: &i32| n % 2 == 0);
/// let small = || satisfies(|n: &i32| *n < 3);
/// assert_eq!((from_iter(0..6) >> select(even() & small())).collect(), [0, 2]);
/// assert_eq!((from_iter(0..6) >> select(even() | small())).collect(), [0, 1, 2, 4]);
/// assert_eq!((from_iter(0..6) >> select(!even())).collect(), [1, 3, 5]);
/// ```
impl<A: Item + ?Sized, S: Split<A>, T: Split<A>> BitAnd<Splitter<A, T>> for Splitter<A, S> {
    type Output = Splitter<A, Zipped<S, T, A::Store>>;

    fn bitand(self, right: Splitter<A, T>) -> Self::Output {
        zipped(Rule::And, self, right)
    }
}

/// An item is true if one of the splitters says so. Otherwise as `&`.
///
/// # Paper
/// [Pipes, Parting and joining the stream] `or`.
impl<A: Item + ?Sized, S: Split<A>, T: Split<A>> BitOr<Splitter<A, T>> for Splitter<A, S> {
    type Output = Splitter<A, Zipped<S, T, A::Store>>;

    fn bitor(self, right: Splitter<A, T>) -> Self::Output {
        zipped(Rule::Or, self, right)
    }
}

/// True from where a true section of `start` begins to where a true section of `end` begins.
///
/// Sections may nest: the splitter counts the open sections. The start counts before the end at the
/// same place, and an end counts for nothing when no section is open. With
/// [`start_of`](crate::start_of) and [`end_of`](crate::end_of) the places are exact. Two brackets
/// in a row are two sections of [`substring`](crate::substring), and one of
/// [`satisfies`](crate::satisfies).
///
/// # Examples
/// ```
/// use selvedge::pipeline::{between, end_of, from_chunks, select, start_of, substring};
///
/// let (open, shut) = (|| substring(b"("), || substring(b")"));
/// let text = || from_chunks(["f(y, g(x)) + z"]);
/// let inner = text() >> select(between(end_of(open()), start_of(shut())));
/// assert_eq!(inner.collect(), b"y, g(x)");
/// let outer = text() >> select(between(start_of(open()), end_of(shut())));
/// assert_eq!(outer.collect(), b"(y, g(x))");
/// ```
pub fn between<A: Item + ?Sized, S: Split<A>, T: Split<A>>(
    start: Splitter<A, S>,
    end: Splitter<A, T>,
) -> Splitter<A, Zipped<S, T, A::Store>> {
    zipped(Rule::Between(0), start, end)
}

impl<S, T, C> Zipped<S, T, C> {
    /// Passes on the items that both have decided.
    fn pass<A: Item + ?Sized>(&mut self, out: &mut impl Sections<A>) -> Flow
    where
        C: Store<A>,
    {
        let (left, right) = (&mut self.marks.0.marks, &mut self.marks.1.marks);
        let decided = left.len().min(right.len());
        // The items of `run` have the verdict of the section that is open.
        let mut run = Range { start: 0, end: 0 };
        let mut of_run = false;
        for (left, right) in left.drain(..decided).zip(right.drain(..decided)) {
            let (verdict, cut) = self.rule.combine(left, right);
            if cut || verdict != of_run || run.is_empty() {
                if !run.is_empty() {
                    out.part_chunk(of_run, self.items.chunk(run.clone()))?;
                }
                if cut {
                    self.runs.close(out)?;
                }
                self.runs.next(verdict, out)?;
                (run.start, of_run) = (run.end, verdict);
            }
            run.end += 1;
        }
        if !run.is_empty() {
            out.part_chunk(of_run, self.items.chunk(run))?;
        }
        if decided > 0 {
            self.items.forget(decided);
        }
        GO_ON
    }
}

impl<A, S, T, C> Split<A> for Zipped<S, T, C>
where
    A: Item + ?Sized,
    S: Split<A>,
    T: Split<A>,
    C: Store<A>,
{
    fn put<P: Sections<A>>(&mut self, item: &A, out: &mut P) -> Flow {
        self.items.keep(item);
        // A record never breaks.
        let _ = self.left.put(item, &mut self.marks.0);
        let _ = self.right.put(item, &mut self.marks.1);
        self.pass(out)
    }

    fn put_chunk<P: Sections<A>>(&mut self, chunk: A::Chunk<'_>, out: &mut P) -> Flow {
        self.items.keep_all(chunk);
        let _ = self.left.put_chunk(chunk, &mut self.marks.0);
        let _ = self.right.put_chunk(chunk, &mut self.marks.1);
        self.pass(out)
    }

    fn end<P: Sections<A>>(&mut self, out: &mut P) -> Flow {
        let _ = Split::<A>::end(&mut self.left, &mut self.marks.0);
        let _ = Split::<A>::end(&mut self.right, &mut self.marks.1);
        self.pass(out)?;
        self.runs.close(out)
    }
}
