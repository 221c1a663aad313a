//! [`Target`]: the last part of each pipeline, which writes to the standard output, to a file, or
//! to a pipe or a device that has a path.
//!
//! `run::run_pipeline` makes it, [`Stream::pour`](crate::stream::Stream::pour) runs it, and
//! `run.rs` makes the outcome of a run from what the target has `Seen`.

use crate::source::{failed, on_pool, standard_stream_is_open};
use selvedge_io::fs::{File, metadata};
use selvedge_io::stdio::Output;
use selvedge_pipeline::{Flow, StageError};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// How many bytes of small outputs go into one write, if the source does not wait.
const GATHERS: usize = 16 << 10;

/// The end of a pipeline: it writes the text, and notes whether there was any.
#[derive(Debug)]
pub struct Target {
    name: String,
    place: Destination,
    written: u64,
    /// The text is a count.
    counts: bool,
    seen: Arc<Seen>,
}

impl Target {
    /// The file at `path`, which the first write opens. It loses its content, or with `append`
    /// keeps it. A failure names the stage `name`. `counts` says that the text is a count.
    pub(crate) fn file(name: String, path: &str, append: bool, counts: bool) -> Target {
        Target::new(name, Destination::Closed(path.to_string(), append), counts)
    }

    /// The standard output, with `name` and `counts` as for [`file`](Self::file).
    pub(crate) fn stdout(name: String, output: Output, counts: bool) -> Target {
        Target::new(name, Destination::Stdout(output), counts)
    }

    fn new(name: String, place: Destination, counts: bool) -> Target {
        Target { name, place, written: 0, counts, seen: Arc::default() }
    }

    /// What the target sees. It can be asked when the target is gone.
    pub(crate) fn seen(&self) -> Arc<Seen> {
        self.seen.clone()
    }
}

/// What a target has seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    found: AtomicBool,
    reader_gone: AtomicBool,
}

impl Seen {
    /// Whether there was text that is no count of 0.
    pub(crate) fn found(&self) -> bool {
        self.found.load(Relaxed)
    }

    /// Whether the reader of the pipe has closed it.
    pub(crate) fn reader_gone(&self) -> bool {
        self.reader_gone.load(Relaxed)
    }
}

#[derive(Debug)]
enum Destination {
    Stdout(Output),
    /// The path of a file that is not open yet, and whether it keeps its content.
    Closed(String, bool),
    /// A file with places in it.
    Regular(File),
    /// A pipe or a device, with its path: a thread of the pool waits for it.
    Other(Arc<std::fs::File>, String),
}

impl Destination {
    async fn write(&mut self, items: &mut Vec<u8>, written: u64) -> io::Result<()> {
        if let Destination::Closed(path, append) = self {
            *self = Destination::open(std::mem::take(path), *append).await?;
        }
        match self {
            Destination::Stdout(output) => output.write_all(items).await,
            Destination::Regular(file) => {
                let (result, bytes) = file.write_all_at(std::mem::take(items), written).await;
                *items = bytes;
                result
            }
            Destination::Other(file, path) => {
                let (file, bytes) = (file.clone(), std::mem::take(items));
                let (written, bytes) = on_pool(move || ((&*file).write_all(&bytes), bytes)).await?;
                *items = bytes;
                written.map_err(|error| io::Error::new(error.kind(), format!("write {path}: {error}")))
            }
            Destination::Closed(..) => Ok(()),
        }
    }

    async fn open(path: String, append: bool) -> io::Result<Destination> {
        standard_stream_is_open(&path)?;
        // Writes at places in the file fail for a pipe, a terminal and most devices.
        if !metadata(path.clone()).await.is_ok_and(|status| !status.is_file()) {
            let mut options = File::options();
            options.write(!append).append(append).truncate(!append).create(true);
            return Ok(Destination::Regular(options.open(path).await?));
        }
        let name = path.clone();
        let opened = on_pool(move || std::fs::File::options().write(true).append(append).open(name)).await?;
        match opened {
            Ok(file) => Ok(Destination::Other(Arc::new(file), path)),
            Err(error) => Err(io::Error::new(error.kind(), format!("open {path}: {error}"))),
        }
    }
}

impl selvedge_flow::Target<u8> for Target {
    const GATHERS: usize = GATHERS;

    async fn put(&mut self, items: &mut Vec<u8>) -> Result<Flow, StageError> {
        if items.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        if !self.counts || items.iter().any(|byte| !b"0\n".contains(byte)) {
            self.seen.found.store(true, Relaxed);
        }
        match self.place.write(items, self.written).await {
            Ok(()) => {
                self.written += items.len() as u64;
                Ok(ControlFlow::Continue(()))
            }
            // The reader has closed the pipe, as `head` does in a shell. Nothing is said of it.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.seen.reader_gone.store(true, Relaxed);
                Ok(ControlFlow::Break(()))
            }
            Err(error) => Err(failed(&self.name, self.written, error)),
        }
    }

    async fn finish(&mut self) -> Result<(), StageError> {
        // This opens the file if no item has, so that it exists also after an empty stream.
        let opened = self.place.write(&mut Vec::new(), self.written).await;
        opened.map_err(|error| failed(&self.name, self.written, error))
    }
}
