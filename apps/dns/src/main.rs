//! The binary `selvedge-dns`: reads the command line and the zones, and starts the server.
//!
//! `options.rs` reads the command line, `zone/file.rs` the zones, and `server/mod.rs` answers.

#![forbid(unsafe_code)]

use selvedge::Runner;
use selvedge::signal::{Signal, Signals, signals};
use selvedge_dns::options::{DnsRequest, HELP, Options, Resolving, ZoneFile, parse};
use selvedge_dns::resolve::{Forwarders, Iteration, Resolver, Source};
use selvedge_dns::say::complain;
use selvedge_dns::server::{Server, Settings, ZoneCell};
use selvedge_dns::zone::{Zones, file};
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    let options = match parse(std::env::args_os().skip(1)) {
        Ok(DnsRequest::Help) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Ok(DnsRequest::Version) => {
            println!("selvedge-dns {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Ok(DnsRequest::Check(files)) => {
            return match read(&files) {
                Ok(_) => {
                    println!("The zones are right ({}).", files.len());
                    ExitCode::SUCCESS
                }
                Err(error) => refused(&error),
            };
        }
        Ok(DnsRequest::Serve(options)) => options,
        Err(error) => {
            complain(format_args!("selvedge-dns: {error}\nselvedge-dns --help tells more"));
            return ExitCode::from(2);
        }
    };
    match read(&options.zones).and_then(|zones| run(*options, zones)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => refused(&error),
    }
}

fn refused(error: &str) -> ExitCode {
    complain(format_args!("selvedge-dns: {error}"));
    ExitCode::FAILURE
}

/// Reads all zones, or says what is wrong with the first one that is wrong.
fn read(files: &[ZoneFile]) -> Result<Zones, String> {
    let mut zones = Zones::default();
    for ZoneFile { name, path } in files {
        let zone = file::read(name, path).map_err(|error| error.to_string())?;
        if !zones.insert(zone) {
            return Err(format!("the zone {} is named twice", name.fmt_with_dot()));
        }
    }
    Ok(zones)
}

fn run(options: Options, zones: Zones) -> Result<(), String> {
    let runner = Runner::from_environment().map_err(|error| error.to_string())?;
    let ended = runner.name("dns").run(serve(options, zones));
    ended.map_err(|failure| failure.to_string()).flatten()
}

async fn serve(options: Options, zones: Zones) -> Result<(), String> {
    let bytes = options.cache_bytes;
    let resolver = match options.resolving {
        Resolving::Not => None,
        Resolving::Forward(servers) => Some(Resolver::new(Source::Forward(Forwarders::new(servers)), bytes)),
        Resolving::Iterate => {
            // The servers of zones are few beside the answers.
            let for_servers = bytes / 4;
            Some(Resolver::new(Source::Iterate(Iteration::new(for_servers)), bytes - for_servers))
        }
    };
    let settings = Settings {
        zones,
        resolver,
        near: options.near,
        rate: options.rate,
        queries: options.queries,
        tcp_clients: options.tcp_clients,
        idle: options.idle,
    };
    // From here on the signal does not end the process.
    let arriving = signals(&[Signal::HUP]).map_err(|error| error.to_string())?;
    let server = Server::bind(settings, &options.listen).map_err(|error| error.to_string())?;
    drop(selvedge::spawn(reload(arriving, server.zones(), options.zones)));
    server.serve().await;
    Ok(())
}

/// Reads the zones again for each `SIGHUP`.
async fn reload(mut arriving: Signals, cell: ZoneCell, files: Vec<ZoneFile>) {
    while arriving.next().await.is_ok() {
        let names = files.clone();
        let zones = selvedge::blocking(move || read(&names)).await.map_err(|lost| lost.to_string());
        match zones.flatten() {
            Ok(zones) => *cell.lock().expect("no code panics under this lock") = Arc::new(zones),
            Err(error) => complain(format_args!("selvedge-dns: the old zones stay: {error}")),
        }
    }
}
