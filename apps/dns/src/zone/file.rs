//! Reading a zone from a file in the master format of RFC 1035 §5: [`read`].
//!
//! `entries.rs` cuts the text into entries, `words.rs` puts what the library does not know in other
//! words, and the library scans each of them. This file keeps what one entry says for the entries
//! behind it (`Reader`), follows `$INCLUDE`, puts the records into a [`Zone`], and says with file
//! and line what is wrong. `main.rs` calls it before the server answers its first query, and again
//! for each reload.

use super::entries::{Entries, ZoneEntry, lines};
use super::words::plain;
use super::{RecordError, Zone};
use crate::record::{DomainName, ZoneRecord, is_sound};
use domain::base::iana::Class;
use domain::base::name::FlattenInto;
use domain::base::{Rtype, ToName};
use domain::zonefile::inplace::{Entry, Zonefile};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// How deeply files may include each other.
const INCLUDES_MAX: usize = 8;

/// Why a zone cannot be served, with the file and the line.
#[derive(Debug)]
pub struct ZoneError {
    path: PathBuf,
    /// `None` for the file as a whole.
    line: Option<usize>,
    kind: ZoneErrorKind,
}

/// What is wrong with a zone's file.
#[derive(Debug)]
#[non_exhaustive]
pub enum ZoneErrorKind {
    /// The file cannot be read.
    Unreadable(io::Error),
    /// The text is not in the master format. The scanner says why.
    Syntax(String),
    /// A record cannot stand in the zone.
    RecordError(RecordError, String),
    /// Files include each other too deeply, or in a circle.
    TooDeep,
    /// The zone has no record of this type at its own name.
    Without(Rtype),
}

impl ZoneError {
    /// What is wrong.
    pub fn kind(&self) -> &ZoneErrorKind {
        &self.kind
    }

    /// The line, counted from 1, if the error has one.
    pub fn line(&self) -> Option<usize> {
        self.line
    }
}

impl fmt::Display for ZoneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        match &self.kind {
            ZoneErrorKind::Unreadable(error) => write!(f, " {error}"),
            ZoneErrorKind::Syntax(text) => write!(f, " {text}"),
            ZoneErrorKind::RecordError(RecordError::Outside, name) => write!(f, " {name} is not in the zone"),
            ZoneErrorKind::RecordError(RecordError::SoaBelow, name) => {
                write!(f, " {name} has an SOA record, and is not the zone's own name")
            }
            ZoneErrorKind::RecordError(RecordError::SecondSoa, name) => {
                write!(f, " {name} has two SOA records")
            }
            ZoneErrorKind::RecordError(RecordError::BesideAlias, name) => {
                write!(f, " {name} has a CNAME record and another record")
            }
            ZoneErrorKind::RecordError(RecordError::SecondRedirection, name) => {
                write!(f, " {name} has two DNAME records")
            }
            ZoneErrorKind::TooDeep => write!(f, " $INCLUDE goes deeper than {INCLUDES_MAX} files"),
            ZoneErrorKind::Without(rtype) => write!(f, " the zone's own name has no {rtype} record"),
        }
    }
}

impl std::error::Error for ZoneError {}

/// Reads the zone of a name from a file. `$INCLUDE` names a file relative to the including one.
///
/// # Errors
/// If a file cannot be read, is not in the format, or has a record that does not fit; and if the
/// zone's own name has no SOA or no NS record.
pub fn read(name: &DomainName, path: &Path) -> Result<Zone, ZoneError> {
    read_by(name, path, &mut |path| std::fs::read(path))
}

/// As [`read`], with the files that `load` has.
///
/// # Errors
/// As for [`read`].
pub fn read_by(
    name: &DomainName,
    path: &Path,
    load: &mut dyn FnMut(&Path) -> io::Result<Vec<u8>>,
) -> Result<Zone, ZoneError> {
    let mut zone = Zone::new(name);
    let mut reader = Reader { zone: &mut zone, load, ttl: DEFAULT_TTL.to_vec(), has_ttl: false };
    reader.include(name, path, 0)?;
    for rtype in [Rtype::SOA, Rtype::NS] {
        if zone.top().set(rtype).is_none() {
            return Err(ZoneError { path: path.into(), line: None, kind: ZoneErrorKind::Without(rtype) });
        }
    }
    Ok(zone)
}

/// The directive that holds for a record without a TTL before any other TTL: an hour.
const DEFAULT_TTL: &[u8] = b"$TTL 3600\n";

/// What the entries of a zone's files have said so far.
struct Reader<'a> {
    zone: &'a mut Zone,
    /// Reads a file.
    load: &'a mut dyn FnMut(&Path) -> io::Result<Vec<u8>>,
    /// The last `$TTL`. Without one, a directive with the TTL of the record before (RFC 1035 §5.1).
    ttl: Vec<u8>,
    /// Whether there was a `$TTL`.
    has_ttl: bool,
}

impl Reader<'_> {
    /// Reads a file.
    fn include(&mut self, origin: &DomainName, path: &Path, depth: usize) -> Result<(), ZoneError> {
        let error = |line, kind| ZoneError { path: path.into(), line, kind };
        if depth > INCLUDES_MAX {
            return Err(error(None, ZoneErrorKind::TooDeep));
        }
        let text = (self.load)(path).map_err(|cause| error(None, ZoneErrorKind::Unreadable(cause)))?;
        let mut origin = origin.clone();
        let mut owner: Option<DomainName> = None;
        for entry in Entries::new(&text) {
            let scanned = self.scan(&entry, &origin, owner.as_ref());
            let (found, now) = scanned.map_err(|(line, kind)| error(Some(line), kind))?;
            origin = now;
            match found {
                None => {}
                Some(Entry::Record(record)) => {
                    let record: ZoneRecord = record.flatten_into();
                    if !is_sound(&record) {
                        let words = "a name has an empty label".to_string();
                        return Err(error(Some(entry.line), ZoneErrorKind::Syntax(words)));
                    }
                    let name = record.owner().clone();
                    if !self.has_ttl {
                        self.ttl = format!("$TTL {}\n", record.ttl().as_secs()).into_bytes();
                    }
                    self.zone.insert(record).map_err(|misfit| {
                        let name = name.fmt_with_dot().to_string();
                        error(Some(entry.line), ZoneErrorKind::RecordError(misfit, name))
                    })?;
                    owner = Some(name);
                }
                Some(Entry::Include { path: other, origin: inner }) => {
                    let other = path.parent().unwrap_or(Path::new("")).join(&*other);
                    let inner = inner.map_or_else(|| origin.clone(), |inner| inner.to_vec());
                    self.include(&inner, &other, depth + 1)?;
                }
            }
        }
        Ok(())
    }

    /// Scans an entry, behind a directive with the TTL, and behind the name of the record before if
    /// it begins with a space. Returns what the entry has besides a directive, and the origin from
    /// there on.
    fn scan(
        &mut self,
        entry: &ZoneEntry<'_>,
        origin: &DomainName,
        owner: Option<&DomainName>,
    ) -> Result<(Option<Entry>, DomainName), (usize, ZoneErrorKind)> {
        if entry.is_open {
            return Err((entry.line, ZoneErrorKind::Syntax("a parenthesis is not closed".into())));
        }
        let mut text = self.ttl.clone();
        let before = lines(&text);
        if let Some(owner) = owner.filter(|_| entry.text.starts_with(b" ") || entry.text.starts_with(b"\t")) {
            text.extend_from_slice(&escaped(owner));
        }
        let words = plain(entry.text, &escaped(origin));
        text.extend_from_slice(&words);
        // The scanner wants an end of the last line.
        text.push(b'\n');
        let mut file = Zonefile::from(text.as_slice());
        file.set_origin(origin.to_bytes());
        file.set_default_class(Class::IN);
        let found = file.next_entry().map_err(|error| {
            let (line, words) = said(&error.to_string());
            // The scanner may be at the line behind the entry already.
            let last = entry.line + lines(entry.text).saturating_sub(1);
            let line = (entry.line + line.saturating_sub(before + 1)).min(last);
            (line, ZoneErrorKind::Syntax(words))
        })?;
        if entry.text.get(..4).is_some_and(|word| word.eq_ignore_ascii_case(b"$TTL")) {
            self.ttl = words.into_owned();
            self.ttl.push(b'\n');
            self.has_ttl = true;
        }
        let origin = file.origin().map_or_else(|_| origin.clone(), |origin| origin.to_vec());
        Ok((found, origin))
    }
}

/// The line and the words of the scanner's error, which is `line:column: words`.
fn said(text: &str) -> (usize, String) {
    let mut parts = text.splitn(3, ':');
    let line = parts.next().and_then(|line| line.parse().ok()).unwrap_or(1);
    (line, parts.nth(1).unwrap_or(text).trim().to_string())
}

/// A name for the scanner: what is no letter, digit or hyphen is a number.
fn escaped(name: &DomainName) -> Vec<u8> {
    let mut text = Vec::new();
    for label in name.iter().filter(|label| !label.is_root()) {
        for byte in label.iter() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => text.push(byte),
                _ => text.extend_from_slice(format!("\\{byte:03}").as_bytes()),
            }
        }
        text.push(b'.');
    }
    if text.is_empty() {
        text.push(b'.');
    }
    text
}
