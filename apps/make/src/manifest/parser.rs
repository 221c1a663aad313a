//! The statements of a manifest, and the files that it includes.
//!
//! `manifest::parse` calls `parse` here for the first file, and `Parser::include` makes a parser
//! for each other file. All parsers write into one `Graph`.
//!
//! Values of the file and of an edge are evaluated at once, in the order of the file. Values of a
//! rule stay pieces, which `evaluate.rs` evaluates for each edge. An edge's paths are evaluated
//! after its indented lines, because these may set the variables that the paths use.

use super::{LIKE_NINJA, Lexer, Load, ManifestError, Token, Word};
use crate::canonical::{canonicalize, is_canonical};
use crate::evaluate::{Paths, VALUE_BYTES_MAX};
use crate::graph::{EdgeId, Files, Graph, Name, NodeId, PHONY, Piece, Pool, PoolId, Rule, ScopeId, names};
use crate::version::version;

/// How deep files may include one another. The parser refuses a file that includes itself when it
/// reaches this depth.
const NESTED_MAX: usize = 200;

/// Reads `text` and what it includes into `graph`.
pub(super) fn parse(
    graph: &mut Graph,
    file: &[u8],
    text: &[u8],
    load: &mut Load<'_>,
) -> Result<(), ManifestError> {
    Parser::new(graph, file, text, load, ScopeId(0), 0).statements()
}

/// The most bytes that variables stand for in all values and paths of a manifest.
const EXPANDED_BYTES_MAX: u64 = 512 << 20;

/// The parser of one file.
struct Parser<'a, 'g, 'l> {
    graph: &'g mut Graph,
    lexer: Lexer<'a>,
    load: &'g mut Load<'l>,
    scope: ScopeId,
    nested: usize,
    /// The pieces of the statement's values, as the file has them.
    words: Vec<Word<'a>>,
    /// For the files of an edge: where the words of each path end.
    ends: [Vec<usize>; Files::KINDS],
    files: [Vec<NodeId>; Files::KINDS],
    scratch: Vec<u8>,
}

impl<'a, 'g, 'l> Parser<'a, 'g, 'l> {
    fn new(
        graph: &'g mut Graph,
        file: &'a [u8],
        text: &'a [u8],
        load: &'g mut Load<'l>,
        scope: ScopeId,
        nested: usize,
    ) -> Parser<'a, 'g, 'l> {
        let lexer = Lexer::new(file, text);
        let (words, ends, files, scratch) = Default::default();
        Parser { graph, lexer, load, scope, nested, words, ends, files, scratch }
    }

    fn statements(&mut self) -> Result<(), ManifestError> {
        loop {
            match self.lexer.token() {
                Token::Build => self.build()?,
                Token::Rule => self.rule()?,
                Token::Pool => self.pool()?,
                Token::Default => self.default_targets()?,
                Token::Include => self.include(self.scope)?,
                Token::Subninja => {
                    let scope = self.graph.add_scope(self.scope);
                    self.include(scope)?;
                }
                Token::Identifier => {
                    let name = self.lexer.identifier();
                    self.variable(name)?;
                }
                Token::Newline => {}
                Token::End => return Ok(()),
                other => return Err(self.lexer.unexpected(other)),
            }
        }
    }

    fn intern(&mut self, name: &[u8]) -> Name {
        Name(self.graph.names.intern(name))
    }

    /// Reads `= value` to the end of the line, into `self.words`.
    fn assigned(&mut self) -> Result<(), ManifestError> {
        self.lexer.expect(Token::Equals)?;
        self.words.clear();
        self.lexer.value(&mut self.words)
    }

    /// Evaluates words in the scope of the file, into `self.scratch`.
    fn evaluate(&mut self, words: std::ops::Range<usize>) -> Result<(), ManifestError> {
        self.evaluate_with(words, (0, 0))
    }

    /// Refuses a value, and values, that are longer than any that are meant: a few lines in which
    /// each value has the one before it twice would fill the memory.
    fn check_size(&self) -> Result<(), ManifestError> {
        if self.scratch.len() > VALUE_BYTES_MAX {
            return Err(self.lexer.error("a value of more than 16 MiB"));
        }
        if self.graph.expanded > EXPANDED_BYTES_MAX {
            return Err(self.lexer.error("the variables are used for more than 512 MiB in all"));
        }
        Ok(())
    }

    /// A variable of the file.
    fn variable(&mut self, name: &[u8]) -> Result<(), ManifestError> {
        self.assigned()?;
        self.evaluate(0..self.words.len())?;
        if name == b"ninja_required_version" {
            self.check_version()?;
        }
        let name = self.intern(name);
        let value = self.graph.add_text(&self.scratch);
        self.graph.set_variable(self.scope, name, value);
        Ok(())
    }

    fn check_version(&self) -> Result<(), ManifestError> {
        if version(&self.scratch) <= version(LIKE_NINJA.as_bytes()) {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&self.scratch);
        Err(self.lexer.error(format!("the manifest needs ninja {text}, and this is like {LIKE_NINJA}")))
    }

    fn pool(&mut self) -> Result<(), ManifestError> {
        let name = self.lexer.name("pool name")?;
        self.lexer.expect(Token::Newline)?;
        if self.find_pool(name).is_some() {
            return Err(self.lexer.error(format!("duplicate pool '{}'", String::from_utf8_lossy(name))));
        }
        let mut depth = None;
        while self.lexer.take(Token::Indent) {
            let key = self.lexer.name("variable name")?;
            if key != b"depth" {
                return Err(self.unexpected_variable(key));
            }
            self.assigned()?;
            self.evaluate(0..self.words.len())?;
            let number = str::from_utf8(&self.scratch).ok().and_then(|text| text.trim().parse().ok());
            depth = Some(number.ok_or_else(|| self.lexer.error("invalid pool depth"))?);
        }
        let depth = depth.ok_or_else(|| self.lexer.error("expected 'depth =' line"))?;
        self.graph.pools.push(Pool { name: name.to_vec(), depth });
        Ok(())
    }

    fn find_pool(&self, name: &[u8]) -> Option<PoolId> {
        self.graph.pools.iter().position(|pool| pool.name == name).map(PoolId::at)
    }

    fn unexpected_variable(&self, name: &[u8]) -> ManifestError {
        self.lexer.error(format!("unexpected variable '{}'", String::from_utf8_lossy(name)))
    }

    fn rule(&mut self) -> Result<(), ManifestError> {
        let text = self.lexer.name("rule name")?;
        let name = self.intern(text);
        self.lexer.expect(Token::Newline)?;
        if self.graph.rule_here(self.scope, name).is_some() {
            return Err(self.lexer.error(format!("duplicate rule '{}'", String::from_utf8_lossy(text))));
        }
        let mut rule = Rule { name, variables: Vec::new(), names: 0 };
        while self.lexer.take(Token::Indent) {
            let key = self.lexer.name("variable name")?;
            let variable = self.intern(key);
            if !names::is_of_rule(variable) {
                return Err(self.unexpected_variable(key));
            }
            self.assigned()?;
            let value = self.pieces();
            rule.variables.push((variable, value));
            rule.names |= names::bit(variable);
        }
        let filled = |name| rule.variable(name).is_some_and(|value| !value.is_empty());
        if filled(names::RSPFILE) != filled(names::RSPFILE_CONTENT) {
            return Err(self.lexer.error("rspfile and rspfile_content need to be both specified"));
        }
        if !filled(names::COMMAND) {
            return Err(self.lexer.error("expected 'command =' line"));
        }
        self.graph.add_rule(self.scope, rule);
        Ok(())
    }

    /// The words as pieces that outlive the file.
    fn pieces(&mut self) -> Vec<Piece> {
        let graph = &mut *self.graph;
        let piece = |word: &Word<'_>| match word {
            Word::Text(text) => Piece::Text(graph.add_text(text)),
            Word::Variable(name) => Piece::Variable(Name(graph.names.intern(name))),
        };
        self.words.iter().map(piece).collect()
    }

    fn default_targets(&mut self) -> Result<(), ManifestError> {
        let mut first = true;
        loop {
            self.words.clear();
            if !self.lexer.path(&mut self.words)? {
                break;
            }
            first = false;
            self.evaluate(0..self.words.len())?;
            if self.scratch.is_empty() {
                return Err(self.lexer.error("empty path"));
            }
            canonicalize(&mut self.scratch);
            let Some(node) = self.graph.find(&self.scratch) else {
                let target = String::from_utf8_lossy(&self.scratch);
                return Err(self.lexer.error(format!("unknown target '{target}'")));
            };
            self.graph.defaults.push(node);
        }
        if first {
            return Err(self.lexer.error("expected target name"));
        }
        self.lexer.expect(Token::Newline)
    }

    fn include(&mut self, scope: ScopeId) -> Result<(), ManifestError> {
        self.words.clear();
        if !self.lexer.path(&mut self.words)? {
            return Err(self.lexer.error("expected path"));
        }
        self.evaluate(0..self.words.len())?;
        let path = self.scratch.clone();
        let shown = String::from_utf8_lossy(&path);
        if self.nested == NESTED_MAX {
            return Err(self.lexer.error(format!("'{shown}' lies {NESTED_MAX} files deep: a circle?")));
        }
        let text = (self.load)(&path);
        let text = text.map_err(|reason| self.lexer.error(format!("loading '{shown}': {reason}")))?;
        let nested = self.nested + 1;
        Parser::new(self.graph, &path, &text, self.load, scope, nested).statements()?;
        self.lexer.expect(Token::Newline)
    }

    /// Reads paths of one kind, as long as there are some.
    fn paths(&mut self, kind: Files) -> Result<(), ManifestError> {
        while self.lexer.path(&mut self.words)? {
            self.ends[kind as usize].push(self.words.len());
        }
        Ok(())
    }

    fn build(&mut self) -> Result<(), ManifestError> {
        self.words.clear();
        self.ends.iter_mut().for_each(Vec::clear);
        self.paths(Files::Outputs)?;
        if self.lexer.take(Token::Pipe) {
            self.paths(Files::ImplicitOutputs)?;
        }
        if self.words.is_empty() {
            return Err(self.lexer.error("expected path"));
        }
        self.lexer.expect(Token::Colon)?;
        let text = self.lexer.name("build command name")?;
        let rule = self.graph.names.find(text).and_then(|name| self.graph.rule(self.scope, Name(name)));
        let unknown = || self.lexer.error(format!("unknown build rule '{}'", String::from_utf8_lossy(text)));
        let rule = rule.ok_or_else(unknown)?;
        self.paths(Files::Inputs)?;
        for (token, kind) in [
            (Token::Pipe, Files::ImplicitInputs),
            (Token::DoublePipe, Files::OrderOnly),
            (Token::PipeAt, Files::Validations),
        ] {
            if self.lexer.take(token) {
                self.paths(kind)?;
            }
        }
        self.lexer.expect(Token::Newline)?;
        let variables = self.own_variables()?;
        self.resolve(variables)?;
        self.check_outputs(rule == PHONY)?;
        if rule == PHONY {
            self.drop_own_output();
        }
        let edge = self.graph.add_edge(rule, self.scope, variables, &self.files);
        self.set_pool(edge)?;
        self.set_dyndep(edge)
    }

    /// The indented lines below an edge. Their values are evaluated in the scope of the file.
    fn own_variables(&mut self) -> Result<Option<(u32, u32)>, ManifestError> {
        let before = self.words.len();
        let start = self.graph.edge_variables.len();
        let mut any = false;
        while self.lexer.take(Token::Indent) {
            any = true;
            let key = self.lexer.name("variable name")?;
            let name = self.intern(key);
            self.lexer.expect(Token::Equals)?;
            self.lexer.value(&mut self.words)?;
            self.evaluate(before..self.words.len())?;
            self.words.truncate(before);
            let value = self.graph.add_text(&self.scratch);
            self.graph.edge_variables.push((name, value));
        }
        let range = || (NodeId::at(start).0, NodeId::at(self.graph.edge_variables.len()).0);
        Ok(any.then(range))
    }

    /// Turns the words of the edge's paths into nodes.
    fn resolve(&mut self, variables: Option<(u32, u32)>) -> Result<(), ManifestError> {
        let mut start = 0;
        for kind in 0..Files::KINDS {
            self.files[kind].clear();
            for index in 0..self.ends[kind].len() {
                let end = self.ends[kind][index];
                match (&self.words[start..end], variables) {
                    ([Word::Text(text)], _) if is_canonical(text) => {
                        self.files[kind].push(self.graph.node(text));
                        start = end;
                        continue;
                    }
                    ([Word::Text(text)], _) => {
                        self.scratch.clear();
                        self.scratch.extend_from_slice(text);
                    }
                    (_, None) => self.evaluate(start..end)?,
                    (_, Some(own)) => self.evaluate_with(start..end, own)?,
                }
                if self.scratch.is_empty() {
                    return Err(self.lexer.error("empty path"));
                }
                canonicalize(&mut self.scratch);
                self.files[kind].push(self.graph.node(&self.scratch));
                start = end;
            }
        }
        Ok(())
    }

    /// Evaluates words as an edge with these variables sees them, into `self.scratch`. An empty
    /// range is the file itself.
    fn evaluate_with(
        &mut self,
        words: std::ops::Range<usize>,
        (start, end): (u32, u32),
    ) -> Result<(), ManifestError> {
        self.scratch.clear();
        for word in &self.words[words] {
            match word {
                Word::Text(text) => self.scratch.extend_from_slice(text),
                Word::Variable(name) => {
                    let Some(name) = self.graph.names.find(name).map(Name) else { continue };
                    let own = &self.graph.edge_variables[start as usize..end as usize];
                    let own = own.iter().rev().find(|(of, _)| *of == name);
                    let value = match own {
                        Some((_, span)) => span.of(&self.graph.text),
                        None => self.graph.variable(self.scope, name).unwrap_or_default(),
                    };
                    self.scratch.extend_from_slice(value);
                    let length = value.len() as u64;
                    self.graph.expanded += length;
                    self.check_size()?;
                }
            }
        }
        Ok(())
    }

    /// Refuses an output that another edge makes, and an output that this edge names twice.
    fn check_outputs(&mut self, phony: bool) -> Result<(), ManifestError> {
        let mut seen = Vec::new();
        for kind in [Files::Outputs, Files::ImplicitOutputs] {
            for index in 0..self.files[kind as usize].len() {
                let output = self.files[kind as usize][index];
                // Few edges have several outputs, so the search through them stays short.
                if self.graph.maker(output).is_some() || seen.contains(&output) {
                    let what = if phony { "phony edges and rules" } else { "rules" };
                    let path = self.graph.path_text(output);
                    return Err(self.lexer.error(format!("multiple {what} generate {path}")));
                }
                if self.files[0].len() + self.files[1].len() > 1 {
                    seen.push(output);
                }
            }
        }
        Ok(())
    }

    /// Takes the output of a phony edge out of its inputs. Old generators write such an edge for a
    /// file that may be missing.
    fn drop_own_output(&mut self) {
        let [outputs, implicit, inputs, ..] = &mut self.files;
        let ([output], []) = (&outputs[..], &implicit[..]) else { return };
        if inputs.contains(output) {
            self.graph.phony_cycles.push(*output);
            inputs.retain(|input| input != output);
        }
    }

    fn set_pool(&mut self, edge: EdgeId) -> Result<(), ManifestError> {
        self.scratch.clear();
        let evaluated = self.graph.evaluate(edge, names::POOL, Paths::Quoted, &mut self.scratch);
        evaluated.map_err(|circle| self.lexer.error(circle.to_string()))?;
        if !self.scratch.is_empty() {
            let name = String::from_utf8_lossy(&self.scratch);
            let unknown = || self.lexer.error(format!("unknown pool name '{name}'"));
            let pool = self.find_pool(&self.scratch).ok_or_else(unknown)?;
            self.graph.edges[edge.index()].pool = pool;
        }
        Ok(())
    }

    fn set_dyndep(&mut self, edge: EdgeId) -> Result<(), ManifestError> {
        self.scratch.clear();
        let evaluated = self.graph.evaluate(edge, names::DYNDEP, Paths::Plain, &mut self.scratch);
        evaluated.map_err(|circle| self.lexer.error(circle.to_string()))?;
        if !self.scratch.is_empty() {
            canonicalize(&mut self.scratch);
            let file = self.graph.node(&self.scratch);
            if !self.graph.inputs(edge).any(|input| input == file) {
                let path = self.graph.path_text(file);
                return Err(self.lexer.error(format!("dyndep '{path}' is not an input")));
            }
            self.graph.set_dyndep(edge, file);
        }
        Ok(())
    }
}
