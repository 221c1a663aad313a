//! Lines that the disk does not take: [`LostLines`] counts them, [`LossesOfLogs`] has those of all
//! logs of a site, and [`Appended`] leaves no half of one in the file.
//!
//! `access_log.rs` writes and counts here; `metrics.rs` tells the counts.

use rustix::fs::FileType;
use rustix::io::{Errno, retry_on_intr};
use selvedge_io::fs::Handle;
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// The number of lines that a log has lost, by reason.
#[derive(Debug, Default)]
pub(crate) struct LostLines {
    slow: AtomicU64,
    failed: AtomicU64,
}

impl LostLines {
    /// Counts lines that a worker has dropped, because too many waited.
    pub(crate) fn count_slow(&self, lines: u64) {
        self.slow.fetch_add(lines, Relaxed);
    }

    /// Counts lines that could not be written.
    pub(crate) fn count_failed(&self, lines: u64) {
        self.failed.fetch_add(lines, Relaxed);
    }

    /// The reasons, and the number of lines for each.
    pub(crate) fn counts(&self) -> [(&'static str, u64); 2] {
        [("slow", self.slow.load(Relaxed)), ("failed", self.failed.load(Relaxed))]
    }

    /// The number of lines for all reasons.
    pub(crate) fn sum(&self) -> u64 {
        self.counts().iter().map(|(_, lines)| lines).sum()
    }
}

/// The lines that all logs of a site have lost.
#[derive(Debug, Default)]
pub(crate) struct LossesOfLogs(Mutex<Vec<Arc<LostLines>>>);

impl LossesOfLogs {
    /// Counts the losses of this log too. Logs of which one takes the place of another have the
    /// same losses, and count once.
    pub(crate) fn tell(&self, log: Arc<LostLines>) {
        let mut logs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !logs.iter().any(|known| Arc::ptr_eq(known, &log)) {
            logs.push(log);
        }
    }

    /// The reasons, and the number of lines for each.
    pub(crate) fn counts(&self) -> [(&'static str, u64); 2] {
        let logs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        logs.iter().fold(LostLines::default().counts(), |sums, log| {
            let of = log.counts();
            [0, 1].map(|at| (sums[at].0, sums[at].1 + of[at].1))
        })
    }
}

/// The number of lines in `bytes`.
pub(crate) fn lines_in(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
}

/// A file to which whole lines are appended.
#[derive(Debug)]
pub(crate) struct Appended {
    file: Handle,
    /// Bytes of half a line at the file's end that the disk has not taken back yet.
    half: u64,
}

impl Appended {
    pub(crate) fn new(file: Handle) -> Appended {
        Appended { file, half: 0 }
    }

    /// The file that lines go to.
    pub(crate) fn handle(&self) -> &Handle {
        &self.file
    }

    /// Appends to another file from now on.
    pub(crate) fn go_on_in(&mut self, file: Handle) {
        // The other one may be the same file, opened again.
        self.ends_in_half();
        *self = Appended::new(file);
    }

    /// Whether half a line is at the file's end, although this call has tried to remove it.
    pub(crate) fn ends_in_half(&mut self) -> bool {
        self.take_back().is_err()
    }

    /// Appends whole lines.
    ///
    /// # Errors
    /// The number of lines that the file does not have, and why. A disk that becomes full takes a
    /// part of a line; it is taken back, so that the next line does not continue it. If a fault of
    /// the disk prevents that, the file takes no line until the half is gone.
    pub(crate) fn append(&mut self, lines: &[u8]) -> Result<(), (u64, io::Error)> {
        self.take_back().map_err(|error| (lines_in(lines), error.into()))?;
        let mut written = 0;
        while written < lines.len() {
            let error = match self.file.write_on(&lines[written..]) {
                Ok(0) => ErrorKind::WriteZero.into(),
                Ok(bytes) => {
                    written += bytes;
                    continue;
                }
                Err(Errno::INTR) => continue,
                Err(error) => error.into(),
            };
            let whole = lines[..written].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
            self.half = (written - whole) as u64;
            self.ends_in_half();
            return Err((lines_in(&lines[whole..]), error));
        }
        Ok(())
    }

    /// Removes the half of a line at the end, unless another process has appended since, or the
    /// file is none of a disk or may not be cut. There the half is one line that cannot be read,
    /// and nothing else can be done.
    ///
    /// # Errors
    /// The disk's fault, which may be over the next time.
    fn take_back(&mut self) -> Result<(), Errno> {
        if self.half == 0 {
            return Ok(());
        }
        let cut = (|| {
            let found = self.file.status()?;
            let is_file = FileType::from_raw_mode(found.mode) == FileType::RegularFile;
            if is_file && self.file.position()? == found.len {
                retry_on_intr(|| self.file.cut(found.len - self.half))?;
            }
            Ok(())
        })();
        if cut == Err(Errno::IO) {
            return cut;
        }
        self.half = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::OwnedFd;

    #[test]
    fn a_half_of_a_line_is_taken_back() {
        for is_appended in [true, false] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("log");
            let mut options = File::options();
            let file = options.append(is_appended).write(true).create(true).open(&path).unwrap();
            let mut log = Appended::new(OwnedFd::from(file).into());
            log.append(b"one\ntwo\nthr").unwrap();
            log.half = 3;
            log.append(b"four\n").unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\nfour\n");
            // Another process has appended.
            File::options().append(true).open(&path).unwrap().write_all(b"five\n").unwrap();
            log.half = 3;
            assert!(!log.ends_in_half());
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\nfour\nfive\n");
        }
    }

    #[test]
    fn lines_that_do_not_fit_are_counted() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut full = Appended::new(OwnedFd::from(full).into());
        let (lost, error) = full.append(b"one\ntwo\n").unwrap_err();
        assert_eq!((lost, error.kind()), (2, ErrorKind::StorageFull));
        let counts = LostLines::default();
        counts.count_failed(lost);
        counts.count_slow(lines_in(b"three\n"));
        assert_eq!((counts.counts(), counts.sum()), ([("slow", 1), ("failed", 2)], 3));
    }
}
