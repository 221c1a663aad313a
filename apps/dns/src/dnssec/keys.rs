//! [`trusted`]: the keys of a zone, if its parent vouches for one that has signed them (RFC 4035
//! §5.2).

use super::signed::{SignedSet, Verified, ZoneKey};
use super::work::Work;
use super::{Flaw, algorithm};
use crate::record::{Data, NameKey};
use domain::base::iana::DigestAlgorithm;
use domain::rdata::Ds;

/// How many DS records of a zone count.
const SIGNERS_MAX: usize = 8;

/// How many keys are compared with one DS record.
const KEYS_MAX: usize = 4;

/// What a parent says of a key of a zone.
pub type Delegated = Ds<Vec<u8>>;

/// What a zone's keys are worth.
#[derive(Debug)]
pub enum KeyTrust {
    /// These keys sign the zone.
    Trusted(Vec<ZoneKey>, Verified),
    /// The parent names only algorithms that this resolver does not have. The zone is as good as
    /// not signed (RFC 4035 §5.2).
    Unsupported,
}

/// The DS records that count: with an algorithm and a hash that are supported, and by SHA-1 only
/// where there is no better one (RFC 4509 §3).
pub fn usable(parents: &[Delegated]) -> Vec<&Delegated> {
    let is_supported = |ds: &&Delegated| {
        let hashes = [DigestAlgorithm::SHA1, DigestAlgorithm::SHA256, DigestAlgorithm::SHA384];
        algorithm::is_supported(ds.algorithm()) && hashes.contains(&ds.digest_type())
    };
    let all: Vec<&Delegated> = parents.iter().filter(is_supported).collect();
    let is_better = |ds: &&&Delegated| ds.digest_type() != DigestAlgorithm::SHA1;
    let better: Vec<&Delegated> = all.iter().filter(is_better).copied().collect();
    if better.is_empty() { all } else { better }
}

/// The keys of a zone, of its DNSKEY records `set`, in view of the DS records of its parent.
///
/// # Errors
/// If the parent vouches for no key that has signed them.
pub fn trusted(
    zone: &NameKey,
    set: &SignedSet<'_>,
    parents: &[Delegated],
    now: u32,
    work: &mut Work,
) -> Result<KeyTrust, Flaw> {
    let parents = usable(parents);
    if parents.is_empty() {
        return Ok(KeyTrust::Unsupported);
    }
    let keys: Vec<ZoneKey> = set.records.iter().filter_map(|record| zone_key(record.data())).collect();
    let mut vouched: Vec<ZoneKey> = Vec::new();
    for ds in parents.into_iter().take(SIGNERS_MAX) {
        let fits = |key: &&ZoneKey| key.key_tag() == ds.key_tag() && key.algorithm() == ds.algorithm();
        for key in keys.iter().filter(fits).take(KEYS_MAX) {
            work.hashes(1)?;
            if is_digest_of(ds, zone, key) && !vouched.contains(key) {
                vouched.push(key.clone());
            }
        }
    }
    if vouched.is_empty() {
        return Err(Flaw::KeyMissing);
    }
    let verified = set.verify(zone, &vouched, now, work)?;
    Ok(KeyTrust::Trusted(keys, verified))
}

/// The key in a record, if it may sign a zone: it is marked so, and was not revoked (RFC 5011).
fn zone_key(data: &Data) -> Option<ZoneKey> {
    match data {
        Data::Dnskey(key) if key.is_zone_key() && !key.is_revoked() && key.protocol() == 3 => {
            Some(key.clone())
        }
        _ => None,
    }
}

/// Whether a DS record has the hash of a key.
pub fn is_digest_of(ds: &Delegated, zone: &NameKey, key: &ZoneKey) -> bool {
    digest(ds.digest_type(), zone, key).is_some_and(|digest| digest == *ds.digest())
}

/// What a parent would say of a key of a zone. `None` if the kind of hash is not supported.
pub fn hash_of(kind: DigestAlgorithm, zone: &NameKey, key: &ZoneKey) -> Option<Delegated> {
    Ds::new(key.key_tag(), key.algorithm(), kind, digest(kind, zone, key)?).ok()
}

/// The hash of a key (RFC 4034 §5.1.4).
fn digest(kind: DigestAlgorithm, zone: &NameKey, key: &ZoneKey) -> Option<Vec<u8>> {
    let [high, low] = key.flags().to_be_bytes();
    let fields = [high, low, key.protocol(), key.algorithm().to_int()];
    algorithm::digest(kind, &[zone.as_bytes(), &fields, key.public_key()])
}
