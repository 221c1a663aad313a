//! [`Region`]: an arena of thunks, which are entered without a lock.
//!
//! # The thunk
//! ```text
//!    header          the thunk's code, or GREY, BLACK or INDIRECTION
//!    result word     written before the header says INDIRECTION
//!    payload         what the closure has captured; never overwritten
//! ```
//! This is the layout of [HMP05 Figure 1(d)]. The payload stays where it is until the region goes,
//! so a thread that entered late still reads it; and the result is a word, so two threads that
//! evaluate the same thunk write the same word. Both races of the paper (§3.3 and §3.4) are so
//! harmless, with stores alone.
//!
//! # The engines
//! | | entry | update |
//! |---|---|---|
//! | [`Unsynchronised`] | load | store, for one OS thread |
//! | [`LockFree`] | load | store of the result, store of the header |
//! | [`Grey`] | load, store of GREY | as above |
//! | [`OneCas`] | exchange for BLACK | as above |
//! | [`TwoCas`] | exchange for BLACK | store of the result, exchange of the header |
//!
//! On x86-64 the orders Acquire and Release are plain loads and stores, so the first three rows
//! have no locked instruction.
//!
//! # Holes
//! GREY and BLACK have the number of the OS thread that has entered. A nursery stays on its OS
//! thread and knows that number. The numbers are those of the process, because a thunk may be
//! forced with a nursery of another region of the same lifetime. An OS thread that finds its own
//! number has found a value that needs its own: `<<loop>>`. One that finds another number looks
//! again until the hole is filled, less and less often: the other OS thread evaluates at a stretch.

use crate::primitives::{AtomicPtr, AtomicUsize, Mutex, Ordering, lock};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::{Cell, UnsafeCell};
use std::fmt;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, needs_drop};
use std::ptr::{self, NonNull};

/// The header of a thunk that has its result. It is neither the address of code nor a hole.
const INDIRECTION: usize = 1;
/// The kinds of holes, in the lowest two bits; the number of the OS thread is above them.
const GREY: usize = 2;
const BLACK: usize = 3;
const KIND: usize = 3;

/// The bytes of a chunk.
const CHUNK: usize = if cfg!(any(loom, miri)) { 1 << 10 } else { 1 << 18 };

/// A value that fits into the result word of a thunk: numbers, `bool`, `char`, references, thunks.
pub trait ThunkWord: Copy + sealed::FitsInWord {
    #[doc(hidden)]
    fn into_word(self) -> *mut ();
    /// # Safety
    /// The word is from `into_word` of a value of this type.
    #[doc(hidden)]
    unsafe fn from_word(word: *mut ()) -> Self;
}

mod sealed {
    #[expect(unnameable_types, reason = "only the types here are known to fit into a word")]
    pub trait FitsInWord {}
}

macro_rules! numbers {
    ($($number:ty),*) => { $(
        impl sealed::FitsInWord for $number {}
        impl ThunkWord for $number {
            #[inline(always)]
            fn into_word(self) -> *mut () {
                ptr::without_provenance_mut(self as usize)
            }
            #[inline(always)]
            unsafe fn from_word(word: *mut ()) -> $number {
                word.addr() as $number
            }
        }
    )* };
}
numbers!(u8, u16, u32, usize, i8, i16, i32, isize);
#[cfg(target_pointer_width = "64")]
numbers!(u64, i64);

impl sealed::FitsInWord for bool {}
impl ThunkWord for bool {
    #[inline(always)]
    fn into_word(self) -> *mut () {
        ptr::without_provenance_mut(usize::from(self))
    }
    #[inline(always)]
    unsafe fn from_word(word: *mut ()) -> bool {
        word.addr() != 0
    }
}

impl sealed::FitsInWord for () {}
impl ThunkWord for () {
    fn into_word(self) -> *mut () {
        ptr::null_mut()
    }
    unsafe fn from_word(_: *mut ()) {}
}

impl<T> sealed::FitsInWord for &T {}
impl<T> ThunkWord for &T {
    #[inline(always)]
    fn into_word(self) -> *mut () {
        ptr::from_ref(self).cast_mut().cast()
    }
    #[inline(always)]
    unsafe fn from_word(word: *mut ()) -> Self {
        // SAFETY: the word is a reference of this type and lifetime.
        unsafe { &*word.cast::<T>() }
    }
}

impl<T> sealed::FitsInWord for Option<&T> {}
impl<T> ThunkWord for Option<&T> {
    #[inline(always)]
    fn into_word(self) -> *mut () {
        self.map_or(ptr::null_mut(), ThunkWord::into_word)
    }
    #[inline(always)]
    unsafe fn from_word(word: *mut ()) -> Self {
        // SAFETY: the word is null, or a reference of this type and lifetime.
        unsafe { word.cast::<T>().as_ref() }
    }
}

/// How the thunks of a region are entered and updated: see the types that implement it.
pub trait ThunkEntry: entry::Protocol {}

/// One OS thread, without any order of memory: see [`Region::with`].
#[derive(Debug, Clone, Copy)]
pub enum Unsynchronised {}

/// The paper's entry without a lock: duplicates are possible for as long as an evaluation takes.
///
/// # Paper
/// [HMP05 §3.3, §3.4].
#[derive(Debug, Clone, Copy)]
pub enum LockFree {}

/// As [`LockFree`], with a store of GREY at the entry: duplicates are possible between two
/// instructions.
///
/// # Paper
/// [HMP05 §4.4].
#[doc(alias = "grey-holing")]
#[doc(alias = "GREYHOLE")]
#[derive(Debug, Clone, Copy)]
pub enum Grey {}

/// One atomic exchange at the entry: no duplicates.
#[derive(Debug, Clone, Copy)]
pub enum OneCas {}

/// Atomic exchanges at entry and update, which the paper measures as the bad idea.
///
/// # Paper
/// [HMP05 §3.1, Figure 4].
#[derive(Debug, Clone, Copy)]
pub enum TwoCas {}

mod entry {
    use super::{AtomicPtr, AtomicUsize, BLACK, GREY, INDIRECTION, Ordering};

    #[expect(unnameable_types, reason = "only the protocols here keep the region's promises")]
    pub trait Protocol: 'static {
        /// A type that is Sync if a region may be used by several threads.
        type Threads;
        /// Whether an update orders the result before the header.
        const ORDERED: bool = true;
        /// The kind of hole that the entry leaves, or 0.
        const HOLE: usize;
        /// Whether the entry is an atomic exchange.
        const CLAIMS: bool = false;
        const UPDATES_BY_EXCHANGE: bool = false;

        #[inline(always)]
        fn load(header: &AtomicUsize) -> usize {
            header.load(if Self::ORDERED { Ordering::Acquire } else { Ordering::Relaxed })
        }

        /// Enters a thunk that had this code. False if another thread has claimed it first.
        #[inline(always)]
        fn enter(header: &AtomicUsize, code: usize, hole: usize, claims: bool) -> bool {
            if Self::CLAIMS || claims {
                return header.compare_exchange(code, hole, Ordering::Acquire, Ordering::Relaxed).is_ok();
            }
            if Self::HOLE != 0 {
                header.store(hole, Ordering::Relaxed);
            }
            true
        }

        #[inline(always)]
        fn update(header: &AtomicUsize, result: &AtomicPtr<()>, word: *mut ()) {
            result.store(word, Ordering::Relaxed);
            if Self::UPDATES_BY_EXCHANGE {
                header.swap(INDIRECTION, Ordering::AcqRel);
            } else {
                header.store(INDIRECTION, if Self::ORDERED { Ordering::Release } else { Ordering::Relaxed });
            }
        }
    }

    impl Protocol for super::Unsynchronised {
        type Threads = *mut ();
        const ORDERED: bool = false;
        const HOLE: usize = 0;
    }
    impl Protocol for super::LockFree {
        type Threads = ();
        const HOLE: usize = 0;
    }
    impl Protocol for super::Grey {
        type Threads = ();
        const HOLE: usize = GREY;
    }
    impl Protocol for super::OneCas {
        type Threads = ();
        const HOLE: usize = BLACK;
        const CLAIMS: bool = true;
    }
    impl Protocol for super::TwoCas {
        type Threads = ();
        const HOLE: usize = BLACK;
        const CLAIMS: bool = true;
        const UPDATES_BY_EXCHANGE: bool = true;
    }
}

impl ThunkEntry for Unsynchronised {}
impl ThunkEntry for LockFree {}
impl ThunkEntry for Grey {}
impl ThunkEntry for OneCas {}
impl ThunkEntry for TwoCas {}

/// What happened in a region, from the nurseries that are gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RegionCounts {
    /// The thunks that were evaluated, duplicates included.
    pub evaluated: u64,
    /// The evaluations that found, at their update, that the thunk had its result already.
    pub duplicates: u64,
    /// The entries that found a hole of another thread.
    pub holes_met: u64,
}

/// An arena of thunks: lazy values of a word, without an allocation or a count of handles for each.
///
/// All memory of a region goes at once, with the region. A thread makes and forces thunks through a
/// [`Nursery`] of its own. The type parameter says how a thunk is entered; [`Grey`] is the
/// default, and the others are there to compare with.
///
/// # Pure, may run twice
/// Two threads that force a thunk at the same moment may both evaluate it. So the closure of a
/// thunk must give the same result each time, and is [`Fn`]. [`just_once`](Nursery::just_once)
/// makes a thunk that is evaluated once, for an atomic exchange.
///
/// What a closure has captured stays until the region goes. It must need no destructor: thunks,
/// references, numbers.
///
/// # Paper
/// [HMP05 §3, §4.4, §4.5]: the thunk with a result word, grey-holing, and the look at the header at
/// the update.
///
/// # Differences
/// 1. A thread that meets a hole of another one looks at it again and again, and is not parked. A
///    circle that goes through several threads is not found. [`Lazy`](crate::Lazy) does both.
/// 2. Evaluation nests on the native stack, so a chain of thunks is no longer than that allows. A
///    chain of [`Lazy`](crate::Lazy) values may be.
///
/// # Examples
/// ```
/// use selvedge::lazy::Region;
///
/// let region: Region = Region::new();
/// let nursery = region.nursery();
/// let six = nursery.thunk(|_| 6);
/// let answer = nursery.thunk(move |nursery| six.force(nursery) * 7);
/// assert_eq!(answer.force(&nursery), 42);
/// ```
pub struct Region<E: ThunkEntry = Grey> {
    chunks: Mutex<Vec<RegionChunk>>,
    counts: Mutex<RegionCounts>,
    _entry: PhantomData<(E, E::Threads)>,
}

/// The number of OS threads that have had a nursery.
static THREADS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

std::thread_local! {
    static THREAD: usize = THREADS.fetch_add(1, Ordering::Relaxed);
}

/// A piece of memory, freed with the region.
struct RegionChunk {
    memory: NonNull<u8>,
    layout: Layout,
}

// SAFETY: a chunk is memory that its region has for itself. What lies in it is Send and Sync: see
// `Nursery`.
unsafe impl Send for RegionChunk {}

impl Drop for RegionChunk {
    fn drop(&mut self) {
        // SAFETY: `Nursery::chunk` has allocated it with this layout.
        unsafe { dealloc(self.memory.as_ptr(), self.layout) };
    }
}

impl<E: ThunkEntry> Region<E> {
    /// An empty region.
    pub fn new() -> Region<E> {
        const { assert!(E::ORDERED, "an unsynchronised region is made by `Region::with`") };
        Region::empty()
    }

    fn empty() -> Region<E> {
        Region {
            chunks: Mutex::new(Vec::new()),
            counts: Mutex::new(RegionCounts::default()),
            _entry: PhantomData,
        }
    }

    /// A place for one thread to make thunks in, and to force them from.
    pub fn nursery(&self) -> Nursery<'_, E> {
        Nursery {
            region: self,
            _invariant: PhantomData,
            number: THREAD.with(|number| *number),
            next: Cell::new(ptr::without_provenance_mut(1)),
            end: Cell::new(0),
            counts: Cell::new(RegionCounts::default()),
        }
    }

    /// The counts of all nurseries that are gone.
    pub fn counts(&self) -> RegionCounts {
        *lock(&self.counts)
    }
}

impl Region<Unsynchronised> {
    /// Passes an empty region for this OS thread to `program`: the base line of comparisons.
    ///
    /// # Examples
    /// ```
    /// use selvedge::lazy::{Region, Unsynchronised};
    ///
    /// let answer = Region::<Unsynchronised>::with(|region| {
    ///     let nursery = region.nursery();
    ///     nursery.thunk(|_| 42).force(&nursery)
    /// });
    /// assert_eq!(answer, 42);
    /// ```
    pub fn with<R>(program: impl for<'r> FnOnce(&'r Region<Unsynchronised>) -> R) -> R {
        program(&Region::empty())
    }
}

impl<E: ThunkEntry> Default for Region<E> {
    fn default() -> Region<E> {
        Region::new()
    }
}

impl<E: ThunkEntry> fmt::Debug for Region<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Region").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

/// Makes a type invariant in `'r`: see [`Thunk`].
type Invariant<'r> = PhantomData<fn(&'r ()) -> &'r ()>;

/// A thread's part of a [`Region`]. It stays on its OS thread.
pub struct Nursery<'r, E: ThunkEntry = Grey> {
    region: &'r Region<E>,
    _invariant: Invariant<'r>,
    /// That of the OS thread.
    number: usize,
    /// The free memory of the chunk.
    next: Cell<*mut u8>,
    end: Cell<usize>,
    counts: Cell<RegionCounts>,
}

impl<'r, E: ThunkEntry> Nursery<'r, E> {
    /// A thunk of a closure, which may make and force other thunks.
    #[inline]
    pub fn thunk<V, F>(&self, code: F) -> Thunk<'r, V, E>
    where
        V: ThunkWord + Send + Sync + 'r,
        F: Fn(&Nursery<'r, E>) -> V + Send + Sync + 'r,
    {
        self.make::<V, F, false>(code)
    }

    /// A thunk with a closure that runs once, also if several threads force it at the same moment:
    /// its entry is an atomic exchange.
    ///
    /// # Paper
    /// [HMP05 §3.5] `justOnce`, which the paper proposes.
    pub fn just_once<V, F>(&self, code: F) -> Thunk<'r, V, E>
    where
        V: ThunkWord + Send + Sync + 'r,
        F: Fn(&Nursery<'r, E>) -> V + Send + Sync + 'r,
    {
        self.make::<V, F, true>(code)
    }

    #[inline(always)]
    fn make<V, F, const ONCE: bool>(&self, code: F) -> Thunk<'r, V, E>
    where
        V: ThunkWord + 'r,
        F: Fn(&Nursery<'r, E>) -> V + 'r,
    {
        const { assert!(!needs_drop::<F>(), "what a thunk captures must need no destructor") };
        let cell = ThunkCell {
            header: AtomicUsize::new(ptr::from_ref(Code::<F, V, E, ONCE>::TABLE).expose_provenance()),
            result: AtomicPtr::new(ptr::null_mut()),
            payload: UnsafeCell::new(ManuallyDrop::new(code)),
        };
        let place = self.place(Layout::new::<ThunkCell<F>>()).cast::<ThunkCell<F>>();
        // SAFETY: the place is fresh memory of this layout.
        unsafe { place.write(cell) };
        Thunk { cell: place.cast(), _invariant: PhantomData, _value: PhantomData }
    }

    /// A thunk that has its result.
    pub fn ready<V: ThunkWord + Send + Sync + 'r>(&self, value: V) -> Thunk<'r, V, E> {
        let cell = ThunkCell {
            header: AtomicUsize::new(INDIRECTION),
            result: AtomicPtr::new(value.into_word()),
            payload: UnsafeCell::new(ManuallyDrop::new(())),
        };
        let place = self.place(Layout::new::<ThunkCell<()>>()).cast::<ThunkCell<()>>();
        // SAFETY: the place is fresh memory of this layout.
        unsafe { place.write(cell) };
        Thunk { cell: place.cast(), _invariant: PhantomData, _value: PhantomData }
    }

    /// Puts a value into the region. Its destructor is not run, so it must have none.
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
    fn place(&self, layout: Layout) -> NonNull<u8> {
        let next = self.next.get();
        let padding = next.addr().wrapping_neg() & (layout.align() - 1);
        let free = self.end.get().wrapping_sub(next.addr());
        if self.end.get() == 0 || padding + layout.size() > free {
            return self.place_in_new_chunk(layout);
        }
        let place = next.wrapping_add(padding);
        self.next.set(place.wrapping_add(layout.size()));
        // SAFETY: it lies in a chunk.
        unsafe { NonNull::new_unchecked(place) }
    }

    #[cold]
    #[inline(never)]
    fn place_in_new_chunk(&self, layout: Layout) -> NonNull<u8> {
        let size = CHUNK.max(layout.size() + layout.align());
        let of_chunk = Layout::from_size_align(size, 16).expect("a chunk is small");
        // SAFETY: the size is not 0.
        let memory = NonNull::new(unsafe { alloc(of_chunk) }).unwrap_or_else(|| handle_alloc_error(of_chunk));
        lock(&self.region.chunks).push(RegionChunk { memory, layout: of_chunk });
        self.next.set(memory.as_ptr());
        self.end.set(memory.as_ptr().addr() + size);
        self.place(layout)
    }

    #[inline(always)]
    fn count(&self, change: impl FnOnce(&mut RegionCounts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    /// The hole that this nursery leaves.
    #[inline(always)]
    fn hole(&self, kind: usize) -> usize {
        (self.number << 2) | kind
    }
}

impl<E: ThunkEntry> Drop for Nursery<'_, E> {
    fn drop(&mut self) {
        let mine = self.counts.get();
        let mut counts = lock(&self.region.counts);
        counts.evaluated += mine.evaluated;
        counts.duplicates += mine.duplicates;
        counts.holes_met += mine.holes_met;
    }
}

impl<E: ThunkEntry> fmt::Debug for Nursery<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nursery").field("number", &self.number).finish_non_exhaustive()
    }
}

/// A thunk in memory.
#[repr(C)]
struct ThunkCell<F> {
    header: AtomicUsize,
    result: AtomicPtr<()>,
    payload: UnsafeCell<ManuallyDrop<F>>,
}

/// The code of a type of thunk.
struct CodeTable<E: ThunkEntry> {
    /// # Safety
    /// The cell is a thunk of this code, in the region of the nursery.
    run: unsafe fn(NonNull<ThunkCell<()>>, NonNull<()>) -> *mut (),
    once: bool,
    _entry: PhantomData<fn() -> E>,
}

struct Code<F, V, E, const ONCE: bool>(PhantomData<(F, V, E)>);

impl<'r, F, V, E: ThunkEntry, const ONCE: bool> Code<F, V, E, ONCE>
where
    V: ThunkWord + 'r,
    F: Fn(&Nursery<'r, E>) -> V + 'r,
{
    const TABLE: &'static CodeTable<E> = &CodeTable { run: Self::run, once: ONCE, _entry: PhantomData };

    unsafe fn run(cell: NonNull<ThunkCell<()>>, nursery: NonNull<()>) -> *mut () {
        // SAFETY: the cell is a thunk of this code, by the caller's contract; its payload is never
        // written again. The nursery is one of the same region and so of the same lifetime.
        let (payload, nursery) = unsafe {
            (&*cell.cast::<ThunkCell<F>>().as_ref().payload.get(), nursery.cast::<Nursery<'r, E>>().as_ref())
        };
        (**payload)(nursery).into_word()
    }
}

/// A lazy value in a [`Region`]: a word that is copied.
///
/// Thunk and nursery are invariant in `'r`, so a thunk is forced with a nursery that lives as long
/// as its own region: what its closure puts there is there for all of `'r`.
/// ```compile_fail
/// use selvedge::lazy::Region;
///
/// let long: Region = Region::new();
/// let nursery = long.nursery();
/// let thunk = nursery.thunk(|nursery| nursery.put(7));
/// {
///     let short: Region = Region::new();
///     thunk.force(&short.nursery());
/// }
/// assert_eq!(*thunk.force(&nursery), 7);
/// ```
pub struct Thunk<'r, V, E: ThunkEntry = Grey> {
    cell: NonNull<ThunkCell<()>>,
    _invariant: Invariant<'r>,
    _value: PhantomData<fn() -> (V, E)>,
}

impl<V, E: ThunkEntry> Clone for Thunk<'_, V, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V, E: ThunkEntry> Copy for Thunk<'_, V, E> {}

// SAFETY: closures and results in a region are Send and Sync, and the protocols order the result
// before the header. That of `Unsynchronised` does not. A thunk of it is of no use on another OS
// thread: all that reads it takes a nursery of the very lifetime `'r`, which `Region::with` has
// made up, and the region of that lifetime is not Sync.
unsafe impl<V: Send + Sync, E: ThunkEntry> Send for Thunk<'_, V, E> {}
// SAFETY: as above.
unsafe impl<V: Send + Sync, E: ThunkEntry> Sync for Thunk<'_, V, E> {}

impl<V, E: ThunkEntry> sealed::FitsInWord for Thunk<'_, V, E> {}
impl<V, E: ThunkEntry> ThunkWord for Thunk<'_, V, E> {
    #[inline(always)]
    fn into_word(self) -> *mut () {
        self.cell.as_ptr().cast()
    }
    #[inline(always)]
    unsafe fn from_word(word: *mut ()) -> Self {
        // SAFETY: the word is a thunk of this type, so it is not null.
        let cell = unsafe { NonNull::new_unchecked(word.cast()) };
        Thunk { cell, _invariant: PhantomData, _value: PhantomData }
    }
}

impl<'r, V: ThunkWord + 'r, E: ThunkEntry> Thunk<'r, V, E> {
    /// The value; evaluated if it is not there.
    ///
    /// # Panics
    /// If the closure panics. The thunk is then as before. And if the value needs its own value.
    ///
    /// # Paper
    /// [HMP05 §3.3]: the entry; [HMP05 §4.4]: with grey-holing.
    #[inline(always)]
    pub fn force(self, nursery: &Nursery<'r, E>) -> V {
        let word = match E::load(&self.cell().header) {
            INDIRECTION => self.cell().result.load(Ordering::Relaxed),
            header => self.enter(nursery, header),
        };
        // SAFETY: an update of this thunk has stored the word, and its code gives values of `V`.
        unsafe { V::from_word(word) }
    }

    /// The value, if it is there.
    pub fn get(self, _: &Nursery<'r, E>) -> Option<V> {
        let is_there = E::load(&self.cell().header) == INDIRECTION;
        // SAFETY: as in `force`.
        is_there.then(|| unsafe { V::from_word(self.cell().result.load(Ordering::Relaxed)) })
    }

    #[inline(always)]
    fn cell(&self) -> &ThunkCell<()> {
        // SAFETY: the cell lies in the region, which `'r` does not outlive.
        unsafe { self.cell.as_ref() }
    }

    #[inline(never)]
    fn enter(self, nursery: &Nursery<'r, E>, mut header: usize) -> *mut () {
        let cell = self.cell();
        let mut patience = HolePatience::default();
        loop {
            if header == INDIRECTION {
                return cell.result.load(Ordering::Relaxed);
            }
            if header & KIND != 0 {
                if header >> 2 == nursery.number {
                    panic!("<<loop>>: a value of a region needs its own value");
                }
                nursery.count(|counts| counts.holes_met += u64::from(patience.is_new()));
                patience.wait();
                header = E::load(&cell.header);
                continue;
            }
            let table = ptr::with_exposed_provenance::<CodeTable<E>>(header);
            // SAFETY: a header that is neither an indirection nor a hole is the address of the
            // thunk's table.
            let table = unsafe { &*table };
            let kind = if table.once { BLACK } else { E::HOLE };
            if !E::enter(&cell.header, header, nursery.hole(kind), table.once) {
                header = E::load(&cell.header);
                continue;
            }
            let entered = EnteredThunk { header: &cell.header, code: header };
            // SAFETY: the table is the thunk's, and `'r` is the lifetime of one region, because it
            // is invariant in `Nursery`.
            let word = unsafe { (table.run)(self.cell, NonNull::from(nursery).cast()) };
            std::mem::forget(entered);
            let is_duplicate = !E::CLAIMS && E::load(&cell.header) == INDIRECTION;
            nursery.count(|counts| {
                counts.evaluated += 1;
                counts.duplicates += u64::from(is_duplicate);
            });
            if is_duplicate {
                // The first result stands, so that what it refers to is shared: §4.5.
                return cell.result.load(Ordering::Relaxed);
            }
            E::update(&cell.header, &cell.result, word);
            return word;
        }
    }
}

/// Puts the code back, if the closure panics.
struct EnteredThunk<'a> {
    header: &'a AtomicUsize,
    code: usize,
}

impl Drop for EnteredThunk<'_> {
    fn drop(&mut self) {
        if self.header.load(Ordering::Relaxed) != INDIRECTION {
            self.header.store(self.code, Ordering::Release);
        }
    }
}

/// How an OS thread waits for a hole to be filled.
#[derive(Default)]
struct HolePatience {
    rounds: u32,
}

impl HolePatience {
    fn is_new(&self) -> bool {
        self.rounds == 0
    }

    fn wait(&mut self) {
        self.rounds += 1;
        #[cfg(loom)]
        loom::thread::yield_now();
        #[cfg(not(loom))]
        match self.rounds {
            0..64 => std::hint::spin_loop(),
            64..256 => std::thread::yield_now(),
            _ => std::thread::sleep(std::time::Duration::from_micros(50)),
        }
    }
}

impl<V, E: ThunkEntry> fmt::Debug for Thunk<'_, V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Thunk").finish_non_exhaustive()
    }
}
