//! [`Server`]: what the sessions share; and [`serve`], which runs until a signal ends it.

use crate::accounts::{Account, Accounts};
use crate::clients::{AdmissionError, Clients};
use crate::data::PassivePorts;
use crate::options::Options;
use crate::reply::Reply;
use crate::session::Session;
use crate::tls::Identity;
use crate::transfer_log::TransferLog;
use crate::tree::Tree;
use selvedge::net::{self, TcpListener, TcpStream};
use selvedge::scope::{CancelToken, Selected, Threads, select};
use selvedge::signal::{Signal, signals};
use selvedge::sync::Semaphore;
use selvedge::{blocking, sleep, spawn};
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

/// The most passwords that are verified at once. Each takes an OS thread of the blocking pool for
/// tens of milliseconds, and transfers need the others.
const VERIFYING_MAX: u32 = 4;

/// What all sessions share.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) options: Options,
    accounts: RwLock<Arc<Accounts>>,
    /// What the server shows over TLS, if it has a certificate.
    identity: RwLock<Option<Identity>>,
    /// A permit for each password that may be verified at once.
    pub(crate) verifying: Semaphore,
    pub(crate) clients: Arc<Clients>,
    pub(crate) ports: PassivePorts,
    pub(crate) log: TransferLog,
    /// Cancelled when the server stops: a session ends when it waits for a command.
    pub(crate) stopping: CancelToken,
}

impl Server {
    /// # Errors
    /// With the path in the message: the users, the certificate or the log cannot be read or
    /// opened, or a line of the users is wrong; the directory is not there.
    fn new(options: Options) -> io::Result<Server> {
        if options.anonymous.is_some() {
            Tree::open(&options.directory)?;
        }
        Ok(Server {
            accounts: RwLock::new(Arc::new(read_accounts(&options)?)),
            identity: RwLock::new(read_identity(&options)?),
            verifying: Semaphore::new(VERIFYING_MAX),
            clients: Arc::new(Clients::new(options.clients, options.clients_per_address)),
            ports: PassivePorts::new(options.passive_ports.clone()),
            log: TransferLog::open(&options.log)?,
            stopping: CancelToken::new(),
            options,
        })
    }

    /// The users as they are now.
    pub(crate) fn accounts(&self) -> Arc<Accounts> {
        Arc::clone(&self.accounts.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The certificate and key as they are now.
    pub(crate) fn identity(&self) -> Option<Identity> {
        self.identity.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the users and the certificate, and opens the log again. What fails stays as it was.
    fn read_again(&self) {
        match read_accounts(&self.options) {
            Ok(accounts) => {
                *self.accounts.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(accounts);
                report(format_args!("the users were read again"));
            }
            Err(error) => report(format_args!("{error}; the users stay as they were")),
        }
        match read_identity(&self.options) {
            Ok(identity) => *self.identity.write().unwrap_or_else(PoisonError::into_inner) = identity,
            Err(error) => report(format_args!("{error}; the certificate stays as it was")),
        }
        if let Err(error) = self.log.reopen() {
            report(format_args!("{error}; the log stays as it was"));
        }
    }
}

/// Tells the operator something.
pub(crate) fn report(message: fmt::Arguments<'_>) {
    eprintln!("selvedge-ftpd: {message}");
}

fn read_identity(options: &Options) -> io::Result<Option<Identity>> {
    let Some((certificate, key)) = &options.identity else { return Ok(None) };
    Identity::read(certificate, key).map(Some).map_err(io::Error::other)
}

fn read_accounts(options: &Options) -> io::Result<Accounts> {
    let anonymous = options.anonymous.map(|rights| Account {
        name: "anonymous".to_owned(),
        root: options.directory.clone(),
        rights,
        is_anonymous: true,
    });
    let naming =
        |path: &Path, error: &dyn fmt::Display| io::Error::other(format!("{}: {error}", path.display()));
    let text = match &options.users {
        Some(path) => std::fs::read_to_string(path).map_err(|error| naming(path, &error))?,
        None => String::new(),
    };
    let path = options.users.as_deref().unwrap_or(Path::new(""));
    Accounts::read(&text, anonymous).map_err(|error| naming(path, &error))
}

/// Serves until a signal ends it.
///
/// # Errors
/// In words for the operator: an address cannot be bound, and those of [`Server::new`].
pub(crate) async fn serve(options: Options) -> io::Result<()> {
    let server = Arc::new(Server::new(options)?);
    let mut signals = signals(&[Signal::TERM, Signal::INT, Signal::QUIT, Signal::HUP])?;
    let mut acceptors = Threads::new();
    for address in &server.options.listen {
        let listener = net::bind(address.as_str()).await?;
        println!("Listening at ftp://{}/", listener.local_addr());
        acceptors.spawn(accept(listener, Arc::clone(&server)));
    }
    loop {
        match select((signals.next(), acceptors.next())).await {
            Selected::First(signal) => {
                if signal? != Signal::HUP {
                    break;
                }
                let server = Arc::clone(&server);
                // A panic there has been reported, and the server goes on.
                let _ = blocking(move || server.read_again()).await;
            }
            Selected::Second(Some(Ok(Err(error)))) => return Err(error),
            Selected::Second(_) => return Err(io::Error::other("a thread that accepts clients has ended")),
        }
    }
    acceptors.cancel_all();
    while acceptors.next().await.is_some() {}
    server.stopping.cancel();
    match select((server.clients.all_gone(), sleep(server.options.drain), signals.next())).await {
        Selected::First(()) => {}
        _ => report(format_args!("transfers were cut off")),
    }
    Ok(())
}

/// Starts a thread for each client.
///
/// # Errors
/// The listener has failed.
async fn accept(listener: TcpListener, server: Arc<Server>) -> io::Result<()> {
    loop {
        let (stream, peer) = listener.accept().await?;
        let address = peer.ip().to_canonical();
        let admission = match server.clients.admit(address) {
            Ok(admission) => admission,
            Err(error) => {
                turn_away(&stream, error);
                continue;
            }
        };
        let server = Arc::clone(&server);
        // Unobserved: a client that goes away is no error of the server.
        drop(spawn(async move {
            let _counted = admission;
            Session::new(server, stream, address)?.run().await
        }));
    }
}

/// Tells a client that there is no room. A new connection has room for the reply.
fn turn_away(stream: &TcpStream, error: AdmissionError) {
    let text = match error {
        AdmissionError::Full => "There are too many clients. Try again later.",
        AdmissionError::TooManyOfAddress => "There are too many clients from your address.",
    };
    // The client may be gone already.
    let _ = stream.try_write(&Reply::new(421, text).to_bytes());
}
