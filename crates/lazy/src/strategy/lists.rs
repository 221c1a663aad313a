//! Strategies for lists that are made of others: [`par_chunk`], [`par_ahead`] and [`in_turn`].
//!
//! The program makes these values and applies them to slices and vectors of values, as it does with
//! `par_list`. They spark with `par` of `spark.rs`, so idle workers may do the work or not.

use super::Strategy;
use crate::spark::par;
use crate::value::Lazy;

/// Sparks chunks of a slice: see [`par_chunk`].
#[derive(Debug, Clone, Copy)]
pub struct ChunksOf<S> {
    grain: usize,
    each: S,
}

/// The strategy that leaves each chunk of `grain` values to an idle worker, which applies `each` to
/// the values of the chunk, one after the other. It waits for none of them.
///
/// # Panics
/// If `grain` is 0.
///
/// # Complexity
/// A spark for each chunk, where [`par_list`](crate::par_list) of [`rpar`](crate::rpar) makes one
/// for each value. The handles of the values are cloned.
///
/// # Examples
/// ```
/// use selvedge::lazy::{Lazy, Strategy, in_turn, par_chunk, par_list, rseq};
///
/// selvedge::run(async {
///     let squares: Vec<_> = (0..1000u64).map(|n| Lazy::new(move || n * n)).collect();
///     in_turn(par_chunk(100, rseq), par_list(rseq)).apply(&squares).await;
///     assert_eq!(squares[999].get(), Some(&998_001));
/// })?;
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
#[doc(alias = "parListChunk")]
pub fn par_chunk<S>(grain: usize, each: S) -> ChunksOf<S> {
    assert!(grain > 0, "the grain is 0: a chunk has a value at least");
    ChunksOf { grain, each }
}

impl<V, S> Strategy<[V]> for ChunksOf<S>
where
    V: Clone + Send + Sync + 'static,
    S: Strategy<V> + 'static,
{
    async fn apply(self, values: &[V]) {
        for chunk in values.chunks(self.grain) {
            let chunk = chunk.to_vec();
            let all = Lazy::future(async move {
                for value in &chunk {
                    self.each.apply(value).await;
                }
            });
            par(&all);
        }
    }
}

/// Sparks values before it comes to them: see [`par_ahead`].
#[derive(Debug, Clone, Copy)]
pub struct AheadOf<S> {
    count: usize,
    each: S,
}

/// The strategy that applies `each` to one value of a slice after the other, and keeps the `count`
/// values after it sparked: none if the count is 0. [`par_buffer`](crate::par_buffer) does so for
/// an iterator.
///
/// # Examples
/// ```
/// use selvedge::lazy::{Lazy, Strategy, par_ahead, rseq};
///
/// selvedge::run(async {
///     let squares: Vec<_> = (0..100u64).map(|n| Lazy::new(move || n * n)).collect();
///     par_ahead(8, rseq).apply(&squares).await;
///     assert_eq!(squares[99].get(), Some(&9801));
/// })?;
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
#[doc(alias = "parBuffer")]
pub fn par_ahead<S>(count: usize, each: S) -> AheadOf<S> {
    AheadOf { count, each }
}

impl<T: Send + Sync + 'static, S: Strategy<Lazy<T>>> Strategy<[Lazy<T>]> for AheadOf<S> {
    async fn apply(self, values: &[Lazy<T>]) {
        let mut ahead = values.iter().skip(1);
        ahead.by_ref().take(self.count).for_each(par);
        for value in values {
            self.each.apply(value).await;
            // If the count is 0, `next` is the value of the next turn.
            if let Some(next) = ahead.next()
                && self.count > 0
            {
                par(next);
            }
        }
    }
}

/// Two strategies, one after the other: see [`in_turn`].
#[derive(Debug, Clone, Copy)]
pub struct InTurn<A, B>(A, B);

/// The strategy that applies two to the same value, the first to its end and then the second.
#[doc(alias = "dot")]
pub fn in_turn<A, B>(first: A, second: B) -> InTurn<A, B> {
    InTurn(first, second)
}

impl<V: Sync + ?Sized, A: Strategy<V>, B: Strategy<V>> Strategy<V> for InTurn<A, B> {
    async fn apply(self, value: &V) {
        self.0.apply(value).await;
        self.1.apply(value).await;
    }
}

macro_rules! as_slices {
    ($($strategy:ident),*) => { $(
        impl<V: Sync, S> Strategy<Vec<V>> for $strategy<S>
        where
            $strategy<S>: Strategy<[V]>,
        {
            async fn apply(self, values: &Vec<V>) {
                Strategy::<[V]>::apply(self, values).await;
            }
        }
    )* };
}
as_slices!(ChunksOf, AheadOf);
