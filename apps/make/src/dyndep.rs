//! Dyndep files: inputs and outputs of edges that are known only when a command of the build has
//! written them down. The graph grows while it is built.
//!
//! `project/deps.rs` calls [`load`] when such a file is up to date or has just been made, and
//! `tools/clean.rs` calls it to learn of more outputs. [`load`] checks the whole file before it
//! changes an edge, so a file that is refused leaves all edges as they were.
//!
//! The format is that of the section "Dynamic Dependencies" of ninja's manual. Its lexer is that of
//! the manifest.

use crate::canonical::canonicalize;
use crate::graph::{EdgeId, Found, Graph, NodeId};
use crate::manifest::{Lexer, ManifestError, Token, Word};
use crate::version::version;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::error::Error;
use std::fmt;

/// Why a dyndep file is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DyndepError {
    /// The syntax is wrong.
    Syntax(Box<ManifestError>),
    /// The file names an edge that does not wait for it.
    Unasked {
        /// The file.
        file: String,
        /// The first output of the edge.
        output: String,
    },
    /// The file does not name an edge that waits for it.
    Unmentioned {
        /// The file.
        file: String,
        /// The first output of the edge.
        output: String,
    },
    /// Two edges would make this output.
    SecondMaker(String),
}

impl fmt::Display for DyndepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DyndepError::Syntax(error) => error.fmt(f),
            DyndepError::Unasked { file, output } => write!(
                f,
                "dyndep file '{file}' mentions output '{output}', and its build statement does not have a dyndep binding for the file"
            ),
            DyndepError::Unmentioned { file, output } => {
                write!(f, "'{output}' not mentioned in its dyndep file '{file}'")
            }
            DyndepError::SecondMaker(output) => write!(f, "multiple rules generate {output}"),
        }
    }
}

impl Error for DyndepError {}

/// Reads the dyndep file `file`, and adds its inputs and outputs to the edges that it names.
/// Returns these edges.
///
/// # Errors
/// The syntax is wrong, the file does not name exactly the edges that wait for it, or two edges
/// make the same output. No edge has changed then.
pub fn load(graph: &mut Graph, file: NodeId, text: &[u8]) -> Result<Vec<EdgeId>, DyndepError> {
    let path = graph.path(file).to_vec();
    let found = parse(graph, &path, text).map_err(|error| DyndepError::Syntax(Box::new(error)))?;
    let name = || String::from_utf8_lossy(&path).into_owned();
    let first = |edge| graph.outputs(edge).next().map(|output| graph.path_text(output)).unwrap_or_default();
    let waiting = graph.dyndeps.get(&file).map_or(&[][..], |edges| edges);
    if let Some(edge) = found.keys().find(|edge| graph.edge(**edge).dyndep != Some(file)) {
        return Err(DyndepError::Unasked { file: name(), output: first(*edge) });
    }
    if let Some(edge) = waiting.iter().find(|edge| !found.contains_key(edge)) {
        return Err(DyndepError::Unmentioned { file: name(), output: first(*edge) });
    }
    let mut outputs = BTreeMap::new();
    for (edge, found) in &found {
        for output in &found.outputs {
            if graph.maker(*output).is_some() || outputs.insert(*output, *edge).is_some() {
                return Err(DyndepError::SecondMaker(graph.path_text(*output)));
            }
        }
    }
    outputs.iter().for_each(|(output, edge)| graph.set_maker(*output, *edge));
    let edges = found.keys().copied().collect();
    graph.found.extend(found);
    Ok(edges)
}

/// The nodes of a list of paths.
fn nodes(graph: &mut Graph, lexer: &mut Lexer<'_>) -> Result<Vec<NodeId>, ManifestError> {
    let mut nodes = Vec::new();
    while let Some(mut path) = path(lexer)? {
        canonicalize(&mut path);
        nodes.push(graph.node(&path));
    }
    Ok(nodes)
}

/// The next path. Variables have no values in a dyndep file.
fn path(lexer: &mut Lexer<'_>) -> Result<Option<Vec<u8>>, ManifestError> {
    let mut words = Vec::new();
    if !lexer.path(&mut words)? {
        return Ok(None);
    }
    let path = text(&words);
    if path.is_empty() {
        return Err(lexer.error("empty path"));
    }
    Ok(Some(path))
}

fn text(words: &[Word<'_>]) -> Vec<u8> {
    let texts = words.iter().map(|word| match word {
        Word::Text(text) => *text,
        Word::Variable(_) => b"",
    });
    texts.collect::<Vec<_>>().concat()
}

/// Reads the text of a dyndep file. It adds nodes to the graph, and nothing else.
///
/// # Errors
/// [`ManifestError`], with line and column.
pub fn parse(
    graph: &mut Graph,
    file: &[u8],
    source: &[u8],
) -> Result<BTreeMap<EdgeId, Found>, ManifestError> {
    let mut lexer = Lexer::new(file, source);
    let mut versioned = false;
    let mut all = BTreeMap::new();
    loop {
        match lexer.token() {
            Token::Newline => {}
            Token::Identifier if !versioned => {
                if lexer.identifier() != b"ninja_dyndep_version" {
                    return Err(lexer.error("expected 'ninja_dyndep_version = ...'"));
                }
                let mut words = Vec::new();
                lexer.expect(Token::Equals)?;
                lexer.value(&mut words)?;
                let text = text(&words);
                if version(&text) != (1, 0) {
                    let text = String::from_utf8_lossy(&text);
                    return Err(lexer.error(format!("unsupported 'ninja_dyndep_version = {text}'")));
                }
                versioned = true;
            }
            Token::Build if versioned => {
                let (edge, found) = build(graph, &mut lexer)?;
                match all.entry(edge) {
                    Entry::Occupied(_) => return Err(lexer.error("multiple statements for one edge")),
                    Entry::Vacant(place) => place.insert(found),
                };
            }
            Token::End if versioned => return Ok(all),
            Token::End | Token::Build => return Err(lexer.error("expected 'ninja_dyndep_version = ...'")),
            other => return Err(lexer.unexpected(other)),
        }
    }
}

fn build(graph: &mut Graph, lexer: &mut Lexer<'_>) -> Result<(EdgeId, Found), ManifestError> {
    let Some(mut output) = path(lexer)? else { return Err(lexer.error("expected path")) };
    canonicalize(&mut output);
    let edge = graph.find(&output).and_then(|output| graph.maker(output));
    let shown = String::from_utf8_lossy(&output);
    let edge = edge.ok_or_else(|| lexer.error(format!("no build statement exists for '{shown}'")))?;
    let mut found = Found::default();
    if path(lexer)?.is_some() {
        return Err(lexer.error("explicit outputs not supported"));
    }
    if lexer.take(Token::Pipe) {
        found.outputs = nodes(graph, lexer)?;
    }
    lexer.expect(Token::Colon)?;
    if lexer.name("build command name 'dyndep'")? != b"dyndep" {
        return Err(lexer.error("expected build command name 'dyndep'"));
    }
    if path(lexer)?.is_some() {
        return Err(lexer.error("explicit inputs not supported"));
    }
    if lexer.take(Token::Pipe) {
        found.inputs = nodes(graph, lexer)?;
    }
    if lexer.take(Token::DoublePipe) {
        return Err(lexer.error("order-only inputs not supported"));
    }
    lexer.expect(Token::Newline)?;
    while lexer.take(Token::Indent) {
        if lexer.name("variable name")? != b"restat" {
            return Err(lexer.error("binding is not 'restat'"));
        }
        let mut words = Vec::new();
        lexer.expect(Token::Equals)?;
        lexer.value(&mut words)?;
        found.restat = !text(&words).is_empty();
    }
    Ok((edge, found))
}
