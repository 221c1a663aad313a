//! [`StateWord`]: the state of a node, and the exchanges that `node.rs` lists.
//!
//! The word knows nothing of the rest of its node. `NodeHead` has one, `give_up.rs` wakes the
//! waiters when the word is idle again, and `waiters.rs` reads the word through a pointer.

use crate::primitives::{AtomicU32, Ordering};

/// A state. IDLE and CLAIMED have the number of the claim in the bits from [`ONE_CLAIM`] on, so
/// that a claim is never taken for a later one; the final states have none there.
pub(crate) type NodeState = u32;

pub(crate) const IDLE: NodeState = 0;
pub(crate) const CLAIMED: NodeState = 1;
pub(crate) const READY: NodeState = 2;
pub(crate) const FAILED: NodeState = 3;
const KIND: NodeState = 3;
/// With CLAIMED: an OS thread polls the body.
const POLLING: NodeState = 4;
/// With POLLING: the claim was given up. The OS thread that polls the body makes the node idle.
const ABANDONED: NodeState = 8;
const ONE_CLAIM: NodeState = 16;

/// A claim of a node: the state CLAIMED with the number of the claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NodeClaim(NodeState);

/// The word of a node that has its state.
pub(super) struct StateWord(AtomicU32);

impl StateWord {
    #[inline(always)]
    pub(super) fn new(state: NodeState) -> StateWord {
        StateWord(AtomicU32::new(state))
    }

    /// [`IDLE`], [`CLAIMED`], [`READY`] or [`FAILED`].
    #[inline(always)]
    pub(super) fn state(&self) -> NodeState {
        self.0.load(Ordering::Acquire) & KIND
    }

    #[inline(always)]
    pub(super) fn is_ready(&self) -> bool {
        self.0.load(Ordering::Acquire) == READY
    }

    /// Stores a final state. What the caller has written before is seen by a thread that reads this
    /// state.
    #[inline(always)]
    pub(super) fn end(&self, state: NodeState) {
        self.0.store(state, Ordering::Release);
    }

    /// Says that there is no value. The caller has moved it out, through the only handle of the
    /// node.
    #[inline(always)]
    pub(super) fn end_without_value(&self) {
        self.0.store(FAILED, Ordering::Relaxed);
    }

    /// Claims the node and begins to poll it, if it is idle.
    #[inline(always)]
    pub(super) fn claim(&self) -> Option<NodeClaim> {
        let idle = self.0.load(Ordering::Relaxed);
        let claimed = idle.wrapping_add(ONE_CLAIM) | CLAIMED;
        let is_idle = idle & KIND == IDLE;
        let exchange =
            || self.0.compare_exchange(idle, claimed | POLLING, Ordering::Acquire, Ordering::Relaxed);
        (is_idle && exchange().is_ok()).then_some(NodeClaim(claimed))
    }

    /// Whether the claim is the present one.
    #[inline(always)]
    pub(super) fn has(&self, claim: NodeClaim) -> bool {
        self.0.load(Ordering::Relaxed) & !(POLLING | ABANDONED) == claim.0
    }

    /// Step 1. of the poll of a body. False if the claim was given up. Only one caller at a time
    /// polls the body of a claim, so a mark that is there belongs to the claim itself.
    #[inline(always)]
    pub(super) fn begin_poll(&self, claim: NodeClaim) -> bool {
        let polling = claim.0 | POLLING;
        let exchange = || self.0.compare_exchange(claim.0, polling, Ordering::Acquire, Ordering::Relaxed);
        self.0.load(Ordering::Relaxed) & !ABANDONED == polling || exchange().is_ok()
    }

    /// Step 3., after a body that is pending. False if the claim was given up: then the caller
    /// makes the node idle.
    #[inline(always)]
    pub(super) fn end_poll(&self, claim: NodeClaim) -> bool {
        let polling = claim.0 | POLLING;
        let exchanged = self.0.compare_exchange(polling, claim.0, Ordering::Release, Ordering::Relaxed);
        exchanged.is_ok() || exchanged == Err(claim.0)
    }

    /// The present claim. The caller polls the body, so only the caller ends that claim.
    pub(super) fn polled_claim(&self) -> NodeClaim {
        NodeClaim(self.0.load(Ordering::Relaxed) & !(POLLING | ABANDONED))
    }

    /// Steps a. and b. of giving up, for this claim or the present one. `polls` says that the
    /// caller has polled the body. Whether the node is idle now; then the caller wakes the waiters.
    pub(super) fn let_go(&self, claim: Option<NodeClaim>, polls: bool) -> bool {
        let mut state = self.0.load(Ordering::Relaxed);
        loop {
            let present = state & !(POLLING | ABANDONED);
            if present & KIND != CLAIMED || claim.is_some_and(|claim| claim.0 != present) {
                return false;
            }
            let is_polled = state & POLLING != 0 && !polls;
            let next = if is_polled { state | ABANDONED } else { present & !KIND };
            match self.0.compare_exchange(state, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return !is_polled,
                Err(now) => state = now,
            }
        }
    }
}
