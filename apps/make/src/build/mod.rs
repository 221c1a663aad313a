//! Runs what must run.

mod clock;
mod command;
pub mod critical_path;
mod escapes;
mod finish;
mod includes;
mod jobs;
pub mod jobserver;
mod records;
mod runner;
mod status;
mod timeline;

pub(crate) use runner::explain;
pub use runner::{Outcome, build};
pub use status::Style;

use std::path::PathBuf;
use std::sync::Arc;

use jobserver::Jobserver;

/// How a build is done.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How many commands run at the same time; `None` is as many as there are.
    pub jobs: Option<u32>,
    /// How many commands may fail before no other is started; `None` is any number.
    pub failures: Option<u32>,
    /// No command is started while the machine's load is above this.
    pub load: Option<f64>,
    /// Commands are shown, and not run.
    pub dry_run: bool,
    /// Depfiles stay after their content has gone to the log.
    pub keep_depfile: bool,
    /// Response files stay after their command.
    pub keep_rspfile: bool,
    /// What is shown.
    pub style: Style,
    /// Where the times of all commands go.
    pub timeline: Option<PathBuf>,
    /// The job server that grants commands, beside `jobs`.
    pub jobserver: Option<Arc<Jobserver>>,
    /// The file that tells the file system's clock by its mtime.
    pub clock: PathBuf,
}
