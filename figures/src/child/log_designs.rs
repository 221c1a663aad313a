//! Five designs of an access log as small loggers: [`LogDesign`] names them, [`open`] makes one,
//! and each worker of `log_server.rs` has a [`WorkerLines`] in front of it.
//!
//! They are what a web server could have in place of the log of `selvedge-httpd`. Each keeps whole
//! lines. None of them bounds what waits, and none goes on when the disk is full; the shipped one
//! does both.
//!
//! # Paper
//! \[Mighty\] "Logging": the five designs that Mighttpd's author compared, in their order.

use super::mapped::MappedFile;
use rustix::fs::OFlags;
use selvedge_http::date::Clock;
use selvedge_http::log::{Line, Lines};
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// A buffer of lines, and what a handle buffers.
const BUFFER_BYTES: usize = 64 << 10;

/// How much of a log file is mapped at a time.
const WINDOW_BYTES: usize = 16 << 20;

/// The memory that a server and its log process share.
const SHARED_BYTES: usize = 1 << 20;

/// A design of an access log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogDesign {
    /// No log.
    None,
    /// The log of `selvedge-httpd`.
    Shipped,
    /// 1: all workers append to one buffered handle, behind a lock.
    Handle,
    /// 2: each worker fills a buffer, and appends it by a non-blocking write of its own.
    Append,
    /// 3: the file is made longer (`ftruncate`) and mapped, and lines are copied to its end.
    Mapped,
    /// 4: lines go through a channel to one thread, which writes.
    Channel,
    /// 5: as 4, but the thread copies to memory that a log process shares, which copies to a mapped
    /// file.
    Process,
}

impl LogDesign {
    /// The design with this name.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn named(name: &str) -> Result<LogDesign, String> {
        Ok(match name {
            "none" => LogDesign::None,
            "shipped" => LogDesign::Shipped,
            "handle" => LogDesign::Handle,
            "append" => LogDesign::Append,
            "mapped" => LogDesign::Mapped,
            "channel" => LogDesign::Channel,
            "process" => LogDesign::Process,
            other => return Err(format!("no design of a log: {other}")),
        })
    }
}

/// Where the lines of all workers go.
pub(super) trait LineSink: Send + Sync {
    /// Takes one or more whole lines.
    fn take(&self, lines: &[u8]);

    /// Brings all lines into the file.
    fn finish(&self);
}

/// The log of the five designs at `path`; `None` for the others.
///
/// # Errors
/// The file cannot be made, or the log process not be started.
pub(super) fn open(design: LogDesign, path: &Path) -> io::Result<Option<Arc<dyn LineSink>>> {
    Ok(Some(match design {
        LogDesign::None | LogDesign::Shipped => return Ok(None),
        LogDesign::Handle => {
            Arc::new(LockedHandle(Mutex::new(BufWriter::with_capacity(BUFFER_BYTES, appending(path, 0)?))))
        }
        LogDesign::Append => Arc::new(NonBlockingAppend(appending(path, OFlags::NONBLOCK.bits())?)),
        LogDesign::Mapped => Arc::new(Mutex::new(MappedLog::create(path)?)),
        LogDesign::Channel => {
            let mut file = BufWriter::with_capacity(BUFFER_BYTES, appending(path, 0)?);
            Arc::new(LineChannel::to(move |lines| match lines {
                Some(lines) => file.write_all(lines).expect("the log is written"),
                None => file.flush().expect("the log is written"),
            }))
        }
        LogDesign::Process => {
            let mut process = LogProcess::start(path)?;
            Arc::new(LineChannel::to(move |lines| match lines {
                Some(lines) => process.put(lines).expect("the log process writes"),
                None => process.end().expect("the log process ends"),
            }))
        }
    }))
}

fn appending(path: &Path, flags: u32) -> io::Result<File> {
    File::options().append(true).create(true).custom_flags(flags as i32).open(path)
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The lines of one worker in front of a log.
pub(super) struct WorkerLines {
    sink: Arc<dyn LineSink>,
    lines: Lines,
    /// The log takes the lines when they have this number of bytes.
    bytes_max: usize,
}

impl WorkerLines {
    /// Only the second design collects lines in the worker.
    pub(super) fn new(design: LogDesign, sink: Arc<dyn LineSink>) -> WorkerLines {
        let bytes_max = if design == LogDesign::Append { BUFFER_BYTES } else { 1 };
        WorkerLines { sink, lines: Lines::default(), bytes_max }
    }

    /// Logs a line.
    pub(super) fn log(&mut self, line: &Line<'_>, clock: &Clock) {
        self.lines.put(line, clock);
        if self.lines.len() >= self.bytes_max {
            self.flush();
        }
    }

    /// Gives the log all lines.
    pub(super) fn flush(&mut self) {
        self.sink.take(self.lines.as_bytes());
        self.lines.clear();
    }
}

struct LockedHandle(Mutex<BufWriter<File>>);

impl LineSink for LockedHandle {
    fn take(&self, lines: &[u8]) {
        lock(&self.0).write_all(lines).expect("the log is written");
    }

    fn finish(&self) {
        lock(&self.0).flush().expect("the log is written");
    }
}

struct NonBlockingAppend(File);

impl LineSink for NonBlockingAppend {
    fn take(&self, lines: &[u8]) {
        // A file on a disk takes all at once, so other workers' lines do not come between.
        (&self.0).write_all(lines).expect("the log is written");
    }

    fn finish(&self) {}
}

/// A log file of which the end is mapped.
pub(super) struct MappedLog {
    file: File,
    window: MappedFile,
    /// The place of the window in the file.
    start: u64,
    /// The bytes of lines in the window.
    used: usize,
}

impl MappedLog {
    /// # Errors
    /// The file cannot be made or mapped.
    fn create(path: &Path) -> io::Result<MappedLog> {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
        let window = MappedFile::map(&file, 0, WINDOW_BYTES)?;
        Ok(MappedLog { file, window, start: 0, used: 0 })
    }

    /// Appends `len` bytes. `copy` copies some of them: the window, the place in it, and which.
    fn append(&mut self, len: usize, mut copy: impl FnMut(&mut MappedFile, usize, std::ops::Range<usize>)) {
        let mut done = 0;
        while done < len {
            if self.used == self.window.len() {
                self.start += self.used as u64;
                self.used = 0;
                self.window = MappedFile::map(&self.file, self.start, WINDOW_BYTES).expect("the log grows");
            }
            let piece = (len - done).min(self.window.len() - self.used);
            copy(&mut self.window, self.used, done..done + piece);
            self.used += piece;
            done += piece;
        }
    }

    /// Cuts the file behind its last line.
    fn cut(&self) {
        self.file.set_len(self.start + self.used as u64).expect("the log is cut");
    }
}

impl LineSink for Mutex<MappedLog> {
    fn take(&self, lines: &[u8]) {
        lock(self).append(lines.len(), |window, at, which| window.put(at, &lines[which]));
    }

    fn finish(&self) {
        lock(self).cut();
    }
}

/// A channel to one OS thread. `None` is the end.
struct LineChannel {
    sender: Sender<Option<Vec<u8>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl LineChannel {
    /// `consume` runs on the thread, for each message and for the end.
    fn to(mut consume: impl FnMut(Option<&[u8]>) + Send + 'static) -> LineChannel {
        let (sender, receiver) = channel::<Option<Vec<u8>>>();
        let writer = std::thread::spawn(move || {
            while let Ok(Some(lines)) = receiver.recv() {
                consume(Some(&lines));
            }
            consume(None);
        });
        LineChannel { sender, writer: Mutex::new(Some(writer)) }
    }
}

impl LineSink for LineChannel {
    fn take(&self, lines: &[u8]) {
        self.sender.send(Some(lines.to_vec())).expect("the writer runs");
    }

    fn finish(&self) {
        let writer = lock(&self.writer).take();
        if let Some(writer) = writer {
            self.sender.send(None).expect("the writer runs");
            writer.join().expect("the writer has written all");
        }
    }
}

/// The end of a log process that its server has.
struct LogProcess {
    shared: MappedFile,
    used: usize,
    process: Child,
    /// `None` once the process is to end.
    orders: Option<ChildStdin>,
    done: ChildStdout,
}

impl LogProcess {
    /// # Errors
    /// The memory cannot be shared, or the process not be started.
    fn start(path: &Path) -> io::Result<LogProcess> {
        let memory = path.with_extension("shared");
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&memory)?;
        let shared = MappedFile::map(&file, 0, SHARED_BYTES)?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["child", "log-process"]).arg(&memory).arg(path);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (orders, done) = (process.stdin.take(), process.stdout.take().expect("it is piped"));
        Ok(LogProcess { shared, used: 0, process, orders, done })
    }

    fn put(&mut self, lines: &[u8]) -> io::Result<()> {
        if lines.len() > self.shared.len() - self.used {
            self.write_all()?;
        }
        self.shared.put(self.used, lines);
        self.used += lines.len();
        Ok(())
    }

    /// Orders the process to write what is in the shared memory, and waits until it has.
    fn write_all(&mut self) -> io::Result<()> {
        let orders = self.orders.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        orders.write_all(&(self.used as u32).to_le_bytes())?;
        self.done.read_exact(&mut [0])?;
        self.used = 0;
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        self.write_all()?;
        self.orders = None;
        self.process.wait().map(drop)
    }
}

/// The log process: copies what it is asked for from the shared memory to the log, until the server
/// closes the pipe.
///
/// # Errors
/// A file cannot be mapped, or the server is gone.
pub(super) fn log_process(memory: &str, log: &str) -> io::Result<()> {
    let file = File::options().read(true).write(true).open(memory)?;
    let shared = MappedFile::map(&file, 0, SHARED_BYTES)?;
    let mut log = MappedLog::create(Path::new(log))?;
    let (mut orders, mut done) = (io::stdin().lock(), io::stdout().lock());
    let mut order = [0; 4];
    loop {
        match orders.read_exact(&mut order) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
            read => read?,
        }
        let len = u32::from_le_bytes(order) as usize;
        log.append(len, |window, at, which| shared.copy_to(which.start, which.len(), window, at));
        done.write_all(&[1])?;
        done.flush()?;
    }
    log.cut();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of this test, removed when dropped.
    struct Place(std::path::PathBuf);

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// The designs without another process: four OS threads, each line whole and in its order.
    #[test]
    fn each_design_keeps_whole_lines() {
        let place = Place(std::env::temp_dir().join(format!("selvedge-designs-{}", std::process::id())));
        std::fs::create_dir_all(&place.0).unwrap();
        for (name, design) in [
            ("handle", LogDesign::Handle),
            ("append", LogDesign::Append),
            ("mapped", LogDesign::Mapped),
            ("channel", LogDesign::Channel),
        ] {
            assert_eq!(LogDesign::named(name), Ok(design));
            let path = place.0.join(name);
            let sink = open(design, &path).unwrap().unwrap();
            // More than a window of the mapped file.
            let padding = "x".repeat(10_000);
            std::thread::scope(|scope| {
                for thread in 0..4 {
                    let (sink, padding) = (sink.clone(), &padding);
                    scope.spawn(move || {
                        for n in 0..500 {
                            sink.take(format!("{thread} {n} {padding}\n").as_bytes());
                        }
                    });
                }
            });
            sink.finish();
            let text = std::fs::read_to_string(&path).unwrap();
            let mut next = [0; 4];
            for line in text.lines() {
                let mut words = line.split(' ');
                let thread: usize = words.next().unwrap().parse().unwrap();
                assert_eq!(words.next().unwrap().parse(), Ok(next[thread]), "{name}");
                assert_eq!(words.next(), Some(&*padding), "{name}");
                next[thread] += 1;
            }
            assert_eq!(next, [500; 4], "{name}");
        }
    }
}
