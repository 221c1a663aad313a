//! Calls on signals: `signal_action` sets the action of a real signal, and two functions subscribe
//! to the signals of a simulated kernel and take them.
//!
//! `signal.rs` of this crate makes them all, and has the handler that `signal_action` installs.

use super::gate::{is_simulated, through};
use super::{Call, Fd, interposed};
use rustix::io::{Errno, Result};
use std::mem::MaybeUninit;
use std::ptr;

/// The action of a signal, in the form of `sigaction`.
pub(crate) use libc::sigaction as Action;

/// The present action of a signal. If `action` is given, it is the action from now on.
///
/// # Errors
/// Those of `sigaction`: `EINVAL` if there is no such signal.
///
/// # Safety
/// A handler in `action` may run between any two instructions of any OS thread. Its flags determine
/// its signature.
pub(crate) unsafe fn signal_action(number: i32, action: Option<&Action>) -> Result<Action> {
    through(Call::SignalAction, |_| {
        let mut before = MaybeUninit::uninit();
        let action = action.map_or(ptr::null(), ptr::from_ref);
        // SAFETY: both pointers are valid or null. The caller's contract covers the handler.
        match unsafe { libc::sigaction(number, action, before.as_mut_ptr()) } {
            // SAFETY: `sigaction` has succeeded, and so has written the value.
            0 => Ok(unsafe { before.assume_init() }),
            _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)),
        }
    })
}

/// A subscription to signals in the simulation of this OS thread; `None` if the OS thread has no
/// simulation.
pub(crate) fn simulated_signals(mask: u64) -> Option<Result<Fd>> {
    is_simulated().then(|| interposed::with(|kernel| Ok(Fd::simulated(kernel.signals()?.subscribe(mask)?))))
}

/// The number of the lowest signal that has come in for a simulated subscription and has not been
/// taken.
///
/// # Errors
/// `EAGAIN` if there is none.
pub(crate) fn take_simulated_signal(subscription: &Fd) -> Result<u32> {
    interposed::with(|kernel| kernel.signals()?.take_signal(subscription.0))
}
