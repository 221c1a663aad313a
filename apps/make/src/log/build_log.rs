//! `.ninja_log`: for each output, the hash of the command that made it, and when that was.
//!
//! `Project` asks [`BuildLog::entry`] whether an output is stale, and `build/finish.rs` calls
//! [`BuildLog::record`] before each command, and `build/records.rs` after each command that
//! succeeds. The tools `recompact`, `restat` and `cleandead` read or
//! replace the file.
//!
//! A line is `start`, `end`, `mtime`, `output`, `hash`, with tabs between. `mtime` is the time, by
//! the file system's clock, at which the command began. For an edge with `restat` or `generator` it
//! may be the later time of its newest output. An input that is newer makes the output stale. A
//! later line of the same output replaces the earlier one.
//!
//! Versions 5, 6 and 7 are read, and lines are appended in the version that was found, so that the
//! ninja that wrote the log can go on with it. No version suits all ninjas: 1.13 begins a log of
//! version 6 anew, and 1.11 reads version 7 but finds no command in it, because version 7 has
//! another hash. So [`BuildLog::open`] asks the ninja that is installed, if it begins a log.

use super::hash::of_command;
use crate::graph::{Graph, NodeId};
use crate::version::version;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The version of a new log, unless an earlier ninja is installed.
const NEW: u32 = 7;
/// The version of a new log for ninja 1.11 and 1.12.
const NEW_FOR_EARLIER: u32 = 6;
const VERSIONS: std::ops::RangeInclusive<u32> = 5..=7;
/// A log with fewer lines is never written anew.
const COMPACTION_LINES: usize = 100;
/// How many lines there may be for each output.
const COMPACTION_RATIO: usize = 3;

/// One line of the log, without its output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// When the command began, in milliseconds of its build.
    pub start: u32,
    /// When the command ended.
    pub end: u32,
    /// The time with which inputs are compared, by the file system's clock, in nanoseconds. See the
    /// head of the module.
    pub mtime: i64,
    /// The hash of the command.
    pub hash: u64,
}

impl Entry {
    /// The record of an output that a command is making, from the record of the command before,
    /// with the times of that command. It fits no output: its hash is that of no command, and its
    /// `mtime` is older than each input. It stays until a command succeeds.
    #[must_use]
    pub fn unfinished(self) -> Entry {
        Entry { mtime: 0, hash: 0, ..self }
    }

    /// Whether it is such a record: no command has succeeded since.
    pub fn is_unfinished(&self) -> bool {
        self.mtime == 0 && self.hash == 0
    }
}

/// The log, and the file to which it goes.
#[derive(Debug)]
pub struct BuildLog {
    /// The version of the file.
    pub version: u32,
    /// By the numbers of nodes.
    entries: Vec<Option<Entry>>,
    /// Outputs that the manifest does not have any more.
    strangers: HashMap<Vec<u8>, Entry>,
    lines: usize,
    path: PathBuf,
    /// How many bytes of the file are of use, if it has more. The rest is cut off before the first
    /// line is appended, because an unfinished line would swallow it.
    useful: Option<u64>,
    file: Option<File>,
    line: Vec<u8>,
}

/// The text of a log, cut into its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text<'a> {
    /// The version, if it is one that can be read.
    pub version: Option<u32>,
    /// The version, if it is one that cannot be read.
    pub unknown: Option<u32>,
    /// The lines that are whole, in their order.
    pub lines: Vec<(&'a [u8], Entry)>,
    /// How many bytes are whole lines. The rest is a line that an earlier process did not finish.
    pub whole: usize,
}

/// Reads the text of a log. Lines that are no entries are left out.
pub fn read(text: &[u8]) -> Text<'_> {
    let mut read = Text { version: None, unknown: None, lines: Vec::new(), whole: 0 };
    let Some(first) = memchr::memchr(b'\n', text) else { return read };
    let version =
        text[..first].strip_prefix(b"# ninja log v").and_then(|version| str::from_utf8(version).ok());
    let version = version.and_then(|version| version.parse().ok());
    read.version = version.filter(|version| VERSIONS.contains(version));
    read.unknown = version.filter(|version| !VERSIONS.contains(version));
    read.whole = first + 1;
    if read.version.is_none() {
        return read;
    }
    while let Some(length) = memchr::memchr(b'\n', &text[read.whole..]) {
        let line = &text[read.whole..read.whole + length];
        read.whole += length + 1;
        read.lines.extend(entry(line));
    }
    read
}

/// The number at the beginning of a line, and what follows the tab behind it.
fn number(line: &[u8]) -> Option<(u64, &[u8])> {
    /// A number of at most this many digits fits in 64 bits.
    const DIGITS_MAX: usize = 19;
    let (mut value, mut digits) = (0_u64, 0);
    let end = loop {
        let byte = *line.get(digits)?;
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break byte;
        }
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        digits += 1;
    };
    let is_number = end == b'\t' && (1..=DIGITS_MAX).contains(&digits);
    is_number.then(|| (value, &line[digits + 1..]))
}

/// The hash at the end of a line, and what stands before the tab before it.
fn hash(line: &[u8]) -> Option<(&[u8], u64)> {
    let tab = memchr::memrchr(b'\t', line)?;
    let digits = &line[tab + 1..];
    let (mut value, mut strange) = (0_u64, 0);
    for byte in digits {
        // An ASCII letter has the bit 64, which a digit lacks, and its low bits count from 1.
        let digit = (byte & 15) + 9 * (byte >> 6);
        strange |= u8::from(!byte.is_ascii_hexdigit());
        value = (value << 4) | u64::from(digit);
    }
    let is_hash = strange == 0 && (1..=16).contains(&digits.len());
    is_hash.then_some((&line[..tab], value))
}

fn entry(line: &[u8]) -> Option<(&[u8], Entry)> {
    let (start, rest) = number(line)?;
    let (end, rest) = number(rest)?;
    let (mtime, rest) = number(rest)?;
    let (output, hash) = hash(rest)?;
    let (start, end) = (start.try_into().ok()?, end.try_into().ok()?);
    let entry = Entry { start, end, mtime: mtime.try_into().ok()?, hash };
    (!output.is_empty()).then_some((output, entry))
}

impl BuildLog {
    /// Reads the log at `path`, if there is one. Returns it with a warning for the user, if the
    /// file is of no use. The file stays as it is until [`open`](Self::open).
    ///
    /// # Errors
    /// If a file is there and cannot be read.
    pub fn load(path: PathBuf, graph: &Graph) -> io::Result<(BuildLog, Option<String>)> {
        let mut log = BuildLog {
            version: NEW,
            entries: vec![None; graph.nodes()],
            strangers: HashMap::new(),
            lines: 0,
            path,
            useful: None,
            file: None,
            line: Vec::new(),
        };
        let text = match std::fs::read(&log.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((log, None)),
            Err(error) => return Err(error),
        };
        let read = read(&text);
        let Some(version) = read.version else {
            log.useful = Some(0);
            let is_new = read.unknown.is_some_and(|version| version > *VERSIONS.end());
            let what = if is_new { "too new" } else { "too old" };
            let warning = format!("build log version is {what}; starting over");
            return Ok((log, (!text.is_empty()).then_some(warning)));
        };
        log.version = version;
        log.lines = read.lines.len();
        for (output, entry) in &read.lines {
            log.set(graph, output, *entry);
        }
        log.useful = (read.whole < text.len()).then_some(read.whole as u64);
        Ok((log, None))
    }

    fn set(&mut self, graph: &Graph, output: &[u8], entry: Entry) {
        match graph.find(output) {
            Some(node) => self.set_entry(node, entry),
            None => {
                self.strangers.insert(output.to_vec(), entry);
            }
        }
    }

    fn set_entry(&mut self, node: NodeId, entry: Entry) {
        if self.entries.len() <= node.index() {
            self.entries.resize(node.index() + 1, None);
        }
        self.entries[node.index()] = Some(entry);
    }

    /// Finds the entries of outputs that only a dyndep file has named. `Project::load_dyndep` calls
    /// it when the outputs have become nodes.
    pub fn meet(&mut self, graph: &Graph, outputs: impl IntoIterator<Item = NodeId>) {
        for output in outputs {
            if let Some(entry) = self.strangers.remove(graph.path(output)) {
                self.set_entry(output, entry);
            }
        }
    }

    /// Whether there is a file. A log without one is empty.
    pub fn is_there(&self) -> bool {
        self.path.exists()
    }

    /// The last line of an output.
    pub fn entry(&self, output: NodeId) -> Option<Entry> {
        self.entries.get(output.index()).copied().flatten()
    }

    /// All outputs of the log, also the outputs that the manifest does not have any more.
    pub fn outputs(&self, graph: &Graph) -> Vec<Vec<u8>> {
        let known = self.entries.iter().enumerate().filter(|(_, entry)| entry.is_some());
        let known = known.map(|(index, _)| graph.path(NodeId::at(index)).to_vec());
        known.chain(self.strangers.keys().cloned()).collect()
    }

    /// The hash of a command in this log's version.
    pub fn hash(&self, command: &[u8]) -> u64 {
        of_command(self.version, command)
    }

    /// Opens the file for [`record`](Self::record). Cuts off an unfinished line at the end, and
    /// writes a log anew that has too many lines for its outputs. A build calls it before its first
    /// command, so that a build with nothing to do needs no file that can be written.
    ///
    /// A new log gets the version that the `ninja` on the path reads. That costs a process, once in
    /// the life of a log. A number that [`hash`](Self::hash) has returned before may be that of
    /// another version, so the caller opens the log first.
    ///
    /// # Errors
    /// Those of the file.
    pub fn open(&mut self, graph: &Graph) -> io::Result<()> {
        let outputs = self.entries.iter().flatten().count() + self.strangers.len();
        if self.lines > COMPACTION_LINES && self.lines > outputs * COMPACTION_RATIO {
            self.recompact(graph)?;
        }
        let mut file = File::options().append(true).create(true).open(&self.path)?;
        if let Some(useful) = self.useful.take() {
            file.set_len(useful)?;
        }
        if file.metadata()?.len() == 0 {
            self.version = version_for_new();
            writeln!(file, "# ninja log v{}", self.version)?;
        }
        self.file = Some(file);
        Ok(())
    }

    /// Appends a line for an output. The line is in the file when this returns, so the next build
    /// finds it even if this process is killed afterwards.
    ///
    /// # Errors
    /// Those of the file.
    pub fn record(&mut self, graph: &Graph, output: NodeId, entry: Entry) -> io::Result<()> {
        self.set_entry(output, entry);
        self.line.clear();
        write_line(&mut self.line, graph.path(output), &entry)?;
        match &mut self.file {
            Some(file) => file.write_all(&self.line),
            None => Ok(()),
        }
    }

    /// Writes the file anew, with one line for each output that the manifest has or that is there.
    /// A log without outputs gets the version of a new one.
    ///
    /// # Errors
    /// Those of the files.
    pub fn recompact(&mut self, graph: &Graph) -> io::Result<()> {
        self.strangers.retain(|path, _| exists(path));
        self.lines = 0;
        if self.entries.iter().all(Option::is_none) && self.strangers.is_empty() {
            self.version = version_for_new();
        }
        let mut text = format!("# ninja log v{}\n", self.version).into_bytes();
        for (index, entry) in self.entries.iter().enumerate() {
            let Some(entry) = entry else { continue };
            let node = NodeId::at(index);
            if graph.maker(node).is_some() || exists(graph.path(node)) {
                write_line(&mut text, graph.path(node), entry)?;
            }
        }
        for (path, entry) in &self.strangers {
            write_line(&mut text, path, entry)?;
        }
        self.replace(&text)
    }

    fn replace(&mut self, text: &[u8]) -> io::Result<()> {
        replace(&self.path, text)?;
        (self.file, self.useful) = (None, None);
        Ok(())
    }

    /// Sets the recorded times of outputs to the times that `mtime` gives for their paths, and
    /// writes the file anew. Every output stays in it.
    ///
    /// An unfinished record gets a time too, and then fits the output of a generator. Meson relies
    /// on it: the command that makes its manifest calls `-t restat`, and the file that this method
    /// writes replaces the log to which the build then appends. If the record stayed unfinished,
    /// then the build would make the manifest again and again.
    ///
    /// # Errors
    /// Those of the files.
    pub fn restat(&mut self, graph: &Graph, mtime: impl Fn(&[u8]) -> Option<i64>) -> io::Result<()> {
        let mut text = format!("# ninja log v{}\n", self.version).into_bytes();
        let known = self.entries.iter_mut().enumerate();
        let known = known.filter_map(|(index, entry)| Some((graph.path(NodeId::at(index)), entry.as_mut()?)));
        let strangers = self.strangers.iter_mut().map(|(path, entry)| (&path[..], entry));
        for (path, entry) in known.chain(strangers) {
            entry.mtime = mtime(path).unwrap_or(entry.mtime);
            write_line(&mut text, path, entry)?;
        }
        self.replace(&text)
    }
}

/// The version of a log that the ninja on the path reads and writes too.
fn version_for_new() -> u32 {
    let told = Command::new("ninja").arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output();
    match told {
        Ok(told) if told.status.success() && version(&told.stdout) < (1, 13) => NEW_FOR_EARLIER,
        _ => NEW,
    }
}

fn exists(path: &[u8]) -> bool {
    rustix::fs::lstat(path).is_ok()
}

fn write_line(text: &mut Vec<u8>, output: &[u8], entry: &Entry) -> io::Result<()> {
    write!(text, "{}\t{}\t{}\t", entry.start, entry.end, entry.mtime)?;
    text.extend_from_slice(output);
    writeln!(text, "\t{:x}", entry.hash)
}

/// Replaces a file in one step: the old one stays until the new one is whole.
pub(super) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".recompact");
    std::fs::write(&new, text)?;
    std::fs::rename(&new, path)
}
