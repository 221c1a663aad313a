//! `cycle`: a transducer, a part of the output of which goes back to its own input. Users call it;
//! the streaming merge sort of its documentation is the model.
//!
//! Stages call one another, so no graph of them has a cycle. `Cycle` breaks the cycle with
//! `CycleBuffers`: the inner stage is called with the buffer `given` only after it has returned.
//! All that goes round does so before the next item of the input. A buffer with more than `limit`
//! items is a failure. [Pipes, Data-driven coroutines].

use crate::error::StageError;
use crate::item::place::StreamPlace;
use crate::item::{FINISHED, Flow, GO_ON, Item, Store};
use crate::role::{Keep, Splitter, Transducer};
use crate::stage::{Sections, Sink, Split, Transduce, put_now};

/// The stage of [`cycle`].
#[derive(Debug, Clone)]
pub struct Cycle<S, T, C> {
    /// The recipe, which begins anew when it has told what it held back at the end.
    recipe: S,
    splitter: S,
    stage: T,
    /// The stage has broken.
    finished: bool,
    buffers: CycleBuffers<C>,
    limit: usize,
    place: StreamPlace,
    failure: Option<StageError>,
}

#[derive(Debug, Clone, Default)]
struct CycleBuffers<C> {
    /// What the stage has yielded, and the splitter has not seen.
    made: C,
    /// What goes back into the stage.
    back: C,
    /// What is in the stage's hands: the buffer `back`, one round before.
    given: C,
}

/// What `stage` yields, and `goes_back` calls true, goes back into the stage, before the next item
/// of the input. All else goes on.
///
/// A pipe has no cycles, because its stages call one another. This stage has a buffer in the cycle,
/// and the stage is called with it when it has returned. At the end of the input, first all that is
/// in the cycle goes round; then the stage is ended, and what it yields goes on.
///
/// # What is checked when it runs
/// The types say nothing of how long items stay in the cycle. It fails when more than `limit` items
/// are in the buffer. A cycle that keeps few items for ever is an endless loop, and nothing tells.
///
/// # Errors
/// Those of the stage, and that of the limit: at the item of the input that went round last.
///
/// # Paper
/// [Pipes, Data-driven coroutines]: the price of pipelines, that no graph has a cycle.
///
/// # Examples
/// The streaming merge sort: runs of the same length are merged, and the result goes back.
/// ```
/// use selvedge::pipeline::*;
///
/// /// The run of 2^i numbers is at index i.
/// type Runs = Vec<Option<Vec<u32>>>;
///
/// fn merged(a: &[u32], b: &[u32]) -> Vec<u32> {
///     let (a, b) = (from_iter(a.to_vec()), from_iter(b.to_vec()));
///     join_generators(a, b, join::merge(u32::cmp)).collect()
/// }
///
/// let step = |runs: &mut Runs, run: &Vec<u32>| {
///     let size = run.len().ilog2() as usize;
///     runs.resize(runs.len().max(size + 1), None);
///     match runs[size].take() {
///         Some(other) => Some(merged(&other, run)),
///         None => {
///             runs[size] = Some(run.clone());
///             None
///         }
///     }
/// };
/// let end = |runs: &mut Runs| {
///     let runs = std::mem::take(runs).into_iter().flatten();
///     runs.reduce(|short, long| merged(&long, &short))
/// };
/// let merge_sort = lift121(|n: &u32| vec![*n])
///     >> cycle(1, everything(), lift_stateful(step, end, Vec::new()))
///     >> lift_stateless(|run: &Vec<u32>| run.clone());
/// assert_eq!((from_iter([3, 1, 4, 1, 5, 9, 2]) >> merge_sort).collect(), [1, 1, 2, 3, 4, 5, 9]);
/// ```
#[doc(alias = "feedback")]
pub fn cycle<A, S, T>(
    limit: usize,
    goes_back: Splitter<A, S>,
    stage: Transducer<A, A, T>,
) -> Transducer<A, A, Cycle<S, T, A::Store>>
where
    A: Item + ?Sized,
    S: Split<A> + Clone,
    T: Transduce<A, A>,
{
    let buffers =
        CycleBuffers { made: A::Store::default(), back: A::Store::default(), given: A::Store::default() };
    Transducer::new(Cycle {
        recipe: goes_back.stage.clone(),
        splitter: goes_back.stage,
        stage: stage.stage,
        finished: false,
        buffers,
        limit,
        place: StreamPlace::default(),
        failure: None,
    })
}

/// True sections go back, and false ones go on.
struct GoesRound<'a, C, O> {
    back: &'a mut C,
    out: &'a mut O,
}

impl<A: Item + ?Sized, C: Store<A>, O: Sink<A>> Sections<A> for GoesRound<'_, C, O> {
    fn part(&mut self, verdict: bool, item: &A) -> Flow {
        if !verdict {
            return self.out.put(item);
        }
        self.back.keep(item);
        GO_ON
    }

    fn part_chunk(&mut self, verdict: bool, chunk: A::Chunk<'_>) -> Flow {
        if !verdict {
            return self.out.put_chunk(chunk);
        }
        self.back.keep_all(chunk);
        GO_ON
    }

    fn close(&mut self, _verdict: bool) -> Flow {
        GO_ON
    }
}

impl<S, T, C> Cycle<S, T, C> {
    /// Lets all go round that the stage has yielded, until nothing goes back. Breaks when `out` is
    /// finished, when the stage is and nothing is left, and after a failure.
    fn go_round<A, O>(&mut self, out: &mut O) -> Flow
    where
        A: Item<Store = C> + ?Sized,
        S: Split<A> + Clone,
        T: Transduce<A, A>,
        C: Store<A>,
        O: Sink<A>,
    {
        loop {
            let CycleBuffers { made, back, given } = &mut self.buffers;
            if made.count() > 0 {
                self.splitter.put_chunk(made.all(), &mut GoesRound { back: &mut *back, out: &mut *out })?;
                made.clear();
            }
            if self.stage.failure().is_some() {
                return FINISHED;
            }
            if back.count() > self.limit {
                let cause = format!("more than {} items in the buffer of a cycle", self.limit);
                self.failure = Some(StageError::new("cycle", self.place, cause));
                return FINISHED;
            }
            if back.count() == 0 || self.finished {
                return if self.finished { FINISHED } else { GO_ON };
            }
            std::mem::swap(back, given);
            self.finished = self.stage.put_chunk(given.all(), &mut Keep(made)).is_break();
            given.clear();
        }
    }
}

impl<A, S, T, C> Transduce<A, A> for Cycle<S, T, C>
where
    A: Item<Store = C> + ?Sized,
    S: Split<A> + Clone,
    T: Transduce<A, A>,
    C: Store<A>,
{
    // The items of a chunk go round one after the other, so that the cut of the input is not seen.
    fn put<O: Sink<A>>(&mut self, item: &A, out: &mut O) -> Flow {
        self.finished = put_now(&mut self.stage, item, &mut Keep(&mut self.buffers.made)).is_break();
        self.go_round(out)?;
        self.place.items += 1;
        self.place.elements += A::elements(item);
        GO_ON
    }

    fn end<O: Sink<A>>(&mut self, out: &mut O) -> Flow {
        // The splitter tells what it has held back, and some of that may go round.
        loop {
            let mut splitter = std::mem::replace(&mut self.splitter, self.recipe.clone());
            splitter.end(&mut GoesRound { back: &mut self.buffers.back, out: &mut *out })?;
            if self.buffers.back.count() == 0 {
                return self.stage.end(out);
            }
            self.go_round(out)?;
        }
    }

    fn failure(&self) -> Option<&StageError> {
        self.stage.failure().or(self.failure.as_ref())
    }
}
