//! Names and records that the unit tests are written with.

pub(crate) mod signing;

use crate::record::{Data, DomainName, NameKey, ZoneRecord};
use domain::base::iana::Class;
use domain::base::{Record, Ttl};
use domain::rdata::A;

pub(crate) fn name(text: &str) -> DomainName {
    DomainName::vec_from_str(text).unwrap()
}

pub(crate) fn key(text: &str) -> NameKey {
    NameKey::new(&name(text))
}

/// A record that may be kept for five minutes.
pub(crate) fn record(owner: &str, data: Data) -> ZoneRecord {
    Record::new(name(owner), Class::IN, Ttl::from_secs(300), data)
}

/// The address 192.0.2.`last`.
pub(crate) fn a(owner: &str, last: u8) -> ZoneRecord {
    record(owner, Data::A(A::new([192, 0, 2, last].into())))
}
