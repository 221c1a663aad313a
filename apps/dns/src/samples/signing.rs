//! Keys, and signatures that the tests make with ring, right and wrong ones.

use super::name;
use crate::dnssec::signed::ZoneKey;
use crate::record::{Data, ZoneRecord};
use domain::base::iana::{Class, SecurityAlgorithm};
use domain::base::{Record, Ttl};
use domain::rdata::dnssec::{ProtoRrsig, Timestamp};
use ring::signature::{Ed25519KeyPair, KeyPair};

pub(crate) const NOW: u32 = 1_800_000_000;

/// A key of the zone `z`. Its private half is made of a number.
pub(crate) fn pair(seed: u8) -> (Ed25519KeyPair, ZoneKey) {
    pair_with(seed, 256)
}

/// The same with other flags.
pub(crate) fn pair_with(seed: u8, flags: u16) -> (Ed25519KeyPair, ZoneKey) {
    let pair = Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap();
    let public = pair.public_key().as_ref().to_vec();
    (pair, ZoneKey::new(flags, 3, SecurityAlgorithm::ED25519, public).unwrap())
}

/// The fields of a signature.
pub(crate) struct Fields {
    pub(crate) labels: u8,
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) signer: &'static str,
}

pub(crate) const RIGHT: Fields = Fields { labels: 2, from: NOW - 100, to: NOW + 100, signer: "z" };

/// Signs records of one name and type as RFC 4034 says, with the library's canonical form. `owner`
/// is the name that is signed.
pub(crate) fn sign(records: &[ZoneRecord], owner: &str, seed: u8, fields: &Fields) -> ZoneRecord {
    sign_by(&pair(seed), records, owner, fields)
}

/// The same by another key.
pub(crate) fn sign_by(
    (pair, key): &(Ed25519KeyPair, ZoneKey),
    records: &[ZoneRecord],
    owner: &str,
    fields: &Fields,
) -> ZoneRecord {
    let first = &records[0];
    let proto = ProtoRrsig::new(
        first.rtype(),
        SecurityAlgorithm::ED25519,
        fields.labels,
        Ttl::from_secs(300),
        Timestamp::from(fields.to),
        Timestamp::from(fields.from),
        key.key_tag(),
        name(fields.signer),
    );
    let mut message = Vec::new();
    proto.compose_canonical(&mut message).unwrap();
    let mut sorted: Vec<Vec<u8>> = records
        .iter()
        .map(|record| {
            let mut bytes = Vec::new();
            let record = Record::new(name(owner), Class::IN, Ttl::from_secs(300), record.data().clone());
            record.compose_canonical(&mut bytes).unwrap();
            bytes
        })
        .collect();
    sorted.sort();
    message.extend(sorted.concat());
    let signature = pair.sign(&message).as_ref().to_vec();
    Record::new(
        first.owner().clone(),
        Class::IN,
        Ttl::from_secs(300),
        Data::Rrsig(proto.into_rrsig(signature).unwrap()),
    )
}
