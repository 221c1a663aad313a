//! `.ninja_deps`: for each output, the inputs that its compiler has read.
//!
//! `Project` asks [`DepsLog::deps`] for the inputs of an edge with `deps`, and `build/records.rs`
//! calls [`DepsLog::record`] after its command. The tools `deps`, `missingdeps` and `recompact` use
//! the log too.
//!
//! The file begins with `# ninjadeps`, an end of line and the version, 4. Records follow, each with
//! a head of four bytes: its length, and the highest bit for its kind. All numbers are
//! little-endian.
//!
//! | kind | content |
//! |---|---|
//! | path | the path, zeros up to a multiple of four, and the complement of its number; numbers go up from 0 |
//! | deps | the output's number, its mtime (8 bytes), and the numbers of its inputs |
//!
//! A path's number is its place in the file. So `DepsLog::append` gives a number only together with
//! the path's record, and checks everything that may fail before.

use super::build_log::replace;
use crate::graph::{Graph, NodeId, names};
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

const SIGNATURE: &[u8] = b"# ninjadeps\n\x04\0\0\0";
/// The longest record that ninja reads.
const RECORD_MAX: usize = (1 << 19) - 1;
const IS_DEPS: u32 = 1 << 31;
/// A log with fewer records is never written anew.
const COMPACTION_RECORDS: usize = 1000;
/// How many records there may be for each output.
const COMPACTION_RATIO: usize = 3;

/// The inputs of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deps {
    /// The output's mtime when the inputs were recorded.
    pub mtime: i64,
    /// The inputs.
    pub inputs: Vec<NodeId>,
}

/// A record of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// The path of the next number.
    Path(&'a [u8]),
    /// Inputs of an output.
    Deps {
        /// The number of the output.
        output: u32,
        /// The output's mtime.
        mtime: i64,
        /// The numbers of the inputs.
        inputs: Vec<u32>,
    },
}

/// Reads the records of a file. Returns them and how many bytes are whole records: the rest was
/// cut off or is damaged. `None`: the file is no log of this version.
pub fn read(text: &[u8]) -> Option<(Vec<Record<'_>>, usize)> {
    let mut rest = text.strip_prefix(SIGNATURE)?;
    let (mut records, mut paths) = (Vec::new(), 0_u32);
    while let Some((record, after)) = record(rest, paths) {
        paths += u32::from(matches!(record, Record::Path(_)));
        records.push(record);
        rest = after;
    }
    Some((records, text.len() - rest.len()))
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes[..4].try_into().expect("four bytes"))
}

/// The first record of `text`, if it is whole and right. There are `paths` numbers so far.
fn record(text: &[u8], paths: u32) -> Option<(Record<'_>, &[u8])> {
    let (head, rest) = text.split_at_checked(4)?;
    let head = word(head);
    let length = (head & !IS_DEPS) as usize;
    if length > RECORD_MAX || !length.is_multiple_of(4) {
        return None;
    }
    let (content, rest) = rest.split_at_checked(length)?;
    let record = if head & IS_DEPS == 0 {
        let (padded, check) = content.split_at_checked(length.checked_sub(4)?)?;
        if word(check) != !paths {
            return None;
        }
        let zeros = padded.iter().rev().take(3).take_while(|byte| **byte == 0).count();
        let path = &padded[..padded.len() - zeros];
        if path.is_empty() {
            return None;
        }
        Record::Path(path)
    } else {
        let (fixed, inputs) = content.split_at_checked(12)?;
        let mtime = (u64::from(word(&fixed[8..])) << 32) | u64::from(word(&fixed[4..]));
        let inputs: Vec<u32> = inputs.chunks_exact(4).map(word).collect();
        let output = word(fixed);
        if inputs.iter().chain([&output]).any(|number| *number >= paths) {
            return None;
        }
        Record::Deps { output, mtime: mtime.cast_signed(), inputs }
    };
    Some((record, rest))
}

/// The log, and the file to which it goes.
#[derive(Debug)]
pub struct DepsLog {
    /// By the numbers of nodes.
    deps: Vec<Option<Deps>>,
    /// By the numbers of nodes: the number in the file, plus one.
    numbers: Vec<u32>,
    paths: u32,
    records: usize,
    path: PathBuf,
    /// How many bytes of the file are of use, if it has more. The rest is cut off before the first
    /// record is appended, because a record that is not whole would swallow it.
    useful: Option<u64>,
    file: Option<File>,
}

impl DepsLog {
    /// Reads the log at `path`, if there is one. Returns it with a warning for the user, if the
    /// file is of no use. Paths that the graph does not have become nodes. The file stays as it is
    /// until [`open`](Self::open).
    ///
    /// # Errors
    /// If a file is there and cannot be read.
    pub fn load(path: PathBuf, graph: &mut Graph) -> io::Result<(DepsLog, Option<String>)> {
        let (deps, numbers) = Default::default();
        let mut log = DepsLog { deps, numbers, paths: 0, records: 0, path, useful: None, file: None };
        let text = match std::fs::read(&log.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((log, None)),
            Err(error) => return Err(error),
        };
        let Some((records, whole)) = read(&text) else {
            log.useful = Some(0);
            let path = log.path.display();
            let warning = format!("the deps log {path} has no version that is known, and is not used");
            return Ok((log, (!text.is_empty()).then_some(warning)));
        };
        let mut nodes = Vec::new();
        for record in records {
            match record {
                Record::Path(path) => {
                    let node = graph.node(path);
                    nodes.push(node);
                    log.number(node);
                }
                Record::Deps { output, mtime, inputs } => {
                    let inputs = inputs.iter().map(|number| nodes[*number as usize]).collect();
                    log.records += 1;
                    log.set(nodes[output as usize], Deps { mtime, inputs });
                }
            }
        }
        log.useful = (whole < text.len()).then_some(whole as u64);
        Ok((log, None))
    }

    fn set(&mut self, output: NodeId, deps: Deps) {
        if self.deps.len() <= output.index() {
            self.deps.resize(output.index() + 1, None);
        }
        self.deps[output.index()] = Some(deps);
    }

    /// The next number in the file becomes the node's.
    fn number(&mut self, node: NodeId) -> u32 {
        if self.numbers.len() <= node.index() {
            self.numbers.resize(node.index() + 1, 0);
        }
        self.paths += 1;
        self.numbers[node.index()] = self.paths;
        self.paths - 1
    }

    /// The inputs of an output.
    pub fn deps(&self, output: NodeId) -> Option<&Deps> {
        self.deps.get(output.index())?.as_ref()
    }

    /// The first output, in the order of the file, that has this node as an input. O(size of the
    /// log).
    pub fn first_use(&self, input: NodeId) -> Option<NodeId> {
        let uses = self.all().filter(|(_, deps)| deps.inputs.contains(&input));
        uses.map(|(output, _)| output).min_by_key(|output| self.numbers[output.index()])
    }

    /// All outputs with their inputs.
    pub fn all(&self) -> impl Iterator<Item = (NodeId, &Deps)> {
        let numbered = self.deps.iter().enumerate();
        numbered.filter_map(|(index, deps)| Some((NodeId::at(index), deps.as_ref()?)))
    }

    /// Opens the file for [`record`](Self::record). Cuts off an unfinished record at the end, and
    /// writes a log anew that has too many records for its outputs.
    ///
    /// # Errors
    /// Those of the file.
    pub fn open(&mut self, graph: &Graph) -> io::Result<()> {
        let outputs = self.deps.iter().flatten().count();
        if self.records > COMPACTION_RECORDS && self.records > outputs * COMPACTION_RATIO {
            self.recompact(graph)?;
        }
        let mut file = File::options().append(true).create(true).open(&self.path)?;
        if let Some(useful) = self.useful.take() {
            file.set_len(useful)?;
        }
        if file.metadata()?.len() == 0 {
            file.write_all(SIGNATURE)?;
        }
        self.file = Some(file);
        Ok(())
    }

    /// Appends the inputs of an output, unless the log has the same already.
    ///
    /// # Errors
    /// Those of the file, and a path or a list that is too long for it.
    pub fn record(&mut self, graph: &Graph, output: NodeId, deps: Deps) -> io::Result<()> {
        if self.deps(output) == Some(&deps) {
            return Ok(());
        }
        let mut text = Vec::new();
        self.append(graph, output, &deps, &mut text)?;
        self.set(output, deps);
        match &mut self.file {
            Some(file) => file.write_all(&text),
            None => Ok(()),
        }
    }

    fn append(&mut self, graph: &Graph, output: NodeId, deps: &Deps, text: &mut Vec<u8>) -> io::Result<()> {
        let too_long = |what| io::Error::other(format!("{}: {what}", graph.path_text(output)));
        // The checks come before the first path gets a number, because a number without a written
        // record would shift all later ones.
        let length = 12 + 4 * deps.inputs.len();
        if length > RECORD_MAX {
            return Err(too_long("more inputs than the deps log can hold"));
        }
        let is_long = |node: &NodeId| graph.path(*node).len().next_multiple_of(4) + 4 > RECORD_MAX;
        if [output].iter().chain(&deps.inputs).any(is_long) {
            return Err(too_long("a path is too long for the deps log"));
        }
        let mut numbers = Vec::with_capacity(deps.inputs.len() + 1);
        for node in [output].iter().chain(&deps.inputs) {
            let known = self.numbers.get(node.index()).and_then(|number| number.checked_sub(1));
            numbers.push(match known {
                Some(number) => number,
                None => {
                    let path = graph.path(*node);
                    let padded = path.len().next_multiple_of(4);
                    let number = self.number(*node);
                    text.extend_from_slice(&(padded as u32 + 4).to_le_bytes());
                    text.extend_from_slice(path);
                    text.extend(std::iter::repeat_n(0, padded - path.len()));
                    text.extend_from_slice(&(!number).to_le_bytes());
                    number
                }
            });
        }
        text.extend_from_slice(&(length as u32 | IS_DEPS).to_le_bytes());
        text.extend_from_slice(&numbers[0].to_le_bytes());
        text.extend_from_slice(&deps.mtime.to_le_bytes());
        numbers[1..].iter().for_each(|number| text.extend_from_slice(&number.to_le_bytes()));
        Ok(())
    }

    /// Writes the file anew, with one record for each output with an edge that still records its
    /// inputs.
    ///
    /// # Errors
    /// Those of the files.
    pub fn recompact(&mut self, graph: &Graph) -> io::Result<()> {
        let old = std::mem::take(&mut self.deps);
        (self.numbers, self.paths, self.records) = (Vec::new(), 0, 0);
        let mut text = SIGNATURE.to_vec();
        for (index, deps) in old.into_iter().enumerate() {
            let Some(deps) = deps else { continue };
            let output = NodeId::at(index);
            if is_live(graph, output) {
                self.append(graph, output, &deps, &mut text)?;
                self.set(output, deps);
                self.records += 1;
            }
        }
        replace(&self.path, &text)?;
        (self.file, self.useful) = (None, None);
        Ok(())
    }
}

/// Whether the manifest still has an edge that records the inputs of this output.
pub fn is_live(graph: &Graph, output: NodeId) -> bool {
    graph.maker(output).is_some_and(|edge| graph.has(edge, names::DEPS).unwrap_or(false))
}
