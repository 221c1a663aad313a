//! Lists as items: many lists in one chunk, with their ends found only when a stage asks for them.

use super::item::{Chunk, Flow, GO_ON, Store};
use std::fmt;
use std::ops::Range;

/// Lists in a row: a piece of the stream that they were cut from, and where to cut it.
///
/// A stage that passes lists on, or searches all of them at once, never looks for the ends. This is
/// the reason why a pipeline over lines is as fast as one over blocks.
pub struct Lists<'a, E> {
    flat: &'a [E],
    ends: Ends<'a, E>,
}

enum Ends<'a, E> {
    /// The piece is one list.
    One,
    /// List `i` ends at `ends[i] - from`.
    At { ends: &'a [usize], from: usize },
    /// They are where `Cut` says.
    Cut(&'a dyn Cut<E>),
}

/// Where lists end that are cut out of a stream, each end to be found without what lies before.
///
/// A list has a content, and may have a separator after it that belongs to no list.
pub trait Cut<E>: Send + Sync {
    /// The end of the list that begins `stream`, and the place where the next list begins. `None`
    /// if the list does not end in `stream`.
    fn first(&self, stream: &[E]) -> Option<(usize, usize)>;

    /// The place where the last list of `stream` begins, which may be incomplete or empty.
    fn last(&self, stream: &[E]) -> usize;

    /// How many lists `stream` has. The last one may lack its separator.
    fn count(&self, stream: &[E]) -> u64;

    /// Whether there are no separators: each element belongs to a list.
    fn is_gapless(&self) -> bool;
}

impl<'a, E> Lists<'a, E> {
    /// The lists that `cut` finds in `flat`. The last one may lack its separator.
    pub fn cut(flat: &'a [E], cut: &'a dyn Cut<E>) -> Lists<'a, E> {
        Lists { flat, ends: Ends::Cut(cut) }
    }

    /// Lists that lie in `flat` one after the other: list `i` ends before `flat[ends[i]]`.
    ///
    /// # Panics
    /// If a stage takes the lists one by one, and the ends do not rise or lie outside of `flat`.
    pub fn with_ends(flat: &'a [E], ends: &'a [usize]) -> Lists<'a, E> {
        Lists { flat: &flat[..ends.last().copied().unwrap_or(0)], ends: Ends::At { ends, from: 0 } }
    }

    /// The one list `flat`.
    pub fn single(flat: &'a [E]) -> Lists<'a, E> {
        Lists { flat, ends: Ends::One }
    }

    /// The elements of all lists, if no separators lie among them.
    pub(super) fn gapless(self) -> Option<&'a [E]> {
        match self.ends {
            Ends::Cut(cut) if !cut.is_gapless() => None,
            _ => Some(self.flat),
        }
    }

    /// The elements of all lists, and the end of each, if the ends are known.
    pub(super) fn known(self) -> Option<KnownEnds<'a, E>> {
        match self.ends {
            Ends::At { ends, from } => Some(KnownEnds { flat: self.flat, ends, from }),
            _ => None,
        }
    }

    /// All the lists and separators without their ends, when ends are found at the places where a
    /// search stops. Otherwise `None`.
    pub(super) fn searchable(self) -> Option<(&'a [E], &'a dyn Cut<E>)> {
        match self.ends {
            Ends::Cut(cut) => Some((self.flat, cut)),
            _ => None,
        }
    }
}

/// Lists with ends that are known: list `i` ends at `ends[i] - from`.
pub(super) struct KnownEnds<'a, E> {
    pub(super) flat: &'a [E],
    ends: &'a [usize],
    from: usize,
}

impl<'a, E> KnownEnds<'a, E> {
    /// The list, not before list `first`, that holds the element `at`.
    pub(super) fn holder(&self, first: usize, at: usize) -> usize {
        first + self.ends[first..].partition_point(|end| end - self.from <= at)
    }

    /// Where list `index` ends.
    pub(super) fn end(&self, index: usize) -> usize {
        self.ends[index] - self.from
    }

    /// The lists from `first` to before `last`.
    pub(super) fn lists(&self, first: usize, last: usize) -> Lists<'a, E> {
        let begin = if first == 0 { 0 } else { self.end(first - 1) };
        let end = if last == first { begin } else { self.end(last - 1) };
        let ends = Ends::At { ends: &self.ends[first..last], from: self.from + begin };
        Lists { flat: &self.flat[begin..end], ends }
    }

    pub(super) fn count(&self) -> usize {
        self.ends.len()
    }
}

impl<E> Clone for Lists<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Lists<'_, E> {}

impl<E> Clone for Ends<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Ends<'_, E> {}

impl<E: Clone + fmt::Debug + 'static> fmt::Debug for Lists<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_list();
        let _never_breaks = self.each(|item| {
            list.entry(&item);
            GO_ON
        });
        list.finish()
    }
}

impl<'a, E: Clone + 'static> Chunk<'a, [E]> for Lists<'a, E> {
    fn one(item: &'a [E]) -> Self {
        Lists::single(item)
    }

    fn is_empty(self) -> bool {
        match self.ends {
            Ends::One => false,
            Ends::At { ends, .. } => ends.is_empty(),
            Ends::Cut(_) => self.flat.is_empty(),
        }
    }

    fn count(self) -> u64 {
        match self.ends {
            Ends::One => 1,
            Ends::At { ends, .. } => ends.len() as u64,
            Ends::Cut(cut) => cut.count(self.flat),
        }
    }

    #[inline]
    fn each(self, mut f: impl FnMut(&'a [E]) -> Flow) -> Flow {
        match self.ends {
            Ends::One => f(self.flat),
            Ends::At { ends, from } => {
                let mut begin = 0;
                for end in ends {
                    f(&self.flat[begin..end - from])?;
                    begin = end - from;
                }
                GO_ON
            }
            Ends::Cut(cut) => {
                let mut rest = self.flat;
                while !rest.is_empty() {
                    let (end, next) = cut.first(rest).unwrap_or((rest.len(), rest.len()));
                    f(&rest[..end])?;
                    rest = &rest[next..];
                }
                GO_ON
            }
        }
    }
}

/// Lists that a stage keeps, in one allocation for their elements and one for their ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListStore<E> {
    flat: Vec<E>,
    ends: Vec<usize>,
}

impl<E> Default for ListStore<E> {
    fn default() -> Self {
        ListStore { flat: Vec::new(), ends: Vec::new() }
    }
}

impl<E> ListStore<E> {
    fn begin(&self, index: usize) -> usize {
        if index == 0 { 0 } else { self.ends[index - 1] }
    }

    /// The lists one by one.
    ///
    /// # Examples
    /// ```
    /// use selvedge::coroutine::pipeline::{from_chunks, group_by, line};
    ///
    /// let lines = (from_chunks(["warp\nwe", "ft"]) >> group_by(line())).collect();
    /// let lines: Vec<&[u8]> = lines.iter().collect();
    /// assert_eq!(lines, [b"warp", b"weft"]);
    /// ```
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[E]> {
        (0..self.ends.len()).map(|index| &self.flat[self.begin(index)..self.ends[index]])
    }

    /// Copies the list of all `parts`, in their order, to the end.
    #[inline]
    pub(super) fn keep_parts<const N: usize>(&mut self, parts: [&[E]; N])
    where
        E: Clone,
    {
        self.flat.reserve(parts.iter().map(|part| part.len()).sum());
        for part in parts {
            self.flat.extend_from_slice(part);
        }
        self.ends.push(self.flat.len());
    }
}

impl<E: Clone + 'static> Store<[E]> for ListStore<E> {
    fn keep(&mut self, item: &[E]) {
        self.flat.extend_from_slice(item);
        self.ends.push(self.flat.len());
    }

    fn keep_all(&mut self, chunk: Lists<'_, E>) {
        let _never_breaks = chunk.each(|list| {
            self.keep(list);
            GO_ON
        });
    }

    fn count(&self) -> usize {
        self.ends.len()
    }

    fn at(&self, index: usize) -> &[E] {
        &self.flat[self.begin(index)..self.ends[index]]
    }

    fn chunk(&self, range: Range<usize>) -> Lists<'_, E> {
        let ends = &self.ends[range.clone()];
        let from = self.begin(range.start);
        let end = ends.last().copied().unwrap_or(from);
        Lists { flat: &self.flat[from..end], ends: Ends::At { ends, from } }
    }

    fn clear(&mut self) {
        self.flat.clear();
        self.ends.clear();
    }

    fn forget(&mut self, count: usize) {
        if count == self.ends.len() {
            return self.clear();
        }
        let gone = self.begin(count);
        self.flat.drain(..gone);
        self.ends.drain(..count);
        for end in &mut self.ends {
            *end -= gone;
        }
    }
}
