//! The things that stand between the calls and the kernel: the kernel of a test, the faults of a
//! test, or the counting of calls. The door's functions ask here before they go to the real kernel.

use super::{Call, KernelCalls};
use rustix::io::{Errno, Result};
use std::cell::{Cell, RefCell};
use std::os::fd::RawFd;
use std::rc::Rc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of things that stand between the process's calls and the kernel, with the flag
/// [`COUNTED`]. While it is 0, the door reads nothing else.
pub(crate) static DISTURBED: AtomicUsize = AtomicUsize::new(0);

/// The calls are counted. They still go to the kernel.
pub(crate) const COUNTED: usize = 1 << (usize::BITS - 1);

/// Whether anything stands before the kernel, or the calls are counted.
#[inline(always)]
pub(super) fn is_disturbed() -> bool {
    DISTURBED.load(Ordering::Relaxed) != 0
}

/// Whether the calls are counted, and the door does nothing else to them.
#[inline]
pub(super) fn is_only_counted() -> bool {
    DISTURBED.load(Ordering::Relaxed) == COUNTED
}

/// The number of low bits of a simulated descriptor that hold its index. A simulated descriptor is
/// negative, so that the real kernel refuses it. Above these bits it has its kernel's generation,
/// so that a descriptor that outlives its kernel does not name a descriptor of the next kernel.
pub(crate) const NUMBER_BITS: u32 = 20;
/// The generation that no kernel has, so that -1 and `AT_FDCWD` are not simulated descriptors.
pub(crate) const NO_GENERATION: u32 = (1 << (31 - NUMBER_BITS)) - 1;

/// The index of a simulated descriptor; `None` for every other number.
#[inline]
pub(crate) fn number(fd: RawFd) -> Option<usize> {
    let bits = fd as u32;
    let simulated = fd < 0 && bits << 1 >> (NUMBER_BITS + 1) != NO_GENERATION;
    simulated.then_some((bits & ((1 << NUMBER_BITS) - 1)) as usize)
}

/// A kernel that answers the calls of an OS thread. Its installer holds another handle to it.
type Shared = Rc<RefCell<dyn KernelCalls>>;

thread_local! {
    static KERNEL: RefCell<Option<Shared>> = const { RefCell::new(None) };
    /// Whether this OS thread has a kernel of its own.
    static HERE: Cell<bool> = const { Cell::new(false) };
}

/// Makes the calls of this OS thread go to a kernel, until the caller calls [`uninstall`].
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

/// Calls the kernel of this OS thread; `EBADF` if it has none.
pub(crate) fn with<T>(call: impl FnOnce(&mut dyn KernelCalls) -> Result<T>) -> Result<T> {
    KERNEL.with_borrow(|kernel| {
        kernel.as_ref().map_or(Err(Errno::BADF), |kernel| call(&mut *kernel.borrow_mut()))
    })
}

/// Closes a simulated descriptor. Without effect if its kernel is gone.
#[cold]
pub(super) fn close(fd: RawFd) {
    // When an OS thread ends, its thread-local may be gone already.
    let _ = KERNEL.try_with(|kernel| {
        if let Some(kernel) = kernel.borrow().as_ref() {
            kernel.borrow_mut().close(fd);
        }
    });
}

/// The function that decides, before a call is made, how many bytes the call may transfer, or how
/// it fails.
type Fate = fn(Call) -> Result<usize>;

/// The function that faults have given to the door; empty if the process has never had faults.
static FATE: OnceLock<Fate> = OnceLock::new();

/// From now on the door asks `fate` about each call that [is disturbed](is_disturbed). If several
/// functions are given, the first stays.
pub(crate) fn ask(fate: Fate) {
    FATE.get_or_init(|| fate);
}

/// Decides about a call before it is made: the number of bytes that it may transfer, or its error.
pub(super) fn fate(call: Call) -> Result<usize> {
    match FATE.get() {
        Some(fate) if !is_only_counted() => fate(call),
        _ => Ok(usize::MAX),
    }
}
