//! Foreign code where nothing may unwind ([`quietly`]): destructors of the program, foreign wakers.
//!
//! Called where a half-done change of this crate's own state would be seen by an unwinding caller:
//! at the end of a step, in queues that wake wakers, in event loops of `io`. The panic hook has
//! reported the panic before it ends here.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Drops a value. A panic in its destructor ends here, after the panic hook has reported it.
///
/// # Safety
/// As for [`std::ptr::drop_in_place`].
pub(crate) unsafe fn drop_quietly<T>(value: *mut T) {
    // SAFETY: the caller's contract.
    quietly(|| unsafe { value.drop_in_place() });
}

/// Runs foreign code where nothing may unwind. A panic ends here, after the panic hook has reported
/// it.
pub fn quietly(code: impl FnOnce()) {
    let Err(payload) = catch_unwind(AssertUnwindSafe(code)) else { return };
    // Its destructor may panic too.
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(payload);
    }
}
