//! [`WaitingTx`]: the thread of one transaction that waits.

use selvedge_core::{Queue, Role, Shared, WaitQueue, Waiting};
use std::panic::Location;

/// One transaction that waits. The state tells whether a variable that it has read was written.
pub(crate) struct WaitingTx(WaitQueue<bool, ()>);

pub(crate) enum WokenRole {}

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
    pub(crate) fn new() -> WaitingTx {
        WaitingTx(WaitQueue::new(false))
    }

    pub(crate) fn wake(&self) {
        self.0.with(|is_woken, queue| {
            *is_woken = true;
            queue.grant();
        });
    }

    /// Waits until the transaction is woken. The thread is listed with `place`.
    #[inline(always)]
    pub(crate) fn wait_at(
        &self,
        place: &'static Location<'static>,
    ) -> Waiting<'_, bool, (), WokenRole, Shared> {
        self.0.wait_at((), place)
    }
}
