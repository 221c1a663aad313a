//! The binary `selvedge-dns`: reads the command line and the zones, and starts the server.
//!
//! `options.rs` reads the command line, `zone/file.rs` the zones, and `server.rs` answers.

#![forbid(unsafe_code)]

use selvedge::Runner;
use selvedge::signal::{Signal, Signals, signals};
use selvedge_dns::dnssec::anchor_file::AnchorFile;
use selvedge_dns::dnssec::anchors::Anchors;
use selvedge_dns::notify::{Serials, notify, serials};
use selvedge_dns::options::{DnsRequest, HELP, Options, Resolving, ZoneFile, parse};
use selvedge_dns::resolve::{Forwarders, Iteration, Resolver, Source, Validator};
use selvedge_dns::say::complain;
use selvedge_dns::server::{Server, Settings, ZoneCell};
use selvedge_dns::tls::{Identity, IdentityCell};
use selvedge_dns::zone::{Zones, file};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

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

/// The resolver that the options ask for.
fn resolver(options: &Options) -> Result<Option<Resolver>, String> {
    // What is known of zones is little beside the answers.
    let of_zones = options.cache_bytes / 8;
    let source = match &options.resolving {
        Resolving::Not => return Ok(None),
        Resolving::Forward(servers) => Source::Forward(Forwarders::new(servers.clone())),
        Resolving::Iterate => Source::Iterate(Iteration::new(of_zones)),
    };
    let resolver = Resolver::new(source, options.cache_bytes - 2 * of_zones);
    if !options.validates {
        return Ok(Some(resolver));
    }
    let anchors = match &options.trust_anchor {
        Some(path) => Anchors::read(path).map_err(|error| error.to_string())?,
        None => Anchors::root(),
    };
    let anchors = options.insecure.iter().fold(anchors, Anchors::without);
    let validator = match &options.follow_anchors {
        Some(path) => {
            let file = AnchorFile::open(path, &anchors).map_err(|error| error.to_string())?;
            Validator::new(anchors, of_zones).following(file)
        }
        None => Validator::new(anchors, of_zones),
    };
    Ok(Some(resolver.validating(validator)))
}

async fn serve(options: Options, zones: Zones) -> Result<(), String> {
    let resolver = resolver(&options)?;
    let settings = Settings {
        zones,
        resolver,
        near: options.near,
        transfers: options.transfers,
        rate: options.rate,
        queries: options.queries,
        tcp_clients: options.tcp_clients,
        idle: options.idle,
    };
    // From here on the signal does not end the process.
    let arriving = signals(&[Signal::HUP]).map_err(|error| error.to_string())?;
    let mut server = Server::bind(settings, &options.listen).map_err(|error| error.to_string())?;
    let identity = match &options.identity {
        Some((certificate, key)) => {
            let identity = Identity::read(certificate, key).map_err(|error| error.to_string())?;
            Some(IdentityCell::new(Mutex::new(Arc::new(identity))))
        }
        None => None,
    };
    for (&address, identity) in options.tls.iter().zip(identity.iter().cycle()) {
        server.bind_tls(identity.clone(), address).map_err(|error| error.to_string())?;
    }
    let files = options.identity.zip(identity);
    let notice = Notice::first(server.zones(), options.notify);
    drop(selvedge::spawn(reload(arriving, notice, options.zones, files)));
    server.serve().await;
    Ok(())
}

/// The zones, and the servers that are told of their changes.
struct Notice {
    zones: ZoneCell,
    told: Serials,
    hosts: Vec<SocketAddr>,
}

impl Notice {
    /// Tells of all zones: the other servers may have old ones.
    fn first(zones: ZoneCell, hosts: Vec<SocketAddr>) -> Notice {
        let mut notice = Notice { zones, told: Serials::new(), hosts };
        notice.again();
        notice
    }

    /// Tells of the zones that have another serial number than the last time.
    fn again(&mut self) {
        let zones = self.zones.lock().expect("no code panics under this lock").clone();
        notify(&zones, &self.told, &self.hosts);
        self.told = serials(&zones);
    }
}

/// The files of a certificate and its key, and the cell of what is read from them.
type IdentityFiles = ((PathBuf, PathBuf), IdentityCell);

/// Reads the zones and the certificate again for each `SIGHUP`.
async fn reload(
    mut arriving: Signals,
    mut notice: Notice,
    files: Vec<ZoneFile>,
    identity: Option<IdentityFiles>,
) {
    while arriving.next().await.is_ok() {
        let names = files.clone();
        replace("zones", &notice.zones, move || read(&names)).await;
        notice.again();
        if let Some(((certificate, key), cell)) = identity.clone() {
            let read = move || Identity::read(&certificate, &key).map_err(|error| error.to_string());
            replace("certificate and key", &cell, read).await;
        }
    }
}

/// Puts what `read` finds on the disk into a cell. If it fails, what was there stays.
async fn replace<T: Send + 'static>(
    what: &str,
    cell: &Mutex<Arc<T>>,
    read: impl FnOnce() -> Result<T, String> + Send + 'static,
) {
    match selvedge::blocking(read).await.map_err(|lost| lost.to_string()).flatten() {
        Ok(value) => *cell.lock().expect("no code panics under this lock") = Arc::new(value),
        Err(error) => complain(format_args!("selvedge-dns: the old {what} stay: {error}")),
    }
}
