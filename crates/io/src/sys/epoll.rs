//! Calls on epoll sets and eventfds.
//!
//! `reactor/epoll.rs` and `reactor/exclusive.rs` make the calls on sets. `reactor/unparker.rs` and
//! `signal.rs` create eventfds. The simulated side of an epoll set is the trait `EpollCalls`
//! (`kernel.rs`); an eventfd is real in a simulation too. A real set may have descriptors of a
//! kernel beside the real one (`interposed.rs`): that kernel keeps them by the set's number, and
//! `epoll_wait` takes the events of both.

use super::gate::{counting, counting_wait, make, on};
use super::interposed::{self, fate, is_interposed};
use super::{Call, Fd};
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec};
use rustix::io::{Errno, Result};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// A new epoll set.
pub(crate) fn epoll_create() -> Result<Fd> {
    let real = || Ok(epoll::create(CreateFlags::CLOEXEC)?.into());
    make(Call::EpollCreate, real, |kernel| Ok(Fd::simulated(kernel.epoll_create()?)))
}

/// Puts a descriptor into an epoll set.
pub(crate) fn epoll_add(set: &Fd, fd: impl AsFd, data: u64, flags: EventFlags) -> Result<()> {
    let fd = fd.as_fd();
    let real = |_: BorrowedFd<'_>, _| epoll::add(set, fd, EventData::new_u64(data), flags);
    on(Call::EpollControl, of_either(set, fd), real, |kernel, _, _| {
        kernel.epoll_add(set.0, fd.as_raw_fd(), data, flags)
    })
}

/// Changes the registration of a descriptor that is in an epoll set already.
pub(crate) fn epoll_modify(set: &Fd, fd: impl AsFd, data: u64, flags: EventFlags) -> Result<()> {
    let fd = fd.as_fd();
    let real = |_: BorrowedFd<'_>, _| epoll::modify(set, fd, EventData::new_u64(data), flags);
    on(Call::EpollControl, of_either(set, fd), real, |kernel, _, _| {
        kernel.epoll_modify(set.0, fd.as_raw_fd(), data, flags)
    })
}

/// Takes a descriptor out of an epoll set.
pub(crate) fn epoll_delete(set: &Fd, fd: impl AsFd) -> Result<()> {
    let fd = fd.as_fd();
    let real = |_: BorrowedFd<'_>, _| epoll::delete(set, fd);
    on(Call::EpollControl, of_either(set, fd), real, |kernel, _, _| {
        kernel.epoll_delete(set.0, fd.as_raw_fd())
    })
}

/// The descriptor that tells which kernel a call on a set and its member goes to: the member if it
/// is another kernel's, else the set.
fn of_either<'a>(set: &'a Fd, member: BorrowedFd<'a>) -> BorrowedFd<'a> {
    if member.as_raw_fd() < 0 { member } else { set.as_fd() }
}

/// Whether [`epoll_wait`] would find events of a kernel beside the real one.
#[inline]
pub(crate) fn has_events_beside(set: &Fd) -> bool {
    is_interposed()
        && interposed::is_beside()
        && interposed::with(|kernel| Ok(kernel.has_events(set.0))).unwrap_or(false)
}

/// Waits for events, and returns the events that have come.
#[inline]
pub(crate) fn epoll_wait<'a>(
    set: &Fd,
    events: &'a mut [MaybeUninit<Event>],
    timeout: Option<&Timespec>,
) -> Result<&'a [Event]> {
    if !is_interposed() {
        return Ok(&*epoll::wait(set, events, timeout)?.0);
    }
    let waits = timeout.is_none_or(|timeout| (timeout.tv_sec, timeout.tv_nsec) != (0, 0));
    let _counting = counting_wait(Call::EpollWait, waits);
    fate(Call::EpollWait)?;
    if !set.is_simulated() {
        return wait_for_both(set, events, timeout);
    }
    let timeout = timeout.map(|t| Duration::new(t.tv_sec as u64, t.tv_nsec as u32));
    let taken = interposed::with(|kernel| {
        kernel.interrupt()?;
        kernel.epoll_wait(set.0, events.len(), timeout)
    })?;
    Ok(events[..taken.len()].write_copy_of_slice(&taken))
}

/// Waits for events of the real kernel, and of a kernel beside it if this OS thread has one. If
/// that kernel has events, the call does not wait.
fn wait_for_both<'a>(
    set: &Fd,
    events: &'a mut [MaybeUninit<Event>],
    timeout: Option<&Timespec>,
) -> Result<&'a [Event]> {
    if !interposed::is_beside() {
        return Ok(&*epoll::wait(set, events, timeout)?.0);
    }
    let beside = interposed::with(|kernel| kernel.epoll_wait(set.0, events.len() / 2, Some(Duration::ZERO)))?;
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let timeout = if beside.is_empty() { timeout } else { Some(&at_once) };
    let (first, rest) = events.split_at_mut(beside.len());
    first.write_copy_of_slice(&beside);
    let real = match epoll::wait(set, rest, timeout) {
        // The events that were taken must not be lost.
        Err(Errno::INTR) if !beside.is_empty() => 0,
        taken => taken?.0.len(),
    };
    // SAFETY: `write_copy_of_slice` has written the first `beside.len()` events, and `epoll::wait`
    // the `real` events that follow.
    Ok(unsafe { events[..beside.len() + real].assume_init_ref() })
}

/// A new eventfd in non-blocking mode. In a simulation it is a real eventfd too; there no call
/// waits for it.
pub(crate) fn eventfd() -> Result<OwnedFd> {
    let _counting = counting(Call::Eventfd);
    if is_interposed() {
        fate(Call::Eventfd)?;
    }
    rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
}
