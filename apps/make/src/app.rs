//! One call of the program, from its options to its exit status.
//!
//! `main.rs` calls [`run`], which calls a tool (`tools/`), or loads the manifest and its logs
//! (`load.rs`) and builds the targets (`targets.rs`) as the settings say (`settings.rs`).
//!
//! [`run`] treats the manifest as the first target. If a command has changed the manifest, then
//! `built` returns `None`, and [`run`] loads everything anew.

use crate::build::{self, INTERRUPTED, Outcome};
use crate::error::MakeError;
use crate::load::{Loaded, warn};
use crate::options::Options;
use crate::say::{say, say_bytes};
use crate::settings::settings;
use crate::stats::Stats;
use crate::targets::targets;
use crate::tools;
use std::cell::RefCell;
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;

/// The program gives up after this number of rebuilds of the manifest, because a manifest that
/// needs more is never up to date.
const REBUILDS_MAX: u32 = 100;
/// The exit status when the reader of the build's output has gone. A shell reports a program that
/// SIGPIPE ended by the same number.
const UNREAD: u8 = 141;

/// Runs a tool or a build. Returns the exit status.
///
/// # Errors
/// The build or the tool could not begin or go on. A command that fails is an exit status.
pub fn run(options: &Options) -> Result<u8, MakeError> {
    if let Some(directory) = &options.directory {
        // Editors search for this line of ninja, because errors name files from the directory in
        // it.
        if options.tool.is_none() && !options.quiet {
            say_bytes(&[b"ninja: Entering directory `", directory.as_os_str().as_bytes(), b"'"].concat());
        }
        std::env::set_current_dir(directory).map_err(MakeError::of_file(directory))?;
    }
    for flag in &options.deprecated {
        warn(&format!("deprecated warning '{flag}'"));
    }
    if let Some((tool, arguments)) = &options.tool {
        return tools::run(options, tool, arguments);
    }
    for _ in 0..REBUILDS_MAX {
        let mut stats = Stats::default();
        let mut loaded = Loaded::new(options, &mut stats)?;
        if options.explain {
            loaded.project.explain_all();
        }
        match built(loaded, options, &mut stats)? {
            Some(status) => return Ok(status),
            None => continue,
        }
    }
    Err(MakeError::StillDirty(REBUILDS_MAX))
}

/// Builds the manifest, then the targets. `None` if a command has changed the manifest.
fn built(loaded: Loaded, options: &Options, stats: &mut Stats) -> Result<Option<u8>, MakeError> {
    let Loaded { mut project, manifest, directory } = loaded;
    let settings = settings(options, &directory)?;
    let targets = targets(&project.graph, Some(&project.deps_log), &options.targets)?;
    let own = project.graph.find(&manifest).filter(|node| project.graph.maker(*node).is_some());
    let all: Vec<_> = own.iter().chain(&targets).copied().collect();
    stats.time("look at files", || project.look(&all));
    let project = Rc::new(RefCell::new(project));
    if let Some(own) = own {
        let before = project.borrow_mut().mtime(own).ok();
        project.borrow_mut().visit_all(&[own])?;
        match build::build(&project, &[own], &settings)? {
            Outcome::Done(0) => {}
            // The commands behind it are those of a manifest that is not made yet.
            Outcome::Done(_) if options.dry_run => return Ok(Some(0)),
            Outcome::Done(_) => {
                let now = crate::disk::mtime(&manifest).ok();
                if now != before || project.borrow_mut().is_dirty(own) {
                    return Ok(None);
                }
                // The manifest is as it was, but its command may have written other files.
                project.borrow_mut().forget();
                stats.time("look at files again", || project.borrow_mut().look(&all));
            }
            failed @ Outcome::Stopped(..) => {
                stopped(failed);
                return Err(MakeError::ManifestFailed);
            }
            other => return Ok(Some(stopped(other))),
        }
    }
    let targets = stats.time("find what is dirty", || project.borrow_mut().visit_all(&targets))?;
    let outcome = stats.time("build", || build::build(&project, &targets, &settings));
    let outcome = outcome?;
    if options.stats {
        stats.print(&project.borrow());
    }
    if outcome == Outcome::Done(0) && !options.quiet {
        say("selvedge-make: no work to do.");
    }
    Ok(Some(stopped(outcome)))
}

/// Tells the user why a build has stopped. Returns the exit status.
fn stopped(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Done(_) => 0,
        Outcome::Stopped(reason, status) => {
            say(format_args!("selvedge-make: build stopped: {reason}."));
            status
        }
        Outcome::Interrupted => {
            say("selvedge-make: build stopped: interrupted by user.");
            INTERRUPTED
        }
        Outcome::Unread => UNREAD,
    }
}
