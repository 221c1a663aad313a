//! The logs of a server: [`open_log`] at the start, and [`NewLogs`] when a reload changes them.

use super::lock::lock;
use super::server::Changeable;
use crate::background::{self, Reports};
use crate::configuration::{Loaded, ProcessSettings};
use crate::options::{Log, Options};
use crate::reporting;
use crate::startup_error::StartupError;
use crate::takeover::{HandedFiles, HandedName};
use selvedge_http::{LogFile, Severity, report};
use std::sync::Arc;

/// The access log that the options ask for: the `handed` one of that path, or one that is opened.
///
/// # Errors
/// With the path in the message.
pub(super) fn open_log(
    options: &Options,
    process: &ProcessSettings,
    handed: &mut HandedFiles,
) -> Result<Option<LogFile>, StartupError> {
    let log = match &options.log {
        Log::Off => return Ok(None),
        Log::Stdout => LogFile::stdout()?,
        Log::File(path) => match handed.take_file(&HandedName::Log(path.clone())) {
            Some(file) => LogFile::opened(path, file),
            None => LogFile::open(path).map_err(StartupError::naming("--log"))?,
        },
    };
    Ok(Some(log.with_format(process.format.clone()).with_rotation(process.rotation)))
}

/// The logs that a reload has changed, opened and not yet in use.
pub(super) struct NewLogs {
    /// The access log, if it has changed.
    access: Option<Option<LogFile>>,
    /// The file for reports, if it has changed.
    reports: Option<Reports>,
}

impl NewLogs {
    /// Opens what `loaded` has changed of the logs. It blocks.
    ///
    /// # Errors
    /// A file cannot be opened, with its path in the message.
    pub(super) fn open(shared: &Changeable, loaded: &Loaded) -> Result<NewLogs, StartupError> {
        let Loaded { options, process, .. } = loaded;
        let Some((before, was)) = lock(&shared.started).clone() else {
            return Ok(NewLogs { access: None, reports: None });
        };
        let is_same =
            options.log == before.log && (&process.format, process.rotation) == (&was.format, was.rotation);
        let access = match is_same {
            true => None,
            false => Some(open_log(options, process, &mut HandedFiles::default())?),
        };
        let reports = match &process.report {
            Some(path) if process.report != was.report => Some(Reports::replacing(path)?),
            _ => None,
        };
        Ok(NewLogs { access, reports })
    }

    /// Puts them into use. The workers take over the access log with the routes.
    pub(super) fn begin(self, shared: &Changeable, loaded: &Loaded) {
        if let Some(access) = self.access {
            let mut log = lock(&shared.log);
            *log = match (access, &*log) {
                (Some(later), Some(former)) => Some(Arc::new(later.after(former))),
                (later, _) => later.map(Arc::new),
            };
        }
        let has_reports = self.reports.is_some();
        if let Some(Err(error)) = self.reports.map(Reports::begin) {
            report(Severity::Error, format_args!("the reports go on where they went: {error}"));
        }
        if let Some((options, process)) = &mut *lock(&shared.started) {
            options.log = loaded.options.log.clone();
            process.format = loaded.process.format.clone();
            process.rotation = loaded.process.rotation;
            process.level = loaded.process.level;
            if has_reports {
                process.report = loaded.process.report.clone();
            }
            let is_file = process.report.is_some() || background::is_daemon();
            reporting::begin(process.level, is_file);
        }
    }
}
