//! The daemon mode and the file with the number of the process.
//!
//! A daemon is the same program started once more, in a session of its own. The first process waits
//! until the second serves, says where, and ends with its status. So a mistake is told where the
//! server was started.

use std::env;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::options::Refusal;

/// In the environment of the second process.
const MARK: &str = "SELVEDGE_HTTPD_DAEMON";

/// The line by which the second process says that it serves.
const READY: &str = "selvedge-httpd: ready";

/// Whether this process is the second one.
pub(crate) fn is_daemon() -> bool {
    env::var_os(MARK).is_some()
}

/// Starts the second process and waits until it serves.
///
/// # Errors
/// It ended before. It has said why.
pub(crate) fn start() -> Result<(), Refusal> {
    let mut child = Command::new(env::current_exe()?)
        .args(env::args_os().skip(1))
        .env(MARK, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    for line in lines.map_while(Result::ok) {
        if line == READY {
            return Ok(());
        }
        println!("{line}");
    }
    let status = child.wait()?.code().unwrap_or(1);
    Err(Refusal { message: "the server did not start".to_owned(), status: status as u8 })
}

/// Begins a session of its own, so that the end of the terminal is not the end of the daemon.
pub(crate) fn begin() -> Result<(), Refusal> {
    if is_daemon() {
        // It fails for the leader of a group, which has a session of its own already.
        let _ = rustix::process::setsid();
    }
    Ok(())
}

/// Where the server's reports go, and what a daemon writes to its standard output.
#[derive(Debug)]
pub(crate) struct Reports {
    report: Option<File>,
    nowhere: Option<File>,
}

impl Reports {
    /// Opens the files. It is done while the process has all its privileges.
    ///
    /// # Errors
    /// With the path in the message.
    pub(crate) fn open(path: Option<&Path>) -> Result<Reports, Refusal> {
        let open = |path: &Path| {
            let naming = |error| Refusal { message: format!("{}: {error}", path.display()), status: 1 };
            File::options().append(true).create(true).open(path).map_err(naming)
        };
        let nowhere = is_daemon().then(|| open(Path::new("/dev/null"))).transpose()?;
        Ok(Reports { report: path.map(open).transpose()?, nowhere })
    }

    /// The server serves: a daemon says so, and lets go of the streams that it was started with.
    ///
    /// # Errors
    /// A stream cannot be replaced.
    pub(crate) fn begin(self) -> io::Result<()> {
        if let Some(nowhere) = &self.nowhere {
            // The first process may be gone.
            let _ = writeln!(io::stdout(), "{READY}");
            rustix::stdio::dup2_stdout(nowhere)?;
        }
        if let Some(file) = self.report.as_ref().or(self.nowhere.as_ref()) {
            rustix::stdio::dup2_stderr(file)?;
        }
        Ok(())
    }
}

/// The file with the number of the process. It is removed when the server ends.
#[derive(Debug)]
pub(crate) struct PidFile(Option<PathBuf>);

impl PidFile {
    /// Writes the file, if there is to be one.
    ///
    /// # Errors
    /// With the path in the message.
    pub(crate) fn write(path: Option<&Path>) -> Result<PidFile, Refusal> {
        if let Some(path) = path {
            let write = || writeln!(File::create(path)?, "{}", std::process::id());
            let naming = |error| Refusal { message: format!("{}: {error}", path.display()), status: 1 };
            write().map_err(naming)?;
        }
        Ok(PidFile(path.map(Path::to_owned)))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // After the user was changed the directory may not permit it.
        if let Some(path) = &self.0 {
            let _ = fs::remove_file(path);
        }
    }
}
