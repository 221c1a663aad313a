//! Lazy lists in a region: [`LazyList`], a thunk of a cell, with [`Cons`] and the usual functions.
//!
//! The program makes a list with `Nursery::unfold`, or as the result of a thunk, and walks it with
//! [`LazyList::iter`]. The functions of lists use the public functions of `Nursery` and `Thunk`
//! only.
//!
//! A cell lies in the region and is never dropped by itself. So elements and closures are `Copy`,
//! and a list that was walked stays in memory until its region goes.

use crate::region::{Grey, Nursery, Thunk, ThunkEntry, ThunkWord};
use std::fmt;

/// A lazy list in a [`Region`](crate::Region), perhaps without an end: a thunk of its first cell.
///
/// # Examples
/// ```
/// use selvedge::lazy::{LazyList, Nursery, Region};
///
/// fn sieve<'r>(candidates: LazyList<'r, u32>, nursery: &Nursery<'r>) -> LazyList<'r, u32> {
///     nursery.thunk(move |nursery| {
///         let first = candidates.force(nursery)?;
///         let prime = first.head;
///         let rest = first.tail.filter(nursery, move |n| n % prime != 0);
///         Some(nursery.put(selvedge::lazy::Cons { head: prime, tail: sieve(rest, nursery) }))
///     })
/// }
///
/// let region: Region = Region::new();
/// let nursery = region.nursery();
/// let primes = sieve(nursery.unfold(2, |n| Some((n, n + 1))), &nursery);
/// let first: Vec<u32> = primes.iter(&nursery).take(6).collect();
/// assert_eq!(first, [2, 3, 5, 7, 11, 13]);
/// ```
pub type LazyList<'r, T, E = Grey> = Thunk<'r, Option<&'r Cons<'r, T, E>>, E>;

/// A cell of a [`LazyList`].
pub struct Cons<'r, T, E: ThunkEntry = Grey> {
    /// The element.
    pub head: T,
    /// The rest of the list.
    pub tail: LazyList<'r, T, E>,
}

impl<T: fmt::Debug, E: ThunkEntry> fmt::Debug for Cons<'_, T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cons").field("head", &self.head).finish_non_exhaustive()
    }
}

impl<'r, E: ThunkEntry> Nursery<'r, E> {
    /// A cell of a list, with the thunk of its tail next to it in memory.
    ///
    /// It is one piece of memory where a thunk and a [`put`](Nursery::put) of the cell are two.
    ///
    /// # Examples
    /// ```
    /// use selvedge::lazy::{Cons, Nursery, Region};
    ///
    /// fn countdown<'r>(n: u32, nursery: &Nursery<'r>) -> Option<&'r Cons<'r, u32>> {
    ///     Some(nursery.cons(n, move |nursery| countdown(n.checked_sub(1)?, nursery)))
    /// }
    ///
    /// let region: Region = Region::new();
    /// let nursery = region.nursery();
    /// let list = nursery.ready(countdown(3, &nursery));
    /// assert_eq!(list.iter(&nursery).collect::<Vec<_>>(), [3, 2, 1, 0]);
    /// ```
    #[inline]
    pub fn cons<T, F>(&self, head: T, tail: F) -> &'r Cons<'r, T, E>
    where
        T: Copy + Send + Sync + 'r,
        F: Fn(&Nursery<'r, E>) -> Option<&'r Cons<'r, T, E>> + Send + Sync + 'r,
    {
        self.put_with_thunk(tail, |tail| Cons { head, tail })
    }

    /// The list of the elements that `step` gives, each with the seed of the next, until it gives
    /// `None`.
    pub fn unfold<T, S, F>(&self, seed: S, step: F) -> LazyList<'r, T, E>
    where
        T: Copy + Send + Sync + 'r,
        S: Copy + Send + Sync + 'r,
        F: Fn(S) -> Option<(T, S)> + Copy + Send + Sync + 'r,
    {
        self.thunk(unfolded(seed, step))
    }
}

/// The code of [`Nursery::unfold`].
fn unfolded<'r, T, S, F, E>(
    seed: S,
    step: F,
) -> impl Fn(&Nursery<'r, E>) -> Option<&'r Cons<'r, T, E>> + Send + Sync + 'r
where
    T: Copy + Send + Sync + 'r,
    S: Copy + Send + Sync + 'r,
    F: Fn(S) -> Option<(T, S)> + Copy + Send + Sync + 'r,
    E: ThunkEntry,
{
    move |nursery| {
        let (head, next) = step(seed)?;
        Some(nursery.cons(head, unfolded(next, step)))
    }
}

/// The code of [`LazyList::map`].
fn mapped<'r, T, U, F, E>(
    list: LazyList<'r, T, E>,
    f: F,
) -> impl Fn(&Nursery<'r, E>) -> Option<&'r Cons<'r, U, E>> + Send + Sync + 'r
where
    T: Copy + Send + Sync + 'r,
    U: Copy + Send + Sync + 'r,
    F: Fn(T) -> U + Copy + Send + Sync + 'r,
    E: ThunkEntry,
{
    move |nursery| {
        let cell = list.force(nursery)?;
        Some(nursery.cons(f(cell.head), mapped(cell.tail, f)))
    }
}

/// The code of [`LazyList::filter`].
fn filtered<'r, T, F, E>(
    list: LazyList<'r, T, E>,
    keep: F,
) -> impl Fn(&Nursery<'r, E>) -> Option<&'r Cons<'r, T, E>> + Send + Sync + 'r
where
    T: Copy + Send + Sync + 'r,
    F: Fn(T) -> bool + Copy + Send + Sync + 'r,
    E: ThunkEntry,
{
    move |nursery| {
        let mut cell = list.force(nursery)?;
        while !keep(cell.head) {
            cell = cell.tail.force(nursery)?;
        }
        Some(nursery.cons(cell.head, filtered(cell.tail, keep)))
    }
}

/// The code of [`LazyList::zip_with`].
fn zipped<'r, T, U, W, F, E>(
    lists: (LazyList<'r, T, E>, LazyList<'r, U, E>),
    f: F,
) -> impl Fn(&Nursery<'r, E>) -> Option<&'r Cons<'r, W, E>> + Send + Sync + 'r
where
    T: Copy + Send + Sync + 'r,
    U: Copy + Send + Sync + 'r,
    W: Copy + Send + Sync + 'r,
    F: Fn(T, U) -> W + Copy + Send + Sync + 'r,
    E: ThunkEntry,
{
    move |nursery| {
        let (mine, theirs) = (lists.0.force(nursery)?, lists.1.force(nursery)?);
        Some(nursery.cons(f(mine.head, theirs.head), zipped((mine.tail, theirs.tail), f)))
    }
}

impl<'r, T: Copy + Send + Sync + 'r, E: ThunkEntry> LazyList<'r, T, E> {
    /// The list of what `f` makes of each element, when it is needed.
    pub fn map<U, F>(self, nursery: &Nursery<'r, E>, f: F) -> LazyList<'r, U, E>
    where
        U: Copy + Send + Sync + 'r,
        F: Fn(T) -> U + Copy + Send + Sync + 'r,
    {
        nursery.thunk(mapped(self, f))
    }

    /// The list of the elements that `keep` accepts.
    pub fn filter<F>(self, nursery: &Nursery<'r, E>, keep: F) -> LazyList<'r, T, E>
    where
        F: Fn(T) -> bool + Copy + Send + Sync + 'r,
    {
        nursery.thunk(filtered(self, keep))
    }

    /// The list of what `f` makes of the elements of both, up to the end of the shorter list.
    pub fn zip_with<U, W, F>(
        self,
        other: LazyList<'r, U, E>,
        nursery: &Nursery<'r, E>,
        f: F,
    ) -> LazyList<'r, W, E>
    where
        U: Copy + Send + Sync + 'r,
        W: Copy + Send + Sync + 'r,
        F: Fn(T, U) -> W + Copy + Send + Sync + 'r,
    {
        nursery.thunk(zipped((self, other), f))
    }

    /// Walks the list, and forces a cell when it comes to it.
    pub fn iter<'n>(self, nursery: &'n Nursery<'r, E>) -> ListIter<'n, 'r, T, E>
    where
        Option<&'r Cons<'r, T, E>>: ThunkWord,
    {
        ListIter { at: self, nursery }
    }
}

/// The elements of a list: see [`iter`](LazyList::iter).
#[derive(Debug)]
pub struct ListIter<'n, 'r, T, E: ThunkEntry = Grey> {
    at: LazyList<'r, T, E>,
    nursery: &'n Nursery<'r, E>,
}

impl<'r, T: Copy + 'r, E: ThunkEntry> Iterator for ListIter<'_, 'r, T, E> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let cell = self.at.force(self.nursery)?;
        self.at = cell.tail;
        Some(cell.head)
    }
}
