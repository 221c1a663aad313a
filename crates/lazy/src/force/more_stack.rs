//! More native stack for blocking forces within one another: [`on_more_stack`].
//!
//! A closure that blocks for another value has its frames on the native stack until that value is
//! there. No such frame can be left, so a long chain of these closures needs much stack. From a
//! depth of [`NESTED`](super::NESTED) on, the chain goes on upon an OS thread that has [`STACK`]
//! bytes for it, while the one before waits. A body is Send, so it may run there.
//!
//! `settle_blocking` in `force.rs` calls both functions, and `BodyFrame::is_too_deep` asks
//! [`has_room`] before it refuses a force. The frames of all these OS threads are one
//! list, because each lives until the next OS thread has ended. So a circle is found across them.

use super::RestoreFrame;
use selvedge_core::internal::{exchange_frame, exchange_task_context, task_context};
use std::cell::Cell;
use std::panic::resume_unwind;
use std::thread;

/// The bytes of the native stack of an OS thread that goes on with a chain. The kernel gives it
/// memory as it is used.
const STACK: usize = if cfg!(miri) { 1 << 16 } else { 64 << 20 };
/// The bytes of it that forces use. The rest is for the frames of the body that comes last.
const USED: usize = STACK / 4 * 3;

std::thread_local! {
    /// An address near the begin of the stack, on an OS thread of `on_more_stack`. 0 on others.
    static BEGIN: Cell<usize> = const { Cell::new(0) };
}

/// An address on the native stack of the caller.
#[inline(never)]
fn here() -> usize {
    let local = 0_u8;
    std::hint::black_box(&raw const local).addr()
}

/// Whether the caller runs on an OS thread that has stack left for a further force.
pub(super) fn has_room() -> bool {
    let begin = BEGIN.get();
    begin != 0 && begin.abs_diff(here()) < USED
}

/// The frame of an evaluation, as the OS thread that goes on with the chain gets it.
struct CarriedFrame(*const ());

// SAFETY: the OS thread that has the frame waits until the OS thread that gets it has ended. Only
// the latter uses the frame meanwhile, and the nodes that the frame leads to are Sync.
unsafe impl Send for CarriedFrame {}

impl CarriedFrame {
    fn into_inner(self) -> *const () {
        self.0
    }
}

/// Runs `work` on an OS thread of its own. `frame` is that of the caller, and `depth` its depth.
///
/// # Panics
/// As `work` does, and if the kernel refuses an OS thread.
#[cold]
#[inline(never)]
pub(super) fn on_more_stack(depth: u32, frame: *const (), work: impl FnOnce() + Send) {
    let (frame, context) = (CarriedFrame(frame), task_context());
    let work = move || {
        BEGIN.set(here());
        exchange_task_context(context);
        let _restore = RestoreFrame(exchange_frame(frame.into_inner()));
        work();
    };
    let ended = thread::scope(|scope| {
        let started = thread::Builder::new().name("lazy".into()).stack_size(STACK).spawn_scoped(scope, work);
        started.map(thread::ScopedJoinHandle::join)
    });
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(payload)) => resume_unwind(payload),
        Err(error) => panic!(
            "lazy values block for one another {depth} deep, and no OS thread could be started for the rest of the \
             chain: {error}. Let the bodies be futures that await one another: Lazy::future, Lazy::map"
        ),
    }
}
