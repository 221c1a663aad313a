//! What stands between the calls and the kernel: a kernel of a test's, a test's faults, or the
//! count of the calls.

use super::{Call, KernelCalls};
use rustix::io::{Errno, Result};
use std::cell::{Cell, RefCell};
use std::os::fd::RawFd;
use std::rc::Rc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many things stand between the process's calls and the kernel, and [`COUNTED`]. The door
/// looks at nothing else while it is 0.
pub(crate) static DISTURBED: AtomicUsize = AtomicUsize::new(0);

/// The calls are counted. They go to the kernel all the same.
pub(crate) const COUNTED: usize = 1 << (usize::BITS - 1);

/// Whether anything at all stands before the kernel, or the calls are counted.
#[inline(always)]
pub(super) fn is_disturbed() -> bool {
    DISTURBED.load(Ordering::Relaxed) != 0
}

/// Whether the calls are counted, and nothing else is done to them.
#[inline]
pub(super) fn is_only_counted() -> bool {
    DISTURBED.load(Ordering::Relaxed) == COUNTED
}

/// A simulated descriptor's number, which the real kernel takes for none: negative, with its
/// kernel's generation above
/// these bits, so that a descriptor that outlives its kernel is not taken for one of the next.
pub(crate) const NUMBER_BITS: u32 = 20;
/// Of the generation that no kernel has, so that -1 and `AT_FDCWD` are no simulated descriptors.
pub(crate) const NO_GENERATION: u32 = (1 << (31 - NUMBER_BITS)) - 1;

/// The number of a simulated descriptor; `None` if it is a real one, or none at all.
#[inline]
pub(crate) fn number(fd: RawFd) -> Option<usize> {
    let bits = fd as u32;
    let simulated = fd < 0 && bits << 1 >> (NUMBER_BITS + 1) != NO_GENERATION;
    simulated.then_some((bits & ((1 << NUMBER_BITS) - 1)) as usize)
}

/// A kernel that calls are to go to, with its installer's handle to it.
type Shared = Rc<RefCell<dyn KernelCalls>>;

thread_local! {
    static KERNEL: RefCell<Option<Shared>> = const { RefCell::new(None) };
    /// Whether this OS thread has one.
    static HERE: Cell<bool> = const { Cell::new(false) };
}

/// Makes the calls of this OS thread go to a kernel, until [`uninstall`] is called.
pub(crate) fn install(kernel: Shared) {
    KERNEL.set(Some(kernel));
    HERE.set(true);
    DISTURBED.fetch_add(1, Ordering::SeqCst);
}

/// Gives the OS thread back to the real kernel.
pub(crate) fn uninstall() {
    DISTURBED.fetch_sub(1, Ordering::SeqCst);
    HERE.set(false);
    drop(KERNEL.take());
}

/// Whether this OS thread has a kernel of its own.
pub(super) fn is_here() -> bool {
    HERE.get()
}

/// The kernel of this OS thread; `EBADF` if it has none.
pub(crate) fn with<T>(call: impl FnOnce(&mut dyn KernelCalls) -> Result<T>) -> Result<T> {
    KERNEL.with_borrow(|kernel| {
        kernel.as_ref().map_or(Err(Errno::BADF), |kernel| call(&mut *kernel.borrow_mut()))
    })
}

/// Closes a simulated descriptor; without effect if its kernel is gone.
#[cold]
pub(super) fn close(fd: RawFd) {
    // The thread-local may be gone already when an OS thread ends.
    let _ = KERNEL.try_with(|kernel| {
        if let Some(kernel) = kernel.borrow().as_ref() {
            kernel.borrow_mut().close(fd);
        }
    });
}

/// What says how many bytes a call may transfer that is about to be made, or how it fails.
type Fate = fn(Call) -> Result<usize>;

/// What faults have told the door to ask; nothing, if the process has never had any.
static FATE: OnceLock<Fate> = OnceLock::new();

/// From now on the door asks `fate` about each call that [is disturbed](is_disturbed). The first
/// that is given stays.
pub(crate) fn ask(fate: Fate) {
    FATE.get_or_init(|| fate);
}

/// What happens to a call that is about to be made: how many bytes it may transfer.
pub(super) fn fate(call: Call) -> Result<usize> {
    match FATE.get() {
        Some(fate) if !is_only_counted() => fate(call),
        _ => Ok(usize::MAX),
    }
}
