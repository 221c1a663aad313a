//! The threads that wait for the end of an evaluation.
//!
//! # No waiter is lost
//! A thread that finds the value CLAIMED waits in the queue of the node's [`NodeExtra`], which the
//! first such thread makes.
//! ```text
//!    waiter                                  update, or give up
//!    1. store the pointer to the box         a. store the state
//!    2. seldom()                             b. often()
//!    3. lock the queue; if the state is      c. load the pointer; if it is there, lock the
//!       CLAIMED, queue, else grant all          queue and grant all
//! ```
//! `seldom` and `often` are a pair of fences: either step c sees the pointer of step 1, or step 3
//! sees the state of step a. In the first case the lock decides: if step 3 comes first, step c
//! grants the waiter; if step c comes first, step 3 sees the state. Other waiters, which find a
//! pointer that is there already, skip the first two steps. One of them may see the old state in
//! its step 3, and step c may have missed the pointer. Then the waiter that made the pointer sees
//! the new state in its own step 3, and grants all.
//!
//! A box that the claimant has made, or the only handle, needs no fence: each later step a happens
//! after it was stored, so step c sees the pointer.
//!
//! A body that is given up grants all waiters too, and one of them claims the value.
//!
//! `force.rs` calls `NodeHead::wait`. The update in `typed.rs` calls `NodeHead::end`, and
//! `give_up.rs` calls `wake_all` when a claim is given up.
//!
//! Paper: [NCM11 §3.5], the queue of waiters is the value's own.

use super::NodeHead;
use super::extra::{NodeExtra, WatchedNode};
use super::state::{CLAIMED, NodeState};
use crate::primitives::{often, seldom};
use selvedge_core::{Queue, Role, WaitQueue};
use std::panic::Location;

enum AwaitEnd {}

impl Role<WatchedNode, ()> for AwaitEnd {
    type Output = ();

    /// The budget of a step must not end the poll of a driver in the middle of a long chain.
    const IS_PAID: bool = false;

    fn attempt(watched: &mut WatchedNode, queue: &mut Queue<'_, ()>, _: &mut ()) -> Option<()> {
        // SAFETY: the node frees its box when it is freed itself, so it is there.
        let state = unsafe { watched.0.as_ref() }.state();
        if state == CLAIMED {
            return None;
        }
        grant_all(queue);
        Some(())
    }

    fn granted(_: &mut ()) {}

    /// All waiters are granted at once, so there is none to pass the grant on to.
    fn abandoned(_: &mut WatchedNode, _: &mut Queue<'_, ()>, _: &mut ()) {}
}

fn grant_all(queue: &mut Queue<'_, ()>) {
    while !queue.is_empty() {
        queue.grant();
    }
}

#[cold]
#[inline(never)]
fn wake(extra: &NodeExtra) {
    extra.waiters.with(|_, queue| grant_all(queue));
}

impl NodeHead {
    /// Ends an evaluation: steps a. to c.
    #[inline(always)]
    pub(super) fn end(&self, state: NodeState) {
        self.state.end(state);
        self.wake_all();
    }

    /// Steps b. and c.
    #[inline(always)]
    pub(super) fn wake_all(&self) {
        often();
        if let Some(extra) = self.about.extra() {
            wake(extra);
        }
    }

    /// The waiters, made if there are none: steps 1. and 2. `mine` says that the caller has claimed
    /// the node. Then each later end of an evaluation happens after this, and no fence is needed.
    fn waiters(&self, mine: bool) -> &WaitQueue<WatchedNode, ()> {
        let (extra, is_new) = self.extra_or_new();
        if is_new && !mine {
            seldom();
        }
        &extra.waiters
    }

    /// Waits until the node is not CLAIMED.
    pub(crate) fn wait(
        &self,
        mine: bool,
        place: &'static Location<'static>,
    ) -> impl Future<Output = ()> + Send {
        self.waiters(mine).wait_at::<AwaitEnd>((), place)
    }
}
