//! [`Settings`], [`Shared`]: what the threads of a server share, and what they say to a query.
//!
//! `udp.rs`, `tcp.rs` and `tls.rs` call `Shared` for each message that they receive.

use super::memo::Memo;
use super::transfer::Transfer;
use crate::authority::{self, Authority};
use crate::dnssec::Security;
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
use selvedge::sync::Semaphore;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What a server does, and its limits.
#[derive(Debug)]
pub struct Settings {
    /// The zones for which it is an authority.
    pub zones: Zones,
    /// Finds what is in other zones, for clients nearby.
    pub resolver: Option<Resolver>,
    /// The networks of clients nearby: they may use the resolver, and have no limit of their rate.
    pub near: Networks,
    /// The networks of hosts that may fetch zones as a whole, over TCP and TLS.
    pub transfers: Networks,
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

/// What the threads of a server share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) zones: ZoneCell,
    resolver: Option<Resolver>,
    near: Networks,
    transfers: Networks,
    rate: RateLimit,
    memo: Memo,
    pub(super) queries: Semaphore,
    pub(super) clients: Semaphore,
    pub(super) idle: Duration,
}

/// What is sent to a client over TCP.
#[derive(Debug)]
pub(super) enum TcpAnswer {
    Message(Vec<u8>),
    Zone(Transfer),
}

/// What the server grants to the sender of a datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct QuerySource {
    is_near: bool,
    pub(super) pace: Pace,
}

impl Shared {
    /// What the threads of a server with these settings share.
    pub(super) fn new(settings: Settings) -> Shared {
        Shared {
            zones: Arc::new(Mutex::new(Arc::new(settings.zones))),
            resolver: settings.resolver,
            near: settings.near,
            transfers: settings.transfers,
            rate: RateLimit::new(settings.rate),
            memo: Memo::default(),
            queries: Semaphore::new(settings.queries),
            clients: Semaphore::new(settings.tcp_clients),
            idle: settings.idle,
        }
    }

    /// Follows the keys of the resolver's trust anchors, if it follows them.
    pub(super) async fn follow_anchors(&self) {
        if let Some(resolver) = &self.resolver {
            resolver.follow_anchors().await;
        }
    }

    /// The answer to a message over TCP. `None` if none is sent.
    pub(super) async fn answer_tcp(&self, message: &[u8], client: IpAddr) -> Option<TcpAnswer> {
        match read(message) {
            Ok(asked) => match self.transfer(&asked, client) {
                Some(transfer) => Some(TcpAnswer::Zone(transfer)),
                None => {
                    let answer = self.answer(&asked, client).await;
                    Some(TcpAnswer::Message(compose(&asked, &answer, TCP_MAX)))
                }
            },
            Err(Unanswerable::Refused(answer)) => Some(TcpAnswer::Message(answer)),
            Err(Unanswerable::Silent) => None,
        }
    }

    /// The zone that a client asks for as a whole, if it may have it.
    fn transfer(&self, asked: &Asked, client: IpAddr) -> Option<Transfer> {
        let zones = self.zones.lock().expect("no code panics under this lock").clone();
        Transfer::of(asked, &zones).filter(|_| self.transfers.contain(client))
    }

    /// What the server grants to the sender of a datagram, which is counted.
    pub(super) fn sender(&self, client: IpAddr) -> QuerySource {
        let is_near = self.near.contain(client);
        let pace = if is_near { Pace::Answer } else { self.rate.pace(client, Time::now()) };
        QuerySource { is_near, pace }
    }

    /// Writes the answer that a query has had in this second. Whether there was one.
    pub(super) fn recall(&self, query: &[u8], from: QuerySource, out: &mut Vec<u8>) -> bool {
        from.pace == Pace::Answer && self.memo.recall(query, from.is_near, Time::now(), out)
    }

    /// The answer to a datagram. `None` if none is sent.
    pub(super) async fn answer_udp(
        &self,
        datagram: &[u8],
        client: IpAddr,
        from: QuerySource,
    ) -> Option<Vec<u8>> {
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
