//! The binary `selvedge-make`: parses the command line, and calls `selvedge_make::run`.
//!
//! `--help`, `--version` and errors end here. The exit status is what `run` returns, and 1 after an
//! error.

#![forbid(unsafe_code)]

use selvedge_make::manifest::LIKE_NINJA;
use selvedge_make::options::{HELP, Request, parse};
use selvedge_make::say::{complain, say};
use std::error::Error;
use std::process::ExitCode;

fn main() -> ExitCode {
    let options = match parse(std::env::args_os().skip(1)) {
        Ok(Request::Help) => {
            say(HELP.trim_end());
            return ExitCode::SUCCESS;
        }
        Ok(Request::Version) => {
            say(LIKE_NINJA);
            return ExitCode::SUCCESS;
        }
        Ok(Request::List(list)) => {
            say(list.trim_end());
            return ExitCode::FAILURE;
        }
        Ok(Request::Run(options)) => options,
        Err(error) => return refused(&error),
    };
    let _seeing = match selvedge_see::from_environment() {
        Ok(seeing) => seeing,
        Err(error) => return refused(&error),
    };
    match selvedge_make::run(&options) {
        Ok(status) => ExitCode::from(status),
        Err(error) => refused(&error),
    }
}

fn refused(error: &dyn Error) -> ExitCode {
    complain(format_args!("selvedge-make: error: {error}"));
    ExitCode::FAILURE
}
