//! The control socket: [`Commands`] answers at it, [`ask`] is `selvedge-httpd ctl`.
//!
//! A client sends one line with a command. The server answers with text, of which the first line is
//! `ok` or `error: ...`, and closes.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream as StdStream;
use std::path::Path;
use std::time::Duration;

use selvedge_io::net::{UnixListener, UnixStream};
use selvedge_io::time::timeout;

use crate::options::Refusal;

/// The commands, and what each does.
pub(crate) const COMMANDS: [(&str, &str); 6] = [
    ("status", "the server's state, its routes and counters"),
    ("reload", "reads the configuration again; a mistake in it is told, and changes nothing"),
    ("retire", "accepts no more connections, and ends when those that are open have ended"),
    ("stop", "finishes the requests in flight, and ends"),
    ("threads", "what each thread waits for"),
    ("counters", "the counters, in the format of Prometheus"),
];

/// How long a client may take to send its command.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the commands do.
pub(crate) trait Commands {
    /// The answer to a command: text, or why not.
    async fn obey(&self, command: &str) -> Result<String, String>;
}

/// Answers at `listener` for ever, one client after the other.
pub(crate) async fn answer(listener: UnixListener, commands: &impl Commands) {
    loop {
        match listener.accept().await {
            Ok(client) => {
                // A client that fails has its own end for an answer.
                let _ = timeout(2 * PATIENCE, serve(&client, commands)).await;
            }
            Err(error) => {
                eprintln!("selvedge-httpd: control: {error}");
                return;
            }
        }
    }
}

async fn serve(client: &UnixStream, commands: &impl Commands) -> std::io::Result<()> {
    let mut line = Vec::with_capacity(128);
    while !line.contains(&b'\n') && line.len() < line.capacity() {
        if client.read_to_spare(&mut line).await? == 0 {
            break;
        }
    }
    let command = String::from_utf8_lossy(&line);
    let answer = match commands.obey(command.trim()).await {
        Ok(text) => format!("ok\n{text}"),
        Err(why) => format!("error: {why}\n"),
    };
    client.write_all(answer.as_bytes()).await
}

/// Sends `command` to the server with the control socket at `path`, and returns its answer.
///
/// # Errors
/// There is no server there, or it says why not.
pub(crate) fn ask(path: &Path, command: &str) -> Result<String, Refusal> {
    let refusal = |message: String| Refusal { message, status: 1 };
    let talk = || -> std::io::Result<String> {
        let mut server = StdStream::connect(path)?;
        server.set_read_timeout(Some(4 * PATIENCE))?;
        server.write_all(format!("{command}\n").as_bytes())?;
        let mut answer = String::new();
        server.read_to_string(&mut answer)?;
        Ok(answer)
    };
    let answer = talk().map_err(|error| refusal(format!("{}: {error}", path.display())))?;
    match answer.split_once('\n') {
        Some(("ok", text)) => Ok(text.to_owned()),
        Some((error, _)) => Err(refusal(error.strip_prefix("error: ").unwrap_or(error).to_owned())),
        None => Err(refusal(format!("{}: the server closed without an answer", path.display()))),
    }
}
