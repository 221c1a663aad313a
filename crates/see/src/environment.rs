//! Seeing by environment variable (`SELVEDGE_SEE`), without a change to the program:
//! [`from_environment`], and [`Seeing`], which writes what is to be written at the end.
//!
//! The runners of the façade and `apps/httpd` call it when they start. It turns the variable into
//! calls of the other files of this crate.

use crate::helper::{answer_signal, watch};
use crate::{counters, dump, on, timeline, write_timeline};
use selvedge_io::signal::Signal;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

/// The reports that [`from_environment`] was asked for. Dropping it writes those of the end: the
/// counters to standard error, the timeline to its file.
#[derive(Debug, Default)]
#[must_use = "dropping it is the end of what is seen"]
pub struct Seeing {
    wanted: WantedOutput,
}

/// What the variable asks for.
#[derive(Debug, Default, Clone, PartialEq)]
struct WantedOutput {
    dump: bool,
    counters: bool,
    trace: Option<PathBuf>,
    watchdog: Option<Duration>,
}

/// The variable `SELVEDGE_SEE` is not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeeError(String);

impl fmt::Display for SeeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SELVEDGE_SEE: {}; there are dump, counters, trace=FILE, watchdog=MS", self.0)
    }
}

impl std::error::Error for SeeError {}

/// The variable.
const VARIABLE: &str = "SELVEDGE_SEE";
/// Spans of the timeline that are kept of each CPU.
const SPANS: usize = 1 << 17;

/// Does what the environment variable `SELVEDGE_SEE` asks for: a list of these, between commas.
///
/// | | |
/// |---|---|
/// | `dump` | SIGUSR1 and SIGQUIT write a thread dump to standard error, and the program goes on |
/// | `counters` | the counters are written to standard error at the end, and with each dump: of each CPU, its queues, the blocking pool, the system calls |
/// | `trace=FILE` | the timeline is written to a file at the end, and with each dump: the last 131,072 spans of each CPU |
/// | `watchdog=MS` | a step that lasts longer is reported to standard error |
///
/// With any of them, a deadlock is reported with the threads' names, what each waits for, and which
/// thread waits for which.
///
/// "The end" is the drop of the result: keep the result in `main`. A program that a signal ends
/// writes nothing at its end; send it SIGUSR1 before. Without the variable this function does
/// nothing.
///
/// # Errors
/// If the variable has another word in it, or the process cannot subscribe to a signal.
pub fn from_environment() -> Result<Seeing, SeeError> {
    match std::env::var(VARIABLE) {
        Ok(text) => WantedOutput::parse(&text)?.begin(),
        Err(std::env::VarError::NotPresent) => Ok(Seeing::default()),
        Err(error) => Err(SeeError(error.to_string())),
    }
}

/// The wish of the variable, for the answer to a signal: that is a plain function.
static WANTED: OnceLock<WantedOutput> = OnceLock::new();

impl WantedOutput {
    fn parse(text: &str) -> Result<WantedOutput, SeeError> {
        let mut wanted = WantedOutput::default();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word.split_once('=').unwrap_or((word, "")) {
                ("dump", "") => wanted.dump = true,
                ("counters", "") => wanted.counters = true,
                ("trace", file) if !file.is_empty() => wanted.trace = Some(file.into()),
                ("watchdog", ms) => match ms.parse() {
                    Ok(ms @ 1..) => wanted.watchdog = Some(Duration::from_millis(ms)),
                    _ => return Err(SeeError(format!("watchdog={ms} is not a number of milliseconds"))),
                },
                _ => return Err(SeeError(format!("there is no {word}"))),
            }
        }
        Ok(wanted)
    }

    fn begin(self) -> Result<Seeing, SeeError> {
        if self == WantedOutput::default() || WANTED.set(self.clone()).is_err() {
            // Nothing to do, or a second call: the first one does it.
            return Ok(Seeing::default());
        }
        on();
        if self.trace.is_some() {
            timeline(SPANS);
        }
        if let Some(limit) = self.watchdog {
            watch(limit, |long| eprintln!("{long}"));
        }
        if self.dump {
            answer_signal(&[Signal::USR1, Signal::QUIT], || {
                eprintln!("{}", dump());
                WANTED.get().expect("set before the signal").write();
            })
            .map_err(|error| SeeError(error.to_string()))?;
        }
        Ok(Seeing { wanted: self })
    }

    fn write(&self) {
        if self.counters {
            eprintln!("{}", counters());
        }
        if let Some(Err(error)) = self.trace.as_deref().map(|file: &Path| write_timeline(file)) {
            eprintln!("{error}");
        }
    }
}

impl Drop for Seeing {
    fn drop(&mut self) {
        self.wanted.write();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_variable_may_say() {
        let wanted = WantedOutput::parse("dump,counters, trace=/tmp/a=b.json ,watchdog=20,").unwrap();
        assert!(wanted.dump && wanted.counters);
        assert_eq!(wanted.trace.unwrap(), Path::new("/tmp/a=b.json"));
        assert_eq!(wanted.watchdog, Some(Duration::from_millis(20)));
        assert_eq!(WantedOutput::parse("").unwrap(), WantedOutput::default());
    }

    #[test]
    fn what_it_may_not_say() {
        for text in
            ["dumps", "dump=1", "trace", "trace=", "watchdog", "watchdog=0", "watchdog=x", "dump counters"]
        {
            let error = WantedOutput::parse(text).unwrap_err().to_string();
            assert!(error.starts_with("SELVEDGE_SEE: ") && error.contains("trace=FILE"), "{error}");
        }
    }
}
