//! Where an open file is.

use super::{Call, through};
use rustix::fs::CWD;
use rustix::io::Result;
use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// The path of an open file or directory, absolute and without symbolic links, as `/proc` says it. A file that was removed
/// has a name that does not lead to it.
///
/// # Errors
/// Those of `readlink`; `OPNOTSUPP` in a simulation.
pub fn path_of(file: impl AsFd) -> Result<PathBuf> {
    through(Call::ReadLink, |_| {
        let link = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
        let path = rustix::fs::readlinkat(CWD, link, Vec::new())?;
        Ok(OsString::from_vec(path.into_bytes()).into())
    })
}
