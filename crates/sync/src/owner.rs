//! [`Owner`]: the identity on behalf of which a lock is taken, for the operations that refuse a
//! recursion.
//!
//! `Mutex::checked_lock`, `RwLock::checked_read` and `RwLock::checked_write` take one. A guard may
//! go to another thread, and a thread's number is used again. So the number of the thread that has
//! locked does not tell which thread would have to unlock. An owner does: the program makes it, and
//! passes it on with the guard.

use std::sync::atomic::{AtomicU32, Ordering};

/// The identity on behalf of which locks are taken. Most programs make one for each thread, or one
/// for each branch of a `join!`.
///
/// A lock that is held on behalf of an owner is refused to that owner. What the owner stands for is
/// up to the program: all code with a reference to it may lock and ask on its behalf. If a guard is
/// passed to another thread for good, its owner is best passed along.
///
/// # Complexity
/// One atomic addition. The owners of a process after its first 2³⁰ are not told apart from no
/// owner: they are refused nothing.
///
/// # Examples
/// ```
/// use selvedge::round_robin;
/// use selvedge::sync::{Mutex, Owner};
///
/// round_robin(async {
///     let (mutex, me, other) = (Mutex::new_local(()), Owner::new(), Owner::new());
///     let guard = mutex.checked_lock(&me).await.unwrap();
///     assert!(mutex.checked_lock(&me).await.is_err(), "it would wait for itself");
///     // Another owner waits for as long as the guard lives.
///     let wait = async { drop(mutex.checked_lock(&other).await.unwrap()) };
///     futures::future::join(wait, async { drop(guard) }).await;
/// })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[derive(Debug)]
pub struct Owner {
    /// From 1 on, or 0 when there are no more numbers.
    number: u32,
}

impl Owner {
    /// The bits of an owner's number.
    pub(crate) const BITS: u32 = 30;

    /// An owner of no lock.
    #[expect(clippy::new_without_default, reason = "it is an identity, not a value")]
    pub fn new() -> Owner {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let next = |next: u32| (next >> Owner::BITS == 0).then_some(next + 1);
        let number = NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).unwrap_or(0);
        Owner { number }
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }
}
