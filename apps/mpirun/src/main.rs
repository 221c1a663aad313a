//! The binary `selvedge-mpirun`: starts several processes of a program as the ranks of one job on
//! this machine, and waits for them.
//!
//! `options.rs` reads the command line, `job.rs` runs the processes, and `lines.rs` has the lines
//! that they write. The ranks share memory: `selvedge::mpi::processes` has the engine.

// # For readers of the source
//
// The launcher makes the shared memory of a job (`mpi::processes::LocalJob`), starts a process for
// each rank, writes their lines with the number of the rank, passes signals on, and tells the job
// when a process has ended. All of it runs on one OS thread, because the kernel ends a rank with
// the OS thread that has started it. There is no unsafe code.

#![forbid(unsafe_code)]

mod job;
mod lines;
mod options;

use options::{HELP, Request};
use std::process::ExitCode;

fn main() -> ExitCode {
    let options = match options::parse(std::env::args_os().skip(1)) {
        Ok(Request::Help) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Ok(Request::Run(options)) => options,
        Err(error) => {
            eprintln!("selvedge-mpirun: {error}\nselvedge-mpirun --help tells more");
            return ExitCode::from(2);
        }
    };
    // On this OS thread alone, because the kernel ends a rank with the OS thread that has started
    // it.
    match selvedge::run_local(job::run(options)) {
        Ok(Ok(code)) => ExitCode::from(code),
        Ok(Err(error)) => {
            eprintln!("selvedge-mpirun: {error}");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("selvedge-mpirun: {error}");
            ExitCode::FAILURE
        }
    }
}
