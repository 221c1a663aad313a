//! [`Anchors`]: the zones with keys that the operator trusts without a parent, and the zones below
//! which nothing is validated (RFC 7646).

use super::keys::{Delegated, hash_of};
use crate::record::{Data, DomainName, NameKey, ZoneRecord, is_sound};
use domain::base::ToName;
use domain::base::iana::{Class, DigestAlgorithm};
use domain::base::name::FlattenInto;
use domain::zonefile::inplace::{Entry, Zonefile};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The keys of the root, as IANA publishes them (<https://data.iana.org/root-anchors/>): the key of
/// 2017, and the key of 2024, which follows it.
const ROOT: &str = "\
. IN DS 20326 8 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D
. IN DS 38696 8 2 683D2D0ACB8C9B712A1948B27F741219298D0A450D612C483AF444A4C0FB2B16
";

/// Where trust begins, and where it ends.
#[derive(Clone, Debug)]
pub struct Anchors {
    keys: HashMap<NameKey, Vec<Delegated>>,
    exempt: HashSet<NameKey>,
}

/// What is wrong with a file of trust anchors, and which file it is.
#[derive(Debug)]
pub struct AnchorError {
    pub(super) path: PathBuf,
    pub(super) kind: AnchorErrorKind,
}

/// What is wrong with a file of trust anchors.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnchorErrorKind {
    /// The file cannot be read.
    Unreadable(io::Error),
    /// The text is not in the master format, or has an entry that is neither a DS nor a DNSKEY
    /// record. The message has the line.
    Syntax(String),
    /// There is no anchor in it.
    Empty,
    /// The file cannot be written.
    Unwritable(io::Error),
}

impl AnchorError {
    /// What is wrong.
    pub fn kind(&self) -> &AnchorErrorKind {
        &self.kind
    }
}

impl fmt::Display for AnchorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        match &self.kind {
            AnchorErrorKind::Unreadable(error) | AnchorErrorKind::Unwritable(error) => write!(f, "{error}"),
            AnchorErrorKind::Syntax(text) => f.write_str(text),
            AnchorErrorKind::Empty => f.write_str("there is no trust anchor in it"),
        }
    }
}

impl std::error::Error for AnchorError {}

impl Anchors {
    /// The root's keys.
    pub fn root() -> Anchors {
        Anchors::parse(ROOT).expect("the built-in text is right")
    }

    /// Reads DS and DNSKEY records from a file in the master format.
    ///
    /// # Errors
    /// If the file cannot be read, has another entry, or has none.
    pub fn read(path: &Path) -> Result<Anchors, AnchorError> {
        let error = |kind| AnchorError { path: path.into(), kind };
        let text =
            std::fs::read_to_string(path).map_err(|cause| error(AnchorErrorKind::Unreadable(cause)))?;
        let anchors = Anchors::parse(&text).map_err(|text| error(AnchorErrorKind::Syntax(text)))?;
        if anchors.keys.is_empty() { Err(error(AnchorErrorKind::Empty)) } else { Ok(anchors) }
    }

    /// The anchors of a text.
    fn parse(text: &str) -> Result<Anchors, String> {
        let mut anchors = Anchors { keys: HashMap::new(), exempt: HashSet::new() };
        for (zone, key) in keys_of(text)? {
            anchors.keys.entry(zone).or_default().push(key);
        }
        Ok(anchors)
    }

    /// The same with these keys of a zone in place of its others. Without a key, the zone
    /// is no anchor (RFC 5011 §5).
    pub fn with(mut self, zone: &NameKey, keys: Vec<Delegated>) -> Anchors {
        match keys.is_empty() {
            true => self.keys.remove(zone),
            false => self.keys.insert(zone.clone(), keys),
        };
        self
    }

    /// The zones with their keys.
    pub fn zones(&self) -> impl Iterator<Item = (&NameKey, &[Delegated])> {
        self.keys.iter().map(|(zone, keys)| (zone, keys.as_slice()))
    }

    /// The same, but nothing is validated at or below a name.
    pub fn without(mut self, name: &DomainName) -> Anchors {
        self.exempt.insert(NameKey::new(name));
        self
    }

    /// The nearest anchor at or above a name, with the keys. `None` if there is none, or if the
    /// name is exempt.
    pub fn nearest(&self, name: &NameKey) -> Option<(NameKey, &[Delegated])> {
        for labels in (0..name.labels().count()).rev() {
            let at = name.ancestor(labels)?;
            if self.exempt.contains(&at) {
                return None;
            }
            if let Some(keys) = self.keys.get(&at) {
                return Some((at, keys));
            }
        }
        None
    }
}

/// The keys in a text in the master format, each with its zone.
///
/// # Errors
/// If the text has something else. The message has the line.
pub(super) fn keys_of(text: &str) -> Result<Vec<(NameKey, Delegated)>, String> {
    let mut file = Zonefile::from(format!("$TTL 3600\n{text}\n").as_bytes());
    file.set_origin(DomainName::root_vec().to_bytes());
    file.set_default_class(Class::IN);
    let mut keys = Vec::new();
    while let Some(entry) = file.next_entry().map_err(|error| error.to_string())? {
        let Entry::Record(record) = entry else { return Err("$INCLUDE is not followed here".into()) };
        let record: ZoneRecord = record.flatten_into();
        if !is_sound(&record) {
            return Err("a name has an empty label".into());
        }
        let zone = NameKey::new(record.owner());
        let key = anchor(&zone, record.data())
            .ok_or_else(|| format!("{} {}: no DS or DNSKEY record", zone.to_name(), record.rtype()))?;
        keys.push((zone, key));
    }
    Ok(keys)
}

/// A record as an anchor: a key is kept as its hash.
fn anchor(owner: &NameKey, data: &Data) -> Option<Delegated> {
    match data {
        Data::Ds(ds) => Some(ds.clone()),
        Data::Dnskey(key) => hash_of(DigestAlgorithm::SHA256, owner, key),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::key;
    use domain::rdata::Ds;

    #[test]
    fn the_root_is_built_in() {
        let anchors = Anchors::root();
        let (zone, keys) = anchors.nearest(&key("www.example.org")).unwrap();
        assert_eq!(zone, NameKey::root());
        assert_eq!(keys.iter().map(Ds::key_tag).collect::<Vec<u16>>(), [20_326, 38_696]);
    }

    #[test]
    fn the_nearest_anchor_counts_and_exempt_names_have_none() {
        let anchors = Anchors::parse(ROOT).unwrap();
        let key_of_zone = "example.org. DNSKEY 257 3 15 l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4=";
        let own = Anchors::parse(&format!("; comment\n{key_of_zone}\n")).unwrap();
        assert_eq!(own.nearest(&key("a.example.org")).unwrap().0, key("example.org"));
        // RFC 8080 §6.1 has this key, and its tag.
        assert_eq!(own.nearest(&key("example.org")).unwrap().1[0].key_tag(), 3613);
        assert!(own.nearest(&key("org")).is_none());
        let anchors = anchors.without(&DomainName::vec_from_str("Corp.example").unwrap());
        assert!(anchors.nearest(&key("a.corp.example")).is_none());
        assert!(anchors.nearest(&key("example")).is_some());
    }

    #[test]
    fn what_is_wrong_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("anchors");
        let said = |text: &str| {
            std::fs::write(&path, text).unwrap();
            let message = Anchors::read(&path).unwrap_err().to_string();
            message.strip_prefix(&format!("{}: ", path.display())).unwrap().to_string()
        };
        assert_eq!(said("; nothing\n"), "there is no trust anchor in it");
        assert_eq!(said("org. A 192.0.2.1\n"), "org A: no DS or DNSKEY record");
        assert!(said("org. DS nonsense\n").starts_with("2:"), "{}", said("org. DS nonsense\n"));
        assert!(Anchors::read(Path::new("/nowhere")).unwrap_err().to_string().starts_with("/nowhere: "));
    }
}
