//! The data connection: [`DataPort`] is how it will be made, [`PassivePorts`] where the server
//! listens for it.
//!
//! Only the client's own address is connected to, and only connections from it are accepted. So no
//! client sends the server's bytes to a third machine, and no third machine takes a client's.

use selvedge::Time;
use selvedge::net::{ListenOptions, TcpListener, TcpStream};
use selvedge::time::timeout_at;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::time::Duration;

/// How the next data connection is made.
#[derive(Debug, Default)]
pub(crate) enum DataPort {
    /// The client has not said it.
    #[default]
    None,
    /// The client connects to this listener.
    Passive(TcpListener),
    /// The server connects to this address.
    Active(SocketAddr),
}

impl DataPort {
    /// Makes the connection with the client at `client`, within `patience`. Connections from other
    /// addresses are closed.
    ///
    /// # Errors
    /// `TimedOut`; refused; `NotConnected` if the client has not said how.
    pub(crate) async fn connect(self, client: IpAddr, patience: Duration) -> io::Result<TcpStream> {
        let until = Time::now() + patience;
        match self {
            DataPort::None => Err(io::ErrorKind::NotConnected.into()),
            DataPort::Active(address) => TcpStream::connect_before(address, until).await,
            DataPort::Passive(listener) => {
                let from_client = async {
                    loop {
                        let (stream, peer) = listener.accept().await?;
                        if peer.ip().to_canonical() == client {
                            return Ok(stream);
                        }
                    }
                };
                timeout_at(until, from_client).await?
            }
        }
    }
}

/// The ports at which the server listens for data connections.
#[derive(Debug)]
pub(crate) struct PassivePorts {
    /// `None` for any port that is free.
    range: Option<RangeInclusive<u16>>,
    /// How many were asked for: the search begins at another port each time.
    asked: AtomicU16,
}

impl PassivePorts {
    pub(crate) fn new(range: Option<RangeInclusive<u16>>) -> PassivePorts {
        PassivePorts { range, asked: AtomicU16::new(0) }
    }

    /// Listens at a free port of `local`.
    ///
    /// # Errors
    /// All ports are in use, or the process has no descriptors left.
    pub(crate) fn listen(&self, local: IpAddr) -> io::Result<TcpListener> {
        let options = ListenOptions::new().backlog(4);
        let Some(range) = &self.range else { return options.bind(SocketAddr::new(local, 0)) };
        let (first, last) = (u32::from(*range.start()), u32::from(*range.end()));
        let count = last - first + 1;
        let start = u32::from(self.asked.fetch_add(1, Relaxed));
        let mut outcome = Err(io::ErrorKind::AddrInUse.into());
        for step in 0..count {
            let port = u16::try_from(first + (start + step) % count).expect("the range is of ports");
            outcome = options.bind(SocketAddr::new(local, port));
            let is_used = |error: &io::Error| error.kind() == io::ErrorKind::AddrInUse;
            if !outcome.as_ref().is_err_and(is_used) {
                break;
            }
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn a_range_is_used_up_and_freed() {
        let ended = selvedge::run_local(async {
            // A port that is free, and that the kernel gives to no other socket by itself.
            let start = 20_000 + u16::try_from(std::process::id() % 5000).unwrap();
            let first = PassivePorts::new(Some(start..=29_999)).listen(HERE)?.local_addr().port();
            let ports = PassivePorts::new(Some(first..=first));
            let listener = ports.listen(HERE)?;
            assert_eq!(listener.local_addr().port(), first);
            assert_eq!(ports.listen(HERE).unwrap_err().kind(), io::ErrorKind::AddrInUse);
            drop(listener);
            assert_eq!(ports.listen(HERE)?.local_addr().port(), first);
            io::Result::Ok(())
        });
        ended.unwrap().unwrap();
    }

    #[test]
    fn only_the_client_is_accepted() {
        let ended = selvedge::run_local(async {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0).into())?;
            let address = listener.local_addr();
            let stranger = TcpStream::connect(address).await?;
            let client = "192.0.2.1".parse().unwrap();
            let connected = DataPort::Passive(listener).connect(client, Duration::from_millis(50)).await;
            assert_eq!(connected.unwrap_err().kind(), io::ErrorKind::TimedOut);
            assert!(!matches!(stranger.read(&mut [0]).await, Ok(1..)));
            let unsaid = DataPort::None.connect(HERE, Duration::ZERO).await;
            assert_eq!(unsaid.unwrap_err().kind(), io::ErrorKind::NotConnected);
            io::Result::Ok(())
        });
        ended.unwrap().unwrap();
    }
}
