//! The bar of `--progress`: how much of the files has been read.
//!
//! `run.rs` makes a [`Progress`] for each pipeline, and each `source::Files` of it calls `pass` and
//! `end`. Several threads may read files of one pipeline, so a mutex guards the bar.
//!
//! The total is the sum of the files' lengths at the start. So a pipeline without regular files
//! shows no bar.

use crate::language::tree::{Stage, StageKind};
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often the bar is drawn.
const PERIOD: Duration = Duration::from_millis(100);

/// How long a run lasts before the bar is shown for the first time.
const QUIET: Duration = Duration::from_millis(300);

const WIDTH: u64 = 30;

/// The progress of a pipeline. All clones are one.
#[derive(Debug, Clone)]
pub struct Progress {
    bar: Option<Arc<Mutex<Bar>>>,
}

#[derive(Debug)]
struct Bar {
    total: u64,
    done: u64,
    next: Instant,
    shown: bool,
}

/// The bytes of all files that a pipeline reads, also in the brackets of its joins.
fn total(pipeline: &[Stage]) -> u64 {
    let of_stage = |stage: &Stage| match &stage.kind {
        StageKind::File(names) => {
            names.iter().filter_map(|name| std::fs::metadata(name).ok()).map(|file| file.len()).sum()
        }
        StageKind::Join2(_, inner) => total(inner),
        _ => 0,
    };
    pipeline.iter().map(of_stage).sum()
}

/// The bar as text.
///
/// # Examples
/// ```
/// use selvedge_pipe::progress::line;
///
/// assert_eq!(line(50 << 20, 100 << 20), "[###############               ]  50%  50 of 100 MiB");
/// ```
pub fn line(done: u64, total: u64) -> String {
    let share = done.min(total) * 1000 / total.max(1);
    let full = (share * WIDTH / 1000) as usize;
    let mebibytes = |bytes: u64| bytes >> 20;
    let (done, total) = (mebibytes(done), mebibytes(total));
    format!("[{:width$}] {:3}%  {done} of {total} MiB", "#".repeat(full), share / 10, width = WIDTH as usize)
}

impl Progress {
    /// The progress of a pipeline; of nothing, unless it is shown.
    pub fn of(pipeline: &[Stage], shown: bool) -> Progress {
        let total = if shown { total(pipeline) } else { 0 };
        let bar = Bar { total, done: 0, next: Instant::now() + QUIET, shown: false };
        Progress { bar: (total > 0).then(|| Arc::new(Mutex::new(bar))) }
    }

    /// Counts bytes that a source has read, and draws the bar if it is due.
    pub fn pass(&self, bytes: u64) {
        let Some(bar) = &self.bar else { return };
        let mut bar = bar.lock().unwrap_or_else(PoisonError::into_inner);
        bar.done += bytes;
        let now = Instant::now();
        if now >= bar.next {
            bar.next = now + PERIOD;
            bar.shown = true;
            // An error of the terminal is ignored, because the bar is no part of the result.
            let _ = write!(std::io::stderr(), "\r{}", line(bar.done, bar.total));
        }
    }

    /// Erases the bar. `pass` draws it again if other files of the pipeline are still read.
    pub fn end(&self) {
        let Some(bar) = &self.bar else { return };
        let mut bar = bar.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut bar.shown) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
