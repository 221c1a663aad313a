//! `Fd`: an owned descriptor, real or simulated. Every socket, pipe and file of this crate owns
//! one, and the functions of `sys` return it.
//!
//! The sign tells the two kinds apart: the descriptors of a simulated kernel are negative, so each
//! function of `sys` decides by the number alone which kernel it calls. `OwnedFd` cannot hold a
//! simulated descriptor; `From<Fd> for OwnedFd` panics on one. `index` gives the index of either
//! kind in the event loop's tables (`reactor/epoll.rs`, `reactor/loop_id.rs`).

use super::interposed::{self, number};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

/// An owned descriptor, of the real kernel or of a simulated one. Dropping it closes it.
///
/// The descriptors of a simulated kernel are negative numbers: a system call with such a number
/// fails with `EBADF`, and touches no file.
#[derive(Debug)]
pub struct Fd(pub(super) RawFd);

impl Fd {
    /// The owner of a descriptor that the simulated kernel has just made.
    ///
    /// # Panics
    /// If the number is not one that [`number`] distinguishes from real descriptors and from -1.
    pub(super) fn simulated(raw: RawFd) -> Fd {
        assert!(number(raw).is_some(), "{raw} is no simulated descriptor");
        Fd(raw)
    }

    pub(crate) fn is_simulated(&self) -> bool {
        self.0 < 0
    }
}

impl Drop for Fd {
    #[inline]
    fn drop(&mut self) {
        if self.is_simulated() {
            return interposed::close(self.0);
        }
        // SAFETY: `From<OwnedFd>` took the number out of an `OwnedFd`, and this `Fd` alone has
        // owned it since.
        drop(unsafe { OwnedFd::from_raw_fd(self.0) });
    }
}

impl From<OwnedFd> for Fd {
    fn from(fd: OwnedFd) -> Fd {
        Fd(fd.into_raw_fd())
    }
}

impl From<Fd> for OwnedFd {
    /// # Panics
    /// If the descriptor is simulated, because no code outside the simulation can use it.
    fn from(fd: Fd) -> OwnedFd {
        assert!(!fd.is_simulated(), "a simulated descriptor cannot leave the simulation");
        let raw = fd.0;
        std::mem::forget(fd);
        // SAFETY: `From<OwnedFd>` took the number out of an `OwnedFd`. The `Fd` that owned it is
        // forgotten, so it does not close the number.
        unsafe { OwnedFd::from_raw_fd(raw) }
    }
}

impl AsFd for Fd {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: a real descriptor is open until `self` is dropped, because `From<OwnedFd>` took
        // it over. `Fd::simulated` has checked that a simulated number is no file's and not -1.
        unsafe { BorrowedFd::borrow_raw(self.0) }
    }
}

/// The index of a descriptor's number in a table of descriptors; `None` if no descriptor can have
/// the number.
#[inline]
pub(crate) fn index(fd: RawFd) -> Option<usize> {
    usize::try_from(fd).ok().or_else(|| number(fd))
}
