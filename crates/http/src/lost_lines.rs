//! Lines that the disk does not take: [`LostLines`] counts them, [`LossesOfLogs`] has those of all
//! logs of a site, and [`append_lines`] leaves no half of one in the file.
//!
//! `access_log.rs` writes and counts here; `metrics.rs` tells the counts.

use std::fs::File;
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
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

/// Appends whole lines to `file`.
///
/// # Errors
/// The number of lines that the file does not have, and why. A disk that becomes full takes a part
/// of a line; it is taken back, so that the next line does not continue it.
pub(crate) fn append_lines(file: &mut File, lines: &[u8]) -> Result<(), (u64, io::Error)> {
    let mut written = 0;
    while written < lines.len() {
        let error = match file.write(&lines[written..]) {
            Ok(0) => ErrorKind::WriteZero.into(),
            Ok(bytes) => {
                written += bytes;
                continue;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => error,
        };
        let whole = lines[..written].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        // A half that stays is one line that cannot be read, and nothing else can be done.
        let _ = take_back(file, (written - whole) as u64);
        return Err((lines_in(&lines[whole..]), error));
    }
    Ok(())
}

/// Removes the last `bytes` bytes that were written, unless another process has appended since.
fn take_back(file: &mut File, bytes: u64) -> io::Result<()> {
    let found = file.metadata()?;
    if bytes > 0 && found.is_file() && file.stream_position()? == found.len() {
        file.set_len(found.len() - bytes)?;
        // A file that was not opened to append goes on here.
        file.seek(SeekFrom::End(0))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_of_a_line_is_taken_back() {
        for is_appended in [true, false] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("log");
            let mut options = File::options();
            let mut file = options.append(is_appended).write(true).create(true).open(&path).unwrap();
            file.write_all(b"one\ntwo\nthr").unwrap();
            take_back(&mut file, 3).unwrap();
            append_lines(&mut file, b"four\n").unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\nfour\n");
            // Another process has appended.
            File::options().append(true).open(&path).unwrap().write_all(b"five\n").unwrap();
            take_back(&mut file, 3).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\nfour\nfive\n");
        }
    }

    #[test]
    fn lines_that_do_not_fit_are_counted() {
        let mut full = File::options().write(true).open("/dev/full").unwrap();
        let (lost, error) = append_lines(&mut full, b"one\ntwo\n").unwrap_err();
        assert_eq!((lost, error.kind()), (2, ErrorKind::StorageFull));
        let counts = LostLines::default();
        counts.count_failed(lost);
        counts.count_slow(lines_in(b"three\n"));
        assert_eq!((counts.counts(), counts.sum()), ([("slow", 1), ("failed", 2)], 3));
    }
}
