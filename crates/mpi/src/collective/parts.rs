//! [`Parts`]: elements in one vector, with a part for each rank.
//!
//! The collectives of the fast interface take and give them in place of counts and displacements.

use std::fmt;
use std::ops::Index;

/// Elements in one vector, with a part for each rank: `parts[rank]` is a slice.
///
/// # Examples
/// ```
/// use selvedge::mpi::Parts;
///
/// // Ten elements for four ranks: the first two ranks have one more.
/// let rows = Parts::even((0..10).collect(), 4);
/// assert_eq!(rows[1], [3, 4, 5]);
/// assert_eq!(rows.counts().collect::<Vec<_>>(), [3, 3, 2, 2]);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Parts<T> {
    elements: Vec<T>,
    /// Where each part ends.
    ends: Vec<usize>,
}

impl<T> Parts<T> {
    /// The elements in this number of parts, of which the first ones have one element more if they
    /// cannot all have the same number.
    ///
    /// # Panics
    /// With 0 parts.
    pub fn even(elements: Vec<T>, parts: usize) -> Parts<T> {
        let (each, more) = (elements.len() / parts, elements.len() % parts);
        let counts = (0..parts).map(|part| each + usize::from(part < more));
        Parts::new(elements, counts).expect("the counts add up to the number of elements")
    }

    /// The elements in parts with these numbers of elements. `None` if the numbers do not add up to
    /// the number of elements.
    pub fn new(elements: Vec<T>, counts: impl IntoIterator<Item = usize>) -> Option<Parts<T>> {
        let mut end = 0_usize;
        let mut ends = Vec::new();
        for count in counts {
            end = end.checked_add(count)?;
            ends.push(end);
        }
        (end == elements.len()).then_some(Parts { elements, ends })
    }

    /// The number of parts.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no part.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The number of elements in each part.
    pub fn counts(&self) -> impl Iterator<Item = usize> {
        self.iter().map(<[T]>::len)
    }

    /// The place of each part's first element: the displacements of MPI.
    pub fn begins(&self) -> impl Iterator<Item = usize> {
        (0..self.ends.len()).map(|part| self.begin(part))
    }

    /// The parts, in the order of the ranks.
    pub fn iter(&self) -> impl Iterator<Item = &[T]> {
        (0..self.ends.len()).map(|part| &self[part])
    }

    /// All elements, part after part.
    pub fn into_vec(self) -> Vec<T> {
        self.elements
    }

    fn begin(&self, part: usize) -> usize {
        part.checked_sub(1).map_or(0, |before| self.ends[before])
    }
}

impl<T> Index<usize> for Parts<T> {
    type Output = [T];

    fn index(&self, part: usize) -> &[T] {
        &self.elements[self.begin(part)..self.ends[part]]
    }
}

impl<T> From<Vec<Vec<T>>> for Parts<T> {
    fn from(parts: Vec<Vec<T>>) -> Parts<T> {
        let mut elements = Vec::with_capacity(parts.iter().map(Vec::len).sum());
        let mut ends = Vec::with_capacity(parts.len());
        for part in parts {
            elements.extend(part);
            ends.push(elements.len());
        }
        Parts { elements, ends }
    }
}

impl<T: fmt::Debug> fmt::Debug for Parts<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
