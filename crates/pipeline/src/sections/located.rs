//! `located`: a pipeline that tells where in its input a stage of it has failed.
//!
//! A stage counts the items that it takes, and these may be columns, numbers or what a filter has
//! left. A user can look at the stream at the front alone. So `located` feeds its stages section by
//! section, and puts the place of the section into the failure. Users and `apps/pipe` call it.

use crate::error::StageError;
use crate::item::{Chunk, FINISHED, Flow, GO_ON, Item};
use crate::role::{Splitter, Transducer};
use crate::sections::foreach::SectionPlace;
use crate::stage::{Sections, Sink, Split, Transduce, put_now};
use std::marker::PhantomData;

/// The stage of [`located()`].
#[derive(Debug, Clone)]
pub struct Located<S, T> {
    splitter: S,
    stage: T,
    place: SectionPlace,
    failure: Option<StageError>,
}

/// The stages `stage`, which tell by [`StageError::section`] in which section of `splitter` one
/// of them has failed: with [`whole_line`](crate::whole_line), in which line of the input.
///
/// `stage` takes all sections, true and false, as one stream.
///
/// # Complexity
/// A call of `stage` for each section. So a search over many lines at once becomes one search for
/// each line.
///
/// # Examples
/// ```
/// use selvedge::pipeline::*;
///
/// let number = |line: &[u8]| String::from_utf8_lossy(line).parse::<u64>();
/// let long = satisfies(|line: &[u8]| line.len() > 1);
/// let numbers = group_by(line()) >> select(long) >> try_lift121(number).named("number");
/// let failed = (from_chunks(["1\n2\n30\n4\n5x\n"]) >> located(whole_line(), numbers))
///     .try_collect()
///     .unwrap_err();
/// // The second long line is the fifth line of the input, and begins at byte 9.
/// assert_eq!((failed.item(), failed.offset()), (2, 2));
/// let line = failed.section().unwrap();
/// assert_eq!((line.items + 1, line.elements), (5, 9));
/// ```
pub fn located<A, B, S, T>(
    splitter: Splitter<A, S>,
    stage: Transducer<A, B, T>,
) -> Transducer<A, B, Located<S, T>>
where
    A: Item + ?Sized,
    B: Item + ?Sized,
    S: Split<A>,
    T: Transduce<A, B>,
{
    let (splitter, stage) = (splitter.stage, stage.stage);
    Transducer::new(Located { splitter, stage, place: SectionPlace::default(), failure: None })
}

/// The stages and what lies behind them, as they take the sections.
struct FeedSections<'a, T, O, B: ?Sized> {
    stage: &'a mut T,
    place: &'a mut SectionPlace,
    out: &'a mut O,
    yields: PhantomData<fn(&B)>,
}

impl<A, B, T, O> Sections<A> for FeedSections<'_, T, O, B>
where
    A: Item + ?Sized,
    B: Item + ?Sized,
    T: Transduce<A, B>,
    O: Sink<B>,
{
    fn part(&mut self, _verdict: bool, item: &A) -> Flow {
        put_now(self.stage, item, self.out)?;
        self.place.pass(A::elements(item));
        GO_ON
    }

    fn part_chunk(&mut self, _verdict: bool, chunk: A::Chunk<'_>) -> Flow {
        if !chunk.is_empty() {
            self.stage.put_chunk(chunk, self.out)?;
            self.place.pass(A::elements_of(chunk));
        }
        GO_ON
    }

    fn close(&mut self, _verdict: bool) -> Flow {
        self.place.close();
        GO_ON
    }
}

impl<S, T> Located<S, T> {
    /// Calls `put`, and keeps the failure of the stages.
    fn fed<A, B, O>(
        &mut self,
        out: &mut O,
        put: impl FnOnce(&mut S, &mut FeedSections<'_, T, O, B>) -> Flow,
    ) -> Flow
    where
        A: Item + ?Sized,
        B: Item + ?Sized,
        T: Transduce<A, B>,
    {
        let Located { splitter, stage, place, .. } = self;
        let flow = put(splitter, &mut FeedSections { stage, place, out, yields: PhantomData });
        if flow.is_break() {
            self.failure = self.stage.failure().map(|failure| failure.within(self.place.begun));
        }
        flow
    }
}

impl<A, B, S, T> Transduce<A, B> for Located<S, T>
where
    A: Item + ?Sized,
    B: Item + ?Sized,
    S: Split<A>,
    T: Transduce<A, B>,
{
    const CHUNKS: bool = true;

    fn put<O: Sink<B>>(&mut self, item: &A, out: &mut O) -> Flow {
        self.fed::<A, B, O>(out, |splitter, feed| splitter.put(item, feed))
    }

    fn put_chunk<O: Sink<B>>(&mut self, chunk: A::Chunk<'_>, out: &mut O) -> Flow {
        self.fed::<A, B, O>(out, |splitter, feed| splitter.put_chunk(chunk, feed))
    }

    fn end<O: Sink<B>>(&mut self, out: &mut O) -> Flow {
        self.fed::<A, B, O>(out, |splitter, feed| {
            splitter.end(feed)?;
            // A failure at the end is told at the last section. The item may be one of another
            // section, if a stage keeps its items to the end.
            feed.place.begun = feed.place.last;
            let flow = feed.stage.end(feed.out);
            if feed.stage.failure().is_some() { FINISHED } else { flow }
        })
    }

    fn failure(&self) -> Option<&StageError> {
        self.failure.as_ref()
    }
}
