//! [`Thunk`]: a closure in the memory of a region, its entry and its update.
//!
//! # The thunk
//! ```text
//!    header          the thunk's code, or GREY, BLACK or INDIRECTION
//!    result word     written before the header says INDIRECTION
//!    payload         what the closure has captured; never overwritten
//! ```
//! This is the layout of [HMP05 Figure 1(d)]. The payload stays where it is until the region goes,
//! so a thread that entered late still reads it. The result is a word, so two threads that evaluate
//! the same thunk write one whole word after the other. The words are equal, or they are references
//! to equal values. So both races of the paper (§3.3 and §3.4) need stores alone.
//!
//! # The code
//! The header of a thunk that has not been evaluated is the address of a [`CodeTable`]. Its
//! function is the entry, the closure and the update of one type of thunk under one engine, in one
//! piece. So a force that finds no result is one call through a pointer.
//!
//! # Callers
//! `Nursery::thunk`, `just_once` and `ready` make thunks. The program calls [`Thunk::force`], and
//! so do the closures of other thunks and the lists of `list.rs`.

use super::engine::{Grey, ThunkEntry};
use super::hole::{HolePatience, KIND};
use super::nursery::Nursery;
use super::word::{ThunkWord, sealed};
use crate::primitives::{AtomicPtr, AtomicUsize, Ordering};
use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};

/// The header of a thunk that has its result. It is neither the address of code nor a hole.
pub(super) const INDIRECTION: usize = 1;

/// Makes a type invariant in `'r`: see [`Thunk`].
pub(super) type Invariant<'r> = PhantomData<fn(&'r ()) -> &'r ()>;

/// The words of a thunk before its payload.
#[repr(C)]
pub(super) struct ThunkHead {
    pub(super) header: AtomicUsize,
    result: AtomicPtr<()>,
}

impl ThunkHead {
    /// The head of a thunk that has not been evaluated.
    #[inline(always)]
    pub(super) fn of<E: ThunkEntry>(code: &'static CodeTable<E>) -> ThunkHead {
        let header = AtomicUsize::new(ptr::from_ref(code).expose_provenance());
        ThunkHead { header, result: AtomicPtr::new(ptr::null_mut()) }
    }

    pub(super) fn ready(word: *mut ()) -> ThunkHead {
        ThunkHead { header: AtomicUsize::new(INDIRECTION), result: AtomicPtr::new(word) }
    }

    /// The result of a thunk of which the caller has seen the indirection.
    #[inline(always)]
    fn result(&self) -> *mut () {
        self.result.load(Ordering::Acquire)
    }

    /// Ends an evaluation. An error is the first result, if the thunk has one: it stands, so that
    /// what it refers to is shared ([HMP05 §4.5]).
    #[inline(always)]
    pub(super) fn update<E: ThunkEntry>(&self, word: *mut ()) -> Result<(), *mut ()> {
        // Without a claim another OS thread may have evaluated the thunk meanwhile.
        let may_be_duplicate = E::ORDERED && !E::CLAIMS;
        if may_be_duplicate && E::load(&self.header) == INDIRECTION {
            return Err(self.result());
        }
        E::update(&self.header, &self.result, word);
        Ok(())
    }
}

/// A thunk in memory.
#[repr(C)]
pub(super) struct ThunkCell<F> {
    pub(super) head: ThunkHead,
    pub(super) payload: UnsafeCell<ManuallyDrop<F>>,
}

/// The code of a type of thunk.
pub(super) struct CodeTable<E: ThunkEntry> {
    /// Enters a thunk of which the caller has found this table in the header, and gives the result.
    ///
    /// # Safety
    /// The thunk has this code, and the nursery is one of the lifetime of its region.
    enter: unsafe fn(NonNull<ThunkHead>, NonNull<()>, usize) -> *mut (),
    _entry: PhantomData<fn() -> E>,
}

pub(super) struct Code<F, V, E, const ONCE: bool>(PhantomData<(F, V, E)>);

impl<'r, F, V, E: ThunkEntry, const ONCE: bool> Code<F, V, E, ONCE>
where
    V: ThunkWord + 'r,
    F: Fn(&Nursery<'r, E>) -> V + 'r,
{
    pub(super) const TABLE: &'static CodeTable<E> = &CodeTable { enter: Self::enter, _entry: PhantomData };

    /// # Safety
    /// As [`CodeTable::enter`].
    unsafe fn enter(thunk: NonNull<ThunkHead>, nursery: NonNull<()>, code: usize) -> *mut () {
        // SAFETY: the thunk is one of this code, by the caller's contract, and its payload is never
        // written again. The nursery is one of the same region and so of the same lifetime.
        let (head, payload, nursery) = unsafe {
            let cell = thunk.cast::<ThunkCell<F>>().as_ref();
            (&cell.head, &*cell.payload.get(), nursery.cast::<Nursery<'r, E>>().as_ref())
        };
        if ONCE || E::CLAIMS {
            let black = nursery.holes.black;
            let claimed = head.header.compare_exchange(code, black, Ordering::Acquire, Ordering::Relaxed);
            if claimed.is_err() {
                return Thunk::<V, E>::at(thunk).meet(nursery);
            }
        } else if E::GREYS {
            head.header.store(nursery.holes.grey, Ordering::Relaxed);
        }
        if E::CLAIMS_AT_YIELD {
            let evaluated = nursery.evaluate_in_frame(head, code, ONCE, || payload(nursery).into_word());
            nursery.count_evaluated();
            return evaluated.unwrap_or_else(|| Thunk::<V, E>::at(thunk).meet(nursery));
        }
        let entered = EnteredThunk { header: &head.header, code };
        let word = payload(nursery).into_word();
        std::mem::forget(entered);
        nursery.count_evaluated();
        match head.update::<E>(word) {
            Ok(()) => word,
            Err(first) => {
                nursery.count(|counts| counts.duplicates += 1);
                first
            }
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

/// A lazy value in a [`Region`](crate::Region): a word that is copied.
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
    cell: NonNull<ThunkHead>,
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
        Thunk::at(unsafe { NonNull::new_unchecked(word.cast()) })
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
        let head = self.head();
        let word = match E::load(&head.header) {
            INDIRECTION => head.result(),
            hole if hole & KIND != 0 => self.meet(nursery),
            // SAFETY: the header of this thunk is neither an indirection nor a hole.
            code => unsafe { self.enter(nursery, code) },
        };
        // SAFETY: an update of this thunk has stored the word, and its code gives values of `V`.
        unsafe { V::from_word(word) }
    }

    /// The value, if it is there.
    pub fn get(self, _: &Nursery<'r, E>) -> Option<V> {
        let is_there = E::load(&self.head().header) == INDIRECTION;
        // SAFETY: as in `force`.
        is_there.then(|| unsafe { V::from_word(self.head().result()) })
    }

    /// # Safety
    /// The caller has found `code` in the header, and it is the address of the thunk's table.
    #[inline(always)]
    unsafe fn enter(self, nursery: &Nursery<'r, E>, code: usize) -> *mut () {
        // SAFETY: the table is the thunk's, and `'r` is the lifetime of one region, because it is
        // invariant in `Nursery`.
        unsafe {
            let table = &*ptr::with_exposed_provenance::<CodeTable<E>>(code);
            (table.enter)(self.cell, NonNull::from(nursery).cast(), code)
        }
    }

    /// Waits until the thunk has its result, or its code: then enters it.
    #[cold]
    #[inline(never)]
    fn meet(self, nursery: &Nursery<'r, E>) -> *mut () {
        let head = self.head();
        let mut patience = HolePatience::default();
        loop {
            match E::load(&head.header) {
                INDIRECTION => return head.result(),
                hole if hole & KIND != 0 => {
                    if nursery.holes.has(hole) {
                        panic!("<<loop>>: a value of a region needs its own value");
                    }
                    nursery.count(|counts| counts.holes_met += u64::from(patience.is_new()));
                    patience.wait();
                }
                // SAFETY: as in `force`.
                code => return unsafe { self.enter(nursery, code) },
            }
        }
    }
}

impl<V, E: ThunkEntry> Thunk<'_, V, E> {
    /// The thunk with this head, which is of a code for `V` and `E`.
    #[inline(always)]
    pub(super) fn at(cell: NonNull<ThunkHead>) -> Self {
        Thunk { cell, _invariant: PhantomData, _value: PhantomData }
    }

    #[inline(always)]
    fn head(&self) -> &ThunkHead {
        // SAFETY: the cell lies in the region, which `'r` does not outlive.
        unsafe { self.cell.as_ref() }
    }
}

impl<V, E: ThunkEntry> fmt::Debug for Thunk<'_, V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Thunk").finish_non_exhaustive()
    }
}
