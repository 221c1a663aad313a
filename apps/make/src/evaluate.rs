//! The values of an edge's variables: its command, its depfile, its pool and so on.
//!
//! The functions are methods of [`Graph`]. The parser calls them for `pool` and `dyndep`, `project`
//! for the files of an edge and the hash of its command, `build` for the command that runs, and the
//! tools for the commands that they show.
//!
//! A value is looked up in this order: the indented lines below the edge, its rule (its values are
//! evaluated anew, with the edge's variables), the scope of its file, the scopes around that. If
//! the edge has no indented line, the scope of its file comes before the rule, as in ninja.
//!
//! The format is that of the section "Evaluation and scoping" of ninja's manual.

use crate::graph::{EdgeId, Files, Graph, Name, Piece, names};
use std::error::Error;
use std::fmt;

/// Why a variable of an edge has no value, or one without a meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleError {
    /// It needs its own value: the variables, from one to the same again.
    Circle(Vec<String>),
    /// The value has more than [`RULE_VALUE_BYTES_MAX`] bytes: a few variables, each of which has
    /// the next one twice, would fill the memory.
    TooLong(String),
    /// The value of `deps` is neither `gcc` nor `msvc`.
    UnknownDeps {
        /// The value.
        deps: String,
        /// The first output of the edge.
        output: String,
    },
}

/// The longest value of a variable of a file or an edge, and the longest path, in bytes.
pub const VALUE_BYTES_MAX: usize = 16 << 20;

/// The longest value of a rule's variable, in bytes. It may name all files of a large edge.
pub const RULE_VALUE_BYTES_MAX: usize = 256 << 20;

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuleError::Circle(names) => write!(f, "cycle in rule variables: {}", names.join(" -> ")),
            RuleError::TooLong(name) => write!(f, "the rule variable {name} has more than 256 MiB"),
            RuleError::UnknownDeps { deps, output } => {
                write!(f, "unknown deps type '{deps}' of '{output}'; it is gcc or msvc")
            }
        }
    }
}

impl Error for RuleError {}

/// Whether the paths of `$in` and `$out` are quoted for the shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paths {
    /// Quoted where they need it, for commands.
    Quoted,
    /// As they are, for names of files.
    Plain,
}

/// How a compiler names the files that it has read: the value of `deps`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DepsFormat {
    /// In a depfile.
    Gcc,
    /// Among its messages.
    Msvc,
}

/// One evaluation.
struct Evaluation<'a> {
    graph: &'a Graph,
    edge: EdgeId,
    paths: Paths,
}

/// A variable of the rule that is being evaluated, and the variables that need its value.
struct Within<'a> {
    name: Name,
    outer: Option<&'a Within<'a>>,
}

impl<'a> Within<'a> {
    /// The variables from the innermost to the outermost.
    fn names(innermost: Option<&'a Within<'a>>) -> impl Iterator<Item = Name> {
        std::iter::successors(innermost, |within| within.outer).map(|within| within.name)
    }
}

impl Evaluation<'_> {
    fn variable(&self, name: Name, within: Option<&Within<'_>>, into: &mut Vec<u8>) -> Result<(), RuleError> {
        let graph = self.graph;
        match name {
            names::IN => self.list(Files::Inputs, b' ', into),
            names::IN_NEWLINE => self.list(Files::Inputs, b'\n', into),
            names::OUT => self.list(Files::Outputs, b' ', into),
            _ => {
                let edge = graph.edge(self.edge);
                let first = match edge.variables {
                    Some((start, end)) => {
                        let own = &graph.edge_variables[start as usize..end as usize];
                        own.iter().rev().find(|(of, _)| *of == name).map(|(_, span)| *span)
                    }
                    None => graph.variable_here(edge.scope, name),
                };
                if let Some(span) = first {
                    into.extend_from_slice(span.of(&graph.text));
                } else if let Some(value) = graph.rules[edge.rule.index()].variable(name) {
                    return self.of_rule(name, value, within, into);
                } else if let Some(value) = graph.variable(edge.scope, name) {
                    into.extend_from_slice(value);
                }
            }
        }
        Ok(())
    }

    fn of_rule(
        &self,
        name: Name,
        value: &[Piece],
        within: Option<&Within<'_>>,
        into: &mut Vec<u8>,
    ) -> Result<(), RuleError> {
        if let Some(inner) = Within::names(within).position(|outer| outer == name) {
            let mut circle: Vec<_> =
                [name].into_iter().chain(Within::names(within).take(inner + 1)).collect();
            circle.reverse();
            let text = |name: &Name| String::from_utf8_lossy(self.graph.name(*name)).into_owned();
            return Err(RuleError::Circle(circle.iter().map(text).collect()));
        }
        let inner = Within { name, outer: within };
        let before = into.len();
        for piece in value {
            match piece {
                Piece::Text(span) => into.extend_from_slice(span.of(&self.graph.text)),
                Piece::Variable(name) => self.variable(*name, Some(&inner), into)?,
            }
            if into.len() - before > RULE_VALUE_BYTES_MAX {
                let name = String::from_utf8_lossy(self.graph.name(name)).into_owned();
                return Err(RuleError::TooLong(name));
            }
        }
        Ok(())
    }

    fn list(&self, files: Files, separator: u8, into: &mut Vec<u8>) {
        for (index, node) in self.graph.files_of(self.edge, files).iter().enumerate() {
            if index > 0 {
                into.push(separator);
            }
            match self.paths {
                Paths::Plain => into.extend_from_slice(self.graph.path(*node)),
                Paths::Quoted => quote(self.graph.path(*node), into),
            }
        }
    }
}

/// Appends a path as one word of a shell command.
pub fn quote(path: &[u8], into: &mut Vec<u8>) {
    let safe = |byte: &u8| byte.is_ascii_alphanumeric() || b"_+-./".contains(byte);
    if path.iter().all(safe) {
        return into.extend_from_slice(path);
    }
    into.push(b'\'');
    for byte in path {
        match byte {
            b'\'' => into.extend_from_slice(b"'\\''"),
            other => into.push(*other),
        }
    }
    into.push(b'\'');
}

impl Graph {
    /// Appends the value of an edge's variable.
    ///
    /// # Errors
    /// [`RuleError`] if a variable of the rule needs its own value, or is too long.
    pub fn evaluate(
        &self,
        edge: EdgeId,
        name: Name,
        paths: Paths,
        into: &mut Vec<u8>,
    ) -> Result<(), RuleError> {
        if self.is_unset(edge, name) {
            return Ok(());
        }
        Evaluation { graph: self, edge, paths }.variable(name, None, into)
    }

    /// The value of an edge's variable, with paths as [`Paths::Quoted`].
    ///
    /// # Errors
    /// As [`evaluate`](Self::evaluate).
    pub fn value(&self, edge: EdgeId, name: Name) -> Result<Vec<u8>, RuleError> {
        let mut value = Vec::new();
        self.evaluate(edge, name, Paths::Quoted, &mut value)?;
        Ok(value)
    }

    /// The value of an edge's variable that is a path, with paths as [`Paths::Plain`].
    ///
    /// # Errors
    /// As [`evaluate`](Self::evaluate).
    pub fn path_value(&self, edge: EdgeId, name: Name) -> Result<Vec<u8>, RuleError> {
        let mut value = Vec::new();
        self.evaluate(edge, name, Paths::Plain, &mut value)?;
        Ok(value)
    }

    /// Whether an edge's variable has a value that is not empty.
    ///
    /// # Errors
    /// As [`evaluate`](Self::evaluate).
    pub fn has(&self, edge: EdgeId, name: Name) -> Result<bool, RuleError> {
        Ok(!self.value(edge, name)?.is_empty())
    }

    /// How the edge's compiler names the files that it has read; `None` if it names none, or in a
    /// depfile that stays.
    ///
    /// # Errors
    /// [`RuleError::UnknownDeps`], and as [`evaluate`](Self::evaluate).
    pub fn deps_format(&self, edge: EdgeId) -> Result<Option<DepsFormat>, RuleError> {
        match &self.value(edge, names::DEPS)?[..] {
            b"" => Ok(None),
            b"gcc" => Ok(Some(DepsFormat::Gcc)),
            b"msvc" => Ok(Some(DepsFormat::Msvc)),
            other => {
                let output = self.outputs(edge).next().map(|output| self.path_text(output));
                let deps = String::from_utf8_lossy(other).into_owned();
                Err(RuleError::UnknownDeps { deps, output: output.unwrap_or_default() })
            }
        }
    }

    /// Whether the edge looks at its outputs again after its command, because the command may have
    /// left them as they were.
    ///
    /// # Errors
    /// As [`evaluate`](Self::evaluate).
    pub fn restats(&self, edge: EdgeId) -> Result<bool, RuleError> {
        Ok(self.found.get(&edge).is_some_and(|found| found.restat) || self.has(edge, names::RESTAT)?)
    }

    /// Appends the command and the content of its response file: the text that the log's hash
    /// stands for.
    ///
    /// # Errors
    /// As [`evaluate`](Self::evaluate).
    pub fn command_with_content(&self, edge: EdgeId, into: &mut Vec<u8>) -> Result<(), RuleError> {
        self.evaluate(edge, names::COMMAND, Paths::Quoted, into)?;
        let before = into.len();
        into.extend_from_slice(b";rspfile=");
        let start = into.len();
        self.evaluate(edge, names::RSPFILE_CONTENT, Paths::Quoted, into)?;
        if into.len() == start {
            into.truncate(before);
        }
        Ok(())
    }
}
