//! `selvedge-make`: builds what a `build.ninja` describes. `--help` tells how.

#![forbid(unsafe_code)]

use selvedge_make::options::{HELP, Request, parse};
use std::process::ExitCode;

/// The version of ninja that has the language, the options and the tools of this program. CMake and
/// Meson ask for it, and use what that version has.
const LIKE_NINJA: &str = "1.12.1";

fn main() -> ExitCode {
    let options = match parse(std::env::args_os().skip(1)) {
        Ok(Request::Help) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Ok(Request::Version) => {
            println!("{LIKE_NINJA}");
            return ExitCode::SUCCESS;
        }
        Ok(Request::Run(options)) => options,
        Err(error) => return refused(&error),
    };
    let seeing = selvedge_see::from_environment();
    match seeing.map_err(|error| error.to_string()).and_then(|_seeing| selvedge_make::run(&options)) {
        Ok(status) => ExitCode::from(status),
        Err(error) => refused(&error),
    }
}

fn refused(error: &str) -> ExitCode {
    eprintln!("selvedge-make: error: {error}");
    ExitCode::FAILURE
}
