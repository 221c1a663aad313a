//! What a signal does.

use super::{Call, through};
use rustix::io::{Errno, Result};
use std::mem::MaybeUninit;
use std::ptr;

/// What a signal does, as `sigaction` tells and takes it.
pub(crate) use libc::sigaction as Action;

/// What a signal does now; and what it does from now on, if that is given.
///
/// # Errors
/// Those of `sigaction`: `EINVAL` for a signal that there is not.
///
/// # Safety
/// A handler in `action` may run between any two instructions of any OS thread, and has the signature that its flags say.
pub(crate) unsafe fn signal_action(number: i32, action: Option<&Action>) -> Result<Action> {
    through(Call::SignalAction, |_| {
        let mut before = MaybeUninit::uninit();
        let action = action.map_or(ptr::null(), ptr::from_ref);
        // SAFETY: both pointers are valid or null; what the handler may do is as the caller says.
        match unsafe { libc::sigaction(number, action, before.as_mut_ptr()) } {
            // SAFETY: sigaction has succeeded and so has filled it in.
            0 => Ok(unsafe { before.assume_init() }),
            _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)),
        }
    })
}
