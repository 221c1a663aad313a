//! `Splitter::and_then` and `or_else`: the items of one verdict of the first splitter are the input
//! of the second one. `recur.rs` builds `nested_in` on `flowing`.
//!
//! The second splitter may hold items back, so `Flowing` keeps the items that it has not decided,
//! and passes them on in the order of the input. An item that did not flow on waits behind the
//! items before it. [Pipes, Parting and joining the stream].

use crate::item::{Flow, GO_ON, Item, Store};
use crate::role::Splitter;
use crate::splitters::record::Marks;
use crate::splitters::split::Runs;
use crate::stage::{Sections, Split};

/// The stage of [`Splitter::and_then`] and [`Splitter::or_else`].
#[derive(Debug, Clone)]
pub struct Flowing<S, T, C> {
    first: S,
    second: T,
    /// The items with this verdict of `first` flow on into `second`.
    flows: bool,
    marks: (Marks, Marks),
    /// The items that are not decided.
    items: C,
    /// How many of them have been given to `second`, or have passed it by.
    given: usize,
    runs: Runs,
}

pub(crate) fn flowing<S, T, C: Default>(flows: bool, first: S, second: T) -> Flowing<S, T, C> {
    let marks = (Marks::new(), Marks::new());
    Flowing { first, second, flows, marks, items: C::default(), given: 0, runs: Runs::default() }
}

impl<A: Item + ?Sized, S: Split<A>> Splitter<A, S> {
    /// The true items of `self` flow into `second`, which sees them as one stream. An item is true
    /// if both say so. A section ends where one of either splitter ends.
    ///
    /// Empty sections of the two are lost. Items are kept until they are decided. If both splitters
    /// decide each item by itself, the order of the two does not matter.
    ///
    /// # Paper
    /// [Pipes, Parting and joining the stream] `and`, in the reading of the package SCC as `>&`.
    ///
    /// # Examples
    /// ```
    /// use selvedge::pipeline::{from_chunks, satisfies, select, substring};
    ///
    /// // The digits alone hold `12`; the stream does not.
    /// let digits = satisfies(|c: &u8| c.is_ascii_digit());
    /// let twelve = from_chunks(["a1b2c3"]) >> select(digits.and_then(substring(b"12")));
    /// assert_eq!(twelve.collect(), b"12");
    /// ```
    pub fn and_then<T: Split<A>>(self, second: Splitter<A, T>) -> Splitter<A, Flowing<S, T, A::Store>> {
        Splitter::new(flowing(true, self.stage, second.stage))
    }

    /// The false items of `self` flow into `second`, which sees them as one stream. An item is true
    /// if one of them says so. Otherwise as [`and_then`](Splitter::and_then).
    ///
    /// # Paper
    /// [Pipes, Parting and joining the stream] `or`, in the reading of the package SCC as `>|`.
    pub fn or_else<T: Split<A>>(self, second: Splitter<A, T>) -> Splitter<A, Flowing<S, T, A::Store>> {
        Splitter::new(flowing(false, self.stage, second.stage))
    }
}

impl<S, T, C> Flowing<S, T, C> {
    /// Gives `second` the items that `first` has decided.
    fn give<A: Item + ?Sized>(&mut self)
    where
        T: Split<A>,
        C: Store<A>,
    {
        let first = &self.marks.0.marks;
        while self.given < first.len() {
            let begin = self.given;
            let flows = first[begin].verdict == self.flows;
            while self.given < first.len() && (first[self.given].verdict == self.flows) == flows {
                self.given += 1;
            }
            if flows {
                // A record never breaks.
                let _ = self.second.put_chunk(self.items.chunk(begin..self.given), &mut self.marks.1);
            }
        }
    }

    /// Passes on the items that are decided.
    fn pass<A: Item + ?Sized>(&mut self, out: &mut impl Sections<A>) -> Flow
    where
        C: Store<A>,
    {
        let (first, second) = (&mut self.marks.0.marks, &mut self.marks.1.marks);
        let (mut done, mut run, mut of_run) = (0, 0..0, false);
        while let Some(mut mark) = first.front().copied() {
            if mark.verdict == self.flows {
                let Some(decided) = second.pop_front() else { break };
                mark.verdict = decided.verdict;
                mark.cut |= decided.cut;
            }
            first.pop_front();
            if mark.cut || mark.verdict != of_run || run.is_empty() {
                if !run.is_empty() {
                    out.part_chunk(of_run, self.items.chunk(run.clone()))?;
                }
                if mark.cut {
                    self.runs.close(out)?;
                }
                self.runs.next(mark.verdict, out)?;
                (run, of_run) = (done..done, mark.verdict);
            }
            done += 1;
            run.end = done;
        }
        if done > 0 {
            out.part_chunk(of_run, self.items.chunk(run))?;
            self.items.forget(done);
            self.given -= done;
        }
        GO_ON
    }
}

impl<A, S, T, C> Split<A> for Flowing<S, T, C>
where
    A: Item + ?Sized,
    S: Split<A>,
    T: Split<A>,
    C: Store<A>,
{
    fn put<P: Sections<A>>(&mut self, item: &A, out: &mut P) -> Flow {
        self.items.keep(item);
        let _ = self.first.put(item, &mut self.marks.0);
        self.give();
        self.pass(out)
    }

    fn put_chunk<P: Sections<A>>(&mut self, chunk: A::Chunk<'_>, out: &mut P) -> Flow {
        self.items.keep_all(chunk);
        let _ = self.first.put_chunk(chunk, &mut self.marks.0);
        self.give();
        self.pass(out)
    }

    fn end<P: Sections<A>>(&mut self, out: &mut P) -> Flow {
        let _ = Split::<A>::end(&mut self.first, &mut self.marks.0);
        self.give();
        let _ = Split::<A>::end(&mut self.second, &mut self.marks.1);
        self.pass(out)?;
        self.runs.close(out)
    }
}
