//! [`Nursery`]: the part of a region that one OS thread makes and forces thunks through.
//!
//! `Region::nursery` makes it, and the program passes it to each force. `make.rs` puts thunks into
//! its memory, `code.rs` and `thunk.rs` use its number of the OS thread and its counts, and
//! `claim.rs` uses its stack of frames.
//!
//! A nursery fills its chunk from the front, without an atomic operation, and takes a lock of the
//! region only for a new chunk. A nursery is invariant in `'r`, so its thunks are of the region's
//! own lifetime.
//!
//! # Lifetimes
//! A region puts no destructor off, because it runs none: it frees whole chunks. What a nursery
//! puts into a chunk must need no destructor (an assertion of `make`, `put` and `put_with_thunk`,
//! when the program is compiled), and may borrow for `'r`. The region is borrowed for `'r`, so what
//! lies in it is read within `'r` only, also by a duplicate on another OS thread, which has a
//! nursery of `'r`. The doc tests of `thunk`, `put` and `Thunk` hold it.

use super::chunk::{CHUNK_FIRST, RegionChunk};
use super::engine::{Grey, ThunkEntry};
use super::frames::{FrameStack, QUANTUM};
use super::hole::ThreadHoles;
use super::{Region, RegionCounts};
use crate::primitives::lock;
use std::alloc::Layout;
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::mem::needs_drop;
use std::ptr::{self, NonNull};

/// Makes a type invariant in `'r`: see [`Thunk`](crate::Thunk).
pub(super) type Invariant<'r> = PhantomData<fn(&'r ()) -> &'r ()>;

/// The free memory of a nursery begins at a multiple of this, because most values need no more.
const PLACE_ALIGN: usize = 8;

/// A thread's part of a [`Region`]. It stays on its OS thread.
pub struct Nursery<'r, E: ThunkEntry = Grey> {
    region: &'r Region<E>,
    _invariant: Invariant<'r>,
    /// Those of the OS thread.
    pub(super) holes: ThreadHoles,
    /// The free memory of the chunk. Its address is a multiple of [`PLACE_ALIGN`].
    next: Cell<*mut u8>,
    end: Cell<usize>,
    /// The bytes of the next chunk.
    next_chunk: Cell<usize>,
    /// The thunks that were evaluated.
    evaluated: Cell<u64>,
    /// What happens seldom.
    counts: Cell<RegionCounts>,
    pub(super) frames: FrameStack,
}

impl<E: ThunkEntry> Region<E> {
    /// A place for one thread to make thunks in, and to force them from.
    pub fn nursery(&self) -> Nursery<'_, E> {
        Nursery::new(self)
    }
}

impl<'r, E: ThunkEntry> Nursery<'r, E> {
    /// The entries of thunks after which an OS thread claims what it is evaluating: see
    /// [`ClaimAtYield`](crate::ClaimAtYield).
    pub const QUANTUM: u64 = QUANTUM as u64;

    fn new(region: &'r Region<E>) -> Nursery<'r, E> {
        Nursery {
            region,
            _invariant: PhantomData,
            holes: ThreadHoles::of_this_thread(),
            next: Cell::new(ptr::without_provenance_mut(PLACE_ALIGN)),
            end: Cell::new(0),
            next_chunk: Cell::new(CHUNK_FIRST),
            evaluated: Cell::new(0),
            counts: Cell::new(RegionCounts::default()),
            frames: FrameStack::new(),
        }
    }

    /// Puts a value into the region. Its destructor is not run, so it must have none.
    /// ```compile_fail,E0080
    /// use selvedge::lazy::Region;
    ///
    /// let region: Region = Region::new();
    /// region.nursery().put(String::from("cloth"));
    /// ```
    /// What is borrowed from the region ends with it:
    /// ```compile_fail,E0597
    /// use selvedge::lazy::Region;
    ///
    /// let seven = {
    ///     let region: Region = Region::new();
    ///     region.nursery().put(7)
    /// };
    /// assert_eq!(*seven, 7);
    /// ```
    #[inline]
    pub fn put<T: Send + Sync + 'r>(&self, value: T) -> &'r T {
        const { assert!(!needs_drop::<T>(), "what lies in a region must need no destructor") };
        let place = self.place(Layout::new::<T>()).cast::<T>();
        // SAFETY: the place is fresh memory of this layout, and stays until the region goes, which
        // `'r` does not outlive.
        unsafe {
            place.write(value);
            place.as_ref()
        }
    }

    /// Fresh memory.
    #[inline(always)]
    pub(super) fn place(&self, layout: Layout) -> NonNull<u8> {
        let next = self.next.get();
        // 0 is known when the code is compiled, for all types but those of a larger alignment.
        let padding = match layout.align() <= PLACE_ALIGN {
            true => 0,
            false => next.addr().wrapping_neg() & (layout.align() - 1),
        };
        let place = next.wrapping_add(padding);
        let after = place.wrapping_add(layout.size().next_multiple_of(PLACE_ALIGN));
        if after.addr() > self.end.get() {
            return self.place_in_new_chunk(layout);
        }
        self.next.set(after);
        // SAFETY: it lies in a chunk.
        unsafe { NonNull::new_unchecked(place) }
    }

    #[cold]
    #[inline(never)]
    fn place_in_new_chunk(&self, layout: Layout) -> NonNull<u8> {
        let size = self.next_chunk.get();
        self.next_chunk.set(RegionChunk::size_after(size));
        let chunk = RegionChunk::new(size.max(layout.size() + layout.align() + PLACE_ALIGN));
        self.next.set(chunk.memory().as_ptr());
        self.end.set(chunk.memory().addr().get() + chunk.size());
        lock(&self.region.chunks).push(chunk);
        self.place(layout)
    }

    /// Counts something that happens seldom.
    pub(super) fn count(&self, change: impl FnOnce(&mut RegionCounts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    #[inline(always)]
    pub(super) fn count_evaluated(&self) {
        self.evaluated.set(self.evaluated.get() + 1);
    }
}

impl<E: ThunkEntry> Drop for Nursery<'_, E> {
    fn drop(&mut self) {
        debug_assert!(self.frames.is_empty(), "the frame of an evaluation that has ended is left");
        let mine = self.counts.get();
        let mut counts = lock(&self.region.counts);
        counts.evaluated += self.evaluated.get();
        counts.duplicates += mine.duplicates;
        counts.holes_met += mine.holes_met;
        counts.longest_duplicate = counts.longest_duplicate.max(mine.longest_duplicate);
    }
}

impl<E: ThunkEntry> fmt::Debug for Nursery<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nursery").field("evaluated", &self.evaluated.get()).finish_non_exhaustive()
    }
}
