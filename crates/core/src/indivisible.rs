//! Code that its thread runs at a stretch: the body of a transaction.
//!
//! The mark belongs to the OS thread. It is true of the code that runs there, because the code
//! between the begin and the end of the mark is an ordinary function, and because `wait` of
//! `selvedge-direct` refuses to leave the stack in between.
//!
//! `stm` sets the mark around the body of a transaction and around a predicate; `stm` and
//! `selvedge-direct` refuse what a body may not do.

#[cfg(loom)]
use crate::primitives::thread_local;
use std::cell::Cell;

#[cfg(not(loom))]
thread_local!(static INDIVISIBLE: Cell<bool> = const { Cell::new(false) });
#[cfg(loom)]
thread_local!(static INDIVISIBLE: Cell<bool> = Cell::new(false));

/// Removes the mark, also when the code unwinds.
struct Indivisible;

impl Drop for Indivisible {
    #[inline(always)]
    fn drop(&mut self) {
        INDIVISIBLE.with(|mark| mark.set(false));
    }
}

/// Runs code within which [`is_indivisible`] is true. The caller has seen that it was false.
#[inline(always)]
pub fn indivisible<R>(code: impl FnOnce() -> R) -> R {
    INDIVISIBLE.with(|mark| mark.set(true));
    let _mark = Indivisible;
    code()
}

/// Whether the caller runs within [`indivisible`].
#[inline(always)]
pub fn is_indivisible() -> bool {
    INDIVISIBLE.with(Cell::get)
}
