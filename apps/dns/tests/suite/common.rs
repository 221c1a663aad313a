//! Zones, servers, clients and other servers for the tests.

use domain::base::iana::{Class, OptRcode};
use domain::base::{Message, Record, Rtype, Ttl};
use domain::rdata::{A, Cname, Soa};
use selvedge::net::{TcpStream, UdpSocket};
use selvedge::time::timeout;
use selvedge_compat::Compat;
use selvedge_dns::frame;
use selvedge_dns::networks::Networks;
use selvedge_dns::record::{Data, DomainName, NameKey, ZoneRecord};
use selvedge_dns::resolve::{Forwarders, Resolver, Source};
use selvedge_dns::server::{Server, Settings};
use selvedge_dns::wire::answer::Answer;
use selvedge_dns::wire::heard::{self, Heard};
use selvedge_dns::zone::{Zone, Zones, file};
use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

/// Longer than the server works on a query.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn name(text: &str) -> DomainName {
    DomainName::vec_from_str(text).unwrap()
}

pub(crate) fn key(text: &str) -> NameKey {
    NameKey::new(&name(text))
}

pub(crate) fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn record(owner: &str, data: Data) -> ZoneRecord {
    Record::new(name(owner), Class::IN, Ttl::from_secs(300), data)
}

pub(crate) fn a(owner: &str, last: u8) -> ZoneRecord {
    record(owner, Data::A(A::new([192, 0, 2, last].into())))
}

pub(crate) fn cname(owner: &str, target: &str) -> ZoneRecord {
    record(owner, Data::Cname(Cname::new(name(target))))
}

/// An SOA record that allows negative answers for a minute.
pub(crate) fn soa(owner: &str) -> ZoneRecord {
    let (server, ttl) = (name("ns.invalid"), Ttl::from_secs(60));
    let serial = domain::base::Serial(1);
    record(owner, Data::Soa(Soa::new(server.clone(), server, serial, ttl, ttl, ttl, ttl)))
}

/// A zone of a text, which begins with its SOA and NS records already.
pub(crate) fn zone(origin: &str, text: &str) -> Zone {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    write!(file, "$TTL 300\n@ SOA ns host 1 2 3 4 60\n@ NS ns\n{text}").unwrap();
    file::read(&name(origin), file.path()).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn zones(all: &[(&str, &str)]) -> Zones {
    let mut zones = Zones::default();
    all.iter().for_each(|(origin, text)| assert!(zones.insert(zone(origin, text))));
    zones
}

/// Settings with the limits of the command line's defaults.
pub(crate) fn settings(zones: Zones, resolver: Option<Resolver>) -> Settings {
    Settings {
        zones,
        resolver,
        near: Networks::local(),
        transfers: Networks::local(),
        rate: 50,
        queries: 1000,
        tcp_clients: 200,
        idle: Duration::from_secs(10),
    }
}

/// Starts a server at an address, and returns where it listens.
pub(crate) fn serve(settings: Settings, at: &str) -> SocketAddr {
    let server = Server::bind(settings, &[address(at)]).unwrap();
    let listens = server.addresses()[0];
    drop(selvedge::spawn(server.serve()));
    listens
}

/// A resolver that asks these servers.
pub(crate) fn forwarder(servers: &[&str]) -> Resolver {
    let servers = servers.iter().map(|server| address(server)).collect();
    Resolver::new(Source::Forward(Forwarders::new(servers)), 1 << 20)
}

/// Sends a query over UDP from an address, and returns the datagram that comes back.
pub(crate) async fn exchange(from: &str, server: SocketAddr, query: &[u8]) -> Option<Vec<u8>> {
    let socket = UdpSocket::bind(address(from)).unwrap();
    socket.connect(server).unwrap();
    socket.send(query).await.ok()?;
    let mut buffer = vec![0; 65_536];
    let length = timeout(PATIENCE, socket.recv(&mut buffer)).await.ok()?.ok()?;
    buffer.truncate(length);
    Some(buffer)
}

/// Asks over UDP as a host nearby, with EDNS, and reads the answer.
pub(crate) async fn ask(server: SocketAddr, asked: &str, rtype: Rtype) -> Option<Heard> {
    let query = heard::question(7, &key(asked), rtype, true, true);
    let answer = exchange("127.0.0.1:0", server, &query).await?;
    Some(heard::read(&answer, 7, &key(asked), rtype).expect("an answer to the question"))
}

/// Asks over TCP.
pub(crate) async fn ask_tcp(server: SocketAddr, asked: &str, rtype: Rtype) -> Heard {
    let stream = TcpStream::connect(server).await.unwrap();
    let query = heard::question(8, &key(asked), rtype, true, true);
    frame::write(Compat::new(&stream), &query).await.unwrap();
    let answer = frame::read(Compat::new(&stream)).await.unwrap().unwrap();
    heard::read(&answer, 8, &key(asked), rtype).expect("an answer to the question")
}

/// The code of a message, and how many records its sections have.
pub(crate) fn counts(message: &[u8]) -> (u8, bool, [u16; 3]) {
    let message = Message::from_slice(message).unwrap();
    let (header, counts) = (message.header(), message.header_counts());
    (header.rcode().to_int(), header.tc(), [counts.ancount(), counts.nscount(), counts.arcount()])
}

/// An answer of a resolver with these records.
pub(crate) fn answer(records: Vec<ZoneRecord>) -> Answer {
    Answer { answer: records, has_resolver: true, ..Answer::empty(OptRcode::NOERROR) }
}
