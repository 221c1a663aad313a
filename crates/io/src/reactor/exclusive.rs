//! The listeners that several event loops wait for, and of which the kernel must wake only one loop
//! per connection.
//!
//! A wait does not say how its descriptor is to be registered, because almost all descriptors are
//! registered alike. The few exceptions are noted in this file while they are open.
//! [`Reactor`](super::epoll::Reactor) looks a descriptor up here when it registers the descriptor.
//!
//! A loop that the kernel wakes for a connection keeps the connection from the other loops. So a
//! descriptor may be registered in this way only in a loop in which a thread will accept. A
//! descriptor is registered with `EPOLLEXCLUSIVE` in one loop only, the first. When the
//! descriptor's threads go to other loops, those loops register it like any other descriptor. The
//! kernel then wakes them for each connection, even if it wakes the first loop as well. When the
//! descriptor is closed, [`Exclusive`] takes it out of the first loop's set, because it would
//! otherwise stay there as long as the socket has other descriptors.

use crate::sys::{self, Fd};
use std::collections::BTreeMap;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The noted descriptors, each with the epoll set in which it is registered with `EPOLLEXCLUSIVE`.
static NOTED: Mutex<BTreeMap<RawFd, Weak<Fd>>> = Mutex::new(BTreeMap::new());
/// The number of noted descriptors, so that a process without such listeners pays one load per
/// registration.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn noted() -> MutexGuard<'static, BTreeMap<RawFd, Weak<Fd>>> {
    NOTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The note that a descriptor is to be registered with `EPOLLEXCLUSIVE`. Its holder drops it before
/// it closes the descriptor.
#[derive(Debug)]
pub(crate) struct Exclusive(RawFd);

impl Exclusive {
    pub(crate) fn note(fd: RawFd) -> Exclusive {
        let mut noted = noted();
        noted.insert(fd, Weak::new());
        COUNT.store(noted.len(), SeqCst);
        Exclusive(fd)
    }
}

impl Drop for Exclusive {
    fn drop(&mut self) {
        let mut noted = noted();
        let set = noted.remove(&self.0);
        COUNT.store(noted.len(), SeqCst);
        drop(noted);
        if let Some(set) = set.and_then(|set| set.upgrade()) {
            // SAFETY: the descriptor is open, because the holder of an `Exclusive` drops it before
            // it closes the descriptor.
            let fd = unsafe { BorrowedFd::borrow_raw(self.0) };
            // The call may fail because the loop has taken the descriptor out itself.
            let _ = sys::epoll_delete(&set, fd);
        }
    }
}

/// Whether a descriptor is to be registered with `EPOLLEXCLUSIVE` in the epoll set `set`. If so, no
/// other set has it in this way.
pub(crate) fn claim(fd: RawFd, set: &Arc<Fd>) -> bool {
    if COUNT.load(SeqCst) == 0 {
        return false;
    }
    let mut noted = noted();
    let Some(claimed) = noted.get_mut(&fd) else { return false };
    if claimed.strong_count() == 0 {
        *claimed = Arc::downgrade(set);
    }
    std::ptr::eq(claimed.as_ptr(), Arc::as_ptr(set))
}
