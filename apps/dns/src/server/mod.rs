//! [`Server`]: the sockets, and a thread for each query over UDP (`udp.rs`) and each client over TCP
//! (`tcp.rs`). `Shared::answer` is what all of them do with a query.
//!
//! `main.rs` makes a server of the command line's options, and the tests make their own.

mod tcp;
mod udp;

use crate::authority::{self, Authority};
use crate::networks::Networks;
use crate::rate::{Pace, RateLimit};
use crate::record::NameKey;
use crate::resolve::{Resolution, Resolver};
use crate::wire::answer::{Answer, compose};
use crate::wire::asked::{Asked, Unanswerable, read};
use crate::wire::{TCP_MAX, is_meta};
use crate::zone::Zones;
use domain::base::Rtype;
use domain::base::iana::{Class, OptRcode};
use selvedge::Time;
use selvedge::net::{TcpListener, UdpSocket};
use selvedge::scope::scope;
use selvedge::sync::Semaphore;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How many ports the system chooses until one is free for UDP too.
const CHOICES_MAX: u32 = 16;

/// What a server does, and its limits.
#[derive(Debug)]
pub struct Settings {
    /// The zones for which it is an authority.
    pub zones: Zones,
    /// Finds what is in other zones, for clients nearby.
    pub resolver: Option<Resolver>,
    /// The networks of clients nearby: they may use the resolver, and have no limit of their rate.
    pub near: Networks,
    /// How many answers a second over UDP another network gets; 0: no limit.
    pub rate: u32,
    /// How many queries are worked on at once. A query over UDP above it is dropped.
    pub queries: u32,
    /// How many clients are connected at once over TCP. A further one is closed.
    pub tcp_clients: u32,
    /// How long a client over TCP may take to send a query, or to take an answer.
    pub idle: Duration,
}

/// The zones that a server answers from, which a reload replaces.
pub type ZoneCell = Arc<Mutex<Arc<Zones>>>;

/// A server with its sockets.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    sockets: Vec<(UdpSocket, TcpListener)>,
}

/// What the threads of a server share.
#[derive(Debug)]
struct Shared {
    zones: ZoneCell,
    resolver: Option<Resolver>,
    near: Networks,
    rate: RateLimit,
    queries: Semaphore,
    clients: Semaphore,
    idle: Duration,
}

impl Server {
    /// A server that listens at each of the addresses, over UDP and TCP. For port 0 the system
    /// chooses one port for both.
    ///
    /// # Errors
    /// With the address in the message: in use, not of this host, not permitted.
    pub fn bind(settings: Settings, addresses: &[SocketAddr]) -> io::Result<Server> {
        let shared = Shared {
            zones: Arc::new(Mutex::new(Arc::new(settings.zones))),
            resolver: settings.resolver,
            near: settings.near,
            rate: RateLimit::new(settings.rate),
            queries: Semaphore::new(settings.queries),
            clients: Semaphore::new(settings.tcp_clients),
            idle: settings.idle,
        };
        let sockets = addresses.iter().map(|&address| bind_both(address)).collect::<io::Result<_>>()?;
        Ok(Server { sockets, shared: Arc::new(shared) })
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

impl Shared {
    /// The answer to a message over TCP. `None` if none is sent.
    async fn answer_tcp(&self, message: &[u8], client: IpAddr) -> Option<Vec<u8>> {
        match read(message) {
            Ok(asked) => Some(compose(&asked, &self.answer(&asked, client).await, TCP_MAX)),
            Err(Unanswerable::Refused(answer)) => Some(answer),
            Err(Unanswerable::Silent) => None,
        }
    }

    /// The answer to a datagram. `None` if none is sent.
    async fn answer_udp(&self, datagram: &[u8], client: IpAddr) -> Option<Vec<u8>> {
        let asked = match read(datagram) {
            Ok(asked) => Ok(asked),
            Err(Unanswerable::Refused(answer)) => Err(answer),
            Err(Unanswerable::Silent) => return None,
        };
        let is_near = self.near.contain(client);
        let pace = if is_near { Pace::Answer } else { self.rate.pace(client, Time::now()) };
        match (pace, asked) {
            (Pace::Drop, _) | (Pace::Truncate, Err(_)) => None,
            (Pace::Answer, Err(answer)) => Some(answer),
            (Pace::Truncate, Ok(asked)) => {
                let cut = Answer { is_truncated: true, ..Answer::empty(OptRcode::NOERROR) };
                Some(compose(&asked, &cut, asked.udp_max()))
            }
            (Pace::Answer, Ok(asked)) => {
                let answer = self.answer(&asked, client).await;
                Some(compose(&asked, &answer, asked.udp_max()))
            }
        }
    }

    /// What is said to a query.
    async fn answer(&self, asked: &Asked, client: IpAddr) -> Answer {
        let resolver = self.resolver.as_ref().filter(|_| self.near.contain(client));
        let mut answer = self.found(asked, resolver.filter(|_| asked.header.rd())).await;
        answer.has_resolver = resolver.is_some();
        answer
    }

    async fn found(&self, asked: &Asked, resolver: Option<&Resolver>) -> Answer {
        if asked.edns.is_some_and(|edns| edns.version > 0) {
            return Answer::empty(OptRcode::BADVERS);
        }
        if asked.class != Class::IN || is_meta(asked.rtype) {
            return Answer::empty(OptRcode::REFUSED);
        }
        let zones = self.zones.lock().expect("no code panics under this lock").clone();
        match (authority::answer(&zones, &asked.name, asked.rtype), resolver) {
            (Some(Authority { answer, rest: Some(rest) }), Some(resolver)) => {
                let key = NameKey::new(&rest);
                complete(answer, resolver.resolve(&key, asked.rtype).await)
            }
            (Some(Authority { answer, .. }), _) => answer,
            (None, None) => Answer::empty(OptRcode::REFUSED),
            (None, Some(_)) if asked.rtype == Rtype::ANY => {
                let answer = vec![authority::any(&asked.name)];
                Answer { answer, ..Answer::empty(OptRcode::NOERROR) }
            }
            (None, Some(resolver)) => {
                let found = resolver.resolve(&NameKey::new(&asked.name), asked.rtype).await;
                complete(Answer::empty(OptRcode::NOERROR), found)
            }
        }
    }
}

/// The aliases in the server's own zones, with what the resolver has found for their target.
fn complete(own: Answer, found: Resolution) -> Answer {
    let mut answer = own.answer;
    answer.extend(found.answer);
    Answer {
        rcode: found.rcode,
        is_authoritative: own.is_authoritative,
        answer,
        authority: found.authority,
        ..Answer::empty(OptRcode::NOERROR)
    }
}
