//! Functions of a user as stages: `lift121`, `lift_stateless`, `lift_stateful`, `filter` and
//! `rewrite`. [Pipes, Transducers in the middle].

use crate::edges::parts::{ItemByItem, PlaceKnown};
use crate::item::lists::empty;
use crate::item::place::StreamPlace;
use crate::item::{Chunk, Flow, GO_ON, Item};
use crate::role::Transducer;
use crate::stage::{Sink, Transduce};

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

impl<A, B, F> ItemByItem<A, B> for Lift121<F>
where
    A: Item + ?Sized,
    B: Clone + 'static,
    F: FnMut(&A) -> B,
{
    const TELLS: PlaceKnown = PlaceKnown::Elements;

    fn begin_part(&mut self, place: StreamPlace) -> StreamPlace {
        StreamPlace { items: place.items, elements: place.items }
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

impl<A, B, I, F> ItemByItem<A, B> for LiftStateless<F>
where
    A: Item + ?Sized,
    B: Clone + 'static,
    I: IntoIterator<Item = B>,
    F: FnMut(&A) -> I,
{
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

impl<A: Item + ?Sized, F: FnMut(&A) -> bool> ItemByItem<A, A> for Filter<F> {}

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

impl<A, E, F> ItemByItem<A, [E]> for Rewrite<F, E>
where
    A: Item + ?Sized,
    E: Clone + 'static,
    F: FnMut(&A, &mut Vec<E>),
{
    const TELLS: PlaceKnown = PlaceKnown::Items;
}
