//! [`Session`]: the thread of a client. It reads a command, does it, and answers it.
//!
//! This file has the state and the loop. `session/` has what the commands do: `login.rs` for users,
//! `security.rs` for TLS, `parameters.rs` for how a transfer is made, `names.rs` for files and
//! directories, `transfers.rs` and `lists.rs` for what goes over a data connection. RFC 959 §5.4
//! lists the codes of the replies to each command; RFC 2389, 2428 and 3659 list those of theirs.

mod lists;
mod login;
mod names;
mod parameters;
mod security;
mod transfers;

use crate::accounts::{Account, Rights};
use crate::command::{self, Command, Verb};
use crate::control::Control;
use crate::data::DataPort;
use crate::listing::Facts;
use crate::path::{NameError, VirtualPath};
use crate::reply::Reply;
use crate::server::Server;
use crate::telnet::ControlLine;
use crate::tls::Identity;
use crate::tree::{Tree, TreeError};
use security::Protection;
use selvedge::net::TcpStream;
use selvedge::scope::{Selected, select};
use selvedge::{blocking, sleep};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

/// How far a client has logged in.
#[derive(Debug, Default)]
enum Login {
    #[default]
    None,
    /// USER has named a user, and PASS is to follow.
    Named(Vec<u8>),
    Done(Arc<Account>, Arc<Tree>),
}

/// What lasts until REIN.
#[derive(Debug, Default)]
struct Parameters {
    directory: VirtualPath,
    /// TYPE I or L 8. A transfer is of TYPE A at first.
    is_binary: bool,
    /// Where the next transfer begins.
    restart: u64,
    rename_from: Option<VirtualPath>,
    data: DataPort,
    /// EPSV ALL: nothing but EPSV makes a data connection.
    is_epsv_only: bool,
    facts: Facts,
}

/// The thread of a client.
#[derive(Debug)]
pub(crate) struct Session {
    server: Arc<Server>,
    control: Control,
    client: IpAddr,
    /// The address of this end.
    local: IpAddr,
    login: Login,
    parameters: Parameters,
    protection: Protection,
    /// What the server shows in the handshake that comes behind the next reply.
    securing: Option<Identity>,
    /// Wrong passwords.
    failures: u32,
    is_over: bool,
}

impl Session {
    /// The session of a client that has connected from `client`.
    ///
    /// # Errors
    /// The client is gone.
    pub(crate) fn new(server: Arc<Server>, stream: TcpStream, client: IpAddr) -> io::Result<Session> {
        let local = stream.local_addr()?.ip().to_canonical();
        let control = Control::new(stream, server.options.stall);
        let (login, parameters, protection) = Default::default();
        let (securing, failures, is_over) = (None, 0, false);
        Ok(Session {
            server,
            control,
            client,
            local,
            login,
            parameters,
            protection,
            securing,
            failures,
            is_over,
        })
    }

    /// Serves the client until it quits, is idle for too long, or the server stops.
    ///
    /// # Errors
    /// Those of the control connection.
    pub(crate) async fn run(mut self) -> io::Result<()> {
        self.control.say(&Reply::new(220, "Selvedge FTP server ready.")).await?;
        while !self.is_over {
            let (control, server) = (&mut self.control, &self.server);
            let waiting = (control.next(), server.stopping.cancelled(), sleep(server.options.idle));
            let line = match select(waiting).await {
                Selected::First(line) => line?,
                Selected::Second(()) => {
                    return self.control.say(&Reply::new(421, "The server stops.")).await;
                }
                Selected::Third(()) => {
                    return self.control.say(&Reply::new(421, "You were idle for too long.")).await;
                }
            };
            let Some(line) = line else { break };
            let reply = self.obey(line).await?;
            self.control.say(&reply).await?;
            if let Some(identity) = self.securing.take() {
                self.control.secure(&identity).await?;
            }
        }
        self.control.close().await
    }

    /// Does what a line says, and gives the last reply to it.
    ///
    /// # Errors
    /// Those of the control connection.
    async fn obey(&mut self, line: ControlLine) -> io::Result<Reply> {
        let ControlLine::Text(line) = line else { return Ok(Reply::new(500, "The line is too long.")) };
        let command = match command::parse(&line) {
            Ok(command) => command,
            Err(error) => return Ok(error.reply()),
        };
        if command.needs_login && !matches!(self.login, Login::Done(..)) {
            return Ok(Reply::new(530, "Log in with USER and PASS."));
        }
        let rename_from = self.parameters.rename_from.take();
        let Command { verb, argument, .. } = command;
        match verb {
            Verb::User | Verb::Pass | Verb::Acct | Verb::Rein => Ok(self.log_in(verb, argument).await),
            Verb::Auth | Verb::Pbsz | Verb::Prot => Ok(self.protect(verb, &argument)),
            Verb::Rnto => Ok(self.rename(rename_from, &argument).await),
            Verb::Quit => {
                self.is_over = true;
                Ok(Reply::new(221, "Goodbye."))
            }
            Verb::Cwd | Verb::Cdup | Verb::Pwd | Verb::Mkd | Verb::Rmd | Verb::Dele | Verb::Rnfr => {
                Ok(self.change_names(verb, &argument).await)
            }
            Verb::Size | Verb::Mdtm | Verb::Mlst => Ok(self.describe(verb, &argument).await),
            Verb::Stat if !argument.is_empty() => Ok(self.status_of(&argument).await),
            Verb::Retr => self.retrieve(&argument).await,
            Verb::Stor | Verb::Appe | Verb::Stou => self.store(verb, &argument).await,
            Verb::List | Verb::Nlst | Verb::Mlsd => self.list(verb, &argument).await,
            _ => Ok(self.set(verb, &argument)),
        }
    }

    /// The rights of the account; none before the login.
    fn rights(&self) -> Rights {
        match &self.login {
            Login::Done(account, _) => account.rights,
            _ => Rights::default(),
        }
    }

    /// The path that an argument means.
    ///
    /// # Errors
    /// The reply with the code `code` that tells why it is none.
    fn path(&self, argument: &[u8], code: u16) -> Result<VirtualPath, Reply> {
        self.parameters.directory.join(argument).map_err(|error| {
            let text = match error {
                NameError::TooLong => "The path is too long.",
                NameError::ControlCharacter => "The path has a character that no path has here.",
                NameError::Reserved => "The server keeps that name for itself.",
            };
            Reply::new(code, text)
        })
    }

    /// Makes a call on the account's files, on the blocking pool.
    ///
    /// # Errors
    /// Those of the call; `Denied` before the login, `Broken` if it panics.
    async fn on_disk<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Tree) -> Result<T, TreeError> + Send + 'static,
    ) -> Result<T, TreeError> {
        let Login::Done(_, tree) = &self.login else { return Err(TreeError::Denied) };
        let tree = Arc::clone(tree);
        blocking(move || call(&tree)).await.map_err(|_| TreeError::Broken)?
    }
}

/// The reply to what failed: with the code `permanent`, unless the reason passes or is the disk's.
fn refusal(error: TreeError, permanent: u16) -> Reply {
    let code = match error {
        TreeError::Busy => 450,
        TreeError::Broken => 451,
        TreeError::Full => 452,
        TreeError::Quota => 552,
        TreeError::Restart => 554,
        _ => permanent,
    };
    Reply::new(code, error.to_string())
}

/// The reply where the account lacks a right.
fn denied(code: u16) -> Reply {
    Reply::new(code, "This account may not do that.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_refusals() {
        for (error, code) in [
            (TreeError::Missing, 550),
            (TreeError::Denied, 550),
            (TreeError::Busy, 450),
            (TreeError::Broken, 451),
            (TreeError::Full, 452),
            (TreeError::Quota, 552),
            (TreeError::Restart, 554),
        ] {
            assert_eq!(refusal(error, 550).code(), code, "{error:?}");
        }
        assert_eq!(refusal(TreeError::NotFile, 553).code(), 553);
    }
}
