//! A tree as text. [`parse`](super::parse::parse) reads the text as the same tree; `fuzz.rs` checks
//! this.
//!
//! `explain.rs` prints stages, `kinds.rs` their first words for messages, and `fuzz.rs` whole
//! scripts. A condition gets brackets where the grammar in `language.rs` needs them: `Binding`
//! has the levels of that grammar.

use super::tree::*;
use selvedge_pipeline::Number;
use std::fmt::{self, Write};

/// A pipeline as text, on one line.
///
/// # Examples
/// ```
/// use selvedge_pipe::language::{parse, print::script};
///
/// let text = "lines|having not(substring 'warp')  # and so on\n|count";
/// assert_eq!(script(&parse(text).unwrap()), "lines | having not substring \"warp\" | count");
/// ```
pub fn script(pipelines: &[Pipeline]) -> String {
    let texts: Vec<String> = pipelines.iter().map(|stages| pipeline(stages)).collect();
    texts.join("; ")
}

/// A pipeline as text.
pub fn pipeline(stages: &[Stage]) -> String {
    let texts: Vec<String> = stages.iter().map(|stage| stage.kind.to_string()).collect();
    texts.join(" | ")
}

/// A string in quotes, with escapes.
struct Quoted<'a>(&'a [u8]);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for piece in self.0.utf8_chunks() {
            for char in piece.valid().chars() {
                match char {
                    '\n' => f.write_str("\\n")?,
                    '\t' => f.write_str("\\t")?,
                    '\r' => f.write_str("\\r")?,
                    '\\' | '"' => write!(f, "\\{char}")?,
                    '\0'..='\x1f' | '\x7f' => write!(f, "\\x{:02x}", char as u32)?,
                    _ => f.write_char(char)?,
                }
            }
            piece.invalid().iter().try_for_each(|byte| write!(f, "\\x{byte:02x}"))?;
        }
        f.write_char('"')
    }
}

/// The word of a thing, by a table.
pub(crate) fn word<T: PartialEq>(table: &[(&'static str, T)], thing: &T) -> &'static str {
    table.iter().find(|(_, other)| other == thing).map_or("", |(word, _)| word)
}

impl fmt::Display for StageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = Quoted;
        match self {
            StageKind::File(names) => {
                f.write_str("file")?;
                names.iter().try_for_each(|name| write!(f, " {}", quoted(name.as_bytes())))
            }
            StageKind::Stdin => f.write_str("stdin"),
            StageKind::Text(text) => write!(f, "text {}", quoted(text)),
            StageKind::Range(from, to, step) => {
                write!(f, "range {from} {to}")?;
                if *step == Number::from(1_u64) { Ok(()) } else { write!(f, " by {step}") }
            }
            StageKind::Shell(command) => write!(f, "sh {}", quoted(command.as_bytes())),
            StageKind::Lines => f.write_str("lines"),
            StageKind::Each(condition) => write!(f, "each {condition}"),
            StageKind::Csv(b',') => f.write_str("csv"),
            StageKind::Csv(delimiter) => write!(f, "csv {}", quoted(&[*delimiter])),
            StageKind::Rows(b',') => f.write_str("rows"),
            StageKind::Rows(delimiter) => write!(f, "rows {}", quoted(&[*delimiter])),
            StageKind::Fields(None) => f.write_str("fields"),
            StageKind::Fields(Some(delimiter)) => write!(f, "fields {}", quoted(&[*delimiter])),
            StageKind::Column(column) => write!(f, "column {column}"),
            StageKind::Columns(columns) => {
                f.write_str("columns")?;
                columns.iter().try_for_each(|column| write!(f, " {column}"))
            }
            StageKind::Join(text) => write!(f, "join {}", quoted(text)),
            StageKind::Bytes => f.write_str("bytes"),
            StageKind::Decimals => f.write_str("decimals"),
            StageKind::Integers => f.write_str("integers"),
            StageKind::Having(condition, numbered) => {
                write!(f, "having {condition}{}", if *numbered { " numbered" } else { "" })
            }
            StageKind::First(count) => write!(f, "first {count}"),
            StageKind::Skip(count) => write!(f, "skip {count}"),
            StageKind::Last(count) => write!(f, "last {count}"),
            StageKind::Count => f.write_str("count"),
            StageKind::Fold(kind) => f.write_str(word(&FOLDS, kind)),
            StageKind::Unique => f.write_str("unique"),
            StageKind::Tally => f.write_str("tally"),
            StageKind::Sort(order) => order.fmt(f),
            StageKind::Number => f.write_str("number"),
            StageKind::Replace(Pattern::Text(text), with) => {
                write!(f, "replace {} with {}", quoted(text), quoted(with))
            }
            StageKind::Replace(Pattern::Regex(regex), with) => {
                write!(f, "replace regex {} with {}", quoted(regex.as_bytes()), quoted(with))
            }
            StageKind::Substitute(text) => write!(f, "substitute {}", quoted(text)),
            StageKind::Prepend(text) => write!(f, "prepend {}", quoted(text)),
            StageKind::Append(text) => write!(f, "append {}", quoted(text)),
            StageKind::Change(change) => f.write_str(word(CHANGES, change)),
            StageKind::Branch(branch) => branch.fmt(f),
            StageKind::While(condition, body) => {
                write!(f, "while {condition} then {} end", pipeline(body))
            }
            StageKind::Join2(kind, stages) => write!(f, "{} ({})", word(&JOINS, kind), pipeline(stages)),
            StageKind::To(name) => write!(f, "to {}", quoted(name.as_bytes())),
            StageKind::AppendTo(name) => write!(f, "append to {}", quoted(name.as_bytes())),
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sort")?;
        if let Some(column) = self.column {
            write!(f, " by column {column}")?;
        }
        f.write_str(if self.numeric { " numeric" } else { "" })?;
        f.write_str(if self.descending { " descending" } else { "" })
    }
}

impl fmt::Display for Branch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Branch { foreach, condition, then, otherwise } = self;
        write!(f, "{} {condition} then", if *foreach { "foreach" } else { "if" })?;
        if !then.is_empty() {
            write!(f, " {}", pipeline(then))?;
        }
        if !otherwise.is_empty() {
            write!(f, " else {}", pipeline(otherwise))?;
        }
        f.write_str(" end")
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Test::Substring(text) => write!(f, "substring {}", Quoted(text)),
            Test::Regex(regex) => write!(f, "regex {}", Quoted(regex.as_bytes())),
            Test::Prefix(text) => write!(f, "prefix {}", Quoted(text)),
            Test::Suffix(text) => write!(f, "suffix {}", Quoted(text)),
            Test::Equals(text) => write!(f, "equals {}", Quoted(text)),
            Test::Empty => f.write_str("empty"),
            Test::Compare(comparison, number) => write!(f, "{} {number}", word(&COMPARISONS, comparison)),
        }
    }
}

/// How tightly a condition binds: a condition within another one needs brackets if it binds less.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Binding {
    Having,
    Or,
    And,
    Unary,
}

impl ConditionKind {
    fn binding(&self) -> Binding {
        match self {
            ConditionKind::Having(..)
            | ConditionKind::HavingOnly(..)
            | ConditionKind::NestedIn(..)
            | ConditionKind::FollowedBy(..) => Binding::Having,
            ConditionKind::Or(_) => Binding::Or,
            ConditionKind::And(_) => Binding::And,
            _ => Binding::Unary,
        }
    }
}

/// A condition in a place where the parser expects one that binds at least so tightly.
struct Within<'a>(&'a Condition, Binding);

impl fmt::Display for Within<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Within(condition, binding) = self;
        if condition.kind.binding() < *binding {
            write!(f, "({condition})")
        } else {
            write!(f, "{condition}")
        }
    }
}

fn listed(f: &mut fmt::Formatter<'_>, conditions: &[Condition], word: &str, binding: Binding) -> fmt::Result {
    for (index, condition) in conditions.iter().enumerate() {
        if index > 0 {
            write!(f, " {word} ")?;
        }
        write!(f, "{}", Within(condition, binding))?;
    }
    Ok(())
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unary = |condition| Within(condition, Binding::Unary);
        match &self.kind {
            ConditionKind::Test(test) => test.fmt(f),
            ConditionKind::Column(column, test) => write!(f, "column {column} {test}"),
            ConditionKind::Line => f.write_str("line"),
            ConditionKind::Class(class) => f.write_str(word(&CLASSES, class)),
            ConditionKind::CsvRow(b',') => f.write_str("csv row"),
            ConditionKind::CsvRow(delimiter) => write!(f, "csv row {}", Quoted(&[*delimiter])),
            ConditionKind::CsvColumn(column, b',') => write!(f, "csv column {column}"),
            ConditionKind::CsvColumn(column, delimiter) => {
                write!(f, "csv column {column} {}", Quoted(&[*delimiter]))
            }
            ConditionKind::JsonValue => f.write_str("json value"),
            ConditionKind::JsonMember(name) => write!(f, "json member {}", Quoted(name.as_bytes())),
            ConditionKind::XmlElement(name) => write!(f, "xml element {}", Quoted(name.as_bytes())),
            ConditionKind::XmlContent(name) => write!(f, "xml content {}", Quoted(name.as_bytes())),
            ConditionKind::XmlAttribute(name) => write!(f, "xml attribute {}", Quoted(name.as_bytes())),
            ConditionKind::Everything => f.write_str("everything"),
            ConditionKind::Nothing => f.write_str("nothing"),
            ConditionKind::Not(inner) => write!(f, "not {}", unary(inner)),
            ConditionKind::And(all) => listed(f, all, "and", Binding::Unary),
            ConditionKind::Or(any) => listed(f, any, "or", Binding::And),
            ConditionKind::Place(place, inner) => {
                let word = match place {
                    Place::First => "first",
                    Place::Last => "last",
                    Place::Even => "even",
                    Place::UptoFirst => "upto first",
                    Place::LastAndAfter => "last and after",
                    Place::Prefix => "prefix",
                    Place::Suffix => "suffix",
                    Place::StartOf => "start of",
                    Place::EndOf => "end of",
                };
                write!(f, "{word} {}", unary(inner))
            }
            ConditionKind::Between(from, to) => write!(f, "between {} and {}", unary(from), unary(to)),
            ConditionKind::Having(outer, inner) => {
                write!(f, "{} having {}", Within(outer, Binding::Having), Within(inner, Binding::Or))
            }
            ConditionKind::HavingOnly(outer, inner) => {
                write!(f, "{} having only {}", Within(outer, Binding::Having), Within(inner, Binding::Or))
            }
            ConditionKind::NestedIn(found, around) => {
                write!(f, "{} nested in {}", Within(found, Binding::Having), Within(around, Binding::Or))
            }
            ConditionKind::FollowedBy(one, other) => {
                write!(f, "{} followed by {}", Within(one, Binding::Having), Within(other, Binding::Or))
            }
        }
    }
}
