//! Faults around a running server: its log's disk is full, descriptors run out behind a proxy, what
//! answers behind it dies amid an answer, one of several processes is killed. What was promised is
//! kept, nothing else is lost, and the server says what happened.

use crate::common::{Client, Server, bytes, log_lines, logged, ms, site, start};
use crate::configured::{configured, httpd};
use crate::controlled::{children_of, ctl, kill, three_processes, until};
use rustix::process::{Resource, Rlimit, Signal, getrlimit, prlimit};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const GET: &str = "GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n";

/// The number of lines that the server says it has lost.
fn lost(site: &Path, reason: &str) -> u64 {
    let counters = ctl(&site.join("site.toml"), "counters").unwrap();
    let name = format!("selvedge_log_lines_lost_total{{reason=\"{reason}\"}} ");
    counters.lines().find_map(|line| line.strip_prefix(&name)).expect(&counters).parse().unwrap()
}

/// `/dev/full` is a disk without room. Requests go on, the lines are counted and reported, and when
/// there is room the log goes on.
#[test]
fn a_log_on_a_full_disk() {
    let site = site();
    let log = site.path().join("log");
    symlink("/dev/full", &log).unwrap();
    let server = configured(
        site.path(),
        "control = 'control'\nreport = 'report'\nlog = { access = 'log' }\n[[route]]\ndirectory = '.'\n",
    );
    let report = || fs::read_to_string(site.path().join("report")).unwrap();
    let mut client = server.connect();
    for round in 1..=2 {
        for _ in 0..100 {
            assert_eq!(client.ask(GET).body, b"0123456789");
        }
        until("the lines are counted", || lost(site.path(), "failed") == 100 * round);
    }
    assert_eq!(report().matches("No space left on device").count(), 1, "{}", report());
    // There is room: the path stands for another file.
    fs::remove_file(&log).unwrap();
    server.signal(Signal::USR1);
    until("the log is opened again", || log.exists());
    assert_eq!(client.ask(GET).status, 200);
    assert_eq!(logged(&log_lines(&log, 1)[0]), (200, 10));
    until("the end of the failure", || report().contains("writing again; 200 lines were lost"));
    assert_eq!((lost(site.path(), "failed"), lost(site.path(), "slow")), (200, 0));
    assert!(ctl(&site.path().join("site.toml"), "status").unwrap().contains("lost lines   200\n"));
    server.signal(Signal::TERM);
    assert!(server.end().success());
    assert!(report().contains("200 lines of the access log were lost in all"), "{}", report());
}

/// The disk takes a part of a buffer, as one does that becomes full: the file has whole lines, and
/// the lost lines are counted.
#[test]
fn a_disk_that_becomes_full_holds_whole_lines() {
    let site = site();
    let file = site.path().join("site.toml");
    let text = "listen = ['127.0.0.1:0']\nworkers = 1\ncontrol = 'control'\nlog = { access = 'log' }\n[[route]]\ndirectory = '.'\n";
    fs::write(&file, text).unwrap();
    // A file that is at the limit of its process is refused more bytes with a signal, which the
    // shell has ignored.
    let script = format!("trap '' XFSZ; exec {} {}", env!("CARGO_BIN_EXE_selvedge-httpd"), file.display());
    let mut command = Command::new("sh");
    command.args(["-c", &script]).stderr(Stdio::null());
    let server = start(command);
    let limit = |bytes: Option<u64>| {
        let limit = Rlimit { current: bytes, maximum: getrlimit(Resource::Fsize).maximum };
        prlimit(Some(server.pid()), Resource::Fsize, limit).unwrap();
    };
    limit(Some(1000));
    let mut client = server.connect();
    client.send(GET.repeat(50));
    for _ in 0..50 {
        assert_eq!(client.reply().status, 200);
    }
    until("lines are lost", || lost(site.path(), "failed") > 0);
    let log = fs::read_to_string(site.path().join("log")).unwrap();
    let kept = log.lines().count() as u64;
    assert!(log.len() <= 1000 && log.ends_with('\n') && kept > 0, "{log}");
    assert_eq!(kept + lost(site.path(), "failed"), 50);
    limit(getrlimit(Resource::Fsize).maximum);
    assert_eq!(client.ask(GET).status, 200);
    for line in log_lines(&site.path().join("log"), kept as usize + 1) {
        assert!(line.starts_with("127.0.0.1 - - [") && line.ends_with(" 200 10 \"-\" \"-\""), "{line}");
    }
    assert_eq!(lost(site.path(), "failed"), 50 - kept);
}

/// A server that reads the head of a request and then does what its path says.
fn dying() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
                head.push(byte[0]);
            }
            let head = String::from_utf8(head).unwrap();
            let path = head.split(' ').nth(1).unwrap_or_default();
            let half = bytes(50_000);
            let answer = match path {
                "/length" | "/reset" => {
                    [b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", &half[..]].concat()
                }
                "/chunked" => {
                    [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nC350\r\n", &half[..], b"\r\n"]
                        .concat()
                }
                "/chunk" => {
                    [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFF\r\n", &half[..]].concat()
                }
                "/head" => b"HTTP/1.1 200 OK\r\nContent-Le".to_vec(),
                "/nothing" => Vec::new(),
                _ => b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nwhole".to_vec(),
            };
            // The other side may be gone.
            let _ = stream.write_all(&answer);
            if path == "/reset" {
                std::thread::sleep(ms(100));
                rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
            }
        }
    });
    address
}

/// The bytes until the connection ends, however it ends.
fn all_of(client: &mut Client) -> Vec<u8> {
    let mut all = Vec::new();
    let mut piece = [0; 1 << 16];
    while let Ok(read @ 1..) = client.stream.read(&mut piece) {
        all.extend_from_slice(&piece[..read]);
    }
    all
}

/// An upstream dies amid its answer: the client has what came, and cannot take it for the whole.
#[test]
fn an_upstream_that_dies_amid_its_answer() {
    let site = site();
    let upstream = dying();
    let server = configured(
        site.path(),
        &format!("report = 'report'\nlog = {{ access = 'log' }}\n[[route]]\nproxy = '{upstream}'\n"),
    );
    let half = bytes(50_000);
    let paths = ["/length", "/reset", "/chunked", "/chunk"];
    for (number, path) in paths.into_iter().enumerate() {
        let mut client = server.connect();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let all = all_of(&mut client);
        let end = all.windows(4).position(|window| window == b"\r\n\r\n").expect(path) + 4;
        let head = String::from_utf8_lossy(&all[..end]).to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 200 "), "{path}: {head}");
        if head.contains("content-length") {
            assert!(head.contains("content-length: 100000\r\n"), "{path}: {head}");
            assert!(half.starts_with(&all[end..]), "{path}: other bytes");
        } else {
            assert!(head.contains("transfer-encoding: chunked"), "{path}: {head}");
            assert!(!all.ends_with(b"0\r\n\r\n"), "{path}: the answer looks whole");
        }
        let (status, sent) = logged(log_lines(&site.path().join("log"), number + 1).last().unwrap());
        assert!(status == 200 && sent < 100_000, "{path}: {sent}");
    }
    for path in ["/head", "/nothing"] {
        assert_eq!(server.get(path).status, 502, "{path}");
    }
    assert_eq!(server.get("/right").body, b"whole");
    let report = fs::read_to_string(site.path().join("report")).unwrap();
    assert_eq!(report.matches("a response was cut: ").count(), paths.len(), "{report}");
    assert_eq!(report.matches(&upstream.to_string()).count(), 2, "{report}");
}

/// A CGI program that is killed amid its answer.
#[test]
fn a_program_that_is_killed_amid_its_answer() {
    let site = site();
    let program = site.path().join("bin/dies");
    fs::create_dir_all(site.path().join("bin")).unwrap();
    let script = "#!/bin/sh\nprintf 'Content-Type: text/plain\\n'\n\
        [ \"$QUERY_STRING\" = length ] && printf 'Content-Length: 1000\\n'\nprintf '\\nhalf'\nkill -9 $$\n";
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let server = configured(site.path(), "report = 'report'\n[[route]]\npath = '/bin/'\ncgi = 'bin'\n");
    for query in ["length", "none"] {
        let mut client = server.connect();
        client.send(format!("GET /bin/dies?{query} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let all = String::from_utf8(all_of(&mut client)).unwrap();
        assert!(all.starts_with("HTTP/1.1 200 ") && all.contains("half"), "{all}");
        assert!(!all.ends_with("0\r\n\r\n"), "{query}: the answer looks whole");
    }
    let report = fs::read_to_string(site.path().join("report")).unwrap();
    assert_eq!(report.matches("a response was cut: ").count(), 2, "{report}");
}

/// Behind a proxy too, descriptors that run out cost no time and come back.
#[test]
fn no_descriptor_for_an_upstream() {
    let site = site();
    let upstream = dying();
    let server = configured(
        site.path(),
        &format!(
            "report = 'report'\n[[route]]\npath = '/files/'\ndirectory = '.'\n[[route]]\nproxy = '{upstream}'\n"
        ),
    );
    assert_eq!(server.get("/right").body, b"whole");
    let mut steady = server.connect();
    assert_eq!(steady.ask("GET /files/ten.txt HTTP/1.1\r\nHost: a\r\n\r\n").status, 200);
    // The connections of the first request are closed by now.
    std::thread::sleep(ms(200));
    // A descriptor is the lowest free number, and has to be below the limit.
    let is_open =
        |number: &u64| Path::new(&format!("/proc/{}/fd/{number}", server.pid().as_raw_pid())).exists();
    let limit = (0..).find(|number| !is_open(number)).unwrap();
    let cut = Rlimit { current: Some(limit), maximum: getrlimit(Resource::Nofile).maximum };
    let before = prlimit(Some(server.pid()), Resource::Nofile, cut).unwrap();
    let refused = steady.ask("GET /right HTTP/1.1\r\nHost: a\r\n\r\n").status;
    assert!(matches!(refused, 502 | 503), "{refused}");
    assert_eq!(steady.ask("GET /files/ten.txt HTTP/1.1\r\nHost: a\r\n\r\n").status, 200);
    let mut waits = server.connect();
    waits.send("GET /right HTTP/1.1\r\nHost: a\r\n\r\n");
    let time = server.processor_time();
    std::thread::sleep(ms(300));
    assert!(server.processor_time() - time < ms(100), "it spins");
    prlimit(Some(server.pid()), Resource::Nofile, before).unwrap();
    assert_eq!(waits.reply().body, b"whole");
    assert_eq!(steady.ask("GET /right HTTP/1.1\r\nHost: a\r\n\r\n").body, b"whole");
}

/// The process among `processes` that has the server's end of the connection.
fn process_of(client: &Client, processes: &[i32]) -> Option<i32> {
    let port = |end: std::io::Result<SocketAddr>| format!(":{:04X}", end.unwrap().port());
    let (here, there) = (port(client.stream.local_addr()), port(client.stream.peer_addr()));
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let mut rows = table.lines().map(|row| row.split_whitespace().collect::<Vec<_>>());
    let row = rows.find(|row| row[1].ends_with(&there) && row[2].ends_with(&here))?;
    let socket = format!("socket:[{}]", row[9]);
    processes.iter().copied().find(|process| {
        let open = fs::read_dir(format!("/proc/{process}/fd")).unwrap();
        open.flatten().any(|fd| fs::read_link(fd.path()).is_ok_and(|link| link.as_os_str() == &*socket))
    })
}

/// One of three processes is killed: its connections end, those of the others do not, and what
/// comes meanwhile is served by the process that takes its place.
#[test]
fn a_process_that_is_killed_takes_only_its_connections() {
    let site = site();
    let (file, _) = three_processes(site.path());
    let mut command = httpd(&[file.to_str().unwrap()]);
    command.stderr(Stdio::piped());
    let mut server: Server = start(command);
    let mut errors = server.errors();
    until("three processes", || children_of(&server).len() == 3);
    let children = children_of(&server);
    // A process that dies within its first second is replaced later.
    std::thread::sleep(ms(1200));
    let mut clients: Vec<(Client, i32)> = (0..60)
        .map(|_| {
            let mut client = server.connect();
            assert_eq!(client.ask(GET).status, 200);
            let process = process_of(&client, &children).expect("a process has the connection");
            (client, process)
        })
        .collect();
    let mut downloads: Vec<(Client, i32)> = (0..12)
        .map(|_| {
            let mut client = server.connect();
            client.send("GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n");
            client.wait_for_reply();
            let process = process_of(&client, &children).expect("a process has the connection");
            (client, process)
        })
        .collect();
    let victim = clients[0].1;
    assert!(clients.iter().any(|(_, process)| *process != victim), "one process has all");
    kill(victim);
    until("the end of the process", || {
        fs::read_to_string(format!("/proc/{victim}/stat")).map_or(true, |stat| stat.contains(") Z "))
    });
    // They wait for a process, perhaps for the new one.
    let mut later: Vec<Client> = (0..30).map(|_| server.connect()).collect();
    later.iter_mut().for_each(|client| client.send(GET));
    for (client, process) in &mut clients {
        if *process == victim {
            assert!(client.stream.write_all(GET.as_bytes()).is_err() || client.try_reply(false).is_none());
        } else {
            assert_eq!(client.ask(GET).body, b"0123456789");
        }
    }
    for (client, process) in &mut downloads {
        if *process != victim {
            assert!(client.reply().body == bytes(3_000_000));
        }
    }
    until("another process", || children_of(&server).len() == 3);
    assert!(children_of(&server).iter().filter(|process| children.contains(process)).count() == 2);
    for client in &mut later {
        assert_eq!(client.reply().body, b"0123456789");
    }
    assert!(errors.line().contains("has died; a new one takes its place"));
    // The parent and its new process hear the signal.
    let address = server.address;
    server.signal(Signal::TERM);
    assert!(server.end().success());
    assert!(TcpStream::connect(address).is_err());
}
