//! Reading a zone from a file in the master format of RFC 1035 §5: [`read`].
//!
//! The library scans entries; this file follows `$INCLUDE`, puts the records into a [`Zone`], and
//! says with file and line what is wrong. `main.rs` calls it before the server answers its first
//! query, and the server again for each reload.

use super::{Misfit, Zone};
use crate::record::{DomainName, ZoneRecord};
use domain::base::iana::Class;
use domain::base::name::FlattenInto;
use domain::base::{Rtype, ToName};
use domain::zonefile::inplace::{Entry, ScannedRecord, Zonefile};
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
    /// The text is not in the master format. The scanner says where and why.
    Syntax(String),
    /// A record cannot stand in the zone.
    Misfit(Misfit, String),
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
            // It begins with the column.
            ZoneErrorKind::Syntax(text) => f.write_str(text),
            ZoneErrorKind::Misfit(Misfit::Outside, name) => write!(f, " {name} is not in the zone"),
            ZoneErrorKind::Misfit(Misfit::SoaBelow, name) => {
                write!(f, " {name} has an SOA record, and is not the zone's own name")
            }
            ZoneErrorKind::Misfit(Misfit::SecondSoa, name) => write!(f, " {name} has two SOA records"),
            ZoneErrorKind::Misfit(Misfit::BesideAlias, name) => {
                write!(f, " {name} has a CNAME record and another record")
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
    let mut zone = Zone::new(name);
    include(&mut zone, name, path, 0)?;
    for rtype in [Rtype::SOA, Rtype::NS] {
        if zone.top().set(rtype).is_none() {
            return Err(ZoneError { path: path.into(), line: None, kind: ZoneErrorKind::Without(rtype) });
        }
    }
    Ok(zone)
}

fn include(zone: &mut Zone, origin: &DomainName, path: &Path, depth: usize) -> Result<(), ZoneError> {
    let error = |line, kind| ZoneError { path: path.into(), line, kind };
    if depth > INCLUDES_MAX {
        return Err(error(None, ZoneErrorKind::TooDeep));
    }
    let mut text = std::fs::read(path).map_err(|cause| error(None, ZoneErrorKind::Unreadable(cause)))?;
    // The scanner wants an end of the last line.
    text.push(b'\n');
    let mut file = Zonefile::from(text.as_slice());
    file.set_origin(origin.to_bytes());
    file.set_default_class(Class::IN);
    let mut lines = Lines { text: &text, line: 1, counted: 0 };
    loop {
        let entry = file.next_entry().map_err(|cause| syntax(path, &cause.to_string()))?;
        let line = Some(lines.until(file.current_offset()));
        match entry {
            None => return Ok(()),
            Some(Entry::Record(record)) => {
                let record = owned(record);
                let name = record.owner().fmt_with_dot().to_string();
                zone.insert(record).map_err(|misfit| error(line, ZoneErrorKind::Misfit(misfit, name)))?;
            }
            Some(Entry::Include { path: other, origin: inner }) => {
                let other = path.parent().unwrap_or(Path::new("")).join(&*other);
                let inner = inner.map_or_else(
                    || file.origin().map_or_else(|_| origin.clone(), |now| now.to_vec()),
                    |inner| inner.to_vec(),
                );
                include(zone, &inner, &other, depth + 1)?;
            }
        }
    }
}

/// The scanner's error, which is `line:column: text`.
fn syntax(path: &Path, text: &str) -> ZoneError {
    let (line, rest) = text.split_once(':').unwrap_or(("", text));
    ZoneError { path: path.into(), line: line.parse().ok(), kind: ZoneErrorKind::Syntax(rest.into()) }
}

/// The scanned record, which borrows the file's text, as one of its own.
fn owned(record: ScannedRecord) -> ZoneRecord {
    record.flatten_into()
}

/// Counts lines as the scanner goes on.
struct Lines<'a> {
    text: &'a [u8],
    line: usize,
    counted: usize,
}

impl Lines<'_> {
    /// The line of a place in the text that is not before the last one.
    fn until(&mut self, offset: usize) -> usize {
        let offset = offset.min(self.text.len());
        let passed = self.text.get(self.counted..offset).unwrap_or(&[]);
        self.line += passed.iter().filter(|&&byte| byte == b'\n').count();
        self.counted = offset.max(self.counted);
        self.line
    }
}
