//! [`Denials`]: the proofs of a zone that a name or a type does not exist, by NSEC records (RFC
//! 4035 §5.4, RFC 6840 §4) or by NSEC3 records (`hashed.rs`).
//!
//! An NSEC record names a name of the zone with its types, and the next name of the zone in the
//! canonical order. So no name is between the two.

use super::Flaw;
use super::Security;
use super::hashed::{HashedDenials, HashedRecord};
use super::work::Work;
use crate::record::{Data, NameKey};
use domain::base::Rtype;
use domain::rdata::dnssec::RtypeBitmap;

/// What a zone says of a name at which another zone may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoCut {
    /// Another zone begins there, or may begin there, and it is not signed.
    InsecureDelegation,
    /// The name is one of this zone.
    Inside,
    /// There is no such name, and none below it.
    NoName,
}

/// The proofs of one answer, of which the signatures were checked.
#[derive(Debug, Default)]
pub struct Denials {
    plain: Vec<PlainDenial>,
    hashed: HashedDenials,
}

/// An NSEC record.
#[derive(Debug)]
struct PlainDenial {
    owner: NameKey,
    next: NameKey,
    types: RtypeBitmap<Vec<u8>>,
}

impl Denials {
    /// Adds a record of the zone. One of another type is left out.
    pub fn add(&mut self, zone: &NameKey, owner: &NameKey, data: &Data) {
        match data {
            Data::Nsec(nsec) => self.plain.push(PlainDenial {
                owner: owner.clone(),
                next: NameKey::new(nsec.next_name()),
                types: nsec.types().clone(),
            }),
            Data::Nsec3(nsec) => self.hashed.add(zone, owner, HashedRecord::new(nsec)),
            _ => {}
        }
    }

    /// Proves that a name does not exist, and that no wildcard stands for it.
    ///
    /// # Errors
    /// `DenialMissing` if the records do not prove it; `TooMuchWork`.
    pub fn no_name(&self, name: &NameKey, work: &mut Work) -> Result<Security, Flaw> {
        if self.plain.is_empty() {
            return self.hashed.no_name(name, work);
        }
        let gap = self.gap(name).ok_or(Flaw::DenialMissing)?;
        let wildcard = gap.encloser(name).child(b"*").ok_or(Flaw::DenialMissing)?;
        self.gap(&wildcard).map(|_| Security::Secure).ok_or(Flaw::DenialMissing)
    }

    /// Proves that a name has no records of a type, or that a wildcard that stands for it has none.
    ///
    /// # Errors
    /// As for [`no_name`](Self::no_name).
    pub fn no_data(&self, name: &NameKey, rtype: Rtype, work: &mut Work) -> Result<Security, Flaw> {
        if self.plain.is_empty() {
            return self.hashed.no_data(name, rtype, work);
        }
        if let Some(denial) = self.at(name) {
            return if lacks(&denial.types, name, rtype) {
                Ok(Security::Secure)
            } else {
                Err(Flaw::DenialMissing)
            };
        }
        if self.plain.iter().any(|denial| denial.is_above_next(name)) {
            return Ok(Security::Secure);
        }
        let gap = self.gap(name).ok_or(Flaw::DenialMissing)?;
        let wildcard = gap.encloser(name).child(b"*");
        let denial = wildcard.as_ref().and_then(|wildcard| self.at(wildcard));
        match denial.filter(|denial| lacks(&denial.types, &denial.owner, rtype)) {
            Some(_) => Ok(Security::Secure),
            None => Err(Flaw::DenialMissing),
        }
    }

    /// Proves that a name does not exist, so that the wildcard below `encloser` may stand for it.
    ///
    /// # Errors
    /// As for [`no_name`](Self::no_name).
    pub fn no_closer(&self, name: &NameKey, encloser: &NameKey, work: &mut Work) -> Result<Security, Flaw> {
        let labels = encloser.labels().count();
        let closer = name.ancestor(labels).ok_or(Flaw::DenialMissing)?;
        if self.plain.is_empty() {
            return self.hashed.no_closer(&closer, work);
        }
        self.gap(&closer).map(|_| Security::Secure).ok_or(Flaw::DenialMissing)
    }

    /// What the zone says of a name that has no DS record.
    ///
    /// # Errors
    /// As for [`no_name`](Self::no_name).
    pub fn no_cut(&self, name: &NameKey, work: &mut Work) -> Result<NoCut, Flaw> {
        if self.plain.is_empty() {
            return self.hashed.no_cut(name, work);
        }
        if let Some(denial) = self.at(name) {
            return cut_of(&denial.types, name);
        }
        if self.plain.iter().any(|denial| denial.is_above_next(name)) {
            return Ok(NoCut::Inside);
        }
        self.gap(name).map(|_| NoCut::NoName).ok_or(Flaw::DenialMissing)
    }

    /// The record of a name that exists.
    fn at(&self, name: &NameKey) -> Option<&PlainDenial> {
        self.plain.iter().find(|denial| denial.owner == *name)
    }

    /// The record that has a name between its two names.
    fn gap(&self, name: &NameKey) -> Option<&PlainDenial> {
        self.plain.iter().find(|denial| denial.covers(name) && !denial.is_above_next(name))
    }
}

impl PlainDenial {
    /// Whether a name would stand between the two names. What lies below a delegation or below a
    /// redirection, this zone does not know (RFC 6840 §4.1).
    fn covers(&self, name: &NameKey) -> bool {
        let is_behind = self.owner.canonical_cmp(name).is_lt();
        let is_in_front = name.canonical_cmp(&self.next).is_lt();
        // The record of the last name leads back to the first one.
        let is_last = self.next.canonical_cmp(&self.owner).is_le();
        let is_below = name.is_within(self.owner.as_bytes());
        is_behind && (is_in_front || is_last) && !(is_below && leads_away(&self.types))
    }

    /// Whether a name lies above the next name, so that it exists without records, and this record
    /// shows it.
    fn is_above_next(&self, name: &NameKey) -> bool {
        self.next != *name && self.next.is_within(name.as_bytes()) && self.covers(name)
    }

    /// The closest name above a name in the gap that exists.
    fn encloser(&self, name: &NameKey) -> NameKey {
        let (before, behind) = (name.common(&self.owner), name.common(&self.next));
        if before.as_bytes().len() > behind.as_bytes().len() { before } else { behind }
    }
}

/// Whether names below one with these types are not the zone's.
pub(super) fn leads_away(types: &RtypeBitmap<Vec<u8>>) -> bool {
    types.contains(Rtype::DNAME) || (types.contains(Rtype::NS) && !types.contains(Rtype::SOA))
}

/// Whether the types of a name say that it has none of a type, and no alias. At a zone's begin two
/// zones have a record of the name: the parent's speaks of the DS record alone, and the zone's of
/// all others.
pub(super) fn lacks(types: &RtypeBitmap<Vec<u8>>, name: &NameKey, rtype: Rtype) -> bool {
    let is_zones = types.contains(Rtype::SOA);
    let speaks = match rtype {
        Rtype::DS => !is_zones || *name == NameKey::root(),
        _ => is_zones || !types.contains(Rtype::NS),
    };
    speaks && !types.contains(rtype) && !types.contains(Rtype::CNAME)
}

/// What the types of a name without a DS record say of it.
pub(super) fn cut_of(types: &RtypeBitmap<Vec<u8>>, name: &NameKey) -> Result<NoCut, Flaw> {
    let is_zones = types.contains(Rtype::SOA) && *name != NameKey::root();
    match (types.contains(Rtype::DS) || is_zones, types.contains(Rtype::NS)) {
        (true, _) => Err(Flaw::DenialMissing),
        (false, true) => Ok(NoCut::InsecureDelegation),
        (false, false) => Ok(NoCut::Inside),
    }
}

#[cfg(test)]
mod tests;
