//! The types that every stage deals with: `Item`, the borrowed `Chunk` of several items, the
//! `Store` for items that a stage keeps, and `Flow`, the answer of each call.
//!
//! An item is a `Clone + 'static` value or a list `[E]`. The chunk of values is a slice, and the
//! chunk of lists is `Lists`. A chunk is lent: it lives no longer than the call that passes it, so
//! a stage copies into a store. `Flow::Break` means that the callee is finished; the caller then
//! neither feeds nor ends it.

use super::foreseen::ForeseenLists;
use super::list::{ForeseenPlace, ListStore, Lists, ZippedLists};
use std::ops::{ControlFlow, Range};

/// Whether the stage downstream still listens.
///
/// `Break` says that the stage is finished: it has passed on all that it had, and it is neither fed
/// nor ended after that. The `?` operator works on it.
pub type Flow = ControlFlow<()>;

/// The downstream stage listens.
pub(super) const GO_ON: Flow = ControlFlow::Continue(());

/// The downstream stage is finished.
pub(super) const FINISHED: Flow = ControlFlow::Break(());

/// The type of the values that flow along an edge: any `Clone` type, or a list `[E]` of such
/// values.
///
/// Items are lent to the next stage, never moved. So a line of text is an item `[u8]` that lies in
/// the block that was read, and a filter copies nothing.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an item of a pipeline",
    label = "an item is a `Clone + 'static` type, or a list `[E]` of such values"
)]
pub trait Item: 'static {
    /// Several items in a row, borrowed: `&[T]`, or [`Lists`] for lists.
    type Chunk<'a>: Chunk<'a, Self>;
    /// Items that a stage keeps: `Vec<T>`, or [`ListStore`] for lists.
    type Store: Store<Self>;

    /// What an endless generator of such items tells of them before it runs: [`ForeseenLists`] for
    /// lists, the first of numbers that follow one another for `u64`.
    type Foreseen: Clone;

    /// How many elements the item counts as, where a [`StageFailure`](super::StageFailure) tells
    /// its place: a list counts as many as it has, any other item as one.
    #[inline(always)]
    fn elements(item: &Self) -> u64 {
        let _ = item;
        1
    }

    /// How many [elements](Item::elements) the items of a chunk count as.
    #[inline]
    fn elements_of(chunk: Self::Chunk<'_>) -> u64 {
        chunk.count()
    }

    /// Passes to `take` the chunk in which each list of `left` has the list of `right` at its place
    /// after it. `None` if nothing was passed, because the lists would have to be written down.
    #[doc(hidden)]
    fn zip_chunks(
        left: Self::Chunk<'_>,
        right: Self::Chunk<'_>,
        take: &mut dyn FnMut(Self::Chunk<'_>) -> Flow,
    ) -> Option<Flow> {
        let _ = (left, right, take);
        None
    }

    /// Passes to `take` the lists of `right` with foreseen lists before them, from the one at
    /// `place` on. Writes the place after the last one into `next`, if it is wanted. `None` if the
    /// items are no lists.
    #[doc(hidden)]
    fn zip_foreseen(
        left: &Self::Foreseen,
        place: u64,
        next: Option<&mut u64>,
        right: Self::Chunk<'_>,
        take: &mut dyn FnMut(Self::Chunk<'_>) -> Flow,
    ) -> Option<Flow> {
        let _ = (left, place, next, right, take);
        None
    }

    /// Keeps in `store` the list at `place` with `right` after it. Does nothing if the items are no
    /// lists.
    #[doc(hidden)]
    fn keep_foreseen(left: &Self::Foreseen, place: u64, right: &Self, store: &mut Self::Store) {
        let _ = (left, place, right, store);
    }

    /// The foreseen lists that a join may zip. `None` if the items are no lists.
    #[doc(hidden)]
    fn foreseen_lists(foreseen: Option<Self::Foreseen>) -> Option<Self::Foreseen> {
        let _ = foreseen;
        None
    }

    /// Foreseen lists, each with the list of `right` at the same place after it. `None` if the
    /// items are no lists.
    #[doc(hidden)]
    fn zip_both_foreseen(left: Self::Foreseen, right: Self::Foreseen) -> Option<Self::Foreseen> {
        let _ = (left, right);
        None
    }
}

impl<T: Clone + 'static> Item for T {
    type Chunk<'a> = &'a [T];
    type Store = Vec<T>;
    type Foreseen = u64;
}

impl<E: Clone + 'static> Item for [E] {
    type Chunk<'a> = Lists<'a, E>;
    type Store = ListStore<E>;
    type Foreseen = ForeseenLists<E>;

    #[inline(always)]
    fn elements(item: &[E]) -> u64 {
        item.len() as u64
    }

    fn elements_of(chunk: Lists<'_, E>) -> u64 {
        let mut elements = 0;
        let _never_breaks = chunk.each(|item| {
            elements += item.len() as u64;
            GO_ON
        });
        elements
    }

    fn zip_chunks(
        left: Lists<'_, E>,
        right: Lists<'_, E>,
        take: &mut dyn FnMut(Lists<'_, E>) -> Flow,
    ) -> Option<Flow> {
        let zipped = ZippedLists::new(left, right)?;
        Some(take(zipped.lists()))
    }

    fn zip_foreseen(
        left: &ForeseenLists<E>,
        place: u64,
        next: Option<&mut u64>,
        right: Lists<'_, E>,
        take: &mut dyn FnMut(Lists<'_, E>) -> Flow,
    ) -> Option<Flow> {
        if let Some((stream, cut)) = right.searchable() {
            let lefts = ForeseenPlace::new(left, place, stream, cut);
            let zipped = ZippedLists::foreseen(&lefts);
            let flow = take(zipped.lists());
            if let Some(next) = next {
                *next = lefts.place_at(stream.len());
            }
            return Some(flow);
        }
        let (mut store, mut at) = (ListStore::default(), place);
        let _never_breaks = right.each(|list| {
            Self::keep_foreseen(left, at, list, &mut store);
            at += 1;
            GO_ON
        });
        if let Some(next) = next {
            *next = at;
        }
        Some(take(store.all()))
    }

    #[inline]
    fn keep_foreseen(left: &ForeseenLists<E>, place: u64, right: &[E], store: &mut ListStore<E>) {
        store.keep_made(|list| {
            left.write(place, list);
            list.extend_from_slice(right);
        });
    }

    fn foreseen_lists(foreseen: Option<ForeseenLists<E>>) -> Option<ForeseenLists<E>> {
        foreseen
    }

    fn zip_both_foreseen(left: ForeseenLists<E>, right: ForeseenLists<E>) -> Option<ForeseenLists<E>> {
        Some(left.zipped(right))
    }
}

/// Several items in a row, borrowed from the stage upstream.
pub trait Chunk<'a, A: Item + ?Sized>: Copy {
    /// The chunk that holds one item.
    fn one(item: &'a A) -> Self;

    /// Whether the chunk has no items.
    fn is_empty(self) -> bool;

    /// How many items the chunk has.
    fn count(self) -> u64;

    /// Passes each item to `f`, until `f` breaks.
    fn each(self, f: impl FnMut(&'a A) -> Flow) -> Flow;
}

impl<'a, T: Clone + 'static> Chunk<'a, T> for &'a [T] {
    fn one(item: &'a T) -> Self {
        std::slice::from_ref(item)
    }

    fn is_empty(self) -> bool {
        <[T]>::is_empty(self)
    }

    fn count(self) -> u64 {
        self.len() as u64
    }

    #[inline(always)]
    fn each(self, mut f: impl FnMut(&'a T) -> Flow) -> Flow {
        for item in self {
            f(item)?;
        }
        GO_ON
    }
}

/// Items that a stage keeps for later.
pub trait Store<A: Item + ?Sized>: Default + Clone {
    /// Copies one item to the end.
    fn keep(&mut self, item: &A);

    /// Copies the items of a chunk to the end.
    fn keep_all(&mut self, chunk: A::Chunk<'_>);

    /// How many items there are.
    fn count(&self) -> usize;

    /// The item at `index`.
    ///
    /// # Panics
    /// If there is none.
    fn at(&self, index: usize) -> &A;

    /// The items in `range` as a chunk.
    ///
    /// # Panics
    /// If the range reaches beyond the end.
    fn chunk(&self, range: Range<usize>) -> A::Chunk<'_>;

    /// Removes the first `count` items.
    ///
    /// # Complexity
    /// O(items that are left).
    ///
    /// # Panics
    /// If there are fewer.
    fn forget(&mut self, count: usize);

    /// The items as a chunk.
    fn all(&self) -> A::Chunk<'_> {
        self.chunk(0..self.count())
    }

    /// Removes all items, and keeps the memory.
    fn clear(&mut self) {
        self.forget(self.count());
    }
}

impl<T: Clone + 'static> Store<T> for Vec<T> {
    #[inline]
    fn keep(&mut self, item: &T) {
        self.push(item.clone());
    }

    fn keep_all(&mut self, chunk: &[T]) {
        self.extend_from_slice(chunk);
    }

    fn count(&self) -> usize {
        self.len()
    }

    fn at(&self, index: usize) -> &T {
        &self[index]
    }

    fn chunk(&self, range: Range<usize>) -> &[T] {
        &self[range]
    }

    fn clear(&mut self) {
        Vec::clear(self);
    }

    fn forget(&mut self, count: usize) {
        self.drain(..count);
    }
}
