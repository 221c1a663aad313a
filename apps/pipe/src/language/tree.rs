//! The tree of a script, and the tables of words that parser and printer share.
//!
//! `language/parse.rs` makes the tree, and all later modules match on it. A new [`StageKind`] needs
//! a word in `words::STAGES`, a line in `options::STAGES_HELP` and an example in
//! `interactive/complete.rs`. The compiler finds its places in `kinds.rs` and `print.rs`, because
//! their `match`es name each variant. Other functions have an arm for all ordinary stages, so
//! decide for the new stage in `may_fail` and `leaves_lines` (`stage.rs`), `is_by_line`
//! (`by_line.rs`), `has_lines` and `placed` (`run.rs`) and `note` (`explain.rs`).

use super::error::Span;
use selvedge_pipeline::Number;

/// Some stages, each fed by the one before.
pub type Pipeline = Vec<Stage>;

/// A stage, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// Where its first word is.
    pub span: Span,
    /// What it does.
    pub kind: StageKind,
}

/// What a stage does. `N` is a natural number from 1, and `X` any number.
#[derive(Debug, Clone, PartialEq)]
pub enum StageKind {
    /// `file NAME..`
    File(Vec<String>),
    /// `stdin`
    Stdin,
    /// `text "T"`
    Text(Vec<u8>),
    /// `range X X [by X]`
    Range(Number, Number, Number),
    /// `sh "C"`
    Shell(String),
    /// `lines`
    Lines,
    /// `each S`
    Each(Condition),
    /// `csv ["D"]`
    Csv(u8),
    /// `rows ["D"]`
    Rows(u8),
    /// `fields ["D"]`
    Fields(Option<u8>),
    /// `column N`
    Column(usize),
    /// `columns N..`
    Columns(Vec<usize>),
    /// `join "T"`
    Join(Vec<u8>),
    /// `bytes`
    Bytes,
    /// `decimals`
    Decimals,
    /// `integers`
    Integers,
    /// `having S [numbered]`
    Having(Condition, bool),
    /// `first N`
    First(u64),
    /// `skip N`
    Skip(u64),
    /// `last N`
    Last(u64),
    /// `count`
    Count,
    /// `sum`, `min` or `max`
    Fold(FoldKind),
    /// `unique`
    Unique,
    /// `tally`
    Tally,
    /// `sort [by column N] [numeric] [descending]`
    Sort(Order),
    /// `number`
    Number,
    /// `replace "T" with "T"` or `replace regex "R" with "T"`
    Replace(Pattern, Vec<u8>),
    /// `substitute "T"`
    Substitute(Vec<u8>),
    /// `prepend "T"`
    Prepend(Vec<u8>),
    /// `append "T"`
    Append(Vec<u8>),
    /// A stage without arguments that changes each byte or each line.
    Change(Change),
    /// `if S then P else P end`, or the same with `foreach`
    Branch(Box<Branch>),
    /// `while S then P end`
    While(Box<Condition>, Pipeline),
    /// `interleave (P)` and so on
    Join2(JoinKind, Pipeline),
    /// `to NAME`
    To(String),
    /// `append to NAME`
    AppendTo(String),
}

/// How numbers become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoldKind {
    /// Their sum.
    Sum,
    /// The least of them.
    Min,
    /// The greatest of them.
    Max,
}

impl Stage {
    /// The path of the file that the stage writes, and whether the file keeps its content. `None`
    /// if the stage is no target.
    pub fn target(&self) -> Option<(&str, bool)> {
        match &self.kind {
            StageKind::To(path) => Some((path, false)),
            StageKind::AppendTo(path) => Some((path, true)),
            _ => None,
        }
    }
}

/// The order of a `sort`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Order {
    /// The column that is compared, from 1.
    pub column: Option<usize>,
    /// By value.
    pub numeric: bool,
    /// The greatest first.
    pub descending: bool,
    /// How many bytes of memory its items may need. The parser leaves it out, and
    /// [`limit_sorts`] sets it.
    pub memory: Option<usize>,
}

/// Sets how many bytes of memory the items of each `sort` in a pipeline may need.
pub fn limit_sorts(pipeline: &mut Pipeline, bytes: usize) {
    for stage in pipeline {
        match &mut stage.kind {
            StageKind::Sort(order) => order.memory = Some(bytes),
            StageKind::Join2(_, inner) | StageKind::While(_, inner) => limit_sorts(inner, bytes),
            StageKind::Branch(of) => {
                limit_sorts(&mut of.then, bytes);
                limit_sorts(&mut of.otherwise, bytes);
            }
            _ => {}
        }
    }
}

/// What `replace` looks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// A text.
    Text(Vec<u8>),
    /// A regular expression.
    Regex(String),
}

/// What a stage without arguments does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// ASCII letters become capitals.
    Uppercase,
    /// ASCII letters become small.
    Lowercase,
    /// Nothing comes out.
    Suppress,
    /// JSON strings become their text.
    Unquote,
    /// Text becomes JSON strings.
    Quote,
    /// XML text loses its entities.
    Unescape,
    /// Text becomes XML text.
    Escape,
    /// Bytes are compressed in the format gzip.
    #[cfg(feature = "gzip")]
    Gzip,
    /// Bytes in the format gzip are unpacked.
    #[cfg(feature = "gzip")]
    Gunzip,
    /// Bytes are compressed in the format Zstandard.
    #[cfg(feature = "zstd")]
    Zstd,
    /// Bytes in the format Zstandard are unpacked.
    #[cfg(feature = "zstd")]
    Unzstd,
}

/// The changes with their words.
pub const CHANGES: &[(&str, Change)] = &[
    ("uppercase", Change::Uppercase),
    ("lowercase", Change::Lowercase),
    ("suppress", Change::Suppress),
    ("unquote", Change::Unquote),
    ("quote", Change::Quote),
    ("unescape", Change::Unescape),
    ("escape", Change::Escape),
    #[cfg(feature = "gzip")]
    ("gzip", Change::Gzip),
    #[cfg(feature = "gzip")]
    ("gunzip", Change::Gunzip),
    #[cfg(feature = "zstd")]
    ("zstd", Change::Zstd),
    #[cfg(feature = "zstd")]
    ("unzstd", Change::Unzstd),
];

/// The folds with their words.
pub const FOLDS: [(&str, FoldKind); 3] =
    [("sum", FoldKind::Sum), ("min", FoldKind::Min), ("max", FoldKind::Max)];

/// The joins with their words.
pub const JOINS: [(&str, JoinKind); 4] = [
    ("interleave", JoinKind::Interleave),
    ("zip", JoinKind::Zip),
    ("concatenate", JoinKind::Concatenate),
    ("merge", JoinKind::Merge),
];

/// The classes of bytes with their words.
pub const CLASSES: [(&str, Class); 5] = [
    ("letters", Class::Letters),
    ("digits", Class::Digits),
    ("whitespace", Class::Whitespace),
    ("capitals", Class::Capitals),
    ("smalls", Class::Smalls),
];

/// The comparisons with their signs, the longer sign first.
pub const COMPARISONS: [(&str, Comparison); 6] = [
    (">=", Comparison::AtLeast),
    ("<=", Comparison::AtMost),
    ("!=", Comparison::Differs),
    (">", Comparison::Greater),
    ("<", Comparison::Less),
    ("=", Comparison::Equal),
];

/// A branch of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Branch {
    /// Whether the branches begin anew for each section.
    pub foreach: bool,
    /// Which sections take the first branch.
    pub condition: Condition,
    /// What happens to them. An empty pipeline changes nothing.
    pub then: Pipeline,
    /// What happens to the others.
    pub otherwise: Pipeline,
}

/// How two streams of lines become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKind {
    /// A line of each in turn.
    Interleave,
    /// A line of each on one line.
    Zip,
    /// First the one, then the other.
    Concatenate,
    /// Both are sorted, and so is what comes out.
    Merge,
}

/// A class of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// ASCII letters.
    Letters,
    /// ASCII digits.
    Digits,
    /// ASCII white space.
    Whitespace,
    /// ASCII capitals.
    Capitals,
    /// Small ASCII letters.
    Smalls,
}

/// How two numbers are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `>`
    Greater,
    /// `<`
    Less,
    /// `>=`
    AtLeast,
    /// `<=`
    AtMost,
    /// `=`
    Equal,
    /// `!=`
    Differs,
}

/// What cuts a stream into sections that are true or false, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// Where its first word is.
    pub span: Span,
    /// What it says.
    pub kind: ConditionKind,
}

/// What a condition says.
#[derive(Debug, Clone, PartialEq)]
pub enum ConditionKind {
    /// Something about a text or a number.
    Test(Test),
    /// `column N TEST`
    Column(usize, Test),
    /// `line`
    Line,
    /// A class of bytes.
    Class(Class),
    /// `csv row ["D"]`
    CsvRow(u8),
    /// `csv column N ["D"]`
    CsvColumn(usize, u8),
    /// `json value`
    JsonValue,
    /// `json member "M"`
    JsonMember(String),
    /// `xml element "E"`
    XmlElement(String),
    /// `xml content "E"`
    XmlContent(String),
    /// `xml attribute "A"`
    XmlAttribute(String),
    /// `everything`
    Everything,
    /// `nothing`
    Nothing,
    /// `not S`
    Not(Box<Condition>),
    /// `S and S ..`
    And(Vec<Condition>),
    /// `S or S ..`
    Or(Vec<Condition>),
    /// `first S`, and other choices by place
    Place(Place, Box<Condition>),
    /// `between S and S`
    Between(Box<Condition>, Box<Condition>),
    /// `S having S`
    Having(Box<Condition>, Box<Condition>),
    /// `S having only S`
    HavingOnly(Box<Condition>, Box<Condition>),
    /// `S nested in S`
    NestedIn(Box<Condition>, Box<Condition>),
    /// `S followed by S`
    FollowedBy(Box<Condition>, Box<Condition>),
}

/// Which true sections stay true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The first one.
    First,
    /// The last one.
    Last,
    /// Every second one.
    Even,
    /// All up to the end of the first one.
    UptoFirst,
    /// The last one and all after it.
    LastAndAfter,
    /// One at the beginning of the stream.
    Prefix,
    /// One at the end of the stream.
    Suffix,
    /// The empty place where each begins.
    StartOf,
    /// The empty place where each ends.
    EndOf,
}

/// What is asked about a text.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// `substring "T"`
    Substring(Vec<u8>),
    /// `regex "R"`
    Regex(String),
    /// `prefix "T"`
    Prefix(Vec<u8>),
    /// `suffix "T"`
    Suffix(Vec<u8>),
    /// `equals "T"`
    Equals(Vec<u8>),
    /// `empty`
    Empty,
    /// `> X` and so on: the text as a number. Text that is no number is false.
    Compare(Comparison, Number),
}
