//! The types that every stage deals with: `Item`, the borrowed `Chunk` of several items, the
//! `Store` for items that a stage keeps, and `Flow`, the answer of each call.
//!
//! An item is a `Clone + 'static` value or a list `[E]`. The chunk of values is a slice, and the
//! chunk of lists is `Lists`. A chunk is lent: it lives no longer than the call that passes it, so
//! a stage copies into a store. `Flow::Break` means that the callee is finished; the caller then
//! neither feeds nor ends it.

pub(crate) mod exact;
pub(crate) mod lists;
pub(crate) mod place;

use self::lists::{ListStore, Lists};
use std::ops::{ControlFlow, Range};

/// Whether the stage downstream still listens.
///
/// `Break` says that the stage is finished: it has passed on all that it had, and it is neither fed
/// nor ended after that. The `?` operator works on it.
pub type Flow = ControlFlow<()>;

/// The downstream stage listens.
pub(crate) const GO_ON: Flow = ControlFlow::Continue(());

/// The downstream stage is finished.
pub(crate) const FINISHED: Flow = ControlFlow::Break(());

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

    /// How many elements the item counts as, where a [`StageError`](crate::StageError) tells
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
}

impl<T: Clone + 'static> Item for T {
    type Chunk<'a> = &'a [T];
    type Store = Vec<T>;
}

impl<E: Clone + 'static> Item for [E] {
    type Chunk<'a> = Lists<'a, E>;
    type Store = ListStore<E>;

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
