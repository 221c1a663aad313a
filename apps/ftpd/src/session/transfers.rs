//! Files over a data connection: RETR; STOR, APPE and STOU. `lists.rs` sends lists in the same way.
//!
//! While a transfer runs, its thread reads the control connection too ([`Session::carry`]): ABOR
//! and the end of that connection end the transfer, STAT is answered, and all else waits for its
//! end. A transfer that is given up is a future that is dropped.

use super::{Login, Session, denied, refusal};
use crate::accounts::Rights;
use crate::command::{self, Command, Verb};
use crate::data::DataPort;
use crate::path::VirtualPath;
use crate::reply::Reply;
use crate::telnet::ControlLine;
use crate::tls::Identity;
use crate::transfer::{DataLink, Progress, TransferError, receive, send_file, send_text_file};
use crate::transfer_log::TransferRecord;
use crate::tree::TreeError;
use crate::upload::{RestartPlace, Upload, UploadPlan};
use rustix::fs::OFlags;
use selvedge::blocking;
use selvedge::http::date;
use selvedge::scope::{Selected, select};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

/// A data connection that is still to be made.
#[derive(Debug)]
pub(super) struct LinkPlan {
    port: DataPort,
    client: std::net::IpAddr,
    connect: Duration,
    stall: Duration,
    /// What the server shows, if the connection goes over TLS.
    identity: Option<Identity>,
    progress: Arc<Progress>,
}

impl LinkPlan {
    pub(super) async fn connect(self) -> Result<DataLink, TransferError> {
        let LinkPlan { port, client, connect, stall, identity, progress } = self;
        let stream = port.connect(client, connect).await.map_err(TransferError::Unconnected)?;
        let link = DataLink::new(stream, stall, progress);
        match identity {
            Some(identity) => link.secured(&identity, connect).await,
            None => Ok(link),
        }
    }
}

/// Numbers the files of STOU.
static UNIQUE: AtomicU64 = AtomicU64::new(0);

impl Session {
    /// The plan of a data connection, and a view of its progress.
    ///
    /// # Errors
    /// A reply: the client has not said how the connection is made.
    pub(super) fn link_plan(&mut self) -> Result<(LinkPlan, Arc<Progress>), Reply> {
        let port = std::mem::take(&mut self.parameters.data);
        if matches!(port, DataPort::None) {
            return Err(Reply::new(425, "Send EPSV, PASV, EPRT or PORT first."));
        }
        let progress = Arc::new(Progress::default());
        let options = &self.server.options;
        let is_private = self.protection.is_private;
        if options.requires_tls && !is_private {
            return Err(Reply::new(521, "Send PROT P first."));
        }
        let identity = self.server.identity().filter(|_| is_private);
        let (client, connect, stall) = (self.client, options.connect, options.stall);
        let plan = LinkPlan { port, client, connect, stall, identity, progress: Arc::clone(&progress) };
        Ok((plan, progress))
    }

    pub(super) async fn retrieve(&mut self, argument: &[u8]) -> io::Result<Reply> {
        let bytes = std::mem::take(&mut self.parameters.restart);
        if !self.rights().read {
            return Ok(denied(550));
        }
        let path = match self.path(argument, 550) {
            Ok(path) => path,
            Err(reply) => return Ok(reply),
        };
        let is_ascii = !self.parameters.is_binary;
        let opened = {
            let path = path.clone();
            self.on_disk(move |tree| {
                let (file, status) = tree.open_file(&path, OFlags::RDONLY)?;
                let start = RestartPlace { bytes, is_ascii }.offset(&file, status.len)?;
                Ok((Arc::new(file), start, status.len))
            })
        };
        let (file, start, len) = match opened.await {
            Ok(opened) => opened,
            Err(error) => return Ok(refusal(error, 550)),
        };
        let (plan, progress) = match self.link_plan() {
            Ok(plan) => plan,
            Err(reply) => return Ok(reply),
        };
        let begun = Instant::now();
        let transfer = async {
            let mut link = plan.connect().await?;
            match is_ascii {
                true => send_text_file(&mut link, file, start).await,
                false => send_file(&mut link, file, start, len).await,
            }
        };
        // Clients read the number. In TYPE A more bytes go than the file has.
        let opening = match is_ascii {
            true => Reply::new(150, "The file follows."),
            false => Reply::new(150, format!("The file follows ({} bytes).", len - start)),
        };
        let outcome = self.carry(&opening, &progress, transfer).await;
        self.log_transfer(&path, false, progress.bytes(), begun, outcome.is_ok());
        self.conclude(outcome).await
    }

    pub(super) async fn store(&mut self, verb: Verb, argument: &[u8]) -> io::Result<Reply> {
        let bytes = std::mem::take(&mut self.parameters.restart);
        let (path, plan) = match self.upload_plan(verb, argument, bytes) {
            Ok(plan) => plan,
            Err(reply) => return Ok(reply),
        };
        let begun = {
            let path = path.clone();
            self.on_disk(move |tree| Upload::begin(tree, &path, plan).map(Arc::new))
        };
        let upload = match begun.await {
            Ok(upload) => upload,
            Err(error) => return Ok(refusal(error, 553)),
        };
        let (plan, progress) = match self.link_plan() {
            Ok(plan) => plan,
            Err(reply) => return Ok(reply),
        };
        let begun = Instant::now();
        let is_ascii = !self.parameters.is_binary;
        let transfer = {
            let upload = Arc::clone(&upload);
            async move { receive(&mut plan.connect().await?, &upload, is_ascii).await }
        };
        // STOU tells the name in this form (RFC 1123 §4.1.2.9).
        let opening = match verb {
            Verb::Stou => Reply::new(150, [&b"FILE: "[..], &path.absolute()].concat()),
            _ => Reply::new(150, "Send the file."),
        };
        let received = self.carry(&opening, &progress, transfer).await;
        let outcome = self.completed(received, upload).await;
        self.log_transfer(&path, true, progress.bytes(), begun, outcome.is_ok());
        self.conclude(outcome).await
    }

    /// What STOR, APPE and STOU do to which file.
    ///
    /// # Errors
    /// A reply: the account may not do it, or the path is none for a new file.
    fn upload_plan(
        &self,
        verb: Verb,
        argument: &[u8],
        bytes: u64,
    ) -> Result<(VirtualPath, UploadPlan), Reply> {
        let Rights { write, delete, .. } = self.rights();
        if !write {
            let is_anonymous = matches!(&self.login, Login::Done(account, _) if account.is_anonymous);
            return Err(if is_anonymous { Reply::new(532, "Only users store files.") } else { denied(553) });
        }
        let unique;
        let argument = match verb {
            Verb::Stou => {
                let second = date::seconds(SystemTime::now());
                unique = format!("{second}-{}-{}", std::process::id(), UNIQUE.fetch_add(1, Relaxed));
                unique.as_bytes()
            }
            _ => argument,
        };
        let path = self.path(argument, 553)?;
        let is_ascii = !self.parameters.is_binary;
        let plan = match verb {
            Verb::Stor if bytes > 0 => {
                UploadPlan::Resume { place: RestartPlace { bytes, is_ascii }, cuts: delete }
            }
            Verb::Stor => UploadPlan::Whole { replaces: delete },
            Verb::Stou => UploadPlan::Whole { replaces: false },
            _ => UploadPlan::Append,
        };
        if path.may_be_new() { Ok((path, plan)) } else { Err(refusal(TreeError::Name, 553)) }
    }

    /// Completes an upload of which all bytes have come, or gives it up. In the stream mode the end
    /// of a file looks as the death of the client does. A client that has died has closed its
    /// control connection too, and before.
    async fn completed(
        &mut self,
        received: Result<(), TransferError>,
        upload: Arc<Upload>,
    ) -> Result<(), TransferError> {
        let received = match received {
            Ok(()) => {
                if self.control.is_closed().await {
                    Err(gone())
                } else {
                    Ok(())
                }
            }
            Err(error) => Err(error),
        };
        let is_whole = received.is_ok();
        // The pool also frees the blocks of a file that is given up, which may take long.
        let end = move || match is_whole {
            true => upload.complete(),
            false => {
                upload.give_up();
                Ok(())
            }
        };
        let completed = blocking(end).await;
        received?;
        Ok(completed.map_err(|_| TreeError::Broken)??)
    }

    /// Runs a transfer, and obeys the control connection meanwhile.
    ///
    /// # Errors
    /// Those of the transfer, `Aborted` and `ControlLost`.
    pub(super) async fn carry(
        &mut self,
        opening: &Reply,
        progress: &Progress,
        transfer: impl Future<Output = Result<(), TransferError>>,
    ) -> Result<(), TransferError> {
        self.control.say(opening).await.map_err(TransferError::ControlLost)?;
        let mut transfer = pin!(transfer);
        while self.control.has_room() {
            let line = match select((transfer.as_mut(), self.control.arrival())).await {
                Selected::First(outcome) => return outcome,
                Selected::Second(line) => line.map_err(TransferError::ControlLost)?.ok_or_else(gone)?,
            };
            match urgent(&line) {
                Some(Verb::Abor) => return Err(TransferError::Aborted),
                Some(_) => {
                    let text = format!("A transfer runs, and {} bytes have gone.", progress.bytes());
                    self.control.say(&Reply::new(211, text)).await.map_err(TransferError::ControlLost)?;
                }
                None => self.control.defer(line),
            }
        }
        transfer.await
    }

    /// The last reply to a transfer.
    ///
    /// # Errors
    /// The control connection is gone.
    pub(super) async fn conclude(&mut self, outcome: Result<(), TransferError>) -> io::Result<Reply> {
        Ok(match outcome {
            Ok(()) => Reply::new(226, "The transfer is complete."),
            Err(TransferError::Unconnected(error)) => {
                Reply::new(425, format!("There is no data connection: {error}."))
            }
            Err(TransferError::Broken(error)) => {
                Reply::new(426, format!("The data connection broke: {error}."))
            }
            Err(TransferError::Disk(error)) => refusal(error, 451),
            Err(TransferError::Aborted) => {
                self.control.say(&Reply::new(426, "The transfer was aborted.")).await?;
                Reply::new(226, "ABOR is done.")
            }
            Err(TransferError::ControlLost(error)) => return Err(error),
        })
    }

    fn log_transfer(
        &self,
        path: &VirtualPath,
        is_incoming: bool,
        bytes: u64,
        begun: Instant,
        is_complete: bool,
    ) {
        let Login::Done(account, _) = &self.login else { return };
        self.server.log.put(&TransferRecord {
            client: self.client,
            user: &account.name,
            is_anonymous: account.is_anonymous,
            path: &path.absolute(),
            is_ascii: !self.parameters.is_binary,
            is_incoming,
            bytes,
            took: begun.elapsed(),
            is_complete,
        });
    }
}

/// The client has closed the control connection.
fn gone() -> TransferError {
    TransferError::ControlLost(io::ErrorKind::UnexpectedEof.into())
}

/// The command of a line, if it is one that a transfer does not put off.
fn urgent(line: &ControlLine) -> Option<Verb> {
    let ControlLine::Text(line) = line else { return None };
    match command::parse(line) {
        Ok(Command { verb: Verb::Abor, .. }) => Some(Verb::Abor),
        Ok(Command { verb: Verb::Stat, argument, .. }) if argument.is_empty() => Some(Verb::Stat),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_commands_reach_a_transfer() {
        let urgent = |text: &str| urgent(&ControlLine::Text(text.into()));
        assert_eq!((urgent("ABOR"), urgent("stat")), (Some(Verb::Abor), Some(Verb::Stat)));
        assert_eq!((urgent("STAT a"), urgent("QUIT"), urgent("nonsense")), (None, None, None));
        assert_eq!(super::urgent(&ControlLine::TooLong), None);
    }
}
