//! The records of this program: [`DomainName`], [`Data`], [`ZoneRecord`]; and [`NameKey`], a name
//! as the key of a map.
//!
//! The encoding on the wire is the crate `domain`'s. A name keeps the case of its letters here, and
//! a key has small letters only. So an answer shows a name as its zone or its client spells it.

use domain::base::{Name, ParsedRecord, Record, ToName};
use domain::dep::octseq::Parser;
use domain::rdata::{AllRecordData, ZoneRecordData};
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;

/// The longest name in its form on the wire, in bytes (RFC 1035 §2.3.4).
const NAME_MAX: usize = 255;

/// An absolute domain name.
pub type DomainName = Name<Vec<u8>>;
/// The data of a record, by its type. A type that the library does not know is kept as bytes.
pub type Data = ZoneRecordData<Vec<u8>, DomainName>;
/// A record of a zone, of an answer, or of the cache.
pub type ZoneRecord = Record<DomainName, Data>;

/// Whether a record is the same when it was sent and received. The library's scanner makes a name
/// with an empty label of `a..b`, and such a name ends in its middle on the wire.
pub fn is_sound(record: &ZoneRecord) -> bool {
    let mut bytes = Vec::new();
    if record.compose(&mut bytes).is_err() {
        return false;
    }
    let mut parser = Parser::from_ref(bytes.as_slice());
    let Ok(parsed) = ParsedRecord::parse(&mut parser) else { return false };
    let read = parsed.to_any_record::<AllRecordData<_, _>>();
    parser.remaining() == 0 && read.is_ok_and(|read| read.owner() == record.owner())
}

/// The name that a DNAME record of `from` to `to` makes of a name below `from` (RFC 6672 §2.2).
///
/// # Errors
/// [`RedirectError::NotBelow`] if the name is not below `from`, and [`RedirectError::TooLong`] if
/// there is no such name.
pub fn redirected(
    name: &DomainName,
    from: &DomainName,
    to: &DomainName,
) -> Result<DomainName, RedirectError> {
    if name == from || !name.ends_with(from) {
        return Err(RedirectError::NotBelow);
    }
    let kept = &name.as_slice()[..name.len() - from.len()];
    Name::from_octets([kept, to.as_slice()].concat()).map_err(|_| RedirectError::TooLong)
}

/// Why a DNAME record makes no other name of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedirectError {
    /// The name is not below the record's.
    NotBelow,
    /// The other name has more than 255 bytes.
    TooLong,
}

/// A domain name in its form on the wire, with small letters. Two names are equal exactly if their
/// keys are.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameKey(Box<[u8]>);

impl NameKey {
    /// The key of a name.
    pub fn new(name: &(impl ToName + ?Sized)) -> NameKey {
        let mut bytes = Vec::with_capacity(name.compose_len().into());
        for label in name.iter_labels() {
            let label: &[u8] = label.as_ref();
            // A label has at most 63 bytes.
            bytes.push(label.len() as u8);
            bytes.extend(label.iter().map(u8::to_ascii_lowercase));
        }
        NameKey(bytes.into())
    }

    /// The key of the root.
    pub fn root() -> NameKey {
        NameKey(Box::new([0]))
    }

    /// The bytes of the key.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The name that the key stands for, with small letters.
    pub fn to_name(&self) -> DomainName {
        Name::from_octets(self.0.to_vec()).expect("a key is made of a name")
    }

    /// The keys of this name and of all names above it, down to the root's. Each of them is an end
    /// of this key's bytes.
    pub fn suffixes(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = Some(&*self.0);
        std::iter::from_fn(move || {
            let suffix = rest?;
            let label = usize::from(suffix[0]);
            rest = (label > 0).then(|| &suffix[1 + label..]);
            Some(suffix)
        })
    }

    /// The labels from the left on, with the root's empty one at the end.
    pub fn labels(&self) -> impl Iterator<Item = &[u8]> {
        self.suffixes().map(|suffix| &suffix[1..1 + usize::from(suffix[0])])
    }

    /// The number of labels as signatures count them: without the root's, and without a `*` at the
    /// left (RFC 4034 §3.1.3).
    pub fn signed_labels(&self) -> usize {
        self.labels().filter(|label| !label.is_empty()).count() - usize::from(self.is_wildcard())
    }

    /// Whether the leftmost label is `*`.
    pub fn is_wildcard(&self) -> bool {
        self.0.starts_with(b"\x01*")
    }

    /// The name at or above this one that has this number of labels besides the root's. `None` if
    /// this one has fewer.
    pub fn ancestor(&self, labels: usize) -> Option<NameKey> {
        let count = self.labels().count() - 1;
        self.suffixes().nth(count.checked_sub(labels)?).map(|suffix| NameKey(suffix.into()))
    }

    /// The name above. `None` for the root.
    pub fn parent(&self) -> Option<NameKey> {
        self.suffixes().nth(1).map(|suffix| NameKey(suffix.into()))
    }

    /// The name with one more label. `None` if that is no name, because it is too long.
    pub fn child(&self, label: &[u8]) -> Option<NameKey> {
        let length = u8::try_from(label.len()).ok().filter(|length| (1..64).contains(length))?;
        let mut bytes = vec![length];
        bytes.extend(label.iter().map(u8::to_ascii_lowercase));
        bytes.extend_from_slice(&self.0);
        (bytes.len() <= NAME_MAX).then(|| NameKey(bytes.into()))
    }

    /// The longest name that both names are or lie below.
    pub fn common(&self, other: &NameKey) -> NameKey {
        let mut suffixes = self.suffixes();
        let common = suffixes.find(|suffix| other.is_within(suffix));
        NameKey(common.expect("all names lie below the root").into())
    }

    /// Compares in the order of a signed zone: label by label from the right (RFC 4034 §6.1).
    pub fn canonical_cmp(&self, other: &NameKey) -> Ordering {
        let labels = |name: &NameKey| {
            let mut starts: Vec<usize> = Vec::with_capacity(8);
            starts.extend(name.suffixes().map(|suffix| name.0.len() - suffix.len()));
            starts.pop();
            starts
        };
        let label = |name: &'_ NameKey, start: usize| start + 1..start + 1 + usize::from(name.0[start]);
        let (ours, theirs) = (labels(self), labels(other));
        let pairs = ours.iter().rev().zip(theirs.iter().rev());
        let mut orders =
            pairs.map(|(&at, &there)| self.0[label(self, at)].cmp(&other.0[label(other, there)]));
        orders.find(|order| order.is_ne()).unwrap_or_else(|| ours.len().cmp(&theirs.len()))
    }

    /// Whether the name is `above`, or lies below it.
    pub fn is_within(&self, above: &[u8]) -> bool {
        self.suffixes().any(|suffix| suffix == above)
    }
}

impl Borrow<[u8]> for NameKey {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for NameKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.to_name().fmt_with_dot())
    }
}

/// A record with another time to live.
pub fn with_ttl(record: &ZoneRecord, seconds: u32) -> ZoneRecord {
    let mut record = record.clone();
    record.set_ttl(domain::base::Ttl::from_secs(seconds));
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::key;

    #[test]
    fn keys_are_equal_whatever_the_case() {
        assert_eq!(key("WWW.Example.Org"), key("www.example.ORG."));
        assert_ne!(key("www.example.org"), key("ww.wexample.org"));
        assert_eq!(key("."), NameKey::root());
        assert_eq!(key("A.b").to_name().to_string(), "a.b");
    }

    #[test]
    fn suffixes_go_down_to_the_root() {
        let name = key("a.b.org");
        let suffixes: Vec<&[u8]> = name.suffixes().collect();
        assert_eq!(suffixes, [&b"\x01a\x01b\x03org\0"[..], b"\x01b\x03org\0", b"\x03org\0", b"\0"]);
        assert!(name.is_within(key("B.org").as_bytes()));
        assert!(name.is_within(name.as_bytes()));
        assert!(!key("ab.org").is_within(key("b.org").as_bytes()));
        // The bytes end as a name does, but no label begins there.
        assert!(!key("a\\001b.org").is_within(key("b.org").as_bytes()));
    }

    #[test]
    fn names_above_and_below() {
        let name = key("*.b.org");
        assert_eq!(
            (name.signed_labels(), key("a.b.org").signed_labels(), key(".").signed_labels()),
            (2, 3, 0)
        );
        assert_eq!((name.ancestor(2), name.ancestor(0)), (Some(key("b.org")), Some(key("."))));
        assert_eq!((name.ancestor(3), name.ancestor(4)), (Some(name.clone()), None));
        assert_eq!((key("org").parent(), key(".").parent()), (Some(key(".")), None));
        assert_eq!((key("org").child(b"B"), key("org").child(b"")), (Some(key("b.org")), None));
        assert_eq!(name.common(&key("x.a.b.org")), key("b.org"));
        assert_eq!(name.common(&key("com")), key("."));
        let long = key(&["a"; 126].join("."));
        assert_eq!(long.child(b"b").map(|name| name.as_bytes().len()), Some(255));
        assert_eq!(long.child(b"bb"), None);
    }

    /// The example of RFC 4034 §6.1.
    #[test]
    fn the_canonical_order_is_that_of_the_rfc() {
        let sorted = [
            "example",
            "a.example",
            "yljkjljk.a.example",
            "Z.a.example",
            "zABC.a.EXAMPLE",
            "z.example",
            "\\001.z.example",
            "*.z.example",
            "\\200.z.example",
        ];
        for (place, name) in sorted.iter().enumerate() {
            for (other, above) in sorted.iter().enumerate() {
                assert_eq!(key(name).canonical_cmp(&key(above)), place.cmp(&other), "{name} {above}");
            }
        }
    }
}
