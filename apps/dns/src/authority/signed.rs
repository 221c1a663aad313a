//! [`sign`]: the signatures and proofs of a signed zone, for a client that wants them (RFC 4035
//! §3.1, RFC 5155 §7.2). `authority.rs` calls it for each name on the way to an answer.

use crate::record::{DomainName, NameKey};
use crate::wire::answer::Answer;
use crate::zone::{Found, Zone};
use domain::base::Rtype;

/// Adds to an answer what the zone has signed of what was found for `owner`.
pub(super) fn sign(answer: &mut Answer, zone: &Zone, owner: &DomainName, found: Found<'_>) {
    let key = NameKey::new(owner);
    let place = zone.whereabouts(&key);
    match found {
        Found::Records(set) | Found::Alias(set, _) => {
            let node = place.node.into_iter();
            answer.answer.extend(node.flat_map(|node| node.signatures(set.rtype, owner, set.ttl)));
            if place.encloser != key {
                deny(answer, zone, closer(&key, &place.encloser));
            }
        }
        Found::Redirection(node, _) => {
            let set = node.set(Rtype::DNAME).into_iter();
            answer.answer.extend(set.flat_map(|set| node.signatures(Rtype::DNAME, node.name(), set.ttl)));
        }
        Found::Any => {}
        Found::Delegation(node) => match node.set(Rtype::DS) {
            Some(set) => {
                answer.authority.extend(set.records(node.name()));
                answer.authority.extend(node.signatures(Rtype::DS, node.name(), set.ttl));
            }
            None => deny_type(answer, zone, &NameKey::new(node.name())),
        },
        Found::NoData if place.encloser == key => {
            sign_soa(answer, zone);
            deny_type(answer, zone, &key);
        }
        Found::NoData | Found::NoName => {
            sign_soa(answer, zone);
            deny_name(answer, zone, &key, &place.encloser);
            deny(answer, zone, place.encloser.child(b"*"));
        }
    }
}

/// The name right below `encloser` on the way to a name.
fn closer(name: &NameKey, encloser: &NameKey) -> Option<NameKey> {
    name.ancestor(encloser.labels().count())
}

/// Proves that a name that exists has no records of a type. In a zone with "opt-out" it may have no
/// record of its own.
fn deny_type(answer: &mut Answer, zone: &Zone, name: &NameKey) {
    if zone.has_denial(name) || !zone.is_hashed() {
        return deny(answer, zone, Some(name.clone()));
    }
    let mut above = (0..name.labels().count() - 1).rev().filter_map(|labels| name.ancestor(labels));
    if let Some(encloser) = above.find(|name| zone.has_denial(name)) {
        deny_name(answer, zone, name, &encloser);
    }
}

/// Proves that a name does not exist, and with hashes also that `encloser` does.
fn deny_name(answer: &mut Answer, zone: &Zone, name: &NameKey, encloser: &NameKey) {
    if zone.is_hashed() {
        deny(answer, zone, Some(encloser.clone()));
    }
    deny(answer, zone, closer(name, encloser));
}

/// Adds the record that speaks of a name, with its signature, once.
fn deny(answer: &mut Answer, zone: &Zone, name: Option<NameKey>) {
    let Some(node) = name.and_then(|name| zone.denial(&name)) else { return };
    let rtype = if zone.is_hashed() { Rtype::NSEC3 } else { Rtype::NSEC };
    let is_there =
        answer.authority.iter().any(|record| record.rtype() == rtype && record.owner() == node.name());
    let Some(set) = node.set(rtype).filter(|_| !is_there) else { return };
    answer.authority.extend(set.records(node.name()));
    answer.authority.extend(node.signatures(rtype, node.name(), set.ttl));
}

/// Adds the signature of the SOA record of a negative answer.
fn sign_soa(answer: &mut Answer, zone: &Zone) {
    let top = zone.top();
    let soa = answer.authority.iter().find(|record| record.rtype() == Rtype::SOA);
    let Some(ttl) = soa.map(|soa| soa.ttl()) else { return };
    answer.authority.extend(top.signatures(Rtype::SOA, top.name(), ttl));
}
