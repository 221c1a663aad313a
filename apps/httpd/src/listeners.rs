//! The sockets of all workers: `main.rs` calls [`bind`] once, and each worker gets its `Listeners`.
//!
//! At a TCP address every worker has a socket of its own (`SO_REUSEPORT`), over which the kernel
//! spreads the connections evenly: with one shared socket the worker that happens to wake first
//! takes most of a burst. Since such an address may be bound by several servers at once, a first
//! socket without the option finds out whether the port is free. At a Unix address, where there is
//! no such option, the workers share one socket, and the kernel wakes one of them.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use rustix::process::umask;
use selvedge_io::net::{ListenOptions, TcpListener, UnixListener};

use crate::options::Address;

/// The sockets of one worker.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    pub(crate) tcp: Vec<TcpListener>,
    pub(crate) unix: Vec<UnixListener>,
}

/// The paths of Unix sockets, removed when the server ends.
#[derive(Debug, Default)]
pub(crate) struct Paths(Vec<PathBuf>);

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
    /// Whether other processes bind the same addresses.
    is_shared: bool,
}

/// Binds all addresses for `workers` workers, Unix sockets with the permissions `unix_mode`. With
/// `is_shared` other processes may bind the same addresses.
///
/// # Errors
/// With the address in the message.
pub(crate) fn bind(
    addresses: &[Address],
    unix_mode: Option<u32>,
    workers: usize,
    is_shared: bool,
) -> io::Result<Bound> {
    let mut bound = Bound::new(workers, is_shared);
    for address in addresses {
        match address {
            Address::Tcp(address) => bound.tcp(*address)?,
            Address::Port(port) => {
                // One socket serves both families, unless this machine knows no IPv6.
                let everywhere = SocketAddr::from((Ipv6Addr::UNSPECIFIED, *port));
                match bound.tcp(everywhere) {
                    Err(error) if error.kind() != ErrorKind::AddrInUse => {
                        bound.tcp(SocketAddr::from((Ipv4Addr::UNSPECIFIED, *port)))?;
                    }
                    result => result?,
                }
            }
            Address::Name(host, port) => bound.name(host, *port)?,
            Address::Unix(path) => match unix_mode {
                None => bound.unix(path)?,
                Some(mode) => {
                    // The socket has its mode from the beginning; nothing else makes a file at this
                    // point.
                    let masked = umask(Mode::from_raw_mode(0o777 & !mode));
                    let bind = bound.unix(path);
                    umask(masked);
                    bind?;
                }
            },
        }
    }
    Ok(bound)
}

/// A Unix socket at `path` for commands, which only its owner may use, and the path to remove.
///
/// # Errors
/// With the path in the message.
pub(crate) fn bind_unix(path: &Path) -> io::Result<(UnixListener, Paths)> {
    let mut bound = Bound::new(1, false);
    let masked = umask(Mode::from_raw_mode(0o177));
    let result = bound.unix(path);
    umask(masked);
    result?;
    let socket = bound.listeners[0].unix.pop().expect("it was just bound");
    Ok((socket, bound.paths))
}

impl Bound {
    fn new(workers: usize, is_shared: bool) -> Bound {
        Bound {
            listeners: (0..workers).map(|_| Listeners::default()).collect(),
            urls: Vec::new(),
            paths: Paths::default(),
            is_shared,
        }
    }

    /// Sockets that were bound by another program, for `workers` workers that share them.
    ///
    /// # Errors
    /// A descriptor is no listening socket.
    pub(crate) fn inherited(sockets: Vec<OwnedFd>, workers: usize) -> io::Result<Bound> {
        let mut bound = Bound::new(workers, false);
        for socket in sockets {
            match TcpListener::from_fd(socket.try_clone()?) {
                Ok(first) => {
                    bound.urls.push(url(first.local_addr()));
                    for listeners in &mut bound.listeners[1..] {
                        listeners.tcp.push(first.share()?);
                    }
                    bound.listeners[0].tcp.push(first);
                }
                Err(_) => {
                    let first = UnixListener::from_fd(socket)?;
                    bound.urls.push(format!("unix:{}", first.path().display()));
                    for listeners in &mut bound.listeners[1..] {
                        listeners.unix.push(first.share()?);
                    }
                    bound.listeners[0].unix.push(first);
                }
            }
        }
        Ok(bound)
    }

    fn tcp(&mut self, address: SocketAddr) -> io::Result<()> {
        let options = ListenOptions::new().only_v6(false);
        let workers = self.listeners.len();
        let sockets = match workers {
            _ if self.is_shared => {
                let options = options.reuse_port(true);
                (0..workers).map(|_| options.bind(address)).collect::<io::Result<_>>()?
            }
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
