//! The memory of a lazy value: [`NodeHead`], [`LazyNode`], and [`NodeHandle`], which keeps the
//! node.
//!
//! # States
//! ```text
//!             claim                      update
//!    IDLE ─────────────▶ CLAIMED ─────────────────▶ READY, or FAILED if the body panicked
//!      ▲                    │
//!      └────────────────────┘
//!             give up: the force was dropped, or a cancellation unwound the closure
//! ```
//! - IDLE: the body is there, and no evaluation is under way. A body that has been polled and was
//!   given up is IDLE too ("frozen", [HMP05 §4.3]); the next claim goes on with it.
//! - CLAIMED: one [evaluation](crate::force) has the body and the place of the value for itself.
//!   Two bits say more about the claim. [`POLLING`]: an OS thread polls the body. [`ABANDONED`]:
//!   the claim was given up while the body was polled.
//! - READY, FAILED: final. The body has been dropped. The value, or the reason, is never written
//!   again.
//!
//! The claim is the only atomic exchange of a body that ends in its first poll: the claim sets
//! POLLING too. An update is a store.
//!
//! # One OS thread polls the body
//! A claim may end without its holder, when the evaluation that demands it is given up. The two may
//! be on different OS threads.
//! ```text
//!    poll                                    give up
//!    1. exchange CLAIMED for POLLING         a. exchange CLAIMED for IDLE; or
//!    2. poll the body                        b. exchange POLLING for POLLING and ABANDONED
//!    3. exchange POLLING for CLAIMED;
//!       or give up, if it is ABANDONED
//! ```
//! Each exchange names the whole word, with the number of the claim. If step a comes first, step 1
//! fails, and the holder does not poll the body. If step 1 comes first, only the OS thread that
//! polls the body makes the node idle. A node that has a record is given up under the lock of the
//! table, because the record must not change meanwhile.
//!
//! # The files
//! `typed.rs` has the value and the body, `waiters.rs` the threads that wait, `handle.rs` the
//! handles, `kind.rs` what many nodes have in common, `extra.rs` what few nodes have, and
//! `drops.rs` the drops of nodes within one another.
//!
//! # Callers
//! `value.rs` makes nodes and reads their values. `force.rs` claims nodes, polls their bodies and
//! gives claims up. `circle.rs` gives up the evaluations below an evaluation that is given up.
//! `spark/converter.rs` looks at the state before it forces a value.

mod drops;
mod extra;
mod handle;
mod kind;
mod typed;
mod waiters;

pub(crate) use handle::NodeHandle;
pub(crate) use typed::{Once, Restarted, Resumable};

use self::extra::NodeAbout;
use self::kind::NodeKind;
use crate::circle::{Label, RecordId, table};
use crate::failed::NoValueError;
use crate::primitives::{AtomicU32, Ordering, learn};
use std::task::Waker;

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

/// What all nodes have, of whatever type. The state is next to the value or the body, which follows
/// the head.
#[repr(C)]
pub(crate) struct NodeHead {
    about: NodeAbout,
    state: AtomicU32,
    handles: AtomicU32,
}

impl NodeHead {
    fn new(state: NodeState, kind: &'static NodeKind) -> NodeHead {
        learn();
        NodeHead { about: NodeAbout::new(kind), state: AtomicU32::new(state), handles: AtomicU32::new(1) }
    }

    #[inline(always)]
    fn kind(&self) -> &'static NodeKind {
        self.about.kind()
    }

    /// [`IDLE`], [`CLAIMED`], [`READY`] or [`FAILED`].
    #[inline(always)]
    pub(crate) fn state(&self) -> NodeState {
        self.state.load(Ordering::Acquire) & KIND
    }

    /// Whether the value is there.
    #[inline(always)]
    pub(crate) fn is_ready(&self) -> bool {
        self.state.load(Ordering::Acquire) == READY
    }

    /// Claims the node, if it is idle. The caller polls the body next, or calls
    /// [`pause`](NodeHead::pause).
    #[inline(always)]
    pub(crate) fn claim(&self) -> Option<NodeClaim> {
        let idle = self.state.load(Ordering::Relaxed);
        let claimed = idle.wrapping_add(ONE_CLAIM) | CLAIMED;
        let is_idle = idle & KIND == IDLE;
        let exchange =
            || self.state.compare_exchange(idle, claimed | POLLING, Ordering::Acquire, Ordering::Relaxed);
        (is_idle && exchange().is_ok()).then_some(NodeClaim(claimed))
    }

    /// Whether the claim is the present one.
    #[inline(always)]
    pub(crate) fn has(&self, claim: NodeClaim) -> bool {
        self.state.load(Ordering::Relaxed) & !(POLLING | ABANDONED) == claim.0
    }

    /// Step 1. of the poll of a body. False if the claim was given up. Only one caller at a time
    /// polls the body of a claim, so a mark that is there belongs to the claim itself.
    #[inline(always)]
    pub(crate) fn begin_poll(&self, claim: NodeClaim) -> bool {
        let polling = claim.0 | POLLING;
        let exchange = || self.state.compare_exchange(claim.0, polling, Ordering::Acquire, Ordering::Relaxed);
        self.state.load(Ordering::Relaxed) & !ABANDONED == polling || exchange().is_ok()
    }

    /// Step 3., after a body that is pending. False if the claim was given up.
    pub(crate) fn pause(&self, claim: NodeClaim) -> bool {
        let polling = claim.0 | POLLING;
        let exchanged = self.state.compare_exchange(polling, claim.0, Ordering::Release, Ordering::Relaxed);
        let is_held = exchanged.is_ok() || exchanged == Err(claim.0);
        if !is_held {
            self.give_up_as(claim, true);
        }
        is_held
    }

    /// The reason of a node that is FAILED.
    pub(crate) fn failed(&self) -> NoValueError {
        debug_assert_eq!(self.state(), FAILED);
        // SAFETY: the state was FAILED when the caller looked, with Acquire. The reason was written
        // before, and is not written again.
        let failed = self.about.extra().and_then(|extra| unsafe { &*extra.failed.get() }.clone());
        failed.expect("a node that has failed has a reason")
    }

    pub(crate) fn label(&self) -> Label {
        self.about.label()
    }

    #[inline(always)]
    pub(crate) fn record(&self) -> RecordId {
        self.about.extra().map_or(0, |extra| extra.record.load(Ordering::Acquire))
    }

    /// Only the claimant calls it, under the lock of the table.
    pub(crate) fn set_record(&self, record: RecordId) {
        self.extra_or_new().0.record.store(record, Ordering::Release);
    }

    pub(crate) fn parent(&self) -> RecordId {
        self.about.extra().map_or(0, |extra| extra.parent.load(Ordering::Relaxed))
    }

    /// Only the table calls it, under its lock.
    pub(crate) fn set_parent(&self, parent: RecordId) {
        self.extra_or_new().0.parent.store(parent, Ordering::Relaxed);
    }

    /// Gives up an evaluation and the evaluations that it demands, if the claim is the present one.
    /// If an OS thread polls the body, that OS thread does so after the poll.
    #[cold]
    pub(crate) fn give_up(&self, claim: NodeClaim) {
        self.give_up_as(claim, false);
    }

    /// As [`give_up`](NodeHead::give_up). `polls` says that the caller has polled the body.
    #[cold]
    fn give_up_as(&self, claim: NodeClaim, polls: bool) {
        // Only the holder of a claim gives the node a record. So a claim that is the present one
        // after this load has no record, and no other OS thread knows of it.
        if self.record() == 0 {
            if self.let_go(Some(claim), polls) {
                self.wake_all();
            }
            return;
        }
        let handles = {
            let mut table = table();
            if !self.let_go(Some(claim), polls) {
                return;
            }
            // A thread that claims the node from now on waits for the lock before it polls the
            // body, because the node has a record.
            table.give_up(self.record())
        };
        // The node itself is among them.
        for (handle, waker) in handles {
            handle.head().wake_all();
            waker.into_iter().for_each(Waker::wake);
        }
    }

    /// Gives the present claim up. The caller has polled the body, and unwinds.
    #[cold]
    fn give_up_unwinding(&self) {
        // Only this OS thread ends the claim, because the mark says that it polls the body.
        let present = self.state.load(Ordering::Relaxed) & !(POLLING | ABANDONED);
        self.give_up_as(NodeClaim(present), true);
    }

    /// Steps a. and b. of giving up, for this claim or the present one. Whether the node is idle
    /// now; then the caller wakes the waiters.
    fn let_go(&self, claim: Option<NodeClaim>, polls: bool) -> bool {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            let present = state & !(POLLING | ABANDONED);
            if present & KIND != CLAIMED || claim.is_some_and(|claim| claim.0 != present) {
                return false;
            }
            let is_polled = state & POLLING != 0 && !polls;
            let next = if is_polled { state | ABANDONED } else { present & !KIND };
            match self.state.compare_exchange(state, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return !is_polled,
                Err(now) => state = now,
            }
        }
    }

    /// Gives up the present claim of a node. The record of the node was below a record that is
    /// given up. The caller has the lock of the table. False if an OS thread polls the body: it
    /// gives the claim up.
    pub(crate) fn let_go_below(&self) -> bool {
        self.let_go(None, false)
    }

    #[cold]
    fn release_record(&self) {
        let record = {
            let mut table = table();
            let record = table.release(self.record());
            self.set_record(0);
            record
        };
        drop(record);
    }
}

// SAFETY: the fields of the head are atomic, or never written again. Those of `NodeExtra` that are
// not atomic are written while one thread has the node for itself: `name` before a second handle
// exists, `failed` by the claimant.
unsafe impl Sync for NodeHead {}
