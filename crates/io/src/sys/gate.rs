//! The way of a call through this layer: to the real kernel, or to what stands before it.
//!
//! The functions of the other files of `sys` make their calls by `on`, `make` and `through`. These
//! ask the interposition point (`interposed.rs`), count the call if the program wants that
//! (`calls.rs`), and choose the kernel.

use super::call::Call;
use super::interposed::{self, COUNTED, INTERPOSED, fate, is_interposed, is_only_counted};
use super::kernel::KernelCalls;
use crate::calls::{self, Counting};
use rustix::io::{Errno, Result};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Whether the calls of this OS thread go to a simulated kernel.
#[inline]
pub fn is_simulated() -> bool {
    is_interposed() && interposed::is_here()
}

/// How long a call that may block takes in the simulation of this OS thread. `None` if the OS
/// thread has no simulation; the caller then makes the call elsewhere.
#[inline]
pub(crate) fn simulated_delay() -> Option<Duration> {
    if !is_simulated() {
        return None;
    }
    interposed::with(|kernel| Ok(kernel.files()?.disk_delay())).ok()
}

/// Whether the simulation of this OS thread performs an operation on a file even though its thread
/// has given the operation up.
pub(crate) fn goes_on() -> bool {
    interposed::with(|kernel| Ok(kernel.files()?.goes_on())).unwrap_or(false)
}

/// Counts a call on a descriptor before which something stands, if nothing but the count changes
/// it: the OS thread is in no simulation, there are no faults, and the descriptor is the real
/// kernel's.
#[inline]
pub(super) fn only_counted(call: Call, fd: impl AsFd) -> Option<Counting> {
    let is_real = || !interposed::is_here() && !interposed::has_faults() && fd.as_fd().as_raw_fd() >= 0;
    (is_only_counted() || is_real()).then(|| counting(call))
}

/// Counts and times a call until the guard is dropped, if the program has asked for it. It may be a
/// call that another module makes.
#[inline]
pub fn counting(call: Call) -> Counting {
    counting_as(call as usize)
}

/// Like [`counting`]. If the call `waits`, so that only an event ends it, it counts as a wait.
#[inline]
pub(crate) fn counting_wait(call: Call, waits: bool) -> Counting {
    counting_as(if waits { calls::WAIT } else { call as usize })
}

/// A call on a ring. If it `waits`, only an event ends it. The call has no simulated form, because
/// operations on a simulated disk go to no ring.
#[inline]
pub(crate) fn on_ring<T>(call: Call, waits: bool, real: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let _counting = counting_wait(call, waits);
    if is_interposed() {
        fate(call)?;
    }
    real()
}

#[inline]
fn counting_as(kind: usize) -> Counting {
    Counting::begin(kind, INTERPOSED.load(Ordering::Relaxed) & COUNTED != 0)
}

/// A call on a descriptor: makes the `real` or the `simulated` call, for at most as many bytes as
/// faults allow.
#[inline(always)]
pub(super) fn on<T>(
    call: Call,
    fd: impl AsFd,
    real: impl FnOnce(BorrowedFd<'_>, usize) -> Result<T>,
    simulated: impl FnOnce(&mut dyn KernelCalls, RawFd, usize) -> Result<T>,
) -> Result<T> {
    let fd = fd.as_fd();
    if !is_interposed() {
        return real(fd, usize::MAX);
    }
    let _counting = counting(call);
    let limit = fate(call)?;
    match fd.as_raw_fd() {
        raw if raw < 0 => interposed::with(|kernel| simulated(kernel, raw, limit)),
        _ => real(fd, limit),
    }
}

/// A call that makes a descriptor: makes the `real` or the `simulated` call.
pub(super) fn make<T>(
    call: Call,
    real: impl FnOnce() -> Result<T>,
    simulated: impl FnOnce(&mut dyn KernelCalls) -> Result<T>,
) -> Result<T> {
    if !is_interposed() {
        return real();
    }
    let _counting = counting(call);
    fate(call)?;
    if interposed::is_here() { interposed::with(simulated) } else { real() }
}

/// A call that a simulated kernel does not know: in a simulation it fails with `OPNOTSUPP`.
pub(super) fn through<T, E: From<Errno>>(
    call: Call,
    real: impl FnOnce(usize) -> std::result::Result<T, E>,
) -> std::result::Result<T, E> {
    if !is_interposed() {
        return real(usize::MAX);
    }
    let _counting = counting(call);
    let limit = fate(call)?;
    if interposed::is_here() { Err(Errno::OPNOTSUPP.into()) } else { real(limit) }
}
