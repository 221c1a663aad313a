//! The interposition point: what stands between the functions of [`sys`](super) and the real
//! kernel.
//!
//! Four things can stand there, and `INTERPOSED` says whether any of them does:
//!
//! - a **simulated kernel**, which [`install`] gives to one OS thread: all calls go to it;
//! - a kernel **beside** the real one, which [`install_beside`] gives to one OS thread: the calls
//!   on its own descriptors go to it, and all others to the real kernel;
//! - **faults**, a function that `ask` registers for the process (`faults.rs`);
//! - the **count** of the calls (`calls.rs`), which changes no call.
//!
//! The module is public for `selvedge-sim` and `selvedge-stack`, which install their kernels here,
//! and hidden because programs have no use for it: see [`kernel`](super::kernel).

use super::call::Call;
use super::kernel::KernelCalls;
use rustix::io::{Errno, Result};
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::os::fd::RawFd;
use std::rc::Rc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many other kernels and faults there are in the process, plus [`COUNTED`] if the calls are
/// counted. While the word is 0, a call loads it and looks at nothing else.
pub(crate) static INTERPOSED: AtomicUsize = AtomicUsize::new(0);

/// The bit of [`INTERPOSED`] that says that the calls are counted.
pub(crate) const COUNTED: usize = 1 << (usize::BITS - 1);

/// Whether another kernel, faults or the count stand before the real kernel.
#[inline(always)]
pub(super) fn is_interposed() -> bool {
    INTERPOSED.load(Ordering::Relaxed) != 0
}

/// Whether the calls are counted, and nothing else is done to them.
#[inline]
pub(super) fn is_only_counted() -> bool {
    INTERPOSED.load(Ordering::Relaxed) == COUNTED
}

/// The width of the number in a simulated descriptor. The descriptor is negative, so the real
/// kernel knows no file by it. Above the number it has its kernel's generation, so a descriptor
/// that outlives its kernel is not taken for a descriptor of the next kernel.
pub const NUMBER_BITS: u32 = 20;
/// The generation that no kernel has, so that -1 and `AT_FDCWD` are no simulated descriptors.
pub const NO_GENERATION: u32 = (1 << (31 - NUMBER_BITS)) - 1;

/// The number in a simulated descriptor; `None` if the descriptor is a real one, or none at all.
#[inline]
pub fn number(fd: RawFd) -> Option<usize> {
    let bits = fd as u32;
    let simulated = fd < 0 && bits << 1 >> (NUMBER_BITS + 1) != NO_GENERATION;
    simulated.then_some((bits & ((1 << NUMBER_BITS) - 1)) as usize)
}

/// A simulated kernel. Its installer keeps a handle to it.
type SharedKernel = Rc<RefCell<dyn KernelCalls>>;

/// Which calls of an OS thread go to the kernel that is installed there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// None: there is no such kernel.
    Nothing,
    /// Those on its descriptors.
    Beside,
    /// All.
    World,
}

thread_local! {
    static KERNEL: RefCell<Option<SharedKernel>> = const { RefCell::new(None) };
    static HERE: Cell<Extent> = const { Cell::new(Extent::Nothing) };
}

/// The calls of the OS thread that made this value go to another kernel. Dropping the value gives
/// the OS thread back to the real kernel, also when a run unwinds.
#[derive(Debug)]
#[must_use = "dropping it takes the kernel away"]
pub struct Installed {
    /// The value stays on its OS thread, because its destructor changes variables of that thread.
    _local: PhantomData<*const ()>,
}

/// Makes the calls of this OS thread go to a simulated kernel, as long as the result lives.
pub fn install(kernel: SharedKernel) -> Installed {
    install_for(Extent::World, kernel)
}

/// Makes the calls of this OS thread on descriptors of this kernel go to it, as long as the result
/// lives. An epoll set of the real kernel may have such descriptors among its own.
///
/// The events of the descriptors come from threads of this OS thread alone: a loop that sleeps in
/// the real kernel is not woken for them. The numbers in the descriptors ([`number`]) are those of
/// real descriptors that the kernel keeps open, because the tables of the event loops have one
/// place for both.
pub fn install_beside(kernel: SharedKernel) -> Installed {
    install_for(Extent::Beside, kernel)
}

fn install_for(extent: Extent, kernel: SharedKernel) -> Installed {
    KERNEL.set(Some(kernel));
    HERE.set(extent);
    INTERPOSED.fetch_add(1, Ordering::SeqCst);
    Installed { _local: PhantomData }
}

impl Drop for Installed {
    fn drop(&mut self) {
        INTERPOSED.fetch_sub(1, Ordering::SeqCst);
        HERE.set(Extent::Nothing);
        drop(KERNEL.take());
    }
}

/// Whether this OS thread has a simulated kernel, to which all its calls go.
pub(super) fn is_here() -> bool {
    HERE.get() == Extent::World
}

/// Whether this OS thread has a kernel beside the real one.
pub(super) fn is_beside() -> bool {
    HERE.get() == Extent::Beside
}

/// Whether faults of the process are asked about each call.
pub(super) fn has_faults() -> bool {
    FATE.get().is_some()
}

/// Calls the simulated kernel of this OS thread.
///
/// # Errors
/// Those of `call`; `EBADF` if the OS thread has no simulated kernel.
pub fn with<T>(call: impl FnOnce(&mut dyn KernelCalls) -> Result<T>) -> Result<T> {
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

/// Decides about a call that is about to be made: how many bytes the call may transfer, or the
/// error that it fails with.
type Fate = fn(Call) -> Result<usize>;

/// The function that the first faults of the process registered.
static FATE: OnceLock<Fate> = OnceLock::new();

/// From now on [`fate`] asks this function about each call. The first function that is registered
/// stays.
pub(crate) fn ask(fate: Fate) {
    FATE.get_or_init(|| fate);
}

/// How many bytes a call may transfer that is about to be made.
///
/// # Errors
/// The error that a fault gives to the call.
pub(super) fn fate(call: Call) -> Result<usize> {
    match FATE.get() {
        Some(fate) if !is_only_counted() => fate(call),
        _ => Ok(usize::MAX),
    }
}
