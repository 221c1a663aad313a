//! The words behind `-t TOOL`: which tools and options there are, their help, and their parser.
//!
//! `tools::run` finds a tool in [`TOOLS`], and calls [`Tool::parse`] for its words. Names and
//! options are ninja's. Only `critical-path` and `-h` of each tool are this program's own.

use super::ToolError;
use lexopt::prelude::{Long, Short, Value};
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;

/// An option of a tool.
#[derive(Debug)]
struct Flag {
    short: char,
    /// Empty if there is none.
    long: &'static str,
    /// The name of its value; empty if it has none.
    value: &'static str,
    about: &'static str,
}

/// A tool of `-t`.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) name: &'static str,
    about: &'static str,
    usage: &'static str,
    flags: &'static [Flag],
}

/// The words of one call of a tool.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    flags: Vec<(char, Vec<u8>)>,
    /// The words that are no options: targets, most often. They may be no UTF-8.
    pub(super) words: Vec<Vec<u8>>,
}

const fn flag(short: char, long: &'static str, about: &'static str) -> Flag {
    Flag { short, long, value: "", about }
}

const fn with_value(short: char, long: &'static str, value: &'static str, about: &'static str) -> Flag {
    Flag { short, long, value, about }
}

const fn tool(name: &'static str, about: &'static str, usage: &'static str, flags: &'static [Flag]) -> Tool {
    Tool { name, about, usage, flags }
}

const EXPAND: Flag = flag('x', "", "expand @rspfile style response file invocations");
const PRINT0: Flag = flag('0', "print0", "end each entry with a zero byte instead of a line");

/// All tools.
pub(super) const TOOLS: [Tool; 16] = [
    tool(
        "clean",
        "remove built files",
        "clean [options] [targets]",
        &[
            flag('g', "", "remove files that generators have made too"),
            flag('r', "", "the targets are rules, with outputs that are removed"),
        ],
    ),
    tool("cleandead", "remove files that a build has made and the manifest has no more", "cleandead", &[]),
    tool(
        "commands",
        "the commands that make targets",
        "commands [options] [targets]",
        &[flag('s', "", "the last command only, not the whole chain")],
    ),
    tool("compdb", "the commands of rules, or of all, as JSON", "compdb [options] [rules]", &[EXPAND]),
    tool(
        "compdb-targets",
        "the commands that make targets, as JSON",
        // ninja's text names the other tool here.
        "compdb [-hx] target [targets]",
        &[EXPAND],
    ),
    tool("critical-path", "the commands that took longest in a row", "critical-path [targets]", &[]),
    tool("deps", "what the deps log has for targets, or for all", "deps [targets]", &[]),
    tool("graph", "the graph for graphviz", "graph [targets]", &[]),
    tool(
        "inputs",
        "all files that targets are made of",
        "inputs [options] [targets]",
        &[
            PRINT0,
            flag('E', "no-shell-escape", "do not quote the paths for the shell"),
            flag('d', "dependency-order", "each file behind those that it is made of"),
        ],
    ),
    tool(
        "missingdeps",
        "generated files that commands read and the manifest does not name",
        "missingdeps [targets]",
        &[],
    ),
    tool(
        "multi-inputs",
        "all files that each target is made of",
        "multi-inputs [options] [targets]",
        &[with_value('d', "delimiter", "DELIM", "between a target and a file, instead of a tab"), PRINT0],
    ),
    tool("query", "the inputs and outputs of files", "query FILES", &[]),
    tool("recompact", "write the logs anew", "recompact", &[]),
    tool(
        "restat",
        "take the files' times into the build log",
        "restat [options] [outputs]",
        &[with_value('b', "builddir", "DIR", "the directory of the log; then no manifest is read")],
    ),
    tool("rules", "the rules", "rules [options]", &[flag('d', "", "with their descriptions")]),
    tool("targets", "the targets by rule, depth or all", "targets [rule [NAME] | depth [N] | all]", &[]),
];

/// What `-t list` prints.
pub(super) fn write_list(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "selvedge-make subtools:")?;
    TOOLS.iter().try_for_each(|tool| writeln!(out, "{:>14}  {}", tool.name, tool.about))
}

impl Tool {
    /// The help of the tool.
    pub(super) fn usage(&self) -> String {
        let mut text = format!("usage: selvedge-make -t {}\n\noptions:\n", self.usage);
        let help = flag('h', "", "display this help message");
        let shown: Vec<_> =
            [&help].into_iter().chain(self.flags).map(|flag| (flag.shown(), flag.about)).collect();
        let width = shown.iter().map(|(shown, _)| shown.len() + 2).max().unwrap_or(0).max(7);
        for (shown, about) in shown {
            text.push_str(&format!("  {shown:<width$}{about}\n"));
        }
        text
    }

    /// Reads the words of a call. `None` if they ask for help.
    ///
    /// # Errors
    /// An option that the tool does not have.
    pub(super) fn parse(&self, words: &[OsString]) -> Result<Option<Arguments>, ToolError> {
        self.parsed(words).map_err(|error| ToolError::Usage { tool: self.name, error, usage: self.usage() })
    }

    fn parsed(&self, words: &[OsString]) -> Result<Option<Arguments>, lexopt::Error> {
        let mut parser = lexopt::Parser::from_args(words.iter().cloned());
        let mut arguments = Arguments::default();
        while let Some(word) = parser.next()? {
            let found = match &word {
                Short('h') | Long("help") => return Ok(None),
                Value(_) => None,
                Short(short) => self.flags.iter().find(|flag| flag.short == *short),
                Long(long) => self.flags.iter().find(|flag| flag.long == *long),
            };
            match (found, word) {
                (None, Value(word)) => arguments.words.push(word.into_vec()),
                (None, other) => return Err(other.unexpected()),
                (Some(flag), _) => {
                    let value = if flag.value.is_empty() { OsString::new() } else { parser.value()? };
                    arguments.flags.push((flag.short, value.into_vec()));
                }
            }
        }
        Ok(Some(arguments))
    }
}

impl Flag {
    fn shown(&self) -> String {
        let long = if self.long.is_empty() { String::new() } else { format!(", --{}", self.long) };
        let value = if self.value.is_empty() { String::new() } else { format!("={}", self.value) };
        format!("-{}{long}{value}", self.short)
    }
}

impl Arguments {
    /// Whether the call has this option.
    pub(super) fn has(&self, short: char) -> bool {
        self.value(short).is_some()
    }

    /// The value of this option. The last one counts.
    pub(super) fn value(&self, short: char) -> Option<&[u8]> {
        self.flags.iter().rev().find(|(flag, _)| *flag == short).map(|(_, value)| &value[..])
    }
}
