//! Strategies: how far values are evaluated, and where, apart from what they are. [`Strategy`] and
//! its values, [`Deep`](trait@Deep), and maps over slices and iterators.
//!
//! The program passes a strategy to its own functions. Those for lists are in `lists.rs`.
//! [`par_map`] and [`par_chunks`] cut a slice in halves with `join` of `spark.rs`; [`par_buffer`]
//! and [`rpar`] spark `Lazy` values with `par`.
//!
//! No function here changes a value: a strategy that is left out changes the time alone.

mod lists;

pub use lists::{AheadOf, ChunksOf, InTurn, in_turn, par_ahead, par_chunk};

use crate::spark::{join, par};
use crate::value::Lazy;
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// A future in a box.
type Boxed<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// A type with lazy values in it, or without: how to force all of them.
///
/// `#[derive(Deep)]` implements it for structs and enums: each field is forced, in order, but for
/// those with `#[deep(skip)]`. The type of a skipped field need not implement `Deep`, but must be
/// `Sync`. A type that contains itself does so within a [`Lazy`], a `Box` or an `Arc`. A crate that
/// does not depend on `selvedge` names the module of the trait: `#[deep(crate = selvedge_lazy)]`.
///
/// # Paper
/// [HMP05 §9] leaves strategies to later work; this is the class of evaluation to normal form that
/// they need.
///
/// # Examples
/// ```
/// use selvedge::lazy::{Deep, Lazy};
///
/// #[derive(Deep)]
/// struct Cloth<T> {
///     warp: Lazy<u32>,
///     weft: Vec<Lazy<T>>,
///     #[deep(skip)]
///     weaver: &'static str,
/// }
///
/// #[derive(Deep)]
/// enum Tree {
///     Leaf(Lazy<u32>),
///     Fork { left: Box<Tree>, right: Box<Tree> },
/// }
///
/// let weft = vec![Lazy::new(|| 2u8), Lazy::new(|| 3)];
/// let cloth = Cloth { warp: Lazy::new(|| 1), weft, weaver: "Penelope" };
/// let leaf = Lazy::new(|| 5);
/// let of = |leaf: &Lazy<u32>| Box::new(Tree::Leaf(leaf.clone()));
/// let tree = Tree::Fork { left: of(&leaf), right: of(&cloth.warp) };
/// selvedge::block_on(cloth.deep());
/// selvedge::block_on(tree.deep());
/// assert_eq!((cloth.warp.get(), cloth.weft[1].get(), leaf.get()), (Some(&1), Some(&3), Some(&5)));
/// # assert_eq!(cloth.weaver, "Penelope");
/// ```
/// A field must be Deep, or be skipped:
/// ```compile_fail,E0277
/// use selvedge::lazy::Deep;
///
/// #[derive(Deep)]
/// struct Loom {
///     since: std::time::Instant,
/// }
/// ```
/// A variant is not skipped, but its fields may be:
/// ```compile_fail
/// # // no code: the error is a macro's
/// use selvedge::lazy::{Deep, Lazy};
///
/// #[derive(Deep)]
/// enum Thread {
///     #[deep(skip)]
///     Knot(Lazy<u8>),
/// }
/// ```
/// To skip is written out:
/// ```compile_fail
/// # // no code: the error is a macro's
/// use selvedge::lazy::{Deep, Lazy};
///
/// #[derive(Deep)]
/// struct Spool(#[deep] Lazy<u8>);
/// ```
/// A union has no fields that are known to be there:
/// ```compile_fail
/// # // no code: the error is a macro's
/// use selvedge::lazy::Deep;
///
/// #[derive(Deep)]
/// union Thread {
///     warp: u32,
///     weft: f32,
/// }
/// ```
#[doc(alias = "NFData")]
pub trait Deep {
    /// Forces all lazy values in this one, and those in them. It panics if one of them does.
    fn deep(&self) -> impl Future<Output = ()> + Send;
}

macro_rules! without_lazy_values {
    ($($plain:ty),*) => { $(
        impl Deep for $plain {
            async fn deep(&self) {}
        }
    )* };
}
without_lazy_values!(
    (),
    bool,
    char,
    u8,
    u16,
    u32,
    u64,
    u128,
    usize,
    i8,
    i16,
    i32,
    i64,
    i128,
    isize,
    f32,
    f64,
    String,
    str
);

impl<T: Deep + Send + Sync> Deep for Lazy<T> {
    fn deep(&self) -> impl Future<Output = ()> + Send {
        // Boxed, because a type may have lazy values of itself.
        let deep: Boxed<'_> = Box::pin(async { self.force().await.deep().await });
        deep
    }
}

impl<T: Deep + Sync> Deep for [T] {
    async fn deep(&self) {
        for value in self {
            value.deep().await;
        }
    }
}

impl<T: Deep + Sync> Deep for Vec<T> {
    async fn deep(&self) {
        self.as_slice().deep().await;
    }
}

impl<T: Deep + Sync> Deep for Option<T> {
    async fn deep(&self) {
        if let Some(value) = self {
            value.deep().await;
        }
    }
}

impl<T: Deep + Sync, const N: usize> Deep for [T; N] {
    async fn deep(&self) {
        self.as_slice().deep().await;
    }
}

impl<T: Deep + Sync, E: Deep + Sync> Deep for Result<T, E> {
    async fn deep(&self) {
        match self {
            Ok(value) => value.deep().await,
            Err(error) => error.deep().await,
        }
    }
}

impl<T: Deep + Sync + ?Sized> Deep for &T {
    async fn deep(&self) {
        (**self).deep().await;
    }
}

impl<T: Deep + Sync + ?Sized> Deep for Box<T> {
    fn deep(&self) -> impl Future<Output = ()> + Send {
        // As for `Lazy`.
        let deep: Boxed<'_> = Box::pin((**self).deep());
        deep
    }
}

impl<T: Deep + Sync + ?Sized> Deep for Arc<T> {
    fn deep(&self) -> impl Future<Output = ()> + Send {
        // As for `Lazy`.
        let deep: Boxed<'_> = Box::pin((**self).deep());
        deep
    }
}

impl<A: Deep + Sync, B: Deep + Sync> Deep for (A, B) {
    async fn deep(&self) {
        self.0.deep().await;
        self.1.deep().await;
    }
}

/// How far a lazy value is evaluated, and where: a value that is passed to functions.
///
/// # Examples
/// ```
/// use selvedge::lazy::{Lazy, Strategy, par_list, rpar, rseq};
///
/// selvedge::run(async {
///     let squares: Vec<_> = (0..100u64).map(|n| Lazy::new(move || n * n)).collect();
///     // All of them may be evaluated by idle workers; then wait for each.
///     par_list(rpar).apply(&squares).await;
///     par_list(rseq).apply(&squares).await;
///     assert_eq!(squares.iter().map(|square| square.get().unwrap()).sum::<u64>(), 328_350);
/// })?;
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
pub trait Strategy<V: ?Sized>: Copy + Send + Sync {
    /// Evaluates the value as the strategy says.
    fn apply(self, value: &V) -> impl Future<Output = ()> + Send;
}

/// Forces the value in this thread, and none in it.
#[expect(non_camel_case_types, reason = "the name of the literature")]
#[derive(Debug, Clone, Copy)]
pub struct rseq;

/// Leaves the value to an idle worker: see [`par`].
#[expect(non_camel_case_types, reason = "the name of the literature")]
#[derive(Debug, Clone, Copy)]
pub struct rpar;

/// Forces the value in this thread, and all in it: see [`Deep`](trait@Deep).
#[expect(non_camel_case_types, reason = "the name of the literature")]
#[derive(Debug, Clone, Copy)]
pub struct rdeepseq;

/// Applies the strategy to each value of a slice: see [`par_list`].
#[derive(Debug, Clone, Copy)]
pub struct EachOf<S>(S);

/// The strategy that applies another to each value of a slice.
pub fn par_list<S>(each: S) -> EachOf<S> {
    EachOf(each)
}

impl<T: Send + Sync> Strategy<Lazy<T>> for rseq {
    async fn apply(self, value: &Lazy<T>) {
        value.force().await;
    }
}

impl<T: Send + Sync + 'static> Strategy<Lazy<T>> for rpar {
    async fn apply(self, value: &Lazy<T>) {
        par(value);
    }
}

impl<V: Deep + Sync + ?Sized> Strategy<V> for rdeepseq {
    async fn apply(self, value: &V) {
        value.deep().await;
    }
}

impl<V: Sync, S: Strategy<V>> Strategy<[V]> for EachOf<S> {
    async fn apply(self, values: &[V]) {
        for value in values {
            self.0.apply(value).await;
        }
    }
}

impl<V: Sync, S: Strategy<V>> Strategy<Vec<V>> for EachOf<S> {
    async fn apply(self, values: &Vec<V>) {
        Strategy::<[V]>::apply(self, values).await;
    }
}

/// The results of `f` for each item, in order; chunks of `grain` items may be done by idle workers.
///
/// # Panics
/// If `f` panics, or `grain` is 0.
///
/// # Examples
/// The area under a curve, by trapezoids.
/// ```
/// use selvedge::lazy::par_map;
///
/// fn area(f: impl Fn(f64) -> f64 + Sync, from: f64, to: f64, parts: u32) -> f64 {
///     let width = (to - from) / f64::from(parts);
///     let left: Vec<u32> = (0..parts).collect();
///     let trapezoid = |&n: &u32| {
///         let at = from + width * f64::from(n);
///         (f(at) + f(at + width)) / 2.0 * width
///     };
///     par_map(&left, 1000, trapezoid).iter().sum()
/// }
///
/// let third = selvedge::run(async { area(|x| x * x, 0.0, 1.0, 100_000) })?;
/// assert!((third - 1.0 / 3.0).abs() < 1e-9);
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
pub fn par_map<T: Sync, U: Send>(items: &[T], grain: usize, f: impl Fn(&T) -> U + Sync) -> Vec<U> {
    let chunks = par_chunks(items, grain, |chunk| chunk.iter().map(&f).collect::<Vec<U>>());
    let mut results = Vec::with_capacity(items.len());
    chunks.into_iter().for_each(|chunk| results.extend(chunk));
    results
}

/// The results of `f` for each chunk of `grain` items, the last of which may be shorter, in order;
/// idle workers may do some of them.
///
/// # Panics
/// If `f` panics, or `grain` is 0.
#[doc(alias = "parListChunk")]
pub fn par_chunks<T: Sync, U: Send>(items: &[T], grain: usize, f: impl Fn(&[T]) -> U + Sync) -> Vec<U> {
    assert!(grain > 0, "the grain is 0: a chunk has an item at least");
    let mut results: Vec<Option<U>> = Vec::new();
    results.resize_with(items.len().div_ceil(grain), || None);
    fill(items, grain, &mut results, &f);
    results.into_iter().map(|result| result.expect("each chunk has been done")).collect()
}

fn fill<T: Sync, U: Send>(
    items: &[T],
    grain: usize,
    results: &mut [Option<U>],
    f: &(impl Fn(&[T]) -> U + Sync),
) {
    match results {
        [] => {}
        [result] => *result = Some(f(items)),
        _ => {
            let half = results.len() / 2;
            let (left, right) = results.split_at_mut(half);
            let (first, second) = items.split_at(half * grain);
            join(|| fill(first, grain, left, f), || fill(second, grain, right, f));
        }
    }
}

/// The results of `f` for the items of an iterator, in order, with up to `ahead` of them sparked
/// before they are asked for. The iterator may have no end; what is kept is `ahead` values.
///
/// # Examples
/// ```
/// use selvedge::lazy::par_buffer;
///
/// selvedge::run(async {
///     let mut squares = par_buffer(1u64.., 8, |n| n * n);
///     let mut sum = 0;
///     for _ in 0..100 {
///         sum += squares.next().await.unwrap();
///     }
///     assert_eq!(sum, 338_350);
/// })?;
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
#[doc(alias = "parBuffer")]
#[track_caller]
pub fn par_buffer<I, U, F>(items: I, ahead: usize, f: F) -> ParBuffer<I::IntoIter, U, F>
where
    I: IntoIterator<Item: Send + 'static>,
    U: Clone + Send + Sync + 'static,
    F: Fn(I::Item) -> U + Clone + Send + 'static,
{
    ParBuffer { items: items.into_iter(), ahead: ahead.max(1), f, sparked: VecDeque::new() }
}

/// Results that are made ahead: see [`par_buffer`].
pub struct ParBuffer<I, U, F> {
    items: I,
    ahead: usize,
    f: F,
    sparked: VecDeque<Lazy<U>>,
}

impl<I, U, F> ParBuffer<I, U, F>
where
    I: Iterator<Item: Send + 'static>,
    U: Clone + Send + Sync + 'static,
    F: Fn(I::Item) -> U + Clone + Send + 'static,
{
    /// The next result; `None` after the last.
    ///
    /// # Panics
    /// If `f` panicked.
    pub async fn next(&mut self) -> Option<U> {
        while self.sparked.len() < self.ahead {
            let Some(item) = self.items.next() else { break };
            let f = self.f.clone();
            let value = Lazy::new(move || f(item));
            par(&value);
            self.sparked.push_back(value);
        }
        let value = self.sparked.front()?;
        let result = value.force().await.clone();
        self.sparked.pop_front();
        Some(result)
    }
}

impl<I, U, F> fmt::Debug for ParBuffer<I, U, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParBuffer").field("ahead", &self.ahead).finish_non_exhaustive()
    }
}
