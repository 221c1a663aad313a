//! [`Zone`]: the records of one zone, and [`Zone::find`], the search of RFC 1034 §4.3.2 with the
//! wildcards of RFC 4592. [`Zones`]: all zones that the server is an authority for.
//!
//! `file.rs` reads a zone from a file. `authority.rs` makes answers of what is found here.
//!
//! A zone is a map from keys to nodes. A name with no records has a node too if a name below it has
//! records, because such a name exists (an empty non-terminal). So each name with a node has nodes
//! above it down to the top of the zone, and the search can go from the top to the name.

mod entries;
pub mod file;
mod signed;
mod words;

pub use signed::Whereabouts;

use crate::record::{Data, DomainName, NameKey, ZoneRecord};
use domain::base::iana::Class;
use domain::base::{Record, Rtype, Serial, Ttl};
use signed::DenialChain;
use std::collections::HashMap;
use std::collections::hash_map::Entry as MapEntry;

/// The records of one name and one type.
#[derive(Clone, Debug)]
pub struct RecordSet {
    /// The type.
    pub rtype: Rtype,
    /// The time to live of all of them: the least that one of them asks for.
    pub ttl: Ttl,
    /// The data, each once.
    pub data: Vec<Data>,
}

impl RecordSet {
    /// The records, with a name as their owner.
    pub fn records(&self, owner: &DomainName) -> impl Iterator<Item = ZoneRecord> {
        self.data.iter().map(move |data| Record::new(owner.clone(), Class::IN, self.ttl, data.clone()))
    }
}

/// A name that exists in a zone.
#[derive(Clone, Debug)]
pub struct Node {
    name: DomainName,
    sets: Vec<RecordSet>,
}

impl Node {
    /// The name, as the file spells it.
    pub fn name(&self) -> &DomainName {
        &self.name
    }

    /// All records.
    pub fn records(&self) -> impl Iterator<Item = ZoneRecord> {
        self.sets.iter().flat_map(|set| set.records(&self.name))
    }

    /// The records of a type.
    pub fn set(&self, rtype: Rtype) -> Option<&RecordSet> {
        self.sets.iter().find(|set| set.rtype == rtype)
    }

    /// The name of a DNAME record: the names below this node are those below it.
    fn redirection(&self) -> Option<&DomainName> {
        match self.set(Rtype::DNAME).map(|set| &set.data[0]) {
            Some(Data::Dname(redirection)) => Some(redirection.dname()),
            _ => None,
        }
    }
}

/// The result of a search in a zone.
#[derive(Clone, Copy, Debug)]
pub enum Found<'a> {
    /// The records that are asked for.
    Records(&'a RecordSet),
    /// The name is an alias of another one.
    Alias(&'a RecordSet, &'a DomainName),
    /// The name lies below this node, and all names below it are those below another one (RFC
    /// 6672).
    Redirection(&'a Node, &'a DomainName),
    /// The name has records, and records of any type are asked for.
    Any,
    /// The name lies in a zone of other servers. The node has their NS records.
    Delegation(&'a Node),
    /// The name exists and has no records of this type.
    NoData,
    /// The name does not exist.
    NoName,
}

/// Why a record cannot stand in a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// The name is not in the zone.
    Outside,
    /// An SOA record stands at another name than the zone's.
    SoaBelow,
    /// The zone has an SOA record already.
    SecondSoa,
    /// A CNAME record and another one have the same name.
    BesideAlias,
    /// Two DNAME records have the same name.
    SecondRedirection,
}

/// The records of a zone.
#[derive(Clone, Debug)]
pub struct Zone {
    apex: NameKey,
    nodes: HashMap<NameKey, Node>,
    chain: DenialChain,
}

impl Zone {
    /// A zone without records.
    pub fn new(name: &DomainName) -> Zone {
        let apex = NameKey::new(name);
        let top = Node { name: name.clone(), sets: Vec::new() };
        Zone { nodes: HashMap::from([(apex.clone(), top)]), apex, chain: DenialChain::default() }
    }

    /// The node of the zone's own name.
    pub fn top(&self) -> &Node {
        &self.nodes[self.apex.as_bytes()]
    }

    /// Adds a record. A record that is there already is not added again.
    ///
    /// # Errors
    /// If the record does not fit. The zone is as before.
    pub fn insert(&mut self, record: ZoneRecord) -> Result<(), RecordError> {
        let key = NameKey::new(record.owner());
        if !key.is_within(self.apex.as_bytes()) {
            return Err(RecordError::Outside);
        }
        let (rtype, ttl) = (record.rtype(), record.ttl());
        if rtype == Rtype::SOA && key != self.apex {
            return Err(RecordError::SoaBelow);
        }
        let (owner, data) = record.into_owner_and_data();
        if let Some(node) = self.nodes.get(key.as_bytes()) {
            misfit(node, rtype, &data)?;
        }
        self.chain.note(&key, &data);
        self.make_nodes(&key, &owner);
        let node = self.nodes.get_mut(key.as_bytes()).expect("just made");
        match node.sets.iter_mut().find(|set| set.rtype == rtype) {
            Some(set) => {
                set.ttl = set.ttl.min(ttl);
                if !set.data.contains(&data) {
                    set.data.push(data);
                }
            }
            None => node.sets.push(RecordSet { rtype, ttl, data: vec![data] }),
        }
        Ok(())
    }

    /// Makes the nodes of a name and of the names between the zone's own name and it.
    fn make_nodes(&mut self, key: &NameKey, owner: &DomainName) {
        for (suffix, name) in key.suffixes().zip(owner.iter_suffixes()) {
            if suffix.len() <= self.apex.as_bytes().len() {
                break;
            }
            let key = NameKey::new(&name);
            let name = || DomainName::from_octets(name.as_slice().to_vec()).expect("a name's end");
            self.nodes.entry(key).or_insert_with(|| Node { name: name(), sets: Vec::new() });
        }
    }

    /// All records, between two times the SOA record: a zone transfer (RFC 5936 §2.2).
    pub fn transfer(&self) -> impl Iterator<Item = ZoneRecord> {
        let soa = || self.top().set(Rtype::SOA).into_iter().flat_map(|set| set.records(self.top().name()));
        let rest = self.nodes().flat_map(Node::records).filter(|record| record.rtype() != Rtype::SOA);
        soa().chain(rest).chain(soa())
    }

    /// The serial number of the zone's SOA record. `None` for a zone without one.
    pub fn serial(&self) -> Option<Serial> {
        match self.top().set(Rtype::SOA)?.data.first()? {
            Data::Soa(soa) => Some(soa.serial()),
            _ => None,
        }
    }

    /// All nodes, in no order.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.values()
    }

    /// The node of a name, whatever lies above it: glue, for example.
    pub fn node(&self, name: &NameKey) -> Option<&Node> {
        self.nodes.get(name.as_bytes())
    }

    /// Searches for records of a name in the zone.
    ///
    /// # Complexity
    /// One look into the map for each label of the name below the zone's own name.
    pub fn find(&self, name: &NameKey, rtype: Rtype) -> Found<'_> {
        let top = self.apex.as_bytes();
        let below: Vec<&[u8]> = name.suffixes().take_while(|suffix| suffix.len() > top.len()).collect();
        let (mut encloser, mut last) = (top, self.top());
        for &suffix in below.iter().rev() {
            if let Some(target) = last.redirection() {
                return Found::Redirection(last, target);
            }
            let Some(node) = self.nodes.get(suffix) else { return self.wildcard(encloser, rtype) };
            // The DS records of a zone are the parent's (RFC 4035 §3.1.4.1).
            let parent_answers = rtype == Rtype::DS && suffix == name.as_bytes();
            if node.set(Rtype::NS).is_some() && !parent_answers {
                return Found::Delegation(node);
            }
            (encloser, last) = (suffix, node);
        }
        at(last, rtype)
    }

    /// Searches the wildcard below the closest name that exists (RFC 4592 §3.3.1).
    fn wildcard(&self, encloser: &[u8], rtype: Rtype) -> Found<'_> {
        let key = [b"\x01*", encloser].concat();
        self.nodes.get(key.as_slice()).map_or(Found::NoName, |node| at(node, rtype))
    }
}

/// The records of a type at a name that exists.
fn at(node: &Node, rtype: Rtype) -> Found<'_> {
    if rtype == Rtype::ANY && !node.sets.is_empty() {
        return Found::Any;
    }
    if let Some(set) = node.set(rtype) {
        return Found::Records(set);
    }
    match node.set(Rtype::CNAME).map(|set| (set, &set.data[0])) {
        Some((set, Data::Cname(alias))) => Found::Alias(set, alias.cname()),
        _ => Found::NoData,
    }
}

/// Whether a record may stand beside the records that a name has.
fn misfit(node: &Node, rtype: Rtype, data: &Data) -> Result<(), RecordError> {
    let is_there = node.set(rtype).is_some_and(|set| set.data.contains(data));
    if is_there {
        return Ok(());
    }
    if rtype == Rtype::SOA && node.set(Rtype::SOA).is_some() {
        return Err(RecordError::SecondSoa);
    }
    if rtype == Rtype::DNAME && node.set(Rtype::DNAME).is_some() {
        return Err(RecordError::SecondRedirection);
    }
    // Of an alias, too, there is a signature, and a record of the name behind it (RFC 4034 §2.5).
    let stands_beside = |rtype: Rtype| matches!(rtype, Rtype::RRSIG | Rtype::NSEC);
    let is_alias = node.set(Rtype::CNAME).is_some() && !stands_beside(rtype);
    let others = node.sets.iter().any(|set| !stands_beside(set.rtype) && set.rtype != Rtype::CNAME);
    let is_second = rtype == Rtype::CNAME && node.set(Rtype::CNAME).is_some();
    if is_alias || is_second || (rtype == Rtype::CNAME && others) {
        return Err(RecordError::BesideAlias);
    }
    Ok(())
}

/// The zones of a server.
#[derive(Clone, Debug, Default)]
pub struct Zones {
    zones: HashMap<NameKey, Zone>,
}

impl Zones {
    /// Adds a zone, if there is none of its name. Returns whether there was none.
    pub fn insert(&mut self, zone: Zone) -> bool {
        let place = self.zones.entry(zone.apex.clone());
        let is_new = matches!(place, MapEntry::Vacant(_));
        place.or_insert(zone);
        is_new
    }

    /// All zones, in no order.
    pub fn all(&self) -> impl Iterator<Item = &Zone> {
        self.zones.values()
    }

    /// The zone of exactly this name.
    pub fn named(&self, name: &NameKey) -> Option<&Zone> {
        self.zones.get(name.as_bytes())
    }

    /// The zone that answers for a name: the deepest one that the name lies in. What a parent says
    /// of a zone, the zone above answers, if it is one of ours too.
    pub fn of(&self, name: &NameKey, rtype: Rtype) -> Option<&Zone> {
        let mut zones = name.suffixes().filter_map(|suffix| self.zones.get(suffix));
        let deepest = zones.next()?;
        let asks_parent = rtype == Rtype::DS && deepest.apex == *name;
        Some(if asks_parent { zones.next().unwrap_or(deepest) } else { deepest })
    }
}

#[cfg(test)]
mod tests;
