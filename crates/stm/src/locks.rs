//! The locks of variables: a bit of their words (`variable.rs`).

use crate::primitives::{LOOKS, Ordering, relax};
use crate::variable::{Inner, LOCKED, WAITERS};
use crate::waking;

/// Locks a variable; the word that it had. `None` if it was locked at each of some looks.
#[inline(always)]
pub(crate) fn lock_one(inner: &Inner) -> Option<u64> {
    try_lock(inner).or_else(|| lock_locked(inner))
}

/// Locks a variable if it is not locked; the word that it had.
#[inline(always)]
fn try_lock(inner: &Inner) -> Option<u64> {
    let word = inner.word.load(Ordering::Relaxed);
    (word & LOCKED == 0 && exchange(inner, word)).then_some(word)
}

/// Locks a variable if its word still is this one, which is not locked.
#[inline(always)]
pub(crate) fn exchange(inner: &Inner, word: u64) -> bool {
    inner.word.compare_exchange(word, word | LOCKED, Ordering::SeqCst, Ordering::Relaxed).is_ok()
}

/// Looks again at a variable that another commit has just locked or changed.
#[cold]
#[inline(never)]
fn lock_locked(inner: &Inner) -> Option<u64> {
    (1..LOOKS).find_map(|_| {
        relax();
        try_lock(inner)
    })
}

/// Unlocks a variable with the word that it had. If the last waiter has left meanwhile, the word
/// loses its `WAITERS`.
pub(crate) fn give_back(inner: &Inner, found: u64) {
    inner.word.store(found, Ordering::Release);
    if found & WAITERS != 0 {
        waking::clear_if_alone(inner);
    }
}
