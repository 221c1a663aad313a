//! [`lock`]: what workers and the OS thread that hears share lies behind mutexes.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a value that is whole also after a panic, because each change of it is one assignment.
pub(super) fn lock<T>(slot: &Mutex<T>) -> MutexGuard<'_, T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}
