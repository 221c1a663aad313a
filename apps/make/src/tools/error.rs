//! [`ToolError`]: why a tool cannot do what it was asked for. `tools::run` and the tools make it.
//! The texts are ninja's, because CMake and editors call the tools.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a tool cannot do what it was asked for. The text is for the user.
#[derive(Debug)]
#[non_exhaustive]
pub enum ToolError {
    /// There is no tool of this name.
    Unknown {
        /// The name.
        name: String,
        /// What the user may have meant, as the end of a sentence; empty if nothing is near.
        hint: String,
    },
    /// The tool does not have this option.
    Usage {
        /// The tool.
        tool: &'static str,
        /// What is wrong with the words.
        error: lexopt::Error,
        /// The help of the tool.
        usage: String,
    },
    /// `-t compdb-targets` needs a target. The text is its help.
    NoTarget(String),
    /// `-t clean -r` needs a rule.
    NoRule,
    /// `-t query` needs a file.
    NothingToQuery,
    /// `-t targets depth` takes a number.
    NotADepth(String),
    /// `-t targets` knows no such list.
    UnknownList,
    /// A file cannot be removed.
    Remove {
        /// Its path.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ToolError::Unknown { name, hint } => {
                write!(f, "unknown tool '{name}'{hint}; -t list names them")
            }
            ToolError::Usage { tool, error, usage } => write!(f, "{tool}: {error}\n{}", usage.trim_end()),
            ToolError::NoTarget(usage) => {
                let usage = usage.trim_end();
                write!(f, "compdb-targets expects the name of at least one target\n{usage}")
            }
            ToolError::NoRule => f.write_str("expected a rule to clean"),
            ToolError::NothingToQuery => f.write_str("expected a target to query"),
            ToolError::NotADepth(depth) => write!(f, "not a depth: {depth}"),
            ToolError::UnknownList => f.write_str("targets: expected rule [NAME], depth [N] or all"),
            ToolError::Remove { path, error } => write!(f, "remove({}): {error}", path.display()),
        }
    }
}

impl Error for ToolError {}
