//! What the tests share that look at their own process.

use selvedge_see::{Dump, ThreadState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Waits for the test's turn, in which nothing is seen at first. The process is observed as a
/// whole, so the tests that look at it take turns.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    static TURNS: Mutex<()> = Mutex::new(());
    let turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    selvedge_see::off();
    turn
}

pub(crate) fn find<'a>(dump: &'a Dump, name: &str) -> &'a ThreadState {
    let found = dump.threads.iter().find(|thread| thread.called.as_deref() == Some(name));
    found.unwrap_or_else(|| panic!("{name} is not in {dump}"))
}
