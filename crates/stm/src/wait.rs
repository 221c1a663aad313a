//! How a transaction that retries waits: registered once in each variable that it has read.
//!
//! # No wake-up is lost
//! ```text
//!    registration, for each variable         commit, for each variable
//!    1. lock the list                        a. exchange the word: LOCKED
//!    2. exchange the word: WAITERS,          b. store the value
//!       if it is unlocked and has the        c. store the word: new version, unlocked
//!       version that was read                d. if a. has found WAITERS: lock the list, take it,
//!    3. add the waiter, unlock the list         unlock it, and wake all that were in it
//! ```
//! Both 2. and a. are atomic exchanges of the same word. If a. comes first, then 2. finds the
//! variable locked or its version changed; the transaction does not wait, and runs again. If 2.
//! comes first, a. finds `WAITERS`, and d. waits for the list until 3. has added the waiter. So
//! each commit that writes a variable after its registration wakes the waiter. A commit before the
//! registration of one variable and after that of another one is noticed for the same reason.
//!
//! d. may wake a waiter that was registered after c.: its transaction runs once more than it must.

use crate::engine::Engine;
use crate::log::Log;
use crate::primitives::{Ordering, lock};
use crate::var::{Borrowed, Inner, LOCKED, WAITERS};
use selvedge_core::{Queue, Role, WaitQueue};
use std::panic::Location;
use std::ptr::NonNull;
use std::sync::Arc;

/// The transactions that wait for a variable.
pub(crate) type Waiters = Vec<Arc<WaitingTx>>;

/// One transaction that waits. The state tells whether a variable that it has read was written.
pub(crate) struct WaitingTx(WaitQueue<bool, ()>);

enum WokenRole {}

impl Role<bool, ()> for WokenRole {
    type Output = ();

    fn attempt(is_woken: &mut bool, _: &mut Queue<'_, ()>, _: &mut ()) -> Option<()> {
        is_woken.then_some(())
    }

    fn granted(_: &mut ()) {}

    /// The state stays as it is: the waiter has one future.
    fn abandoned(_: &mut bool, _: &mut Queue<'_, ()>, _: &mut ()) {}
}

impl WaitingTx {
    pub(crate) fn wake(&self) {
        self.0.with(|is_woken, queue| {
            *is_woken = true;
            queue.grant();
        });
    }
}

/// A waiter in the lists of its variables, which it leaves when this is dropped.
pub(crate) struct Registration {
    waiter: Arc<WaitingTx>,
    /// Each with a handle of this registration.
    variables: Vec<NonNull<Inner>>,
}

// SAFETY: the handles of variables are Send, and so is the waiter.
unsafe impl Send for Registration {}
// SAFETY: as above; a shared registration only leads to the waiter.
unsafe impl Sync for Registration {}

impl Registration {
    /// Registers the transaction in the variables that it has read. `None` if one of them has
    /// changed since.
    ///
    /// # Panics
    /// If the transaction has read no variable.
    pub(crate) fn new<E: Engine>(log: &mut Log) -> Option<Registration> {
        let reads = log.distinct_reads();
        assert!(!reads.is_empty(), "a transaction retries that has read no variable: no commit can wake it");
        let waiter = Arc::new(WaitingTx(WaitQueue::new(false)));
        let mut registration = Registration { waiter, variables: Vec::with_capacity(reads.len()) };
        for read in reads {
            // SAFETY: the session of this log is pinned.
            let inner = unsafe { Borrowed::new(read.inner) };
            // A variable without a handle is out of reach of any later transaction, so this one
            // does not wait for it.
            if inner.hold() && !registration.enter::<E>(inner, read.seen) {
                // SAFETY: the handle of `hold`, which did not go into `variables`.
                unsafe { Inner::release(inner.pointer()) };
                return None;
            }
        }
        Some(registration)
    }

    /// Steps 1. to 3. above. False if the variable is not as it was read.
    fn enter<E: Engine>(&mut self, inner: Borrowed<'_>, seen: u64) -> bool {
        let mut list = lock(&inner.waiters);
        if !E::announce_waiter(&inner, seen) {
            clear_without_list(&inner, &list);
            return false;
        }
        list.get_or_insert_default().push(self.waiter.clone());
        self.variables.push(inner.pointer());
        true
    }

    /// Waits until a commit has written one of the variables. The thread is listed with `place`.
    pub(crate) async fn woken(&self, place: &'static Location<'static>) {
        self.waiter.0.wait_at::<WokenRole>((), place).await;
    }

    fn leave(&self, inner: &Inner) {
        let mut list = lock(&inner.waiters);
        let Some(waiters) = list.as_mut() else { return };
        if let Some(at) = waiters.iter().position(|waiter| Arc::ptr_eq(waiter, &self.waiter)) {
            waiters.remove(at);
        }
        if waiters.is_empty() {
            *list = None;
        }
        clear_without_list(inner, &list);
    }
}

/// Clears the bit, if no transaction waits. A locked word stays: the commit that has locked it finds
/// no list, and clears the bit.
fn clear_without_list(inner: &Inner, list: &Option<Box<Waiters>>) {
    let clear = |word: u64| (word & (LOCKED | WAITERS) == WAITERS).then_some(word & !WAITERS);
    if list.is_none() {
        let _ = inner.word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, clear);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        for &inner in &self.variables {
            // SAFETY: the registration has a handle to it, which ends here.
            unsafe {
                self.leave(inner.as_ref());
                Inner::release(inner);
            }
        }
    }
}
