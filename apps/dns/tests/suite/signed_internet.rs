//! The simulated Internet of the tests of DNSSEC: zones that BIND has signed (`signed/sign.sh`),
//! from the root by RSA over `org` by ECDSA P-256 with NSEC3 and opt-out, to `example.org` by ECDSA
//! P-384 with NSEC and to others by Ed25519.

use crate::common::*;
use domain::base::iana::{ExtendedErrorCode, Rcode};
use domain::base::opt::ExtendedError;
use domain::base::{Message, Rtype};
use selvedge_compat::Compat;
use selvedge_dns::dnssec::anchors::Anchors;
use selvedge_dns::record::NameKey;
use selvedge_dns::resolve::delegation::{Delegation, NameServer};
use selvedge_dns::resolve::{Iteration, Resolver, Source, Validator};
use selvedge_dns::wire::heard::{self, Heard};
use selvedge_dns::zone::{Zone, Zones, file};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// A second of 2027.
pub(crate) fn in_2027() -> u32 {
    1_800_000_000
}

/// A second of 2037, when all signatures are too old.
pub(crate) fn in_2037() -> u32 {
    2_120_000_000
}

pub(crate) fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/signed").join(name)
}

pub(crate) fn of_text(origin: &str, text: &str) -> Zone {
    let load = &mut |_: &Path| Ok(text.as_bytes().to_vec());
    file::read_by(&name(origin), Path::new(origin), load).unwrap_or_else(|error| panic!("{error}"))
}

/// The zones of the other servers: origin, file, address.
pub(crate) const ZONES: [(&str, &str, &str); 10] = [
    (".", "root", "10.0.0.1:53"),
    ("org", "org", "10.0.0.2:53"),
    ("example.org", "example", "10.0.0.4:53"),
    ("edwards.org", "edwards", "10.0.0.5:53"),
    ("early.org", "early", "10.0.0.7:53"),
    ("late.org", "late", "10.0.0.7:53"),
    ("island.org", "island", "10.0.0.7:53"),
    ("wrong.org", "wrong", "10.0.0.7:53"),
    ("odd.org", "odd", "10.0.0.7:53"),
    ("slow.org", "slow", "10.0.0.7:53"),
];

const UNSIGNED: &str = "@ SOA ns host 1 2 3 4 60\n@ NS ns\nns A 10.0.0.6\nwww A 192.0.2.7\n";

/// Starts the servers of all zones, of which `change` may change the files' lines.
pub(crate) fn servers(change: impl Fn(&str, &str) -> Option<String>) {
    let mut by_address: Vec<(&str, Zones)> = Vec::new();
    for (origin, file, at) in ZONES {
        let text = std::fs::read_to_string(path(&format!("{file}.zone"))).unwrap();
        let lines: Vec<String> = text.lines().filter_map(|line| change(origin, line)).collect();
        let zone = of_text(origin, &(lines.join("\n") + "\n"));
        match by_address.last_mut().filter(|(last, _)| *last == at) {
            Some((_, zones)) => assert!(zones.insert(zone)),
            None => {
                let mut zones = Zones::default();
                zones.insert(zone);
                by_address.push((at, zones));
            }
        }
    }
    let mut unsigned = Zones::default();
    unsigned.insert(of_text("unsigned.org", UNSIGNED));
    by_address.push(("10.0.0.6:53", unsigned));
    for (at, zones) in by_address {
        serve(settings(zones, None), at);
    }
}

pub(crate) fn anchors() -> Anchors {
    anchors_of("root.ds")
}

pub(crate) fn anchors_of(file: &str) -> Anchors {
    Anchors::read(&path(file)).unwrap_or_else(|error| panic!("{error}"))
}

/// A resolver that knows the root, at an address of a simulated world.
pub(crate) fn resolver(validator: Validator) -> SocketAddr {
    resolver_at(validator, "10.0.0.10:53")
}

pub(crate) fn resolver_at(validator: Validator, at: &str) -> SocketAddr {
    let root = NameServer { name: name("ns"), addresses: vec!["10.0.0.1".parse().unwrap()] };
    let roots = Delegation { zone: NameKey::root(), servers: vec![root], ttl: u32::MAX };
    let iteration = Iteration::from_roots(roots, 1 << 20);
    let resolver = Resolver::new(Source::Iterate(iteration), 1 << 20).validating(validator);
    serve(settings(Zones::default(), Some(resolver)), at)
}

pub(crate) fn internet() -> SocketAddr {
    changed(|_, line| Some(line.into()))
}

pub(crate) fn changed(change: impl Fn(&str, &str) -> Option<String>) -> SocketAddr {
    servers(change);
    resolver(Validator::by_clock(anchors(), 1 << 20, in_2027))
}

/// An answer with what it says of its validation.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) heard: Heard,
    pub(crate) is_authentic: bool,
    pub(crate) error: Option<ExtendedErrorCode>,
}

/// Asks for signatures. With `unchecked` the client wants what the server cannot validate too.
pub(crate) async fn told(server: SocketAddr, asked: &str, rtype: Rtype, unchecked: bool) -> Option<Told> {
    let mut query = heard::signed_question(7, &key(asked), rtype, true);
    if !unchecked {
        query[3] &= !0x10;
    }
    let answer = exchange("127.0.0.1:0", server, &query).await?;
    let message = Message::from_slice(&answer).unwrap();
    let is_authentic = message.header().ad();
    assert_eq!(message.header().cd(), unchecked);
    let opt = message.opt().unwrap();
    let error = opt.opt().iter::<ExtendedError<&[u8]>>().next().map(|error| error.unwrap().code());
    let heard = match message.header().tc() {
        false => heard::read(&answer, 7, &key(asked), rtype).unwrap(),
        true => over_tcp(server, &query, asked, rtype).await,
    };
    Some(Told { heard, is_authentic, error })
}

async fn over_tcp(server: SocketAddr, query: &[u8], asked: &str, rtype: Rtype) -> Heard {
    let stream = selvedge::net::TcpStream::connect(server).await.unwrap();
    selvedge_dns::frame::write(Compat::new(&stream), query).await.unwrap();
    let answer = selvedge_dns::frame::read(Compat::new(&stream)).await.unwrap().unwrap();
    heard::read(&answer, 7, &key(asked), rtype).unwrap()
}

/// The code, whether it is authentic, and the number of records that are no signatures.
pub(crate) async fn outcome(server: SocketAddr, asked: &str, rtype: Rtype) -> (Rcode, bool, usize) {
    let told = told(server, asked, rtype, false).await.unwrap();
    let plain = told.heard.answer.iter().filter(|record| record.rtype() != Rtype::RRSIG).count();
    (told.heard.rcode, told.is_authentic, plain)
}

/// Why there is no answer.
pub(crate) async fn refusal(server: SocketAddr, asked: &str, rtype: Rtype) -> ExtendedErrorCode {
    let told = told(server, asked, rtype, false).await.unwrap();
    assert_eq!((told.heard.rcode, told.is_authentic), (Rcode::SERVFAIL, false), "{asked}: {told:?}");
    assert!(told.heard.answer.is_empty() && told.heard.authority.is_empty(), "{told:?}");
    told.error.unwrap_or_else(|| panic!("{asked}: {told:?}"))
}

/// A second Internet would have the addresses of the first.
pub(crate) fn changed_at_other_address(change: impl Fn(&str, &str) -> Option<String>) -> SocketAddr {
    let text = std::fs::read_to_string(path("example.zone")).unwrap();
    let lines: Vec<String> = text.lines().filter_map(|line| change("example.org", line)).collect();
    let mut zones = Zones::default();
    zones.insert(of_text("example.org", &(lines.join("\n") + "\n")));
    let of_zone = serve(settings(zones, None), "10.0.1.4:53");
    let anchor = std::fs::read_to_string(path("org.zone")).unwrap();
    let anchor = anchor.lines().find(|line| line.starts_with("example.org. 300 IN DS")).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, anchor).unwrap();
    let anchors = Anchors::read(file.path()).unwrap();
    let validator = Validator::by_clock(anchors, 1 << 20, in_2027);
    let resolver = forwarder(&[&of_zone.to_string()]).validating(validator);
    serve(settings(Zones::default(), Some(resolver)), "10.0.1.10:53")
}
