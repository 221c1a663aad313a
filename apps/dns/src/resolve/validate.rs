//! [`Validator`]: whether an answer is what the zones have signed. `resolve.rs` calls it for
//! each answer before it is kept.
//!
//! Each set of records of the answer needs a signature of its zone, and each answer that something
//! does not exist needs a proof of its zone. An answer without them is right only if a zone above
//! proves that this one is not signed (`trust.rs`). So leaving signatures out does not help a
//! forger.

use super::judge::{Said, Verdict};
use super::source::Lookup;
use super::trust::{SignedZone, Trust, Trusts};
use crate::dnssec::anchor_file::AnchorFile;
use crate::dnssec::anchors::Anchors;
use crate::dnssec::signed::{SignedSet, sets};
use crate::dnssec::{Flaw, Security};
use crate::record::{Data, NameKey, ZoneRecord, redirected};
use domain::base::Rtype;
use std::sync::Arc;
use std::time::SystemTime;

/// Validates answers.
#[derive(Debug)]
pub struct Validator {
    trusts: Trusts,
    /// The anchors of which the keys are followed.
    pub(super) followed: Option<AnchorFile>,
}

/// The result of a validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Validation {
    pub(super) security: Security,
    /// For how many seconds it holds.
    pub(super) seconds: u32,
}

impl Validation {
    fn of(security: Security) -> Validation {
        Validation { security, seconds: u32::MAX }
    }

    fn and(self, other: Validation) -> Validation {
        let security = self.security.and(other.security);
        Validation { security, seconds: self.seconds.min(other.seconds) }
    }
}

impl Validator {
    /// A validator with these anchors, by the system's clock, and with a cache of this number of
    /// bytes for the keys of zones.
    pub fn new(anchors: Anchors, bytes_max: usize) -> Validator {
        Validator::by_clock(anchors, bytes_max, seconds_since_1970)
    }

    /// The same by another clock, which tells the seconds since 1970.
    pub fn by_clock(anchors: Anchors, bytes_max: usize, clock: fn() -> u32) -> Validator {
        Validator { trusts: Trusts::new(anchors, clock, bytes_max), followed: None }
    }

    /// The same, but keys that the zones of the anchors replace are followed
    /// ([`Resolver::follow_anchors`](super::Resolver::follow_anchors)). The keys of the file count.
    pub fn following(mut self, file: AnchorFile) -> Validator {
        self.trust(&file);
        self.followed = Some(file);
        self
    }

    /// The keys of the file count from now on.
    pub(super) fn trust(&self, file: &AnchorFile) {
        self.trusts.replace(|anchors| file.anchors(anchors));
    }

    /// The seconds since 1970.
    pub(super) fn now(&self) -> u32 {
        self.trusts.now()
    }

    /// Validates what a server has said to a question.
    pub(super) async fn validate(
        &self,
        said: &Said,
        name: &NameKey,
        rtype: Rtype,
        lookup: &mut Lookup<'_>,
    ) -> Validation {
        let records = match &said.verdict {
            Verdict::Records(records) | Verdict::Alias(records, _) | Verdict::Negative(_, records, _) => {
                records
            }
            Verdict::Referral(_) | Verdict::Useless => return Validation::of(Security::Insecure),
        };
        let mut found = Validation::of(Security::Secure);
        let sets = sets(records);
        for set in &sets {
            found = found.and(self.positive(set, &sets, said, lookup).await);
            if matches!(found.security, Security::Bogus(_)) {
                return found;
            }
        }
        if let Verdict::Negative(is_missing, records, _) = &said.verdict {
            let end = end_of(name, records);
            found = found.and(self.negative(*is_missing, &end, rtype, &said.proofs, lookup).await);
        }
        found
    }

    /// Records that are there.
    async fn positive(
        &self,
        set: &SignedSet<'_>,
        all: &[SignedSet<'_>],
        said: &Said,
        lookup: &mut Lookup<'_>,
    ) -> Validation {
        let Some(signer) = set.signer() else {
            // A record that follows from a redirection is not signed, and the redirection is.
            if set.rtype == Rtype::CNAME && all.iter().any(|other| follows(set, other)) {
                return Validation::of(Security::Secure);
            }
            return self.unsigned(&set.owner, set.rtype, lookup).await;
        };
        let zone = match self.zone(&signer, lookup).await {
            Ok(zone) => zone,
            Err(security) => return Validation::of(security),
        };
        let (now, work) = (self.trusts.now(), &mut lookup.budget.work);
        let verified = match zone.verify(set, now, work) {
            Ok(verified) => verified,
            Err(flaw) => return Validation::of(Security::Bogus(flaw)),
        };
        let found = Validation { security: Security::Secure, seconds: verified.seconds };
        let Some(encloser) = verified.encloser else { return found };
        let (denials, seconds) = zone.denials(&said.proofs, now, work);
        match denials.no_closer(&set.owner, &encloser, work) {
            Ok(security) => found.and(Validation { security, seconds }),
            Err(flaw) => Validation::of(Security::Bogus(flaw)),
        }
    }

    /// A name or a type that is not there.
    async fn negative(
        &self,
        is_missing: bool,
        name: &NameKey,
        rtype: Rtype,
        proofs: &[ZoneRecord],
        lookup: &mut Lookup<'_>,
    ) -> Validation {
        let of_zone = |signer: &NameKey| {
            name.is_within(signer.as_bytes())
                && !(rtype == Rtype::DS && signer == name && signer.parent().is_some())
        };
        let Some(signer) = sets(proofs).iter().find_map(|set| set.signer().filter(of_zone)) else {
            return self.unsigned(name, rtype, lookup).await;
        };
        let zone = match self.zone(&signer, lookup).await {
            Ok(zone) => zone,
            Err(security) => return Validation::of(security),
        };
        let (now, work) = (self.trusts.now(), &mut lookup.budget.work);
        let (denials, seconds) = zone.denials(proofs, now, work);
        let proved = match is_missing {
            true => denials.no_name(name, work),
            false => denials.no_data(name, rtype, work),
        };
        let security = proved.unwrap_or_else(Security::Bogus);
        Validation { security, seconds }
    }

    /// The signed zone that a signature names.
    ///
    /// # Errors
    /// What the signed records are if there is none.
    async fn zone(&self, signer: &NameKey, lookup: &mut Lookup<'_>) -> Result<Arc<SignedZone>, Security> {
        match self.trusts.of(signer, lookup).await {
            // A signature by a name within a zone is none of the zone.
            Trust::Signed(zone) if zone.name == *signer => Ok(zone),
            Trust::Signed(_) => Err(Security::Bogus(Flaw::KeyMissing)),
            other => Err(other.of_unsigned()),
        }
    }

    /// Records without a signature. What a parent says of a zone is the parent's.
    async fn unsigned(&self, owner: &NameKey, rtype: Rtype, lookup: &mut Lookup<'_>) -> Validation {
        let parent = owner.parent().filter(|_| rtype == Rtype::DS);
        let trust = self.trusts.of(parent.as_ref().unwrap_or(owner), lookup).await;
        Validation::of(trust.of_unsigned())
    }
}

fn seconds_since_1970() -> u32 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // Signatures count modulo 2^32 too.
    since.as_secs() as u32
}

/// The name at the end of the aliases that begin at a name.
fn end_of(name: &NameKey, records: &[ZoneRecord]) -> NameKey {
    let mut at = name.clone();
    for _ in 0..records.len() {
        let next = records.iter().find_map(|record| match record.data() {
            Data::Cname(alias) if NameKey::new(record.owner()) == at => Some(NameKey::new(alias.cname())),
            _ => None,
        });
        let Some(next) = next else { break };
        at = next;
    }
    at
}

/// Whether a redirection (DNAME) makes this alias of its name (RFC 6672 §2.2).
fn follows(alias: &SignedSet<'_>, redirection: &SignedSet<'_>) -> bool {
    let [Data::Cname(alias_data)] = alias.records.iter().map(|record| record.data()).collect::<Vec<_>>()[..]
    else {
        return false;
    };
    let [Data::Dname(redirection_data)] =
        redirection.records.iter().map(|record| record.data()).collect::<Vec<_>>()[..]
    else {
        return false;
    };
    let made = redirected(alias.records[0].owner(), redirection.records[0].owner(), redirection_data.dname());
    made.is_ok_and(|made| made == *alias_data.cname())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::DomainName;
    use domain::base::iana::Class;
    use domain::base::{Record, Ttl};
    use domain::rdata::{Cname, Dname};

    fn name(text: &str) -> DomainName {
        DomainName::vec_from_str(text).unwrap()
    }

    fn record(owner: &str, data: Data) -> ZoneRecord {
        Record::new(name(owner), Class::IN, Ttl::from_secs(300), data)
    }

    #[test]
    fn an_alias_follows_from_a_redirection_of_a_name_above() {
        let follows = |from: &str, to: &str, owner: &str, target: &str| {
            let records = [
                record(owner, Data::Cname(Cname::new(name(target)))),
                record(from, Data::Dname(Dname::new(name(to)))),
            ];
            let sets = sets(&records);
            super::follows(&sets[0], &sets[1])
        };
        assert!(follows("old.org", "new.net", "a.B.old.org", "A.b.new.net"));
        assert!(follows("old.org", ".", "www.old.org", "www"));
        assert!(!follows("old.org", "new.net", "a.old.org", "b.new.net"));
        assert!(!follows("old.org", "new.net", "old.org", "new.net"));
        assert!(!follows("old.org", "new.net", "a.other.org", "a.new.net"));
        assert!(!follows("old.org", "new.net", "a.old.org", "a.b.new.net"));
    }

    #[test]
    fn the_end_of_aliases_in_a_circle_is_one_of_them() {
        let alias = |owner: &str, target: &str| record(owner, Data::Cname(Cname::new(name(target))));
        let key = |text: &str| NameKey::new(&name(text));
        assert_eq!(end_of(&key("a"), &[alias("b", "c"), alias("A", "B")]), key("c"));
        assert_eq!(end_of(&key("x"), &[alias("a", "b")]), key("x"));
        assert_eq!(end_of(&key("a"), &[alias("a", "b"), alias("b", "a")]), key("a"));
    }
}
