//! `selvedge-ftpd`: an FTP server. The binary in `main.rs` calls [`run`], and `--help` tells how it
//! is run.
//!
//! Each client has a thread (`session.rs`), which reads commands, answers them, and makes transfers
//! while it goes on reading commands. `server.rs` accepts clients and has what the threads share.
//!
//! | File | Content |
//! |---|---|
//! | `options.rs` | the command line |
//! | `server.rs`, `clients.rs` | accepting, signals; how many clients there may be |
//! | `accounts.rs` | users, passwords, rights |
//! | `telnet.rs`, `command.rs`, `reply.rs`, `control.rs` | lines, commands, replies, and the connection for them |
//! | `tls.rs` | the certificate, and connections over TLS |
//! | `session.rs` | the state of a client, and what each command does |
//! | `path.rs`, `tree.rs`, `upload.rs` | paths, the files below a root, files that are being stored |
//! | `listing.rs` | lists of directories |
//! | `address.rs`, `data.rs`, `transfer.rs`, `ascii.rs` | data connections, and what goes over them |
//! | `transfer_log.rs` | a line for each transfer |
//! | `fuzz.rs` | what fuzzing holds of lines and commands |

#![forbid(unsafe_code)]

mod accounts;
mod address;
mod ascii;
mod clients;
mod command;
mod control;
mod data;
#[doc(hidden)]
pub mod fuzz;
mod listing;
mod options;
mod path;
mod reply;
mod server;
mod session;
mod telnet;
mod tls;
mod transfer;
mod transfer_log;
mod tree;
mod upload;

use options::{HELP, Request};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use selvedge::Runner;
use server::report;
use std::process::ExitCode;

/// Reads the command line of the process, and does what it says until a signal ends it. Returns the
/// status with which the process exits.
pub fn run() -> ExitCode {
    let options = match options::parse(std::env::args_os().skip(1)) {
        Ok(Request::Help) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Ok(Request::Version) => {
            println!("selvedge-ftpd {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Ok(Request::Serve(options)) => *options,
        Err(error) => {
            report(format_args!("{error}; --help tells what can be said"));
            return ExitCode::from(2);
        }
    };
    let runner = match (options.workers, Runner::from_environment()) {
        (Some(workers), _) => Runner::new().workers(workers),
        (None, Ok(runner)) => runner,
        (None, Err(error)) => {
            report(format_args!("{error}"));
            return ExitCode::from(2);
        }
    };
    raise_descriptors();
    match runner.run(server::serve(options)) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => {
            report(format_args!("{error}"));
            ExitCode::FAILURE
        }
        Err(failure) => {
            report(format_args!("{failure}"));
            ExitCode::FAILURE
        }
    }
}

/// Raises the limit of open descriptors as far as the system permits. A client takes up to four:
/// its two connections, the listener for the next, and a file.
fn raise_descriptors() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    // If the system's own maximum is lower, the present limit stays.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}
