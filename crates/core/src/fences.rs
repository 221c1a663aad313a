//! A pair of fences of which one costs no instruction: [`light_fence`] and [`heavy_fence`].
//!
//! `biased.rs` uses them, and so do `stm`'s `session.rs` and `lazy`'s `primitives.rs`. The schedulers
//! of `sched` with several OS threads call [`prepare_heavy_fence`]. A caller of `heavy_fence` needs another
//! way for kernels without membarrier(2), where it returns false.

#[cfg(loom)]
use loom::sync::atomic::{Ordering, fence};
#[cfg(all(miri, not(loom)))]
use std::sync::atomic::{Ordering, fence};
#[cfg(not(any(loom, miri)))]
use {
    rustix::thread::{MembarrierCommand, membarrier},
    std::sync::OnceLock,
    std::sync::atomic::{Ordering, compiler_fence},
};

/// The side of a pair of fences that runs often. It keeps the compiler from moving a load before a
/// store, and is no instruction. The other side is [`heavy_fence`].
///
/// Loom and Miri do not know membarrier(2). For them both sides are `SeqCst` fences, which promise
/// no less and no more.
///
/// # Examples
/// Of two OS threads that each store to a flag of their own and then load the other one's, one at
/// least sees the other's store:
/// ```
/// use selvedge_core::{heavy_fence, light_fence};
/// use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
///
/// let (often, seldom) = (AtomicBool::new(false), AtomicBool::new(false));
/// std::thread::scope(|scope| {
///     let sees_seldom = scope.spawn(|| {
///         often.store(true, Relaxed);
///         light_fence();
///         seldom.load(Relaxed)
///     });
///     seldom.store(true, Relaxed);
///     if heavy_fence() {
///         let sees_often = often.load(Relaxed);
///         assert!(sees_seldom.join().unwrap() || sees_often);
///     }
/// });
/// ```
#[inline(always)]
pub fn light_fence() {
    #[cfg(any(loom, miri))]
    fence(Ordering::SeqCst);
    #[cfg(not(any(loom, miri)))]
    compiler_fence(Ordering::SeqCst);
}

/// The side of a pair of fences that runs seldom: membarrier(2). The kernel has each running OS
/// thread of the process pass a full fence between the begin and the end of the call. False if the
/// kernel has no such call, and nothing has been ordered.
///
/// # Complexity
/// A system call, which interrupts each OS thread of the process that runs: some microseconds.
#[cfg(any(loom, miri))]
pub fn heavy_fence() -> bool {
    fence(Ordering::SeqCst);
    true
}

/// The side of a pair of fences that runs seldom: membarrier(2). The kernel has each running OS
/// thread of the process pass a full fence between the begin and the end of the call. False if the
/// kernel has no such call, and nothing has been ordered.
///
/// # Complexity
/// A system call, which interrupts each OS thread of the process that runs: some microseconds.
#[cfg(not(any(loom, miri)))]
pub fn heavy_fence() -> bool {
    prepare_heavy_fence() && membarrier(MembarrierCommand::PrivateExpedited).is_ok()
}

/// Tells the kernel that the process will use [`heavy_fence`]. False if the kernel has no such
/// call. The first call of [`heavy_fence`] does it too.
///
/// # Complexity
/// One system call in the life of the process. It takes less than a microsecond while the process
/// has one OS thread, and some 10 ms later, because the kernel then waits until each CPU has
/// switched. So a scheduler calls it before it starts its OS threads.
#[cfg(not(any(loom, miri)))]
pub fn prepare_heavy_fence() -> bool {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    *REGISTERED.get_or_init(|| membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok())
}

/// Tells the kernel that the process will use [`heavy_fence`]: nothing is to be told here.
#[cfg(any(loom, miri))]
pub fn prepare_heavy_fence() -> bool {
    true
}
