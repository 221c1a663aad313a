//! [`AnchorFile`]: the followed trust anchors ([`Rollover`]) in a file, so that a server that
//! begins again knows what it has learned.
//!
//! A line has a state, the second since 1970 from which on a pending key is trusted, and the key as
//! a DS record:
//!
//! ```text
//! valid . IN DS 20326 8 2 E06D44B8...
//! pending 1803000000 . IN DS 38696 8 2 683D2D0A...
//! ```

use super::anchors::{AnchorError, AnchorErrorKind, Anchors, keys_of};
use super::rollover::{FollowedKey, KeyState, Rollover};
use crate::record::NameKey;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The words of the states.
const PENDING: &str = "pending";
const VALID: &str = "valid";
const MISSING: &str = "missing";
const REVOKED: &str = "revoked";

const HEAD: &str =
    "; The keys that selvedge-dns trusts and follows (RFC 5011). The server writes this file.\n";

/// The keys of zones with a trust anchor, and the file that keeps them.
#[derive(Clone, Debug)]
pub struct AnchorFile {
    path: PathBuf,
    /// One for each zone.
    pub zones: Vec<Rollover>,
}

impl AnchorFile {
    /// Reads the file, if there is one. Zones of `anchors` that it does not have are added, and the
    /// file is written. So what cannot be written is known before the first query.
    ///
    /// # Errors
    /// If the file cannot be read or written, or has something else in it.
    pub fn open(path: &Path, anchors: &Anchors) -> Result<AnchorFile, AnchorError> {
        let error = |kind| AnchorError { path: path.into(), kind };
        let zones = match std::fs::read_to_string(path) {
            Ok(text) => parse(&text).map_err(|text| error(AnchorErrorKind::Syntax(text)))?,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(cause) => return Err(error(AnchorErrorKind::Unreadable(cause))),
        };
        let mut file = AnchorFile { path: path.into(), zones };
        for (zone, keys) in anchors.zones() {
            if file.zones.iter().all(|known| known.zone() != zone) {
                file.zones.push(Rollover::of_anchors(zone.clone(), keys));
            }
        }
        file.write()?;
        Ok(file)
    }

    /// The same anchors with the keys of this file.
    pub fn anchors(&self, anchors: Anchors) -> Anchors {
        self.zones.iter().fold(anchors, |anchors, zone| anchors.with(zone.zone(), zone.trusted()))
    }

    /// Writes the file. It is replaced as a whole, so a power failure leaves the old or the new
    /// one.
    ///
    /// # Errors
    /// If that fails. The old file stays.
    pub fn write(&self) -> Result<(), AnchorError> {
        let mut new = self.path.clone().into_os_string();
        new.push(".new");
        let written = File::create(&new).and_then(|mut file| {
            file.write_all(text(&self.zones).as_bytes())?;
            file.sync_all()
        });
        let renamed = written.and_then(|()| std::fs::rename(&new, &self.path));
        renamed.map_err(|cause| AnchorError {
            path: self.path.clone(),
            kind: AnchorErrorKind::Unwritable(cause),
        })
    }
}

/// The file's text for these zones.
pub(crate) fn text(zones: &[Rollover]) -> String {
    let mut text = HEAD.to_string();
    for zone in zones {
        let name = name_text(zone.zone());
        for FollowedKey { key, state } in zone.keys() {
            let state = match state {
                KeyState::Pending(from) => format!("{PENDING} {from}"),
                KeyState::Valid => VALID.into(),
                KeyState::Missing => MISSING.into(),
                KeyState::Revoked => REVOKED.into(),
            };
            let _ = writeln!(text, "{state} {name} IN DS {key}");
        }
    }
    text
}

/// A name in the master format. The library's `Display` leaves characters as they are that mean
/// something else in such a file, as `;` and `(` do. So each byte is a number here, except for
/// those of host names.
fn name_text(zone: &NameKey) -> String {
    let mut text = String::new();
    for label in zone.labels().filter(|label| !label.is_empty()) {
        for &byte in label {
            let _ = match byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
                true => write!(text, "{}", char::from(byte)),
                false => write!(text, "\\{byte:03}"),
            };
        }
        text.push('.');
    }
    if text.is_empty() { ".".into() } else { text }
}

/// The zones of a text, in the order of their first keys.
///
/// # Errors
/// If a line is none of this file's. The message has the line.
pub(crate) fn parse(text: &str) -> Result<Vec<Rollover>, String> {
    let mut zones: Vec<Rollover> = Vec::new();
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with(';')) {
        let said = |what: &str| format!("{number}: {what}");
        let (word, rest) = line.split_once(' ').ok_or_else(|| said("no key"))?;
        let (state, record) = match word {
            PENDING => {
                let (from, record) = rest.split_once(' ').ok_or_else(|| said("no key"))?;
                let from = from.parse().map_err(|_| said("no number of seconds"))?;
                (KeyState::Pending(from), record)
            }
            VALID => (KeyState::Valid, rest),
            MISSING => (KeyState::Missing, rest),
            REVOKED => (KeyState::Revoked, rest),
            other => return Err(said(&format!("no state of a key: {other}"))),
        };
        let mut keys = keys_of(record).map_err(|error| said(&error))?;
        let (Some((zone, key)), true) = (keys.pop(), keys.is_empty()) else { return Err(said("no key")) };
        let key = FollowedKey { key, state };
        match zones.iter_mut().find(|known| *known.zone() == zone) {
            Some(known) => known.add(key),
            None => zones.push(Rollover::new(zone, vec![key])),
        }
    }
    Ok(zones)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::key;

    const KEY: &str = "example.org. IN DS 3613 15 2 \
                       3AA5AB37EFCE57F737FC1627013FEE07BDF241BD10F3B1964AB55C78E79A304B";

    #[test]
    fn the_file_keeps_what_is_known() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys");
        let mut file = AnchorFile::open(&path, &Anchors::root()).unwrap();
        assert_eq!(file.zones.len(), 1);
        assert_eq!(file.zones[0].trusted().len(), 2);
        let own = parse(&format!("pending 7 {KEY}\nvalid {KEY}\n; a comment\n\nmissing {KEY}\n")).unwrap();
        file.zones.extend(own);
        file.write().unwrap();
        let again = AnchorFile::open(&path, &Anchors::root()).unwrap();
        assert_eq!(again.zones, file.zones);
        assert_eq!(again.zones[1].keys()[0].state, KeyState::Pending(7));
        let anchors = again.anchors(Anchors::root());
        assert_eq!(anchors.nearest(&key("www.example.org")).unwrap().1.len(), 2);
    }

    #[test]
    fn every_byte_of_a_name_is_read_again() {
        let (_, rest) = KEY.split_once(' ').unwrap();
        for byte in 0..=u8::MAX {
            let name = format!("\\{byte:03}a.\\{byte:03}.example.");
            let zones = parse(&format!("valid {name} {rest}")).unwrap();
            let labels: Vec<_> = zones[0].zone().labels().collect();
            let byte = byte.to_ascii_lowercase();
            assert_eq!(labels, [&[byte, b'a'][..], &[byte], b"example", b""]);
            assert_eq!(parse(&text(&zones)).as_ref(), Ok(&zones), "{}", text(&zones));
        }
        let text = text(&parse("valid a\\(b.Example. IN DS 7 8 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D").unwrap());
        assert!(text.contains("\nvalid a\\040b.example. IN DS 7 "), "{text}");
    }

    #[test]
    fn what_the_file_has_counts_and_a_zone_without_keys_is_no_anchor() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys");
        let root = ". IN DS 20326 8 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D";
        std::fs::write(&path, format!("revoked {root}\n")).unwrap();
        let file = AnchorFile::open(&path, &Anchors::root()).unwrap();
        assert_eq!(file.zones.len(), 1);
        assert!(file.anchors(Anchors::root()).nearest(&key("www.example.org")).is_none());
    }

    #[test]
    fn what_is_wrong_is_said() {
        let said = |text: &str| parse(text).unwrap_err();
        assert_eq!(said("; a\nvalid"), "2: no key");
        assert_eq!(said("pending soon . IN DS"), "1: no number of seconds");
        assert_eq!(said(&format!("trusted {KEY}")), "1: no state of a key: trusted");
        assert!(said("valid . IN A 192.0.2.1").contains("no DS or DNSKEY record"));
        assert!(said("valid ; nothing").contains("no key"));
        let directory = tempfile::tempdir().unwrap();
        let nowhere = directory.path().join("nowhere/keys");
        let error = AnchorFile::open(&nowhere, &Anchors::root()).unwrap_err();
        assert!(matches!(error.kind(), AnchorErrorKind::Unwritable(_)), "{error}");
    }
}
