//! Zones as a whole for other servers, and the notices that they have changed.

use crate::common::*;
use domain::base::iana::{Opcode, Rcode};
use domain::base::{Message, Rtype};
use domain::rdata::AllRecordData;
use selvedge::net::{TcpStream, UdpSocket};
use selvedge::{Time, sleep};
use selvedge_compat::Compat;
use selvedge_dns::frame;
use selvedge_dns::networks::Networks;
use selvedge_dns::notify::{Serials, notify, serials};
use selvedge_dns::wire::heard;
use selvedge_dns::zone::{Zone, Zones};
use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const ZONE: &str = "www A 192.0.2.1\nchild NS ns.child\nns.child A 192.0.2.2\n*.wild TXT \"a\"\n";

/// The messages of the answer to a request for a zone, until the connection is silent for a second.
async fn fetched(server: SocketAddr, zone: &str, rtype: Rtype) -> Vec<Vec<u8>> {
    let stream = TcpStream::connect(server).await.unwrap();
    let query = heard::question(8, &key(zone), rtype, false, true);
    frame::write(Compat::new(&stream), &query).await.unwrap();
    let mut messages = Vec::new();
    loop {
        stream.set_read_deadline(Some(Time::now() + Duration::from_secs(1)));
        match frame::read(Compat::new(&stream)).await {
            Ok(Some(message)) => messages.push(message),
            _ => return messages,
        }
    }
}

/// The records of the messages in words, in their order.
fn records(messages: &[Vec<u8>]) -> Vec<String> {
    let mut all = Vec::new();
    for bytes in messages {
        let message = Message::from_slice(bytes).unwrap();
        let header = message.header();
        assert!(header.qr() && header.aa() && !header.tc() && header.id() == 8);
        assert_eq!(header.rcode(), Rcode::NOERROR);
        for record in message.answer().unwrap() {
            let record = record.unwrap();
            let (owner, rtype) = (record.owner().to_string().to_lowercase(), record.rtype());
            let data = record.to_any_record::<AllRecordData<_, _>>().unwrap();
            all.push(format!("{owner} {rtype} {}", data.data()));
        }
    }
    all
}

/// The same of a zone, in no order.
fn of_zone(zone: &Zone) -> HashSet<String> {
    let records = zone.nodes().flat_map(|node| node.records());
    records.map(|record| format!("{} {} {}", record.owner(), record.rtype(), record.data())).collect()
}

#[selvedge::test(seeds = 0..20)]
async fn a_zone_is_fetched_as_a_whole() {
    let all = zones(&[("example.org", ZONE)]);
    let expected = of_zone(all.named(&key("example.org")).unwrap());
    let server = serve(settings(all, None), "10.0.0.1:53");
    for rtype in [Rtype::AXFR, Rtype::IXFR] {
        let found = records(&fetched(server, "Example.org", rtype).await);
        assert!(found[0].starts_with("example.org SOA") && found[0] == found[found.len() - 1], "{found:?}");
        assert_eq!(found.len(), expected.len() + 1);
        assert_eq!(found.into_iter().collect::<HashSet<_>>(), expected);
    }
}

#[selvedge::test(seeds = 0..2)]
async fn a_large_zone_takes_several_messages() {
    let hosts: String = (0..3000).map(|number| format!("host-{number} A 10.0.0.1\n")).collect();
    let all = zones(&[("example.org", &hosts)]);
    let expected = of_zone(all.named(&key("example.org")).unwrap());
    let server = serve(settings(all, None), "10.0.0.1:53");
    let messages = fetched(server, "example.org", Rtype::AXFR).await;
    assert!(messages.len() > 2 && messages.iter().all(|message| message.len() < 17_000));
    let found = records(&messages);
    assert_eq!((found.len(), found.into_iter().collect::<HashSet<_>>()), (expected.len() + 1, expected));
}

#[selvedge::test(seeds = 0..5)]
async fn large_records_have_messages_of_their_own() {
    let text = |letter: &str, strings: usize| format!(" \"{}\"", letter.repeat(250)).repeat(strings);
    let zone = format!("a TXT{}\nb TXT{}\nc TXT{}\n", text("a", 200), text("b", 200), text("c", 20));
    let all = zones(&[("example.org", &zone)]);
    let expected = of_zone(all.named(&key("example.org")).unwrap());
    let messages = fetched(serve(settings(all, None), "10.0.0.1:53"), "example.org", Rtype::AXFR).await;
    assert!(messages.len() >= 2, "{}", messages.len());
    assert_eq!(records(&messages).into_iter().collect::<HashSet<_>>(), expected);
}

#[selvedge::test(seeds = 0..5)]
async fn a_zone_is_not_for_all() {
    let rcode = |messages: &[Vec<u8>]| {
        assert_eq!(messages.len(), 1);
        counts(&messages[0]).0
    };
    let server = serve(settings(zones(&[("example.org", ZONE)]), None), "10.0.0.1:53");
    for name in ["www.example.org", "example.com", "org"] {
        assert_eq!(rcode(&fetched(server, name, Rtype::AXFR).await), Rcode::REFUSED.to_int(), "{name}");
    }
    let mut closed = settings(zones(&[("example.org", ZONE)]), None);
    closed.transfers = Networks::new(vec!["192.0.2.0/24".parse().unwrap()]);
    let closed = serve(closed, "10.0.0.2:53");
    assert_eq!(rcode(&fetched(closed, "example.org", Rtype::AXFR).await), Rcode::REFUSED.to_int());
    // It answers other queries there.
    assert_eq!(ask_tcp(closed, "www.example.org", Rtype::A).await.answer.len(), 1);
}

/// Another server of zones, which notes the notices that it gets, and answers from the `silent`th
/// on.
fn secondary(at: &str, silent: usize) -> Arc<Mutex<Vec<(String, Time)>>> {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let noted = heard.clone();
    let socket = UdpSocket::bind(address(at)).unwrap();
    drop(selvedge::spawn(async move {
        let mut buffer = [0; 512];
        loop {
            let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
            let message = Message::from_slice(&buffer[..length]).unwrap();
            let question = message.sole_question().unwrap();
            assert_eq!((message.header().opcode(), question.qtype()), (Opcode::NOTIFY, Rtype::SOA));
            assert!(message.header().aa() && !message.header().qr());
            let name = question.qname().to_string();
            let count = {
                let mut noted = noted.lock().unwrap();
                noted.push((name, Time::now()));
                noted.len()
            };
            if count > silent {
                let mut answer = buffer[..length].to_vec();
                answer[2] |= 0x80;
                socket.send_to(&answer, from).await.unwrap();
            }
        }
    }));
    heard
}

/// The seconds between notices, rounded: datagrams take some time.
fn gaps(heard: &Mutex<Vec<(String, Time)>>) -> Vec<u64> {
    let times: Vec<Time> = heard.lock().unwrap().iter().map(|(_, time)| *time).collect();
    times.windows(2).map(|pair| pair[1].since(pair[0]).as_secs_f64().round() as u64).collect()
}

#[test]
fn notices_are_repeated_and_end() {
    selvedge::sim::simulate(0..10, || async {
        let all = zones(&[("example.org", ZONE), ("example.net", ZONE)]);
        let quick = secondary("10.0.0.11:53", 0);
        let slow = secondary("10.0.0.12:53", 4);
        let never = secondary("10.0.0.13:53", 100);
        let hosts = ["10.0.0.11:53", "10.0.0.12:53", "10.0.0.13:53"].map(address);
        notify(&all, &Serials::new(), &hosts[..1]);
        sleep(Duration::from_secs(200)).await;
        let mut names: Vec<String> = quick.lock().unwrap().iter().map(|(name, _)| name.clone()).collect();
        names.sort();
        assert_eq!(names, ["example.net", "example.org"]);
        // Only what has changed is told.
        let before = serials(&all);
        notify(&all, &before, &hosts);
        let one = changed_to(&all, 2);
        notify(&one, &before, &hosts[1..]);
        sleep(Duration::from_secs(200)).await;
        assert_eq!(quick.lock().unwrap().len(), 2);
        assert_eq!(gaps(&slow), [2, 4, 8, 16]);
        assert_eq!(gaps(&never), [2, 4, 8, 16]);
    });
}

/// The zones with another serial number of `example.org`.
fn changed_to(all: &Zones, serial: u32) -> Zones {
    let mut changed = Zones::default();
    let text = format!("@ SOA ns host {serial} 2 3 4 60\n@ NS ns\n{ZONE}");
    assert!(changed.insert(crate::signed_internet::of_text("example.org", &text)));
    assert!(changed.insert(all.named(&key("example.net")).unwrap().clone()));
    changed
}
