//! [`Rollover`]: the trust anchors of one zone, as the zone replaces its keys (RFC 5011).
//!
//! A zone announces a new key by its DNSKEY records, which a trusted key has signed. The new key is
//! trusted after 30 days in which no record without it was seen: a thief of the old key would have
//! to keep the zone's owner from noticing for as long. The zone gives a key up by the bit
//! "revoked", in a set that this key itself has signed.
//!
//! `anchor_file.rs` keeps this in a file, and `resolve/follow.rs` asks the zones.

use super::keys::{Delegated, KeyTrust, hash_of, is_digest_of, trusted};
use super::signed::{SignedSet, ZoneKey};
use super::work::Work;
use super::{Flaw, algorithm};
use crate::record::{Data, NameKey};
use domain::base::iana::DigestAlgorithm;

/// How long a key is announced before it is trusted: 30 days, in seconds (RFC 5011 §2.4.1). A zone
/// with a longer time to live takes as long.
pub const HOLD_DOWN: u32 = 30 * 24 * 3600;

/// How many keys a zone may announce at once, and give up at once. A zone does one of both at a
/// time.
const KEYS_MAX: usize = 8;

/// The bit of a key that signs keys (RFC 4034 §2.1.1), and the bit of one that was revoked.
const SIGNS_KEYS: u16 = 0x0001;
const REVOKED: u16 = 0x0080;

/// A key of a zone, and whether it is trusted. The states are those of RFC 5011 §4.2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowedKey {
    /// The key's hash.
    pub key: Delegated,
    /// Its state.
    pub state: KeyState,
}

/// The state of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// The zone has announced the key, which is trusted from this second since 1970 on.
    Pending(u32),
    /// The key is trusted.
    Valid,
    /// The key is trusted, and the zone does not show it now.
    Missing,
    /// The zone has given the key up. It is never trusted again.
    Revoked,
}

/// The trust anchors of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rollover {
    zone: NameKey,
    keys: Vec<FollowedKey>,
}

impl Rollover {
    /// The keys of a zone with their states.
    pub fn new(zone: NameKey, keys: Vec<FollowedKey>) -> Rollover {
        Rollover { zone, keys }
    }

    /// A zone with keys that are trusted.
    pub fn of_anchors(zone: NameKey, anchors: &[Delegated]) -> Rollover {
        let valid = |key: &Delegated| FollowedKey { key: key.clone(), state: KeyState::Valid };
        Rollover::new(zone, anchors.iter().map(valid).collect())
    }

    /// The zone.
    pub fn zone(&self) -> &NameKey {
        &self.zone
    }

    /// All keys.
    pub fn keys(&self) -> &[FollowedKey] {
        &self.keys
    }

    /// Adds a key that a file names.
    pub(super) fn add(&mut self, key: FollowedKey) {
        self.keys.push(key);
    }

    /// The keys that are trusted. There are none if the zone has given all of them up.
    pub fn trusted(&self) -> Vec<Delegated> {
        let is_trusted = |key: &&FollowedKey| matches!(key.state, KeyState::Valid | KeyState::Missing);
        self.keys.iter().filter(is_trusted).map(|key| key.key.clone()).collect()
    }

    /// Notes the DNSKEY records that the zone shows at `now`, in seconds since 1970. Returns for
    /// how many seconds the signature holds.
    ///
    /// # Errors
    /// If no trusted key has signed the records. Only a revocation counts then.
    pub fn observe(&mut self, set: &SignedSet<'_>, now: u32, work: &mut Work) -> Result<u32, Flaw> {
        let anchors = self.trusted();
        let shown: Vec<&ZoneKey> = set.records.iter().filter_map(|record| key_of(record.data())).collect();
        self.revoke(&shown, set, now, work)?;
        let verified = match trusted(&self.zone, set, &anchors, now, work)? {
            KeyTrust::Trusted(_, verified) => verified,
            KeyTrust::Unsupported => return Err(Flaw::KeyMissing),
        };
        let announced: Vec<&ZoneKey> =
            shown.into_iter().filter(|key| key.flags() & (SIGNS_KEYS | REVOKED) == SIGNS_KEYS).collect();
        work.hashes((announced.len() * (self.keys.len() + 1)) as u32)?;
        self.keys.retain_mut(|key| {
            let is_shown = announced.iter().any(|shown| is_digest_of(&key.key, &self.zone, shown));
            key.state = match (key.state, is_shown) {
                (KeyState::Pending(from), true) if from <= now => KeyState::Valid,
                // The zone has to announce it anew.
                (KeyState::Pending(_), false) => return false,
                (KeyState::Missing, true) => KeyState::Valid,
                (KeyState::Valid, false) => KeyState::Missing,
                (state, _) => state,
            };
            true
        });
        let ttl = set.signatures.iter().map(|signature| signature.original_ttl().as_secs()).max();
        let from = now.saturating_add(HOLD_DOWN.max(ttl.unwrap_or(0)));
        for shown in announced {
            let is_known = self.keys.iter().any(|key| is_digest_of(&key.key, &self.zone, shown));
            let is_pending = |key: &&FollowedKey| matches!(key.state, KeyState::Pending(_));
            if !is_known && self.keys.iter().filter(is_pending).count() < KEYS_MAX {
                // A key of an algorithm that is none of ours will sign nothing that counts.
                let is_supported = algorithm::is_supported(shown.algorithm());
                let key = is_supported.then(|| hash_of(DigestAlgorithm::SHA256, &self.zone, shown)).flatten();
                self.keys.extend(key.map(|key| FollowedKey { key, state: KeyState::Pending(from) }));
            }
        }
        Ok(verified.seconds)
    }

    /// Notes which keys the zone gives up. Each such key has to have signed the records itself.
    fn revoke(
        &mut self,
        shown: &[&ZoneKey],
        set: &SignedSet<'_>,
        now: u32,
        work: &mut Work,
    ) -> Result<(), Flaw> {
        for revoked in shown.iter().filter(|key| key.is_revoked()).take(KEYS_MAX) {
            work.hashes(self.keys.len() as u32)?;
            let before = unrevoked(revoked);
            let mut same: Vec<&mut FollowedKey> = self
                .keys
                .iter_mut()
                .filter(|key| is_digest_of(&key.key, &self.zone, &before))
                .filter(|key| key.state != KeyState::Revoked)
                .collect();
            if !same.is_empty() && set.verify(&self.zone, &[ZoneKey::clone(revoked)], now, work).is_ok() {
                same.iter_mut().for_each(|key| key.state = KeyState::Revoked);
            }
        }
        Ok(())
    }
}

/// The key in a record, if it is one of a zone.
fn key_of(data: &Data) -> Option<&ZoneKey> {
    match data {
        Data::Dnskey(key) if key.is_zone_key() && key.protocol() == 3 => Some(key),
        _ => None,
    }
}

/// A key as it was before the zone gave it up.
fn unrevoked(key: &ZoneKey) -> ZoneKey {
    let public = key.public_key().clone();
    ZoneKey::new(key.flags() & !REVOKED, key.protocol(), key.algorithm(), public).expect("as long as before")
}

#[cfg(test)]
mod tests;
