//! The access log on its way to the disk: `WorkerLog`, a buffer for each worker, and [`LogFile`],
//! one file and one OS thread for all.
//!
//! `Site` makes a `WorkerLog` from the program's `LogFile`; `connection/unlogged.rs` drafts, keeps
//! and takes back lines in it (`log.rs` formats them); `apps/httpd` has the file reopened. A worker
//! never waits for the disk: a full backlog loses lines, which are counted.
//!
//! Every call on the file goes through [`Handle`], and the age of a file is read from [`Time`], so
//! a server in a simulated world has its log on the simulated disk.

use crate::date::Clock;
use crate::log::{Line, Lines};
use crate::log_format::LogFormat;
use crate::lost_lines::{Appended, LostLines, lines_in};
use rustix::fs::{CWD, FileType, OFlags};
use rustix::io::{Errno, retry_on_intr};
use selvedge_core::{JoinHandle, Time, spawn_local};
use selvedge_handler::{Severity, report};
use selvedge_io::fs::Handle;
use selvedge_io::pool::{Limits, Pool};
use selvedge_io::time::sleep;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A worker hands a buffer over when it has at least this number of bytes of lines.
const BUFFER_BYTES: usize = 64 << 10;

/// Room behind [`BUFFER_BYTES`] for the lines of the exchange that fills the buffer. If those are
/// longer, the buffer grows.
const LAST_LINES_BYTES: usize = 16 << 10;

/// A buffer that has grown beyond this is not used again.
const ROOM_MAX: usize = 4 * BUFFER_BYTES;

/// The most full buffers of one worker that wait to be written. The writer may have as many more.
///
/// These are 16 MiB. With pipelined requests a worker fills 200 MB a second, and on a machine with
/// one processor the writer may have to wait tens of milliseconds for its turn.
pub const BACKLOG_MAX: usize = 256;

/// How long the first line of a buffer waits.
const FLUSH_AFTER: Duration = Duration::from_millis(800);

/// The file that the logs of all workers are appended to.
///
/// A worker formats its lines straight into a buffer of its own. It hands the buffer to the log's
/// own OS thread when the buffer is full (64 KiB) or when its first line is most of a second old.
/// That OS thread writes the buffer with one call, so a disk that stalls does not stall an event
/// loop. Lines are never split between two writes, so the workers' lines do not mix, and each
/// worker's lines stay in their order.
///
/// When the disk cannot keep up, at most [`BACKLOG_MAX`] buffers of a worker wait to be written.
/// The worker drops the buffers beyond that and counts their lines, because it answers requests
/// rather than log them. The log reports the count on the standard error stream when writing goes
/// on. It also reports a failure to write, when the failure begins, and when it is over with the
/// number of lines that are lost. [`Metrics`](crate::Metrics) tells both counts at any time.
///
/// # Paper
/// \[Mighty\] "Logging": block buffering used as "multi-line" buffering, a message is never split;
/// the open problem is a logger with a cost near nginx's.
///
/// # Differences
/// 1. A buffer per worker instead of one behind a lock; its writing happens off the event loop.
/// 2. A line is in the file within a second also when no further line comes.
#[derive(Debug)]
pub struct LogFile {
    /// `None` for the standard output stream.
    path: Option<PathBuf>,
    /// `None` for the combined format, which `log.rs` writes.
    format: Option<LogFormat>,
    rotation: Rotation,
    /// Locked while a buffer is written: a pipe takes long writes in pieces.
    state: Mutex<LogState>,
    lost: Arc<LostLines>,
    /// One OS thread that writes for all workers, so that a log that stalls keeps no other blocking
    /// call waiting.
    pool: Pool,
}

#[derive(Debug)]
struct LogState {
    file: Appended,
    /// When the file was opened, or renamed away last.
    since: Time,
    /// The last write failed, which has been reported: the lines that are lost since.
    failing: Option<u64>,
    /// The file was to be renamed last time and was not, which has been reported.
    unrotated: bool,
}

/// When the file of a log is renamed, so that a new one begins.
///
/// `FILE` becomes `FILE.1`, `FILE.1` becomes `FILE.2`, and so on; the oldest is removed. Several
/// processes may write one file: one of them renames it, and the others see that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rotation {
    /// At this size in bytes. The file may be longer by one buffer of lines. 0 is never.
    pub bytes: u64,
    /// After this time; zero is never.
    pub period: Duration,
    /// The largest number of files that are kept besides the file that is written.
    pub backups: u32,
}

impl LogFile {
    /// Appends to the file at `path`, which is created if it is not there.
    ///
    /// # Errors
    /// With the path in the message.
    pub fn open(path: impl AsRef<Path>) -> io::Result<LogFile> {
        let path = path.as_ref().to_owned();
        let file = append(&path)?;
        Ok(LogFile::over(Some(path), file))
    }

    /// Appends to `file`, which was opened at `path`, perhaps by another process or user.
    pub fn opened(path: impl AsRef<Path>, file: File) -> LogFile {
        LogFile::over(Some(path.as_ref().to_owned()), OwnedFd::from(file).into())
    }

    /// The file that lines go to at present, and its path; `None` for the standard output stream.
    /// It waits while lines are being written.
    ///
    /// # Errors
    /// If its descriptor cannot be duplicated.
    ///
    /// # Panics
    /// In a simulated world, if the file is on its disk: no code outside that world can use it.
    pub fn file(&self) -> io::Result<Option<(PathBuf, File)>> {
        let Some(path) = self.path.clone() else { return Ok(None) };
        let file = self.lock().file.handle().duplicate()?;
        Ok(Some((path, OwnedFd::from(file).into())))
    }

    /// The number of lines that this process has logged and that are not in the file.
    pub fn lost_lines(&self) -> u64 {
        self.lost.sum()
    }

    /// The counters of those lines.
    pub(crate) fn losses(&self) -> Arc<LostLines> {
        self.lost.clone()
    }

    /// Writes to the standard output stream.
    ///
    /// # Errors
    /// If it cannot be duplicated.
    pub fn stdout() -> io::Result<LogFile> {
        Ok(LogFile::over(None, io::stdout().as_fd().try_clone_to_owned()?.into()))
    }

    fn over(path: Option<PathBuf>, file: Handle) -> LogFile {
        let pool = Pool::new(Limits { threads_max: NonZeroUsize::MIN, ..Limits::default() });
        let file = Appended::new(file);
        let state = Mutex::new(LogState { file, since: Time::now(), failing: None, unrotated: false });
        LogFile { path, format: None, rotation: Rotation::default(), state, lost: Arc::default(), pool }
    }

    /// Takes the place of `other`: the lost lines of both are counted together.
    #[must_use]
    pub fn after(mut self, other: &LogFile) -> LogFile {
        self.lost = other.lost.clone();
        self
    }

    /// With lines in this format.
    pub fn with_format(mut self, format: LogFormat) -> LogFile {
        self.format = Some(format).filter(|format| *format != LogFormat::Combined);
        self
    }

    /// With files that are renamed when they are large or old enough.
    pub fn with_rotation(mut self, rotation: Rotation) -> LogFile {
        self.rotation = rotation;
        self
    }

    /// Opens the path again, after the file was renamed. Later lines go to the new file. The call
    /// blocks.
    ///
    /// # Errors
    /// With the path in the message. Then later lines go to the old file.
    pub fn reopen(&self) -> io::Result<()> {
        if let Some(path) = &self.path {
            let file = append(path)?;
            self.lock().file.go_on_in(file);
        }
        Ok(())
    }

    /// Writes whole lines. It reports when a failure begins and when the failure is over.
    fn write(&self, lines: &Lines) {
        let mut state = self.lock();
        if let Some(path) = &self.path
            && self.rotation != Rotation::default()
            && !state.file.ends_in_half()
        {
            self.rotate(path, &mut state);
        }
        let name = || self.path.as_ref().map_or("standard output".into(), |path| path.display().to_string());
        match (state.file.append(lines.as_bytes()), state.failing.take()) {
            (Ok(()), None) => {}
            (Ok(()), Some(lost)) => {
                report(
                    Severity::Notice,
                    format_args!("access log {}: writing again; {lost} lines were lost", name()),
                );
            }
            (Err((lost, error)), failing) => {
                self.lost.count_failed(lost);
                state.failing = Some(failing.unwrap_or(0) + lost);
                if failing.is_none() {
                    report(Severity::Error, format_args!("access log {}: {error}; lines are lost", name()));
                }
            }
        }
    }

    /// Renames the file if it is time for it, and opens the file that is at `path` then. An error
    /// is reported, and the lines go to the old file.
    fn rotate(&self, path: &Path, state: &mut LogState) {
        let Rotation { bytes, period, backups } = self.rotation;
        let result = (|| {
            let is_current = |file: &Handle| -> io::Result<bool> {
                let (here, there) = (file.status()?, Handle::status_at(CWD, path));
                Ok(there.is_ok_and(|there| (there.device, there.inode) == (here.device, here.inode)))
            };
            if !is_current(state.file.handle())? {
                state.file.go_on_in(append(path)?);
                state.since = Time::now();
            }
            let len = state.file.handle().status()?.len;
            let is_old = period > Duration::ZERO && Time::now().since(state.since) >= period;
            if len == 0 || !(is_old || bytes > 0 && len >= bytes) {
                return Ok(());
            }
            // Another process may be about to rename the same file. Whatever has the lock, it does
            // not hold the lines up: the next buffer tries again.
            if !state.file.handle().try_lock()? {
                return Ok(());
            }
            let renamed = match is_current(state.file.handle()) {
                Ok(true) => rename_all(path, backups),
                other => other.map(drop),
            };
            match renamed.and_then(|()| append(path)) {
                Ok(file) => {
                    state.file.go_on_in(file);
                    (state.since, state.unrotated) = (Time::now(), false);
                }
                Err(error) => {
                    state.file.handle().unlock()?;
                    return Err(error);
                }
            }
            Ok::<(), io::Error>(())
        })();
        if let Err(error) = result {
            // It is tried again after another period, or with the next buffer of a file that is too
            // large.
            state.since = Time::now();
            if !std::mem::replace(&mut state.unrotated, true) {
                report(
                    Severity::Error,
                    format_args!("access log {}: it is not rotated: {error}", path.display()),
                );
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Renames `path` to `path.1`, after `path.1` to `path.2` and so on.
fn rename_all(path: &Path, backups: u32) -> io::Result<()> {
    let numbered = |n: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{n}"));
        PathBuf::from(name)
    };
    if backups == 0 {
        return Ok(Handle::remove(path)?);
    }
    for n in (1..backups).rev() {
        match Handle::rename(numbered(n), numbered(n + 1)) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Handle::rename(path, numbered(1))?)
}

/// Opens a file to append to. A FIFO is opened for reading too, for two reasons. A FIFO that is
/// opened for writing alone waits for a reader. And writing to it fails when the last reader has
/// gone. With a reader of our own, the lines wait in the FIFO for the next reader.
fn append(path: &Path) -> io::Result<Handle> {
    let found = Handle::status_at(CWD, path);
    let is_fifo = found.is_ok_and(|found| FileType::from_raw_mode(found.mode) == FileType::Fifo);
    let access = if is_fifo { OFlags::RDWR } else { OFlags::WRONLY };
    let flags = access | OFlags::APPEND | OFlags::CREATE | OFlags::CLOEXEC;
    retry_on_intr(|| Handle::create(CWD, path, flags, 0o666)).map_err(|error| {
        let error = io::Error::from(error);
        io::Error::new(error.kind(), format!("open {}: {error}", path.display()))
    })
}

/// One worker's part of the log.
#[derive(Debug)]
pub(crate) struct WorkerLog {
    file: Arc<LogFile>,
    state: RefCell<Buffers>,
}

#[derive(Debug, Default)]
struct Buffers {
    /// The lines that are logged, and behind them the drafts.
    lines: Lines,
    /// Bytes of the lines that are logged.
    kept: usize,
    /// Full buffers, the oldest first.
    full: VecDeque<Lines>,
    spare: Option<Lines>,
    /// The thread that writes full buffers. It may have ended.
    writer: Option<JoinHandle<()>>,
    /// Whether `full` is being emptied.
    writing: bool,
    /// Whether a thread sleeps until the lines are to be written, full or not.
    alarm: bool,
    dropped: u64,
}

impl WorkerLog {
    pub(crate) fn new(file: Arc<LogFile>) -> Rc<WorkerLog> {
        Rc::new(WorkerLog { file, state: RefCell::default() })
    }

    /// Appends a line that [`keep`](Self::keep) or [`take_back`](Self::take_back) decides about in
    /// the same step. Called in a thread.
    #[inline(always)]
    pub(crate) fn draft(self: &Rc<WorkerLog>, line: &Line<'_>, clock: &Clock) {
        let state = &mut *self.state.borrow_mut();
        if state.lines.is_empty() {
            self.begin(state);
        }
        match &self.file.format {
            None => state.lines.put(line, clock),
            Some(format) => put_formatted(format, line, clock, &mut state.lines),
        }
    }

    /// Logs the drafts.
    #[inline]
    pub(crate) fn keep(self: &Rc<WorkerLog>) {
        let state = &mut *self.state.borrow_mut();
        state.kept = state.lines.len();
        if state.kept >= BUFFER_BYTES {
            self.hand_over(state);
        }
    }

    /// Removes the drafts.
    pub(crate) fn take_back(&self) {
        let state = &mut *self.state.borrow_mut();
        state.lines.truncate(state.kept);
    }

    /// Writes all lines, and waits until they are written.
    pub(crate) async fn flush(self: &Rc<WorkerLog>) {
        let writer = {
            let state = &mut *self.state.borrow_mut();
            self.hand_over(state);
            state.writer.take()
        };
        if let Some(writer) = writer {
            // A panic of the writer has been reported; there is nothing to wait for.
            let _ = writer.await;
        }
    }

    #[cold]
    fn begin(self: &Rc<WorkerLog>, state: &mut Buffers) {
        if state.lines.room() == 0 {
            state.lines =
                state.spare.take().unwrap_or_else(|| Lines::with_room(BUFFER_BYTES + LAST_LINES_BYTES));
        }
        if !state.alarm {
            state.alarm = true;
            let log = self.clone();
            drop(spawn_local(async move {
                sleep(FLUSH_AFTER).await;
                let state = &mut *log.state.borrow_mut();
                state.alarm = false;
                log.hand_over(state);
            }));
        }
    }

    /// Adds the lines to the full buffers, and starts the writer if it does not run.
    #[cold]
    fn hand_over(self: &Rc<WorkerLog>, state: &mut Buffers) {
        if state.lines.is_empty() {
            return;
        }
        state.kept = 0;
        if state.full.len() >= BACKLOG_MAX {
            let lines = lines_in(state.lines.as_bytes());
            self.file.lost.count_slow(lines);
            state.dropped += lines;
            state.lines.clear();
            return;
        }
        state.full.push_back(std::mem::take(&mut state.lines));
        if !state.writing {
            state.writing = true;
            let log = self.clone();
            state.writer = Some(spawn_local(async move { log.write().await }));
        }
    }

    /// Writes all full buffers with one call on the pool, and repeats that until there are none.
    async fn write(self: Rc<WorkerLog>) {
        loop {
            let (buffers, dropped) = {
                let state = &mut *self.state.borrow_mut();
                if state.full.is_empty() {
                    state.writing = false;
                    return;
                }
                (std::mem::take(&mut state.full), std::mem::take(&mut state.dropped))
            };
            let file = self.file.clone();
            let written = self.file.pool.run(move || {
                buffers.iter().for_each(|lines| file.write(lines));
                buffers
            });
            let written = written.await;
            if dropped > 0 {
                report(
                    Severity::Error,
                    format_args!("{dropped} lines of the access log were dropped: it was written too slowly"),
                );
            }
            let reused = written.ok().and_then(|mut buffers| buffers.pop_back());
            if let Some(mut lines) = reused
                && lines.room() <= ROOM_MAX
            {
                lines.clear();
                self.state.borrow_mut().spare = Some(lines);
            }
        }
    }
}

/// Appends `line` in a format other than the combined one.
#[cold]
fn put_formatted(format: &LogFormat, line: &Line<'_>, clock: &Clock, lines: &mut Lines) {
    let mut written = Vec::with_capacity(512);
    format.put(line, clock, &mut written);
    lines.put_written(&written);
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_core::VirtualClock;

    fn line(text: &str) -> Lines {
        let mut lines = Lines::default();
        lines.put_written(text.as_bytes());
        lines
    }

    #[test]
    fn files_are_renamed_at_their_size() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let rotation = Rotation { bytes: 4, period: Duration::ZERO, backups: 2 };
        let open = || LogFile::open(&path).unwrap().with_rotation(rotation);
        // Two processes that write one file.
        let logs = [open(), open()];
        for n in 0..8 {
            logs[n % 2].write(&line(&format!("{n}\n")));
        }
        let text = |end: &str| std::fs::read_to_string(format!("{}{end}", path.display()));
        assert_eq!(text("").unwrap(), "6\n7\n");
        assert_eq!((text(".1").unwrap(), text(".2").unwrap()), ("4\n5\n".into(), "2\n3\n".into()));
        assert!(text(".3").is_err());
    }

    #[test]
    fn files_are_renamed_at_their_age() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let rotation = Rotation { bytes: 0, period: Duration::from_secs(60), backups: 1 };
        let _clock = VirtualClock::install();
        let log = LogFile::open(&path).unwrap().with_rotation(rotation);
        let ages = |seconds| VirtualClock::advance(Time::now() + Duration::from_secs(seconds));
        log.write(&line("0\n"));
        log.write(&line("1\n"));
        ages(50);
        log.write(&line("2\n"));
        let text = |end: &str| std::fs::read_to_string(format!("{}{end}", path.display()));
        assert_eq!((text("").unwrap(), text(".1").is_err()), ("0\n1\n2\n".into(), true));
        ages(60);
        log.write(&line("3\n"));
        log.write(&line("4\n"));
        assert_eq!((text("").unwrap(), text(".1").unwrap()), ("3\n4\n".into(), "0\n1\n2\n".into()));
    }

    /// Another program may hold the lock of the file for as long as it likes.
    #[test]
    fn a_lock_does_not_hold_lines_up() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let rotation = Rotation { bytes: 1, period: Duration::ZERO, backups: 1 };
        let log = LogFile::open(&path).unwrap().with_rotation(rotation);
        log.write(&line("0\n"));
        let other = append(&path).unwrap();
        assert!(other.try_lock().unwrap());
        log.write(&line("1\n"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "0\n1\n");
        assert!(!log.lock().unrotated);
        drop(other);
        log.write(&line("2\n"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "2\n");
    }

    #[test]
    fn a_file_that_cannot_be_renamed() {
        let directory = tempfile::tempdir().unwrap();
        let [path, first] = ["log", "log.1"].map(|name| directory.path().join(name));
        std::fs::create_dir(&first).unwrap();
        let rotation = Rotation { bytes: 1, period: Duration::ZERO, backups: 1 };
        let log = LogFile::open(&path).unwrap().with_rotation(rotation);
        for n in 0..3 {
            log.write(&line(&format!("{n}\n")));
            assert_eq!(log.lock().unrotated, n > 0, "reported with the first attempt");
        }
        // Nothing is kept locked meanwhile.
        assert!(append(&path).unwrap().try_lock().unwrap());
        std::fs::remove_dir(&first).unwrap();
        log.write(&line("3\n"));
        assert!(!log.lock().unrotated);
        let text = |path| std::fs::read_to_string(path).unwrap();
        assert_eq!((text(&first), text(&path)), ("0\n1\n2\n".into(), "3\n".into()));
    }
}
