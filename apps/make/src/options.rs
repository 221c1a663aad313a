//! The command line: the text of `--help`, and the parser.
//!
//! `main.rs` calls [`parse`]. `app.rs` and the tools read [`Options`]. The options of ninja keep
//! ninja's names and meanings here, because CMake and Meson call this program in place of ninja.

use crate::build::jobserver::Form;
use lexopt::prelude::{Long, Short, Value, ValueExt};
use std::error::Error;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// What `--help` prints.
pub const HELP: &str = "\
Usage: selvedge-make [OPTIONS] [TARGETS]

Builds TARGETS as build.ninja says; without TARGETS, its default targets.
A target FILE^ stands for the first output that FILE is an input of.

Options:
  -C DIR            go to DIR first
  -f FILE           read FILE instead of build.ninja
  -j N              run N commands at the same time; 0: any number
                    (default: the number of CPUs and 2 more; with a job
                    server in MAKEFLAGS: as many as it grants)
  -k N              go on until N commands have failed; 0 or less: as far as
                    possible (default: 1)
  -l N              start no command while the load is above N, or while N
                    commands run
  -n                show the commands, and run none
  -v, --verbose     show whole commands
  --quiet           show what commands write, and failures; no progress
  -d MODE           explain: say why each command runs
                    stats: say what took how long
                    keepdepfile, keeprsp: keep these files
                    list: name these modes
  -t TOOL           a tool instead of a build; -t list names them
  -w FLAG           phonycycle=err: a phony target that is its own input is an
                    error; phonycycle=warn: a warning (default)
                    list: name these flags
  --timeline FILE   write the times of all commands, for Chrome or Perfetto
  --jobserver[=FORM]  grant jobs to builds that commands start (GNU make's way);
                    FORM is pipe, which every GNU make knows, or fifo, which
                    GNU make from 4.4 and ninja from 1.13 know (default: pipe)
  --version         the version of ninja that this one is like
  -h, --help        this text

Environment:
  NINJA_STATUS      the beginning of each line; %f finished, %t all, %r running,
                    %s started, %u not started, %p per cent, %P per cent of
                    the time, %o finished a second, %c the same of the last
                    few, %e %w time so far, %E %W time to come, %% a per cent
                    sign (default: \"[%f/%t] \")
  CLICOLOR_FORCE    if it is not 0, colours of commands are kept in a pipe
  MAKEFLAGS         tells of a job server
  SELVEDGE_SEE      lets the program's threads be looked at
";

/// What `-d list` prints.
const MODES: &str = "\
debugging modes:
  stats        print what took how long
  explain      explain what caused a command to run
  keepdepfile  keep depfiles after they have been read
  keeprsp      keep response files after their commands
several modes: -d MODE -d MODE
";

/// What `-w list` prints.
const FLAGS: &str = "\
warning flags:
  phonycycle={err,warn}  a phony target is its own input
";

/// The options and the targets of one call.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `-C`
    pub directory: Option<PathBuf>,
    /// `-f`
    pub file: Option<OsString>,
    /// `-j`; `Some(0)` is any number.
    pub jobs: Option<u32>,
    /// `-k`; 0 is any number.
    pub failures: Option<u32>,
    /// `-l`
    pub load: Option<f64>,
    /// `-n`
    pub dry_run: bool,
    /// `-v`
    pub verbose: bool,
    /// `--quiet`
    pub quiet: bool,
    /// `-d explain`
    pub explain: bool,
    /// `-d stats`
    pub stats: bool,
    /// `-d keepdepfile`
    pub keep_depfile: bool,
    /// `-d keeprsp`
    pub keep_rspfile: bool,
    /// `-w phonycycle=err`
    pub phony_cycle_fails: bool,
    /// The flags of `-w` that ninja had once.
    pub deprecated: Vec<String>,
    /// `--timeline`
    pub timeline: Option<PathBuf>,
    /// `--jobserver`
    pub jobserver: Option<Form>,
    /// `-t`, with everything behind it.
    pub tool: Option<(OsString, Vec<OsString>)>,
    /// The targets. A name may be no UTF-8.
    pub targets: Vec<Vec<u8>>,
}

/// The result of [`parse`]: a text to print, or options for a run.
#[derive(Debug)]
pub enum Request {
    /// `--help`
    Help,
    /// `--version`
    Version,
    /// `-d list` or `-w list`: the list. As with ninja, the exit status is that of an error.
    List(&'static str),
    /// Everything else.
    Run(Box<Options>),
}

/// An option is unknown, or its value is missing or has no meaning.
#[derive(Debug)]
pub struct OptionError(lexopt::Error);

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; --help tells the options", self.0)
    }
}

impl Error for OptionError {}

/// Reads the command line.
///
/// # Errors
/// The first option that has no meaning.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Request, OptionError> {
    parsed(arguments).map_err(OptionError)
}

/// How many commands may fail. 0 is any number, and so is less.
fn limit(failures: i64) -> u32 {
    u32::try_from(failures.max(0)).unwrap_or(0)
}

fn parsed(arguments: impl IntoIterator<Item = OsString>) -> Result<Request, lexopt::Error> {
    let mut parser = lexopt::Parser::from_args(arguments);
    let mut options = Options::default();
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Request::Help),
            Long("version") => return Ok(Request::Version),
            Short('C') => options.directory = Some(parser.value()?.into()),
            Short('f') => options.file = Some(parser.value()?),
            Short('j') => options.jobs = Some(parser.value()?.parse()?),
            Short('k') => options.failures = Some(limit(parser.value()?.parse()?)),
            Short('l') => options.load = Some(parser.value()?.parse()?),
            Short('n') => options.dry_run = true,
            Short('v') | Long("verbose") => options.verbose = true,
            Long("quiet") => options.quiet = true,
            Short('w') => {
                let flag = parser.value()?.string()?;
                match &flag[..] {
                    "phonycycle=err" => options.phony_cycle_fails = true,
                    "phonycycle=warn" => options.phony_cycle_fails = false,
                    "list" => return Ok(Request::List(FLAGS)),
                    "dupbuild=err" | "dupbuild=warn" | "depfilemulti=err" | "depfilemulti=warn" => {
                        options.deprecated.push(flag);
                    }
                    other => {
                        let flags = "phonycycle=err, phonycycle=warn, list";
                        return Err(format!("-w {other} is none of: {flags}").into());
                    }
                }
            }
            Long("timeline") => options.timeline = Some(parser.value()?.into()),
            Long("jobserver") => {
                let form = parser.optional_value().map(ValueExt::string).transpose()?;
                options.jobserver = Some(match form.as_deref() {
                    None | Some("pipe") => Form::Pipe,
                    Some("fifo") => Form::Fifo,
                    Some(other) => return Err(format!("--jobserver={other} is none of: pipe, fifo").into()),
                });
            }
            Short('d') => match &parser.value()?.string()?[..] {
                "explain" => options.explain = true,
                "stats" => options.stats = true,
                "keepdepfile" => options.keep_depfile = true,
                "keeprsp" => options.keep_rspfile = true,
                "list" => return Ok(Request::List(MODES)),
                // ninja had this mode once, and still accepts it.
                "nostatcache" => {}
                other => {
                    let modes = "explain, stats, keepdepfile, keeprsp, list";
                    return Err(format!("-d {other} is none of: {modes}").into());
                }
            },
            Short('t') => {
                let tool = parser.value()?;
                options.tool = Some((tool, parser.raw_args()?.collect()));
            }
            Value(target) => options.targets.push(target.into_vec()),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Request::Run(Box::new(options)))
}
