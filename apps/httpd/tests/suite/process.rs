//! The process: what it says, how it ends, what it logs.

use crate::common::{Client, bytes, log_lines, logged, ms, serve, site, start};
use rustix::process::Signal;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const GET: &str = "GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n";

fn httpd(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge-httpd"));
    command.args(arguments);
    command
}

fn output(arguments: &[&str]) -> Output {
    httpd(arguments).output().unwrap()
}

/// What cannot be is said in one line, and the exit status tells which kind it is.
#[test]
fn it_says_why_it_cannot_start() {
    let site = site();
    let dir = site.path().to_str().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let other = serve(site.path(), &["--workers", "2"]);
    let served = other.address.to_string();
    let file = site.path().join("ten.txt").to_str().unwrap().to_owned();
    for (arguments, status, text) in [
        (vec![dir, "--listen", &address], 1, format!("bind {address}: Address already in use")),
        (vec![dir, "--listen", &address, "-w", "2"], 1, format!("bind {address}: Address already in use")),
        (vec![dir, "--listen", &served, "-w", "2"], 1, format!("bind {served}: Address already in use")),
        (vec!["/no/such/directory"], 1, "/no/such/directory: No such file or directory".into()),
        (vec![&file], 1, format!("{file}: Not a directory")),
        (vec![dir, "--listen", "nonsense"], 2, "--listen \"nonsense\": no address to listen at".into()),
        (vec![dir, "--listen", "no.such.host.invalid:80"], 1, "--listen: no.such.host.invalid: ".into()),
        (
            vec![dir, "--listen", "203.0.113.7:80"],
            1,
            "bind 203.0.113.7:80: Cannot assign requested address".into(),
        ),
        (
            vec![dir, "--listen", "unix:/no/such/socket"],
            1,
            "bind /no/such/socket: No such file or directory".into(),
        ),
        (vec![dir, "--log", "/no/such/log"], 1, "--log: open /no/such/log: No such file or directory".into()),
        (vec![dir, "--workers", "none"], 2, "--workers \"none\": not a number from 1 to 1024".into()),
        (vec!["--nonsense"], 2, "invalid option '--nonsense'".into()),
    ] {
        let Output { status: ended, stdout, stderr } = output(&arguments);
        let stderr = String::from_utf8(stderr).unwrap();
        assert_eq!(ended.code(), Some(status), "{arguments:?}: {stderr}");
        assert!(stderr.starts_with("selvedge-httpd: ") && stderr.contains(&text), "{arguments:?}: {stderr}");
        assert_eq!((stderr.lines().count(), stdout.len()), (1, 0), "{arguments:?}: {stderr}");
    }
}

#[test]
fn help_and_version() {
    let help = output(&["--help"]);
    let text = String::from_utf8(help.stdout).unwrap();
    assert!(help.status.success() && text.contains("--listen") && text.contains("127.0.0.1:8080"));
    let version = output(&["--version"]);
    assert_eq!(
        String::from_utf8(version.stdout).unwrap(),
        format!("selvedge-httpd {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn it_says_where_it_serves() {
    let site = site();
    let server = serve(site.path(), &[]);
    let expected = format!("Serving {} at http://{}/\n", site.path().display(), server.address);
    assert_eq!(server.line, expected);
    // All addresses, both families, one socket.
    let mut command = httpd(&["--listen", ":0"]);
    command.current_dir(site.path());
    let server = start(command);
    assert!(server.line.contains(" at http://localhost:"), "{}", server.line);
    assert_eq!(server.get("/ten.txt").status, 200);
}

#[test]
fn unix_sockets() {
    let site = site();
    let path = site.path().join("socket");
    let listen = format!("unix:{}", path.display());
    let server = start({
        let mut command = httpd(&["--listen", &listen, "--workers", "2"]);
        command.arg(site.path());
        command
    });
    assert!(server.line.ends_with(&format!("{listen}\n")));
    for _ in 0..20 {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(b"GET /ten.txt HTTP/1.0\r\n\r\n").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        assert!(reply.starts_with("HTTP/1.1 200 OK\r\n") && reply.ends_with("0123456789"));
    }
    // A server serves there.
    let dir = site.path().to_str().unwrap();
    let second = output(&[dir, "--listen", &listen]);
    assert_eq!(second.status.code(), Some(1));
    // What a killed server leaves is no obstacle; what a stopped one leaves is nothing.
    server.signal(Signal::KILL);
    server.end();
    assert!(path.exists());
    let server = start(httpd(&[dir, "--listen", &listen]));
    UnixStream::connect(&path).unwrap();
    server.signal(Signal::TERM);
    assert!(server.end().success());
    assert!(!path.exists());
}

/// Requests in flight are finished, idle connections closed, new ones not taken; then it ends with
/// success.
#[test]
fn it_stops_gracefully() {
    let site = site();
    for (signal, workers) in [(Signal::TERM, "1"), (Signal::INT, "2"), (Signal::QUIT, "5")] {
        let server = serve(site.path(), &["--workers", workers]);
        let mut idle: Vec<Client> = (0..50).map(|_| server.connect()).collect();
        for client in idle.iter_mut().step_by(2) {
            assert_eq!(client.ask(GET).status, 200);
        }
        // Being sent, being received, and a body on its way.
        let mut sent = server.connect();
        sent.send("GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n");
        let mut received = server.connect();
        received.send(&GET[..GET.len() - 10]);
        let mut body = server.connect();
        body.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345");
        std::thread::sleep(ms(100));
        server.signal(signal);
        for client in &mut idle {
            client.assert_end();
        }
        let mut server = server;
        assert!(server.is_running());
        received.send(&GET[GET.len() - 10..]);
        let reply = received.reply();
        assert_eq!((reply.status, reply.field("Connection")), (200, Some("close")));
        received.assert_end();
        assert_eq!(body.reply().status, 405);
        body.send("67890");
        body.assert_end();
        assert!(sent.reply().body == bytes(3_000_000));
        sent.assert_end();
        let address = server.address;
        assert!(server.end().success());
        assert!(std::net::TcpStream::connect(address).is_err());
    }
}

/// Clients that ask all the time see whole replies until the connection is closed, small and large
/// ones.
#[test]
fn it_stops_under_load() {
    let site = site();
    for _ in 0..5 {
        let server = serve(site.path(), &["--workers", "2"]);
        let served: usize = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..12)
                .map(|n| {
                    let (mut client, large) = (server.connect(), n % 3 == 0);
                    scope.spawn(move || {
                        let request = if large { "GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n" } else { GET };
                        let mut served = 0;
                        while client.stream.write_all(request.as_bytes()).is_ok()
                            && let Some(reply) = client.try_reply(false)
                        {
                            assert_eq!(reply.body.len(), if large { 3_000_000 } else { 10 });
                            served += 1;
                            if reply.field("Connection") == Some("close") {
                                break;
                            }
                        }
                        assert!(!client.is_amid_reply(), "half a reply");
                        served
                    })
                })
                .collect();
            std::thread::sleep(ms(150));
            server.signal(Signal::TERM);
            clients.into_iter().map(|client| client.join().unwrap()).sum()
        });
        assert!(served > 100, "{served} requests were served");
        assert!(server.end().success());
    }
}

/// A client that never finishes does not keep the server from stopping; a second signal ends it at
/// once.
#[test]
fn stopping_takes_no_longer_than_it_may() {
    let site = site();
    let server = serve(site.path(), &["--drain", "0.3"]);
    let mut client = server.connect();
    client.send(&GET[..10]);
    client.wait_until_read();
    let start = Instant::now();
    server.signal(Signal::TERM);
    assert!(server.end().success());
    assert!(start.elapsed() > ms(250) && start.elapsed() < ms(5000), "{:?}", start.elapsed());

    let server = serve(site.path(), &["--drain", "60"]);
    let mut client = server.connect();
    client.send(&GET[..10]);
    client.wait_until_read();
    server.signal(Signal::TERM);
    // The kernel makes one signal of two that the process has not seen yet.
    while TcpStream::connect(server.address).is_ok() {
        std::thread::sleep(ms(5));
    }
    server.signal(Signal::TERM);
    assert_eq!(server.end().code(), Some(1));
}

/// The lines of the log, whole, in order for each connection, and there within a second though
/// nothing else happens.
#[test]
fn the_access_log() {
    let site = site();
    let log = site.path().join("access.log");
    let server = serve(site.path(), &["--log", log.to_str().unwrap(), "--workers", "2"]);
    let mut client = server.connect();
    client.ask("GET /ten.txt HTTP/1.1\r\nHost: a\r\nReferer: http://a/\r\nUser-Agent: te\"st\r\n\r\n");
    let start = Instant::now();
    let wait_for = |lines: usize| {
        loop {
            let text = fs::read_to_string(&log).unwrap();
            if text.lines().count() >= lines {
                return text;
            }
            assert!(start.elapsed() < Duration::from_secs(20), "{text}");
            std::thread::sleep(ms(10));
        }
    };
    let text = wait_for(1);
    assert!(start.elapsed() < ms(5000), "a line took {:?}", start.elapsed());
    let (before, after) = text.split_once('[').unwrap();
    assert_eq!(before, "127.0.0.1 - - ");
    assert_eq!(
        after.split_once("] ").unwrap().1,
        "\"GET /ten.txt HTTP/1.1\" 200 10 \"http://a/\" \"te\\x22st\"\n"
    );

    // Many connections at once on two workers, more than a buffer of each.
    std::thread::scope(|scope| {
        for client in 0..4 {
            let server = &server;
            scope.spawn(move || {
                let mut connection = server.connect();
                for batch in 0..20 {
                    let requests: String = (0..100)
                        .map(|n| format!("GET /{client}/{} HTTP/1.1\r\nHost: a\r\n\r\n", batch * 100 + n))
                        .collect();
                    connection.send(requests);
                    for _ in 0..100 {
                        assert_eq!(connection.reply().status, 404);
                    }
                }
            });
        }
    });
    server.ask("nonsense\r\n\r\n");
    let text = wait_for(1 + 8000 + 1);
    assert_eq!(text.lines().count(), 8002);
    let mut next = [0; 4];
    for line in text.lines().skip(1) {
        assert!(line.starts_with("127.0.0.1 - - [") && line.ends_with(" \"-\" \"-\""), "{line}");
        let request = line.split('"').nth(1).unwrap();
        if request == "nonsense" {
            assert!(line.contains(" 400 "), "{line}");
            continue;
        }
        let (client, n) = request.split(' ').nth(1).unwrap()[1..].split_once('/').unwrap();
        let client: usize = client.parse().unwrap();
        assert_eq!(n.parse(), Ok(next[client]), "{line}");
        next[client] += 1;
    }
    assert_eq!(next, [2000; 4]);

    // Rotation: renamed away, and opened anew at the signal.
    fs::rename(&log, site.path().join("access.log.1")).unwrap();
    server.signal(Signal::USR1);
    let waited = Instant::now();
    while !log.exists() {
        assert!(waited.elapsed() < Duration::from_secs(10), "the log is not opened anew");
        std::thread::sleep(ms(5));
    }
    client.ask(GET);
    // What is in the buffer when the server stops is written.
    server.signal(Signal::TERM);
    assert!(server.end().success());
    assert_eq!(fs::read_to_string(&log).unwrap().lines().count(), 1);
}

/// A log that cannot be written delays no request: neither when its reader has stopped nor when the
/// reader is gone.
#[test]
fn a_stalled_log_stalls_nobody() {
    let site = site();
    let server = start({
        let mut command = httpd(&["--listen", "127.0.0.1:0", "--workers", "1"]);
        let fifo = site.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o644.into(), 0).unwrap();
        // A reader that never reads: the pipe takes 64 KiB, and then writing blocks.
        let reader = fs::File::options().read(true).write(true).open(&fifo).unwrap();
        std::mem::forget(reader);
        command.arg(site.path()).arg("--log").arg(&fifo).stderr(Stdio::null());
        command
    });
    let mut client = server.connect();
    let resident = server.resident();
    for _ in 0..200 {
        client.send(GET.repeat(200));
        for _ in 0..200 {
            assert_eq!(client.reply().status, 200);
        }
    }
    let grown = server.resident().saturating_sub(resident);
    assert!(grown < 8 << 20, "{grown} bytes were buffered");
}

/// A line tells the content that was sent, however the transfer ended: whole, in ranges, reset or
/// broken off at the end.
#[test]
fn the_log_tells_what_was_sent() {
    let site = site();
    fs::write(site.path().join("huge.bin"), bytes(32 << 20)).unwrap();
    let log = site.path().join("access.log");
    let server = serve(site.path(), &["--drain", "0.2", "--log", log.to_str().unwrap(), "--workers", "1"]);
    let mut client = server.connect();
    assert_eq!(client.ask("GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n").status, 200);
    client.ask("GET /big.bin HTTP/1.1\r\nHost: a\r\nRange: bytes=9-18\r\n\r\n");
    let parts = client.ask("GET /big.bin HTTP/1.1\r\nHost: a\r\nRange: bytes=9-18,1000-900000\r\n\r\n");
    client.ask("HEAD /big.bin HTTP/1.1\r\nHost: a\r\n\r\n");
    let lines = log_lines(&log, 4);
    let expected = [(200, 3_000_000), (206, 10), (206, parts.body.len() as u64), (200, 0)];
    assert_eq!(lines.iter().map(|line| logged(line)).collect::<Vec<_>>(), expected);

    let huge = || {
        let stream = std::net::TcpStream::connect(server.address).unwrap();
        rustix::net::sockopt::set_socket_recv_buffer_size(&stream, 8 << 10).unwrap();
        let mut client = Client::new(stream);
        client.send("GET /huge.bin HTTP/1.1\r\nHost: a\r\nUser-Agent: te\"st\r\nReferer: r\r\n\r\n");
        client.stream.read_exact(&mut [0; 1024]).unwrap();
        client
    };
    let reset = huge();
    std::thread::sleep(ms(100));
    rustix::net::sockopt::set_socket_linger(&reset.stream, Some(Duration::ZERO)).unwrap();
    drop(reset);
    let lines = log_lines(&log, 5);
    let (status, sent) = logged(&lines[4]);
    assert!(status == 200 && sent < 300_000, "{}", lines[4]);
    assert!(lines[4].ends_with(" \"r\" \"te\\x22st\"") && lines[4].contains("\"GET /huge.bin HTTP/1.1\""));

    // Small replies, more than the buffers take; the client reads none.
    let mut deaf = server.connect();
    deaf.stream.set_write_timeout(Some(ms(200))).unwrap();
    let mut asked = 0;
    while asked < 200_000 && deaf.stream.write_all(GET.repeat(1000).as_bytes()).is_ok() {
        asked += 1000;
    }
    let broken_off = huge();
    std::thread::sleep(ms(100));
    server.signal(Signal::TERM);
    assert!(server.end().success());
    let text = fs::read_to_string(&log).unwrap();
    let last = text.lines().find(|line| line.contains("huge.bin") && !lines.contains(&(*line).to_owned()));
    let (status, sent) = logged(last.expect("a transfer that is broken off is logged"));
    assert!(status == 200 && sent < 300_000, "{last:?}");
    let whole = text.lines().filter(|line| line.contains("/ten.txt") && logged(line) == (200, 10)).count();
    let sent = text.lines().filter(|line| line.contains("/ten.txt")).map(|line| logged(line).1).sum::<u64>();
    assert!(sent as usize <= (whole + 1) * 10 && whole < asked.max(1), "{whole} of {asked}");
    drop(broken_off);
}

/// `SIGHUP` opens the log anew, has every file looked at anew, and ends nothing.
#[test]
fn a_hang_up_is_a_reload() {
    let site = site();
    let log = site.path().join("access.log");
    let server =
        serve(site.path(), &["--validity", "3600", "--workers", "2", "--log", log.to_str().unwrap()]);
    let mut client = server.connect();
    assert_eq!(client.ask(GET).body, b"0123456789");
    fs::write(site.path().join("ten.txt"), b"changed").unwrap();
    assert_eq!(client.ask(GET).body, b"0123456789", "it is valid for an hour");
    log_lines(&log, 2);
    fs::rename(&log, site.path().join("access.log.1")).unwrap();
    server.signal(Signal::HUP);
    let waited = Instant::now();
    while !log.exists() || client.ask(GET).body != b"changed" {
        assert!(waited.elapsed() < Duration::from_secs(10), "nothing is read anew");
        std::thread::sleep(ms(5));
    }
    server.signal(Signal::TERM);
    assert!(server.end().success());
    assert!(fs::read_to_string(&log).unwrap().lines().count() > 0);
}

/// A log that is a FIFO does not hold up the start, waits for its reader, and does not hold up the
/// end.
#[test]
fn a_log_that_is_a_fifo() {
    let site = site();
    let fifo = site.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o644.into(), 0).unwrap();
    let options = ["--log", fifo.to_str().unwrap(), "--workers", "1"];
    let server = serve(site.path(), &options);
    let mut client = server.connect();
    assert_eq!(client.ask(GET).status, 200);
    let mut reader = std::io::BufReader::new(fs::File::open(&fifo).unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut reader, &mut line).unwrap();
    assert_eq!(logged(&line), (200, 10));
    drop(reader);
    for _ in 0..100 {
        client.send(GET.repeat(100));
        (0..100).for_each(|_| assert_eq!(client.reply().status, 200));
    }
    server.signal(Signal::TERM);
    assert!(server.end().success());
}

/// The forms of an address, each served at.
#[test]
fn addresses() {
    let site = site();
    for (listen, said) in [
        ("0", "localhost:"),
        (":0", "localhost:"),
        ("*:0", "localhost:"),
        ("localhost:0", ""),
        ("127.0.0.1:0", "127.0.0.1:"),
    ] {
        let mut command = httpd(&["--listen", listen, "--workers", "2"]);
        command.arg(site.path());
        let server = start(command);
        assert!(server.line.contains(&format!(" at http://{said}")), "{listen}: {}", server.line);
        let port = server.line.trim().trim_end_matches('/').rsplit(':').next().unwrap();
        let stream = std::net::TcpStream::connect(format!("localhost:{port}")).unwrap();
        assert_eq!(Client::new(stream).ask(GET).status, 200, "{listen}");
    }
}

/// `--unix-mode` sets the permissions of a Unix socket.
#[test]
fn the_mode_of_a_unix_socket() {
    use std::os::unix::fs::PermissionsExt;
    let site = site();
    let path = site.path().join("socket");
    let listen = format!("unix:{}", path.display());
    for (mode, bits) in [("660", 0o660), ("777", 0o777), ("0600", 0o600)] {
        let mut command = httpd(&["--listen", &listen, "--unix-mode", mode]);
        command.arg(site.path());
        let server = start(command);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, bits);
        server.signal(Signal::TERM);
        assert!(server.end().success());
    }
}
