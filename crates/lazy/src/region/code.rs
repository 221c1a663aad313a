//! [`Code`]: what a type of thunk does when it is entered.
//!
//! The header of a thunk that has not been evaluated is the address of a [`CodeTable`]. Its
//! function is the entry, the closure and the update of one type of thunk under one engine, in one
//! piece. So a force that finds no result is one call through a pointer.
//!
//! # A closure that panics
//! The header becomes the code again, by an exchange for the hole of this OS thread. If another
//! thread has entered or updated the thunk meanwhile, its hole or its result stands. A closure that
//! runs once is gone after a panic, so its header becomes FAILED for good.
//!
//! `make.rs` puts the table of a code into the header of each new thunk. `Thunk::enter` calls the
//! table's function.

use super::cell::{CodeTable, ResultHead, ThunkCell, ThunkHead, end_unwinding};
use super::engine::ThunkEntry;
use super::hole::{FAILED, ThreadHoles};
use super::nursery::Nursery;
use super::thunk::Thunk;
use super::word::ThunkWord;
use crate::primitives::{AtomicUsize, Ordering};
use std::marker::PhantomData;
use std::panic::Location;
use std::ptr::{self, NonNull};

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

/// The code of the thunks with bodies of type `B` and values of type `V`.
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
            let update = move |word| thunk.update(word, true);
            let evaluated = nursery.evaluate_in_frame(thunk.cell(), after_panic, B::ONCE, evaluate, update);
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
