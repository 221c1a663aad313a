//! The command line: [`parse`], and the text of `--help`.

use crate::networks::{Network, Networks};
use crate::record::DomainName;
use lexopt::prelude::{Long, Short, ValueExt};
use selvedge_options::{UsageError, number, value};
use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// What `--help` prints.
pub const HELP: &str = "\
Usage: selvedge-dns [OPTIONS]

Answers DNS queries over UDP and TCP: for zones of its own, and as a caching resolver for
hosts nearby. An ADDRESS is 192.0.2.1, 192.0.2.1:5353, 2001:db8::1 or [2001:db8::1]:5353.

What it answers (at least one of these):
  --zone NAME=FILE    be an authority for the zone NAME, with the records in FILE
                      (RFC 1035's master format); may be repeated
  --forward ADDRESS   resolve other names through the resolver at ADDRESS; may be repeated
  --iterate           resolve other names from the root servers on

Other servers of the same zones:
  --transfer NETWORK  hosts of this network may fetch the zones over TCP and TLS;
                      may be repeated (default: none)
  --notify ADDRESS    tell the server there when a zone has changed; may be repeated

DNSSEC, of what is resolved:
  --trust-anchor FILE validate from the DS or DNSKEY records in FILE on, in the master format
                      (default: the root's keys, which are built in)
  --follow-anchors FILE
                      trust the keys by which their zones replace these (RFC 5011), and keep
                      them in FILE, which the server writes
  --insecure NAME     validate nothing at or below NAME; may be repeated
  --no-validation     validate nothing at all

Where and for which clients:
  --listen ADDRESS    listen there, over UDP and TCP; may be repeated (default: 127.0.0.1)
  --tls ADDRESS       listen there over TLS (port 853 without another one); may be repeated
  --certificate FILE  the certificate that the server shows over TLS, with its issuers, as PEM
  --key FILE          the private key of the certificate, as PEM
  --allow NETWORK     hosts of this network may use the resolver, and have no --rate;
                      may be repeated (default: this host, private and link-local networks)

Limits:
  --cache MEBIBYTES   memory for answers of other servers (default: 64)
  --rate NUMBER       answers a second over UDP for each other network of clients, which is
                      24 bits of an IPv4 address or 56 of an IPv6 address; 0: no limit
                      (default: 50)
  --queries NUMBER    queries that are worked on at once; more are dropped (default: 1000)
  --clients NUMBER    clients that are connected at once over TCP and TLS (default: 200)
  --idle SECONDS      time for a client over TCP to send a query (default: 10)

  --check             read the zones, say whether they are right, and end
  --version           the version
  -h, --help          this text

SIGHUP reads the zones and the certificate again; what is wrong stays as it was. Only errors are
written, to the standard error. The exit status is 2 if the command line is wrong, and 1 after
another error.

Environment:
  SELVEDGE_WORKERS    the number of workers, or local for one OS thread (default: one for each
                      CPU)
  SELVEDGE_SEE        lets the program's threads be looked at
";

/// What the command line asks for.
#[derive(Debug)]
pub enum DnsRequest {
    /// `--help`
    Help,
    /// `--version`
    Version,
    /// `--check`: the zones.
    Check(Vec<ZoneFile>),
    /// A server.
    Serve(Box<Options>),
}

/// A zone of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneFile {
    /// The zone's name.
    pub name: DomainName,
    /// The file.
    pub path: PathBuf,
}

/// Where the resolver asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolving {
    /// Nowhere: there is no resolver.
    Not,
    /// Other resolvers.
    Forward(Vec<SocketAddr>),
    /// The root servers, and the servers that they name.
    Iterate,
}

/// The options of a server.
#[derive(Clone, Debug)]
pub struct Options {
    /// `--zone`
    pub zones: Vec<ZoneFile>,
    /// `--forward`, `--iterate`
    pub resolving: Resolving,
    /// Whether answers are validated: not with `--no-validation`.
    pub validates: bool,
    /// `--trust-anchor`
    pub trust_anchor: Option<PathBuf>,
    /// `--follow-anchors`
    pub follow_anchors: Option<PathBuf>,
    /// `--insecure`
    pub insecure: Vec<DomainName>,
    /// `--listen`
    pub listen: Vec<SocketAddr>,
    /// `--tls`
    pub tls: Vec<SocketAddr>,
    /// `--certificate`, `--key`
    pub identity: Option<(PathBuf, PathBuf)>,
    /// `--allow`
    pub near: Networks,
    /// `--transfer`
    pub transfers: Networks,
    /// `--notify`
    pub notify: Vec<SocketAddr>,
    /// `--cache`, in bytes
    pub cache_bytes: usize,
    /// `--rate`
    pub rate: u32,
    /// `--queries`
    pub queries: u32,
    /// `--clients`
    pub tcp_clients: u32,
    /// `--idle`
    pub idle: Duration,
}

/// The port of the protocol.
const PORT: u16 = 53;

/// The port of the protocol over TLS (RFC 7858 §3.1).
const TLS_PORT: u16 = 853;

/// The most permits of a limit.
const LIMIT_MAX: u32 = 1_000_000;

/// Reads the command line.
///
/// # Errors
/// For the user.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<DnsRequest, UsageError> {
    let mut parser = lexopt::Parser::from_args(arguments);
    let (mut listen, mut forward, mut near) = (Vec::new(), Vec::new(), Vec::new());
    let mut transfers = Vec::new();
    let (mut check, mut iterate) = (false, false);
    let (mut certificate, mut key) = (None, None);
    let mut options = defaults();
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(DnsRequest::Help),
            Long("version") => return Ok(DnsRequest::Version),
            Long("check") => check = true,
            Long("zone") => options.zones.push(value(&mut parser, "--zone", zone)?),
            Long("forward") => forward.push(address(&mut parser, "--forward", PORT)?),
            Long("iterate") => iterate = true,
            Long("trust-anchor") => options.trust_anchor = Some(parser.value()?.into()),
            Long("follow-anchors") => options.follow_anchors = Some(parser.value()?.into()),
            Long("insecure") => {
                options.insecure.push(value(&mut parser, "--insecure", DomainName::vec_from_str)?)
            }
            Long("no-validation") => options.validates = false,
            Long("listen") => listen.push(address(&mut parser, "--listen", PORT)?),
            Long("tls") => options.tls.push(address(&mut parser, "--tls", TLS_PORT)?),
            Long("certificate") => certificate = Some(parser.value()?.into()),
            Long("key") => key = Some(parser.value()?.into()),
            Long("allow") => near.push(parser.value()?.parse::<Network>()?),
            Long("transfer") => transfers.push(parser.value()?.parse::<Network>()?),
            Long("notify") => options.notify.push(address(&mut parser, "--notify", PORT)?),
            Long("cache") => {
                let mebibytes: u32 = parser.value()?.parse()?;
                options.cache_bytes = (mebibytes as usize) << 20;
            }
            Long("rate") => options.rate = parser.value()?.parse()?,
            Long("queries") => options.queries = number(&mut parser, "--queries", 1..=LIMIT_MAX)?,
            Long("clients") => options.tcp_clients = number(&mut parser, "--clients", 1..=LIMIT_MAX)?,
            Long("idle") => {
                let seconds = number(&mut parser, "--idle", 1..=LIMIT_MAX)?;
                options.idle = Duration::from_secs(seconds.into());
            }
            other => return Err(other.unexpected().into()),
        }
    }
    if check {
        return Ok(DnsRequest::Check(options.zones));
    }
    options.resolving = resolving(forward, iterate)?;
    if options.zones.is_empty() && options.resolving == Resolving::Not {
        return Err(UsageError::together(
            "there is nothing to answer: name a --zone, --forward or --iterate",
        ));
    }
    if options.follow_anchors.is_some() && (options.resolving == Resolving::Not || !options.validates) {
        return Err(UsageError::together("--follow-anchors needs a resolver that validates"));
    }
    options.identity = match (certificate, key) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) if options.tls.is_empty() => None,
        _ => return Err(UsageError::together("--tls needs --certificate and --key")),
    };
    options.transfers = Networks::new(transfers);
    if !listen.is_empty() {
        options.listen = listen;
    }
    if !near.is_empty() {
        options.near = Networks::new(near);
    }
    Ok(DnsRequest::Serve(Box::new(options)))
}

/// Where the resolver asks, by `--forward` and `--iterate`.
fn resolving(forward: Vec<SocketAddr>, iterate: bool) -> Result<Resolving, UsageError> {
    match (forward.is_empty(), iterate) {
        (true, false) => Ok(Resolving::Not),
        (true, true) => Ok(Resolving::Iterate),
        (false, false) => Ok(Resolving::Forward(forward)),
        (false, true) => Err(UsageError::together("--forward and --iterate are two ways; name one")),
    }
}

fn defaults() -> Options {
    Options {
        zones: Vec::new(),
        resolving: Resolving::Not,
        validates: true,
        trust_anchor: None,
        follow_anchors: None,
        insecure: Vec::new(),
        listen: vec![SocketAddr::from(([127, 0, 0, 1], PORT))],
        tls: Vec::new(),
        identity: None,
        near: Networks::local(),
        transfers: Networks::new(Vec::new()),
        notify: Vec::new(),
        cache_bytes: 64 << 20,
        rate: 50,
        queries: 1000,
        tcp_clients: 200,
        idle: Duration::from_secs(10),
    }
}

fn zone(text: &str) -> Result<ZoneFile, String> {
    let (name, path) = text.split_once('=').ok_or("it is not NAME=FILE")?;
    let name = DomainName::vec_from_str(name).map_err(|error| error.to_string())?;
    Ok(ZoneFile { name, path: path.into() })
}

/// The value of the option called `option`: an address, with `port` if it has none.
fn address(parser: &mut lexopt::Parser, option: &str, port: u16) -> Result<SocketAddr, UsageError> {
    value(parser, option, |text| {
        let of_host = text.parse::<IpAddr>().map(|host| SocketAddr::new(host, port));
        text.parse().or(of_host).map_err(|_| "no address")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Result<DnsRequest, UsageError> {
        parse(line.split_whitespace().map(OsString::from))
    }

    fn options(line: &str) -> Options {
        match words(line) {
            Ok(DnsRequest::Serve(options)) => *options,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn the_defaults_are_safe() {
        let options = options("--zone example.org=zones/example.org");
        assert_eq!(options.listen, ["127.0.0.1:53".parse().unwrap()]);
        assert_eq!(options.resolving, Resolving::Not);
        assert_eq!(options.near, Networks::local());
        assert_eq!(options.zones[0].path, PathBuf::from("zones/example.org"));
        assert_eq!(options.zones[0].name.to_string(), "example.org");
        assert!(options.rate > 0 && options.cache_bytes < 1 << 30);
        assert!(options.validates && options.trust_anchor.is_none() && options.insecure.is_empty());
    }

    #[test]
    fn addresses_may_omit_the_port() {
        let options =
            options("--forward 192.0.2.1 --forward=[2001:db8::1]:5353 --listen ::1 --allow 10.0.0.0/8");
        let expected = ["192.0.2.1:53".parse().unwrap(), "[2001:db8::1]:5353".parse().unwrap()];
        assert_eq!(options.resolving, Resolving::Forward(expected.to_vec()));
        assert_eq!(options.listen, ["[::1]:53".parse().unwrap()]);
        assert!(!options.near.contain("127.0.0.1".parse().unwrap()));
    }

    #[test]
    fn zones_are_kept_from_other_servers() {
        let host = "10.0.0.2".parse().unwrap();
        assert!(!options("--iterate").transfers.contain(host));
        let options =
            options("--iterate --transfer 10.0.0.0/24 --transfer ::1 --notify 10.0.0.2 --notify [::1]:54");
        assert!(options.transfers.contain(host) && !options.transfers.contain("127.0.0.1".parse().unwrap()));
        assert_eq!(options.notify, ["10.0.0.2:53".parse().unwrap(), "[::1]:54".parse().unwrap()]);
    }

    #[test]
    fn tls_has_a_port_and_a_certificate() {
        let options = options("--iterate --tls ::1 --tls 192.0.2.1:8853 --certificate a.pem --key b.pem");
        assert_eq!(options.tls, ["[::1]:853".parse().unwrap(), "192.0.2.1:8853".parse().unwrap()]);
        assert_eq!(options.identity, Some(("a.pem".into(), "b.pem".into())));
    }

    #[test]
    fn trust_begins_where_the_operator_says() {
        let options = options(
            "--iterate --trust-anchor keys --follow-anchors new --insecure corp --insecure home.arpa",
        );
        assert_eq!(options.trust_anchor, Some("keys".into()));
        assert_eq!(options.follow_anchors, Some("new".into()));
        assert_eq!(
            options.insecure.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["corp", "home.arpa"]
        );
        assert!(!self::options("--iterate --no-validation").validates);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (line, part) in [
            ("", "nothing to answer"),
            ("--iterate --no-validation --follow-anchors f", "a resolver that validates"),
            ("--iterate --insecure a..b", "--insecure \"a..b\": "),
            ("--forward 1.1.1.1 --iterate", "two ways"),
            ("--iterate --tls 192.0.2.1 --key k", "--certificate"),
            ("--iterate --tls nowhere", "--tls \"nowhere\": no address"),
            ("--zone example.org", "NAME=FILE"),
            ("--zone a..b=file", "--zone \"a..b=file\": "),
            ("--listen localhost", "--listen \"localhost\": no address"),
            ("--allow 10/8", "10/8"),
            ("--iterate --queries 0", "--queries \"0\": not a number from 1 to 1000000"),
            ("--iterate --rate many", "many"),
            ("--iterate --trace", "--trace"),
            ("example.org", "example.org"),
        ] {
            let error = words(line).unwrap_err().to_string();
            assert!(error.contains(part), "{line}: {error}");
        }
        assert!(matches!(words("--zone .=root --help"), Ok(DnsRequest::Help)));
        assert!(matches!(words("--check"), Ok(DnsRequest::Check(zones)) if zones.is_empty()));
    }
}
