//! The transducers without a function of a user: `id`, `suppress`, `take`, `skip`, `concatenate`,
//! `prepend`, `append` and `trim_end`. `branch.rs` uses `Unchanged` and `Suppress`.
//!
//! A stage sets `CHUNKS` only if a chunk costs it less than its items one by one, because the stage
//! upstream then gathers items for it.

use crate::edges::parts::{ItemByItem, PlaceKnown};
use crate::item::lists::{ListStore, Lists};
use crate::item::{Chunk, FINISHED, Flow, GO_ON, Item};
use crate::role::Transducer;
use crate::stage::{Sink, Transduce};

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
}

impl<A: Item + ?Sized> ItemByItem<A, A> for Unchanged {
    const TELLS: PlaceKnown = PlaceKnown::Elements;
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

impl<A: Item + ?Sized, B: Item + ?Sized> ItemByItem<A, B> for Suppress {}

/// The stage of [`take`].
#[derive(Debug, Clone)]
struct TakeFirst {
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
pub fn take<A: Item + ?Sized>(count: u64) -> Transducer<A, A, impl Transduce<A, A> + Clone> {
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
struct SkipFirst {
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
pub fn skip<A: Item + ?Sized>(count: u64) -> Transducer<A, A, impl Transduce<A, A> + Clone> {
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

/// The stage of [`concatenate`].
#[derive(Debug, Clone)]
struct Concatenate;

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
pub fn concatenate<E: Clone + 'static>() -> Transducer<[E], E, impl ItemByItem<[E], E> + Clone> {
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

/// It tells no place, because the stage before may not tell the number of elements.
impl<E: Clone + 'static> ItemByItem<[E], E> for Concatenate {}

/// The stage of [`prepend`] and [`append`].
#[derive(Debug, Clone)]
struct Framed<E> {
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
pub fn prepend<E: Clone + 'static>(
    list: &[E],
) -> Transducer<[E], [E], impl ItemByItem<[E], [E]> + Clone + use<E>> {
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
pub fn append<E: Clone + 'static>(
    list: &[E],
) -> Transducer<[E], [E], impl ItemByItem<[E], [E]> + Clone + use<E>> {
    Transducer::new(Framed { before: Vec::new(), after: list.to_vec(), spare: ListStore::default() })
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
}

impl<E: Clone + 'static> ItemByItem<[E], [E]> for Framed<E> {
    const TELLS: PlaceKnown = PlaceKnown::Items;
}

/// The stage of [`trim_end`].
#[derive(Debug, Clone)]
struct TrimEnd<E> {
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
pub fn trim_end<E: Clone + PartialEq + 'static>(
    end: &[E],
) -> Transducer<[E], [E], impl ItemByItem<[E], [E]> + Clone + use<E>> {
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

impl<E: Clone + PartialEq + 'static> ItemByItem<[E], [E]> for TrimEnd<E> {
    const TELLS: PlaceKnown = PlaceKnown::Items;
}
