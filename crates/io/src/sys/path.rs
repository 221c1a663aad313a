//! `path_of`: the path of an open file. `fs::Handle::path_of` exports it; the web server checks
//! with it that a file lies below its root (`http`'s `document_root.rs`).

use super::read_link;
use rustix::io::{Errno, Result};
use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;

/// The path of an open file or directory, absolute and without symbolic links, as `/proc` tells it.
/// For a removed file the path does not lead to the file.
///
/// # Errors
/// Those of `readlink`. Without `/proc`, for example in a simulation, the link is not found.
pub fn path_of(file: impl AsFd) -> Result<PathBuf> {
    let link = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    read_link(&CString::new(link).map_err(|_| Errno::INVAL)?)
}
