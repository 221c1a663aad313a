//! The surroundings of a poll: one value ([`Around`]) and one pointer for each stack, which the
//! crates above read and exchange.
//!
//! `selvedge-scope` keeps the scope around a poll here, and `selvedge-lazy` the evaluation. A poll
//! that sets one of the two restores it at its end. Code that leaves its stack in the middle of
//! polls takes both along, because the polls on other stacks have other surroundings: see
//! `selvedge-direct`.

#[cfg(loom)]
use crate::primitives::thread_local;
use std::any::Any;
use std::cell::Cell;
use std::ptr;
use std::sync::Arc;

/// The surroundings of a poll. `selvedge-scope` keeps a scope here.
pub type Around = Arc<dyn Any + Send + Sync>;

std::thread_local! {
    static AROUND: Cell<Option<Around>> = const { Cell::new(None) };
}

#[cfg(not(loom))]
thread_local!(static FRAME: Cell<*const ()> = const { Cell::new(ptr::null()) });
#[cfg(loom)]
thread_local!(static FRAME: Cell<*const ()> = Cell::new(ptr::null()));

/// The surroundings of the caller's poll. `None` also while the OS thread ends.
pub fn around() -> Option<Around> {
    let around = exchange_around(None);
    exchange_around(around.clone());
    around
}

/// Exchanges the surroundings for others, and gives the old ones. While the OS thread ends there
/// are none.
#[inline]
pub fn exchange_around(new: Option<Around>) -> Option<Around> {
    AROUND.try_with(|around| around.replace(new)).ok().flatten()
}

/// Exchanges the frame of the evaluation that the caller's poll belongs to, and gives the old one.
/// Without an evaluation it is null.
#[inline(always)]
pub fn exchange_frame(new: *const ()) -> *const () {
    FRAME.with(|frame| frame.replace(new))
}
