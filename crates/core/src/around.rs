//! The surroundings of a poll: one value ([`Around`]) for each stack, which the crates above read
//! and exchange.
//!
//! `selvedge-scope` keeps the scope around a poll here. A poll that sets the value restores it at
//! its end. Code that leaves its stack in the middle of polls takes the value along, because the
//! polls on other stacks have other surroundings: see `selvedge-direct`.

use std::any::Any;
use std::cell::Cell;
use std::sync::Arc;

/// The surroundings of a poll. `selvedge-scope` keeps a scope here.
pub type Around = Arc<dyn Any + Send + Sync>;

thread_local! {
    static AROUND: Cell<Option<Around>> = const { Cell::new(None) };
}

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
