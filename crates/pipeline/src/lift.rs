//! The transducers for users that keep little or nothing between two items: functions as stages
//! (`lift121`, `lift_stateless`, `lift_stateful`, `filter`, `rewrite`), and `id`, `suppress`,
//! `take`, `concatenate`, `prepend`, `append` and `trim_end`. `branch.rs` uses `Unchanged` and
//! `Suppress`.
//!
//! A stage sets `CHUNKS` only if a chunk costs it less than its items one by one, because the stage
//! upstream then gathers items for it. [Pipes, Transducers in the middle].

use super::foreseen::ForeseenLists;
use super::item::{Chunk, FINISHED, Flow, GO_ON, Item};
use super::list::{ListStore, Lists, empty};
use super::role::Transducer;
use super::stage::{Sink, Transduce};

/// How many items a stage makes before it passes them on, when the next stage wants chunks.
const CHUNK: usize = 1024;

/// The stage of [`lift121`].
#[derive(Debug, Clone)]
pub struct Lift121<F> {
    f: F,
}

/// Yields `f(item)` for each item.
///
/// # Paper
/// [Pipes, Transducers in the middle] `lift121`.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_iter, lift121};
///
/// let lengths = from_iter(["warp", "weft and pick"]) >> lift121(|word: &&str| word.len());
/// assert_eq!(lengths.collect(), [4, 13]);
/// ```
pub fn lift121<A, B, F>(f: F) -> Transducer<A, B, Lift121<F>>
where
    A: Item + ?Sized,
    B: Clone + 'static,
    F: FnMut(&A) -> B,
{
    Transducer::new(Lift121 { f })
}

impl<A, B, F> Transduce<A, B> for Lift121<F>
where
    A: Item + ?Sized,
    B: Clone + 'static,
    F: FnMut(&A) -> B,
{
    #[inline(always)]
    fn put<S: Sink<B>>(&mut self, item: &A, out: &mut S) -> Flow {
        out.put(&(self.f)(item))
    }

    #[inline(always)]
    fn put_chunk<S: Sink<B>>(&mut self, chunk: A::Chunk<'_>, out: &mut S) -> Flow {
        if !S::CHUNKS {
            return chunk.each(|item| out.put(&(self.f)(item)));
        }
        let mut made = Vec::with_capacity(CHUNK);
        chunk.each(|item| {
            made.push((self.f)(item));
            if made.len() < CHUNK {
                return GO_ON;
            }
            out.put_chunk(&made)?;
            made.clear();
            GO_ON
        })?;
        out.put_chunk(&made)
    }

    fn end<S: Sink<B>>(&mut self, _out: &mut S) -> Flow {
        GO_ON
    }
}

/// The stage of [`lift_stateless`].
#[derive(Debug, Clone)]
pub struct LiftStateless<F> {
    f: F,
}

/// Yields all that `f(item)` has, for each item.
///
/// # Paper
/// [Pipes, Transducers in the middle] `liftStateless`.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_iter, lift_stateless};
///
/// let doubled = from_iter([1, 2]) >> lift_stateless(|n: &i32| [*n, *n]);
/// assert_eq!(doubled.collect(), [1, 1, 2, 2]);
/// ```
#[doc(alias = "liftStateless")]
pub fn lift_stateless<A, B, I, F>(f: F) -> Transducer<A, B, LiftStateless<F>>
where
    A: Item + ?Sized,
    B: Clone + 'static,
    I: IntoIterator<Item = B>,
    F: FnMut(&A) -> I,
{
    Transducer::new(LiftStateless { f })
}

impl<A, B, I, F> Transduce<A, B> for LiftStateless<F>
where
    A: Item + ?Sized,
    B: Clone + 'static,
    I: IntoIterator<Item = B>,
    F: FnMut(&A) -> I,
{
    #[inline(always)]
    fn put<S: Sink<B>>(&mut self, item: &A, out: &mut S) -> Flow {
        (self.f)(item).into_iter().try_for_each(|made| out.put(&made))
    }

    fn end<S: Sink<B>>(&mut self, _out: &mut S) -> Flow {
        GO_ON
    }
}

/// The stage of [`lift_stateful`].
#[derive(Debug, Clone)]
pub struct LiftStateful<T, F, E> {
    state: T,
    step: F,
    end: E,
}

/// Yields for each item what `step` gives for it and the state, and at the end what `end` makes of
/// the state.
///
/// # Paper
/// [Pipes, Transducers in the middle] `liftStateful`.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_iter, lift_stateful};
///
/// let step = |sum: &mut u32, n: &u32| Some(std::mem::replace(sum, *sum + n));
/// let sums = lift_stateful(step, |sum| [*sum], 0);
/// assert_eq!((from_iter([1, 2, 3]) >> sums).collect(), [0, 1, 3, 6]);
/// ```
#[doc(alias = "liftStateful")]
pub fn lift_stateful<A, B, T, I, J, F, E>(
    step: F,
    end: E,
    state: T,
) -> Transducer<A, B, LiftStateful<T, F, E>>
where
    A: Item + ?Sized,
    B: Clone + 'static,
    I: IntoIterator<Item = B>,
    J: IntoIterator<Item = B>,
    F: FnMut(&mut T, &A) -> I,
    E: FnMut(&mut T) -> J,
{
    Transducer::new(LiftStateful { state, step, end })
}

impl<A, B, T, I, J, F, E> Transduce<A, B> for LiftStateful<T, F, E>
where
    A: Item + ?Sized,
    B: Clone + 'static,
    I: IntoIterator<Item = B>,
    J: IntoIterator<Item = B>,
    F: FnMut(&mut T, &A) -> I,
    E: FnMut(&mut T) -> J,
{
    #[inline(always)]
    fn put<S: Sink<B>>(&mut self, item: &A, out: &mut S) -> Flow {
        (self.step)(&mut self.state, item).into_iter().try_for_each(|made| out.put(&made))
    }

    fn end<S: Sink<B>>(&mut self, out: &mut S) -> Flow {
        (self.end)(&mut self.state).into_iter().try_for_each(|made| out.put(&made))
    }
}

/// The stage of [`filter`].
#[derive(Debug, Clone)]
pub struct Filter<F> {
    f: F,
}

/// Yields the items for which `f` is true. They are not copied.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{filter, from_iter};
///
/// let even = from_iter(0..6) >> filter(|n: &i32| n % 2 == 0);
/// assert_eq!(even.collect(), [0, 2, 4]);
/// ```
pub fn filter<A: Item + ?Sized, F: FnMut(&A) -> bool>(f: F) -> Transducer<A, A, Filter<F>> {
    Transducer::new(Filter { f })
}

impl<A: Item + ?Sized, F: FnMut(&A) -> bool> Transduce<A, A> for Filter<F> {
    #[inline(always)]
    fn put<S: Sink<A>>(&mut self, item: &A, out: &mut S) -> Flow {
        if (self.f)(item) { out.put(item) } else { GO_ON }
    }

    fn end<S: Sink<A>>(&mut self, _out: &mut S) -> Flow {
        GO_ON
    }
}

/// The stage of [`take`].
#[derive(Debug, Clone)]
pub struct TakeFirst {
    left: u64,
}

/// Yields the first `count` items, and is finished with the last of them. The rest is not
/// generated.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_chunks, group_by, line, take};
///
/// let head = (from_chunks(["warp\nweft\nknot\n"]) >> group_by(line()) >> take(2)).collect();
/// assert_eq!(head.iter().collect::<Vec<_>>(), [b"warp", b"weft"]);
/// ```
pub fn take<A: Item + ?Sized>(count: u64) -> Transducer<A, A, TakeFirst> {
    Transducer::new(TakeFirst { left: count })
}

impl<A: Item + ?Sized> Transduce<A, A> for TakeFirst {
    #[inline]
    fn put<S: Sink<A>>(&mut self, item: &A, out: &mut S) -> Flow {
        if self.left > 0 {
            self.left -= 1;
            out.put(item)?;
        }
        if self.left > 0 { GO_ON } else { FINISHED }
    }

    fn end<S: Sink<A>>(&mut self, _out: &mut S) -> Flow {
        GO_ON
    }
}

/// The stage of [`skip`].
#[derive(Debug, Clone)]
pub struct SkipFirst {
    left: u64,
}

/// Yields all items but the first `count`.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{csv, fold, from_chunks, skip};
///
/// // The row of names is no data.
/// let widest = fold(0, |widest: &mut usize, row: &csv::Fields| *widest = row.len().max(*widest));
/// let rows = from_chunks(["one row of names\n1,warp\n2,weft\n"]) >> csv::records(b',');
/// assert_eq!((rows >> skip(1) >> widest).run(), 2);
/// ```
pub fn skip<A: Item + ?Sized>(count: u64) -> Transducer<A, A, SkipFirst> {
    Transducer::new(SkipFirst { left: count })
}

impl<A: Item + ?Sized> Transduce<A, A> for SkipFirst {
    const CHUNKS: bool = true;

    #[inline]
    fn put<S: Sink<A>>(&mut self, item: &A, out: &mut S) -> Flow {
        if self.left == 0 {
            return out.put(item);
        }
        self.left -= 1;
        GO_ON
    }

    #[inline]
    fn put_chunk<S: Sink<A>>(&mut self, chunk: A::Chunk<'_>, out: &mut S) -> Flow {
        if self.left == 0 {
            return out.put_chunk(chunk);
        }
        chunk.each(|item| self.put(item, out))
    }

    fn end<S: Sink<A>>(&mut self, _out: &mut S) -> Flow {
        GO_ON
    }
}

/// The stage of [`id`].
#[derive(Debug, Clone)]
pub struct Unchanged;

/// Yields each item as it is: the paper's `lift121 id`, without a copy.
///
/// # Paper
/// [Pipes, Pipeline examples] `lift121 id`.
pub fn id<A: Item + ?Sized>() -> Transducer<A, A, Unchanged> {
    Transducer::new(Unchanged)
}

impl<A: Item + ?Sized> Transduce<A, A> for Unchanged {
    #[inline(always)]
    fn put<S: Sink<A>>(&mut self, item: &A, out: &mut S) -> Flow {
        out.put(item)
    }

    #[inline(always)]
    fn put_chunk<S: Sink<A>>(&mut self, chunk: A::Chunk<'_>, out: &mut S) -> Flow {
        out.put_chunk(chunk)
    }

    fn end<S: Sink<A>>(&mut self, _out: &mut S) -> Flow {
        GO_ON
    }

    fn foresee(&self, input: A::Foreseen) -> Option<A::Foreseen> {
        Some(input)
    }
}

/// The stage of [`suppress`].
#[derive(Debug, Clone)]
pub struct Suppress;

/// Yields nothing, and takes all.
///
/// # Paper
/// [Pipes, Pipeline examples] `fromIteratee suppress`.
pub fn suppress<A: Item + ?Sized, B: Item + ?Sized>() -> Transducer<A, B, Suppress> {
    Transducer::new(Suppress)
}

impl<A: Item + ?Sized, B: Item + ?Sized> Transduce<A, B> for Suppress {
    const CHUNKS: bool = true;

    #[inline(always)]
    fn put<S: Sink<B>>(&mut self, _item: &A, _out: &mut S) -> Flow {
        GO_ON
    }

    #[inline(always)]
    fn put_chunk<S: Sink<B>>(&mut self, _chunk: A::Chunk<'_>, _out: &mut S) -> Flow {
        GO_ON
    }

    fn end<S: Sink<B>>(&mut self, _out: &mut S) -> Flow {
        GO_ON
    }
}

/// The stage of [`concatenate`].
#[derive(Debug, Clone)]
pub struct Concatenate;

/// Yields the elements of each list.
///
/// # Paper
/// [Pipes, Pipeline examples] `concatenate`.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{concatenate, from_chunks, group_by, whole_line};
///
/// let same = from_chunks(["warp\n\nwe", "ft"]) >> group_by(whole_line()) >> concatenate();
/// assert_eq!(same.collect(), b"warp\n\nweft");
/// ```
pub fn concatenate<E: Clone + 'static>() -> Transducer<[E], E, Concatenate> {
    Transducer::new(Concatenate)
}

impl<E: Clone + 'static> Transduce<[E], E> for Concatenate {
    const CHUNKS: bool = true;

    #[inline(always)]
    fn put<S: Sink<E>>(&mut self, item: &[E], out: &mut S) -> Flow {
        out.put_chunk(item)
    }

    #[inline(always)]
    fn put_chunk<S: Sink<E>>(&mut self, chunk: Lists<'_, E>, out: &mut S) -> Flow {
        match chunk.gapless() {
            Some(flat) => out.put_chunk(flat),
            None => chunk.each(|list| out.put_chunk(list)),
        }
    }

    fn end<S: Sink<E>>(&mut self, _out: &mut S) -> Flow {
        GO_ON
    }
}

/// The stage of [`rewrite`].
#[derive(Debug, Clone)]
pub struct Rewrite<F, E> {
    f: F,
    list: Vec<E>,
}

/// Yields a list for each item: what `f` puts into its empty vector. The vector is used again.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{concatenate, from_iter, rewrite};
///
/// let text = rewrite(|n: &u32, list| list.extend_from_slice(format!("{n};").as_bytes()));
/// assert_eq!((from_iter([1, 23]) >> text >> concatenate()).collect(), b"1;23;");
/// ```
pub fn rewrite<A, E, F>(f: F) -> Transducer<A, [E], Rewrite<F, E>>
where
    A: Item + ?Sized,
    E: Clone + 'static,
    F: FnMut(&A, &mut Vec<E>),
{
    Transducer::new(Rewrite { f, list: Vec::new() })
}

impl<A, E, F> Transduce<A, [E]> for Rewrite<F, E>
where
    A: Item + ?Sized,
    E: Clone + 'static,
    F: FnMut(&A, &mut Vec<E>),
{
    #[inline]
    fn put<S: Sink<[E]>>(&mut self, item: &A, out: &mut S) -> Flow {
        (self.f)(item, &mut self.list);
        let flow = out.put(&self.list);
        empty(&mut self.list);
        flow
    }

    fn end<S: Sink<[E]>>(&mut self, _out: &mut S) -> Flow {
        GO_ON
    }
}

/// The stage of [`prepend`] and [`append`].
#[derive(Debug, Clone)]
pub struct Framed<E> {
    before: Vec<E>,
    after: Vec<E>,
    /// For a sink that keeps nothing.
    spare: ListStore<E>,
}

/// Puts `list` before each list.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{concatenate, from_chunks, group_by, prepend, whole_line};
///
/// let quoted = group_by(whole_line()) >> prepend(b"> ") >> concatenate();
/// assert_eq!((from_chunks(["warp\nweft\n"]) >> quoted).collect(), b"> warp\n> weft\n");
/// ```
pub fn prepend<E: Clone + 'static>(list: &[E]) -> Transducer<[E], [E], Framed<E>> {
    Transducer::new(Framed { before: list.to_vec(), after: Vec::new(), spare: ListStore::default() })
}

/// Puts `list` after each list.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{append, concatenate, from_chunks, group_by, line};
///
/// let ended = group_by(line()) >> append(b"\r\n") >> concatenate();
/// assert_eq!((from_chunks(["warp\nweft"]) >> ended).collect(), b"warp\r\nweft\r\n");
/// ```
pub fn append<E: Clone + 'static>(list: &[E]) -> Transducer<[E], [E], Framed<E>> {
    Transducer::new(Framed { before: Vec::new(), after: list.to_vec(), spare: ListStore::default() })
}

/// The stage of [`trim_end`].
#[derive(Debug, Clone)]
pub struct TrimEnd<E> {
    end: Vec<E>,
}

/// Yields each list without `end`, if the list ends so. The lists are not copied.
///
/// # Examples
/// Lines of a text in which some lines end with `\r\n`:
/// ```
/// use selvedge::pipeline::{from_chunks, group_by, line, trim_end};
///
/// let lines = from_chunks(["warp\r", "\nweft\n\r\n"]) >> group_by(line()) >> trim_end(b"\r");
/// assert_eq!(lines.collect().iter().collect::<Vec<_>>(), [&b"warp"[..], b"weft", b""]);
/// ```
pub fn trim_end<E: Clone + PartialEq + 'static>(end: &[E]) -> Transducer<[E], [E], TrimEnd<E>> {
    Transducer::new(TrimEnd { end: end.to_vec() })
}

impl<E: Clone + PartialEq + 'static> Transduce<[E], [E]> for TrimEnd<E> {
    #[inline]
    fn put<S: Sink<[E]>>(&mut self, item: &[E], out: &mut S) -> Flow {
        out.put(item.strip_suffix(self.end.as_slice()).unwrap_or(item))
    }

    fn end<S: Sink<[E]>>(&mut self, _out: &mut S) -> Flow {
        GO_ON
    }
}

impl<E: Clone + 'static> Transduce<[E], [E]> for Framed<E> {
    #[inline]
    fn put<S: Sink<[E]>>(&mut self, item: &[E], out: &mut S) -> Flow {
        let Framed { before, after, spare } = self;
        out.put_made(spare, |store| store.keep_parts([before, item, after]))
    }

    fn end<S: Sink<[E]>>(&mut self, _out: &mut S) -> Flow {
        GO_ON
    }

    fn foresee(&self, input: ForeseenLists<E>) -> Option<ForeseenLists<E>> {
        Some(input.framed(&self.before, &self.after))
    }
}
