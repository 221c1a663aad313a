//! The generators for users: `from_iter`, `from_chunks`, `from_fn`, `naturals`,
//! `naturals_from` and `repeat`.
//! `Program`, `chain.rs` and the joins call their `pump`.
//!
//! One `pump` puts at most `CHUNK` items, or one chunk of the user, and returns whether there may
//! be more. A join pumps two generators in turn, so this bound is the number of items that the join
//! must keep. `try_from_fn.rs` has the generator that may fail.

use crate::role::Generator;
use crate::stage::{Generate, Sink};
use std::ops::ControlFlow;

/// How many items a generator puts in one pump, so that a join need not keep more of them.
const CHUNK: usize = 1024;

/// The stage of [`from_iter`].
#[derive(Debug, Clone)]
pub struct FromIter<I> {
    items: I,
}

/// Yields the items of an iterator.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{fold, from_iter};
///
/// let sum = from_iter(1..=4u64) >> fold(0, |sum, n: &u64| *sum += n);
/// assert_eq!(sum.run(), 10);
/// ```
pub fn from_iter<I>(items: I) -> Generator<I::Item, FromIter<I::IntoIter>>
where
    I: IntoIterator<Item: Clone + 'static>,
{
    Generator::new(FromIter { items: items.into_iter() })
}

impl<B: Clone + 'static, I: Iterator<Item = B>> Generate<B> for FromIter<I> {
    #[inline(always)]
    fn pump<S: Sink<B>>(&mut self, out: &mut S) -> ControlFlow<(), bool> {
        if !S::CHUNKS {
            for _ in 0..CHUNK {
                let Some(item) = self.items.next() else { return ControlFlow::Continue(false) };
                out.put(&item)?;
            }
            return ControlFlow::Continue(true);
        }
        let mut chunk = Vec::with_capacity(self.items.size_hint().0.clamp(1, CHUNK));
        chunk.extend(self.items.by_ref().take(CHUNK));
        let more = chunk.len() == CHUNK;
        out.put_store(&mut chunk)?;
        ControlFlow::Continue(more)
    }

    #[inline(always)]
    fn all<S: Sink<B>>(&mut self, out: &mut S) {
        if S::CHUNKS {
            while self.pump(out) == ControlFlow::Continue(true) && out.flush().is_continue() {}
        } else {
            // The iterator's own loop is faster than one that counts to the end of a chunk.
            let _finished = self.items.try_for_each(|item| out.put(&item));
        }
    }
}

/// The stage of [`from_chunks`].
#[derive(Debug, Clone)]
pub struct FromChunks<I> {
    chunks: I,
}

/// Yields the items of each chunk of an iterator of chunks: blocks of a file, strings, vectors.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{count, from_chunks};
///
/// assert_eq!((from_chunks(["warp", "weft"]) >> count()).run(), 8);
/// ```
pub fn from_chunks<B, I>(chunks: I) -> Generator<B, FromChunks<I::IntoIter>>
where
    B: Clone + 'static,
    I: IntoIterator<Item: AsRef<[B]>>,
{
    Generator::new(FromChunks { chunks: chunks.into_iter() })
}

impl<B: Clone + 'static, I: Iterator<Item: AsRef<[B]>>> Generate<B> for FromChunks<I> {
    #[inline]
    fn pump<S: Sink<B>>(&mut self, out: &mut S) -> ControlFlow<(), bool> {
        let Some(chunk) = self.chunks.next() else { return ControlFlow::Continue(false) };
        out.put_chunk(chunk.as_ref())?;
        ControlFlow::Continue(true)
    }
}

/// The stage of [`from_fn`].
#[derive(Debug, Clone)]
pub struct FromFn<B, F> {
    f: F,
    block: Vec<B>,
}

/// Yields what `f` fills in: it is called with a block of `length` items, and returns how many of
/// them it has filled, 0 at the end. The block is used again, so that a source reads into the
/// memory that the stages search.
///
/// # Panics
/// If `f` claims to have filled more than the block.
///
/// # Examples
/// ```
/// use selvedge::pipeline::from_fn;
/// use std::io::Read;
///
/// let mut reader = &b"warp and weft"[..];
/// let bytes = from_fn(4, move |block: &mut [u8]| reader.read(block).expect("slices can be read"));
/// assert_eq!(bytes.collect(), b"warp and weft");
/// ```
pub fn from_fn<B, F>(length: usize, f: F) -> Generator<B, FromFn<B, F>>
where
    B: Clone + Default + 'static,
    F: FnMut(&mut [B]) -> usize,
{
    Generator::new(FromFn { f, block: vec![B::default(); length] })
}

impl<B: Clone + 'static, F: FnMut(&mut [B]) -> usize> Generate<B> for FromFn<B, F> {
    #[inline]
    fn pump<S: Sink<B>>(&mut self, out: &mut S) -> ControlFlow<(), bool> {
        let filled = (self.f)(&mut self.block);
        if filled == 0 {
            return ControlFlow::Continue(false);
        }
        out.put_chunk(&self.block[..filled])?;
        ControlFlow::Continue(true)
    }
}

/// Yields 0, 1, 2 and so on.
///
/// # Paper
/// [Pipes, Pipeline examples] `naturals`.
pub fn naturals() -> Generator<u64, impl Generate<u64> + Clone> {
    naturals_from(0)
}

/// Yields `first` and the numbers after it.
///
/// # Panics
/// The pipeline panics after [`u64::MAX`] in a debug build, and goes on with 0 otherwise.
///
/// # Examples
/// `grep -n`, as the paper has it. [`select_numbered`](crate::select_numbered) is faster, because
/// it numbers only the lines that it finds.
/// ```
/// use selvedge::pipeline::*;
///
/// let numbers = naturals_from(1) >> decimal() >> append(b":");
/// let numbered = from_chunks(["warp\n\nweft\nno warp\n"])
///     >> group_by(whole_line())
///     >> join_with(numbers, join::zip_lists());
/// let found = numbered >> select(any(substring(b"warp"))) >> concatenate();
/// assert_eq!(found.collect(), b"1:warp\n4:no warp\n");
/// ```
pub fn naturals_from(first: u64) -> Generator<u64, impl Generate<u64> + Clone> {
    from_iter(first..)
}

/// Yields `item` for ever.
///
/// # Paper
/// [Pipes, Pipeline examples] `repeat`.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_iter, join, join_generators, repeat};
///
/// let sums = join_generators(from_iter([1, 2]), repeat(10), join::zip_with(|a, b| a + b));
/// assert_eq!(sums.collect(), [11, 12]);
/// ```
pub fn repeat<B: Clone + 'static>(item: B) -> Generator<B, FromIter<std::iter::Repeat<B>>> {
    from_iter(std::iter::repeat(item))
}
