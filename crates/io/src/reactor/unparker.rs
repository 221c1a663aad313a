//! `Unparker`: the object that ends an event loop's wait from another OS thread.
//! [`EventLoop`](crate::EventLoop) and the loop for foreign executors each hold one, and its
//! eventfd is in their epoll set.
//!
//! Callers of `unpark` are `core`, when another OS thread has woken a thread of the loop's CPU,
//! `fs/queue.rs`, and `fallback.rs` for a new wait. The eventfd is written only if the loop really
//! waits.

use crate::sys;
use selvedge_core::internal::Parker;
use selvedge_core::{Quiet, Unpark};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

const CALLED: u8 = Parker::<Quiet>::CALLED;

/// A [`Parker`] with an eventfd, which is written to only while the loop really waits.
///
/// A call before [`fall_asleep`](Unparker::fall_asleep) makes that return `false`, and a call after
/// it ends the wait: `core`'s `parker.rs` has the argument that no call is lost.
#[derive(Debug)]
pub(crate) struct Unparker {
    parker: Parker,
    eventfd: OwnedFd,
}

impl Unparker {
    pub(crate) fn new() -> io::Result<Unparker> {
        let eventfd = sys::eventfd()?;
        Ok(Unparker { parker: Parker::default(), eventfd })
    }

    /// The loop wants to wait. False if an `unpark` has come before; then the loop must not wait.
    pub(crate) fn fall_asleep(&self) -> bool {
        self.parker.sleep()
    }

    /// Whether an `unpark` asks that the loop's next wait ends.
    pub(crate) fn is_called(&self) -> bool {
        self.parker.has(CALLED)
    }

    /// Ends the wait of a loop that waits, also if the loop has been called already. A loop that
    /// does not wait has its next wait ended.
    pub(crate) fn end_wait(&self) {
        let _counting = sys::counting(sys::Call::Write);
        // The write can fail only because the counter is full, and a full counter has ended the
        // wait already.
        let _ = rustix::io::write(&self.eventfd, &1u64.to_ne_bytes());
    }

    /// The loop's wait is over.
    pub(crate) fn wake_up(&self) {
        self.parker.wake();
    }
}

impl AsFd for Unparker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.eventfd.as_fd()
    }
}

impl Unpark for Unparker {
    fn unpark(&self) {
        if self.parker.rouse(CALLED) {
            self.end_wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(unparker: &Unparker) -> bool {
        rustix::io::read(&unparker.eventfd, &mut [0; 8]).is_ok()
    }

    #[test]
    fn a_call_writes_only_to_a_sleeper_and_only_once() {
        let unparker = Unparker::new().unwrap();
        unparker.unpark();
        assert!(!written(&unparker));
        assert!(!unparker.fall_asleep(), "a call while awake is not lost");
        assert!(unparker.fall_asleep());
        unparker.unpark();
        unparker.unpark();
        assert!(written(&unparker));
        unparker.wake_up();
        assert!(unparker.fall_asleep());
        unparker.wake_up();
        assert!(!written(&unparker));
    }
}
