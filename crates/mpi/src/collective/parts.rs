//! [`Parts`]: elements in one vector, with a part for each rank.
//!
//! The collectives of the fast interface take and give them in place of counts and displacements.

use crate::layout::Layout;
use std::fmt;
use std::ops::{Index, IndexMut};

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
#[derive(PartialEq, Eq)]
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

    /// Parts of the elements of a slice, each at the places of one layout, in one pass. With
    /// [`alltoall_parts`](crate::Communicator::alltoall_parts) it does what `MPI_Alltoallw` does.
    ///
    /// # Panics
    /// If a layout reaches beyond the slice.
    ///
    /// # Examples
    /// ```
    /// use selvedge::mpi::{self, Layout, Parts};
    ///
    /// # selvedge::round_robin(async {
    /// // A matrix of 4 by 4, of which each of two ranks has two rows, is transposed.
    /// mpi::run(2, |world| async move {
    ///     let first = 8 * world.rank();
    ///     let rows: Vec<usize> = (first..first + 8).collect();
    ///     // Each rank gets two columns, one after the other.
    ///     let column = |column| Layout::vector(2, 1, 4).shifted(column);
    ///     let columns = [0, 2].map(|begin| Layout::together([column(begin), column(begin + 1)]));
    ///     let came = world.alltoall_parts(Parts::pack(&rows, &columns)).await?;
    ///     // The elements of each rank are the next two of both rows.
    ///     let places = [0, 2].map(|begin| Layout::vector(2, 2, 4).shifted(begin));
    ///     let mut transposed = [0; 8];
    ///     came.unpack(&places, &mut transposed);
    ///     let expected = [[0, 4, 8, 12, 1, 5, 9, 13], [2, 6, 10, 14, 3, 7, 11, 15]];
    ///     assert_eq!(transposed, expected[world.rank()]);
    ///     Ok::<_, mpi::Error>(())
    /// })
    /// .await
    /// # })?.unwrap();
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    #[doc(alias = "MPI_Alltoallw")]
    pub fn pack(elements: &[T], layouts: &[Layout]) -> Parts<T>
    where
        T: Copy,
    {
        let mut parts = Parts::default();
        for layout in layouts {
            layout.append_packed(elements, &mut parts.elements);
            parts.ends.push(parts.elements.len());
        }
        parts
    }

    /// Puts the elements of each part to the places of its layout.
    ///
    /// # Panics
    /// If there is not one layout for each part, a part has more elements than its layout places,
    /// or a layout reaches beyond the slice.
    pub fn unpack(&self, layouts: &[Layout], elements: &mut [T])
    where
        T: Copy,
    {
        assert_eq!(self.len(), layouts.len(), "there is one layout for each part");
        for (part, layout) in self.iter().zip(layouts) {
            layout.unpack(part, elements);
        }
    }

    /// Adds a part after the others.
    pub(crate) fn push(&mut self, part: &[T])
    where
        T: Clone,
    {
        self.elements.extend_from_slice(part);
        self.ends.push(self.elements.len());
    }

    /// Takes all parts away, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.elements.clear();
        self.ends.clear();
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

/// The number of elements of a part stays.
impl<T> IndexMut<usize> for Parts<T> {
    fn index_mut(&mut self, part: usize) -> &mut [T] {
        let begin = self.begin(part);
        &mut self.elements[begin..self.ends[part]]
    }
}

/// No part.
impl<T> Default for Parts<T> {
    fn default() -> Parts<T> {
        Parts { elements: Vec::new(), ends: Vec::new() }
    }
}

impl<T: Clone> Clone for Parts<T> {
    fn clone(&self) -> Parts<T> {
        Parts { elements: self.elements.clone(), ends: self.ends.clone() }
    }

    /// It allocates nothing if there is room.
    fn clone_from(&mut self, other: &Parts<T>) {
        self.elements.clone_from(&other.elements);
        self.ends.clone_from(&other.ends);
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
