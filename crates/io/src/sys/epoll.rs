//! Calls on epoll sets and eventfds.
//!
//! `reactor/epoll.rs` and `reactor/exclusive.rs` make the calls on sets. `reactor/unparker.rs` and
//! `signal.rs` create eventfds. The simulated side of an epoll set is the trait `EpollCalls`
//! (`kernel.rs`); an eventfd is real in a simulation too.

use super::gate::{counting, counting_wait, make, on};
use super::interposed::{self, fate, is_interposed};
use super::{Call, Fd};
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec};
use rustix::io::Result;
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
    let real = |set: BorrowedFd<'_>, _| epoll::add(set, fd, EventData::new_u64(data), flags);
    on(Call::EpollControl, set, real, |kernel, set, _| kernel.epoll_add(set, fd.as_raw_fd(), data, flags))
}

/// Changes the registration of a descriptor that is in an epoll set already.
pub(crate) fn epoll_modify(set: &Fd, fd: impl AsFd, data: u64, flags: EventFlags) -> Result<()> {
    let fd = fd.as_fd();
    let real = |set: BorrowedFd<'_>, _| epoll::modify(set, fd, EventData::new_u64(data), flags);
    on(Call::EpollControl, set, real, |kernel, set, _| kernel.epoll_modify(set, fd.as_raw_fd(), data, flags))
}

/// Takes a descriptor out of an epoll set.
pub(crate) fn epoll_delete(set: &Fd, fd: impl AsFd) -> Result<()> {
    let fd = fd.as_fd();
    let real = |set: BorrowedFd<'_>, _| epoll::delete(set, fd);
    on(Call::EpollControl, set, real, |kernel, set, _| kernel.epoll_delete(set, fd.as_raw_fd()))
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
        return Ok(&*epoll::wait(set, events, timeout)?.0);
    }
    let timeout = timeout.map(|t| Duration::new(t.tv_sec as u64, t.tv_nsec as u32));
    let taken = interposed::with(|kernel| {
        kernel.interrupt()?;
        kernel.epoll_wait(set.0, events.len(), timeout)
    })?;
    Ok(events[..taken.len()].write_copy_of_slice(&taken))
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
