//! The daemon mode and the file with the number of the process.
//!
//! A daemon is the same program started once more, in a session of its own. The first process waits
//! until the second serves, says where, and ends with its status. So a mistake is told where the
//! server was started.

use crate::startup_error::StartupError;
use crate::takeover::{HandedFiles, HandedName};
use rustix::fs::OFlags;
use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
pub(crate) fn start() -> Result<(), StartupError> {
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
    Err(StartupError { message: "the server did not start".to_owned(), status: status as u8 })
}

/// Begins a session of its own, so that the end of the terminal is not the end of the daemon.
pub(crate) fn begin() -> Result<(), StartupError> {
    if is_daemon() {
        // It fails for the leader of a group, which has a session of its own already.
        let _ = rustix::process::setsid();
    }
    Ok(())
}

/// Opens a file that the server writes itself, perhaps as root. A link at its place is not
/// followed, because in a directory such as `/tmp` another user may have made it.
fn open_own(options: &mut OpenOptions, path: &Path) -> Result<File, StartupError> {
    let options = options.create(true).mode(0o640).custom_flags(OFlags::NOFOLLOW.bits() as i32);
    options.open(path).map_err(|error| naming(path, error))
}

fn naming(path: &Path, error: io::Error) -> StartupError {
    StartupError { message: format!("{}: {error}", path.display()), status: 1 }
}

/// Where the server's reports go, and what a daemon writes to its standard output.
#[derive(Debug)]
pub(crate) struct Reports {
    report: Option<File>,
    nowhere: Option<File>,
}

impl Reports {
    /// The streams as they are: a process that takes over writes where its predecessor wrote.
    pub(crate) fn inherited() -> Reports {
        Reports { report: None, nowhere: None }
    }

    /// Opens the files. It is done while the process has all its privileges.
    ///
    /// # Errors
    /// With the path in the message.
    pub(crate) fn open(path: Option<&Path>) -> Result<Reports, StartupError> {
        let open = |path: &Path| open_own(File::options().append(true), path);
        let nowhere = is_daemon().then(|| open(Path::new("/dev/null"))).transpose()?;
        Ok(Reports { report: path.map(open).transpose()?, nowhere })
    }

    /// The file for the reports of a server that runs already, in place of the former one.
    ///
    /// # Errors
    /// With the path in the message.
    pub(crate) fn replacing(path: &Path) -> Result<Reports, StartupError> {
        Ok(Reports { report: Some(open_own(File::options().append(true), path)?), nowhere: None })
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
pub(crate) struct PidFile(Option<(PathBuf, File)>);

impl PidFile {
    /// Opens the file, if there is to be one: the `handed` one of that path, or a new one.
    ///
    /// # Errors
    /// With the path in the message.
    pub(crate) fn open(path: Option<&Path>, handed: &mut HandedFiles) -> Result<PidFile, StartupError> {
        let open = |path: &Path| -> Result<(PathBuf, File), StartupError> {
            let file = match handed.take_file(&HandedName::Pid(path.to_owned())) {
                Some(file) => file,
                None => open_own(File::options().write(true), path)?,
            };
            Ok((path.to_owned(), file))
        };
        Ok(PidFile(path.map(open).transpose()?))
    }

    /// Writes the number of this process into it.
    ///
    /// # Errors
    /// With the path in the message.
    pub(crate) fn write(&self) -> Result<(), StartupError> {
        let Some((path, file)) = &self.0 else { return Ok(()) };
        let number = format!("{}\n", std::process::id());
        let written = file.set_len(0).and_then(|()| file.write_all_at(number.as_bytes(), 0));
        written.map_err(|error| naming(path, error))
    }

    /// Hands the file to a process that takes over.
    ///
    /// # Errors
    /// The process has no descriptors left.
    pub(crate) fn hand(&self, files: &mut HandedFiles) -> io::Result<()> {
        if let Some((path, file)) = &self.0 {
            files.push(HandedName::Pid(path.clone()), file.try_clone()?);
        }
        Ok(())
    }

    /// Leaves the file where it is, because another process has taken it over.
    pub(crate) fn leave(&mut self) {
        self.0 = None;
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // After the user was changed the directory may not permit it.
        if let Some((path, _)) = &self.0 {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_not_followed() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let [target, link, own] = ["target", "link", "own"].map(|name| directory.path().join(name));
        fs::write(&target, "precious").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(Reports::open(Some(&link)).unwrap_err().message.starts_with(link.to_str().unwrap()));
        assert!(PidFile::open(Some(&link), &mut HandedFiles::default()).is_err());
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
        let kept = PidFile::open(Some(&own), &mut HandedFiles::default()).unwrap();
        kept.write().unwrap();
        // A process that takes over writes its number over the former one, without a right to open
        // the file.
        let mut handed = HandedFiles::default();
        kept.hand(&mut handed).unwrap();
        let mut later = PidFile::open(Some(&own), &mut handed).unwrap();
        fs::write(&own, "12345678901234567890\n").unwrap();
        later.write().unwrap();
        assert_eq!(fs::read_to_string(&own).unwrap(), format!("{}\n", std::process::id()));
        later.leave();
        drop(later);
        assert!(own.exists());
        assert_eq!(fs::metadata(&own).unwrap().permissions().mode() & 0o137, 0);
        drop(kept);
        assert!(!own.exists());
    }
}
