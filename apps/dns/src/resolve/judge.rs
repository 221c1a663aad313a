//! [`judge`]: what another server's answer means for a question. `forward.rs` and `iterate.rs` call
//! it for each answer.
//!
//! A server is believed only about names in the zone that it was asked as a server of. Everything
//! else in its answer is left out, so that it cannot put records of other zones into the cache.

use super::delegation::Delegation;
use crate::record::{Data, DomainName, NameKey, ZoneRecord};
use crate::wire::heard::Heard;
use domain::base::Rtype;
use domain::base::iana::Rcode;

/// How many aliases one answer may have.
pub(super) const ALIASES_MAX: usize = 16;

/// What a server has said.
#[derive(Debug)]
pub struct Said {
    /// What it means.
    pub verdict: Verdict,
    /// The records of the authority section that can prove that something does not exist, with
    /// their signatures.
    pub proofs: Vec<ZoneRecord>,
}

/// The meaning of an answer.
#[derive(Debug)]
pub enum Verdict {
    /// The records with their signatures, behind the aliases that lead to them.
    Records(Vec<ZoneRecord>),
    /// Aliases that lead to a name of which the answer says nothing.
    Alias(Vec<ZoneRecord>, DomainName),
    /// The name at the end of the aliases does not exist (`true`), or has no records of the type
    /// (`false`), with the SOA record that says for how long.
    Negative(bool, Vec<ZoneRecord>, Option<ZoneRecord>),
    /// Other servers know more.
    Referral(Delegation),
    /// The answer helps nothing: an error, or a server that knows nothing of the zone.
    Useless,
}

impl Verdict {
    /// The records that were asked for, if they are there.
    pub(super) fn into_records(self) -> Option<Vec<ZoneRecord>> {
        match self {
            Verdict::Records(records) => Some(records),
            _ => None,
        }
    }
}

/// Judges an answer to the question for `rtype` records of `name`, of a server of `zone`. Without a
/// zone the server is a resolver, which has to find the whole answer.
pub fn judge(heard: Heard, name: &NameKey, rtype: Rtype, zone: Option<&NameKey>) -> Verdict {
    let is_final = zone.is_none() || heard.is_authoritative;
    let mut aliases = 0;
    let zone = &zone.cloned().unwrap_or_else(NameKey::root);
    if !matches!(heard.rcode, Rcode::NOERROR | Rcode::NXDOMAIN) {
        return Verdict::Useless;
    }
    let mut records: Vec<ZoneRecord> = Vec::new();
    let mut target: Option<DomainName> = None;
    let mut at = name.clone();
    for _ in 0..ALIASES_MAX {
        if !at.is_within(zone.as_bytes()) {
            break;
        }
        let here = |record: &&ZoneRecord| NameKey::new(record.owner()) == at;
        let wanted: Vec<&ZoneRecord> =
            heard.answer.iter().filter(here).filter(|record| is_of(record, rtype)).collect();
        if wanted.iter().any(|record| record.rtype() == rtype) {
            records.extend(wanted.into_iter().cloned());
            return Verdict::Records(records);
        }
        let above = |record: &&ZoneRecord| {
            let owner = NameKey::new(record.owner());
            owner != at && at.is_within(owner.as_bytes()) && owner.is_within(zone.as_bytes())
        };
        let redirections = heard.answer.iter().filter(above).filter(|record| is_of(record, Rtype::DNAME));
        let alias = heard.answer.iter().filter(here).find_map(|record| match record.data() {
            Data::Cname(alias) => Some((record, alias.cname())),
            _ => None,
        });
        let Some((record, next)) = alias else { break };
        // The record that this alias follows from, if it follows from one (RFC 6672).
        records.extend(redirections.cloned());
        records.push(record.clone());
        let covers = |other: &&ZoneRecord| other.rtype() == Rtype::RRSIG && is_of(other, Rtype::CNAME);
        records.extend(heard.answer.iter().filter(here).filter(covers).cloned());
        aliases += 1;
        at = NameKey::new(next);
        target = Some(next.clone());
    }
    let soa = heard.authority.iter().find(|record| {
        let owner = NameKey::new(record.owner());
        record.rtype() == Rtype::SOA && at.is_within(owner.as_bytes()) && owner.is_within(zone.as_bytes())
    });
    let is_missing = heard.rcode == Rcode::NXDOMAIN;
    // Of a target outside of the zone this server cannot say that it does not exist.
    if let Some(soa) = soa.filter(|_| at.is_within(zone.as_bytes())) {
        return Verdict::Negative(is_missing, records, Some(soa.clone()));
    }
    match target {
        Some(_) if aliases >= ALIASES_MAX => Verdict::Useless,
        Some(target) => Verdict::Alias(records, target),
        None if is_missing && is_final => Verdict::Negative(true, records, None),
        None if is_missing => Verdict::Useless,
        None => match referral(&heard, name, zone) {
            Some(delegation) => Verdict::Referral(delegation),
            None if is_final => Verdict::Negative(false, records, None),
            None => Verdict::Useless,
        },
    }
}

/// Whether a record is of a type, or a signature of records of that type.
pub(super) fn is_of(record: &ZoneRecord, rtype: Rtype) -> bool {
    match record.data() {
        Data::Rrsig(signature) => rtype == Rtype::RRSIG || signature.type_covered() == rtype,
        _ => record.rtype() == rtype,
    }
}

/// The records of an answer of a server of `zone` that can prove that something does not exist. The
/// SOA record tells for how long.
pub fn proofs(heard: &Heard, zone: Option<&NameKey>) -> Vec<ZoneRecord> {
    let counts = |record: &&ZoneRecord| {
        let is_inside = zone.is_none_or(|zone| NameKey::new(record.owner()).is_within(zone.as_bytes()));
        is_inside && [Rtype::SOA, Rtype::NSEC, Rtype::NSEC3].iter().any(|&rtype| is_of(record, rtype))
    };
    heard.authority.iter().filter(counts).cloned().collect()
}

/// The delegation of an answer that has no records, to a zone below the server's own one.
fn referral(heard: &Heard, name: &NameKey, zone: &NameKey) -> Option<Delegation> {
    let servers = heard.authority.iter().filter(|record| record.rtype() == Rtype::NS);
    let mut cuts = servers.map(|record| NameKey::new(record.owner()));
    let cut = cuts.find(|owner| {
        let is_below = owner.is_within(zone.as_bytes()) && owner != zone;
        is_below && name.is_within(owner.as_bytes())
    })?;
    Some(Delegation::heard(heard, cut, zone))
}

#[cfg(test)]
mod tests;
