//! Connections in all the ways clients use and misuse them. (A test raises the limit of descriptors
//! of its process, so they have a file of their own.)

mod common;
#[path = "connections/memory.rs"]
mod memory;

use common::{Client, PATIENCE, bytes, log_lines, logged, many_descriptors, ms, serve, site, start};
use std::fs;
use std::io::Read;
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

const GET: &str = "GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn a_connection_is_kept() {
    let site = site();
    let server = serve(site.path(), &[]);
    let mut client = server.connect();
    for _ in 0..100 {
        assert_eq!(client.ask(GET).body, b"0123456789");
    }
    let reply = client.ask("GET /ten.txt HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert_eq!(reply.field("Connection"), Some("keep-alive"));
    let reply = client.ask("GET /ten.txt HTTP/1.0\r\n\r\n");
    assert_eq!((reply.status, reply.field("Connection")), (200, Some("close")));
    client.assert_end();
}

/// What arrives in one read is answered in one piece.
#[test]
fn pipelined_requests_are_answered_together() {
    let site = site();
    let server = serve(site.path(), &[]);
    let mut client = server.connect();
    let one = client.ask(GET);
    let size = one.head.len() + one.body.len();
    client.send(GET.repeat(100));
    let mut buffer = vec![0; 200 * size];
    let first = client.stream.read(&mut buffer).unwrap();
    assert_eq!(first, 100 * size, "the replies did not come in one piece");
    // More than fits into the buffers of either side, unread for a while: the server waits, and
    // loses nothing.
    client.send(GET.repeat(20_000));
    std::thread::sleep(ms(50));
    for _ in 0..20_000 {
        assert_eq!(client.reply().body, one.body);
    }
}

/// Small files, large ones, errors, bodies, ranges, in one stream that is cut at every byte.
#[test]
fn every_split_gives_the_same_bytes() {
    let site = site();
    let server = serve(site.path(), &[]);
    let stream = [
        GET,
        "POST /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nab\r\nc\r\n0\r\nT: u\r\n\r\n",
        "GET /middle.bin HTTP/1.1\r\nHost: a\r\n\r\n",
        "HEAD /big.bin HTTP/1.1\r\nHost: a\r\n\r\n",
        "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
        "GET /none HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /middle.bin HTTP/1.1\r\nHost: a\r\nRange: bytes=9-99\r\n\r\n",
        "GET /docs HTTP/1.1\r\nHost: a\r\n\r\n",
        "PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
    ]
    .concat();
    // The date may change between two runs.
    let undated = |bytes: Vec<u8>| {
        let mut bytes = bytes;
        let at: Vec<usize> =
            bytes.windows(6).enumerate().filter(|(_, w)| *w == b"Date: ").map(|(i, _)| i).collect();
        at.iter().for_each(|at| bytes[at + 6..at + 35].fill(b'-'));
        bytes
    };
    let mut client = server.connect();
    client.send(&stream);
    let expected = undated(client.rest());
    assert_eq!(String::from_utf8_lossy(&expected).matches("HTTP/1.1 ").count(), 9);
    // Many connections at once, so that waiting between the two pieces costs little.
    for cuts in (1..stream.len()).collect::<Vec<_>>().chunks(100) {
        let mut clients: Vec<Client> = cuts.iter().map(|_| server.connect()).collect();
        clients.iter_mut().zip(cuts).for_each(|(client, &cut)| client.send(&stream[..cut]));
        std::thread::sleep(ms(20));
        clients.iter_mut().zip(cuts).for_each(|(client, &cut)| client.send(&stream[cut..]));
        for (client, cut) in clients.iter_mut().zip(cuts) {
            assert!(undated(client.rest()) == expected, "cut at {cut}");
        }
    }
}

#[test]
fn a_client_that_closes_its_side_gets_all_its_replies() {
    let site = site();
    let server = serve(site.path(), &[]);
    let mut client = server.connect();
    client.send(GET);
    client.send("GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n");
    client.send(GET);
    client.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.reply().body, b"0123456789");
    assert!(client.reply().body == bytes(3_000_000));
    assert_eq!(client.reply().body, b"0123456789");
    client.assert_end();
    // Half a request and then the end is no request.
    let mut client = server.connect();
    client.send(&GET[..20]);
    client.stream.shutdown(Shutdown::Write).unwrap();
    client.assert_end();
}

#[test]
fn a_body_is_read_past() {
    let site = site();
    let server = serve(site.path(), &[]);
    let mut client = server.connect();
    client.send("POST /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n");
    assert_eq!(client.reply().status, 405);
    client.send("GET / HTTP/1.1\r\n\r\n".repeat(20_000).as_bytes().split_at(200_000).0);
    assert_eq!(client.ask(GET).status, 200);
    // Chunks that break the framing end the connection, because the start of the next
    // request is unknown.
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n");
    client.send(GET);
    assert_eq!(client.reply().status, 405);
    client.assert_end();
}

/// Head and target decide every answer, so no body is asked for (RFC 9110 §10.1.1). Since the
/// client may send the body or leave it out, the connection is closed; with nothing to send it is
/// kept.
#[test]
fn no_body_is_asked_for_whose_request_is_answered() {
    let site = site();
    let server = serve(site.path(), &[]);
    for (line, status) in [
        ("POST /ten.txt", 405),
        ("BREW /ten.txt", 501),
        ("GET /ten.txt", 200),
        ("PUT /none", 405),
        ("GET /none", 404),
    ] {
        let request = |length: u32| {
            format!("{line} HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: {length}\r\n\r\n")
        };
        let mut client = server.connect();
        let reply = client.ask(&request(10));
        assert_eq!((reply.status, reply.field("Connection")), (status, Some("close")), "{line}");
        client.send("0123456789");
        client.assert_end();
        let mut client = server.connect();
        assert_eq!(client.ask(&request(0)).status, status, "{line}");
        assert_eq!(client.ask(GET).status, 200, "{line}");
    }
}

/// Sends byte after byte to the slow clients for half a second, while the fast one is served.
fn drip_beside(slow: &mut [Client], fast: &mut Client, start: Instant, mut next: impl FnMut() -> u8) {
    let mut waited = Vec::new();
    while start.elapsed() < ms(500) {
        let byte = [next()];
        slow.iter_mut().for_each(|client| client.send(byte));
        let asked = Instant::now();
        assert_eq!(fast.ask(GET).status, 200);
        waited.push(asked.elapsed());
        std::thread::sleep(ms(40));
    }
    // The machine itself may stop for longer now and then.
    waited.sort();
    assert!(waited[waited.len() / 2] < ms(250), "served after {waited:?}");
}

/// Heads that drip in byte by byte are cut off in total, not per byte, and delay no other client
/// meanwhile.
#[test]
fn slow_heads() {
    let site = site();
    let server = serve(site.path(), &["--head", "0.6", "--idle", "30"]);
    let start = Instant::now();
    let mut slow: Vec<Client> = (0..200).map(|_| server.connect()).collect();
    let mut fast = server.connect();
    let head = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
    let mut bytes = head.bytes();
    drip_beside(&mut slow, &mut fast, start, || bytes.next().unwrap());
    for client in &mut slow {
        let reply = client.reply();
        assert_eq!((reply.status, reply.field("Connection")), (408, Some("close")));
        client.assert_end();
    }
    let took = start.elapsed();
    assert!(took > ms(550) && took < ms(3000), "{took:?}");
    assert_eq!(fast.ask(GET).status, 200);
}

/// Bodies that drip in byte by byte are cut off in total, not per byte, and delay no other client
/// meanwhile. The request has been answered before.
#[test]
fn slow_bodies() {
    let site = site();
    let server = serve(site.path(), &["--body", "0.6", "--idle", "30"]);
    let start = Instant::now();
    let mut slow: Vec<Client> = (0..100).map(|_| server.connect()).collect();
    for (number, client) in slow.iter_mut().enumerate() {
        let framing = if number % 2 == 0 { "Content-Length: 1000" } else { "Transfer-Encoding: chunked" };
        client.send(format!("POST /ten.txt HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n"));
        if number % 2 == 1 {
            client.send("3E8\r\n");
        }
        assert_eq!(client.reply().status, 405);
    }
    let mut fast = server.connect();
    drip_beside(&mut slow, &mut fast, start, || b'x');
    for client in &mut slow {
        client.assert_end();
    }
    let took = start.elapsed();
    assert!(took > ms(550) && took < ms(5000), "{took:?}");
    assert_eq!(fast.ask(GET).status, 200);
}

#[test]
fn idle_connections_are_closed_without_a_word() {
    let site = site();
    let server = serve(site.path(), &["--idle", "0.4"]);
    let before = server.descriptors_at_rest();
    let mut silent = server.connect();
    let mut used = server.connect();
    for _ in 0..4 {
        std::thread::sleep(ms(150));
        assert_eq!(used.ask(GET).status, 200, "a request begins the time anew");
    }
    let start = Instant::now();
    silent.assert_end();
    used.assert_end();
    assert!(start.elapsed() > ms(200) && start.elapsed() < ms(3000), "{:?}", start.elapsed());
    server.settle(before);
}

/// A client that does not read its reply is given up, and holds nothing for ever.
#[test]
fn requests_of_clients_that_reset() {
    let site = site();
    let server = serve(site.path(), &[]);
    let before = server.descriptors_at_rest();
    for round in 0..300 {
        let mut client = server.connect();
        match round % 3 {
            0 => client.send(&GET[..round % GET.len()]),
            1 => client.send(GET),
            _ => client.send("GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n"),
        }
        if round % 2 == 0 {
            std::thread::sleep(ms(1));
        }
        // Unread input and no lingering: the connection is reset.
        rustix::net::sockopt::set_socket_linger(&client.stream, Some(Duration::ZERO)).unwrap();
    }
    server.settle(before);
    assert_eq!(server.get("/ten.txt").status, 200);
}

/// Ten thousand connections wait; they cost no buffers, no processor time, and do not slow the
/// others.
#[test]
fn ten_thousand_idle_connections() {
    let _descriptors = many_descriptors();
    let site = site();
    let server = serve(site.path(), &["--workers", "2"]);
    let mut first = server.connect();
    assert_eq!(first.ask(GET).status, 200);
    let empty = server.resident();
    let mut idle: Vec<Client> = Vec::new();
    for n in 0..10_000 {
        let mut client = server.connect();
        if n % 2 == 0 {
            // Half of them have been used, and are kept.
            client.send(GET);
        }
        idle.push(client);
    }
    for client in idle.iter_mut().step_by(2) {
        assert_eq!(client.reply().body, b"0123456789");
    }
    let each = (server.resident().saturating_sub(empty)) / 10_000;
    assert!(each < 1500, "an idle connection costs {each} bytes");
    let before = server.processor_time();
    std::thread::sleep(ms(300));
    assert!(server.processor_time() - before < ms(60), "idle connections cost processor time");
    let start = Instant::now();
    for _ in 0..200 {
        assert_eq!(first.ask(GET).status, 200);
    }
    assert!(start.elapsed() < PATIENCE / 2, "{:?}", start.elapsed());
    for n in [1, 17, 5_000, 9_998, 9_999] {
        assert_eq!(idle[n].ask(GET).status, 200);
    }
    println!("an idle connection costs {each} bytes of the server's memory");
}

/// When descriptors run out, accepting pauses and goes on; connections that are there are served
/// throughout.
#[test]
fn descriptors_run_out_and_come_back() {
    use rustix::process::{Resource, Rlimit, getrlimit, prlimit};
    let site = site();
    let server = serve(site.path(), &["--workers", "1"]);
    let mut steady = server.connect();
    assert_eq!(steady.ask(GET).status, 200);
    let limit = server.descriptors() as u64 + 20;
    let cut = Rlimit { current: Some(limit), maximum: getrlimit(Resource::Nofile).maximum };
    let before = prlimit(Some(server.pid()), Resource::Nofile, cut).unwrap();
    assert!(before.current > Some(limit));
    let many: Vec<Client> = (0..40).map(|_| server.connect()).collect();
    let many: Vec<Client> = many
        .into_iter()
        .map(|mut client| {
            client.send(GET);
            client
        })
        .collect();
    std::thread::sleep(ms(100));
    assert_eq!(steady.ask(GET).status, 200);
    assert_eq!(
        steady.ask("GET /middle.bin HTTP/1.1\r\nHost: a\r\n\r\n").status,
        503,
        "no descriptor for a file"
    );
    let time = server.processor_time();
    std::thread::sleep(ms(300));
    assert!(server.processor_time() - time < ms(100), "it spins");
    // Accepted clients are served; as they go, the others are, in the order in which they came.
    for client in many {
        let mut client = client;
        assert_eq!(client.reply().status, 200);
    }
    assert_eq!(server.get("/middle.bin").body.len(), 16 << 10);
}

/// A client that takes its time reading a file larger than any buffer.
#[test]
fn a_slow_reader_gets_every_byte() {
    let site = site();
    let server = serve(site.path(), &[]);
    let stream = TcpStream::connect(server.address).unwrap();
    rustix::net::sockopt::set_socket_recv_buffer_size(&stream, 64 << 10).unwrap();
    let mut client = Client::new(stream);
    client.send("GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut other = server.connect();
    for _ in 0..5 {
        std::thread::sleep(ms(10));
        assert_eq!(other.ask(GET).status, 200);
    }
    assert!(client.reply().body == bytes(3_000_000));
}

/// A client that reads slowly but steadily is served for as long as it takes, though the kernel's
/// buffers are so large that no room comes for longer than a client may take nothing.
#[test]
fn a_steady_slow_reader_is_not_cut() {
    let site = site();
    fs::write(site.path().join("huge.bin"), bytes(24_000_000)).unwrap();
    let log = site.path().join("log");
    let server = serve(site.path(), &["--write", "0.6", "--log", log.to_str().unwrap()]);
    let mut client = server.connect();
    client.send("GET /huge.bin HTTP/1.1\r\nHost: a\r\n\r\n");
    let start = Instant::now();
    let mut read = 0;
    let mut buffer = vec![0; 40_000];
    while read < 24_000_000 {
        let got = client.stream.read(&mut buffer).unwrap();
        assert!(got > 0, "cut after {read} bytes, {:?}", start.elapsed());
        read += got;
        if start.elapsed() < ms(4000) {
            std::thread::sleep(ms(50));
        }
    }
    assert_eq!(logged(&log_lines(&log, 1)[0]), (200, 24_000_000));
}

/// A client that takes nothing is given up, and logged as what it was.
#[test]
fn a_client_that_reads_nothing_is_given_up() {
    let site = site();
    fs::write(site.path().join("huge.bin"), bytes(40_000_000)).unwrap();
    let log = site.path().join("log");
    let server = serve(site.path(), &["--write", "0.5", "--workers", "1", "--log", log.to_str().unwrap()]);
    let stream = TcpStream::connect(server.address).unwrap();
    rustix::net::sockopt::set_socket_recv_buffer_size(&stream, 16 << 10).unwrap();
    let mut client = Client::new(stream);
    let start = Instant::now();
    client.send("GET /huge.bin HTTP/1.1\r\nHost: a\r\n\r\n");
    client.stream.read_exact(&mut [0; 100]).unwrap();
    let lines = log_lines(&log, 1);
    assert!(start.elapsed() > ms(450) && start.elapsed() < ms(5000), "{:?}", start.elapsed());
    let (status, sent) = logged(lines.last().unwrap());
    assert!(status == 200 && sent < 300_000, "{}", lines.last().unwrap());
    assert!(client.rest().len() < 40_000_000);
}

/// At the limit of descriptors those are closed that have waited longest, and the new ones are
/// served.
#[test]
fn idle_connections_make_room_for_new_ones() {
    let site = site();
    let mut command = std::process::Command::new("sh");
    let server = format!(
        "ulimit -n 64; exec {} {} --listen 127.0.0.1:0 --workers 1",
        env!("CARGO_BIN_EXE_selvedge-httpd"),
        site.path().display()
    );
    command.args(["-c", &server]).stderr(std::process::Stdio::piped());
    let mut server = start(command);
    let mut errors = server.errors();
    assert!(errors.line().contains("with 64 open descriptors (ulimit -n) there may be 35 connections"));
    let mut idle: Vec<Client> = Vec::new();
    for n in 0..200 {
        let mut client = server.connect();
        assert_eq!(client.ask(GET).status, 200, "client {n}");
        idle.push(client);
        // This one is always in use.
        assert_eq!(idle[0].ask(GET).status, 200, "after client {n}");
    }
    assert!(errors.line().contains("35 connections, as many as it may: idle ones are closed for new ones"));
    assert!(server.descriptors() <= 64);
    for client in &mut idle[1..100] {
        client.assert_end();
    }
    // With all of them in use new ones wait, and are served in their turn.
    drop(idle);
    let mut busy: Vec<Client> = (0..35).map(|_| server.connect()).collect();
    busy.iter_mut().for_each(|client| client.send(&GET[..10]));
    std::thread::sleep(ms(100));
    let mut late = server.connect();
    late.send(GET);
    std::thread::sleep(ms(100));
    for client in &mut busy {
        client.send(&GET[10..]);
        assert_eq!(client.reply().status, 200);
    }
    assert_eq!(late.reply().status, 200);
}
