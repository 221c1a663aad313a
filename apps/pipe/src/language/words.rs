//! The words of the language. `parse.rs` proposes them in its complaints, and
//! `interactive/complete.rs` offers them while the user types.

/// The words that begin a stage.
pub const STAGES: [&str; 42] = [
    "file",
    "cat",
    "stdin",
    "text",
    "range",
    "sh",
    "lines",
    "each",
    "csv",
    "fields",
    "column",
    "columns",
    "join",
    "bytes",
    "integers",
    "having",
    "select",
    "first",
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

/// The words that begin a condition.
pub const CONDITIONS: [&str; 30] = [
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
