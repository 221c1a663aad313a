//! [`SignedSet`]: the records of one name and one type with their signatures, and
//! [`SignedSet::verify`], which checks them (RFC 4035 §5.3).

use super::work::Work;
use super::{Flaw, algorithm};
use crate::record::{Data, DomainName, NameKey, ZoneRecord};
use domain::base::Rtype;
use domain::base::rdata::ComposeRecordData;
use domain::rdata::{Dnskey, Rrsig};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// How many signatures of one set are tried. Zones have one, or two while a key is replaced.
const SIGNATURES_MAX: usize = 8;

/// How many keys with one tag and algorithm are tried. Keys of one zone have the same tag by chance
/// once in 65,536.
const KEYS_MAX: usize = 4;

/// A signature.
pub type Signature = Rrsig<Vec<u8>, DomainName>;

/// A key of a zone.
pub type ZoneKey = Dnskey<Vec<u8>>;

/// The records of one name and one type, and the signatures of them.
#[derive(Debug)]
pub struct SignedSet<'a> {
    /// The name.
    pub owner: NameKey,
    /// The type.
    pub rtype: Rtype,
    /// The records.
    pub records: Vec<&'a ZoneRecord>,
    /// The signatures that cover the type.
    pub signatures: Vec<&'a Signature>,
}

/// What a good signature says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// For how many seconds it holds from now on.
    pub seconds: u32,
    /// The name above the wildcard that the records are made of, if they are made of one.
    pub encloser: Option<NameKey>,
}

/// Puts records together by name and type. A signature without records makes no set.
pub fn sets(records: &[ZoneRecord]) -> Vec<SignedSet<'_>> {
    let mut sets: Vec<SignedSet<'_>> = Vec::new();
    let mut places: HashMap<(NameKey, Rtype), usize> = HashMap::new();
    for record in records.iter().filter(|record| record.rtype() != Rtype::RRSIG) {
        let (owner, rtype) = (NameKey::new(record.owner()), record.rtype());
        match places.entry((owner.clone(), rtype)) {
            Entry::Occupied(place) => sets[*place.get()].records.push(record),
            Entry::Vacant(place) => {
                place.insert(sets.len());
                sets.push(SignedSet { owner, rtype, records: vec![record], signatures: Vec::new() });
            }
        }
    }
    for record in records {
        let Data::Rrsig(signature) = record.data() else { continue };
        let place = places.get(&(NameKey::new(record.owner()), signature.type_covered()));
        place.into_iter().for_each(|&place| sets[place].signatures.push(signature));
    }
    sets
}

impl SignedSet<'_> {
    /// The zone that the first signature names, if it is one that may sign these records: it lies
    /// at or above the name, and above it if the records are a parent's about a zone.
    pub fn signer(&self) -> Option<NameKey> {
        let is_parents = self.rtype == Rtype::DS;
        let mut signers = self.signatures.iter().map(|signature| NameKey::new(signature.signer_name()));
        signers
            .find(|signer| self.owner.is_within(signer.as_bytes()) && !(is_parents && *signer == self.owner))
    }

    /// Finds a signature by a key of a zone that holds at this time, in seconds since 1970.
    ///
    /// # Errors
    /// What is wrong with the last signature that was looked at.
    pub fn verify(
        &self,
        zone: &NameKey,
        keys: &[ZoneKey],
        now: u32,
        work: &mut Work,
    ) -> Result<Verified, Flaw> {
        let mut flaw = Flaw::SignatureMissing;
        let is_of_zone = |signature: &&&Signature| NameKey::new(signature.signer_name()) == *zone;
        for signature in self.signatures.iter().filter(is_of_zone).take(SIGNATURES_MAX) {
            match self.verify_by(signature, keys, now, work) {
                Err(Flaw::TooMuchWork) => return Err(Flaw::TooMuchWork),
                Err(other) => flaw = other,
                verified => return verified,
            }
        }
        Err(flaw)
    }

    fn verify_by(
        &self,
        signature: &Signature,
        keys: &[ZoneKey],
        now: u32,
        work: &mut Work,
    ) -> Result<Verified, Flaw> {
        let labels = usize::from(signature.labels());
        if labels > self.owner.signed_labels() {
            return Err(Flaw::Wrong);
        }
        let seconds = time_left(signature, now)?;
        let fits = |key: &&ZoneKey| {
            key.key_tag() == signature.key_tag()
                && key.algorithm() == signature.algorithm()
                && algorithm::is_supported(key.algorithm())
        };
        let mut flaw = Flaw::KeyMissing;
        let mut message = None;
        for key in keys.iter().filter(fits).take(KEYS_MAX) {
            work.signature()?;
            let message = message.get_or_insert_with(|| self.message(signature));
            if algorithm::verify(key, message, signature.signature()) {
                let is_expanded = labels < self.owner.signed_labels();
                let encloser = self.owner.ancestor(labels).filter(|_| is_expanded);
                return Ok(Verified { seconds: seconds.min(signature.original_ttl().as_secs()), encloser });
            }
            flaw = Flaw::Wrong;
        }
        Err(flaw)
    }

    /// What is signed: the signature's fields, and each record in its canonical form (RFC 4034
    /// §3.1.8.1).
    fn message(&self, signature: &Signature) -> Vec<u8> {
        let mut message = Vec::new();
        for field in [
            signature.type_covered().to_int().to_be_bytes(),
            [signature.algorithm().to_int(), signature.labels()],
        ] {
            message.extend(field);
        }
        let (expiration, inception) = (signature.expiration().into_int(), signature.inception().into_int());
        for field in [signature.original_ttl().as_secs(), expiration, inception] {
            message.extend(field.to_be_bytes());
        }
        message.extend(signature.key_tag().to_be_bytes());
        message.extend_from_slice(NameKey::new(signature.signer_name()).as_bytes());
        let owner = self.signed_owner(signature);
        let mut all: Vec<Vec<u8>> = self.records.iter().map(|record| canonical(record.data())).collect();
        all.sort();
        all.dedup();
        for data in all {
            message.extend_from_slice(owner.as_bytes());
            message.extend(self.rtype.to_int().to_be_bytes());
            message.extend(domain::base::iana::Class::IN.to_int().to_be_bytes());
            message.extend(signature.original_ttl().as_secs().to_be_bytes());
            // A record's data have a length of 16 bits on the wire, where they come from.
            message.extend((data.len() as u16).to_be_bytes());
            message.extend(data);
        }
        message
    }

    /// The name that was signed: of records that are made of a wildcard, the wildcard.
    fn signed_owner(&self, signature: &Signature) -> NameKey {
        let labels = usize::from(signature.labels());
        let above = self.owner.ancestor(labels).filter(|_| labels < self.owner.signed_labels());
        above.and_then(|above| above.child(b"*")).unwrap_or_else(|| self.owner.clone())
    }
}

/// The data of a record in the canonical form (RFC 4034 §6.2).
pub fn canonical(data: &Data) -> Vec<u8> {
    let mut bytes = Vec::new();
    data.compose_canonical_rdata(&mut bytes).expect("a vector has room");
    bytes
}

/// For how many seconds a signature still holds. The times are numbers of a circle (RFC 4034
/// §3.1.5).
fn time_left(signature: &Signature, now: u32) -> Result<u32, Flaw> {
    let is_at_or_behind = |later: u32, earlier: u32| later.wrapping_sub(earlier) <= u32::MAX / 2;
    let (from, to) = (signature.inception().into_int(), signature.expiration().into_int());
    if !is_at_or_behind(to, from) {
        return Err(Flaw::Wrong);
    }
    if !is_at_or_behind(to, now) {
        return Err(Flaw::Expired);
    }
    if !is_at_or_behind(now, from) {
        return Err(Flaw::NotYetValid);
    }
    Ok(to.wrapping_sub(now))
}

#[cfg(test)]
mod tests;
