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

/// The meaning of an answer.
#[derive(Debug)]
pub enum Verdict {
    /// The records, behind the aliases that lead to them.
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

/// Judges an answer to the question for `rtype` records of `name`, of a server of `zone`. Without a
/// zone the server is a resolver, which has to find the whole answer.
pub fn judge(heard: Heard, name: &NameKey, rtype: Rtype, zone: Option<&NameKey>) -> Verdict {
    let is_final = zone.is_none() || heard.is_authoritative;
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
            heard.answer.iter().filter(here).filter(|record| record.rtype() == rtype).collect();
        if !wanted.is_empty() {
            records.extend(wanted.into_iter().cloned());
            return Verdict::Records(records);
        }
        let alias = heard.answer.iter().filter(here).find_map(|record| match record.data() {
            Data::Cname(alias) => Some((record, alias.cname())),
            _ => None,
        });
        let Some((record, next)) = alias else { break };
        records.push(record.clone());
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
        Some(_) if records.len() >= ALIASES_MAX => Verdict::Useless,
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
