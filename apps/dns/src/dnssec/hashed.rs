//! [`HashedDenials`]: proofs by NSEC3 records, which name hashes in place of names (RFC 5155 §8).
//!
//! A name does not exist if the closest name above it that exists has a record, and the hash of the
//! name right below that one is between a record's hash and the next one. A record with the mark
//! "opt-out" may leave unsigned zones out, so what it covers is insecure and not missing.

use super::denial::{NoCut, cut_of, lacks, leads_away};
use super::work::Work;
use super::{Flaw, Security, algorithm};
use crate::record::NameKey;
use domain::base::Rtype;
use domain::base::iana::Nsec3HashAlgorithm;
use domain::rdata::Nsec3;
use domain::rdata::dnssec::RtypeBitmap;
use domain::utils::base32;

/// How many further times names are hashed at most. Beyond it the zone counts as not signed
/// (RFC 9276 §3.2); other resolvers have the same bound.
const ITERATIONS_MAX: u16 = 50;

/// An NSEC3 record without its own hash.
#[derive(Debug)]
pub struct HashedRecord {
    algorithm: Nsec3HashAlgorithm,
    flags: u8,
    iterations: u16,
    salt: Vec<u8>,
    next: Vec<u8>,
    types: RtypeBitmap<Vec<u8>>,
}

impl HashedRecord {
    /// The fields of a record.
    pub fn new(nsec: &Nsec3<Vec<u8>>) -> HashedRecord {
        HashedRecord {
            algorithm: nsec.hash_algorithm(),
            flags: nsec.flags(),
            iterations: nsec.iterations(),
            salt: nsec.salt().as_slice().to_vec(),
            next: nsec.next_owner().as_slice().to_vec(),
            types: nsec.types().clone(),
        }
    }

    fn is_opt_out(&self) -> bool {
        self.flags & 1 == 1
    }
}

/// The proofs of one answer.
#[derive(Debug, Default)]
pub struct HashedDenials {
    zone: Option<NameKey>,
    /// By the hash in the record's own name. All have the salt and the iterations of the first.
    records: Vec<(Vec<u8>, HashedRecord)>,
}

/// The closest name above a name that exists.
struct Encloser<'a> {
    name: NameKey,
    /// The record that covers the name right below it, on the way to the name that was asked for.
    gap: &'a HashedRecord,
}

/// A name that exists, or what is above a name that does not.
enum Place<'a> {
    There(&'a HashedRecord),
    Missing(Encloser<'a>),
}

impl HashedDenials {
    /// Adds a record. One with an unknown hash, unknown flags or other parameters is left out
    /// (RFC 5155 §8.1, §8.2).
    pub(super) fn add(&mut self, zone: &NameKey, owner: &NameKey, record: HashedRecord) {
        let label = owner.labels().next().unwrap_or(&[]);
        let text = std::str::from_utf8(label).unwrap_or("");
        let Ok(hash) = base32::decode_hex::<Vec<u8>>(text) else { return };
        let is_known = record.algorithm == Nsec3HashAlgorithm::SHA1 && record.flags <= 1;
        let is_same = self
            .records
            .first()
            .is_none_or(|(_, first)| (first.iterations, &first.salt) == (record.iterations, &record.salt));
        if is_known && is_same && owner.parent().as_ref() == Some(zone) {
            self.zone = Some(zone.clone());
            self.records.push((hash, record));
        }
    }

    pub(super) fn no_name(&self, name: &NameKey, work: &mut Work) -> Result<Security, Flaw> {
        if self.is_too_slow() {
            return Ok(Security::Insecure);
        }
        let Place::Missing(above) = self.place(name, work)? else { return Err(Flaw::DenialMissing) };
        let wildcard = above.name.child(b"*").ok_or(Flaw::DenialMissing)?;
        let wildcard = self.hash(&wildcard, work)?;
        self.covering(&wildcard).ok_or(Flaw::DenialMissing)?;
        Ok(above.security())
    }

    pub(super) fn no_data(&self, name: &NameKey, rtype: Rtype, work: &mut Work) -> Result<Security, Flaw> {
        if self.is_too_slow() {
            return Ok(Security::Insecure);
        }
        let above = match self.place(name, work)? {
            Place::There(record) if lacks(&record.types, name, rtype) => return Ok(Security::Secure),
            Place::There(_) => return Err(Flaw::DenialMissing),
            Place::Missing(above) => above,
        };
        if rtype == Rtype::DS && above.gap.is_opt_out() {
            return Ok(Security::Insecure);
        }
        let wildcard = above.name.child(b"*").ok_or(Flaw::DenialMissing)?;
        let hash = self.hash(&wildcard, work)?;
        match self.matching(&hash) {
            Some(record) if lacks(&record.types, &wildcard, rtype) => Ok(above.security()),
            _ => Err(Flaw::DenialMissing),
        }
    }

    /// Proves that `closer` does not exist.
    pub(super) fn no_closer(&self, closer: &NameKey, work: &mut Work) -> Result<Security, Flaw> {
        if self.is_too_slow() {
            return Ok(Security::Insecure);
        }
        let hash = self.hash(closer, work)?;
        let gap = self.covering(&hash).ok_or(Flaw::DenialMissing)?;
        Ok(if gap.is_opt_out() { Security::Insecure } else { Security::Secure })
    }

    pub(super) fn no_cut(&self, name: &NameKey, work: &mut Work) -> Result<NoCut, Flaw> {
        if self.is_too_slow() {
            return Ok(NoCut::InsecureDelegation);
        }
        match self.place(name, work)? {
            Place::There(record) => cut_of(&record.types, name),
            Place::Missing(above) if above.gap.is_opt_out() => Ok(NoCut::InsecureDelegation),
            Place::Missing(_) => Ok(NoCut::NoName),
        }
    }

    /// Whether the zone hashes more often than this resolver does.
    fn is_too_slow(&self) -> bool {
        self.records.first().is_some_and(|(_, first)| first.iterations > ITERATIONS_MAX)
    }

    /// Finds a name, or the closest one above it that exists (RFC 5155 §8.3).
    fn place(&self, name: &NameKey, work: &mut Work) -> Result<Place<'_>, Flaw> {
        let zone = self.zone.as_ref().ok_or(Flaw::DenialMissing)?;
        let depth = zone.labels().count() - 1;
        let mut below: Option<Vec<u8>> = None;
        for labels in (depth..name.labels().count()).rev() {
            let candidate = name.ancestor(labels).ok_or(Flaw::DenialMissing)?;
            let hash = self.hash(&candidate, work)?;
            let Some(record) = self.matching(&hash) else {
                below = Some(hash);
                continue;
            };
            let Some(below) = below else { return Ok(Place::There(record)) };
            if leads_away(&record.types) {
                return Err(Flaw::DenialMissing);
            }
            let gap = self.covering(&below).ok_or(Flaw::DenialMissing)?;
            return Ok(Place::Missing(Encloser { name: candidate, gap }));
        }
        Err(Flaw::DenialMissing)
    }

    fn hash(&self, name: &NameKey, work: &mut Work) -> Result<Vec<u8>, Flaw> {
        let (_, first) = self.records.first().ok_or(Flaw::DenialMissing)?;
        work.hashes(u32::from(first.iterations) + 1)?;
        Ok(algorithm::nsec3_hash(name.as_bytes(), &first.salt, first.iterations))
    }

    /// The record of a hash.
    fn matching(&self, hash: &[u8]) -> Option<&HashedRecord> {
        self.records.iter().find(|(own, _)| own == hash).map(|(_, record)| record)
    }

    /// The record that has a hash between its own hash and the next one.
    fn covering(&self, hash: &[u8]) -> Option<&HashedRecord> {
        let covers = |(own, record): &&(Vec<u8>, HashedRecord)| {
            let (own, next) = (&own[..], &record.next[..]);
            // The record of the last hash leads back to the first one.
            if own < next { own < hash && hash < next } else { own < hash || hash < next }
        };
        self.records.iter().find(covers).map(|(_, record)| record)
    }
}

impl Encloser<'_> {
    /// What is proved, in view of the zones that the gap may leave out (RFC 5155 §9.2).
    fn security(&self) -> Security {
        if self.gap.is_opt_out() { Security::Insecure } else { Security::Secure }
    }
}
