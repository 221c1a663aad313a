//! The sockets of all workers: `running.rs` calls [`bind`] for each address, a reload calls
//! [`bind_later`], and each worker gets its `Listeners`.
//!
//! At a TCP address every worker has a socket of its own (`SO_REUSEPORT`), over which the kernel
//! spreads the connections evenly: with one shared socket the worker that happens to wake first
//! takes most of a burst. Since such an address may be bound by several servers at once, a first
//! socket without the option finds out whether the port is free. At a Unix address, where there is
//! no such option, the workers share one socket, and the kernel wakes one of them.

use crate::options::Address;
use crate::stack_choice::StackChoice;
use crate::stacked::{self, WorkerStack};
use crate::takeover::{HandedFiles, HandedName};
use rustix::fs::Mode;
use rustix::process::umask;
use selvedge_io::net::{ListenOptions, TcpListener, UnixListener};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// The sockets of one worker.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    pub(crate) tcp: Vec<TcpListener>,
    pub(crate) unix: Vec<UnixListener>,
    /// The stack of the worker, at which it listens too.
    pub(crate) stack: Option<WorkerStack>,
}

impl Listeners {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.tcp.is_empty() && self.unix.is_empty() && self.stack.is_none()
    }
}

/// The paths of Unix sockets, removed when the server ends.
#[derive(Debug, Default)]
pub(crate) struct Paths(Vec<PathBuf>);

impl Paths {
    /// Leaves the sockets where they are, because another process has taken them over.
    pub(crate) fn leave(&mut self) {
        self.0.clear();
    }
}

impl Drop for Paths {
    fn drop(&mut self) {
        for path in &self.0 {
            // Another program may have removed it.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// All sockets of a server.
#[derive(Debug)]
pub(crate) struct Bound {
    /// One for each worker.
    pub(crate) listeners: Vec<Listeners>,
    /// Where they can be reached, as URLs as far as there are such.
    pub(crate) urls: Vec<String>,
    pub(crate) paths: Paths,
    /// Each socket once more, for a process that takes over.
    pub(crate) handing: HandedFiles,
}

/// Binds all addresses for `workers` workers, Unix sockets with the permissions `unix_mode`. An
/// address for which there are sockets in `handed` is not bound again.
///
/// # Errors
/// With the address in the message.
pub(crate) fn bind(
    addresses: &[Address],
    unix_mode: Option<u32>,
    workers: usize,
    handed: &mut HandedFiles,
) -> io::Result<Bound> {
    let mut bound = Bound::new(workers);
    for address in addresses {
        bound.add(&HandedName::Listener(address.to_string()), address, unix_mode, handed)?;
    }
    Ok(bound)
}

/// Binds one more address for `workers` workers while the server runs.
///
/// # Errors
/// With the address in the message.
pub(crate) fn bind_later(address: &Address, unix_mode: Option<u32>, workers: usize) -> io::Result<Bound> {
    // The process's mask, which `bind` changes for a moment, holds for other OS threads too.
    let bound = bind(std::slice::from_ref(address), None, workers, &mut HandedFiles::default())?;
    if let (Address::Unix(path), Some(mode)) = (address, unix_mode) {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode))?;
    }
    Ok(bound)
}

/// Sockets that systemd has bound, for `workers` workers that share each of them.
///
/// # Errors
/// A descriptor is no listening socket.
pub(crate) fn inherited(sockets: Vec<OwnedFd>, workers: usize) -> io::Result<Bound> {
    let mut bound = Bound::new(workers);
    for socket in sockets {
        let present = bound.counts();
        bound.spread(vec![socket])?;
        bound.keep_for_handing(&HandedName::Inherited, &present)?;
    }
    Ok(bound)
}

/// A Unix socket at `path` for commands, which only its owner may use. It is among the `handed`
/// ones, or it is bound.
///
/// # Errors
/// With the path in the message.
pub(crate) fn bind_control(path: &Path, handed: &mut HandedFiles) -> io::Result<Bound> {
    let mut bound = Bound::new(1);
    let address = Address::Unix(path.to_owned());
    bound.add(&HandedName::Control(path.to_owned()), &address, Some(0o600), handed)?;
    Ok(bound)
}

impl Bound {
    /// Adds a listener of a stack of its own to each worker, for the TCP addresses among
    /// `addresses`.
    ///
    /// # Errors
    /// Those of [`stacked::listen`].
    pub(crate) fn listen_by(&mut self, choice: &StackChoice, addresses: &[Address]) -> io::Result<()> {
        let (stacks, reached) = stacked::listen(choice, addresses, self.listeners.len())?;
        for (worker, stack) in self.listeners.iter_mut().zip(stacks) {
            worker.stack = Some(stack);
        }
        self.urls.extend(reached.into_iter().map(url));
        Ok(())
    }

    fn new(workers: usize) -> Bound {
        Bound {
            listeners: (0..workers).map(|_| Listeners::default()).collect(),
            urls: Vec::new(),
            paths: Paths::default(),
            handing: HandedFiles::default(),
        }
    }

    /// Adds the sockets at `address`: those among the `handed` ones with this name, or new ones.
    fn add(
        &mut self,
        name: &HandedName,
        address: &Address,
        unix_mode: Option<u32>,
        handed: &mut HandedFiles,
    ) -> io::Result<()> {
        let present = self.counts();
        let sockets = handed.take(name);
        if sockets.is_empty() {
            self.bind(address, unix_mode)?;
        } else {
            self.spread(sockets)?;
            if let Address::Unix(path) = address {
                self.paths.0.push(std::path::absolute(path)?);
            }
        }
        self.keep_for_handing(name, &present)
    }

    /// The numbers of sockets of each worker.
    fn counts(&self) -> Vec<(usize, usize)> {
        self.listeners.iter().map(|worker| (worker.tcp.len(), worker.unix.len())).collect()
    }

    /// Keeps a descriptor of each socket that was added since the workers had `present` ones.
    fn keep_for_handing(&mut self, name: &HandedName, present: &[(usize, usize)]) -> io::Result<()> {
        for (worker, (tcp, _)) in self.listeners.iter().zip(present) {
            for socket in &worker.tcp[*tcp..] {
                // A shared socket leaves its event loop when it is closed here and open elsewhere.
                drop(socket.share()?);
                self.handing.push(name.clone(), socket.as_fd().try_clone_to_owned()?);
            }
        }
        let unix = self.listeners.iter().zip(present).flat_map(|(worker, (_, unix))| &worker.unix[*unix..]);
        // The workers' sockets are the same one.
        if let Some(socket) = unix.into_iter().next() {
            drop(socket.share()?);
            self.handing.push(name.clone(), socket.as_fd().try_clone_to_owned()?);
        }
        Ok(())
    }

    /// Gives sockets of one address that were bound by another process to the workers. If there are
    /// fewer sockets than workers, workers share them.
    fn spread(&mut self, sockets: Vec<OwnedFd>) -> io::Result<()> {
        let workers = self.listeners.len();
        let tcp: io::Result<Vec<TcpListener>> =
            sockets.iter().map(|socket| TcpListener::from_fd(socket.try_clone()?)).collect();
        match tcp {
            Ok(sockets) => {
                // A name may stand for several addresses.
                let mut by_address: BTreeMap<SocketAddr, Vec<TcpListener>> = BTreeMap::new();
                for socket in sockets {
                    by_address.entry(socket.local_addr()).or_default().push(socket);
                }
                for (address, sockets) in by_address {
                    self.urls.push(url(address));
                    for index in sockets.len()..workers {
                        self.listeners[index].tcp.push(sockets[index % sockets.len()].share()?);
                    }
                    for (index, socket) in sockets.into_iter().enumerate() {
                        self.listeners[index % workers].tcp.push(socket);
                    }
                }
            }
            Err(_) => {
                for (index, socket) in sockets.into_iter().enumerate() {
                    let first = UnixListener::from_fd(socket)?;
                    if index == 0 {
                        self.urls.push(format!("unix:{}", first.path().display()));
                    }
                    for worker in &mut self.listeners[1..] {
                        worker.unix.push(first.share()?);
                    }
                    self.listeners[0].unix.push(first);
                }
            }
        }
        Ok(())
    }

    fn bind(&mut self, address: &Address, unix_mode: Option<u32>) -> io::Result<()> {
        match address {
            Address::Tcp(address) => self.tcp(*address),
            Address::Port(port) => {
                // One socket serves both families, unless this machine knows no IPv6.
                let everywhere = SocketAddr::from((Ipv6Addr::UNSPECIFIED, *port));
                match self.tcp(everywhere) {
                    Err(error) if error.kind() != ErrorKind::AddrInUse => {
                        self.tcp(SocketAddr::from((Ipv4Addr::UNSPECIFIED, *port)))
                    }
                    result => result,
                }
            }
            Address::Name(host, port) => self.name(host, *port),
            Address::Unix(path) => match unix_mode {
                None => self.unix(path),
                Some(mode) => {
                    // The socket has its mode from the beginning; nothing else makes a file at this
                    // point.
                    let masked = umask(Mode::from_raw_mode(0o777 & !mode));
                    let bind = self.unix(path);
                    umask(masked);
                    bind
                }
            },
        }
    }

    fn tcp(&mut self, address: SocketAddr) -> io::Result<()> {
        let options = ListenOptions::new().only_v6(false);
        let workers = self.listeners.len();
        let sockets = match workers {
            1 => vec![options.bind(address)?],
            _ => {
                if address.port() != 0 {
                    drop(options.bind(address)?);
                }
                let options = options.reuse_port(true);
                let first = options.bind(address)?;
                let address = first.local_addr();
                let others = (1..workers).map(|_| options.bind(address));
                std::iter::once(Ok(first)).chain(others).collect::<io::Result<_>>()?
            }
        };
        self.urls.push(url(sockets[0].local_addr()));
        for (listeners, socket) in self.listeners.iter_mut().zip(sockets) {
            listeners.tcp.push(socket);
        }
        Ok(())
    }

    /// Binds all addresses of a host that this machine has, with one port.
    fn name(&mut self, host: &str, mut port: u16) -> io::Result<()> {
        let naming = |error: io::Error| io::Error::new(error.kind(), format!("{host}: {error}"));
        let mut addresses: Vec<IpAddr> =
            (host, port).to_socket_addrs().map_err(naming)?.map(|address| address.ip()).collect();
        addresses.sort_unstable();
        addresses.dedup();
        let mut failed = Err(io::Error::new(ErrorKind::NotFound, format!("{host}: it has no address")));
        let mut bound = false;
        for ip in addresses {
            match self.tcp(SocketAddr::new(ip, port)) {
                Ok(()) => {
                    bound = true;
                    let socket = self.listeners.first().and_then(|worker| worker.tcp.last());
                    port = socket.map_or(port, |socket| socket.local_addr().port());
                }
                Err(error) if error.kind() == ErrorKind::AddrNotAvailable => failed = Err(error),
                Err(error) => return Err(error),
            }
        }
        if bound { Ok(()) } else { failed }
    }

    fn unix(&mut self, path: &Path) -> io::Result<()> {
        let first = match UnixListener::bind(path) {
            // A server that was killed left the socket behind, and no process listens there.
            Err(error) if error.kind() == ErrorKind::AddrInUse && is_abandoned(path) => {
                std::fs::remove_file(path)?;
                UnixListener::bind(path)?
            }
            result => result?,
        };
        self.paths.0.push(std::path::absolute(path)?);
        self.urls.push(format!("unix:{}", path.display()));
        let (last, others) = self.listeners.split_last_mut().expect("there is a worker");
        for listeners in others {
            listeners.unix.push(first.share()?);
        }
        last.unix.push(first);
        Ok(())
    }
}

fn is_abandoned(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let is_socket = path.symlink_metadata().is_ok_and(|found| found.file_type().is_socket());
    is_socket && UnixStream::connect(path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

/// What to type into a browser on this machine.
fn url(address: SocketAddr) -> String {
    let port = match address.port() {
        80 => String::new(),
        port => format!(":{port}"),
    };
    match address.ip() {
        ip if ip.is_unspecified() => format!("http://localhost{port}/"),
        IpAddr::V4(ip) => format!("http://{ip}{port}/"),
        IpAddr::V6(ip) => format!("http://[{ip}]{port}/"),
    }
}
