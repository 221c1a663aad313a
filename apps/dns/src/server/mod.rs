//! [`Server`]: the sockets, and a thread for each query over UDP (`udp.rs`) and each client over
//! TCP (`tcp.rs`) and TLS (`tls.rs`). `Shared::answer` is what all of them do with a query.
//!
//! `memo.rs` keeps answers for a second.
//!
//! `main.rs` makes a server of the command line's options, and the tests make their own.

mod memo;
mod tcp;
mod tls;
mod udp;

use crate::authority::{self, Authority};
use crate::dnssec::Security;
use crate::networks::Networks;
use crate::rate::{Pace, RateLimit};
use crate::record::NameKey;
use crate::resolve::{Resolution, Resolver};
use crate::tls::IdentityCell;
use crate::wire::answer::{Answer, compose};
use crate::wire::asked::{Asked, Unanswerable, read};
use crate::wire::{TCP_MAX, is_meta};
use crate::zone::Zones;
use domain::base::Rtype;
use domain::base::iana::{Class, OptRcode};
use memo::Memo;
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
    /// How many clients are connected at once over TCP and TLS. A further one is closed.
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
    /// Those for clients over TLS, each with what the server shows there.
    secure: Vec<(TcpListener, IdentityCell)>,
}

/// What the threads of a server share.
#[derive(Debug)]
struct Shared {
    zones: ZoneCell,
    resolver: Option<Resolver>,
    near: Networks,
    rate: RateLimit,
    memo: Memo,
    queries: Semaphore,
    clients: Semaphore,
    idle: Duration,
}

/// What the server grants to the sender of a datagram.
#[derive(Clone, Copy, Debug)]
struct QuerySource {
    is_near: bool,
    pace: Pace,
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
            memo: Memo::default(),
            queries: Semaphore::new(settings.queries),
            clients: Semaphore::new(settings.tcp_clients),
            idle: settings.idle,
        };
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

impl Shared {
    /// The answer to a message over TCP. `None` if none is sent.
    async fn answer_tcp(&self, message: &[u8], client: IpAddr) -> Option<Vec<u8>> {
        match read(message) {
            Ok(asked) => Some(compose(&asked, &self.answer(&asked, client).await, TCP_MAX)),
            Err(Unanswerable::Refused(answer)) => Some(answer),
            Err(Unanswerable::Silent) => None,
        }
    }

    /// What the server grants to the sender of a datagram, which is counted.
    fn sender(&self, client: IpAddr) -> QuerySource {
        let is_near = self.near.contain(client);
        let pace = if is_near { Pace::Answer } else { self.rate.pace(client, Time::now()) };
        QuerySource { is_near, pace }
    }

    /// Writes the answer that a query has had in this second. Whether there was one.
    fn recall(&self, query: &[u8], from: QuerySource, out: &mut Vec<u8>) -> bool {
        from.pace == Pace::Answer && self.memo.recall(query, from.is_near, Time::now(), out)
    }

    /// The answer to a datagram. `None` if none is sent.
    async fn answer_udp(&self, datagram: &[u8], client: IpAddr, from: QuerySource) -> Option<Vec<u8>> {
        let asked = match read(datagram) {
            Ok(asked) => asked,
            Err(Unanswerable::Refused(answer)) => return (from.pace == Pace::Answer).then_some(answer),
            Err(Unanswerable::Silent) => return None,
        };
        match from.pace {
            Pace::Drop => None,
            Pace::Truncate => {
                let cut = Answer { is_truncated: true, ..Answer::empty(OptRcode::NOERROR) };
                Some(compose(&asked, &cut, asked.udp_max()))
            }
            Pace::Answer => {
                let answer = compose(&asked, &self.answer(&asked, client).await, asked.udp_max());
                self.memo.keep(datagram, from.is_near, Time::now(), &answer);
                Some(answer)
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
        match (authority::answer(&zones, &asked.name, asked.rtype, asked.wants_signatures()), resolver) {
            (Some(Authority { answer, rest: Some(rest) }), Some(resolver)) => {
                let key = NameKey::new(&rest);
                let found = resolver.resolve(&key, asked.rtype).await;
                let answer = complete(answer, seen_by(asked, found), asked);
                // The aliases of the server's own zones were not validated.
                Answer { is_authentic: false, ..answer }
            }
            (Some(Authority { answer, .. }), _) => answer,
            (None, None) => Answer::empty(OptRcode::REFUSED),
            (None, Some(_)) if asked.rtype == Rtype::ANY => {
                let answer = vec![authority::any(&asked.name)];
                Answer { answer, ..Answer::empty(OptRcode::NOERROR) }
            }
            (None, Some(resolver)) => {
                let found = resolver.resolve(&NameKey::new(&asked.name), asked.rtype).await;
                complete(Answer::empty(OptRcode::NOERROR), seen_by(asked, found), asked)
            }
        }
    }
}

/// A resolution for a client: without signatures if the client does not want them, and without
/// bogus records if it leaves validation to the server.
fn seen_by(asked: &Asked, mut found: Resolution) -> Resolution {
    if matches!(found.security, Security::Bogus(_)) && !asked.header.cd() {
        found.rcode = OptRcode::SERVFAIL;
        (found.answer, found.authority) = (Vec::new(), Vec::new());
    }
    if asked.wants_signatures() { found } else { found.without_signatures(asked.rtype) }
}

/// The aliases in the server's own zones, with what the resolver has found for their target.
fn complete(own: Answer, found: Resolution, asked: &Asked) -> Answer {
    let error = found.error();
    let mut answer = own.answer;
    answer.extend(found.answer);
    Answer {
        rcode: found.rcode,
        is_authoritative: own.is_authoritative,
        is_authentic: found.security == Security::Secure && asked.wants_authentic(),
        error,
        answer,
        authority: found.authority,
        ..Answer::empty(OptRcode::NOERROR)
    }
}
