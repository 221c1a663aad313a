//! Listeners that several event loops wait for, of which the kernel is to wake only one for a connection.
//!
//! A wait says nothing of how its descriptor is to be registered, and need not: almost all are registered alike. The
//! few exceptions are noted here while they are open, and looked up when a descriptor is registered.

use std::collections::BTreeSet;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

static NOTED: Mutex<BTreeSet<RawFd>> = Mutex::new(BTreeSet::new());
/// How many are noted, so that a process without such listeners pays one load per registration.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The note that a descriptor is to be registered with `EPOLLEXCLUSIVE`. Its holder drops it before it closes the
/// descriptor.
#[derive(Debug)]
pub(crate) struct Exclusive(RawFd);

impl Exclusive {
    pub(crate) fn note(fd: RawFd) -> Exclusive {
        let mut noted = NOTED.lock().unwrap_or_else(PoisonError::into_inner);
        noted.insert(fd);
        COUNT.store(noted.len(), SeqCst);
        Exclusive(fd)
    }
}

impl Drop for Exclusive {
    fn drop(&mut self) {
        let mut noted = NOTED.lock().unwrap_or_else(PoisonError::into_inner);
        noted.remove(&self.0);
        COUNT.store(noted.len(), SeqCst);
    }
}

/// Whether a descriptor is to be registered with `EPOLLEXCLUSIVE`.
pub(crate) fn contains(fd: RawFd) -> bool {
    COUNT.load(SeqCst) > 0 && NOTED.lock().unwrap_or_else(PoisonError::into_inner).contains(&fd)
}
