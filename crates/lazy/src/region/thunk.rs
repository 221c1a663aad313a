//! [`Thunk`]: a closure in the memory of a region, its entry and its update.
//!
//! # The thunk
//! ```text
//!    header          the thunk's code, or GREY, BLACK, INDIRECTION or FAILED
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
//! # A closure that panics
//! The header becomes the code again, by an exchange for the hole of this OS thread. If another
//! thread has entered or updated the thunk meanwhile, its hole or its result stands. A closure that
//! runs once is gone after a panic, so its header becomes FAILED for good.
//!
//! # Callers
//! `Nursery::thunk`, `just_once` and `ready` make thunks. The program calls [`Thunk::force`], and
//! so do the closures of other thunks and the lists of `list.rs`.

use super::engine::{Grey, ThunkEntry};
use super::hole::{HolePatience, KIND};
use super::nursery::Nursery;
use super::waits::{wait_for, wake_waiters};
use super::word::{ThunkWord, sealed};
use crate::primitives::{AtomicPtr, AtomicUsize, Ordering};
use selvedge_core::{in_thread, this_stack};
use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::Location;
use std::ptr::{self, NonNull};

/// The header of a thunk that has its result. It is neither the address of code nor a hole.
pub(super) const INDIRECTION: usize = 1;

/// The header of a thunk with a closure that runs once, and has panicked.
pub(super) const FAILED: usize = 5;

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

    /// A thunk that all regions share, with this word as its result, if the word is a small number.
    #[inline(always)]
    pub(super) fn shared(word: *mut ()) -> Option<NonNull<ThunkHead>> {
        #[cfg(not(loom))]
        return SHARED.get(word.addr().wrapping_add(SHARED_BELOW)).map(NonNull::from);
        // The atomics of loom are not made before a model runs.
        #[cfg(loom)]
        return None;
    }

    /// The result of a thunk of which the caller has seen the indirection.
    #[inline(always)]
    fn result(&self) -> *mut () {
        self.result.load(Ordering::Acquire)
    }

    /// Ends an evaluation, and wakes the OS threads that wait for it. An error is the first result,
    /// if the thunk has one: it stands, so that what it refers to is shared ([HMP05 §4.5]). The OS
    /// thread that has stored it wakes those that wait.
    #[inline(always)]
    pub(super) fn update<E: ThunkEntry>(&self, word: *mut (), may_be_hole: bool) -> Result<(), *mut ()> {
        // Without a claim another OS thread may have evaluated the thunk meanwhile.
        let may_be_duplicate = E::ORDERED && !E::CLAIMS;
        if may_be_duplicate && E::load(&self.header) == INDIRECTION {
            return Err(self.result());
        }
        E::update(&self.header, &self.result, word);
        if E::ORDERED && may_be_hole {
            wake_waiters(&self.header);
        }
        Ok(())
    }
}

/// The numbers below 0 that have a shared thunk.
#[cfg(not(loom))]
const SHARED_BELOW: usize = 16;

/// The thunks that have a small number as their result, from `-SHARED_BELOW` on. A thunk that has
/// its result is never written again.
#[cfg(not(loom))]
static SHARED: [ThunkHead; 256] = {
    let mut heads = [const {
        let result = AtomicPtr::new(ptr::null_mut());
        ThunkHead { header: AtomicUsize::new(INDIRECTION), result }
    }; 256];
    let mut at = 0;
    while at < heads.len() {
        let word = at.wrapping_sub(SHARED_BELOW);
        heads[at].result = AtomicPtr::new(ptr::without_provenance_mut(word));
        at += 1;
    }
    heads
};

/// A thunk in memory.
#[repr(C)]
pub(super) struct ThunkCell<F> {
    pub(super) head: ThunkHead,
    pub(super) payload: UnsafeCell<ManuallyDrop<F>>,
}

/// The closure of a thunk.
pub(super) trait ThunkBody<'r, V, E: ThunkEntry> {
    /// Whether it runs once: then its thunk is entered by an exchange.
    const ONCE: bool;

    /// # Safety
    /// The body lies in a thunk. If it runs [once](ThunkBody::ONCE), this is the only call.
    unsafe fn run(body: *const Self, nursery: &Nursery<'r, E>) -> V;
}

/// A closure that two threads may run at the same moment.
pub(super) struct Pure<F>(pub(super) F);

impl<'r, V, E: ThunkEntry, F: Fn(&Nursery<'r, E>) -> V> ThunkBody<'r, V, E> for Pure<F> {
    const ONCE: bool = false;

    #[inline(always)]
    unsafe fn run(body: *const Self, nursery: &Nursery<'r, E>) -> V {
        // SAFETY: it lies in a thunk, where it is never written again.
        (unsafe { &*body }.0)(nursery)
    }
}

/// A closure that runs once.
pub(super) struct JustOnce<F>(pub(super) F);

impl<'r, V, E: ThunkEntry, F: FnOnce(&Nursery<'r, E>) -> V> ThunkBody<'r, V, E> for JustOnce<F> {
    const ONCE: bool = true;

    unsafe fn run(body: *const Self, nursery: &Nursery<'r, E>) -> V {
        // SAFETY: it lies in a thunk, and this is the only call, so it is moved out once.
        (unsafe { body.read() }.0)(nursery)
    }
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

pub(super) struct Code<B, V, E>(PhantomData<(B, V, E)>);

impl<'r, B, V, E: ThunkEntry> Code<B, V, E>
where
    V: ThunkWord + 'r,
    B: ThunkBody<'r, V, E> + 'r,
{
    pub(super) const TABLE: &'static CodeTable<E> = &CodeTable { enter: Self::enter, _entry: PhantomData };

    /// # Safety
    /// As [`CodeTable::enter`].
    unsafe fn enter(thunk: NonNull<ThunkHead>, nursery: NonNull<()>, code: usize) -> *mut () {
        // SAFETY: the thunk is one of this code, by the caller's contract, and its payload is never
        // written again. The nursery is one of the same region and so of the same lifetime.
        let (head, body, nursery) = unsafe {
            let cell = thunk.cast::<ThunkCell<B>>().as_ref();
            (&cell.head, cell.payload.get().cast::<B>(), nursery.cast::<Nursery<'r, E>>().as_ref())
        };
        // SAFETY: if the body runs once, this code has claimed the thunk, and no code gives such a
        // claim back.
        let evaluate = || unsafe { B::run(body, nursery) }.into_word();
        if B::ONCE || E::CLAIMS {
            let black = nursery.holes.black;
            let claimed = head.header.compare_exchange(code, black, Ordering::Acquire, Ordering::Relaxed);
            if claimed.is_err() {
                return Thunk::<V, E>::at(thunk).meet(nursery, Location::caller());
            }
        } else if E::GREYS {
            E::store_grey(&head.header, nursery.holes.grey);
        }
        let after_panic = if B::ONCE { FAILED } else { code };
        if E::CLAIMS_AT_YIELD {
            let evaluated = nursery.evaluate_in_frame(head, after_panic, B::ONCE, evaluate);
            nursery.count_evaluated();
            return evaluated.unwrap_or_else(|| Thunk::<V, E>::at(thunk).meet(nursery, Location::caller()));
        }
        let is_claimed = B::ONCE || E::CLAIMS;
        let hole = if is_claimed { nursery.holes.black } else { nursery.holes.grey };
        let entered = EnteredThunk { header: &head.header, hole, after_panic };
        let word = evaluate();
        std::mem::forget(entered);
        nursery.count_evaluated();
        match head.update::<E>(word, B::ONCE || E::LEAVES_HOLES) {
            Ok(()) => word,
            Err(first) => {
                nursery.count(|counts| counts.duplicates += 1);
                first
            }
        }
    }
}

/// Ends the evaluation of a closure that panics.
struct EnteredThunk<'a> {
    header: &'a AtomicUsize,
    /// What the entry has left in the header, if it has left anything there.
    hole: usize,
    after_panic: usize,
}

impl Drop for EnteredThunk<'_> {
    fn drop(&mut self) {
        end_unwinding(self.header, self.hole, self.after_panic);
    }
}

/// Ends an evaluation that unwinds: exchanges the hole of this OS thread for `after`, and wakes the
/// OS threads that wait for the thunk. If the header
/// is not that hole, another OS thread has entered, claimed or updated the thunk, or the entry has
/// left the code there: then it stays.
pub(super) fn end_unwinding(header: &AtomicUsize, hole: usize, after: usize) {
    if header.compare_exchange(hole, after, Ordering::Release, Ordering::Relaxed).is_ok() {
        wake_waiters(header);
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
        let head = self.head();
        let word = match E::load(&head.header) {
            INDIRECTION => head.result(),
            hole if hole & KIND != 0 => self.meet(nursery, Location::caller()),
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

    /// Waits until the thunk has its result, or its code: then enters it. `place` is that of the
    /// force.
    #[cold]
    #[inline(never)]
    fn meet(self, nursery: &Nursery<'r, E>, place: &'static Location<'static>) -> *mut () {
        let head = self.head();
        let mut patience = HolePatience::default();
        loop {
            match E::load(&head.header) {
                INDIRECTION => return head.result(),
                FAILED => panic!("the closure of a just_once thunk has panicked, and is gone"),
                hole if hole & KIND != 0 => {
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
