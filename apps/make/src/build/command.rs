//! One command: a child process, the text that it writes, and how it ends.
//!
//! `Runner::child` in `finish.rs` starts a [`Running`], and waits for [`Running::end`].

use crate::shell;
use selvedge_io::pipe::Receiver;
use selvedge_io::process::{Child, Command, Launcher};
use selvedge_scope::{Selected, select};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitStatus;
use std::thread;

/// Variables of the environment that commands get in addition to those of this process, or with
/// other values.
pub(super) type Variables = Vec<(&'static str, OsString)>;

/// A command that runs.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    /// The pipe with its output; `None` if it has the terminal.
    output: Option<Receiver>,
}

/// How a command has ended.
#[derive(Debug)]
pub(super) enum End {
    /// With its text.
    Of(ExitStatus, Vec<u8>),
    /// The program was not loaded.
    NotLoaded(io::Error),
}

/// The words by which the shell runs a command.
fn by_shell(command: &[u8]) -> [&OsStr; 3] {
    [OsStr::new("/bin/sh"), OsStr::new("-c"), OsStr::from_bytes(command)]
}

impl Running {
    /// Starts a command with a pipe for both of its outputs, in a process group of its own. It runs
    /// without a shell if it needs none.
    pub(super) fn start(command: &[u8], launcher: &Launcher) -> io::Result<Running> {
        if let Some(words) = shell::words(command)
            && let Ok((child, output)) = launcher.start(words.iter().map(|word| OsStr::from_bytes(word)))
        {
            return Ok(Running { child, output: Some(output) });
        }
        Running::start_by_shell(command, launcher)
    }

    /// As [`start`](Running::start), in any case by the shell, which says why a program cannot be
    /// loaded.
    pub(super) fn start_by_shell(command: &[u8], launcher: &Launcher) -> io::Result<Running> {
        let (child, output) = launcher.start(by_shell(command))?;
        Ok(Running { child, output: Some(output) })
    }

    /// Starts a command that has the streams of this process, and is in its process group: Ctrl-C
    /// reaches it.
    pub(super) fn start_on_terminal(command: &[u8], variables: &Variables) -> io::Result<Running> {
        let spawn = |words: &[&OsStr]| {
            let mut program = Command::new(words[0]);
            program.args(&words[1..]);
            for (name, value) in variables {
                program.env(name, value);
            }
            Ok(Running { child: program.spawn_here()?, output: None })
        };
        if let Some(words) = shell::words(command)
            && let Ok(running) = spawn(&words.iter().map(|word| OsStr::from_bytes(word)).collect::<Vec<_>>())
        {
            return Ok(running);
        }
        spawn(&by_shell(command))
    }

    /// The id of its process, and of its process group if it has one of its own.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end. The text that it writes is read until no process has the pipe any more.
    ///
    /// After `stop` has ended, the text is read until the command has ended, and is left out. It is
    /// still read, because SIGPIPE would kill a command that writes a line before it cleans up. It
    /// is read no longer than that, because a process that the command has left behind may keep the
    /// pipe open.
    ///
    /// # Errors
    /// Those of the pipe and of the wait.
    pub(super) async fn end(mut self, stop: impl Future<Output = ()>) -> io::Result<End> {
        let (status, text) = self.status_and_text(stop).await?;
        Ok(self.child.load_error().map_or(End::Of(status, text), End::NotLoaded))
    }

    async fn status_and_text(&mut self, stop: impl Future<Output = ()>) -> io::Result<(ExitStatus, Vec<u8>)> {
        let Some(output) = self.output.take() else {
            return Ok((self.child.wait().await?, Vec::new()));
        };
        if let Selected::First(text) = select((output.read_to_end(), stop)).await {
            // A process that ends closes its pipe first. It has mostly ended when it has had the
            // CPU once more, and then the wait needs no descriptor and no event.
            if self.child.try_wait()?.is_none() {
                thread::yield_now();
            }
            return Ok((self.child.wait().await?, text?));
        }
        if let Selected::Second(status) = select((output.read_to_end(), self.child.wait())).await {
            return Ok((status?, Vec::new()));
        }
        Ok((self.child.wait().await?, Vec::new()))
    }
}
