//! The graph of a build: files are nodes, commands are edges from their inputs to their outputs.
//!
//! `manifest/parser.rs` builds a [`Graph`], and all later modules read it. After that the edges
//! stay as they are, and the rest only grows: the logs and the depfiles add nodes, and dyndep files
//! add to [`Graph::found`].
//!
//! Nodes, edges, scopes and rules are numbers into the vectors of a [`Graph`]. Nothing is removed,
//! so a number stays valid, and other modules have vectors by the same numbers. The lists of an
//! edge lie one after the other in one vector, so an edge owns no memory of its own.

use crate::interner::{Interner, Span};
use std::collections::BTreeMap;

/// Makes a type of numbers for one of the graph's vectors.
macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The number as an index.
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// The number of the element with this index.
            ///
            /// # Panics
            /// If there are 2^32 elements.
            pub fn at(index: usize) -> $name {
                $name(u32::try_from(index).expect("fewer than 2^32 elements"))
            }
        }
    };
}

number! {
    /// A file.
    NodeId
}
number! {
    /// A command, or a phony edge.
    EdgeId
}
number! {
    /// The variables and rules of one file, or of one `subninja`.
    ScopeId
}
number! {
    /// A rule.
    RuleId
}
number! {
    /// A name of a variable or a rule.
    Name
}
number! {
    /// A pool.
    PoolId
}

/// The rule of phony edges, which have no command.
pub const PHONY: RuleId = RuleId(0);
/// The pool that limits nothing.
pub const NO_POOL: PoolId = PoolId(0);
/// The pool of commands that have the terminal to themselves.
pub const CONSOLE: PoolId = PoolId(1);

/// The names of variables that the build runner itself uses. [`Graph::new`]
/// interns them first and in this order, so their numbers are constants.
pub mod names {
    use super::Name;

    macro_rules! fixed {
        ($($name:ident = $number:literal $text:literal;)*) => {
            $(
                #[doc = concat!("`", $text, "`")]
                pub const $name: Name = Name($number);
            )*
            pub(super) const ALL: &[&str] = &[$($text),*];
        };
    }

    fixed! {
        COMMAND = 0 "command";
        DEPFILE = 1 "depfile";
        DYNDEP = 2 "dyndep";
        DESCRIPTION = 3 "description";
        DEPS = 4 "deps";
        GENERATOR = 5 "generator";
        POOL = 6 "pool";
        RESTAT = 7 "restat";
        RSPFILE = 8 "rspfile";
        RSPFILE_CONTENT = 9 "rspfile_content";
        MSVC_DEPS_PREFIX = 10 "msvc_deps_prefix";
        IN = 11 "in";
        IN_NEWLINE = 12 "in_newline";
        OUT = 13 "out";
    }

    /// Whether a rule may set this variable.
    pub fn is_of_rule(name: Name) -> bool {
        name.0 <= MSVC_DEPS_PREFIX.0
    }

    /// The bit of a name that a rule may set; 0 for another name.
    pub(crate) fn bit(name: Name) -> u16 {
        if is_of_rule(name) { 1 << name.0 } else { 0 }
    }
}

/// A piece of a value that is not evaluated yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text, in the graph's text.
    Text(Span),
    /// The value of a variable.
    Variable(Name),
}

/// A rule: values that are evaluated anew for each edge.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its name.
    pub name: Name,
    /// Its variables, in the order of the manifest; the last one of a name counts.
    pub variables: Vec<(Name, Vec<Piece>)>,
    /// The bits of their names.
    pub(crate) names: u16,
}

impl Rule {
    /// The value of a variable of this rule.
    pub fn variable(&self, name: Name) -> Option<&[Piece]> {
        self.variables.iter().rev().find(|(of, _)| *of == name).map(|(_, value)| &value[..])
    }
}

/// The variables and rules that a file declares, within those of the file that read it.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// The scope of the file that has this one as its `subninja`.
    pub parent: Option<ScopeId>,
    /// By the numbers of names.
    variables: Vec<Option<Span>>,
    rules: Vec<(Name, RuleId)>,
}

/// How many commands of a pool run at the same time.
#[derive(Clone, Debug)]
pub struct Pool {
    /// Its name.
    pub name: Vec<u8>,
    /// The largest number of its commands that run together; 0 is no limit.
    pub depth: u32,
}

/// A command with its files, or a phony edge.
#[derive(Clone, Debug)]
pub struct Edge {
    /// The rule.
    pub rule: RuleId,
    /// The scope of the file that declares the edge.
    pub scope: ScopeId,
    /// The pool.
    pub pool: PoolId,
    /// Where its own variables lie in the graph's; `None` if it has no indented line at all.
    pub(crate) variables: Option<(u32, u32)>,
    /// Where its list of files begins, and how many of each kind there are.
    start: u32,
    counts: [u32; Files::KINDS],
    /// The dyndep file, which is one of its inputs.
    pub dyndep: Option<NodeId>,
}

/// The kinds of files of an edge, in the order of its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    /// Outputs, which `$out` names.
    Outputs,
    /// Outputs after `|`.
    ImplicitOutputs,
    /// Inputs, which `$in` names.
    Inputs,
    /// Inputs after `|`.
    ImplicitInputs,
    /// Inputs after `||`: built before, but no reason to build.
    OrderOnly,
    /// Targets after `|@`: built too, but not before.
    Validations,
}

impl Files {
    pub(crate) const KINDS: usize = 6;
}

/// The part of a dyndep file about one edge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// More outputs.
    pub outputs: Vec<NodeId>,
    /// More inputs.
    pub inputs: Vec<NodeId>,
    /// Whether the edge restats its outputs.
    pub restat: bool,
}

/// A build as its manifest describes it.
#[derive(Clone, Debug)]
pub struct Graph {
    /// The paths of nodes, by the nodes' numbers.
    pub(crate) paths: Interner,
    pub(crate) names: Interner,
    /// The text of values.
    pub(crate) text: Vec<u8>,
    /// The bytes that variables stood for in all values and paths so far.
    pub(crate) expanded: u64,
    /// By the numbers of nodes: the edge that makes it, plus one; 0 is none.
    makers: Vec<u32>,
    /// The edges, in the order of the manifest.
    pub edges: Vec<Edge>,
    lists: Vec<NodeId>,
    pub(crate) edge_variables: Vec<(Name, Span)>,
    /// The scopes; the first is the manifest's.
    pub scopes: Vec<Scope>,
    /// The bits of the names that some scope sets.
    scope_names: u16,
    /// The rules; the first is `phony`.
    pub rules: Vec<Rule>,
    /// The pools; the first limits nothing, the second is `console`.
    pub pools: Vec<Pool>,
    /// The targets of `default` statements.
    pub defaults: Vec<NodeId>,
    /// The additions of the dyndep files that have been read so far.
    pub found: BTreeMap<EdgeId, Found>,
    /// The dyndep files, each with the edges that wait for it.
    pub(crate) dyndeps: BTreeMap<NodeId, Vec<EdgeId>>,
    /// The phony targets that were their own inputs. The parser has taken the inputs out.
    pub phony_cycles: Vec<NodeId>,
}

impl Default for Graph {
    fn default() -> Graph {
        Graph::new()
    }
}

impl Graph {
    /// A graph with the rule `phony` and the pool `console`, and nothing else.
    pub fn new() -> Graph {
        let mut names = Interner::default();
        for name in names::ALL {
            names.intern(name.as_bytes());
        }
        let phony = Name(names.intern(b"phony"));
        let pool = |name: &[u8], depth| Pool { name: name.to_vec(), depth };
        Graph {
            paths: Interner::default(),
            names,
            text: Vec::new(),
            expanded: 0,
            makers: Vec::new(),
            edges: Vec::new(),
            lists: Vec::new(),
            edge_variables: Vec::new(),
            scope_names: 0,
            scopes: vec![Scope { rules: vec![(phony, PHONY)], ..Scope::default() }],
            rules: vec![Rule { name: phony, variables: Vec::new(), names: 0 }],
            pools: vec![pool(b"", 0), pool(b"console", 1)],
            defaults: Vec::new(),
            found: BTreeMap::new(),
            dyndeps: BTreeMap::new(),
            phony_cycles: Vec::new(),
        }
    }

    /// The node of a canonical path, which is a new one if there is none. O(1).
    pub fn node(&mut self, path: &[u8]) -> NodeId {
        let node = NodeId(self.paths.intern(path));
        if node.index() == self.makers.len() {
            self.makers.push(0);
        }
        node
    }

    /// The node of a canonical path, if there is one. O(1).
    pub fn find(&self, path: &[u8]) -> Option<NodeId> {
        self.paths.find(path).map(NodeId)
    }

    /// The path of a node.
    pub fn path(&self, node: NodeId) -> &[u8] {
        self.paths.get(node.0)
    }

    /// The path of a node as text for the user.
    pub fn path_text(&self, node: NodeId) -> String {
        String::from_utf8_lossy(self.path(node)).into_owned()
    }

    /// How many nodes there are. Their numbers go from 0 up to this one.
    pub fn nodes(&self) -> usize {
        self.makers.len()
    }

    /// The edge that has the node as an output.
    pub fn maker(&self, node: NodeId) -> Option<EdgeId> {
        self.makers[node.index()].checked_sub(1).map(EdgeId)
    }

    pub(crate) fn set_maker(&mut self, node: NodeId, edge: EdgeId) {
        self.makers[node.index()] = edge.0 + 1;
    }

    /// Makes the edge one that waits for a dyndep file.
    pub(crate) fn set_dyndep(&mut self, edge: EdgeId, file: NodeId) {
        self.edges[edge.index()].dyndep = Some(file);
        self.dyndeps.entry(file).or_default().push(edge);
    }

    /// All edges.
    pub fn edge_ids(&self) -> impl Iterator<Item = EdgeId> + use<> {
        (0..self.edges.len()).map(EdgeId::at)
    }

    /// An edge.
    pub fn edge(&self, edge: EdgeId) -> &Edge {
        &self.edges[edge.index()]
    }

    /// Adds an edge with its files, kind after kind, and makes it the maker of its outputs.
    pub(crate) fn add_edge(
        &mut self,
        rule: RuleId,
        scope: ScopeId,
        variables: Option<(u32, u32)>,
        files: &[Vec<NodeId>; Files::KINDS],
    ) -> EdgeId {
        let id = EdgeId::at(self.edges.len());
        let start = NodeId::at(self.lists.len()).0;
        let mut counts = [0; Files::KINDS];
        for (count, list) in counts.iter_mut().zip(files) {
            *count = NodeId::at(list.len()).0;
            self.lists.extend_from_slice(list);
        }
        for output in files[0].iter().chain(&files[1]) {
            self.set_maker(*output, id);
        }
        self.edges.push(Edge { rule, scope, pool: NO_POOL, variables, start, counts, dyndep: None });
        id
    }

    /// The files of these kinds, from the first kind to the last, as the manifest has them.
    fn files(&self, edge: EdgeId, first: Files, last: Files) -> &[NodeId] {
        let edge = self.edge(edge);
        let sum = |kinds: usize| edge.counts[..kinds].iter().sum::<u32>() as usize;
        let start = edge.start as usize;
        &self.lists[start + sum(first as usize)..start + sum(last as usize + 1)]
    }

    /// The files of one kind, as the manifest has them.
    pub fn files_of(&self, edge: EdgeId, kind: Files) -> &[NodeId] {
        self.files(edge, kind, kind)
    }

    /// The output at this place of [`outputs`](Self::outputs). O(1).
    pub(crate) fn output(&self, edge: EdgeId, place: usize) -> Option<NodeId> {
        self.outputs(edge).nth(place)
    }

    /// All outputs. The outputs that a dyndep file named come last.
    pub fn outputs(&self, edge: EdgeId) -> impl Iterator<Item = NodeId> + '_ {
        let found = self.found.get(&edge).map_or(&[][..], |found| &found.outputs);
        self.files(edge, Files::Outputs, Files::ImplicitOutputs).iter().chain(found).copied()
    }

    /// The inputs that are reasons to build: explicit, implicit, and named by a dyndep file.
    pub fn reasons(&self, edge: EdgeId) -> impl Iterator<Item = NodeId> + '_ {
        let found = self.found.get(&edge).map_or(&[][..], |found| &found.inputs);
        self.files(edge, Files::Inputs, Files::ImplicitInputs).iter().chain(found).copied()
    }

    /// All inputs: first the inputs that are reasons to build, then the order-only inputs.
    pub fn inputs(&self, edge: EdgeId) -> impl Iterator<Item = NodeId> + '_ {
        self.reasons(edge).chain(self.files_of(edge, Files::OrderOnly).iter().copied())
    }

    /// Whether the edge is phony: it has no command, and its outputs stand for its inputs.
    pub fn is_phony(&self, edge: EdgeId) -> bool {
        self.edge(edge).rule == PHONY
    }

    /// A name as bytes.
    pub fn name(&self, name: Name) -> &[u8] {
        self.names.get(name.0)
    }

    /// The name that is written like this, if a manifest has it.
    pub fn find_name(&self, name: &[u8]) -> Option<Name> {
        self.names.find(name).map(Name)
    }

    pub(crate) fn add_text(&mut self, text: &[u8]) -> Span {
        let start = self.text.len();
        self.text.extend_from_slice(text);
        Span::new(start, self.text.len())
    }

    /// Looks a variable up in a scope and the scopes around it.
    pub fn variable(&self, scope: ScopeId, name: Name) -> Option<&[u8]> {
        let mut scope = Some(scope);
        while let Some(id) = scope {
            if let Some(span) = self.variable_here(id, name) {
                return Some(span.of(&self.text));
            }
            scope = self.scopes[id.index()].parent;
        }
        None
    }

    /// The value that the scope itself gives to a variable.
    pub(crate) fn variable_here(&self, scope: ScopeId, name: Name) -> Option<Span> {
        self.scopes[scope.index()].variables.get(name.index()).copied().flatten()
    }

    /// Whether a variable that a rule may set surely has no value for this edge. The bits of the
    /// rule and of all scopes tell this without a search. Most edges have few of these variables.
    pub(crate) fn is_unset(&self, edge: EdgeId, name: Name) -> bool {
        let bit = names::bit(name);
        let edge = self.edge(edge);
        if bit == 0 || (self.rules[edge.rule.index()].names | self.scope_names) & bit != 0 {
            return false;
        }
        let (start, end) = edge.variables.unwrap_or_default();
        self.edge_variables[start as usize..end as usize].iter().all(|(of, _)| *of != name)
    }

    pub(crate) fn set_variable(&mut self, scope: ScopeId, name: Name, value: Span) {
        self.scope_names |= names::bit(name);
        let variables = &mut self.scopes[scope.index()].variables;
        if variables.len() <= name.index() {
            variables.resize(name.index() + 1, None);
        }
        variables[name.index()] = Some(value);
    }

    pub(crate) fn add_scope(&mut self, parent: ScopeId) -> ScopeId {
        self.scopes.push(Scope { parent: Some(parent), ..Scope::default() });
        ScopeId::at(self.scopes.len() - 1)
    }

    /// The rule of a name that the scope itself declares.
    pub(crate) fn rule_here(&self, scope: ScopeId, name: Name) -> Option<RuleId> {
        self.scopes[scope.index()].rules.iter().rev().find(|(of, _)| *of == name).map(|(_, rule)| *rule)
    }

    /// The rule of a name, as the scope sees it.
    pub(crate) fn rule(&self, scope: ScopeId, name: Name) -> Option<RuleId> {
        let mut scope = Some(scope);
        while let Some(id) = scope {
            if let Some(rule) = self.rule_here(id, name) {
                return Some(rule);
            }
            scope = self.scopes[id.index()].parent;
        }
        None
    }

    /// The rules that the manifest and the files that it includes declare, without those of a
    /// `subninja`.
    pub fn rules_of_manifest(&self) -> impl Iterator<Item = &Rule> {
        self.scopes[0].rules.iter().map(|(_, rule)| &self.rules[rule.index()])
    }

    /// A value that is not evaluated, as ninja shows it: each variable as `${name}`.
    pub fn source(&self, value: &[Piece]) -> Vec<u8> {
        let piece = |piece: &Piece| match piece {
            Piece::Text(span) => span.of(&self.text).to_vec(),
            Piece::Variable(name) => [b"${", self.name(*name), b"}"].concat(),
        };
        value.iter().flat_map(piece).collect()
    }

    pub(crate) fn add_rule(&mut self, scope: ScopeId, rule: Rule) {
        let id = RuleId::at(self.rules.len());
        self.scopes[scope.index()].rules.push((rule.name, id));
        self.rules.push(rule);
    }

    /// The targets that are built if the user names none: those of `default` statements, otherwise
    /// the outputs that no edge has as an input. It is empty if each output is an input too,
    /// because then the graph has a circle.
    pub fn default_targets(&self) -> Vec<NodeId> {
        if !self.defaults.is_empty() {
            return self.defaults.clone();
        }
        let mut used = vec![false; self.nodes()];
        for edge in self.edge_ids() {
            self.inputs(edge).for_each(|input| used[input.index()] = true);
        }
        let outputs = self.edge_ids().flat_map(|edge| self.outputs(edge));
        outputs.filter(|output| !used[output.index()]).collect()
    }

    /// For each node, the edges that have it as an input. O(size of the graph).
    pub fn users(&self) -> Vec<Vec<EdgeId>> {
        let mut users = vec![Vec::new(); self.nodes()];
        for edge in self.edge_ids() {
            for input in self.inputs(edge) {
                let of_input: &mut Vec<EdgeId> = &mut users[input.index()];
                if of_input.last() != Some(&edge) {
                    of_input.push(edge);
                }
            }
        }
        users
    }
}
