//! What is known of an endless generator before it runs: the list at each place.
//!
//! `Generate::foresee` and `Transduce::foresee` build a [`ForeseenLists`] from stages with items
//! that depend on their place alone: `naturals`, `decimal`, `prepend`, `append`. A join that zips
//! lists asks for it (`join/driven.rs`). Then the generator never runs, and `list.rs` writes a list
//! only where a stage looks at it. So a numbered line that is dropped has no number.
//!
//! The lists must be the same as those of the generator. The property test
//! `foreseen_lists_are_those_that_are_generated` compares the two ways.

/// The lists of an endless generator, of which each depends on its place alone: some parts, one
/// after the other.
#[derive(Debug, Clone)]
pub struct ForeseenLists<E> {
    parts: Vec<ListPart<E>>,
}

#[derive(Debug, Clone)]
enum ListPart<E> {
    /// The same elements in each list.
    Fixed(Vec<E>),
    /// What `write` makes of a number, which is `first` in the first list and one more in each list
    /// after it. It uses `elements` alone.
    Number { first: u64, write: fn(u64, &mut Vec<E>), elements: Vec<E> },
}

impl<E: Clone + 'static> ForeseenLists<E> {
    /// Numbers that follow one another, as `write` writes them with some of `elements`.
    pub(super) fn numbers(first: u64, write: fn(u64, &mut Vec<E>), elements: &[E]) -> Self {
        ForeseenLists { parts: vec![ListPart::Number { first, write, elements: elements.to_vec() }] }
    }

    /// The lists with `before` before each and `after` after it.
    pub(super) fn framed(mut self, before: &[E], after: &[E]) -> Self {
        if !before.is_empty() {
            self.parts.insert(0, ListPart::Fixed(before.to_vec()));
        }
        if !after.is_empty() {
            self.parts.push(ListPart::Fixed(after.to_vec()));
        }
        self
    }

    /// Each list of `self` with the list of `right` at its place after it.
    pub(super) fn zipped(mut self, right: ForeseenLists<E>) -> Self {
        self.parts.extend(right.parts);
        self
    }

    /// Writes the list at `place` to the end of `list`.
    #[inline]
    pub(super) fn write(&self, place: u64, list: &mut Vec<E>) {
        for part in &self.parts {
            match part {
                ListPart::Fixed(elements) => list.extend_from_slice(elements),
                ListPart::Number { first, write, .. } => write(first + place, list),
            }
        }
    }

    /// Whether `is_in` is true of elements that some list has.
    pub(super) fn any_elements(&self, mut is_in: impl FnMut(&[E]) -> bool) -> bool {
        self.parts.iter().any(|part| match part {
            ListPart::Fixed(elements) => is_in(elements),
            ListPart::Number { elements, .. } => is_in(elements),
        })
    }
}
