//! The control socket: [`Commands`] answers at it, [`ask`] is `selvedge-httpd ctl`, and [`pass_on`]
//! is how the parent of several processes asks one of them.
//!
//! A client sends one line with a command. The server answers with text, of which the first line is
//! `ok` or `error: ...`, and closes.

use crate::startup_error::StartupError;
use selvedge_http::{Severity, Stop, report};
use selvedge_io::net::{UnixListener, UnixStream};
use selvedge_io::time::timeout;
use selvedge_scope::{Selected, select};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream as StdStream;
use std::path::Path;
use std::time::Duration;

/// The commands, and what each does.
pub(crate) const COMMANDS: [(&str, &str); 7] = [
    ("status", "the server's state, its routes and counters"),
    ("reload", "reads the configuration again; a mistake in it is told, and changes nothing"),
    ("retire", "accepts no more connections, and ends when those that are open have ended"),
    ("upgrade", "starts the program's file anew, hands its sockets over, and retires"),
    ("stop", "finishes the requests in flight, and ends"),
    ("threads", "what each thread waits for"),
    ("counters", "the counters, in the format of Prometheus"),
];

/// How long a client may take to send its command, and to take the answer, and a process to answer
/// its parent.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a client waits for the answer. An upgrade takes as long as the new process does.
const LONGEST: Duration = Duration::from_secs(90);

/// What the commands do.
pub(crate) trait Commands {
    /// The answer to a command: text, or why not.
    async fn obey(&self, command: &str) -> Result<String, String>;

    /// The client has the answer, which was no refusal: what a command does to the process itself.
    fn answered(&self, command: &str);
}

/// Answers at `listener` until `over` is requested, one client after the other.
pub(crate) async fn answer(listener: UnixListener, commands: &impl Commands, over: &Stop) {
    while !over.is_requested() {
        match select((listener.accept(), over.requested())).await {
            // A client that fails has its own end for an answer.
            Selected::First(Ok(client)) => drop(serve(&client, commands).await),
            Selected::First(Err(error)) => {
                report(Severity::Error, format_args!("control: {error}"));
                return;
            }
            Selected::Second(()) => return,
        }
    }
}

async fn serve(client: &UnixStream, commands: &impl Commands) -> std::io::Result<()> {
    let read = async {
        let mut line = Vec::with_capacity(128);
        while !line.contains(&b'\n') && line.len() < line.capacity() {
            if client.read_to_spare(&mut line).await? == 0 {
                break;
            }
        }
        std::io::Result::Ok(line)
    };
    let line = timeout(PATIENCE, read).await??;
    let command = String::from_utf8_lossy(&line);
    let command = command.trim();
    let obeyed = commands.obey(command).await;
    let answer = match &obeyed {
        Ok(text) => format!("ok\n{text}"),
        Err(why) => format!("error: {why}\n"),
    };
    let written = timeout(PATIENCE, client.write_all(answer.as_bytes())).await;
    if obeyed.is_ok() {
        commands.answered(command);
    }
    written?
}

/// Sends `command` to the server with the control socket at `path`, and returns its answer.
///
/// # Errors
/// There is no server there, or it says why not.
pub(crate) fn ask(path: &Path, command: &str) -> Result<String, StartupError> {
    let talk = || -> std::io::Result<String> {
        let mut server = StdStream::connect(path)?;
        server.set_read_timeout(Some(LONGEST))?;
        server.write_all(format!("{command}\n").as_bytes())?;
        let mut answer = String::new();
        server.read_to_string(&mut answer)?;
        Ok(answer)
    };
    let answer = talk().map_err(|error| StartupError::other(format!("{}: {error}", path.display())))?;
    said(&answer)
        .ok_or_else(|| {
            StartupError::other(format!("{}: the server closed without an answer", path.display()))
        })?
        .map_err(StartupError::other)
}

/// Sends `command` to the process that answers at `path`, and returns its answer.
///
/// # Errors
/// The process says why not, or it does not answer in time.
pub(crate) async fn pass_on(path: &Path, command: &str) -> Result<String, String> {
    let talk = async {
        let process = UnixStream::connect(path).await?;
        process.write_all(format!("{command}\n").as_bytes()).await?;
        let mut answer = Vec::new();
        loop {
            answer.reserve(4 << 10);
            if process.read_to_spare(&mut answer).await? == 0 {
                return std::io::Result::Ok(String::from_utf8_lossy(&answer).into_owned());
            }
        }
    };
    let no_answer = || "no answer".to_owned();
    let answer =
        timeout(PATIENCE, talk).await.map_err(|_| no_answer())?.map_err(|error| error.to_string())?;
    said(&answer).ok_or_else(no_answer)?
}

/// What an answer says; `None` if it is none.
fn said(answer: &str) -> Option<Result<String, String>> {
    Some(match answer.split_once('\n')? {
        ("ok", text) => Ok(text.to_owned()),
        (error, _) => Err(error.strip_prefix("error: ").unwrap_or(error).to_owned()),
    })
}
