//! Listeners that several event loops wait for, of which the kernel is to wake only one for a connection.
//!
//! A wait says nothing of how its descriptor is to be registered, and need not: almost all are registered alike. The
//! few exceptions are noted here while they are open, and looked up when a descriptor is registered.
//!
//! A loop that is woken for a connection keeps it from the others; so nobody may be registered so who might not take it. A descriptor is registered
//! with `EPOLLEXCLUSIVE` in one loop only, the first. When its threads go to other loops, it is registered there like any other: then they
//! are told of each connection, even if the first loop is as well. And when it is closed it is taken out of the first loop's set, where
//! it would stay as long as the socket has other descriptors.

use crate::sys::{self, Fd};
use std::collections::BTreeMap;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// With the epoll set that each is in so.
static NOTED: Mutex<BTreeMap<RawFd, Weak<Fd>>> = Mutex::new(BTreeMap::new());
/// How many are noted, so that a process without such listeners pays one load per registration.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn noted() -> MutexGuard<'static, BTreeMap<RawFd, Weak<Fd>>> {
    NOTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The note that a descriptor is to be registered with `EPOLLEXCLUSIVE`. Its holder drops it before it closes the
/// descriptor.
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
            // SAFETY: the holder closes it later.
            let fd = unsafe { BorrowedFd::borrow_raw(self.0) };
            // The loop may have taken it out itself.
            let _ = sys::epoll_delete(&set, fd);
        }
    }
}

/// Whether a descriptor is to be registered with `EPOLLEXCLUSIVE` in an epoll set; then it is in no other one.
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
