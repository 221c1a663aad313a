//! [`Records`]: `proofs.json`, the proofs that have passed, each with the digest of what it proved.
//!
//! `prove.rs` reads the file before it chooses, and writes it after each proof. The file has one
//! line for each proof, in the order of the names, so that two branches that prove different things
//! merge.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The file, from the root.
pub(crate) const FILE: &str = "proofs.json";

/// One proof that passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// Of its inputs, its commands and its toolchain.
    pub(crate) digest: String,
    /// Day of the run: `2026-11-23`.
    pub(crate) date: String,
    /// Processor and number of CPUs.
    pub(crate) machine: String,
    pub(crate) seconds: u64,
    /// Tests that passed. Some proofs are programs without tests.
    pub(crate) passed: u64,
}

/// The records of the file.
#[derive(Debug)]
pub(crate) struct Records {
    path: PathBuf,
    of: BTreeMap<String, Record>,
}

impl Records {
    /// Reads the file below `root`. Without a file there is no record.
    ///
    /// # Errors
    /// When the file cannot be read, or is not of this form.
    pub(crate) fn read(root: &Path) -> Result<Records, String> {
        let path = root.join(FILE);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => "{}".to_string(),
            Err(error) => return Err(format!("{FILE}: {error}")),
        };
        let json: Value = serde_json::from_str(&text).map_err(|error| format!("{FILE}: {error}"))?;
        let records = json.as_object().ok_or(format!("{FILE} is no object"))?.iter();
        let of = records.map(|(name, record)| {
            let record = Record::from_json(record).ok_or(format!("{FILE}: {name} lacks a field"))?;
            Ok((name.clone(), record))
        });
        Ok(Records { path, of: of.collect::<Result<_, String>>()? })
    }

    /// The record of a proof, whatever its digest.
    pub(crate) fn get(&self, name: &str) -> Option<&Record> {
        self.of.get(name)
    }

    /// Takes a record in place of the one before.
    pub(crate) fn insert(&mut self, name: &str, record: Record) {
        self.of.insert(name.to_string(), record);
    }

    /// Forgets a proof: it has failed now, or there is no such proof any more.
    pub(crate) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.of.retain(|name, _| keep(name));
    }

    /// Writes the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn write(&self) -> Result<(), String> {
        std::fs::write(&self.path, self.text()).map_err(|error| format!("{FILE}: {error}"))
    }

    fn text(&self) -> String {
        let lines: Vec<String> =
            self.of.iter().map(|(name, record)| format!("{}: {}", json!(name), record.json())).collect();
        format!("{{\n{}\n}}\n", lines.join(",\n"))
    }
}

impl Record {
    fn json(&self) -> Value {
        json!({
            "digest": self.digest, "date": self.date, "machine": self.machine,
            "seconds": self.seconds, "passed": self.passed,
        })
    }

    fn from_json(json: &Value) -> Option<Record> {
        let text = |key: &str| Some(json.get(key)?.as_str()?.to_string());
        Some(Record {
            digest: text("digest")?,
            date: text("date")?,
            machine: text("machine")?,
            seconds: json.get("seconds")?.as_u64()?,
            passed: json.get("passed")?.as_u64()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(digest: &str) -> Record {
        Record {
            digest: digest.to_string(),
            date: "2026-01-02".to_string(),
            machine: "a machine, 2 CPUs".to_string(),
            seconds: 61,
            passed: 7,
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let mut records = Records::read(dir.path()).unwrap();
        assert_eq!(records.get("loom a"), None);
        records.insert("miri b", record("2"));
        records.insert("loom a", record("1"));
        records.write().unwrap();
        let text = std::fs::read_to_string(dir.path().join(FILE)).unwrap();
        assert_eq!(text.lines().count(), 4, "one line for each proof: {text}");
        let mut again = Records::read(dir.path()).unwrap();
        assert_eq!(again.of, records.of);
        again.retain(|name| name == "loom a");
        assert_eq!((again.get("miri b"), again.get("loom a")), (None, Some(&record("1"))));
    }

    #[test]
    fn a_file_that_is_no_record_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE), r#"{"loom a": {"digest": "1"}}"#).unwrap();
        let error = Records::read(dir.path()).unwrap_err();
        assert!(error.contains("loom a"), "{error}");
    }
}
