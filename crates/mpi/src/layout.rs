//! [`Layout`]: which elements of a slice a message has, when they do not lie one after another.
//!
//! `laid_out.rs` sends and receives with layouts, and [`Parts`](crate::Parts) has one for each
//! rank. A layout is a description without elements: it may be used for any slice that is long
//! enough. Packing goes through it once, block by block.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Which elements of a slice a message has, and in which order: a column of a matrix, a block of a
/// field, the same members of each record.
///
/// A layout is made of others: blocks ([`contiguous`](Layout::contiguous)), blocks at equal
/// distances ([`vector`](Layout::vector)) or at any places ([`indexed`](Layout::indexed)), a block
/// of a field of several dimensions ([`subarray`](Layout::subarray)), and any layout
/// [`repeated`](Layout::repeated), [`shifted`](Layout::shifted) or [`together`](Layout::together)
/// with others. All numbers count elements. MPI's derived datatypes are the same, but have the
/// type of the elements too; nothing has to be committed or freed.
///
/// The sender and the receiver may have different layouts: the elements are in the message in the
/// order of the sender's layout, and the receiver puts them to the places of its own, in their
/// order. Either may have none at all: a layout of the sender and a vector at the receiver.
///
/// # Examples
/// ```
/// use selvedge::mpi::Layout;
///
/// // A field of three rows and four columns.
/// let field = [
///     0, 1, 2, 3, //
///     4, 5, 6, 7, //
///     8, 9, 10, 11,
/// ];
/// let last_column = Layout::vector(3, 1, 4).shifted(3);
/// assert_eq!(last_column.pack(&field), [3, 7, 11]);
/// let inner = Layout::subarray([3, 4], [1..3, 1..3]);
/// assert_eq!(inner.pack(&field), [5, 6, 9, 10]);
///
/// let mut copy = [0; 12];
/// last_column.unpack(&[3, 7, 11], &mut copy);
/// assert_eq!(copy, [0, 0, 0, 3, 0, 0, 0, 7, 0, 0, 0, 11]);
/// ```
#[derive(Clone, PartialEq, Eq)]
#[doc(alias = "MPI_Datatype")]
#[doc(alias = "MPI_Type_commit")]
pub struct Layout {
    shape: LayoutShape,
    len: usize,
    /// The place after the last element, and at least that after each.
    end: usize,
}

#[derive(Clone, PartialEq, Eq)]
enum LayoutShape {
    /// This number of elements, one after another.
    Block(usize),
    /// A shape several times, at equal distances.
    Repeated { count: usize, stride: usize, of: Arc<LayoutShape> },
    /// Shapes with the places at which they begin.
    Together(Arc<[(usize, LayoutShape)]>),
}

impl Layout {
    /// This number of elements, from the front of the slice.
    #[doc(alias = "MPI_Type_contiguous")]
    pub fn contiguous(count: usize) -> Layout {
        Layout { shape: LayoutShape::Block(count), len: count, end: count }
    }

    /// Blocks of `block` elements. Each begins `stride` elements after the beginning of the one
    /// before: a column of a matrix with `stride` columns is `vector(rows, 1, stride)`.
    ///
    /// # Panics
    /// If the last block would end beyond `usize::MAX`.
    #[doc(alias = "MPI_Type_vector")]
    #[doc(alias = "MPI_Type_create_hvector")]
    pub fn vector(count: usize, block: usize, stride: usize) -> Layout {
        Layout::contiguous(block).repeated(count, stride)
    }

    /// Blocks at any places: each has the place at which it begins, and its number of elements.
    /// They are in the message in the order of the list.
    ///
    /// # Panics
    /// If a block would end beyond `usize::MAX`.
    ///
    /// # Examples
    /// ```
    /// use selvedge::mpi::Layout;
    ///
    /// // The lower triangle of a matrix of three rows.
    /// let triangle = Layout::indexed((0..3).map(|row| (3 * row, row + 1)));
    /// assert_eq!(triangle.pack(&[0, 1, 2, 3, 4, 5, 6, 7, 8]), [0, 3, 4, 6, 7, 8]);
    /// ```
    #[doc(alias = "MPI_Type_indexed")]
    #[doc(alias = "MPI_Type_create_indexed_block")]
    pub fn indexed(blocks: impl IntoIterator<Item = (usize, usize)>) -> Layout {
        Layout::together(blocks.into_iter().map(|(begin, count)| Layout::contiguous(count).shifted(begin)))
    }

    /// A block of a field of `N` dimensions with these sizes, of which the last runs fastest: in
    /// each dimension the places of its range.
    ///
    /// # Panics
    /// If a range is not within its dimension, or the field has more than `usize::MAX` elements.
    ///
    /// # Examples
    /// ```
    /// use selvedge::mpi::Layout;
    ///
    /// // The front face of a cube of 3 by 3 by 3.
    /// let face = Layout::subarray([3, 3, 3], [0..3, 0..3, 0..1]);
    /// assert_eq!(face, Layout::vector(9, 1, 3));
    /// ```
    #[doc(alias = "MPI_Type_create_subarray")]
    pub fn subarray<const N: usize>(sizes: [usize; N], ranges: [Range<usize>; N]) -> Layout {
        let mut layout = Layout::contiguous(1);
        // The distance of two neighbours in this dimension.
        let mut stride = 1;
        for (size, range) in sizes.into_iter().zip(ranges).rev() {
            assert!(
                range.start <= range.end && range.end <= size,
                "the range {range:?} is not within a dimension of {size}"
            );
            let begin = times(range.start, stride);
            layout = layout.repeated(range.len(), stride).shifted(begin);
            stride = times(stride, size);
        }
        layout
    }

    /// This layout several times. Each time it begins `stride` elements after the time before: the
    /// same members of each record.
    ///
    /// # Panics
    /// If the last one would end beyond `usize::MAX`.
    ///
    /// # Examples
    /// ```
    /// use selvedge::mpi::Layout;
    ///
    /// // Records of four numbers, of which the first and the last two are sent.
    /// let members = Layout::indexed([(0, 1), (2, 2)]);
    /// let records = [0.0, 0.1, 0.2, 0.3, 1.0, 1.1, 1.2, 1.3];
    /// assert_eq!(members.repeated(2, 4).pack(&records), [0.0, 0.2, 0.3, 1.0, 1.2, 1.3]);
    /// ```
    #[doc(alias = "MPI_Type_create_resized")]
    pub fn repeated(&self, count: usize, stride: usize) -> Layout {
        if count == 0 || self.len == 0 {
            return Layout::contiguous(0);
        }
        let (len, end) = (times(self.len, count), plus(times(count - 1, stride), self.end));
        let shape = match &self.shape {
            shape if count == 1 => shape.clone(),
            // No gap is between the blocks.
            LayoutShape::Block(block) if *block == stride => LayoutShape::Block(len),
            // The next time goes on where this one ends.
            LayoutShape::Repeated { count: inner, stride: same, of }
                if same.checked_mul(*inner) == Some(stride) =>
            {
                LayoutShape::Repeated { count: inner * count, stride: *same, of: of.clone() }
            }
            shape => LayoutShape::Repeated { count, stride, of: Arc::new(shape.clone()) },
        };
        Layout { shape, len, end }
    }

    /// This layout, with each place so far behind.
    ///
    /// # Panics
    /// If it would end beyond `usize::MAX`.
    pub fn shifted(&self, by: usize) -> Layout {
        match by {
            0 => self.clone(),
            _ => Layout::of_places([(by, self.clone())]),
        }
    }

    /// The elements of each of these layouts, one layout after the other: the blocks of a structure
    /// with gaps.
    ///
    /// # Panics
    /// If they have more than `usize::MAX` elements.
    #[doc(alias = "MPI_Type_create_struct")]
    pub fn together(layouts: impl IntoIterator<Item = Layout>) -> Layout {
        Layout::of_places(layouts.into_iter().map(|layout| (0, layout)))
    }

    /// Layouts with the distances by which they are shifted.
    fn of_places(layouts: impl IntoIterator<Item = (usize, Layout)>) -> Layout {
        let (mut len, mut end) = (0, 0);
        let mut shapes = Vec::new();
        for (by, layout) in layouts {
            if layout.len == 0 {
                continue;
            }
            len = plus(len, layout.len);
            end = end.max(plus(by, layout.end));
            match layout.shape {
                LayoutShape::Together(inner) => {
                    shapes.extend(inner.iter().map(|(at, shape)| (by + at, shape.clone())));
                }
                shape => shapes.push((by, shape)),
            }
        }
        let shape = match shapes.as_mut_slice() {
            [] => LayoutShape::Block(0),
            [(0, shape)] => shape.clone(),
            _ => LayoutShape::Together(shapes.into()),
        };
        Layout { shape, len, end }
    }

    /// The number of elements that it selects.
    #[doc(alias = "MPI_Type_size")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it selects none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How long a slice has to be: the place after the last element that it selects.
    #[doc(alias = "MPI_Type_get_extent")]
    pub fn end(&self) -> usize {
        self.end
    }

    /// Copies the elements that it selects, in one pass.
    ///
    /// # Panics
    /// If it reaches beyond the slice.
    #[doc(alias = "MPI_Pack")]
    pub fn pack<T: Copy>(&self, elements: &[T]) -> Vec<T> {
        let mut packed = Vec::new();
        self.append_packed(elements, &mut packed);
        packed
    }

    /// Replaces the content of the vector by the elements that it selects. It allocates nothing if
    /// there is room.
    ///
    /// # Panics
    /// If it reaches beyond the slice.
    pub fn pack_into<T: Copy>(&self, elements: &[T], packed: &mut Vec<T>) {
        packed.clear();
        self.append_packed(elements, packed);
    }

    pub(crate) fn append_packed<T: Copy>(&self, elements: &[T], packed: &mut Vec<T>) {
        self.check(elements.len());
        packed.reserve(self.len);
        self.shape.walk(0, &mut |begin, count| packed.extend_from_slice(&elements[begin..begin + count]));
    }

    /// Puts elements to the places that it selects, from its first place on. If there are fewer
    /// elements than places, the other places stay as they are.
    ///
    /// # Panics
    /// If it reaches beyond the slice, or there are more elements than places.
    #[doc(alias = "MPI_Unpack")]
    pub fn unpack<T: Copy>(&self, packed: &[T], elements: &mut [T]) {
        self.check(elements.len());
        assert!(packed.len() <= self.len, "{} elements are put to {} places", packed.len(), self.len);
        self.place(1, packed, elements);
    }

    /// As [`unpack`](Self::unpack), where each element is of `size` units.
    pub(crate) fn place<U: Copy>(&self, size: usize, mut packed: &[U], units: &mut [U]) {
        self.shape.walk(0, &mut |begin, count| {
            let (now, later) = packed.split_at(packed.len().min(count * size));
            units[begin * size..][..now.len()].copy_from_slice(now);
            packed = later;
        });
    }

    /// Calls a function with the beginning and the length of each block, in their order.
    pub(crate) fn for_each_block(&self, mut each: impl FnMut(usize, usize)) {
        self.shape.walk(0, &mut each);
    }

    fn check(&self, length: usize) {
        assert!(self.end <= length, "the layout ends at {} and the slice at {length}", self.end);
    }
}

impl LayoutShape {
    /// Calls a function with the beginning and the length of each block, in their order.
    fn walk(&self, begin: usize, each: &mut impl FnMut(usize, usize)) {
        match self {
            LayoutShape::Block(0) => {}
            LayoutShape::Block(count) => each(begin, *count),
            LayoutShape::Repeated { count, stride, of } => {
                (0..*count).for_each(|time| of.walk(begin + time * stride, each));
            }
            LayoutShape::Together(shapes) => {
                shapes.iter().for_each(|(at, shape)| shape.walk(begin + at, each));
            }
        }
    }
}

fn times(a: usize, b: usize) -> usize {
    a.checked_mul(b).expect("a layout has at most usize::MAX places")
}

fn plus(a: usize, b: usize) -> usize {
    a.checked_add(b).expect("a layout has at most usize::MAX places")
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Layout({:?})", self.shape)
    }
}

impl fmt::Debug for LayoutShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LayoutShape::Block(count) => write!(f, "{count}"),
            LayoutShape::Repeated { count, stride, of } => write!(f, "{count} times {of:?}, by {stride}"),
            LayoutShape::Together(shapes) => {
                f.debug_map().entries(shapes.iter().map(|(at, shape)| (at, shape))).finish()
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A layout, and the places that it selects, one by one.
    fn described() -> impl Strategy<Value = (Layout, Vec<usize>)> {
        let block = (0..4_usize).prop_map(|count| (Layout::contiguous(count), Vec::from_iter(0..count)));
        block.prop_recursive(4, 60, 4, |inner| {
            prop_oneof![
                (inner.clone(), 0..4_usize, 0..9_usize).prop_map(|((layout, places), count, stride)| {
                    let each = |time: usize| places.iter().map(move |place| time * stride + place);
                    (layout.repeated(count, stride), (0..count).flat_map(each).collect())
                }),
                (inner.clone(), 0..9_usize).prop_map(|((layout, places), by)| {
                    (layout.shifted(by), places.iter().map(|place| place + by).collect())
                }),
                prop::collection::vec(inner, 0..4).prop_map(|all| {
                    let (layouts, places): (Vec<_>, Vec<Vec<usize>>) = all.into_iter().unzip();
                    (Layout::together(layouts), places.concat())
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_selects_the_places_of_its_description((layout, places) in described(), fewer in 0..5_usize) {
            let end = places.iter().map(|place| place + 1).max().unwrap_or(0);
            prop_assert_eq!((layout.len(), layout.end()), (places.len(), end));
            let elements: Vec<usize> = (0..end).collect();
            prop_assert_eq!(&layout.pack(&elements), &places);

            // Twice the number of a place, as far as the elements go.
            let some = &places[..places.len().saturating_sub(fewer)];
            let packed: Vec<usize> = some.iter().map(|place| 2 * place).collect();
            let mut unpacked = vec![usize::MAX; end];
            layout.unpack(&packed, &mut unpacked);
            let expected: Vec<usize> = (0..end)
                .map(|place| if some.contains(&place) { 2 * place } else { usize::MAX })
                .collect();
            prop_assert_eq!(&unpacked, &expected);
        }
    }

    #[test]
    fn rows_without_gaps_are_one_block() {
        assert_eq!(Layout::subarray([4, 5], [1..3, 0..5]), Layout::contiguous(10).shifted(5));
        assert_eq!(Layout::vector(3, 2, 2), Layout::contiguous(6));
        assert_eq!(format!("{:?}", Layout::vector(3, 1, 4)), "Layout(3 times 1, by 4)");
    }

    #[test]
    #[should_panic = "the layout ends at 9 and the slice at 8"]
    fn it_does_not_reach_beyond_the_slice() {
        Layout::vector(3, 1, 4).pack(&[0_u8; 8]);
    }

    #[test]
    #[should_panic = "the range 1..4 is not within a dimension of 3"]
    fn a_range_is_within_its_dimension() {
        let _ = Layout::subarray([2, 3], [0..2, 1..4]);
    }

    #[test]
    #[should_panic = "at most usize::MAX places"]
    fn a_layout_is_no_longer_than_memory() {
        let _ = Layout::vector(1 << 33, 1, 1 << 33);
    }
}
