//! The command line: the texts of `--help` and `--stages`, and the parser.
//!
//! `main.rs` calls [`parse`]. [`STAGES_HELP`] lists the whole language for users, so a change of
//! `language/parse.rs` or `kinds.rs` belongs there too.

use lexopt::prelude::{Long, Short, Value, ValueExt};
use std::ffi::OsString;
use std::path::PathBuf;

/// What `--help` prints.
pub const HELP: &str = "\
Usage: selvedge-pipe [OPTIONS] [PIPELINE]
       selvedge-pipe [OPTIONS] -f FILE

Runs a pipeline of typed stages over standard input, files and commands:

  selvedge-pipe 'file access.log | lines | having substring \"500\" | count'

Without a pipeline it asks for some, if standard input is a terminal.

Options:
  -f FILE           read the pipelines from FILE; a script begins with
                    #!/usr/bin/env -S selvedge-pipe -f
  -i                ask for pipelines, with completion by Tab
  -n, --check       check the pipelines, and run nothing
  --explain         show the plan, and run nothing
  -j N, --threads N read and search a large file by N threads at most
                    (default: 0, which is one for each CPU, 16 at most)
  -S SIZE, --sort-memory SIZE
                    the memory of a sort, such as 64K, 500M or 2G; what needs
                    more goes to temporary files in $TMPDIR or /tmp
                    (default: half of what is free)
  --progress WHEN   a bar on standard error: auto, always, never
                    (default: auto, which is on a terminal, if the output is
                    none)
  --stages          show all stages and conditions
  -V, --version     the version
  -h, --help        this text

Exit status: 0 if something came out, 1 if nothing did or a count is 0, 2 after
an error, 141 if the reader of the output has gone (128 + SIGPIPE).
";

/// What `--stages` prints.
pub const STAGES_HELP: &str = "\
Kinds of items: bytes, lines (each with its end), records of columns, numbers.
K stands for any kind. N is a whole number from 1, X any number such as -1.5;
T is a text in quotes.

Sources
  file NAME..                         bytes     the files, one after the other
  stdin                               bytes     what a pipeline without a source reads
  text T                              bytes
  range X X [by X]                    numbers   from the first to the second
  sh T  or  `..`                      bytes     what a command writes

From one kind to another
  lines                   bytes   -> lines      the last line gets its end
  each CONDITION          bytes   -> lines      each true section becomes a line
  csv [T]                 bytes   -> records    T is the delimiter
  rows [T]                records -> bytes      CSV with the delimiter T
  fields [T]              lines   -> records    cut at T, or at blanks
  column N                records -> lines
  join T                  records -> lines      T stands between the columns
  decimals                lines   -> numbers    such as 7, -1.5, 1e3
  integers                lines   -> numbers    without a fraction
  bytes                   K       -> bytes
  count                   K       -> numbers
  sum, min, max           numbers -> numbers
  tally                   lines   -> records    how often each line came
  sh T  or  `..`          K       -> bytes      a command in the middle

Choosing and changing
  having CONDITION        K       -> K          select is the same
  having CONDITION numbered                     lines with their numbers
  first N, skip N, last N K       -> K          skip is all but the first N
  unique, number          lines   -> lines
  sort [by column N] [numeric] [descending]     lines, records, numbers
  columns N..             records -> records
  replace T with T        bytes, lines
  replace regex T with T  bytes, lines          $1 or ${1} is a group, $$ a $
  prepend T, append T     bytes, lines          around all, or each line
  substitute T            bytes                 instead of all
  uppercase, lowercase    bytes, lines
  suppress                K       -> K          nothing comes out
  unquote, quote          lines                 strings of JSON
  unescape, escape        lines                 text of XML
  gunzip, gzip, unzstd, zstd                    bytes, if built with the features gzip and zstd
  if CONDITION then STAGES else STAGES end      merged in order
  foreach CONDITION then STAGES else STAGES end the same, anew for each section;
                                                sh and joins may be among the stages
  while CONDITION then STAGES end               again and again, until nothing is true
  interleave (PIPELINE), zip (PIPELINE), concatenate (PIPELINE), merge (PIPELINE)
  to NAME, append to NAME K       -> nothing

Conditions on lines: substring T, regex T, prefix T, suffix T, equals T, empty,
  > X, < X, >= X, <= X, = X, != X
Conditions on records: column N with one of these. On numbers: > X and so on.
Conditions on bytes: substring T, regex T, prefix T, suffix T, line,
  line having .., letters, digits, whitespace, capitals, smalls, csv row [T],
  csv column N [T], json value, json member T, xml element T, xml content T,
  xml attribute T
On all: not C, C and C, C or C, first C, last C, even C, prefix C, suffix C,
  upto first C, last and after C, start of C, end of C, between C and C,
  C having C, C having only C, C followed by C, C nested in C,
  everything, nothing, (C)
";

/// When the bar is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ShowProgress {
    /// On a terminal, if the output is none.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What a run does with its script.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// It runs it.
    #[default]
    Run,
    /// It checks it.
    Check,
    /// It shows the plan.
    Explain,
}

/// The options of one call.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The pipelines on the command line.
    pub script: Option<String>,
    /// `-f`
    pub file: Option<PathBuf>,
    /// `-i`
    pub interactive: bool,
    /// `--check` or `--explain`
    pub mode: Mode,
    /// `--progress`
    pub progress: ShowProgress,
    /// `--threads`. With 0 the shell chooses.
    pub threads: usize,
    /// `--sort-memory`, in bytes.
    pub sort_memory: Option<usize>,
}

/// The result of [`parse`]: a text to print, or options for a run.
#[derive(Debug)]
pub enum Request {
    /// `--help`
    Help,
    /// `--stages`
    Stages,
    /// `--version`
    Version,
    /// Everything else.
    Run(Options),
}

/// Reads the command line.
///
/// # Errors
/// For the user.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Request, String> {
    parsed(arguments).map_err(|error| format!("{error}; --help tells the options"))
}

/// The number of bytes that a text says: a whole number above 0 with `K`, `M` or `G` behind it.
fn size(text: &str) -> Option<usize> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let power = ["K", "M", "G"].iter().position(|known| *known == unit)?;
    let number: usize = number.parse().ok()?;
    number.checked_mul(1024_usize.pow(power as u32 + 1)).filter(|bytes| *bytes > 0)
}

fn parsed(arguments: impl IntoIterator<Item = OsString>) -> Result<Request, lexopt::Error> {
    let mut parser = lexopt::Parser::from_args(arguments);
    let mut options = Options::default();
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Request::Help),
            Short('V') | Long("version") => return Ok(Request::Version),
            Long("stages") => return Ok(Request::Stages),
            Short('f') => options.file = Some(parser.value()?.into()),
            Short('i') => options.interactive = true,
            Short('n') | Long("check") => options.mode = Mode::Check,
            Long("explain") => options.mode = Mode::Explain,
            Short('j') | Long("threads") => options.threads = parser.value()?.parse()?,
            Short('S') | Long("sort-memory") => {
                let text = parser.value()?.string()?;
                let refused = || format!("--sort-memory {text} is no size such as 64K, 500M or 2G");
                options.sort_memory = Some(size(&text).ok_or_else(refused)?);
            }
            Long("progress") => {
                options.progress = match &parser.value()?.string()?[..] {
                    "auto" => ShowProgress::Auto,
                    "always" => ShowProgress::Always,
                    "never" => ShowProgress::Never,
                    other => return Err(format!("--progress {other} is none of: auto, always, never").into()),
                }
            }
            Value(script) if options.script.is_none() && options.file.is_none() => {
                options.script = Some(script.string()?);
            }
            Value(_) => return Err("one pipeline is run; put it in quotes".into()),
            other => return Err(other.unexpected()),
        }
    }
    if options.script.is_some() && options.file.is_some() {
        return Err("a pipeline and -f at once".into());
    }
    Ok(Request::Run(options))
}
