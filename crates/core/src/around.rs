//! What a poll stands in: one value for each stack, which the crates above read and exchange.
//!
//! A poll that sets it restores it at its end. Code that leaves its stack in the middle of polls takes the value along, because the polls
//! of other stacks stand in something else: see `selvedge-direct`.

use std::any::Any;
use std::cell::Cell;
use std::sync::Arc;

/// What a poll stands in. `selvedge-scope` keeps a scope here.
pub type Around = Arc<dyn Any + Send + Sync>;

thread_local! {
    static AROUND: Cell<Option<Around>> = const { Cell::new(None) };
}

/// What the caller's poll stands in; `None` also while the OS thread ends.
pub fn around() -> Option<Around> {
    let around = exchange_around(None);
    exchange_around(around.clone());
    around
}

/// Exchanges it for another, and gives what it was. While the OS thread ends there is none.
#[inline]
pub fn exchange_around(new: Option<Around>) -> Option<Around> {
    AROUND.try_with(|around| around.replace(new)).ok().flatten()
}
