//! The `SignalCalls` of `Kernel`: the calls on subscriptions to signals (`Subscription`), with the
//! signals that are pending in each.
//!
//! `selvedge-io`'s `signal.rs` subscribes and takes signals; [`raise`](crate::raise) makes one
//! pending. A subscription is a descriptor that is readable while a signal is pending in it.

use super::*;

impl SignalCalls for Kernel {
    fn subscribe(&mut self, mask: u64) -> Result<RawFd> {
        self.has_descriptor_left()?;
        let id = self.add(ObjectKind::Signals(Subscription { mask, pending: 0 }));
        Ok(self.describe(id))
    }

    /// Takes the pending signal with the lowest number; `AGAIN` if none is pending.
    fn take_signal(&mut self, fd: RawFd) -> Result<u32> {
        let id = self.id(fd)?;
        let Some(KernelObject { kind: ObjectKind::Signals(subscription), .. }) = self.object(id) else {
            return Err(Errno::INVAL);
        };
        if subscription.pending == 0 {
            return Err(Errno::AGAIN);
        }
        let bit = subscription.pending.trailing_zeros();
        subscription.pending &= subscription.pending - 1;
        Ok(bit + 1)
    }

    /// Makes a signal pending in the subscriptions to it; how many there are.
    fn raise(&mut self, bit: u64) -> usize {
        self.note(bit);
        let mut told = Vec::new();
        for (id, object) in self.objects.iter_mut().enumerate() {
            if let Some(KernelObject { kind: ObjectKind::Signals(subscription), .. }) = object
                && subscription.mask & bit != 0
            {
                subscription.pending |= bit;
                told.push(id as Id);
            }
        }
        told.iter().for_each(|&id| self.edge(id));
        told.len()
    }
}
