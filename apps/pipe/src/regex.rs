//! Regular expressions over lines.
//!
//! `condition.rs` calls [`matches()`] for the condition `regex`, `stage.rs` and `test.rs` call
//! [`lines`], and the parser calls [`lines`] and [`names_line_end`] to refuse a wrong expression.
//! [`chomp`] is here because a match sees each line without its end.
//!
//! A match never reaches over a line end. [`lines`] takes the line end out of the expression: out
//! of `[^x]`, `\s` and `(?s).`, which are all classes of bytes or characters. A line has none, so
//! the expression finds the same in each line as before. So a search may run over many lines at
//! once. Each of its matches lies within a line, and the time is that of one search.
//!
//! `regex` takes only written expressions. So the tree is built by `regex-automata`, which `regex`
//! itself stands on.

use regex_automata::meta::{BuildError, Builder, Config, Regex};
use regex_automata::{Input, MatchKind, PatternID};
use regex_syntax::hir::{Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange};
use regex_syntax::hir::{Hir, HirKind, Look, LookSet};
use regex_syntax::{ParserBuilder, ast};
use selvedge_pipeline::{Flow, Sections, Split, Splitter};
use std::ops::{ControlFlow, Range};

/// How many levels of the syntax an expression may have.
const LEVELS: u32 = 250;

/// How many bytes the program of an expression may take. It is small, because `(a{1000}){1000}` is
/// a short script.
const PROGRAM_BYTES: usize = 4 << 20;

/// The expression for lines: `^` and `$` are the ends of a line, and no match has a line end in it.
///
/// # Errors
/// What is wrong with it.
pub fn lines(pattern: &str) -> Result<Regex, String> {
    built(&within_lines(pattern)?)
}

/// The regular expression of a tree, with the engines of `regex::bytes`.
fn built(tree: &Hir) -> Result<Regex, String> {
    let config = Config::new()
        .match_kind(MatchKind::LeftmostFirst)
        .utf8_empty(false)
        .nfa_size_limit(Some(PROGRAM_BYTES))
        .hybrid_cache_capacity(2 << 20);
    Builder::new().configure(config).build_from_hir(tree).map_err(too_large)
}

fn too_large(error: BuildError) -> String {
    match error.size_limit() {
        Some(limit) => format!("Compiled regex exceeds size limit of {limit} bytes."),
        None => error.to_string(),
    }
}

/// Whether an expression names a line end, which no match has: `\n`, `[\n]`. A class of more, such
/// as `[^a]` or `\s`, has other members.
///
/// # Errors
/// What is wrong with the expression.
pub fn names_line_end(pattern: &str) -> Result<bool, String> {
    let mut parser = ast::parse::ParserBuilder::new().nest_limit(LEVELS).build();
    let tree = parser.parse(pattern).map_err(message)?;
    let found = ast::visit(&tree, LineEnds { found: false }).unwrap_or_else(|never| match never {});
    Ok(found || has_line_end(&parsed(pattern)?))
}

/// Looks for line ends that stand outside of brackets.
struct LineEnds {
    found: bool,
}

impl ast::Visitor for LineEnds {
    type Output = bool;
    type Err = std::convert::Infallible;

    fn finish(self) -> Result<bool, Self::Err> {
        Ok(self.found)
    }

    fn visit_pre(&mut self, part: &ast::Ast) -> Result<(), Self::Err> {
        self.found |= matches!(part, ast::Ast::Literal(literal) if literal.c == '\n');
        Ok(())
    }
}

/// Whether a text of the expression has a line end. Brackets with a single member are a text here.
fn has_line_end(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Literal(literal) => literal.0.contains(&b'\n'),
        HirKind::Repetition(repetition) => has_line_end(&repetition.sub),
        HirKind::Capture(capture) => has_line_end(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().any(has_line_end),
        HirKind::Empty | HirKind::Look(_) | HirKind::Class(_) => false,
    }
}

fn message(error: impl ToString) -> String {
    let text = error.to_string();
    text.lines().last().unwrap_or_default().replace("error: ", "")
}

/// The expression as the user has written it.
fn parsed(pattern: &str) -> Result<Hir, String> {
    let mut parser = ParserBuilder::new().multi_line(true).utf8(false).nest_limit(LEVELS).build();
    parser.parse(pattern).map_err(message)
}

/// The expression without line ends.
fn within_lines(pattern: &str) -> Result<Hir, String> {
    parsed(pattern).map(without_line_ends)
}

fn without_line_ends(hir: Hir) -> Hir {
    let all = |parts: Vec<Hir>| parts.into_iter().map(without_line_ends).collect();
    match hir.into_kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Look(look) => Hir::look(look),
        HirKind::Literal(literal) if literal.0.contains(&b'\n') => Hir::fail(),
        HirKind::Literal(literal) => Hir::literal(literal.0),
        HirKind::Class(Class::Unicode(mut class)) => {
            class.difference(&ClassUnicode::new([ClassUnicodeRange::new('\n', '\n')]));
            Hir::class(Class::Unicode(class))
        }
        HirKind::Class(Class::Bytes(mut class)) => {
            class.difference(&ClassBytes::new([ClassBytesRange::new(b'\n', b'\n')]));
            Hir::class(Class::Bytes(class))
        }
        HirKind::Repetition(mut repetition) => {
            *repetition.sub = without_line_ends(*repetition.sub);
            Hir::repetition(repetition)
        }
        HirKind::Capture(mut capture) => {
            *capture.sub = without_line_ends(*capture.sub);
            Hir::capture(capture)
        }
        HirKind::Concat(parts) => Hir::concat(all(parts)),
        HirKind::Alternation(parts) => Hir::alternation(all(parts)),
    }
}

/// Whether a search over many lines finds what a search in each line finds. `\A`, `\z`, and a `^`
/// without the flag `m`, match at the ends of the whole text only. With the flag `R` the end of a
/// line depends on what comes behind it.
fn is_about_lines(looks: LookSet) -> bool {
    let others = [Look::Start, Look::End, Look::StartCRLF, Look::EndCRLF];
    !others.into_iter().any(|look| looks.contains(look))
}

/// The name of a group in `with` that `regex` does not have: `$name` or `${name}`.
pub fn unknown_group(regex: &Regex, with: &[u8]) -> Option<String> {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let mut rest = with;
    while let Some(at) = memchr::memchr(b'$', rest) {
        rest = &rest[at + 1..];
        let braced = rest.starts_with(b"{");
        let name = match rest {
            [b'$', after @ ..] => {
                rest = after;
                continue;
            }
            [b'{', after @ ..] => match memchr::memchr(b'}', after) {
                Some(end) => &after[..end],
                None => continue,
            },
            _ => &rest[..rest.iter().position(|byte| !is_name(byte)).unwrap_or(rest.len())],
        };
        let name = String::from_utf8_lossy(name);
        let known = match name.parse::<usize>() {
            Ok(number) => number < regex.captures_len(),
            Err(_) => regex.group_info().pattern_names(PatternID::ZERO).flatten().any(|other| other == name),
        };
        if !known && (braced || !name.is_empty()) {
            return Some(name.into_owned());
        }
    }
    None
}

/// A line without its end.
pub fn chomp(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").unwrap_or(line)
}

/// The splitter of [`matches()`].
#[derive(Debug, Clone)]
pub struct Matches {
    regex: Regex,
    /// Whether a search over many lines finds each line that a search in the line finds.
    whole: bool,
    /// The line that has begun and not ended.
    line: Vec<u8>,
    open: Option<bool>,
}

/// Each match that is not empty is a true section. None reaches over a line end.
pub fn matches(pattern: &str) -> Splitter<u8, Matches> {
    const PARSED: &str = "the parser has built the same expression";
    let tree = within_lines(pattern).expect(PARSED);
    let whole = is_about_lines(tree.properties().look_set());
    Splitter::new(Matches { regex: built(&tree).expect(PARSED), whole, line: Vec::new(), open: None })
}

impl Matches {
    fn part<P: Sections<u8>>(open: &mut Option<bool>, verdict: bool, part: &[u8], out: &mut P) -> Flow {
        if part.is_empty() {
            return ControlFlow::Continue(());
        }
        if let Some(before) = open.replace(verdict)
            && before != verdict
        {
            out.close(before)?;
        }
        out.part_chunk(verdict, part)
    }

    /// The sections of one line, with its end if it has one.
    fn one_line<P: Sections<u8>>(regex: &Regex, open: &mut Option<bool>, line: &[u8], out: &mut P) -> Flow {
        let mut from = 0;
        for found in regex.find_iter(chomp(line)).filter(|found| !found.is_empty()) {
            Self::part(open, false, &line[from..found.start()], out)?;
            Self::part(open, true, &line[found.range()], out)?;
            // Two matches in a row are two sections.
            out.close(true)?;
            *open = None;
            from = found.end();
        }
        Self::part(open, false, &line[from..], out)
    }
}

impl Split<u8> for Matches {
    fn put<P: Sections<u8>>(&mut self, item: &u8, out: &mut P) -> Flow {
        self.put_chunk(std::slice::from_ref(item), out)
    }

    fn put_chunk<P: Sections<u8>>(&mut self, mut chunk: &[u8], out: &mut P) -> Flow {
        let Matches { regex, line, open, .. } = self;
        if !line.is_empty() {
            let end = memchr::memchr(b'\n', chunk).map_or(chunk.len(), |at| at + 1);
            line.extend_from_slice(&chunk[..end]);
            chunk = &chunk[end..];
            if !line.ends_with(b"\n") {
                return ControlFlow::Continue(());
            }
            let flow = Self::one_line(regex, open, line, out);
            line.clear();
            flow?;
        }
        while let Some(at) = memchr::memchr(b'\n', chunk) {
            Self::one_line(regex, open, &chunk[..=at], out)?;
            chunk = &chunk[at + 1..];
        }
        line.extend_from_slice(chunk);
        ControlFlow::Continue(())
    }

    fn end<P: Sections<u8>>(&mut self, out: &mut P) -> Flow {
        let line = std::mem::take(&mut self.line);
        Self::one_line(&self.regex, &mut self.open, &line, out)?;
        match self.open.take() {
            Some(verdict) => out.close(verdict),
            None => ControlFlow::Continue(()),
        }
    }

    /// `stream` begins with a line. The match is within a line, and so the caller goes on with the
    /// next line.
    fn search(&self, stream: &[u8]) -> Result<Option<Range<usize>>, ()> {
        let mut from = 0;
        while from < stream.len() {
            let start = match self.whole {
                true => match self.regex.find(Input::new(stream).range(from..)) {
                    Some(found) => found.start(),
                    None => return Ok(None),
                },
                false => from,
            };
            if start >= stream.len() {
                return Ok(None);
            }
            let begin = memchr::memrchr(b'\n', &stream[..start]).map_or(0, |at| at + 1);
            let next = memchr::memchr(b'\n', &stream[start..]).map_or(stream.len(), |at| start + at + 1);
            if let Some(found) = self.regex.find(chomp(&stream[begin..next])) {
                // An empty match stands for the first byte of its line.
                let found = begin + found.start()..begin + found.end();
                return Ok(Some(if found.is_empty() { begin..next.min(begin + 1) } else { found }));
            }
            from = next;
        }
        Ok(None)
    }
}
