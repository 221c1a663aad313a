//! What the server grants to which clients, in simulated worlds.

use crate::common::*;
use domain::base::Rtype;
use domain::base::iana::Rcode;
use selvedge::net::{TcpStream, UdpSocket};
use selvedge::time::timeout;
use selvedge::{Time, sleep, spawn_local};
use selvedge_compat::Compat;
use selvedge_dns::frame;
use selvedge_dns::server::Settings;
use selvedge_dns::wire::heard;
use std::time::Duration;

const SERVER: &str = "10.0.0.1:53";

#[selvedge::test(seeds = 0..20)]
async fn hosts_far_away_get_no_resolver() {
    let resolver = forwarder(&["10.0.0.9:53"]);
    let server = serve(settings(zones(&[("example.org", "www A 192.0.2.1\n")]), Some(resolver)), SERVER);
    let query = |asked| heard::question(1, &key(asked), Rtype::A, true, false);
    let answer = exchange("203.0.113.1:4000", server, &query("example.net")).await.unwrap();
    assert_eq!(counts(&answer), (Rcode::REFUSED.to_int(), false, [0, 0, 0]));
    assert_eq!(answer[3] & 0x80, 0, "it says that it resolves nothing");
    let answer = exchange("203.0.113.1:4000", server, &query("www.example.org")).await.unwrap();
    assert_eq!(counts(&answer), (0, false, [1, 0, 0]));
}

#[selvedge::test(seeds = 0..20)]
async fn a_flood_gets_few_answers() {
    let limited = Settings { rate: 5, ..settings(zones(&[("example.org", "www A 192.0.2.1\n")]), None) };
    let server = serve(limited, SERVER);
    let query = heard::question(1, &key("www.example.org"), Rtype::A, false, false);
    let flood = async |from: &str| {
        let socket = UdpSocket::bind(address(from)).unwrap();
        for _ in 0..25 {
            socket.send_to(&query, server).await.unwrap();
        }
        let (mut whole, mut cut) = (0, 0);
        let mut buffer = [0; 512];
        while let Ok(received) = timeout(Duration::from_millis(50), socket.recv_from(&mut buffer)).await {
            match counts(&buffer[..received.unwrap().0]) {
                (0, false, [1, 0, 0]) => whole += 1,
                (0, true, [0, 0, 0]) => cut += 1,
                other => panic!("{other:?}"),
            }
        }
        (whole, cut)
    };
    assert_eq!(flood("203.0.113.1:4000").await, (5, 10));
    assert_eq!(flood("127.0.0.1:4000").await, (25, 0), "a host nearby has no limit");
}

#[selvedge::test(seeds = 0..20)]
async fn clients_over_tcp_are_few_and_busy() {
    let limited =
        Settings { tcp_clients: 2, ..settings(zones(&[("example.org", "www A 192.0.2.1\n")]), None) };
    let server = serve(limited, SERVER);
    let one = TcpStream::connect(server).await.unwrap();
    let other = TcpStream::connect(server).await.unwrap();
    // Each of them is served, so its thread has its place.
    for stream in [&one, &other] {
        let query = heard::question(1, &key("www.example.org"), Rtype::A, false, false);
        frame::write(Compat::new(stream), &query).await.unwrap();
        assert!(frame::read(Compat::new(stream)).await.unwrap().is_some());
    }
    let third = TcpStream::connect(server).await.unwrap();
    let mut byte = [0];
    assert_eq!(third.read(&mut byte).await.unwrap_or(0), 0, "one client too many");
    // A client that sends a part of a query is closed when its time is over.
    let begin = Time::now();
    one.write_all(&[0]).await.unwrap();
    let slow = spawn_local(async move {
        let mut byte = [0];
        assert_eq!(one.read(&mut byte).await.unwrap_or(0), 0);
        Time::now().since(begin)
    });
    let waited = slow.await.unwrap();
    assert!((9_000..11_000).contains(&waited.as_millis()), "{waited:?}");
    assert_eq!(other.read(&mut byte).await.unwrap_or(0), 0, "the idle one is closed too");
    assert_eq!(ask_tcp(server, "www.example.org", Rtype::A).await.answer.len(), 1);
}

/// What a flood in the name of one network brings that network is bounded, however long the answers
/// are.
#[selvedge::test(seeds = 0..10)]
async fn a_flood_is_not_amplified() {
    let long = format!("large TXT \"{0}\" \"{0}\" \"{0}\" \"{0}\"\n", "x".repeat(250));
    let server = serve(settings(zones(&[("example.org", &long)]), None), SERVER);
    let query = heard::question(1, &key("large.example.org"), Rtype::TXT, false, true);
    let socket = UdpSocket::bind(address("203.0.113.1:4000")).unwrap();
    let (mut sent, mut received, mut whole) = (0, 0, 0);
    let mut buffer = [0; 2000];
    for _ in 0..20 {
        for _ in 0..50 {
            sent += socket.send_to(&query, server).await.unwrap();
        }
        while let Ok(datagram) = timeout(Duration::from_millis(50), socket.recv_from(&mut buffer)).await {
            let length = datagram.unwrap().0;
            received += length;
            whole += usize::from(length > query.len());
        }
    }
    // A second of answers at once, and then 50 in each of the two seconds or so of the flood.
    assert!((50..=200).contains(&whole), "{whole} whole answers");
    assert!(received <= sent + 200 * 1232, "{received} bytes for {sent}");
}

/// More queries than are worked on at once, at a server that answers none of them.
#[selvedge::test(seeds = 0..10)]
async fn queries_beyond_the_limit_are_dropped_and_the_server_goes_on() {
    let _silent = UdpSocket::bind(address("10.0.0.9:53")).unwrap();
    let resolver = forwarder(&["10.0.0.9:53"]);
    let zones = zones(&[("example.org", "www A 192.0.2.1\n")]);
    let server = serve(Settings { queries: 5, ..settings(zones, Some(resolver)) }, SERVER);
    let socket = UdpSocket::bind(address("127.0.0.1:4000")).unwrap();
    for number in 0..100 {
        let asked = key(&format!("n{number}.example.net"));
        let query = heard::question(number, &asked, Rtype::A, true, false);
        socket.send_to(&query, server).await.unwrap();
    }
    let mut failures = 0;
    let mut buffer = [0; 512];
    while let Ok(datagram) = timeout(Duration::from_secs(8), socket.recv_from(&mut buffer)).await {
        assert_eq!(counts(&buffer[..datagram.unwrap().0]).0, Rcode::SERVFAIL.to_int());
        failures += 1;
    }
    assert_eq!(failures, 5);
    assert_eq!(ask(server, "www.example.org", Rtype::A).await.unwrap().answer.len(), 1);
}

#[selvedge::test(seeds = 0..10)]
async fn a_flood_of_connections_leaves_room_for_those_that_are_there() {
    let zones = zones(&[("example.org", "www A 192.0.2.1\n")]);
    let server = serve(Settings { tcp_clients: 3, ..settings(zones, None) }, SERVER);
    let first = TcpStream::connect(server).await.unwrap();
    let query = heard::question(1, &key("www.example.org"), Rtype::A, false, false);
    let mut flood = Vec::new();
    for _ in 0..100 {
        frame::write(Compat::new(&first), &query).await.unwrap();
        assert!(frame::read(Compat::new(&first)).await.unwrap().is_some());
        flood.push(TcpStream::connect(server).await.unwrap());
    }
    let mut closed = 0;
    for stream in &flood {
        let ended = timeout(Duration::from_secs(1), stream.read(&mut [0])).await;
        closed += usize::from(ended.is_ok_and(|read| read.unwrap_or(0) == 0));
    }
    assert_eq!(closed, 98, "two of the flood have a place");
    drop(flood);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(ask_tcp(server, "www.example.org", Rtype::A).await.answer.len(), 1);
}
