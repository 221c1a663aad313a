//! A generator as an iterator, for loops and for libraries that take one. The other way is
//! `from_iter` (`generate.rs`).
//!
//! An iterator is asked for one item, and a generator yields some at a time. So `IntoIter` keeps
//! the items of one pump in the reverse order and takes them from the end of its vector.

use crate::role::{Generator, Keep};
use crate::stage::Generate;
use std::fmt;
use std::iter::FusedIterator;
use std::ops::ControlFlow;

/// The items of a generator, one by one. See [`Generator::into_iter`].
pub struct IntoIter<B, G> {
    /// `None` at the end.
    generator: Option<G>,
    /// The items that are not taken yet, the next one last.
    items: Vec<B>,
}

/// The items one by one. The generator runs when an item is asked for, and is ahead by some items:
/// 1024, or a chunk of [`from_chunks`](crate::from_chunks).
///
/// # Panics
/// The iterator panics at the failure of a stage, after the items that came before it.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{filter, naturals};
///
/// let even = naturals() >> filter(|n: &u64| n % 2 == 0);
/// assert_eq!(even.into_iter().zip("abc".chars()).last(), Some((4, 'c')));
/// ```
impl<B: Clone + 'static, G: Generate<B>> IntoIterator for Generator<B, G> {
    type Item = B;
    type IntoIter = IntoIter<B, G>;

    fn into_iter(self) -> IntoIter<B, G> {
        IntoIter { generator: Some(self.into_stage()), items: Vec::new() }
    }
}

impl<B: Clone + 'static, G: Generate<B>> Iterator for IntoIter<B, G> {
    type Item = B;

    #[inline]
    fn next(&mut self) -> Option<B> {
        loop {
            if let Some(item) = self.items.pop() {
                return Some(item);
            }
            let generator = self.generator.as_mut()?;
            if let Some(failure) = generator.failure() {
                panic!("a stage of a pipeline has failed: {failure}");
            }
            let more = generator.pump(&mut Keep(&mut self.items));
            self.items.reverse();
            if more != ControlFlow::Continue(true) && generator.failure().is_none() {
                self.generator = None;
            }
        }
    }
}

impl<B: Clone + 'static, G: Generate<B>> FusedIterator for IntoIter<B, G> {}

impl<B, G> fmt::Debug for IntoIter<B, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntoIter").field("ended", &self.generator.is_none()).finish_non_exhaustive()
    }
}
