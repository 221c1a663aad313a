//! The records of this program: [`DomainName`], [`Data`], [`ZoneRecord`]; and [`NameKey`], a name
//! as the key of a map.
//!
//! The encoding on the wire is the crate `domain`'s. A name keeps the case of its letters here, and
//! a key has small letters only. So an answer shows a name as its zone or its client spells it.

use domain::base::{Name, Record, ToName};
use domain::rdata::ZoneRecordData;
use std::borrow::Borrow;
use std::fmt;

/// An absolute domain name.
pub type DomainName = Name<Vec<u8>>;
/// The data of a record, by its type. A type that the library does not know is kept as bytes.
pub type Data = ZoneRecordData<Vec<u8>, DomainName>;
/// A record of a zone, of an answer, or of the cache.
pub type ZoneRecord = Record<DomainName, Data>;

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

    fn key(name: &str) -> NameKey {
        NameKey::new(&DomainName::vec_from_str(name).unwrap())
    }

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
}
