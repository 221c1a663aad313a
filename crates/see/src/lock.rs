//! [`lock`], for mutexes under which no panic breaks an invariant.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, even if an earlier holder has panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
