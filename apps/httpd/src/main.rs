//! `selvedge-httpd`: serves the files of a directory, or a site by its configuration. `--help`
//! tells how.
//!
//! The process is N workers: OS threads, each with a [`Cpu`](selvedge_core::Cpu), an event loop,
//! listening sockets and a [`Site`](selvedge_http::Site) of its own. They share the log file, the
//! routes and the word to stop, nothing else. `running.rs` runs them.

// # For readers of the source
//
// The program is command line, wiring and signals; `http`, `site` and `gateway` serve. Start at
// `configuration.rs`, which turns the files of a configuration into routes and options, and at
// `running.rs`, which has the workers, and the OS thread that hears signals and the commands of
// `control.rs`. `handlers.rs` keeps the parts of other programs' handlers over a reload.
//
// A process with threads cannot be forked. So a daemon (`background.rs`) and each of several
// processes (`prefork.rs`) is the program started once more, and so is the process that takes over
// in an upgrade, which gets the sockets through `takeover.rs`. The parent of several processes
// obeys commands (`commanded.rs`): it passes them on by sockets without a path (`nameless.rs`), and
// puts the answers together (`answers.rs`).
//
// With `--stack` each worker has a stack of its own (`stacked.rs`), and the site gets its
// connections as descriptors of the worker.
//
// `src/bin/selvedge-load` is the load generator, with clients that are threads too.

#![forbid(unsafe_code)]

mod answers;
mod background;
mod commanded;
mod configuration;
mod control;
mod descriptors;
mod handlers;
mod listeners;
mod nameless;
mod options;
mod prefork;
mod privileges;
mod reporting;
mod running;
mod stack_choice;
mod stacked;
mod startup_error;
mod systemd;
mod takeover;

use configuration::{ConfigurationFiles, Loaded};
use options::{CommandTarget, Options, Request};
use running::{Served, ServedContent};
use stack_choice::StackChoice;
use startup_error::StartupError;
use std::process::ExitCode;
use takeover::Predecessor;

fn main() -> ExitCode {
    let mut predecessor = match Predecessor::from_environment() {
        Ok(predecessor) => predecessor,
        Err(error) => {
            eprintln!("selvedge-httpd: what another process hands over: {error}");
            return ExitCode::FAILURE;
        }
    };
    match run(&mut predecessor) {
        Ok(()) => ExitCode::SUCCESS,
        Err(StartupError { message, status }) => {
            // A process that has handed over tells the words itself. A parent of several does not
            // wait for them.
            if predecessor.is_none() || prefork::is_one_of_several() {
                eprintln!("selvedge-httpd: {message}");
            }
            if let Some(predecessor) = predecessor {
                predecessor.refuse(&message);
            }
            ExitCode::from(status)
        }
    }
}

/// Does what the command line asks for. The server takes `predecessor` when it serves.
fn run(predecessor: &mut Option<Predecessor>) -> Result<(), StartupError> {
    match options::parse(std::env::args_os().skip(1))? {
        Request::Help => println!("{}", options::HELP),
        Request::Version => println!("selvedge-httpd {}", env!("CARGO_PKG_VERSION")),
        Request::Keys => print!("{}", selvedge_site::reference::markdown()),
        Request::Check(source) => check(&source)?,
        Request::Ctl(target, command) => print!("{}", ctl(target, &command)?),
        Request::Serve(options, stack) => serve_directory(*options, stack, predecessor)?,
        Request::Configured(source, stack) => serve_by(source, stack, predecessor)?,
    }
    Ok(())
}

/// Reads a configuration, and says what is in it.
fn check(source: &ConfigurationFiles) -> Result<(), StartupError> {
    let Loaded { routing, warnings, .. } = configuration::load(source)?;
    warnings.iter().for_each(|warning| eprintln!("selvedge-httpd: {warning}"));
    let (hosts, routes) = (routing.table().hosts.len(), routing.table().routes().count());
    println!("The configuration is right (hosts: {hosts}, routes: {routes}).");
    Ok(())
}

/// Sends a command to a running server.
fn ctl(target: CommandTarget, command: &str) -> Result<String, StartupError> {
    let socket = match target {
        CommandTarget::Socket(path) => path,
        CommandTarget::Source(source) => {
            let no_socket =
                || StartupError { message: "the configuration names no `control` socket".into(), status: 2 };
            configuration::load(&source)?.process.control.ok_or_else(no_socket)?
        }
    };
    control::ask(&socket, command)
}

fn serve_directory(
    options: Options,
    stack: Option<StackChoice>,
    predecessor: &mut Option<Predecessor>,
) -> Result<(), StartupError> {
    let tree = selvedge_http::DocumentRoot::new(&options.directory)?;
    let process = Default::default();
    running::serve(Served { options, stack, process, content: ServedContent::Directory(tree) }, predecessor)
}

fn serve_by(
    source: ConfigurationFiles,
    stack: Option<StackChoice>,
    predecessor: &mut Option<Predecessor>,
) -> Result<(), StartupError> {
    let Loaded { routing, archives, options, process, warnings, .. } = configuration::load(&source)?;
    if process.daemon && !background::is_daemon() {
        warnings.iter().for_each(|warning| eprintln!("selvedge-httpd: {warning}"));
        return background::start();
    }
    background::begin()?;
    if process.processes > 1 && stack.is_some() {
        let message = "--stack: the stack is in one process; say `processes = 1`".to_owned();
        return Err(StartupError { message, status: 2 });
    }
    if process.processes > 1 && !prefork::is_one_of_several() {
        return prefork::run(source, &options, &process, predecessor);
    }
    if !background::is_daemon() && !prefork::is_one_of_several() {
        warnings.iter().for_each(|warning| eprintln!("selvedge-httpd: {warning}"));
    }
    running::serve(
        Served { options, stack, process, content: ServedContent::Routes(source, routing, archives) },
        predecessor,
    )
}
