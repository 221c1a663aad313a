//! [`Nursery`]: the part of a region that one OS thread makes and forces thunks through.
//!
//! `Region::nursery` makes it, and the program passes it to each force. `thunk.rs` uses its number
//! of the OS thread and its counts, and `claim.rs` uses its stack of frames.
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
use super::claim::{FrameStack, QUANTUM};
use super::engine::{Grey, ThunkEntry};
use super::hole::ThreadHoles;
use super::thunk::{
    Code, Invariant, JustOnce, Pure, ResultHead, Thunk, ThunkBody, ThunkCell, ThunkHead, shared,
};
use super::word::ThunkWord;
use super::{Region, RegionCounts};
use crate::primitives::lock;
use std::alloc::Layout;
use std::cell::{Cell, UnsafeCell};
use std::fmt;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, needs_drop};
use std::ptr::{self, NonNull};

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

impl<'r, E: ThunkEntry> Nursery<'r, E> {
    /// The entries of thunks after which an OS thread claims what it is evaluating: see
    /// [`ClaimAtYield`](crate::ClaimAtYield).
    pub const QUANTUM: u64 = QUANTUM as u64;

    pub(super) fn new(region: &'r Region<E>) -> Nursery<'r, E> {
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

    /// A thunk of a closure, which may make and force other thunks.
    ///
    /// The closure may borrow what lives longer than the region, and captures nothing that needs a
    /// destructor:
    /// ```compile_fail,E0597
    /// use selvedge::lazy::Region;
    ///
    /// let region: Region = Region::new();
    /// let nursery = region.nursery();
    /// let length = {
    ///     let cloth = String::from("cloth");
    ///     let cloth = &cloth;
    ///     nursery.thunk(move |_| cloth.len())
    /// };
    /// length.force(&nursery);
    /// ```
    /// ```compile_fail,E0080
    /// use selvedge::lazy::Region;
    ///
    /// let cloth = String::from("cloth");
    /// let region: Region = Region::new();
    /// let nursery = region.nursery();
    /// nursery.thunk(move |_| cloth.len()).force(&nursery);
    /// ```
    #[inline]
    pub fn thunk<V, F>(&self, code: F) -> Thunk<'r, V, E>
    where
        V: ThunkWord + Send + Sync + 'r,
        F: Fn(&Nursery<'r, E>) -> V + Send + Sync + 'r,
    {
        self.make(Pure(code))
    }

    /// A thunk with a closure that runs once, also if several threads force it at the same moment:
    /// its entry is an atomic exchange.
    ///
    /// If the closure panics, the force panics with its payload. The closure is gone then, and each
    /// later force panics too.
    ///
    /// # Examples
    /// ```
    /// use selvedge::lazy::Region;
    ///
    /// let mut threads = [1, 2, 3];
    /// let region: Region = Region::new();
    /// let nursery = region.nursery();
    /// let all = &mut threads;
    /// let sum = nursery.just_once(move |_| {
    ///     all[0] += 10;
    ///     all.iter().sum::<u32>()
    /// });
    /// assert_eq!((sum.force(&nursery), sum.force(&nursery)), (16, 16));
    /// ```
    ///
    /// # Paper
    /// [HMP05 §3.5] `justOnce`, which the paper proposes.
    pub fn just_once<V, F>(&self, code: F) -> Thunk<'r, V, E>
    where
        V: ThunkWord + Send + Sync + 'r,
        F: FnOnce(&Nursery<'r, E>) -> V + Send + 'r,
    {
        self.make(JustOnce(code))
    }

    #[inline(always)]
    fn make<V, B>(&self, body: B) -> Thunk<'r, V, E>
    where
        V: ThunkWord + 'r,
        B: ThunkBody<'r, V, E> + 'r,
    {
        const { assert!(!needs_drop::<B>(), "what a thunk captures must need no destructor") };
        let head = ThunkHead::of(Code::<B, V, E>::TABLE);
        Thunk::at(match V::IN_HEADER {
            true => self.put_cell(head, body),
            false => self.put_cell(ResultHead::of(head), body),
        })
    }

    /// A thunk that has its result. It takes no memory if the value is a small number, `None`,
    /// `false` or `true`: all regions share the thunks of these values, as GHC's collector shares
    /// small numbers.
    #[inline]
    pub fn ready<V: ThunkWord + Send + Sync + 'r>(&self, value: V) -> Thunk<'r, V, E> {
        let word = value.into_word();
        if let Some(shared) = shared::<V>(word) {
            return Thunk::at(shared);
        }
        Thunk::at(match V::IN_HEADER {
            true => self.put_cell(ThunkHead::ready(word), ()),
            false => self.put_cell(ResultHead::ready(word), ()),
        })
    }

    #[inline(always)]
    fn put_cell<H, F>(&self, head: H, body: F) -> NonNull<ThunkHead> {
        let place = self.place(Layout::new::<ThunkCell<H, F>>()).cast::<ThunkCell<H, F>>();
        let cell = ThunkCell { head, payload: UnsafeCell::new(ManuallyDrop::new(body)) };
        // SAFETY: the place is fresh memory of this layout.
        unsafe { place.write(cell) };
        place.cast()
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

    /// Puts the value into the region that `value` makes of a new thunk. Both lie in one place.
    #[inline(always)]
    pub(crate) fn put_with_thunk<T, V, F>(&self, code: F, value: impl FnOnce(Thunk<'r, V, E>) -> T) -> &'r T
    where
        T: Send + Sync + 'r,
        V: ThunkWord + Send + Sync + 'r,
        F: Fn(&Nursery<'r, E>) -> V + Send + Sync + 'r,
    {
        const { assert!(!needs_drop::<T>() && !needs_drop::<F>(), "nothing in a region is dropped") };
        let (head, body) = (ThunkHead::of(Code::<Pure<F>, V, E>::TABLE), Pure(code));
        let value = |cell| value(Thunk::at(cell));
        match V::IN_HEADER {
            true => self.put_beside(head, body, value),
            false => self.put_beside(ResultHead::of(head), body, value),
        }
    }

    #[inline(always)]
    fn put_beside<T, H, B>(&self, head: H, body: B, value: impl FnOnce(NonNull<ThunkHead>) -> T) -> &'r T {
        /// A thunk, and a value that leads to it.
        #[repr(C)]
        struct Beside<H, B, T> {
            cell: ThunkCell<H, B>,
            value: T,
        }
        let place = self.place(Layout::new::<Beside<H, B, T>>()).cast::<Beside<H, B, T>>();
        // SAFETY: the place is fresh memory of this layout, and stays until the region goes, which
        // `'r` does not outlive. The value is written before it is borrowed.
        unsafe {
            let (cell, rest) = (&raw mut (*place.as_ptr()).cell, &raw mut (*place.as_ptr()).value);
            cell.write(ThunkCell { head, payload: UnsafeCell::new(ManuallyDrop::new(body)) });
            rest.write(value(place.cast()));
            &*rest
        }
    }

    /// Fresh memory.
    #[inline(always)]
    fn place(&self, layout: Layout) -> NonNull<u8> {
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
