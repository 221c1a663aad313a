//! The end of a claim without an update: `node.rs` has the steps, and [`CircleTable`] has the
//! evaluations below an evaluation that is given up.
//!
//! `force.rs` gives up the claim of a force that is dropped, and `typed.rs` the claim of a closure
//! that a cancellation unwinds. `typed.rs` releases the record of a node that ends.
//!
//! [`CircleTable`]: crate::circle::CircleTable

use super::NodeHead;
use super::state::NodeClaim;
use crate::circle::table;
use std::task::Waker;

impl NodeHead {
    /// Step 3. of the poll of a body that is pending. False if the claim was given up.
    pub(crate) fn pause(&self, claim: NodeClaim) -> bool {
        let is_held = self.state.end_poll(claim);
        if !is_held {
            self.give_up_as(claim, true);
        }
        is_held
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
            if self.state.let_go(Some(claim), polls) {
                self.wake_all();
            }
            return;
        }
        let handles = {
            let mut table = table();
            if !self.state.let_go(Some(claim), polls) {
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
    pub(super) fn give_up_unwinding(&self) {
        // Only this OS thread ends the claim, because the mark says that it polls the body.
        self.give_up_as(self.state.polled_claim(), true);
    }

    #[cold]
    pub(super) fn release_record(&self) {
        let record = {
            let mut table = table();
            let record = table.release(self.record());
            self.set_record(0);
            record
        };
        drop(record);
    }
}
