//! [`WakeCondition`]: a transaction that waits for a predicate, with the variables that the
//! predicate has read.
//!
//! `evaluate.rs` evaluates the predicates. This is one of the three files that know one another:
//! see the head of `variable.rs`.

use crate::address::VarAddress;
use crate::reads::ReadEntry;
use crate::stop::Tried;
use crate::variable::{Borrowed, Inner};
use crate::waiter::WaitingTx;
use std::collections::HashSet;
use std::ptr::NonNull;
use std::sync::Arc;

/// Whether a transaction is to be woken: see [`Tx::wait_for`](crate::Tx::wait_for).
pub(crate) trait Predicate: Send + Sync {
    /// Whether the predicate holds.
    ///
    /// # Safety
    /// The pointer is one to a `Tx<E>` that is alive, for the engine E with which the predicate was
    /// made.
    unsafe fn holds(&self, tx: NonNull<()>) -> Tried<bool>;
}

/// A transaction that waits for a predicate.
pub(crate) struct WakeCondition<P: ?Sized = dyn Predicate> {
    pub(crate) waiter: Arc<WaitingTx>,
    /// The variables that the predicate has read when it did not hold, but without the variables
    /// that had no handle. The handles of the condition keep another variable from lying at the
    /// same address.
    first: HeldVariable,
    others: Box<[HeldVariable]>,
    pub(crate) predicate: P,
}

impl WakeCondition {
    /// `None` if the predicate has read no variable that a later transaction can reach.
    ///
    /// # Safety
    /// The session of the log with these reads is pinned.
    pub(crate) unsafe fn new(
        waiter: Arc<WaitingTx>,
        reads: &[ReadEntry],
        predicate: impl Predicate + 'static,
    ) -> Option<Arc<WakeCondition>> {
        let mut seen = HashSet::new();
        let distinct = reads.iter().map(|read| read.variable).filter(|variable| seen.insert(*variable));
        // SAFETY: the caller's contract.
        let mut variables =
            distinct.filter_map(|variable| HeldVariable::of(unsafe { Borrowed::at(variable) }));
        let first = variables.next()?;
        let others = variables.collect();
        Some(Arc::new(WakeCondition { waiter, first, others, predicate }))
    }

    /// Whether the predicate has read the variable when it did not hold.
    #[inline]
    pub(crate) fn watches(&self, variable: VarAddress) -> bool {
        self.first.is_at(variable) || self.others.iter().any(|other| other.is_at(variable))
    }
}

/// A variable with a handle of its own.
pub(crate) struct HeldVariable(NonNull<Inner>);

// SAFETY: the handle of a variable is Send and Sync, as `TVar` and `TWord` are.
unsafe impl Send for HeldVariable {}
// SAFETY: as above.
unsafe impl Sync for HeldVariable {}

impl HeldVariable {
    /// `None` if the variable has no handle any more.
    pub(crate) fn of(variable: Borrowed<'_>) -> Option<HeldVariable> {
        variable.hold().then(|| HeldVariable(variable.pointer()))
    }

    #[inline]
    fn is_at(&self, variable: VarAddress) -> bool {
        self.0.cast() == variable.0
    }

    pub(crate) fn inner(&self) -> &Inner {
        // SAFETY: the handle keeps the variable alive.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for HeldVariable {
    fn drop(&mut self) {
        // SAFETY: `of` has made the handle, which ends here.
        unsafe { Inner::release(self.0) };
    }
}
