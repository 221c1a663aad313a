//! [`Delegation`]: a zone and its servers. `judge.rs` makes it of a referral, `iterate.rs` walks
//! from one to the next, and [`roots`] is where the walk begins.

use crate::record::{Data, DomainName, NameKey, ZoneRecord};
use crate::wire::heard::Heard;
use std::net::IpAddr;

/// How many servers of a zone are kept, and how many addresses of each.
const SERVERS_MAX: usize = 13;
const ADDRESSES_MAX: usize = 4;

/// The root servers (<https://www.iana.org/domains/root/servers>).
const ROOTS: [(&str, &str, &str); 13] = [
    ("a.root-servers.net", "198.41.0.4", "2001:503:ba3e::2:30"),
    ("b.root-servers.net", "170.247.170.2", "2801:1b8:10::b"),
    ("c.root-servers.net", "192.33.4.12", "2001:500:2::c"),
    ("d.root-servers.net", "199.7.91.13", "2001:500:2d::d"),
    ("e.root-servers.net", "192.203.230.10", "2001:500:a8::e"),
    ("f.root-servers.net", "192.5.5.241", "2001:500:2f::f"),
    ("g.root-servers.net", "192.112.36.4", "2001:500:12::d0d"),
    ("h.root-servers.net", "198.97.190.53", "2001:500:1::53"),
    ("i.root-servers.net", "192.36.148.17", "2001:7fe::53"),
    ("j.root-servers.net", "192.58.128.30", "2001:503:c27::2:30"),
    ("k.root-servers.net", "193.0.14.129", "2001:7fd::1"),
    ("l.root-servers.net", "199.7.83.42", "2001:500:9f::42"),
    ("m.root-servers.net", "202.12.27.33", "2001:dc3::35"),
];

/// A zone with the servers that know it.
#[derive(Clone, Debug)]
pub struct Delegation {
    /// The zone.
    pub zone: NameKey,
    /// Its servers.
    pub servers: Vec<NameServer>,
    /// How long the delegation may be kept, in seconds.
    pub ttl: u32,
}

/// A server of a zone.
#[derive(Clone, Debug)]
pub struct NameServer {
    /// Its name.
    pub name: DomainName,
    /// Its addresses, as far as the server above has told them.
    pub addresses: Vec<IpAddr>,
}

impl Delegation {
    /// The delegation of `zone` in an answer of a server of `parent`. An address counts only for
    /// a server in the parent's zone, because the parent knows no other one.
    pub(super) fn heard(heard: &Heard, zone: NameKey, parent: &NameKey) -> Delegation {
        let mut delegation = Delegation { zone, servers: Vec::new(), ttl: u32::MAX };
        for record in &heard.authority {
            let Data::Ns(server) = record.data() else { continue };
            if NameKey::new(record.owner()) != delegation.zone || delegation.servers.len() == SERVERS_MAX {
                continue;
            }
            delegation.ttl = delegation.ttl.min(record.ttl().as_secs());
            let name = server.nsdname().clone();
            let addresses = addresses(&heard.additional, &NameKey::new(&name), parent);
            delegation.servers.push(NameServer { name, addresses });
        }
        delegation
    }

    /// About how many bytes the delegation takes.
    pub(super) fn bytes(&self) -> usize {
        let servers = self.servers.iter().map(|server| {
            size_of::<NameServer>() + server.name.len() + server.addresses.len() * size_of::<IpAddr>()
        });
        size_of::<Delegation>() + self.zone.as_bytes().len() + servers.sum::<usize>()
    }
}

fn addresses(records: &[ZoneRecord], server: &NameKey, parent: &NameKey) -> Vec<IpAddr> {
    if !server.is_within(parent.as_bytes()) {
        return Vec::new();
    }
    let of_server = records.iter().filter(|record| NameKey::new(record.owner()) == *server);
    of_server.filter_map(address).take(ADDRESSES_MAX).collect()
}

/// The address in a record, if it has one.
pub(super) fn address(record: &ZoneRecord) -> Option<IpAddr> {
    match record.data() {
        Data::A(address) => Some(address.addr().into()),
        Data::Aaaa(address) => Some(address.addr().into()),
        _ => None,
    }
}

/// The root zone with its servers, as IANA publishes them.
pub fn roots() -> Delegation {
    let servers = ROOTS.iter().map(|&(name, v4, v6)| NameServer {
        name: DomainName::vec_from_str(name).expect("a name"),
        addresses: [v4, v6].map(|address| address.parse().expect("an address")).to_vec(),
    });
    Delegation { zone: NameKey::root(), servers: servers.collect(), ttl: u32::MAX }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_the_roots_is_right() {
        let roots = roots();
        assert_eq!(roots.servers.len(), 13);
        let mut addresses: Vec<IpAddr> = roots.servers.iter().flat_map(|one| one.addresses.clone()).collect();
        addresses.sort();
        addresses.dedup();
        assert_eq!(addresses.len(), 26);
    }
}
