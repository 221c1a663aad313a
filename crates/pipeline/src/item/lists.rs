//! `Lists`, the chunk of items that are lists, and `ListStore`, its store. `group_by` makes
//! `Lists`, and the stages over lists (`any.rs`, `select_numbered.rs`, `plain.rs`, `join.rs`) take
//! them.
//!
//! A `Lists` is a block and a way to find the ends: a `Cut` that searches for them, known ends, or
//! two chunks that `zip_lists` has joined. The ends are found only when a stage asks for a list. A
//! stage that can work on the whole block uses `gapless` or `searchable`, and must take the slow
//! way if these return `None`.

use crate::item::{Chunk, Flow, GO_ON, Store};
use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;

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
    /// Each list has one of another chunk before it. The piece has what comes behind these.
    Zip(&'a ZippedLists<'a, E>),
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
    pub(crate) fn gapless(self) -> Option<&'a [E]>
    where
        E: Clone + 'static,
    {
        match self.ends {
            Ends::Cut(cut) if !cut.is_gapless() => None,
            Ends::Zip(zipped) => Some(&zipped.whole().flat),
            _ => Some(self.flat),
        }
    }

    /// The elements of all lists, and the end of each, if the ends are known.
    pub(crate) fn known(self) -> Option<KnownEnds<'a, E>>
    where
        E: Clone + 'static,
    {
        match self.ends {
            Ends::At { ends, from } => Some(KnownEnds { flat: self.flat, ends, from }),
            Ends::Zip(zipped) => Some(zipped.known()),
            _ => None,
        }
    }

    /// The lists of two chunks, if they are not joined yet.
    pub(crate) fn zipped(self) -> Option<&'a ZippedLists<'a, E>> {
        match self.ends {
            Ends::Zip(zipped) => Some(zipped),
            _ => None,
        }
    }

    /// All the lists and separators without their ends, when ends are found at the places where a
    /// search stops. Otherwise `None`.
    pub(crate) fn searchable(self) -> Option<(&'a [E], &'a dyn Cut<E>)> {
        match self.ends {
            Ends::Cut(cut) => Some((self.flat, cut)),
            _ => None,
        }
    }
}

/// Lists with ends that are known: list `i` ends at `ends[i] - from`.
pub(crate) struct KnownEnds<'a, E> {
    pub(crate) flat: &'a [E],
    ends: &'a [usize],
    from: usize,
}

impl<'a, E> KnownEnds<'a, E> {
    /// The list, not before list `first`, that holds the element `at`.
    pub(crate) fn holder(&self, first: usize, at: usize) -> usize {
        first + self.ends[first..].partition_point(|end| end - self.from <= at)
    }

    /// Where list `index` ends.
    pub(crate) fn end(&self, index: usize) -> usize {
        self.ends[index] - self.from
    }

    /// The lists from `first` to before `last`.
    pub(crate) fn lists(&self, first: usize, last: usize) -> Lists<'a, E> {
        let KnownEnds { flat, ends, from } = self.known_lists(first, last);
        Lists { flat, ends: Ends::At { ends, from } }
    }

    /// The same, as lists with ends that are known.
    fn known_lists(&self, first: usize, last: usize) -> KnownEnds<'a, E> {
        let begin = if first == 0 { 0 } else { self.end(first - 1) };
        let end = if last == first { begin } else { self.end(last - 1) };
        KnownEnds { flat: &self.flat[begin..end], ends: &self.ends[first..last], from: self.from + begin }
    }

    pub(crate) fn count(&self) -> usize {
        self.ends.len()
    }
}

/// The lists of two chunks: each list of the one has the list of the other at its place before it.
///
/// They are written down when a stage asks for the lists. A search through the right ones needs no
/// left one, unless what it looks for may begin in a left one.
pub(crate) struct ZippedLists<'a, E> {
    left: KnownEnds<'a, E>,
    right: &'a [E],
    cut: &'a dyn Cut<E>,
    whole: OnceLock<ListStore<E>>,
}

impl<'a, E> ZippedLists<'a, E> {
    /// The two chunks, of which the left one has known ends and the right one has none, and which
    /// have the same number of lists.
    pub(crate) fn new(left: Lists<'a, E>, right: Lists<'a, E>) -> Option<Self> {
        let (Ends::At { ends, from }, Ends::Cut(cut)) = (left.ends, right.ends) else { return None };
        let left = KnownEnds { flat: left.flat, ends, from };
        Some(ZippedLists { left, right: right.flat, cut, whole: OnceLock::new() })
    }

    pub(crate) fn lists(&'a self) -> Lists<'a, E> {
        Lists { flat: self.right, ends: Ends::Zip(self) }
    }

    /// The right lists and separators, to search through them.
    pub(crate) fn right(&self) -> (&'a [E], &'a dyn Cut<E>) {
        (self.right, self.cut)
    }

    /// How many lists there are.
    fn count(&self) -> u64 {
        self.left.count() as u64
    }

    /// The elements of the left lists.
    pub(crate) fn left(&self) -> &'a [E] {
        self.left.flat
    }

    /// The lists with the right ones that lie in `range`. List `first` begins there. Returns also
    /// the index after the last of them.
    pub(crate) fn part(&self, first: usize, range: Range<usize>) -> (ZippedLists<'a, E>, usize) {
        let right = &self.right[range];
        let next = first + self.cut.count(right) as usize;
        let left = self.left.known_lists(first, next);
        (ZippedLists { left, right, cut: self.cut, whole: OnceLock::new() }, next)
    }

    /// Copies the lists to the end of `store`.
    fn keep_in(&self, store: &mut ListStore<E>)
    where
        E: Clone + 'static,
    {
        let left = &self.left;
        store.ends.reserve(left.count());
        store.flat.reserve(left.flat.len() + self.right.len());
        let (mut begin, mut rest) = (0, self.right);
        for index in 0..left.count() {
            let (end, next) = self.cut.first(rest).unwrap_or((rest.len(), rest.len()));
            store.keep_parts([&left.flat[begin..left.end(index)], &rest[..end]]);
            (begin, rest) = (left.end(index), &rest[next..]);
        }
    }

    /// The lists, written down, with their ends.
    fn known(&self) -> KnownEnds<'_, E>
    where
        E: Clone + 'static,
    {
        let whole = self.whole();
        KnownEnds { flat: &whole.flat, ends: &whole.ends, from: 0 }
    }

    /// The lists, written down.
    #[cold]
    fn whole(&self) -> &ListStore<E>
    where
        E: Clone + 'static,
    {
        self.whole.get_or_init(|| {
            let mut store = ListStore::default();
            self.keep_in(&mut store);
            store
        })
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
            Ends::Cut(_) | Ends::Zip(_) => self.flat.is_empty(),
        }
    }

    fn count(self) -> u64 {
        match self.ends {
            Ends::One => 1,
            Ends::At { ends, .. } => ends.len() as u64,
            Ends::Cut(cut) => cut.count(self.flat),
            Ends::Zip(zipped) => zipped.count(),
        }
    }

    #[inline]
    fn each(self, mut f: impl FnMut(&'a [E]) -> Flow) -> Flow {
        let KnownEnds { flat, ends, from } = match self.ends {
            Ends::One => return f(self.flat),
            Ends::Cut(cut) => {
                let mut rest = self.flat;
                while !rest.is_empty() {
                    let (end, next) = cut.first(rest).unwrap_or((rest.len(), rest.len()));
                    f(&rest[..end])?;
                    rest = &rest[next..];
                }
                return GO_ON;
            }
            Ends::At { ends, from } => KnownEnds { flat: self.flat, ends, from },
            Ends::Zip(zipped) => zipped.known(),
        };
        let mut begin = 0;
        for end in ends {
            f(&flat[begin..end - from])?;
            begin = end - from;
        }
        GO_ON
    }
}

/// How many bytes of memory a stage keeps for the next list.
const KEPT: usize = 8 << 20;

/// Removes the elements of a list that has been passed on. The memory stays for the next list, but
/// for that of a long one, because one long list must not cost its memory for ever.
#[inline]
pub(crate) fn empty<E>(list: &mut Vec<E>) {
    if list.capacity() * size_of::<E>() > KEPT { *list = Vec::new() } else { list.clear() }
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
    /// use selvedge::pipeline::{from_chunks, group_by, line};
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
    pub(crate) fn keep_parts<const N: usize>(&mut self, parts: [&[E]; N])
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
        if let Some(zipped) = chunk.zipped() {
            return zipped.keep_in(self);
        }
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
        empty(&mut self.flat);
        self.ends.clear();
    }

    fn forget(&mut self, count: usize) {
        // A join forgets what its two sides have passed on after each item, and one of them often
        // none. So this must not walk over the lists that are kept.
        if count == 0 {
            return;
        }
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
