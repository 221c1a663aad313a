//! One command: a child process, the text that it writes, and how it ends.
//!
//! `Runner::child` in `finish.rs` calls `Running::start`, and waits for `Running::end`.
//!
//! This process must close its copies of the pipe's writing end before it reads, because the read
//! ends only when no writer is left. `Running::spawn` does so.

use selvedge_io::pipe::Receiver;
use selvedge_io::process::{Child, Command};
use selvedge_scope::{Selected, select};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::ExitStatus;

use crate::shell;

/// Variables of the environment, with their values where a command gets another value than this
/// process has.
pub(super) type Variables<'a> = [(&'static str, Option<&'a OsStr>); 2];

/// A command that runs.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    /// The pipe with its output; `None` if it has the terminal.
    output: Option<Receiver>,
}

impl Running {
    /// Starts a command. A program that cannot be started directly is left to the shell, which says
    /// why.
    ///
    /// A command without `input` has the streams of this process, and is in its process group:
    /// Ctrl-C reaches it. Every other one has a group of its own, and one pipe for both of its
    /// outputs.
    ///
    /// The kernel loads the program on the calling OS thread. Until then no other thread of the
    /// build runs, but they hardly compute, and two switches between OS threads cost more.
    pub(super) fn start(
        command: &[u8],
        input: Option<&File>,
        variables: Variables<'_>,
    ) -> io::Result<Running> {
        if let Some(words) = shell::words(command) {
            let mut direct = std::process::Command::new(OsStr::from_bytes(&words[0]));
            direct.args(words[1..].iter().map(|word| OsStr::from_bytes(word)));
            if let Ok(running) = Running::spawn(direct, input, variables) {
                return Ok(running);
            }
        }
        let mut shell = std::process::Command::new("/bin/sh");
        shell.arg("-c").arg(OsStr::from_bytes(command));
        Running::spawn(shell, input, variables)
    }

    fn spawn(
        mut command: std::process::Command,
        input: Option<&File>,
        variables: Variables<'_>,
    ) -> io::Result<Running> {
        for (name, value) in variables {
            value.map(|value| command.env(name, value));
        }
        let mut output = None;
        if let Some(input) = input {
            let (reader, writer) = io::pipe()?;
            command.stdin(input.try_clone()?).stdout(writer.try_clone()?).stderr(writer).process_group(0);
            output = Some(Receiver::from_fd(reader.into())?);
        }
        // The drop of the `Command` at the end of this statement closes this process's writing
        // ends, so the pipe ends with the child.
        let child = Command::from(command).spawn_here()?;
        Ok(Running { child, output })
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
    pub(super) async fn end(mut self, stop: impl Future<Output = ()>) -> io::Result<(ExitStatus, Vec<u8>)> {
        let Some(output) = self.output.take() else {
            return Ok((self.child.wait().await?, Vec::new()));
        };
        if let Selected::First(text) = select((output.read_to_end(), stop)).await {
            return Ok((self.child.wait().await?, text?));
        }
        if let Selected::Second(status) = select((output.read_to_end(), self.child.wait())).await {
            return Ok((status?, Vec::new()));
        }
        Ok((self.child.wait().await?, Vec::new()))
    }
}
