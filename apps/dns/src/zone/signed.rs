//! [`DenialChain`]: the NSEC or NSEC3 records of a zone in their order, so that the zone finds the
//! record that proves that a name does not exist. `authority/signed.rs` asks for them.
//!
//! The zone's file has the signatures and these records already: another program has signed it.

use super::{Node, Zone};
use crate::dnssec::algorithm::nsec3_hash;
use crate::record::{Data, DomainName, NameKey, ZoneRecord};
use domain::base::iana::Class;
use domain::base::{Record, Rtype, Ttl};
use domain::utils::base32;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// A name in the order of a signed zone.
#[derive(Clone, Debug, PartialEq, Eq)]
struct InOrder(NameKey);

impl Ord for InOrder {
    fn cmp(&self, other: &InOrder) -> Ordering {
        self.0.canonical_cmp(&other.0)
    }
}

impl PartialOrd for InOrder {
    fn partial_cmp(&self, other: &InOrder) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The names of the records that deny.
#[derive(Clone, Debug, Default)]
pub(super) struct DenialChain {
    plain: BTreeSet<InOrder>,
    /// By hash, with the salt and the iterations of the first record.
    hashed: BTreeMap<Vec<u8>, NameKey>,
    parameters: Option<(Vec<u8>, u16)>,
}

impl DenialChain {
    /// Notes a record of the zone.
    pub(super) fn note(&mut self, owner: &NameKey, data: &Data) {
        match data {
            Data::Nsec(_) => _ = self.plain.insert(InOrder(owner.clone())),
            Data::Nsec3(nsec) => {
                let parameters = (nsec.salt().as_slice().to_vec(), nsec.iterations());
                let label = owner.labels().next().and_then(|label| str::from_utf8(label).ok());
                let hash = label.and_then(|label| base32::decode_hex::<Vec<u8>>(label).ok());
                if *self.parameters.get_or_insert_with(|| parameters.clone()) == parameters {
                    self.hashed.extend(hash.map(|hash| (hash, owner.clone())));
                }
            }
            _ => {}
        }
    }

    /// The name of the record of a name, or of the one in front of it.
    fn at_or_before(&self, name: &NameKey) -> Option<&NameKey> {
        if let Some((salt, iterations)) = &self.parameters {
            let hash = nsec3_hash(name.as_bytes(), salt, *iterations);
            let before = self.hashed.range(..=hash).next_back();
            // In front of the first hash is the last one.
            return before.or_else(|| self.hashed.last_key_value()).map(|(_, owner)| owner);
        }
        self.plain.range(..=InOrder(name.clone())).next_back().map(|InOrder(owner)| owner)
    }
}

/// Where a name is in a zone.
#[derive(Debug)]
pub struct Whereabouts<'a> {
    /// The node with the records of the name: its own, or a wildcard's.
    pub node: Option<&'a Node>,
    /// The closest name that exists: the name itself, if it does.
    pub encloser: NameKey,
}

impl Zone {
    /// Whether the zone's file is signed.
    pub fn is_signed(&self) -> bool {
        self.top().set(Rtype::RRSIG).is_some()
    }

    /// Whether the records that deny name hashes.
    pub fn is_hashed(&self) -> bool {
        self.chain.parameters.is_some()
    }

    /// Where a name is.
    pub fn whereabouts(&self, name: &NameKey) -> Whereabouts<'_> {
        let above = (0..name.labels().count()).rev().filter_map(|labels| name.ancestor(labels));
        let mut there = above.filter(|name| self.nodes.contains_key(name));
        let encloser = there.next().unwrap_or_else(|| self.apex.clone());
        let node = match encloser == *name {
            true => self.nodes.get(name),
            false => encloser.child(b"*").and_then(|wildcard| self.nodes.get(&wildcard)),
        };
        Whereabouts { node, encloser }
    }

    /// The node with the NSEC or NSEC3 record that speaks of a name: its own record, or the
    /// record that has it in its gap.
    pub fn denial(&self, name: &NameKey) -> Option<&Node> {
        self.nodes.get(self.chain.at_or_before(name)?)
    }

    /// Whether a name has an NSEC or NSEC3 record of its own.
    pub fn has_denial(&self, name: &NameKey) -> bool {
        match &self.chain.parameters {
            Some((salt, iterations)) => {
                self.chain.hashed.contains_key(&nsec3_hash(name.as_bytes(), salt, *iterations))
            }
            None => self.chain.plain.contains(&InOrder(name.clone())),
        }
    }
}

impl Node {
    /// The signatures of the node's records of a type, for an answer about `owner`.
    pub fn signatures(&self, rtype: Rtype, owner: &DomainName, ttl: Ttl) -> Vec<ZoneRecord> {
        let all = self.set(Rtype::RRSIG).into_iter().flat_map(|set| &set.data);
        let covering =
            all.filter(|data| matches!(data, Data::Rrsig(signature) if signature.type_covered() == rtype));
        covering.map(|data| Record::new(owner.clone(), Class::IN, ttl, data.clone())).collect()
    }
}
