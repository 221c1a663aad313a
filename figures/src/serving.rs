//! `Serving`: a server of this program that says its port and serves until it is stopped. The
//! figures about servers (`echo.rs`, `jobs.rs`) start theirs with it.

use crate::measure::{Contender, MeasureError};
use crate::pinned;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Stdio};

/// A server, until it is dropped.
pub(crate) struct Serving {
    child: Child,
    output: BufReader<ChildStdout>,
    /// The port it says it listens at.
    pub(crate) port: u64,
}

impl Serving {
    /// Starts a server and waits for its port. `words` are a tool that runs the server's command.
    ///
    /// # Errors
    /// [`MeasureError::Absent`] when it cannot run here, [`MeasureError::Failed`] when it names no
    /// port.
    pub(crate) fn start_under(words: &[String], entrant: &Contender) -> Result<Serving, MeasureError> {
        let failed = |what: String| MeasureError::Failed(what);
        let command = entrant.command.as_ref().map_err(|why| MeasureError::Absent(why.clone()))?;
        let mut server = pinned::command_on(entrant.cpus, &[words, command].concat());
        server.envs(entrant.environment.iter().copied());
        let mut child = server
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(format!("did not start: {error}")))?;
        let stdout = child.stdout.take().expect("it is piped");
        let mut serving = Serving { child, output: BufReader::new(stdout), port: 0 };
        loop {
            let mut line = String::new();
            if serving.output.read_line(&mut line).unwrap_or(0) == 0 {
                return Err(failed("it named no port".into()));
            }
            if let Some(port) = line.strip_prefix("port ").and_then(|port| port.trim().parse().ok()) {
                serving.port = port;
                return Ok(serving);
            }
        }
    }

    /// Starts a server and waits for its port.
    ///
    /// # Errors
    /// As [`start_under`](Self::start_under).
    pub(crate) fn start(entrant: &Contender) -> Result<Serving, MeasureError> {
        Serving::start_under(&[], entrant)
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u64 {
        u64::from(self.child.id())
    }

    /// Ends it by SIGTERM, and returns what it has printed since its port.
    pub(crate) fn stop_and_read(mut self) -> std::io::Result<String> {
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        let mut text = String::new();
        self.output.read_to_string(&mut text)?;
        Ok(text)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended by itself; its client has said so then.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
