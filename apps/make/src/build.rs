//! Runs the edges that must run. `settings.rs` makes the [`Settings`], and `app.rs` calls
//! [`build`].
//!
//! | file | what is in it |
//! |---|---|
//! | `runner.rs` | the threads of a build, one for each edge, and the signals |
//! | `jobs.rs`, `jobserver.rs` | the permits that a command waits for |
//! | `finish.rs`, `command.rs` | one command: its files before it, its process, its end |
//! | `records.rs`, `includes.rs`, `clock.rs` | the headers that a command names, and the lines of the logs |
//! | `status.rs`, `escapes.rs`, `timeline.rs` | the lines that the user sees, and the trace of a build |
//! | `critical_path.rs` | the longest chain of commands, for `-t critical-path` |
//!
//! All of it runs on one OS thread, so cells and `RefCell`s guard what the threads share. No borrow
//! may live across an `.await`.

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

pub use runner::{Outcome, build};
pub use status::{FormatError, Style, check_format};

use command::Variables;
use jobserver::Jobserver;
use std::path::PathBuf;
use std::sync::Arc;

/// The exit status of a build that a signal has stopped, and of a command that tells of Ctrl-C.
pub const INTERRUPTED: u8 = 130;

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
    /// How much of the build is shown, and how.
    pub style: Style,
    /// Where the times of all commands go.
    pub timeline: Option<PathBuf>,
    /// The job server that grants commands, beside `jobs`.
    pub jobserver: Option<Arc<Jobserver>>,
    /// The directory of the build, which commands get as `PWD`; `None` if the variable of this
    /// process names it.
    pub working_directory: Option<PathBuf>,
    /// The directory of the logs, where the file `.ninja_lock` tells the file system's clock.
    pub log_directory: PathBuf,
}

impl Settings {
    /// The variables that commands get in addition to those of this process, or with other values.
    fn variables(&self) -> Variables {
        let flags = self.jobserver.as_ref().and_then(|server| server.makeflags());
        let flags = flags.map(|flags| ("MAKEFLAGS", flags.into()));
        let directory = self.working_directory.as_ref().map(|path| ("PWD", path.clone().into()));
        flags.into_iter().chain(directory).collect()
    }
}
