//! [`Trusts`]: whether the zone of a name is signed, and with which keys. `validate.rs` asks for
//! each name and zone that an answer is about.
//!
//! [`Trusts::of`] goes from the trust anchor down to the name, label by label. At each name it asks
//! for the DS records. If there are some, signed by the zone above, another signed zone begins, and
//! the DS records vouch for its keys. If the zone above proves that there are none,
//! either an unsigned zone begins there, or no zone. Anything else is a fault or a forgery. Each
//! step is kept in a cache, so a name in a known zone costs few questions.
//!
//! The questions of a step go to the servers at once. They wait for no question in flight, because
//! two of them could wait for each other.

use super::cache::{Cache, CacheKey};
use super::judge::{Said, Verdict};
use super::source::Lookup;
use crate::dnssec::anchors::Anchors;
use crate::dnssec::denial::{Denials, NoCut};
use crate::dnssec::keys::{Delegated, KeyTrust, trusted};
use crate::dnssec::signed::{SignedSet, Verified, ZoneKey, sets};
use crate::dnssec::work::Work;
use crate::dnssec::{Flaw, Security};
use crate::record::{Data, NameKey, ZoneRecord};
use domain::base::Rtype;
use selvedge::Time;
use std::sync::{Arc, Mutex};

/// How long what is proved is kept at most, in seconds. The records' own times may be shorter.
const TTL_MAX: u32 = 3600;

/// How long a broken chain is kept, in seconds.
const FLAW_TTL: u32 = 5;

/// About how many bytes a key takes, with what the cache adds.
const KEY_BYTES: usize = 600;

/// What is known of the zone of a name.
#[derive(Clone, Debug)]
pub(super) enum Trust {
    /// The zone is signed with these keys.
    Signed(Arc<SignedZone>),
    /// The zone is not signed, and one above proves it.
    Unsigned,
    /// The chain to the zone is broken.
    Broken(Flaw),
}

/// A signed zone.
#[derive(Debug)]
pub(super) struct SignedZone {
    pub(super) name: NameKey,
    keys: Vec<ZoneKey>,
}

/// What is at a name below a signed zone.
#[derive(Clone, Debug)]
enum Step {
    /// Another zone begins.
    Zone(Trust),
    /// The name is one of the same zone.
    Inside,
    /// No name at or below it is known to begin a zone.
    End,
}

/// What is known of zones.
#[derive(Debug)]
pub(super) struct Trusts {
    anchors: Mutex<Arc<Anchors>>,
    steps: Mutex<Cache<Step>>,
    steps_bytes_max: usize,
    /// The seconds since 1970.
    clock: fn() -> u32,
}

impl SignedZone {
    /// Checks a set of records of this zone.
    pub(super) fn verify(&self, set: &SignedSet<'_>, now: u32, work: &mut Work) -> Result<Verified, Flaw> {
        set.verify(&self.name, &self.keys, now, work)
    }

    /// The proofs among records, of which this zone has signed each.
    pub(super) fn denials(&self, records: &[ZoneRecord], now: u32, work: &mut Work) -> (Denials, u32) {
        let (mut denials, mut seconds) = (Denials::default(), u32::MAX);
        for set in sets(records).iter().filter(|set| [Rtype::NSEC, Rtype::NSEC3].contains(&set.rtype)) {
            match self.verify(set, now, work) {
                // A wildcard makes no such record (RFC 4592 §4.7).
                Ok(verified) if verified.encloser.is_none() => {
                    seconds = seconds.min(verified.seconds);
                    set.records.iter().for_each(|record| denials.add(&self.name, &set.owner, record.data()));
                }
                // What is not signed proves nothing.
                _ => {}
            }
        }
        (denials, seconds)
    }
}

impl Trusts {
    pub(super) fn new(anchors: Anchors, clock: fn() -> u32, bytes_max: usize) -> Trusts {
        let steps = Mutex::new(Cache::new(bytes_max));
        Trusts { anchors: Mutex::new(Arc::new(anchors)), steps, steps_bytes_max: bytes_max, clock }
    }

    /// Replaces the anchors. What was found from the old ones on is forgotten, but for what a
    /// question in flight has found: that may be kept once more, for [`TTL_MAX`].
    pub(super) fn replace(&self, change: impl FnOnce(Anchors) -> Anchors) {
        let mut anchors = self.anchors.lock().expect("no code panics under this lock");
        *anchors = Arc::new(change(Anchors::clone(&anchors)));
        *self.steps.lock().expect("no code panics under this lock") = Cache::new(self.steps_bytes_max);
    }

    /// The time for signatures.
    pub(super) fn now(&self) -> u32 {
        (self.clock)()
    }

    /// What is known of the zone that a name lies in.
    pub(super) async fn of(&self, name: &NameKey, lookup: &mut Lookup<'_>) -> Trust {
        let anchors = self.anchors.lock().expect("no code panics under this lock").clone();
        let Some((anchor, parents)) = anchors.nearest(name) else { return Trust::Unsigned };
        let mut trust = self.anchored(&anchor, parents, lookup).await;
        let depth = anchor.labels().count();
        for labels in depth..name.labels().count() {
            let Trust::Signed(zone) = &trust else { break };
            let Some(at) = name.ancestor(labels) else { break };
            match self.step(zone, &at, lookup).await {
                Step::Zone(next) => trust = next,
                Step::Inside => {}
                Step::End => break,
            }
        }
        trust
    }

    /// The keys of a zone with a trust anchor.
    async fn anchored(&self, zone: &NameKey, parents: &[Delegated], lookup: &mut Lookup<'_>) -> Trust {
        let key = CacheKey { name: zone.clone(), rtype: Rtype::DNSKEY };
        if let Some(Step::Zone(trust)) = self.known(&key) {
            return trust;
        }
        let (trust, seconds) = self.keys(zone, parents, lookup).await;
        self.keep(key, Step::Zone(trust.clone()), seconds);
        trust
    }

    fn known(&self, key: &CacheKey) -> Option<Step> {
        let mut steps = self.steps.lock().expect("no code panics under this lock");
        steps.get(key, Time::now()).map(|(step, _)| step)
    }

    fn keep(&self, key: CacheKey, step: Step, seconds: u32) {
        let bytes = match &step {
            Step::Zone(Trust::Signed(zone)) => zone.keys.len() * KEY_BYTES,
            _ => size_of::<Step>(),
        };
        let seconds = match &step {
            // A server that was silent for once may answer the next time.
            Step::Zone(Trust::Broken(Flaw::Unreachable)) => 0,
            Step::Zone(Trust::Broken(_)) => FLAW_TTL,
            _ => seconds.min(TTL_MAX),
        };
        let mut steps = self.steps.lock().expect("no code panics under this lock");
        steps.insert(key, step, seconds, bytes, Time::now());
    }

    async fn step(&self, zone: &SignedZone, at: &NameKey, lookup: &mut Lookup<'_>) -> Step {
        let key = CacheKey { name: at.clone(), rtype: Rtype::DS };
        if let Some(step) = self.known(&key) {
            return step;
        }
        let (step, seconds) = self.look(zone, at, lookup).await;
        self.keep(key, step.clone(), seconds);
        step
    }

    /// Asks what is at a name, and for how many seconds that holds.
    async fn look(&self, zone: &SignedZone, at: &NameKey, lookup: &mut Lookup<'_>) -> (Step, u32) {
        let broken = |flaw| (Step::Zone(Trust::Broken(flaw)), FLAW_TTL);
        let Some(said) = lookup.find(at, Rtype::DS).await else { return broken(Flaw::Unreachable) };
        match &said.verdict {
            Verdict::Records(records) => match self.delegated(zone, at, records, lookup) {
                Ok((parents, seconds)) => {
                    let (trust, of_keys) = self.keys(at, &parents, lookup).await;
                    (Step::Zone(trust), seconds.min(of_keys))
                }
                Err(flaw) => broken(flaw),
            },
            Verdict::Alias(records, _) => self.alias(zone, at, records, lookup),
            Verdict::Negative(_, records, _) if !records.is_empty() => self.alias(zone, at, records, lookup),
            _ => match self.not_delegated(zone, at, &said, lookup) {
                Ok(step) => step,
                Err(flaw) => broken(flaw),
            },
        }
    }

    /// The DS records of a name, if the zone above has signed them.
    fn delegated(
        &self,
        zone: &SignedZone,
        at: &NameKey,
        records: &[ZoneRecord],
        lookup: &mut Lookup<'_>,
    ) -> Result<(Vec<Delegated>, u32), Flaw> {
        let sets = sets(records);
        let set = sets.iter().find(|set| set.rtype == Rtype::DS && set.owner == *at);
        let set = set.ok_or(Flaw::SignatureMissing)?;
        let verified = zone.verify(set, self.now(), &mut lookup.budget.work)?;
        let parents = set.records.iter().filter_map(|record| match record.data() {
            Data::Ds(ds) => Some(ds.clone()),
            _ => None,
        });
        Ok((parents.collect(), verified.seconds.min(least_ttl(set))))
    }

    /// What the zone says of a name without DS records.
    fn not_delegated(
        &self,
        zone: &SignedZone,
        at: &NameKey,
        said: &Said,
        lookup: &mut Lookup<'_>,
    ) -> Result<(Step, u32), Flaw> {
        let work = &mut lookup.budget.work;
        let (denials, seconds) = zone.denials(&said.proofs, self.now(), work);
        let seconds = said.proofs.iter().map(|record| record.ttl().as_secs()).fold(seconds, u32::min);
        let step = match denials.no_cut(at, work)? {
            NoCut::InsecureDelegation => Step::Zone(Trust::Unsigned),
            NoCut::Inside => Step::Inside,
            NoCut::NoName => Step::End,
        };
        Ok((step, seconds))
    }

    /// A name that is an alias begins no zone, and a name below a redirection neither. The alias
    /// has to be signed.
    fn alias(
        &self,
        zone: &SignedZone,
        at: &NameKey,
        records: &[ZoneRecord],
        lookup: &mut Lookup<'_>,
    ) -> (Step, u32) {
        let mut flaw = Flaw::SignatureMissing;
        for set in &sets(records) {
            let is_alias = set.rtype == Rtype::CNAME && set.owner == *at;
            let is_redirection = set.rtype == Rtype::DNAME && at.is_within(set.owner.as_bytes());
            if !is_alias && !is_redirection {
                continue;
            }
            match zone.verify(set, self.now(), &mut lookup.budget.work) {
                Ok(verified) => return (Step::End, verified.seconds.min(least_ttl(set))),
                Err(other) => flaw = other,
            }
        }
        (Step::Zone(Trust::Broken(flaw)), FLAW_TTL)
    }

    /// Asks for the keys of a zone of which the parent says `parents`.
    async fn keys(&self, zone: &NameKey, parents: &[Delegated], lookup: &mut Lookup<'_>) -> (Trust, u32) {
        if crate::dnssec::keys::usable(parents).is_empty() {
            return (Trust::Unsigned, TTL_MAX);
        }
        let Some(said) = lookup.find(zone, Rtype::DNSKEY).await else {
            return (Trust::Broken(Flaw::Unreachable), FLAW_TTL);
        };
        let Verdict::Records(records) = said.verdict else {
            return (Trust::Broken(Flaw::KeyMissing), FLAW_TTL);
        };
        let sets = sets(&records);
        let set = sets.iter().find(|set| set.rtype == Rtype::DNSKEY && set.owner == *zone);
        let Some(set) = set else { return (Trust::Broken(Flaw::KeyMissing), FLAW_TTL) };
        match trusted(zone, set, parents, self.now(), &mut lookup.budget.work) {
            Ok(KeyTrust::Trusted(keys, verified)) => {
                let zone = SignedZone { name: zone.clone(), keys };
                (Trust::Signed(Arc::new(zone)), verified.seconds.min(least_ttl(set)))
            }
            Ok(KeyTrust::Unsupported) => (Trust::Unsigned, TTL_MAX),
            Err(flaw) => (Trust::Broken(flaw), FLAW_TTL),
        }
    }
}

impl Trust {
    /// What is known of unsigned records of a name, by what is known of its zone.
    pub(super) fn of_unsigned(&self) -> Security {
        match self {
            Trust::Signed(_) => Security::Bogus(Flaw::SignatureMissing),
            Trust::Unsigned => Security::Insecure,
            Trust::Broken(flaw) => Security::Bogus(*flaw),
        }
    }
}

fn least_ttl(set: &SignedSet<'_>) -> u32 {
    set.records.iter().map(|record| record.ttl().as_secs()).min().unwrap_or(0)
}
