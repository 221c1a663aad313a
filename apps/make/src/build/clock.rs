//! The clock of the file system on which a build's logs lie. It may differ from the machine's: the
//! file system may be another machine's, and its clock goes in larger steps.
//!
//! `Runner::clock` makes a `Clock`, on the file `.ninja_lock` as ninja does. Before each command
//! `Runner::prepare` reads it. The build log compares this time with mtimes, so both must come from
//! one clock.

use rustix::fs::{Timespec, Timestamps, UTIME_NOW, fstat, futimens};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// A file with an mtime that is the time. The drop of the value removes it.
#[derive(Debug)]
pub(super) struct Clock {
    path: PathBuf,
    file: File,
}

impl Clock {
    /// Makes the file.
    pub(super) fn new(path: &Path) -> io::Result<Clock> {
        Ok(Clock { path: path.to_path_buf(), file: File::create(path)? })
    }

    /// The time, in nanoseconds since 1970.
    pub(super) fn now(&self) -> io::Result<i64> {
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        futimens(&self.file, &Timestamps { last_access: now, last_modification: now })?;
        let stat = fstat(&self.file)?;
        Ok(stat.st_mtime * 1_000_000_000 + i64::try_from(stat.st_mtime_nsec).unwrap_or(0))
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
