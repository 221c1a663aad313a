//! The object that ends an event loop's wait from another OS thread.
//! [`EventLoop`](crate::EventLoop) and the loop for foreign executors each hold a [`Caller`].

use crate::sys;
use selvedge_core::Unpark;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed, Ordering::SeqCst};

/// The loop is awake and will look again before it waits.
const AWAKE: u8 = 0;
/// The loop waits, or is about to wait without looking again.
const ASLEEP: u8 = 1;
/// An `unpark` asks that the loop's next wait ends.
const CALLED: u8 = 2;

/// An eventfd that `unpark` writes to only when the loop really waits.
///
/// ```text
///            fall_asleep              call: writes to the eventfd
///   AWAKE ─────────────────▶ ASLEEP ─────────────────▶ CALLED
///     │ call: no system call    │ wake_up                │ wake_up, or fall_asleep (which says no)
///     └────────▶ CALLED         └──▶ AWAKE               └──▶ AWAKE
/// ```
///
/// No call is lost: a `call` before `fall_asleep` makes `fall_asleep` return false, and a `call`
/// after it ends the wait.
#[derive(Debug)]
pub(crate) struct Caller {
    state: AtomicU8,
    eventfd: OwnedFd,
}

impl Caller {
    pub(crate) fn new() -> io::Result<Caller> {
        let eventfd = sys::eventfd()?;
        Ok(Caller { state: AtomicU8::new(AWAKE), eventfd })
    }

    /// The loop wants to wait. False if an `unpark` has come before; then the loop must not wait.
    pub(crate) fn fall_asleep(&self) -> bool {
        let slept = self.state.compare_exchange(AWAKE, ASLEEP, SeqCst, SeqCst).is_ok();
        if !slept {
            self.state.store(AWAKE, SeqCst);
        }
        slept
    }

    /// Whether an `unpark` asks that the loop's next wait ends.
    pub(crate) fn is_called(&self) -> bool {
        self.state.load(Relaxed) == CALLED
    }

    /// The loop's wait is over.
    pub(crate) fn wake_up(&self) {
        self.state.store(AWAKE, SeqCst);
    }
}

impl AsFd for Caller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.eventfd.as_fd()
    }
}

impl Unpark for Caller {
    fn unpark(&self) {
        if self.state.swap(CALLED, SeqCst) == ASLEEP {
            let _counting = sys::counting(sys::Call::Write);
            // The write can fail only because the counter is full, and a full counter has ended the
            // wait already.
            let _ = rustix::io::write(&self.eventfd, &1u64.to_ne_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(caller: &Caller) -> bool {
        rustix::io::read(&caller.eventfd, &mut [0; 8]).is_ok()
    }

    #[test]
    fn a_call_writes_only_to_a_sleeper_and_only_once() {
        let caller = Caller::new().unwrap();
        caller.unpark();
        assert!(!written(&caller));
        assert!(!caller.fall_asleep(), "a call while awake is not lost");
        assert!(caller.fall_asleep());
        caller.unpark();
        caller.unpark();
        assert!(written(&caller));
        caller.wake_up();
        assert!(caller.fall_asleep());
        caller.wake_up();
        assert!(!written(&caller));
    }
}
