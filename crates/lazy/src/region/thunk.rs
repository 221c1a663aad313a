//! [`Thunk`]: a closure in the memory of a region, its entry and its update.
//!
//! # The thunk
//! ```text
//!    header          the thunk's code, or GREY, BLACK, FAILED, or a result
//!    result word     of a thunk of numbers only; written before the header says INDIRECTION
//!    payload         what the closure has captured; never overwritten
//! ```
//! This is the layout of [HMP05 Figure 1(d)]. The payload stays where it is until the region goes,
//! so a thread that entered late still reads it. The result is a word, so two threads that evaluate
//! the same thunk write one whole word after the other. The words are equal, or they are references
//! to equal values. So both races of the paper (§3.3 and §3.4) need stores alone.
//!
//! A result that is a reference or a thunk lies in the header itself, with the lowest bit set. Then
//! the update is one store, and a thunk is a word smaller than the paper's.
//!
//! A number needs all bits of a word. Its result word is [`ABSENT`] until the update, so a force of
//! a thunk that has its result loads the result word alone. A force that reads `ABSENT` loads the
//! header too, because the result may be the number `ABSENT` itself.
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
use super::hole::{FAILED, HOLE, HolePatience, ThreadHoles};
use super::nursery::Nursery;
use super::waits::{wait_for, wake_waiters};
use super::word::{ThunkWord, sealed};
use crate::primitives::{AtomicPtr, AtomicUsize, Ordering};
use selvedge_core::in_thread;
use selvedge_core::internal::this_stack;
use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::Location;
use std::ptr::{self, NonNull};

/// The bit of a header that says that the thunk has its result. The rest of the header is the
/// result, or 0 if there is a result word.
const INDIRECTION: usize = 1;

/// The content of a result word before the update: a number that programs rarely compute. It fits
/// in 32 bits with its sign, so the comparing instruction contains it.
const ABSENT: usize = -0x6b8f_52d3isize as usize;

/// Whether the thunk with this header has its result.
#[inline(always)]
pub(super) fn is_result(header: usize) -> bool {
    header & INDIRECTION != 0
}

/// Makes a type invariant in `'r`: see [`Thunk`].
pub(super) type Invariant<'r> = PhantomData<fn(&'r ()) -> &'r ()>;

/// The first word of each thunk.
#[repr(C)]
pub(super) struct ThunkHead {
    pub(super) header: AtomicUsize,
}

impl ThunkHead {
    /// The head of a thunk that has not been evaluated.
    #[inline(always)]
    pub(super) fn of<E: ThunkEntry>(code: &'static CodeTable<E>) -> ThunkHead {
        ThunkHead { header: AtomicUsize::new(ptr::from_ref(code).expose_provenance()) }
    }

    /// The head of a thunk that has this word as its result, in its header.
    #[inline(always)]
    pub(super) fn ready(word: *mut ()) -> ThunkHead {
        ThunkHead { header: AtomicUsize::new(word.expose_provenance() | INDIRECTION) }
    }
}

/// The words of a thunk before its payload, if it has a result word.
#[repr(C)]
pub(super) struct ResultHead {
    head: ThunkHead,
    result: AtomicPtr<()>,
}

impl ResultHead {
    /// The head of a thunk that has not been evaluated.
    #[inline(always)]
    pub(super) fn of(head: ThunkHead) -> ResultHead {
        ResultHead { head, result: AtomicPtr::new(ptr::without_provenance_mut(ABSENT)) }
    }

    /// The head of a thunk that has this word as its result.
    #[inline(always)]
    pub(super) fn ready(word: *mut ()) -> ResultHead {
        let head = ThunkHead { header: AtomicUsize::new(INDIRECTION) };
        ResultHead { head, result: AtomicPtr::new(word) }
    }
}

/// A thunk that all regions share, with this word as its result, if there is one: for small
/// numbers, and for no reference.
#[inline(always)]
pub(super) fn shared<V: ThunkWord>(word: *mut ()) -> Option<NonNull<ThunkHead>> {
    #[cfg(not(loom))]
    {
        let index = match V::IN_HEADER {
            // The header of the thunk of 0 says that the result is 0.
            true if word.is_null() => SHARED_BELOW,
            true => return None,
            false => word.addr().wrapping_add(SHARED_BELOW),
        };
        SHARED.get(index).map(|thunk| NonNull::from(thunk).cast())
    }
    // The atomics of loom are not made before a model runs.
    #[cfg(loom)]
    {
        let _ = word;
        None
    }
}

/// The numbers below 0 that have a shared thunk.
#[cfg(not(loom))]
const SHARED_BELOW: usize = 16;

/// The thunks that have a small number as their result, from `-SHARED_BELOW` on. A thunk that has
/// its result is never written again.
#[cfg(not(loom))]
static SHARED: [ResultHead; 256] = {
    let mut heads = [const {
        let head = ThunkHead { header: AtomicUsize::new(INDIRECTION) };
        ResultHead { head, result: AtomicPtr::new(ptr::null_mut()) }
    }; 256];
    let mut at = 0;
    while at < heads.len() {
        let word = at.wrapping_sub(SHARED_BELOW);
        heads[at].result = AtomicPtr::new(ptr::without_provenance_mut(word));
        at += 1;
    }
    heads
};

/// A thunk in memory. `H` is its [`ThunkHead`] or [`ResultHead`].
#[repr(C)]
pub(super) struct ThunkCell<H, F> {
    pub(super) head: H,
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
        let (body, nursery) = unsafe {
            let payload = match V::IN_HEADER {
                true => thunk.cast::<ThunkCell<ThunkHead, B>>().as_ref().payload.get(),
                false => thunk.cast::<ThunkCell<ResultHead, B>>().as_ref().payload.get(),
            };
            (payload.cast::<B>(), nursery.cast::<Nursery<'r, E>>().as_ref())
        };
        let thunk = Thunk::<'r, V, E>::at(thunk);
        let header = &thunk.head().header;
        // SAFETY: if the body runs once, this code has claimed the thunk, and no code gives such a
        // claim back.
        let evaluate = || unsafe { B::run(body, nursery) }.into_word();
        if B::ONCE || E::CLAIMS {
            let black = nursery.holes.black;
            let claimed = header.compare_exchange(code, black, Ordering::Acquire, Ordering::Relaxed);
            if claimed.is_err() {
                return thunk.meet(nursery, Location::caller());
            }
        } else if E::GREYS {
            E::store_grey(header, nursery.holes.grey);
        }
        // Not `code`: that variable would have to be kept during the evaluation. The hole below is
        // not kept for the same reason.
        let after_panic = if B::ONCE { FAILED } else { ptr::from_ref(Self::TABLE).expose_provenance() };
        if E::CLAIMS_AT_YIELD {
            let evaluated = nursery.evaluate_in_frame(thunk, after_panic, B::ONCE, evaluate);
            nursery.count_evaluated();
            return evaluated.unwrap_or_else(|| thunk.meet(nursery, Location::caller()));
        }
        let is_claimed = B::ONCE || E::CLAIMS;
        let entered = EnteredThunk { header, holes: &nursery.holes, is_claimed, after_panic };
        let word = evaluate();
        std::mem::forget(entered);
        nursery.count_evaluated();
        match thunk.update(word, B::ONCE || E::LEAVES_HOLES) {
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
    /// The holes of this OS thread.
    holes: &'a ThreadHoles,
    /// Whether the entry was an exchange for BLACK.
    is_claimed: bool,
    after_panic: usize,
}

impl Drop for EnteredThunk<'_> {
    fn drop(&mut self) {
        // The word that the entry has stored in the header, if it has stored one.
        let hole = if self.is_claimed { self.holes.black } else { self.holes.grey };
        end_unwinding(self.header, hole, self.after_panic);
    }
}

/// Ends an evaluation that unwinds: exchanges the hole of this OS thread for `after`, and wakes the
/// OS threads that wait for the thunk. The header stays as it is if it is not that hole: then
/// another OS thread has entered, claimed or updated the thunk, or the entry has left the code
/// there.
pub(super) fn end_unwinding(header: &AtomicUsize, hole: usize, after: usize) {
    if header.compare_exchange(hole, after, Ordering::Release, Ordering::Relaxed).is_ok() {
        wake_waiters(header);
    }
}

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
    fn meet(self, nursery: &Nursery<'r, E>, place: &'static Location<'static>) -> *mut () {
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
