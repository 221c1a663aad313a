//! Where bytes come from: files one after the other, standard input, commands.
//!
//! `stream.rs` makes [`Files`] for the stage `file`, and wraps standard input and commands in a
//! [`NamedSource`].
//!
//! A failure of these sources must have the name `stage::failure_name`, which begins with `@`, or
//! that of `stage::stream_name`.
//! `run.rs` finds the place in the script by it, and [`NamedSource`] sees by it that the failure
//! came from a stage before the command and has its name already.

use crate::language::tree::Stage;
use crate::progress::Progress;
use crate::stage::{failure_name, stream_name};
use selvedge_flow::{BoxedSource, Source, WholeFile};
use selvedge_io::fs::{AlignedBuf, File};
use selvedge_io::stdio;
use selvedge_pipeline::{StageError, StreamPlace};
use std::collections::VecDeque;
use std::error::Error;
use std::io::{self, Read};
use std::sync::Arc;

/// How many bytes one read of a file asks for.
const BLOCK: usize = 128 << 10;

/// A failure of a source or a target, after this number of bytes.
pub fn failed(name: &str, bytes: u64, cause: impl Into<Box<dyn Error + Send + Sync>>) -> StageError {
    StageError::new(name.to_string(), StreamPlace { items: bytes, elements: bytes }, cause)
}

/// Fails if a path names a standard stream that was closed when the process began. The path alone
/// does not tell it, because the standard library has opened `/dev/null` in place of the stream.
///
/// # Errors
/// As those of the stream.
pub fn standard_stream_is_open(path: &str) -> io::Result<()> {
    let stream = ["/dev/fd/", "/proc/self/fd/", "/dev/std"].iter().find_map(|begin| path.strip_prefix(begin));
    match stream {
        Some("0" | "in") => stdio::stdin().map(drop),
        Some("1" | "out") => stdio::stdout().map(drop),
        Some("2" | "err") => stdio::stderr().map(drop),
        _ => Ok(()),
    }
}

/// Runs `work` on a thread of the pool, which may wait.
///
/// # Errors
/// If the thread is lost.
pub async fn on_pool<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    selvedge_io::blocking(work).await.map_err(|lost| io::Error::other(lost.to_string()))
}

/// Files, one after the other. Each is opened when the one before has ended.
#[derive(Debug)]
pub struct Files {
    name: String,
    paths: VecDeque<String>,
    open: Option<OpenFile>,
    /// It is there from the first read on. It begins at a page, because a copy of the kernel to a
    /// large `Vec` takes longer (head of `crates/flow/src/bytes.rs`).
    block: Option<AlignedBuf>,
    /// How many bytes have come.
    come: u64,
    progress: Progress,
}

#[derive(Debug)]
enum OpenFile {
    Regular(File),
    /// A pipe or a device, with its path: a thread of the pool waits for it.
    Other(Arc<std::fs::File>, String),
}

impl OpenFile {
    async fn open(path: String) -> io::Result<OpenFile> {
        standard_stream_is_open(&path)?;
        // The kind of the file is asked before it is opened. A pipe must be opened once only,
        // because its writer fails when the first reader goes.
        if !selvedge_io::fs::metadata(path.clone()).await.is_ok_and(|status| !status.is_file()) {
            let pattern = path.contains(['*', '?', '[']) || path.starts_with('~');
            return match File::open(path).await {
                Ok(file) => Ok(OpenFile::Regular(file)),
                Err(error) if pattern && error.kind() == io::ErrorKind::NotFound => {
                    let help = "a name is no pattern; sh \"cat *.log\" reads the files that match";
                    Err(io::Error::new(error.kind(), format!("{error} ({help})")))
                }
                Err(error) => Err(error),
            };
        }
        let opening = path.clone();
        let opened = on_pool(move || std::fs::File::open(opening)).await?;
        match opened {
            Ok(file) => Ok(OpenFile::Other(Arc::new(file), path)),
            Err(error) => Err(io::Error::new(error.kind(), format!("open {path}: {error}"))),
        }
    }

    /// Fills a block, and returns it unless the thread that reads is lost. 0 bytes are the end.
    async fn read(&mut self, mut block: AlignedBuf) -> (io::Result<usize>, Option<AlignedBuf>) {
        match self {
            OpenFile::Regular(file) => {
                let read = file.read(&mut block).await;
                (read, Some(block))
            }
            OpenFile::Other(file, path) => {
                let file = file.clone();
                let read = on_pool(move || ((&*file).read(&mut block), Some(block))).await;
                let (read, block) = read.unwrap_or_else(|lost| (Err(lost), None));
                let named = |error: io::Error| io::Error::new(error.kind(), format!("read {path}: {error}"));
                (read.map_err(named), block)
            }
        }
    }
}

impl Files {
    /// The files of a stage.
    pub fn new(stage: &Stage, paths: &[String], progress: Progress) -> Files {
        let (name, paths) = (failure_name(stage), paths.iter().cloned().collect());
        Files { name, paths, open: None, block: None, come: 0, progress }
    }
}

impl Source<u8> for Files {
    async fn next(&mut self) -> Result<Option<&[u8]>, StageError> {
        loop {
            if self.open.is_none() {
                let Some(path) = self.paths.pop_front() else {
                    self.progress.end();
                    return Ok(None);
                };
                let opened = OpenFile::open(path).await;
                self.open = Some(opened.map_err(|error| failed(&self.name, self.come, error))?);
            }
            let block = self.block.take().unwrap_or_else(|| AlignedBuf::new(BLOCK));
            let open = self.open.as_mut().expect("it has just been opened");
            let (read, block) = open.read(block).await;
            self.block = block;
            let length = read.map_err(|error| failed(&self.name, self.come, error))?;
            if length > 0 {
                self.come += length as u64;
                self.progress.pass(length as u64);
                return Ok(self.block.as_ref().map(|block| &block[..length]));
            }
            self.open = None;
        }
    }

    fn is_prompt(&self) -> bool {
        // Behind the end of this file may come one that waits: a pipe, a terminal.
        self.paths.is_empty() && matches!(&self.open, Some(OpenFile::Regular(file)) if file.was_in_memory())
    }

    fn whole_file(&self) -> Option<WholeFile> {
        match (&self.open, self.paths.len()) {
            (None, 1) => {
                Some(WholeFile { path: (&self.paths[0]).into(), name: Some(self.name.clone().into()) })
            }
            _ => None,
        }
    }

    async fn close(self) {
        self.progress.end();
    }
}

/// A supply that fails under the name of its stage.
#[derive(Debug)]
pub struct NamedSource {
    name: String,
    supply: BoxedSource<u8>,
}

impl NamedSource {
    /// The supply of a stage.
    pub fn new(stage: &Stage, supply: BoxedSource<u8>) -> NamedSource {
        NamedSource { name: failure_name(stage), supply }
    }

    /// Standard input, before the first stage or as this stage.
    pub fn stdin(stage: &Stage, supply: BoxedSource<u8>) -> NamedSource {
        NamedSource { name: stream_name(stage, "read standard input"), supply }
    }
}

impl Source<u8> for NamedSource {
    async fn next(&mut self) -> Result<Option<&[u8]>, StageError> {
        let NamedSource { name, supply } = self;
        supply.next().await.map_err(|failure| {
            // A stage upstream of the command has failed, and has its own name already.
            if failure.stage().starts_with('@') {
                return failure;
            }
            failed(name, failure.offset(), failure.cause().to_string())
        })
    }

    fn is_prompt(&self) -> bool {
        self.supply.is_prompt()
    }

    async fn close(self) {
        self.supply.close().await;
    }
}
