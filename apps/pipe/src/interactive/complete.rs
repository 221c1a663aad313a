//! Completion by Tab: the words that fit at the end of a text.
//!
//! `offer` in `terminal.rs` calls [`complete`]. It tries an example of each stage with
//! `kinds::yields`, so it offers only stages that take what the stage before yields. A new stage
//! needs an entry in `EXAMPLES`, because a word without one is not offered where kinds are known.
//! `tests/suite/interactive.rs` checks this for all words.

use crate::kinds::{Before, yields};
use crate::language::parse;
use crate::language::token::is_word;
use crate::language::tree::{Pipeline, Stage};
use crate::language::words::{CONDITIONS, ENCODINGS, STAGES, instead_of_sign};

/// The words that may stand at the end of `text`, where its last word is one of their beginnings.
/// Returns that beginning, and the words in alphabetical order.
///
/// Of the stages, these take what the stage before yields.
///
/// # Examples
/// ```
/// use selvedge_pipe::interactive::complete::complete;
///
/// // After lines, `fields` fits, and `file` does not.
/// assert_eq!(complete("file log | lines | fi").1, ["fields", "first"]);
/// assert_eq!(complete("fi").1, ["file", "first"]);
/// assert_eq!(complete("file log | lines | having sub").1, ["substring"]);
/// ```
pub fn complete(text: &str) -> (&str, Vec<String>) {
    let begin = text.rfind(|char: char| char.is_whitespace() || "|;(".contains(char));
    let begin = begin.map_or(0, |at| at + text[at..].chars().next().map_or(0, char::len_utf8));
    let (before, word) = text.split_at(begin);
    let mut words = candidates(before, word);
    words.retain(|candidate| candidate.starts_with(word) && *candidate != word);
    words.sort();
    words.dedup();
    (word, words)
}

/// Whether the names of files may stand behind `before`: its last stage is a source or a target.
fn takes_names(before: &str) -> bool {
    let stage = before.rsplit(['|', ';', '(']).next().unwrap_or_default();
    let words: Vec<&str> = stage.split_whitespace().collect();
    let first = words.iter().rposition(|word| ["then", "else"].contains(word)).map_or(0, |at| at + 1);
    matches!(words[first..], ["file" | "cat", ..] | ["to"] | ["append", "to"])
}

/// What may stand behind `before`. `word` is the beginning of it; only names of files need it.
fn candidates(before: &str, word: &str) -> Vec<String> {
    let strings = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    let trimmed = before.trim_end();
    let last =
        trimmed.rsplit(|char: char| char.is_whitespace() || "|;(".contains(char)).next().unwrap_or_default();
    if takes_names(trimmed) {
        return names(word);
    }
    let one_before = trimmed.strip_suffix(last).map_or("", str::trim_end);
    let follows = |word: &str| one_before.ends_with(word);
    match last {
        "upto" => return strings(&["first"]),
        "followed" => return strings(&["by"]),
        "and" if follows("last") => return strings(&["after"]),
        "by" if follows("followed") => return strings(&CONDITIONS),
        "first" if follows("upto") => return strings(&CONDITIONS),
        "having" | "select" | "each" | "foreach" | "if" | "while" | "not" | "and" | "or" | "between"
        | "only" | "of" | "in" | "after" | "even" => return strings(&CONDITIONS),
        _ => {}
    }
    let begins = trimmed.is_empty() || trimmed.ends_with(['|', ';', '(']) || ["then", "else"].contains(&last);
    if !begins {
        return strings(&[
            "then", "else", "end", "with", "and", "or", "having", "numbered", "by", "column", "nested", "in",
            "followed",
        ]);
    }
    // The text does not parse, because a branch or a join is open. So the kind is not known, and
    // all stages may follow.
    let Some(stages) = stages_before(trimmed) else {
        return strings(&[&STAGES[..], ENCODINGS].concat());
    };
    let mut place = Before::Start;
    for stage in &stages {
        match yields(stage, place) {
            Ok(kind) => place = Before::Stage(kind, stage),
            Err(_) => return Vec::new(),
        }
    }
    let fits = |word: &&&str| {
        EXAMPLES.iter().any(|(known, text)| {
            known == *word && parse(text).is_ok_and(|script| fits_behind(&script, place))
        })
    };
    STAGES.iter().chain(ENCODINGS).filter(|word| fits(word)).map(ToString::to_string).collect()
}

fn fits_behind(script: &[Pipeline], place: Before<'_>) -> bool {
    script[0].first().is_some_and(|stage| yields(stage, place).is_ok())
}

/// The stages of the last pipeline of a text that ends with `|`, or with nothing.
fn stages_before(text: &str) -> Option<Vec<Stage>> {
    let text = text.strip_suffix('|').unwrap_or(text);
    let mut script = parse(text).ok()?;
    if text.trim_end().ends_with(';') {
        return Some(Vec::new());
    }
    Some(script.pop().unwrap_or_default())
}

/// The files with paths that begin with `word`. A directory has a `/` at its end. Names that need
/// quotes are left out, and hidden ones if `word` does not ask for them.
fn names(word: &str) -> Vec<String> {
    let (directory, begun) = word.rsplit_once('/').map_or(("", word), |(directory, name)| (directory, name));
    let place = match (directory, word.starts_with('/')) {
        ("", true) => "/",
        ("", false) => ".",
        _ => directory,
    };
    let Ok(entries) = std::fs::read_dir(place) else { return Vec::new() };
    let path = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let is_bare = name.chars().all(is_word) && instead_of_sign(&name).is_none();
        if !is_bare || name.starts_with('.') != begun.starts_with('.') {
            return None;
        }
        let slash = if entry.path().is_dir() { "/" } else { "" };
        Some(format!("{}{name}{slash}", &word[..word.len() - begun.len()]))
    };
    let paths = entries.filter_map(|entry| path(entry.ok()?));
    // A word that begins with `#` is a comment.
    paths.filter(|path| !path.starts_with('#')).collect()
}

/// A stage for each word, to see whether it fits.
const EXAMPLES: &[(&str, &str)] = &[
    ("file", "file x"),
    ("cat", "cat x"),
    ("stdin", "stdin"),
    ("text", "text 'x'"),
    ("range", "range 1 2"),
    ("sh", "sh 'x'"),
    ("lines", "lines"),
    ("each", "each everything"),
    ("csv", "csv"),
    ("rows", "rows"),
    ("fields", "fields"),
    ("column", "column 1"),
    ("columns", "columns 1"),
    ("join", "join 'x'"),
    ("bytes", "bytes"),
    ("decimals", "decimals"),
    ("integers", "integers"),
    ("having", "having everything"),
    ("select", "select everything"),
    ("first", "first 1"),
    ("skip", "skip 1"),
    ("last", "last 1"),
    ("count", "count"),
    ("sum", "sum"),
    ("min", "min"),
    ("max", "max"),
    ("unique", "unique"),
    ("tally", "tally"),
    ("sort", "sort"),
    ("sort", "sort by column 1"),
    ("number", "number"),
    ("replace", "replace 'x' with 'y'"),
    ("substitute", "substitute 'x'"),
    ("prepend", "prepend 'x'"),
    ("append", "append 'x'"),
    ("uppercase", "uppercase"),
    ("lowercase", "lowercase"),
    ("suppress", "suppress"),
    ("if", "if everything then end"),
    ("foreach", "foreach everything then end"),
    ("while", "while everything then first 1 end"),
    ("interleave", "interleave (lines)"),
    ("concatenate", "concatenate (lines)"),
    ("to", "to x"),
    ("unquote", "unquote"),
    ("quote", "quote"),
    ("unescape", "unescape"),
    ("escape", "escape"),
    #[cfg(feature = "gzip")]
    ("gzip", "gzip"),
    #[cfg(feature = "gzip")]
    ("gunzip", "gunzip"),
    #[cfg(feature = "zstd")]
    ("zstd", "zstd"),
    #[cfg(feature = "zstd")]
    ("unzstd", "unzstd"),
    ("zip", "zip (lines)"),
    ("merge", "merge (lines)"),
];
