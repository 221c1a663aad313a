//! Joins: one stream of two.
//!
//! | the output is | join |
//! |---|---|
//! | the left stream, then the right one | [`concatenate`] |
//! | items from both in turn | [`interleave`] |
//! | a function of both next items | [`zip_with`] |
//! | both streams, each sorted, in order | [`merge`] |
//! | what another join makes with left and right exchanged | [`flip`] |
//!
//! [`join_generators`] joins two generators, [`join_transduced`] two transducers of the same input,
//! and [`join_with`] a generator and the stream. A join says which of the two it wants next, and
//! items of the other side are kept meanwhile. The documentation of each join says how many these
//! may be.

mod driven;

pub use driven::{JoinGenerators, JoinTransduced, JoinWith, join_generators, join_transduced, join_with};

use crate::item::lists::{ListStore, Lists, ZippedLists};
use crate::item::{Flow, Item};
use crate::role::Join;
use crate::stage::{JoinStep, Merge, Sink, Upcoming};
use std::cmp::Ordering;

/// The stage of [`concatenate`].
#[derive(Debug, Clone)]
pub struct Both;

/// The left stream, and then the right one.
///
/// The right stream of [`join_transduced`] is kept as a whole. That of [`join_generators`] is not
/// generated before the left one has ended.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_iter, join, join_generators};
///
/// let both = join_generators(from_iter([1, 2]), from_iter([3]), join::concatenate());
/// assert_eq!(both.collect(), [1, 2, 3]);
/// ```
pub fn concatenate<A: Item + ?Sized>() -> Join<A, Both> {
    Join::new(Both)
}

impl<A: Item + ?Sized> Merge<A> for Both {
    fn step<S: Sink<A>>(&mut self, left: Upcoming<'_, A>, right: Upcoming<'_, A>, out: &mut S) -> JoinStep {
        match (left, right) {
            (Upcoming::Item(item), _) => JoinStep::put(out.put(item), true, false),
            (Upcoming::Unknown, _) => JoinStep::WantsLeft,
            (Upcoming::Ended, Upcoming::Item(item)) => JoinStep::put(out.put(item), false, true),
            (Upcoming::Ended, Upcoming::Unknown) => JoinStep::WantsRight,
            (Upcoming::Ended, Upcoming::Ended) => JoinStep::Finished,
        }
    }
}

/// The stage of [`interleave`].
#[derive(Debug, Clone)]
pub struct Interleave {
    right: bool,
}

/// An item of the left stream, one of the right stream, and so on. When one of them has ended, the
/// rest of the other follows.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_iter, join, join_generators};
///
/// let both = join_generators(from_iter([1, 3, 5, 7]), from_iter([2, 4]), join::interleave());
/// assert_eq!(both.collect(), [1, 2, 3, 4, 5, 7]);
/// ```
pub fn interleave<A: Item + ?Sized>() -> Join<A, Interleave> {
    Join::new(Interleave { right: false })
}

impl<A: Item + ?Sized> Merge<A> for Interleave {
    fn step<S: Sink<A>>(&mut self, left: Upcoming<'_, A>, right: Upcoming<'_, A>, out: &mut S) -> JoinStep {
        match (left, right) {
            (Upcoming::Ended, Upcoming::Ended) => return JoinStep::Finished,
            (Upcoming::Ended, _) => self.right = true,
            (_, Upcoming::Ended) => self.right = false,
            _ => {}
        }
        let turn = self.right;
        match if turn { right } else { left } {
            Upcoming::Item(item) => {
                self.right = !turn;
                JoinStep::put(out.put(item), !turn, turn)
            }
            _ if turn => JoinStep::WantsRight,
            _ => JoinStep::WantsLeft,
        }
    }
}

/// The stage of [`zip_with`].
#[derive(Debug, Clone)]
pub struct ZipWith<F> {
    f: F,
}

/// `f` of the next items of both. It is finished when one of the streams has ended.
///
/// # Paper
/// [Pipes, Pipeline examples] `zipMonoids`, with `mappend` for `f`.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_iter, join, join_generators, naturals};
///
/// let sums = join_generators(naturals(), from_iter([10, 20]), join::zip_with(|a, b| a + b));
/// assert_eq!(sums.collect(), [10, 21]);
/// ```
#[doc(alias = "zipMonoids")]
pub fn zip_with<A: Clone + 'static, F: FnMut(&A, &A) -> A>(f: F) -> Join<A, ZipWith<F>> {
    Join::new(ZipWith { f })
}

impl<A: Clone + 'static, F: FnMut(&A, &A) -> A> Merge<A> for ZipWith<F> {
    fn step<S: Sink<A>>(&mut self, left: Upcoming<'_, A>, right: Upcoming<'_, A>, out: &mut S) -> JoinStep {
        match (left, right) {
            (Upcoming::Item(left), Upcoming::Item(right)) => {
                JoinStep::put(out.put(&(self.f)(left, right)), true, true)
            }
            (Upcoming::Ended, _) | (_, Upcoming::Ended) => JoinStep::Finished,
            (Upcoming::Unknown, _) => JoinStep::WantsLeft,
            (_, Upcoming::Unknown) => JoinStep::WantsRight,
        }
    }
}

/// The stage of [`zip_lists`].
#[derive(Debug, Clone)]
struct ZipLists<E> {
    /// For a sink that keeps nothing.
    spare: ListStore<E>,
}

/// Each list of the left stream with the next list of the right stream after it. It is finished
/// when one of the streams has ended.
///
/// If the right lists are lines of a block, then a [`select`](crate::select) of
/// [`any`](crate::any()) [`substring`](crate::substring) searches the block, and only the lines
/// that it finds are copied behind their left lists.
///
/// # Paper
/// [Pipes, Pipeline examples] `zipMonoids` for lists.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{concatenate, from_chunks, group_by, join};
/// use selvedge::pipeline::{join_generators, naturals, rewrite, whole_line};
///
/// let number = |n: &u64, text: &mut Vec<u8>| text.extend(format!("{}: ", n + 1).bytes());
/// let numbers = naturals() >> rewrite(number);
/// let lines = from_chunks(["warp\n\nweft\n"]) >> group_by(whole_line());
/// let numbered = join_generators(numbers, lines, join::zip_lists()) >> concatenate();
/// assert_eq!(numbered.collect(), b"1: warp\n2: \n3: weft\n");
/// ```
pub fn zip_lists<E: Clone + 'static>() -> Join<[E], impl Merge<[E]> + Clone> {
    Join::new(ZipLists { spare: ListStore::default() })
}

impl<E: Clone + 'static> Merge<[E]> for ZipLists<E> {
    const ZIPS: bool = true;

    #[inline]
    fn step<S: Sink<[E]>>(
        &mut self,
        left: Upcoming<'_, [E]>,
        right: Upcoming<'_, [E]>,
        out: &mut S,
    ) -> JoinStep {
        match (left, right) {
            (Upcoming::Item(left), Upcoming::Item(right)) => {
                let flow = out.put_made(&mut self.spare, |store| store.keep_parts([left, right]));
                JoinStep::put(flow, true, true)
            }
            (Upcoming::Ended, _) | (_, Upcoming::Ended) => JoinStep::Finished,
            (Upcoming::Unknown, _) => JoinStep::WantsLeft,
            (_, Upcoming::Unknown) => JoinStep::WantsRight,
        }
    }

    fn zip_chunks<S: Sink<[E]>>(
        &mut self,
        left: Lists<'_, E>,
        right: Lists<'_, E>,
        out: &mut S,
    ) -> Option<Flow> {
        let zipped = ZippedLists::new(left, right)?;
        Some(out.put_chunk(zipped.lists()))
    }
}

/// The stage of [`merge`].
#[derive(Debug, Clone)]
pub struct InOrder<F> {
    compare: F,
}

/// The items of both streams in the order of `compare`, if each stream is in that order. Of two
/// equal items the left one comes first.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_iter, join, join_generators};
///
/// let sorted = join_generators(from_iter([1, 4, 5]), from_iter([2, 4]), join::merge(i32::cmp));
/// assert_eq!(sorted.collect(), [1, 2, 4, 4, 5]);
/// ```
pub fn merge<A: Item + ?Sized, F: FnMut(&A, &A) -> Ordering>(compare: F) -> Join<A, InOrder<F>> {
    Join::new(InOrder { compare })
}

impl<A: Item + ?Sized, F: FnMut(&A, &A) -> Ordering> Merge<A> for InOrder<F> {
    fn step<S: Sink<A>>(&mut self, left: Upcoming<'_, A>, right: Upcoming<'_, A>, out: &mut S) -> JoinStep {
        let right_first = match (&left, &right) {
            (Upcoming::Ended, Upcoming::Ended) => return JoinStep::Finished,
            (Upcoming::Unknown, _) => return JoinStep::WantsLeft,
            (_, Upcoming::Unknown) => return JoinStep::WantsRight,
            (Upcoming::Item(left), Upcoming::Item(right)) => (self.compare)(left, right) == Ordering::Greater,
            (Upcoming::Ended, _) => true,
            (_, Upcoming::Ended) => false,
        };
        match if right_first { right } else { left } {
            Upcoming::Item(item) => JoinStep::put(out.put(item), !right_first, right_first),
            _ => JoinStep::Finished,
        }
    }
}

/// The stage of [`flip`].
#[derive(Debug, Clone)]
pub struct Flip<J> {
    join: J,
}

/// `join` with left and right exchanged.
///
/// # Paper
/// [Pipes, Parting and joining the stream] `flipJoin`.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_iter, join, join_generators};
///
/// let both = join_generators(from_iter([1]), from_iter([2, 3]), join::flip(join::concatenate()));
/// assert_eq!(both.collect(), [2, 3, 1]);
/// ```
#[doc(alias = "flipJoin")]
pub fn flip<A: Item + ?Sized, J: Merge<A>>(join: Join<A, J>) -> Join<A, Flip<J>> {
    Join::new(Flip { join: join.stage })
}

impl<A: Item + ?Sized, J: Merge<A>> Merge<A> for Flip<J> {
    fn step<S: Sink<A>>(&mut self, left: Upcoming<'_, A>, right: Upcoming<'_, A>, out: &mut S) -> JoinStep {
        match self.join.step(right, left, out) {
            JoinStep::Took { left: right, right: left } => JoinStep::Took { left, right },
            JoinStep::WantsLeft => JoinStep::WantsRight,
            JoinStep::WantsRight => JoinStep::WantsLeft,
            JoinStep::Finished => JoinStep::Finished,
        }
    }
}
