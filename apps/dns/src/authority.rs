//! [`answer`]: what the server says of a name in its own zones, by RFC 1034 §4.3.2. `server.rs`
//! calls it for each query before it asks the resolver.
//!
//! An alias, and a name that a DNAME record redirects, is followed as long as it leads to a name in
//! one of the zones. A name that exists elsewhere is left to the caller ([`Authority::rest`]),
//! which may have a resolver. Of a signed zone, `authority/signed.rs` adds signatures and proofs.

mod signed;

use crate::record::{Data, DomainName, NameKey, ZoneRecord, redirected, with_ttl};
use crate::wire::answer::Answer;
use crate::zone::{Found, Node, Zone, Zones};
use domain::base::charstr::CharStr;
use domain::base::iana::{Class, OptRcode};
use domain::base::{Record, Rtype, Ttl};
use domain::rdata::{Cname, Hinfo};

/// How many aliases are followed. A longer chain is answered as far as it was followed.
const ALIASES_MAX: usize = 16;

/// How long a client may keep the answer to a query for records of any type (RFC 8482 §4.2).
const ANY_TTL: Ttl = Ttl::from_secs(3789);

/// What the server's own zones say.
#[derive(Debug)]
pub struct Authority {
    /// The answer as it is sent to a client for which the server resolves nothing.
    pub answer: Answer,
    /// A name of other servers at which the search has ended: the target of an alias, or a name in
    /// a zone that one of ours delegates.
    pub rest: Option<DomainName>,
}

/// Answers from the zones, with signatures if the client wants them. `None` if the name lies in
/// none of them.
pub fn answer(zones: &Zones, name: &DomainName, rtype: Rtype, wants_signatures: bool) -> Option<Authority> {
    let mut answer = Answer { is_authoritative: true, ..Answer::empty(OptRcode::NOERROR) };
    let mut passed: Vec<NameKey> = Vec::new();
    let mut owner = name.clone();
    loop {
        let key = NameKey::new(&owner);
        let Some(zone) = zones.of(&key, rtype) else {
            return (!passed.is_empty()).then_some(Authority { answer, rest: Some(owner) });
        };
        let found = zone.find(&key, rtype);
        let is_signed = wants_signatures && zone.is_signed();
        let mut next = None;
        match found {
            Found::Records(set) => answer.answer.extend(set.records(&owner)),
            Found::Alias(set, target) => {
                answer.answer.extend(set.records(&owner));
                passed.push(key);
                let is_circle = passed.contains(&NameKey::new(target));
                next = (!is_circle && passed.len() < ALIASES_MAX).then(|| target.clone());
            }
            Found::Redirection(node, target) => {
                let made = redirect(&mut answer, &owner, node, target);
                passed.push(key);
                let is_followed = rtype != Rtype::CNAME && passed.len() < ALIASES_MAX;
                next = made.filter(|name| is_followed && !passed.contains(&NameKey::new(name)));
            }
            Found::Any => answer.answer.push(any(&owner)),
            Found::Delegation(node) => {
                delegate(&mut answer, zone, node);
                answer.is_authoritative = !passed.is_empty();
            }
            Found::NoData => answer.authority.push(negative_soa(zone)),
            Found::NoName => {
                answer.rcode = OptRcode::NXDOMAIN;
                answer.authority.push(negative_soa(zone));
            }
        }
        if is_signed {
            signed::sign(&mut answer, zone, &owner, found);
        }
        match (next, found) {
            (Some(target), _) => owner = target,
            (None, Found::Delegation(_)) => return Some(Authority { answer, rest: Some(owner) }),
            (None, _) => return Some(Authority { answer, rest: None }),
        }
    }
}

/// The one record that stands for all types of a name (RFC 8482 §4.2): a short answer is of no use
/// to an attacker.
pub(crate) fn any(owner: &DomainName) -> ZoneRecord {
    let text = CharStr::from_octets(b"RFC8482".to_vec()).expect("below 256 bytes");
    let data = Data::Hinfo(Hinfo::new(text, CharStr::empty()));
    Record::new(owner.clone(), Class::IN, ANY_TTL, data)
}

/// The DNAME record of a node, and the alias that it makes of a name below. Returns what the alias
/// leads to. Without such a name, because it would be too long, the code says so (RFC 6672 §2.2).
fn redirect(answer: &mut Answer, owner: &DomainName, node: &Node, target: &DomainName) -> Option<DomainName> {
    let set = node.set(Rtype::DNAME)?;
    answer.answer.extend(set.records(node.name()));
    let Ok(made) = redirected(owner, node.name(), target) else {
        answer.rcode = OptRcode::YXDOMAIN;
        return None;
    };
    let alias = Data::Cname(Cname::new(made.clone()));
    answer.answer.push(Record::new(owner.clone(), Class::IN, set.ttl, alias));
    Some(made)
}

/// The NS records of a delegation, and the addresses that the zone knows of these servers.
fn delegate(answer: &mut Answer, zone: &Zone, node: &Node) {
    let Some(set) = node.set(Rtype::NS) else { return };
    answer.authority.extend(set.records(node.name()));
    for data in &set.data {
        let Data::Ns(server) = data else { continue };
        let Some(glue) = zone.node(&NameKey::new(server.nsdname())) else { continue };
        for rtype in [Rtype::A, Rtype::AAAA] {
            answer.additional.extend(glue.set(rtype).into_iter().flat_map(|set| set.records(glue.name())));
        }
    }
}

/// The zone's SOA record, with the time that a negative answer may be kept (RFC 2308 §3).
fn negative_soa(zone: &Zone) -> ZoneRecord {
    let top = zone.top();
    let set = top.set(Rtype::SOA).expect("a zone is read with its SOA record");
    let soa = set.records(top.name()).next().expect("a set has a record");
    let minimum = match soa.data() {
        Data::Soa(soa) => soa.minimum(),
        _ => set.ttl,
    };
    with_ttl(&soa, set.ttl.min(minimum).as_secs())
}

#[cfg(test)]
mod tests;
