//! The memory of a lazy value: [`NodeHead`], its first words, and [`NodeHandle`], which keeps the
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
//! Each file names files above it in this table, and none below:
//!
//! | | |
//! |---|---|
//! | `state.rs` | the word of the state, and its exchanges |
//! | `kind.rs` | what many nodes have in common: functions, and the place that makes them |
//! | `extra.rs` | what few nodes have: waiters, a record, a name, a reason |
//! | `node.rs` | the head of each node |
//! | `waiters.rs` | the threads that wait, and why none is lost |
//! | `drops.rs` | the drops of nodes within one another |
//! | `handle.rs` | the handles that keep a node |
//! | `circle.rs`, beside this folder | which evaluation waits for which |
//! | `give_up.rs` | the end of a claim without an update |
//! | `typed.rs` | the value and the body, and the functions of each type of node |
//!
//! # Callers
//! `value.rs` makes nodes and reads their values. `force.rs` claims nodes, polls their bodies and
//! gives claims up. `circle.rs` gives up the evaluations below an evaluation that is given up.
//! `spark/converter.rs` looks at the state before it forces a value.

mod drops;
mod extra;
mod give_up;
mod handle;
mod kind;
mod state;
mod typed;
mod waiters;

pub(crate) use extra::RecordId;
pub(crate) use handle::NodeHandle;
pub(crate) use state::{CLAIMED, FAILED, IDLE, NodeClaim, READY};
pub(crate) use typed::{Once, Restarted, Resumable};

use self::extra::{Label, NodeAbout, NodeExtra};
use self::kind::NodeKind;
use self::state::{NodeState, StateWord};
use crate::failed::NoValueError;
use crate::primitives::{AtomicU32, Ordering, learn};

/// What all nodes have, of whatever type. The state is next to the value or the body, which follows
/// the head.
#[repr(C)]
pub(crate) struct NodeHead {
    about: NodeAbout,
    state: StateWord,
    handles: AtomicU32,
}

impl NodeHead {
    fn new(state: NodeState, kind: &'static NodeKind) -> NodeHead {
        learn();
        NodeHead { about: NodeAbout::new(kind), state: StateWord::new(state), handles: AtomicU32::new(1) }
    }

    #[inline(always)]
    fn kind(&self) -> &'static NodeKind {
        self.about.kind()
    }

    /// The box, made if there is none, and whether this call has made it.
    #[cold]
    fn extra_or_new(&self) -> (&NodeExtra, bool) {
        self.about.extra_or_new(&self.state)
    }

    /// [`IDLE`], [`CLAIMED`], [`READY`] or [`FAILED`].
    #[inline(always)]
    pub(crate) fn state(&self) -> NodeState {
        self.state.state()
    }

    /// Whether the value is there.
    #[inline(always)]
    pub(crate) fn is_ready(&self) -> bool {
        self.state.is_ready()
    }

    /// Claims the node, if it is idle. The caller polls the body next, or calls
    /// [`pause`](NodeHead::pause).
    #[inline(always)]
    pub(crate) fn claim(&self) -> Option<NodeClaim> {
        self.state.claim()
    }

    /// Whether the claim is the present one.
    #[inline(always)]
    pub(crate) fn has(&self, claim: NodeClaim) -> bool {
        self.state.has(claim)
    }

    /// Step 1. of the poll of a body. False if the claim was given up. Only one caller at a time
    /// polls the body of a claim.
    #[inline(always)]
    pub(crate) fn begin_poll(&self, claim: NodeClaim) -> bool {
        self.state.begin_poll(claim)
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

    /// Gives up the present claim of a node. The record of the node was below a record that is
    /// given up. The caller has the lock of the table. False if an OS thread polls the body: it
    /// gives the claim up.
    pub(crate) fn let_go_below(&self) -> bool {
        self.state.let_go(None, false)
    }
}

// SAFETY: the fields of the head are atomic, or never written again. Those of `NodeExtra` that are
// not atomic are written while one thread has the node for itself: `name` before a second handle
// exists, `failed` by the claimant.
unsafe impl Sync for NodeHead {}
