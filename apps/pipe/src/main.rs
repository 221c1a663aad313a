//! The binary `selvedge-pipe`: parses the command line, reads the script, and runs, checks or
//! explains it.
//!
//! The exit statuses are grep's: 0 if something came out, 1 if nothing did or a count is 0, 2 after
//! an error, 141 if the reader of the output has gone. Each error goes through `refused`, which
//! writes it to the standard error.

#![forbid(unsafe_code)]

use selvedge_pipe::options::{HELP, Mode, Options, Request, STAGES_HELP, ShowProgress, parse};
use selvedge_pipe::parts::{LEAST, threads_of};
use selvedge_pipe::run::{Outcome, Settings, prepare, run};
use selvedge_pipe::{explain, interactive};
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

/// The exit status after an error, as grep's.
const ERROR: u8 = 2;

fn main() -> ExitCode {
    let text = match parse(std::env::args_os().skip(1)) {
        Ok(Request::Help) => HELP.to_string(),
        Ok(Request::Stages) => STAGES_HELP.to_string(),
        Ok(Request::Version) => concat!("selvedge-pipe ", env!("CARGO_PKG_VERSION"), "\n").to_string(),
        Ok(Request::Run(options)) => return ExitCode::from(serve(&options)),
        Err(error) => return ExitCode::from(refused(&error)),
    };
    ExitCode::from(shown(&text))
}

/// The exit status that a shell shows for a tool that has written to a pipe without a reader, and
/// was ended by the signal 13, `SIGPIPE`.
const READER_GONE: u8 = 128 + 13;

/// Writes to standard output. Returns the exit status.
fn shown(text: &str) -> u8 {
    // `io::stdout` takes all bytes and loses them, if the standard output is closed.
    let open = selvedge_io::stdio::stdout();
    match open.and_then(|_| io::stdout().write_all(text.as_bytes())) {
        Ok(()) => 0,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => READER_GONE,
        Err(error) => refused(&error.to_string()),
    }
}

fn refused(error: &str) -> u8 {
    // If the standard error is closed, then only the exit status tells of the error.
    let _ = writeln!(io::stderr(), "selvedge-pipe: {error}");
    ERROR
}

fn serve(options: &Options) -> u8 {
    let progress = match options.progress {
        ShowProgress::Always => true,
        ShowProgress::Never => false,
        ShowProgress::Auto => io::stderr().is_terminal() && !io::stdout().is_terminal(),
    };
    let threads = threads_of(options.threads);
    let settings = Settings { progress, threads, least: LEAST, sort_memory: options.sort_memory };
    let (name, text) = match (&options.script, &options.file) {
        (Some(script), _) => ("pipeline".to_string(), script.clone()),
        (None, Some(file)) => match std::fs::read_to_string(file) {
            Ok(text) => (file.display().to_string(), text),
            Err(error) => return refused(&format!("{}: {error}", file.display())),
        },
        (None, None) if options.interactive || io::stdin().is_terminal() => {
            return match interactive::serve(settings) {
                Ok(()) => 0,
                // The terminal has gone, and no pipeline runs.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
                Err(error) => refused(&format!("the terminal: {error}")),
            };
        }
        (None, None) => return refused("no pipeline; --help tells the options"),
    };
    let complain = |error: &selvedge_pipe::language::ScriptError| refused(&error.shown(&name, &text));
    let script = match prepare(&text) {
        Ok(script) => script,
        Err(error) => return complain(&error),
    };
    if script.is_empty() {
        return refused("the script has no pipeline");
    }
    match options.mode {
        Mode::Check => return 0,
        Mode::Explain => return shown(&explain::plan(&script, threads)),
        Mode::Run => {}
    }
    let _seeing = match selvedge_see::from_environment() {
        Ok(seeing) => seeing,
        Err(error) => return refused(&error.to_string()),
    };
    match run(script, settings) {
        Ok(Outcome::Found) => 0,
        Ok(Outcome::Nothing) => 1,
        Ok(Outcome::ReaderGone) => READER_GONE,
        Err(error) => complain(&error),
    }
}
