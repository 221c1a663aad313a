//! The iteratees for users: `fold`, `count`, `collect`, `each_chunk` and `head`. `Program` in
//! `role.rs` drives them through `Consume`, and their result is that of the whole pipeline.
//!
//! An iteratee that needs no further item breaks, and no stage upstream is called after that.
//! `count` and `collect` take whole chunks, so they cost nothing for each item. `try_fold` is in
//! `fallible.rs`.

use crate::item::{Chunk, FINISHED, Flow, GO_ON, Item, Store};
use crate::role::Iteratee;
use crate::stage::Consume;

/// The stage of [`fold`].
#[derive(Debug, Clone)]
pub struct Fold<R, F> {
    state: R,
    f: F,
}

/// Passes each item to `f` with the state, which is the result at the end.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{fold, from_iter};
///
/// let longest = fold(0, |longest: &mut usize, word: &&str| *longest = word.len().max(*longest));
/// assert_eq!((from_iter(["warp", "shuttle"]) >> longest).run(), 7);
/// ```
pub fn fold<A, R, F>(state: R, f: F) -> Iteratee<A, Fold<R, F>>
where
    A: Item + ?Sized,
    F: FnMut(&mut R, &A),
{
    Iteratee::new(Fold { state, f })
}

impl<A: Item + ?Sized, R, F: FnMut(&mut R, &A)> Consume<A> for Fold<R, F> {
    type Result = R;

    #[inline(always)]
    fn put(&mut self, item: &A) -> Flow {
        (self.f)(&mut self.state, item);
        GO_ON
    }

    fn end(self) -> R {
        self.state
    }
}

/// The stage of [`count`].
#[derive(Debug, Clone)]
struct CountItems {
    count: u64,
}

/// Counts the items.
pub fn count<A: Item + ?Sized>() -> Iteratee<A, impl Consume<A, Result = u64> + Clone> {
    Iteratee::new(CountItems { count: 0 })
}

impl<A: Item + ?Sized> Consume<A> for CountItems {
    type Result = u64;

    const CHUNKS: bool = true;

    #[inline]
    fn put(&mut self, _item: &A) -> Flow {
        self.count += 1;
        GO_ON
    }

    #[inline]
    fn put_chunk(&mut self, chunk: A::Chunk<'_>) -> Flow {
        self.count += chunk.count();
        GO_ON
    }

    fn put_some(&mut self, chunk: A::Chunk<'_>) -> (usize, Flow) {
        let taken = chunk.count();
        self.count += taken;
        (taken as usize, GO_ON)
    }

    fn end(self) -> u64 {
        self.count
    }
}

/// The stage of [`collect`].
#[derive(Debug, Clone)]
struct CollectAll<C> {
    items: C,
}

/// Keeps all items: in a vector, or lists in a [`ListStore`](crate::ListStore).
pub fn collect<A: Item + ?Sized>() -> Iteratee<A, impl Consume<A, Result = A::Store> + Clone> {
    Iteratee::new(CollectAll { items: A::Store::default() })
}

impl<A: Item + ?Sized, C: Store<A>> Consume<A> for CollectAll<C> {
    type Result = C;

    const CHUNKS: bool = true;

    #[inline]
    fn put(&mut self, item: &A) -> Flow {
        self.items.keep(item);
        GO_ON
    }

    fn put_chunk(&mut self, chunk: A::Chunk<'_>) -> Flow {
        self.items.keep_all(chunk);
        GO_ON
    }

    fn put_some(&mut self, chunk: A::Chunk<'_>) -> (usize, Flow) {
        let before = self.items.count();
        self.items.keep_all(chunk);
        (self.items.count() - before, GO_ON)
    }

    fn end(self) -> C {
        self.items
    }
}

/// The stage of [`each_chunk`].
#[derive(Debug, Clone)]
pub struct EachChunk<F> {
    f: F,
}

/// Passes each chunk to `f`, until `f` breaks. A chunk may be of any size.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{each_chunk, from_chunks};
/// use std::ops::ControlFlow;
///
/// let mut written = Vec::new();
/// (from_chunks(["warp", "weft"]) >> each_chunk(|block: &[u8]| {
///     written.extend_from_slice(block);
///     ControlFlow::Continue(())
/// }))
/// .run();
/// assert_eq!(written, b"warpweft");
/// ```
pub fn each_chunk<A: Clone + 'static, F: FnMut(&[A]) -> Flow>(f: F) -> Iteratee<A, EachChunk<F>> {
    Iteratee::new(EachChunk { f })
}

impl<A: Clone + 'static, F: FnMut(&[A]) -> Flow> Consume<A> for EachChunk<F> {
    type Result = ();

    const CHUNKS: bool = true;

    #[inline]
    fn put(&mut self, item: &A) -> Flow {
        (self.f)(std::slice::from_ref(item))
    }

    #[inline]
    fn put_chunk(&mut self, chunk: &[A]) -> Flow {
        if chunk.is_empty() { GO_ON } else { (self.f)(chunk) }
    }

    /// The function has seen the whole chunk, also if it breaks.
    fn put_some(&mut self, chunk: &[A]) -> (usize, Flow) {
        (chunk.len(), self.put_chunk(chunk))
    }

    fn end(self) {}
}

/// The stage of [`head`].
#[derive(Debug, Clone)]
struct FirstOf<A> {
    item: Option<A>,
}

/// The first item, or `None` of an empty stream. The rest is not generated.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{filter, head, naturals};
///
/// let first = naturals() >> filter(|n: &u64| n * n > 50) >> head();
/// assert_eq!(first.run(), Some(8));
/// ```
pub fn head<A: Clone + 'static>() -> Iteratee<A, impl Consume<A, Result = Option<A>> + Clone> {
    Iteratee::new(FirstOf { item: None })
}

impl<A: Clone + 'static> Consume<A> for FirstOf<A> {
    type Result = Option<A>;

    fn put(&mut self, item: &A) -> Flow {
        self.item = Some(item.clone());
        FINISHED
    }

    fn end(self) -> Option<A> {
        self.item
    }
}
