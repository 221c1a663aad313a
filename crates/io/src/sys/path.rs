//! Where an open file is.

use super::read_link;
use rustix::io::{Errno, Result};
use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;

/// The path of an open file or directory, absolute and without symbolic links, as `/proc` says it. A file that was removed
/// has a name that does not lead to it.
///
/// # Errors
/// Those of `readlink`: where there is no `/proc`, as in a simulation, the link is not found.
pub fn path_of(file: impl AsFd) -> Result<PathBuf> {
    let link = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    read_link(&CString::new(link).map_err(|_| Errno::INVAL)?)
}
