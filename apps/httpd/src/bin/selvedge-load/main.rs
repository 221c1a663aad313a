//! `selvedge-load`: a client for load tests, on the threads that the server runs on.
//!
//! # Paper
//! [LZ07 §5.2]: the multithreaded client, in which each thread repeatedly asks for a file
//! chosen at random.
#![forbid(unsafe_code)]

mod load;

use load::{HELP, NoPlan, Plan};
use std::process::ExitCode;

fn main() -> ExitCode {
    let plan = match Plan::from_command_line() {
        Ok(plan) => plan,
        Err(NoPlan::Help) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(NoPlan::Usage(what)) => {
            eprintln!("selvedge-load: {what}\nselvedge-load --help tells how to use it");
            return ExitCode::from(2);
        }
        Err(NoPlan::Unavailable(what)) => {
            eprintln!("selvedge-load: {what}");
            return ExitCode::FAILURE;
        }
    };
    let json = plan.json;
    let report = match load::run(plan) {
        Ok(report) => report,
        Err(error) => {
            eprintln!("selvedge-load: {error}");
            return ExitCode::FAILURE;
        }
    };
    if json {
        println!("{}", report.json());
    } else {
        println!("{report}");
    }
    if let Some(error) = report.first_error() {
        eprintln!("selvedge-load: {error}");
    }
    if report.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
