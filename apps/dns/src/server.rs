//! [`Server`]: the sockets, and a thread for each query over UDP (`udp.rs`) and each client over
//! TCP (`tcp.rs`) and TLS (`tls.rs`), which may fetch a zone (`transfer.rs`). `shared.rs` has what
//! all of them do with a query, and `memo.rs` the answers of a second.
//!
//! `main.rs` makes a server of the command line's options, and the tests make their own.

mod memo;
mod shared;
mod tcp;
mod tls;
mod transfer;
mod udp;

pub use shared::{Settings, ZoneCell};

use crate::tls::IdentityCell;
use selvedge::net::{TcpListener, UdpSocket};
use selvedge::scope::scope;
use shared::Shared;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// How many ports the system chooses until one is free for UDP too.
const CHOICES_MAX: u32 = 16;

/// A server with its sockets.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    sockets: Vec<(UdpSocket, TcpListener)>,
    /// Those for clients over TLS, each with what the server shows there.
    secure: Vec<(TcpListener, IdentityCell)>,
}

impl Server {
    /// A server that listens at each of the addresses, over UDP and TCP. For port 0 the system
    /// chooses one port for both.
    ///
    /// # Errors
    /// With the address in the message: in use, not of this host, not permitted.
    pub fn bind(settings: Settings, addresses: &[SocketAddr]) -> io::Result<Server> {
        let shared = Shared::new(settings);
        let sockets = addresses.iter().map(|&address| bind_both(address)).collect::<io::Result<_>>()?;
        Ok(Server { sockets, secure: Vec::new(), shared: Arc::new(shared) })
    }

    /// Listens for clients over TLS too. Returns the address at which the server listens.
    ///
    /// # Errors
    /// As for [`bind`](Self::bind).
    pub fn bind_tls(&mut self, identity: IdentityCell, address: SocketAddr) -> io::Result<SocketAddr> {
        let listener = TcpListener::bind(address)?;
        let listens = listener.local_addr();
        self.secure.push((listener, identity));
        Ok(listens)
    }

    /// The addresses at which it listens.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.sockets.iter().map(|(_, listener)| listener.local_addr()).collect()
    }

    /// The cell of the zones. Zones that a reload puts into it are served from then on.
    pub fn zones(&self) -> ZoneCell {
        self.shared.zones.clone()
    }

    /// Serves until the calling thread is cancelled.
    pub async fn serve(self) {
        scope(async |threads| {
            for (socket, listener) in self.sockets {
                drop(threads.spawn(udp::serve(Arc::new(socket), self.shared.clone())));
                drop(threads.spawn(tcp::serve(listener, self.shared.clone())));
            }
            let shared = self.shared.clone();
            drop(threads.spawn(async move { shared.follow_anchors().await }));
            for (listener, identity) in self.secure {
                drop(threads.spawn(tls::serve(listener, identity, self.shared.clone())));
            }
        })
        .await;
    }
}

/// Both sockets of an address. A port that the system has chosen for TCP may be taken for UDP: then
/// it chooses another one.
fn bind_both(address: SocketAddr) -> io::Result<(UdpSocket, TcpListener)> {
    let mut chances = if address.port() == 0 { CHOICES_MAX } else { 1 };
    loop {
        let listener = TcpListener::bind(address)?;
        chances -= 1;
        match UdpSocket::bind(listener.local_addr()) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && chances > 0 => {}
            socket => return Ok((socket?, listener)),
        }
    }
}
