//! Adapters: pieces of a slice that idle workers may do ([`InPieces`]), and results of an iterator
//! that are made ahead ([`Ahead`]).
//!
//! The program calls these traits' methods on its own slices and iterators. All work is done by
//! `join` (`spark.rs`) and by the functions of `strategy.rs`; this file has no protocol of its own.
//!
//! Pieces are split in halves by their number, so the pieces do not depend on the workers.

use crate::spark::join;
use crate::strategy::{ParBuffer, par_buffer, par_chunks};

/// A slice in pieces, which idle workers may do: see [`ParPieces`].
///
/// # Examples
/// ```
/// use selvedge::lazy::InPieces;
///
/// selvedge::run(async {
///     let words = ["warp", "weft", "selvedge", "shed"];
///     let lengths = words.in_pieces(2).map(|word| word.len());
///     assert_eq!(lengths, [4, 4, 8, 4]);
///     assert!(words.in_pieces(3).reduce(|piece| piece.len(), |a, b| a + b) == Some(4));
/// })?;
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
pub trait InPieces<T> {
    /// The slice in pieces of this number of items; the last may be shorter.
    ///
    /// # Panics
    /// If `grain` is 0.
    fn in_pieces(&self, grain: usize) -> ParPieces<'_, T>;

    /// Does `f` to each piece, with its number; idle workers may do some of them.
    ///
    /// # Panics
    /// If `f` panics, or `grain` is 0.
    ///
    /// # Examples
    /// ```
    /// use selvedge::lazy::InPieces;
    ///
    /// let mut numbers = [0; 10];
    /// selvedge::run(async move {
    ///     numbers.each_piece_mut(4, |piece, numbers| numbers.fill(piece));
    ///     assert_eq!(numbers, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]);
    /// })?;
    /// # Ok::<(), selvedge::SchedulerError>(())
    /// ```
    fn each_piece_mut(&mut self, grain: usize, f: impl Fn(usize, &mut [T]) + Sync)
    where
        T: Send;
}

impl<T> InPieces<T> for [T] {
    fn in_pieces(&self, grain: usize) -> ParPieces<'_, T> {
        assert!(grain > 0, "the grain is 0: a piece has an item at least");
        ParPieces { items: self, grain }
    }

    fn each_piece_mut(&mut self, grain: usize, f: impl Fn(usize, &mut [T]) + Sync)
    where
        T: Send,
    {
        assert!(grain > 0, "the grain is 0: a piece has an item at least");
        each(0, self, grain, &f);
    }
}

fn each<T: Send>(first: usize, items: &mut [T], grain: usize, f: &(impl Fn(usize, &mut [T]) + Sync)) {
    let pieces = items.len().div_ceil(grain);
    match pieces {
        0 => {}
        1 => f(first, items),
        _ => {
            let half = pieces / 2;
            let (left, right) = items.split_at_mut(half * grain);
            join(|| each(first, left, grain, f), || each(first + half, right, grain, f));
        }
    }
}

/// A slice in pieces: see [`InPieces::in_pieces`].
#[derive(Debug)]
pub struct ParPieces<'a, T> {
    items: &'a [T],
    grain: usize,
}

impl<T> Clone for ParPieces<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for ParPieces<'_, T> {}

impl<T: Sync> ParPieces<'_, T> {
    /// The results of `f` for each item, in order.
    ///
    /// # Panics
    /// If `f` panics.
    pub fn map<U: Send>(self, f: impl Fn(&T) -> U + Sync) -> Vec<U> {
        crate::par_map(self.items, self.grain, f)
    }

    /// The results of `f` for each piece, in order.
    ///
    /// # Panics
    /// If `f` panics.
    pub fn map_pieces<U: Send>(self, f: impl Fn(&[T]) -> U + Sync) -> Vec<U> {
        par_chunks(self.items, self.grain, f)
    }

    /// The results of `f` for each piece, combined from the first to the last. `None` if there is
    /// no item. The order does not depend on the workers, so a sum of floating-point numbers does
    /// not either.
    ///
    /// # Panics
    /// If one of the closures panics.
    pub fn reduce<U: Send>(self, f: impl Fn(&[T]) -> U + Sync, combine: impl FnMut(U, U) -> U) -> Option<U> {
        self.map_pieces(f).into_iter().reduce(combine)
    }
}

/// An iterator of which the results are made ahead.
pub trait Ahead: IntoIterator + Sized {
    /// The results of `f` for the items, in order, with up to `count` of them sparked before they
    /// are asked for: [`par_buffer`] as a method.
    ///
    /// # Examples
    /// ```
    /// use selvedge::lazy::Ahead;
    ///
    /// selvedge::run(async {
    ///     let mut squares = (1..=3u32).ahead(2, |n| n * n);
    ///     assert_eq!(squares.next().await, Some(1));
    ///     assert_eq!(squares.next().await, Some(4));
    /// })?;
    /// # Ok::<(), selvedge::SchedulerError>(())
    /// ```
    #[track_caller]
    fn ahead<U, F>(self, count: usize, f: F) -> ParBuffer<Self::IntoIter, U, F>
    where
        Self::Item: Send + 'static,
        U: Clone + Send + Sync + 'static,
        F: Fn(Self::Item) -> U + Clone + Send + 'static,
    {
        par_buffer(self, count, f)
    }
}

impl<I: IntoIterator> Ahead for I {}
