//! [`Thunk`]: a lazy value in a region, its force and its update.
//!
//! `cell.rs` has the words of a thunk, and `code.rs` what its entry does.
//!
//! # Callers
//! `make.rs` makes thunks. The program calls [`Thunk::force`], and
//! so do the closures of other thunks and the lists of `list.rs`.

use super::cell::{ABSENT, CodeTable, INDIRECTION, ResultHead, ThunkHead, is_result};
use super::engine::{Grey, ThunkEntry};
use super::hole::{FAILED, HOLE, HolePatience};
use super::nursery::{Invariant, Nursery};
use super::waits::{wait_for, wake_waiters};
use super::word::{ThunkWord, sealed};
use crate::primitives::AtomicPtr;
use selvedge_core::in_thread;
use selvedge_core::internal::this_stack;
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::ptr::{self, NonNull};

/// A lazy value in a [`Region`](crate::Region): a word that is copied.
///
/// Thunk and nursery are invariant in `'r`, so a thunk is forced with a nursery that lives as long
/// as the thunk's own region. The objects that its closure puts there live for all of `'r`.
/// ```compile_fail,E0597
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

// SAFETY: closures and results in a region are Send and Sync, and each protocol but
// `Unsynchronised` orders the result before the header. A thunk of `Unsynchronised` cannot be read
// on another OS thread: each function that reads it takes a nursery of the same lifetime `'r`.
// `Region::with` has made up that lifetime, and the region of that lifetime is not Sync.
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
    /// If the closure panics. The thunk is then as before, unless it was made by
    /// [`just_once`](Nursery::just_once). And if the value needs its own value: the message names
    /// the places of the forces that were to give it. If another OS thread claims the value while
    /// a force enters it, the message may name a line of this crate for that force.
    ///
    /// A circle that goes through several OS threads is found too. [`LockFree`](crate::LockFree)
    /// and [`Unsynchronised`](crate::Unsynchronised) find no circle, unless a thunk of it was made
    /// by [`just_once`](Nursery::just_once): other entries leave no mark there.
    ///
    /// # Paper
    /// [HMP05 §3.3]: the entry; [HMP05 §4.4]: with grey-holing.
    #[inline(always)]
    #[track_caller]
    pub fn force(self, nursery: &Nursery<'r, E>) -> V {
        let word = match self.look() {
            Look::Result(word) => word,
            Look::Header(other) if other & (INDIRECTION | HOLE) != 0 => {
                self.meet(nursery, Location::caller())
            }
            // SAFETY: the header of this thunk is neither a result nor a hole.
            Look::Header(code) => unsafe { self.enter(nursery, code) },
        };
        // SAFETY: an update of this thunk has stored the word, and its code gives values of `V`.
        unsafe { V::from_word(word) }
    }

    /// The value, if it is there.
    pub fn get(self, _: &Nursery<'r, E>) -> Option<V> {
        let word = match self.look() {
            Look::Result(word) => Some(word),
            Look::Header(header) => is_result(header).then(|| self.result_of(header)),
        };
        // SAFETY: as in `force`.
        word.map(|word| unsafe { V::from_word(word) })
    }

    /// The result, or the header of a thunk that has none. The header of a thunk of a number may
    /// say that the result is there nevertheless.
    #[inline(always)]
    fn look(self) -> Look {
        if !V::IN_HEADER {
            let word = E::load_result(self.result_word());
            if word.addr() != ABSENT {
                return Look::Result(word);
            }
        }
        let header = E::load(&self.head().header);
        match V::IN_HEADER && is_result(header) {
            true => Look::Result(self.result_of(header)),
            false => Look::Header(header),
        }
    }

    /// The result of a thunk of which the caller has seen the indirection in this header.
    #[inline(always)]
    fn result_of(self, header: usize) -> *mut () {
        match V::IN_HEADER {
            true => ptr::with_exposed_provenance_mut(header & !INDIRECTION),
            false => E::load_result(self.result_word()),
        }
    }

    /// The result word of a thunk that has one.
    #[inline(always)]
    fn result_word(&self) -> &AtomicPtr<()> {
        debug_assert!(!V::IN_HEADER);
        // SAFETY: all thunks of such a type have this head: see `Nursery::make`, `Nursery::ready`
        // and `shared`. The cell lies in the region, which `'r` does not outlive.
        unsafe { &self.cell.cast::<ResultHead>().as_ref().result }
    }

    /// Ends an evaluation, and wakes the OS threads that wait for it. An error is the first result,
    /// if the thunk has one: it stands, so that what it refers to is shared ([HMP05 §4.5]). The OS
    /// thread that has stored it wakes the waiting OS threads.
    #[inline(always)]
    pub(super) fn update(self, word: *mut (), may_be_hole: bool) -> Result<(), *mut ()> {
        let header = &self.head().header;
        // Without a claim another OS thread may have evaluated the thunk meanwhile.
        if E::ORDERED && !E::CLAIMS {
            let found = E::load(header);
            if is_result(found) {
                return Err(self.result_of(found));
            }
        }
        match V::IN_HEADER {
            true => E::update(header, word.expose_provenance() | INDIRECTION),
            false => {
                E::store_result(self.result_word(), word);
                E::update(header, INDIRECTION);
            }
        }
        if E::ORDERED && may_be_hole {
            wake_waiters(header);
        }
        Ok(())
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

    /// Waits until the thunk has its result, or its code: then enters it. `place` is that of the
    /// force.
    #[cold]
    #[inline(never)]
    pub(super) fn meet(self, nursery: &Nursery<'r, E>, place: &'static Location<'static>) -> *mut () {
        let head = self.head();
        let mut patience = HolePatience::default();
        loop {
            match E::load(&head.header) {
                result if is_result(result) => return self.result_of(result),
                FAILED => panic!("the closure of a just_once thunk has panicked, and is gone"),
                hole if hole & HOLE != 0 => {
                    if nursery.holes.has(hole) {
                        fail_in_circle(&[place]);
                    }
                    nursery.count(|counts| counts.holes_met += u64::from(patience.is_new()));
                    if !patience.is_over() {
                        patience.look_again();
                    } else if let Err(circle) = wait_for(nursery.holes, &head.header, place) {
                        fail_in_circle(&circle);
                    }
                }
                // SAFETY: as in `force`.
                code => return unsafe { self.enter(nursery, code) },
            }
        }
    }
}

/// What a force finds in its thunk.
enum Look {
    Result(*mut ()),
    Header(usize),
}

/// Panics because a value needs its own value. The forces at these places need one another.
#[cold]
#[inline(never)]
fn fail_in_circle(places: &[&Location<'_>]) -> ! {
    let forces: Vec<String> = places.iter().map(|place| format!("the force of {place}")).collect();
    // The number in a hole is that of an OS thread, not of a stack. Under a foreign executor there
    // is no thread of ours, but a stack if this force is in direct style.
    let hint = match in_thread() || !this_stack().is_null() {
        true => ". (So it seems also if the closure of a thunk waits in direct style: it must not)",
        false => "",
    };
    panic!("<<loop>>: a value of a region needs its own value: {}{hint}", forces.join(" waits for "));
}

impl<V, E: ThunkEntry> Thunk<'_, V, E> {
    /// The thunk with this head, which is of a code for `V` and `E`.
    #[inline(always)]
    pub(super) fn at(cell: NonNull<ThunkHead>) -> Self {
        Thunk { cell, _invariant: PhantomData, _value: PhantomData }
    }

    #[inline(always)]
    pub(super) fn cell(self) -> NonNull<ThunkHead> {
        self.cell
    }

    #[inline(always)]
    pub(super) fn head(&self) -> &ThunkHead {
        // SAFETY: the cell lies in the region, which `'r` does not outlive.
        unsafe { self.cell.as_ref() }
    }
}

impl<V, E: ThunkEntry> fmt::Debug for Thunk<'_, V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Thunk").finish_non_exhaustive()
    }
}
