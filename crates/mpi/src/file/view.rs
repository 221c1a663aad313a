//! [`FileView`]: which elements of a file a rank sees; and [`ViewTiles`], which says in which bytes
//! of the file they lie.

use crate::layout::Layout;
use std::fmt;

/// Which elements of a file a rank sees, as if it were a file of these alone.
///
/// The file is divided into tiles of `stride` elements, from a number of bytes on that are left
/// out, such as a header. In each tile a [`Layout`] selects elements.
/// [`SharedFile::view`](crate::SharedFile::view) sets the view of each rank, and the places in all
/// later calls count the elements of the view.
///
/// # Examples
/// ```
/// use selvedge::mpi::{FileView, Layout};
///
/// // Of each three elements the second one, after a header of 16 bytes.
/// let view = FileView::new(Layout::contiguous(1).shifted(1), 3).after(16);
/// // The two middle columns of a matrix with four columns.
/// let columns = FileView::new(Layout::contiguous(2).shifted(1), 4);
/// # drop((view, columns));
/// ```
#[derive(Clone, PartialEq, Eq)]
#[doc(alias = "MPI_File_set_view")]
pub struct FileView {
    after: u64,
    layout: Layout,
    stride: usize,
}

impl FileView {
    /// A view in which the layout selects elements of each `stride` elements of the file.
    ///
    /// # Panics
    /// If the layout selects nothing, ends after `stride`, or has an element twice or before an
    /// earlier one.
    ///
    /// # Complexity
    /// It goes through the blocks of the layout.
    pub fn new(layout: Layout, stride: usize) -> FileView {
        assert!(!layout.is_empty(), "the view selects no element");
        let end = layout.end();
        assert!(end <= stride, "the layout ends at {end}, and the next tile begins at {stride}");
        let mut place = 0;
        layout.for_each_block(|begin, count| {
            assert!(place <= begin, "the layout of a view goes from {place} back to {begin}");
            place = begin + count;
        });
        FileView { after: 0, layout, stride }
    }

    /// A view of every element.
    pub fn whole() -> FileView {
        FileView::new(Layout::contiguous(1), 1)
    }

    /// The same view from this number of bytes on: the displacement of MPI.
    #[must_use]
    pub fn after(self, bytes: u64) -> FileView {
        FileView { after: bytes, ..self }
    }
}

impl fmt::Debug for FileView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FileView { after, layout, stride } = self;
        write!(f, "FileView({layout:?} of each {stride}, after {after} bytes)")
    }
}

/// Bytes of a file, and their place in the memory of a call. The pieces of a call go up in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FilePiece {
    pub(super) offset: u64,
    pub(super) length: usize,
    pub(super) place: usize,
}

impl FilePiece {
    pub(super) fn end(&self) -> u64 {
        self.offset + self.length as u64
    }
}

/// A view of elements of one size, ready to be looked up.
#[derive(Debug)]
pub(super) struct ViewTiles {
    after: u64,
    /// The size of an element in bytes.
    size: usize,
    /// The number of elements that a tile selects.
    len: usize,
    stride: usize,
    /// The blocks of a tile: how many elements lie before it, where it begins, and its length.
    blocks: Box<[(usize, usize, usize)]>,
}

impl ViewTiles {
    pub(super) fn new(view: &FileView, size: usize) -> ViewTiles {
        let (mut len, mut blocks) = (0, Vec::new());
        view.layout.for_each_block(|begin, count| {
            blocks.push((len, begin, count));
            len += count;
        });
        ViewTiles { after: view.after, size, len, stride: view.stride, blocks: blocks.into() }
    }

    /// The bytes of this number of elements from `first` on, one piece for elements that lie
    /// together. `None` if they lie beyond the largest file.
    pub(super) fn pieces(&self, first: u64, count: usize) -> Option<Vec<FilePiece>> {
        let mut pieces: Vec<FilePiece> = Vec::new();
        let bytes = count.checked_mul(self.size)?;
        let add = |pieces: &mut Vec<FilePiece>, element: u64, length: usize| {
            let offset = element.checked_mul(self.size as u64)?.checked_add(self.after)?;
            if offset.checked_add(length as u64)? > i64::MAX as u64 {
                return None;
            }
            match pieces.last_mut() {
                Some(last) if last.end() == offset => last.length += length,
                last => {
                    let place = last.map_or(0, |last| last.place + last.length);
                    pieces.push(FilePiece { offset, length, place });
                }
            }
            Some(())
        };
        if count == 0 {
            return Some(pieces);
        }
        if self.len == self.stride {
            // No gap: also a view of single elements is one piece.
            add(&mut pieces, first, bytes)?;
            return Some(pieces);
        }
        let (mut tile, within) = (first / self.len as u64, (first % self.len as u64) as usize);
        let mut block = self.blocks.partition_point(|(before, ..)| *before <= within) - 1;
        let mut skipped = within - self.blocks[block].0;
        let mut left = count;
        while left > 0 {
            let (_, begin, length) = self.blocks[block];
            let now = left.min(length - skipped);
            let element = tile.checked_mul(self.stride as u64)?.checked_add((begin + skipped) as u64)?;
            add(&mut pieces, element, now * self.size)?;
            left -= now;
            skipped = 0;
            block += 1;
            if block == self.blocks.len() {
                (block, tile) = (0, tile + 1);
            }
        }
        Some(pieces)
    }
}

/// The parts of pieces that lie between two places of a file. There are none if `end` is before
/// `begin`: a file that ends before a window.
pub(super) fn pieces_within(pieces: &[FilePiece], begin: u64, end: u64) -> impl Iterator<Item = FilePiece> {
    let first = pieces.partition_point(|piece| piece.end() <= begin);
    pieces[first..].iter().take_while(move |piece| piece.offset.max(begin) < end).map(move |piece| {
        let skipped = begin.saturating_sub(piece.offset);
        let offset = piece.offset + skipped;
        let length = (piece.end().min(end) - offset) as usize;
        FilePiece { offset, length, place: piece.place + skipped as usize }
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The places of the bytes that a view shows, one by one.
    fn shown(view: &FileView, size: usize, elements: usize) -> Vec<u64> {
        let mut selected = Vec::new();
        view.layout.for_each_block(|begin, count| selected.extend(begin..begin + count));
        let element = |number: usize| {
            let (tile, within) = (number / selected.len(), number % selected.len());
            view.after + ((tile * view.stride + selected[within]) * size) as u64
        };
        (0..elements)
            .flat_map(|number| (0..size as u64).map(move |byte| (number, byte)))
            .map(|(number, byte)| element(number) + byte)
            .collect()
    }

    fn views() -> impl Strategy<Value = FileView> {
        let blocks = prop::collection::vec((0..3_usize, 1..4_usize), 1..4);
        (blocks, 0..3_usize, 0..20_u64).prop_map(|(blocks, behind, after)| {
            let mut place = 0;
            let blocks = blocks.into_iter().map(|(gap, count)| {
                place += gap + count;
                (place - count, count)
            });
            let layout = Layout::indexed(blocks.collect::<Vec<_>>());
            let stride = layout.end() + behind;
            FileView::new(layout, stride).after(after)
        })
    }

    proptest! {
        #[test]
        fn pieces_are_the_bytes_of_the_view(
            view in views(), size in 1..5_usize, first in 0..30_usize, count in 0..30_usize,
            begin in 0..400_u64, end in 0..800_u64,
        ) {
            let bytes = shown(&view, size, first + count).split_off(first * size);
            let pieces = ViewTiles::new(&view, size).pieces(first as u64, count).unwrap();
            let listed: Vec<u64> = pieces.iter().flat_map(|piece| piece.offset..piece.end()).collect();
            prop_assert_eq!(&listed, &bytes);
            for pair in pieces.windows(2) {
                prop_assert!(pair[0].end() < pair[1].offset, "{:?}", pieces);
                prop_assert_eq!(pair[0].place + pair[0].length, pair[1].place);
            }
            let within: Vec<(u64, usize)> = pieces_within(&pieces, begin, end)
                .flat_map(|piece| (0..piece.length).map(move |at| (piece.offset + at as u64, piece.place + at)))
                .collect();
            let expected: Vec<(u64, usize)> = bytes.iter().enumerate()
                .filter(|(_, byte)| (begin..end).contains(*byte))
                .map(|(place, byte)| (*byte, place))
                .collect();
            prop_assert_eq!(within, expected);
        }
    }

    #[test]
    fn what_lies_beyond_the_largest_file_has_no_pieces() {
        let tiles = ViewTiles::new(&FileView::new(Layout::contiguous(1), 1 << 40), 8);
        assert_eq!(tiles.pieces(1 << 30, 1), None);
        assert_eq!(ViewTiles::new(&FileView::whole(), 1).pieces(i64::MAX as u64, 1), None);
    }
}
