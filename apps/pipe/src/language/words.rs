//! The words of the language. `parse.rs` proposes them in its errors, and
//! `interactive/complete.rs` offers them while the user types.

/// The words that begin a stage.
pub const STAGES: [&str; 45] = [
    "file",
    "cat",
    "stdin",
    "text",
    "range",
    "sh",
    "lines",
    "each",
    "csv",
    "rows",
    "fields",
    "column",
    "columns",
    "join",
    "bytes",
    "decimals",
    "integers",
    "having",
    "select",
    "first",
    "skip",
    "last",
    "count",
    "sum",
    "min",
    "max",
    "unique",
    "tally",
    "sort",
    "number",
    "replace",
    "substitute",
    "prepend",
    "append",
    "uppercase",
    "lowercase",
    "suppress",
    "if",
    "foreach",
    "while",
    "interleave",
    "zip",
    "concatenate",
    "merge",
    "to",
];

/// The stages about strings of JSON, text of XML and compressed bytes, which
/// [`CHANGES`](super::tree::CHANGES) has too.
pub const ENCODINGS: &[&str] = &[
    "unquote",
    "quote",
    "unescape",
    "escape",
    #[cfg(feature = "gzip")]
    "gzip",
    #[cfg(feature = "gzip")]
    "gunzip",
    #[cfg(feature = "zstd")]
    "zstd",
    #[cfg(feature = "zstd")]
    "unzstd",
];

/// What the language has for a word that other tools know, or for a stage that this build lacks.
pub fn instead_of(word: &str) -> Option<&'static str> {
    Some(match word {
        "grep" | "filter" | "where" | "egrep" => "lines that match: `lines | having regex \"..\"`",
        "sed" | "sub" | "gsub" => {
            "text in place of other text: `replace \"..\" with \"..\"`, or `replace regex`"
        }
        "awk" | "cut" | "split" => "columns of lines: `lines | fields | column 2`",
        "head" | "take" | "limit" => "items from the beginning: `first 10`",
        "tail" => "items from the end: `last 10`; all but the first: `skip 1`",
        "drop" => "all items but the first: `skip 1`",
        "wc" | "length" => "how many items there are: `count`",
        "uniq" | "distinct" => "each line once: `unique`; how often each comes: `tally`",
        "tr" => "other letters: `uppercase`, `lowercase`, `replace`",
        "jq" => "members of JSON: `each json member \"..\"`",
        "echo" | "print" | "printf" => {
            "text: `text \"..\"`; a pipeline without a target prints what comes out"
        }
        "tee" | "write" | "save" => "a file to write: `to NAME`",
        "map" => "a change of each section: `foreach line then .. end`",
        "help" | "?" => "`selvedge-pipe --stages` shows the stages",
        "exit" | "quit" => "Ctrl-D leaves",
        "gzip" | "gunzip" => "this selvedge-pipe was built without the feature `gzip`",
        "zstd" | "unzstd" => "this selvedge-pipe was built without the feature `zstd`",
        _ => return None,
    })
}

/// What the language has for a sign of other shells: `>`, `2>&1`, `<`, `&`, `&&`.
pub fn instead_of_sign(word: &str) -> Option<&'static str> {
    if word.contains('>') {
        return Some("`| to NAME` writes a file, and `| append to NAME` adds to one");
    }
    if word.contains('<') {
        return Some("`file NAME |` reads a file");
    }
    if word.starts_with('&') || word.ends_with('&') || word.contains("&&") {
        return Some("`;` stands between two pipelines, and a pipeline that fails ends the script");
    }
    None
}

/// The words that begin a condition.
pub const CONDITIONS: [&str; 32] = [
    "substring",
    "regex",
    "prefix",
    "suffix",
    "equals",
    "empty",
    "column",
    "line",
    "letters",
    "digits",
    "whitespace",
    "capitals",
    "smalls",
    "csv",
    "json",
    "xml",
    "everything",
    "nothing",
    "not",
    "first",
    "last",
    "even",
    "upto",
    "start",
    "end",
    "between",
    ">",
    "<",
    ">=",
    "<=",
    "=",
    "!=",
];
