//! [`settings`]: how a build is done, from the options, the environment and the machine. `app.rs`
//! calls it once for each build.

use crate::build::jobserver::Jobserver;
use crate::build::{Settings, Style, check_format};
use crate::error::MakeError;
use crate::options::Options;
use std::ffi::OsString;
use std::fs;
use std::io::{self, IsTerminal};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How the options and the environment ask for the build. The logs lie in `directory`.
///
/// # Errors
/// No job server can be made, `NINJA_STATUS` is not understood, or the directory is not there.
pub(crate) fn settings(options: &Options, directory: &Path) -> Result<Settings, MakeError> {
    let makeflags = std::env::var("MAKEFLAGS").unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
    // As ninja: two more than there are, because some wait for the disk.
    let usual = if cpus <= 2 { cpus + 1 } else { cpus + 2 };
    let mut jobs = match options.jobs {
        Some(0) => None,
        Some(jobs) => Some(jobs),
        None => Some(usual),
    };
    let jobserver = if let Some(form) = options.jobserver {
        let server = Jobserver::new(jobs.unwrap_or(usual), form);
        Some(Arc::new(server.map_err(MakeError::Jobserver)?))
    } else if options.jobs.is_none() && !options.dry_run {
        Jobserver::from_makeflags(&makeflags).map(Arc::new)
    } else {
        None
    };
    if jobserver.is_some() {
        jobs = None;
    }
    let format = std::env::var_os("NINJA_STATUS").map(OsString::into_vec);
    let format = format.unwrap_or_else(|| b"[%f/%t] ".to_vec());
    check_format(&format)?;
    let understands = std::env::var_os("TERM").is_some_and(|term| term != "dumb");
    let terminal = io::stdout().is_terminal() && understands;
    Ok(Settings {
        jobs,
        failures: match options.failures.unwrap_or(1) {
            0 => None,
            failures => Some(failures),
        },
        load: options.load.filter(|load| *load > 0.0),
        dry_run: options.dry_run,
        keep_depfile: options.keep_depfile,
        keep_rspfile: options.keep_rspfile,
        style: Style {
            verbose: options.verbose,
            quiet: options.quiet,
            format,
            terminal: terminal && !options.verbose,
            colours: terminal || std::env::var_os("CLICOLOR_FORCE").is_some_and(|force| force != "0"),
        },
        timeline: options.timeline.clone(),
        jobserver,
        working_directory: working_directory()?,
        log_directory: directory.to_path_buf(),
    })
}

/// The directory of the build, if `PWD` names another one: after `-C`, or if the caller has changed
/// its directory and not the variable, as `cmake --build` does.
fn working_directory() -> io::Result<Option<PathBuf>> {
    let here = fs::metadata(".")?;
    let named = std::env::var_os("PWD").map(PathBuf::from).filter(|path| path.is_absolute());
    let named = named.and_then(|path| fs::metadata(path).ok());
    let fits = named.is_some_and(|named| (named.dev(), named.ino()) == (here.dev(), here.ino()));
    if fits { Ok(None) } else { std::env::current_dir().map(Some) }
}
