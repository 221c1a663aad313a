//! [`Listening`]: the addresses at which the server listens now, and [`NewAddresses`], those of a
//! reload.
//!
//! `running.rs` puts the addresses of the start into `Changeable`, and each worker takes its
//! sockets from there: at its start, and after each reload. Each address has a [`Stop`] of its own,
//! so one address is closed while the others go on. An address that stays keeps its very sockets.

use super::lock::lock;
use crate::configuration::Loaded;
use crate::listeners::{self, Bound, Listeners};
use crate::options::Address;
use crate::stacked::Acceptor;
use crate::startup_error::StartupError;
use crate::takeover::{HandedFiles, HandedName};
use selvedge_core::spawn_local;
use selvedge_http::{Site, Stop};
use selvedge_site::ConfigError;
use std::mem::take;
use std::rc::Rc;
use std::sync::Mutex;

/// The addresses at which the server listens.
#[derive(Debug, Default)]
pub(super) struct Listening {
    open: Vec<OpenAddress>,
    /// The number of workers, each of which has its sockets of each address.
    workers: usize,
    /// Whether a reload may change them. It may not where another process has bound the sockets,
    /// and with a stack of its own.
    is_changeable: bool,
}

/// One address, with the sockets that no worker has taken yet.
#[derive(Debug)]
struct OpenAddress {
    /// `None` for the sockets of systemd and of a stack, about which the configuration decides
    /// nothing.
    address: Option<Address>,
    bound: Bound,
    /// Requested when no worker is to accept from it any more.
    closed: Stop,
}

impl OpenAddress {
    fn new(address: Option<Address>, bound: Bound) -> OpenAddress {
        OpenAddress { address, bound, closed: Stop::new() }
    }
}

impl Listening {
    /// No address yet, for this number of workers.
    pub(super) fn new(workers: usize, is_changeable: bool) -> Listening {
        Listening { open: Vec::new(), workers, is_changeable }
    }

    /// The number of workers.
    pub(super) fn workers(&self) -> usize {
        self.workers
    }

    /// Listens at one more. Sockets that no address of the configuration has come without one.
    pub(super) fn add(&mut self, address: Option<Address>, bound: Bound) {
        self.open.push(OpenAddress::new(address, bound));
    }

    /// Each socket once more, for a process that takes over. A second call gives none.
    pub(super) fn handing(&mut self) -> HandedFiles {
        let mut all = HandedFiles::default();
        self.open.iter_mut().for_each(|one| all.append(&mut one.bound.handing));
        all
    }

    /// Where the server can be reached.
    pub(super) fn urls(&self) -> Vec<String> {
        self.open.iter().flat_map(|one| one.bound.urls.iter().cloned()).collect()
    }

    /// The sockets that the worker with this number has not taken yet, and what closes each.
    pub(super) fn take(&mut self, worker: usize) -> Vec<(Listeners, Stop)> {
        let of = |one: &mut OpenAddress| (take(&mut one.bound.listeners[worker]), one.closed.clone());
        self.open.iter_mut().map(of).filter(|(listeners, _)| !listeners.is_empty()).collect()
    }

    /// Closes all addresses: the workers accept from none of them any more.
    pub(super) fn close(&self) {
        self.open.iter().for_each(|one| one.closed.request());
    }

    /// Leaves the paths of Unix sockets where they are, because another process has taken the
    /// sockets over.
    pub(super) fn leave(&mut self) {
        self.open.iter_mut().for_each(|one| one.bound.paths.leave());
    }
}

/// The addresses that a reload has brought, bound and not yet in use.
pub(super) struct NewAddresses(Vec<OpenAddress>);

impl NewAddresses {
    /// Binds the addresses of `loaded` that the server does not have. It blocks.
    ///
    /// # Errors
    /// One of them cannot be bound, with its place in the configuration.
    pub(super) fn bind(listening: &Mutex<Listening>, loaded: &Loaded) -> Result<NewAddresses, StartupError> {
        let (known, workers) = {
            let listening = lock(listening);
            if !listening.is_changeable {
                return Ok(NewAddresses(Vec::new()));
            }
            let known: Vec<_> = listening.open.iter().filter_map(|one| one.address.clone()).collect();
            (known, listening.workers)
        };
        let mut bound = Vec::new();
        for (index, address) in loaded.options.listen.iter().enumerate() {
            if !known.contains(address) {
                let sockets = listeners::bind_later(address, loaded.options.unix_mode, workers);
                let sockets = sockets.map_err(|error| match loaded.listen_places.get(index) {
                    Some(place) => {
                        let message = format!("it cannot be bound: {error}");
                        let mistake = ConfigError { message, ..place.clone() };
                        StartupError { message: mistake.to_string(), status: 1 }
                    }
                    None => StartupError::from(error),
                })?;
                bound.push(OpenAddress::new(Some(address.clone()), sockets));
            }
        }
        Ok(NewAddresses(bound))
    }

    /// Puts them into use, and closes the addresses that `loaded` does not have. The workers take
    /// the sockets with the routes. Returns a line for each change; `None` if no reload may change
    /// the addresses of this server.
    ///
    /// # Errors
    /// There is no `handing`, because the server stops or hands over. Then all addresses stay.
    pub(super) fn begin(
        self,
        listening: &mut Listening,
        handing: Option<&mut HandedFiles>,
        loaded: &Loaded,
    ) -> Result<Option<String>, String> {
        if !listening.is_changeable {
            return Ok(None);
        }
        let wanted = &loaded.options.listen;
        let is_gone = |one: &OpenAddress| one.address.as_ref().is_some_and(|one| !wanted.contains(one));
        if self.0.is_empty() && !listening.open.iter().any(is_gone) {
            return Ok(Some(String::new()));
        }
        let Some(handing) = handing else {
            return Err("the server stops, or hands over: its addresses stay as they are".to_owned());
        };
        let mut told = String::new();
        for one in listening.open.extract_if(.., |one| is_gone(one)) {
            // A socket that is open here takes connections from which no worker accepts.
            drop(one.address.map(|address| handing.take(&HandedName::Listener(address.to_string()))));
            one.closed.request();
            one.bound.urls.iter().for_each(|url| told += &format!("no longer at {url}\n"));
        }
        for mut one in self.0 {
            handing.append(&mut one.bound.handing);
            one.bound.urls.iter().for_each(|url| told += &format!("now at {url}\n"));
            listening.open.push(one);
        }
        Ok(Some(told))
    }
}

/// Starts threads that accept from these sockets until they are `closed`. A listener that fails
/// stops the server, because to serve by halves is no service.
pub(super) fn accept(site: &Rc<Site>, listeners: Listeners, closed: &Stop, stop: &Stop) -> Vec<Acceptor> {
    let mut acceptors = Vec::new();
    for listener in listeners.tcp {
        let (site, closed, stop) = (site.clone(), closed.clone(), stop.clone());
        acceptors.push(spawn_local(async move {
            site.serve_tcp(listener, &closed).await.inspect_err(|_| stop.request())
        }));
    }
    for listener in listeners.unix {
        let (site, closed, stop) = (site.clone(), closed.clone(), stop.clone());
        acceptors.push(spawn_local(async move {
            site.serve_unix(listener, &closed).await.inspect_err(|_| stop.request())
        }));
    }
    acceptors
}
