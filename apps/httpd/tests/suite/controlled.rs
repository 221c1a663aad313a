//! A server by its configuration as its operator has it: mistakes, reloads, commands, logs, users,
//! daemons, several processes.

use crate::common::{Server, free_address, let_settle, log_lines, ms, site, start};
use crate::configured::{configured, httpd, output};
use rustix::process::Signal;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

const GET: &str = "GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n";

pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < crate::common::PATIENCE, "{what}");
        std::thread::sleep(ms(10));
    }
}

pub(crate) fn ctl(file: &Path, command: &str) -> Result<String, String> {
    let output = output(&["ctl", file.to_str().unwrap(), command]);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

/// A reload by the socket itself, because `file` gets a `text` that names none.
fn ctl_at(site: &Path, file: &Path, text: &str) -> Result<String, String> {
    fs::write(file, text).unwrap();
    let output = output(&["ctl", "--socket", site.join("control").to_str().unwrap(), "reload"]);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

#[test]
fn mistakes_are_told() {
    let site = site();
    let file = site.path().join("site.toml");
    let path = file.to_str().unwrap();
    let say = |text: &str, arguments: &[&str]| {
        fs::write(&file, text).unwrap();
        let output = output(arguments);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let expected =
        format!("selvedge-httpd: {path}:2:1: there is no key `directroy` here; did you mean `directory`?\n");
    for arguments in [&["check", path][..], &[path], &["--config", path]] {
        assert_eq!(say("[[route]]\ndirectroy = '.'\n", arguments), (Some(2), expected.clone()));
    }
    for (text, words) in [
        ("[[route]]\ndirectory = 'nothing'\n", ":1:1: "),
        ("listen = ['nonsense']\n[[route]]\nanswer = 404\n", ":1:11: no address to listen at"),
        ("[log]\nformat = '$nothing'\n[[route]]\nanswer = 404\n", ":2:10: $nothing is no variable"),
        ("log = { level = 'debug' }\n[[route]]\nanswer = 404\n", ":1:17: \"debug\" is not \"error\""),
        ("[[route]]\nproxy = 'a:1'\nbalance = 'random'\n", ":3:11: \"random\" is not one of \"round_robin\""),
        ("[[route]]\ncgi = '.'\nbalance = 'path'\n", ":3:11: `balance` belongs to `proxy`"),
        ("[[route]]\ncgi = '.'\nprograms = { at_once = 0 }\n", ":3:24: no program could ever run"),
        ("[[route]]\nproxy = 'a:1'\ntimes = { read = 0 }\n", ":3:18: not a number of seconds above 0"),
        ("[[route]]\nproxy = 'a:1'\nhealth = { path = 'up' }\n", ":3:19: a path begins with /"),
        ("processes = 2\nlisten = ['unix:/x']\n[[route]]\nanswer = 404\n", ":1:13: several processes"),
    ] {
        let (status, message) = say(text, &["check", path]);
        assert!(status == Some(2) && message.contains(words), "{message}");
    }
    let (status, message) = say("[[route]]\nanswer = 404\n", &[path, "--workers", "2"]);
    assert!(status == Some(2) && message.contains("belong into its file"), "{message}");
    assert_eq!(say("[[route]]\nanswer = 404\n", &["check", path]).0, Some(0));
    let keys = String::from_utf8(output(&["keys"]).stdout).unwrap();
    assert!(keys.contains("| `listen` |"));
}

#[test]
fn a_reload_changes_routes_and_closes_nothing() {
    let site = site();
    let first = "control = 'control'\n[[route]]\ndirectory = '.'\n";
    let server = configured(site.path(), first);
    let file = site.path().join("site.toml");
    let mut kept = server.connect();
    assert_eq!(kept.ask(GET).status, 200);
    // A download that has begun goes on.
    let mut download = server.connect();
    download.send("GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n");
    download.wait_for_reply();
    let begin = fs::read_to_string(&file).unwrap();
    fs::write(&file, begin.replace("directory = '.'", "path = '/docs/'\ndirectory = 'docs'")).unwrap();
    assert_eq!(ctl(&file, "reload").unwrap(), "1 routes\n");
    until("the new routes", || kept.ask(GET).status == 404);
    assert_eq!(server.get("/docs/").body, b"<h1>Docs</h1>");
    assert_eq!(download.reply().body.len(), 3_000_000);
    // A mistake changes nothing.
    let right = fs::read_to_string(&file).unwrap();
    fs::write(&file, right.replace("'/docs/'", "'docs'")).unwrap();
    let refused = output(&["ctl", "--socket", site.path().join("control").to_str().unwrap(), "reload"]);
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(message.contains("site.toml:5:8: the path \"docs\" does not begin with /"), "{message}");
    assert_eq!(server.get("/docs/").status, 200);
    // So does a signal.
    server.signal(Signal::HUP);
    fs::write(&file, begin).unwrap();
    server.signal(Signal::HUP);
    until("the first routes", || kept.ask(GET).status == 200);
}

/// A reload changes the access log, its format, the report and its level. Lines of earlier replies
/// are in the former log.
#[test]
fn a_reload_changes_logs() {
    let site = site();
    let route = "[[route]]\ndirectory = '.'\n";
    let server = configured(
        site.path(),
        &format!(
            "control = 'control'\nreport = 'report'\n[log]\naccess = 'log'\nformat = '$status'\n{route}"
        ),
    );
    let file = site.path().join("site.toml");
    let first = fs::read_to_string(&file).unwrap();
    let reload = |text: &str| {
        fs::write(&file, text).unwrap();
        ctl(&file, "reload")
    };
    let content = |name: &str| fs::read_to_string(site.path().join(name)).unwrap_or_default();
    let mut kept = server.connect();
    assert_eq!(kept.ask(GET).status, 200);
    let with = |log: &str| first.replace("access = 'log'\nformat = '$status'\n", log);
    assert_eq!(reload(&with("access = 'later'\nformat = '$path $status'\n")).unwrap(), "1 routes\n");
    until("a line in the later log", || {
        assert_eq!(kept.ask(GET).status, 200);
        content("later").starts_with("/ten.txt 200\n")
    });
    assert!(content("log").starts_with("200\n") && !content("log").contains("ten.txt"));
    // A log that cannot be opened is refused, with its routes: all goes on.
    let refused = with("access = 'none/log'\n").replace("directory = '.'", "answer = 404");
    let why = ctl_at(site.path(), &file, &refused).unwrap_err();
    assert!(why.contains("none/log"), "{why}");
    let before = content("later").lines().count();
    until("another line in it", || {
        assert_eq!(kept.ask(GET).status, 200);
        content("later").lines().count() > before
    });
    // No log, and then one again. A download goes on meanwhile, and its connection is kept.
    const BIG: &str = "GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut download = server.connect();
    download.send(BIG);
    download.wait_for_reply();
    reload(&with("access = 'off'\n")).unwrap();
    std::thread::sleep(ms(1000));
    let lines = content("later").lines().count();
    assert_eq!(kept.ask(GET).status, 200);
    assert_eq!(download.reply().body.len(), 3_000_000);
    std::thread::sleep(ms(1000));
    assert_eq!(content("later").lines().count(), lines);
    // The report is another file, and only errors go there.
    let quiet = with("access = 'later'\nformat = '$path $status'\nlevel = 'error'\n");
    let quiet = quiet.replace("report = 'report'", "report = 'errors'");
    assert_eq!(reload(&quiet).unwrap(), "1 routes\n");
    until("a line again", || {
        assert_eq!(kept.ask(GET).status, 200);
        content("later").lines().count() > lines
    });
    download.send(BIG);
    download.wait_for_reply();
    assert_eq!(download.reply().body.len(), 3_000_000);
    let big = || content("later").matches("/big.bin").count();
    until("the line of the second download", || big() > 0);
    assert_eq!(big(), 1, "the first ended when there was no log");
    let told = content("report").lines().count();
    ctl_at(site.path(), &file, "nonsense").unwrap_err();
    assert!(content("errors").contains("the server goes on as it was"), "{}", content("errors"));
    assert_eq!(content("report").lines().count(), told);
    // The rest takes an upgrade, and the answer says so.
    let process = format!("daemon = true\n{quiet}");
    assert!(reload(&process).unwrap().contains("what concerns the process"));
    let errors = content("errors");
    assert!(!errors.contains("the configuration was read again"), "{errors}");
}

/// A reload changes the limits and times of open connections too, and closes none of them.
#[test]
fn a_reload_changes_limits() {
    let site = site();
    let server = configured(site.path(), "control = 'control'\n[[route]]\ndirectory = '.'\n");
    let file = site.path().join("site.toml");
    let first = fs::read_to_string(&file).unwrap();
    // The worker may hear of the reload a moment after its answer.
    let reload = |limits: &str| {
        fs::write(&file, format!("{first}[limits]\n{limits}")).unwrap();
        assert_eq!(ctl(&file, "reload").unwrap(), "1 routes\n", "{limits}");
    };
    let mut kept = server.connect();
    let long = format!("GET /ten.txt HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(3000));
    assert_eq!((kept.ask(&long).status, kept.ask(GET).status), (200, 200));
    // Sizes: a head, a target, and a body.
    reload("head_bytes = 1000\nbody_bytes = 10\n");
    until("the shorter heads", || server.ask(&long).status == 431);
    assert_eq!(server.get(&format!("/{}", "x".repeat(700))).status, 414);
    let body = |length: usize| {
        let text = "x".repeat(length);
        server.ask(&format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{text}")).status
    };
    assert_eq!((body(10), body(11)), (405, 413));
    assert_eq!(kept.ask(GET).status, 200);
    reload("head_bytes = 8000\nbody_bytes = 20\n");
    until("the longer heads", || server.ask(&long).status == 200);
    assert_eq!((body(20), body(21)), (405, 413));
    assert_eq!(kept.ask(&long).status, 200);
    // Times. A connection that waits already has the time that it had: 60 s. The servers of these
    // tests would else take longer than a test waits.
    reload("idle = 0.2\nhead = 0.2\nbody = 0.2\n");
    until("a short time for a head", || {
        let mut slow = server.connect();
        slow.send("GET /ten.txt HTTP");
        slow.stream.set_read_timeout(Some(ms(2000))).unwrap();
        let mut byte = [0];
        slow.stream.read(&mut byte).is_ok_and(|count| count == 1)
    });
    assert_eq!(kept.ask(GET).status, 200);
    kept.assert_end();
    let mut slow = server.connect();
    slow.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab");
    assert_eq!(slow.reply().status, 405);
    slow.assert_end();
}

/// A reload changes the sizes of the caches, and the bytes of the former ones are given back. A
/// connection that is open goes on.
#[test]
fn a_reload_changes_caches() {
    let site = site();
    // Blocks of files that have just been written are not kept.
    let_settle();
    let text = |cache: &str| {
        let listen = "listen = ['127.0.0.1:0']\nworkers = 1\n";
        format!("{listen}control = 'control'\n[[route]]\ndirectory = '.'\n[cache]\n{cache}")
    };
    let file = site.path().join("site.toml");
    for (first, later, other_way, metric) in [
        ("bytes = 100000\n", "bytes = 3000\n", "direct = 4194304\n", "selvedge_file_cache_bytes"),
        ("direct = 8000000\n", "direct = 1000000\n", "direct = 0\n", "selvedge_block_cache_bytes"),
    ] {
        fs::write(&file, text(first)).unwrap();
        let server = start(httpd(&[file.to_str().unwrap()]));
        let mut kept = server.connect();
        let mut bytes = || {
            for path in ["big.bin", "middle.bin", "docs/", "", "ten.txt"] {
                assert_eq!(kept.ask(&format!("GET /{path} HTTP/1.1\r\nHost: a\r\n\r\n")).status, 200);
            }
            let told = ctl(&file, "counters").unwrap();
            let value = told.lines().find_map(|line| line.strip_prefix(metric)).unwrap_or("0");
            value.trim().parse::<u64>().unwrap()
        };
        let most: u64 = later.trim().rsplit(' ').next().unwrap().parse().unwrap();
        let before = bytes();
        assert!(before > most, "{metric} {before}");
        fs::write(&file, text(later)).unwrap();
        assert_eq!(ctl(&file, "reload").unwrap(), "1 routes\n");
        until("smaller caches", || (1..=most).contains(&bytes()));
        fs::write(&file, text(other_way)).unwrap();
        let answer = ctl(&file, "reload").unwrap();
        assert!(answer.contains("turns `cache.direct` on or off"), "{answer}");
        fs::write(&file, text(first)).unwrap();
        ctl(&file, "reload").unwrap();
        until("larger caches", || bytes() > most);
    }
}

/// A reload changes how many connections an address may have, and which balancers are believed. The
/// connections that are open count, and stay.
#[test]
fn a_reload_changes_the_gate() {
    let site = site();
    let limits = |limits: &str| format!("control = 'control'\n{limits}[[route]]\ndirectory = '.'\n");
    let of = |most: u32| limits(&format!("limits.connections_per_address = {most}\n"));
    let server = configured(site.path(), &of(2));
    let file = site.path().join("site.toml");
    let listen = fs::read_to_string(&file).unwrap().replace(&of(2), "");
    let reload = |text: &str| {
        fs::write(&file, format!("{listen}{text}")).unwrap();
        assert_eq!(ctl(&file, "reload").unwrap(), "1 routes\n", "{text}");
        std::thread::sleep(ms(100));
    };
    let open = || {
        let mut client = server.connect();
        // A connection that the server refuses may be reset under the request.
        let _ = client.stream.write_all(GET.as_bytes());
        client.try_reply(false).is_some_and(|reply| reply.status == 200).then_some(client)
    };
    let mut kept: Vec<_> = (0..2).map(|_| open().unwrap()).collect();
    assert!(open().is_none());
    reload(&of(3));
    kept.push(open().expect("a third connection"));
    assert!(open().is_none());
    reload(&of(1));
    assert!(kept.iter_mut().all(|client| client.ask(GET).status == 200));
    kept.truncate(1);
    until("the end of two connections", || {
        let status = ctl(&file, "status").unwrap();
        status.lines().any(|line| line.starts_with("connections") && line.contains(" 1 open"))
    });
    assert!(open().is_none());
    reload(&limits(""));
    assert!(open().is_some());
    reload(&limits("proxy_protocol = ['127.0.0.1']\n"));
    assert!(open().is_none());
    let mut client = server.connect();
    client.send(format!("PROXY TCP4 192.0.2.7 10.0.0.1 51000 80\r\n{GET}"));
    assert_eq!(client.reply().status, 200);
    assert_eq!(kept[0].ask(GET).status, 200);
}

/// A body comes on by the route with which its request began, also when the route is gone and its
/// length would be beyond the limit by now.
#[test]
fn an_upload_outlives_a_reload() {
    let site = site();
    let program = site.path().join("count");
    fs::write(&program, "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\nwc -c\n").unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let (route, common) = ("[[route]]\npath = '/cgi/'\ncgi = '.'\n", "control = 'control'\n");
    let rest = "[[route]]\ndirectory = 'docs'\n";
    let server = configured(site.path(), &format!("{common}{route}{rest}"));
    let file = site.path().join("site.toml");
    let mut upload = server.connect();
    upload.send("POST /cgi/count HTTP/1.0\r\nHost: a\r\nContent-Length: 300000\r\n\r\n");
    upload.send(vec![b'w'; 100_000]);
    upload.wait_until_read();
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{}[limits]\nbody_bytes = 10\n", text.replace(route, ""))).unwrap();
    ctl(&file, "reload").unwrap();
    until("the new routes", || server.get("/cgi/count").status == 404);
    upload.send(vec![b'w'; 200_000]);
    let reply = String::from_utf8(upload.rest()).unwrap();
    assert!(reply.starts_with("HTTP/1.1 200 ") && reply.trim_end().ends_with("300000"), "{reply}");
}

/// Routes, limits and times change all the time while clients ask for a file that all routes have,
/// and no connection is closed.
#[test]
fn reloads_under_load() {
    let site = site();
    let server = configured(site.path(), "control = 'control'\n[[route]]\ndirectory = '.'\n");
    let file = site.path().join("site.toml");
    let text = fs::read_to_string(&file).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    let done = &done;
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|n| {
                let server = &server;
                scope.spawn(move || {
                    let mut client = server.connect();
                    let request = if n == 0 { "GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n" } else { GET };
                    let mut served = 0;
                    while !done.load(std::sync::atomic::Ordering::Relaxed) {
                        assert_eq!(client.ask(request).status, 200);
                        served += 1;
                    }
                    served
                })
            })
            .collect();
        for n in 0..20 {
            let more = format!(
                "[[route]]\npath = '/other/'\nanswer = 404\n[limits]\nidle = {}\nhead_bytes = {}\n\
                 body_bytes = {n}\nwrite = {}\nconnections_per_address = {}\n",
                20 + n,
                1000 + n,
                20 + n,
                8 + n
            );
            fs::write(&file, if n % 2 == 0 { format!("{text}{more}") } else { text.clone() }).unwrap();
            server.signal(Signal::HUP);
            std::thread::sleep(ms(10));
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        let served: u64 = clients.into_iter().map(|client| client.join().unwrap()).sum();
        assert!(served > 20, "{served}");
    });
}

#[test]
fn commands() {
    let site = site();
    let server = configured(site.path(), "control = 'control'\n[[route]]\ndirectory = '.'\n");
    let file = site.path().join("site.toml");
    let mut client = server.connect();
    assert_eq!(client.ask(GET).status, 200);
    let status = ctl(&file, "status").unwrap();
    assert!(status.contains(&format!("address      http://{}/\n", server.address)), "{status}");
    assert!(
        status.contains("1 open, 1 accepted") && status.contains("route        any / directory "),
        "{status}"
    );
    assert!(ctl(&file, "counters").unwrap().contains("selvedge_requests_total{class=\"2xx\"} 1\n"));
    let threads = ctl(&file, "threads").unwrap();
    // The worker's threads too: it waits for its listener, and for the client.
    assert!(threads.contains("running::worker") && threads.contains("serve"), "{threads}");
    assert!(ctl(&file, "nonsense").unwrap_err().contains("there are status, reload, retire"));
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &fs::metadata(site.path().join("control")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    // It retires: connections that ask may go on, and the process ends with the last.
    let mut busy = server.connect();
    busy.send(&GET[..10]);
    busy.wait_until_read();
    ctl(&file, "retire").unwrap();
    until("no more connections", || std::net::TcpStream::connect(server.address).is_err());
    let mut server = server;
    // The idle connection has one more reply, which says that it is the last.
    let last = client.ask(GET);
    assert_eq!((last.status, last.field("Connection")), (200, Some("close")));
    assert!(server.is_running());
    busy.send(&GET[10..]);
    assert_eq!(busy.reply().status, 200);
    assert!(server.end().success());
    assert!(!site.path().join("control").exists());
    assert!(ctl(&file, "status").unwrap_err().contains("control"));
}

#[test]
fn formats_of_the_log() {
    let site = site();
    let server = configured(
        site.path(),
        "[log]\naccess = 'log'\nformat = '$host \"$request\" $status $bytes'\n[[route]]\ndirectory = '.'\n",
    );
    server.ask("GET /ten.txt HTTP/1.1\r\nHost: www.example.org\r\n\r\n");
    server.ask("nonsense\r\n\r\n");
    let mut lines = log_lines(&site.path().join("log"), 2);
    lines.sort();
    assert_eq!(lines[0], "- \"nonsense\" 400 120");
    assert_eq!(lines[1], "www.example.org \"GET /ten.txt HTTP/1.1\" 200 10");
    let server =
        configured(site.path(), "[log]\naccess = 'json'\nformat = 'json'\n[[route]]\ndirectory = '.'\n");
    server.get("/ten.txt");
    let lines = log_lines(&site.path().join("json"), 1);
    assert!(lines[0].contains("\"path\":\"/ten.txt\"") && lines[0].ends_with("\"status\":200,\"bytes\":10}"));
}

#[test]
fn a_log_that_is_renamed_by_size() {
    let site = site();
    let server = configured(
        site.path(),
        "[log]\naccess = 'log'\nrotate_bytes = 100\nbackups = 2\n[[route]]\ndirectory = '.'\n",
    );
    let log = |end: &str| site.path().join(format!("log{end}"));
    for end in ["", ".1", ".2"] {
        // Each buffer of lines is written within a second, and is more than the limit.
        until("a renamed log", || {
            server.get("/ten.txt");
            log(end).exists()
        });
    }
    assert!(!log(".3").exists());
}

#[test]
fn the_number_of_the_process_and_systemd() {
    let site = site();
    let socket = UnixDatagram::bind(site.path().join("notify")).unwrap();
    socket.set_read_timeout(Some(crate::common::PATIENCE)).unwrap();
    let file = site.path().join("site.toml");
    fs::write(&file, "listen = ['127.0.0.1:0']\nworkers = 2\npid_file = 'pid'\n[[route]]\ndirectory = '.'\n")
        .unwrap();
    let mut command = httpd(&[file.to_str().unwrap()]);
    command.env("NOTIFY_SOCKET", site.path().join("notify")).env("WATCHDOG_USEC", "100000");
    let server = start(command);
    let heard = || {
        let mut buffer = [0; 100];
        let len = socket.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..len].to_vec()).unwrap()
    };
    assert_eq!([heard(), heard(), heard()], ["READY=1", "WATCHDOG=1", "WATCHDOG=1"]);
    let pid = fs::read_to_string(site.path().join("pid")).unwrap();
    assert_eq!(pid.trim(), server.pid().as_raw_pid().to_string());
    server.signal(Signal::TERM);
    assert!(server.end().success());
    assert!(!site.path().join("pid").exists());
    until("the last word", || heard() == "STOPPING=1");
}

/// A socket that is bound before, as systemd does it: the shell sets `LISTEN_PID` to the number
/// that the server then has.
#[test]
fn sockets_that_systemd_has_bound() {
    let site = site();
    let script = "import os, socket, sys\n\
        s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()\n\
        os.dup2(s.fileno(), 9); os.dup2(9, 3, inheritable=True)\n\
        os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid()))\n\
        os.execv(sys.argv[1], sys.argv[1:])\n";
    let mut command = std::process::Command::new("python3");
    command.args(["-c", script, env!("CARGO_BIN_EXE_selvedge-httpd"), "--workers", "2"]).arg(site.path());
    let server = start(command);
    for _ in 0..10 {
        assert_eq!(server.get("/ten.txt").status, 200);
    }
    // A program that the server starts does not have the socket.
    let pid = server.pid().as_raw_pid();
    let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/3")).unwrap();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap().trim();
    assert_ne!(u32::from_str_radix(flags, 8).unwrap() & 0o2_000_000, 0, "{info}");
}

#[test]
fn another_user() {
    if !rustix::process::getuid().is_root() {
        return;
    }
    let site = site();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(site.path(), open).unwrap();
    let server = configured(site.path(), "user = 'nobody'\n[[route]]\ndirectory = '.'\n");
    assert_eq!(server.get("/ten.txt").status, 200);
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid().as_raw_pid())).unwrap();
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap();
    assert!(uids.split_whitespace().all(|uid| uid == "65534"), "{uids}");
    // Every OS thread.
    for thread in fs::read_dir(format!("/proc/{}/task", server.pid().as_raw_pid())).unwrap() {
        let status = fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
        assert!(
            status.contains("\nUid:\t65534\t65534\t65534\t65534\n") && status.contains("\nGroups:\t65534")
        );
    }
}

#[test]
fn a_daemon() {
    let site = site();
    let file = site.path().join("site.toml");
    fs::write(&file, "listen = ['127.0.0.1:0']\ndaemon = true\npid_file = 'pid'\nreport = 'report'\ncontrol = 'control'\n[[route]]\ndirectory = '.'\n").unwrap();
    let path = file.to_str().unwrap();
    let started = httpd(&[path]).stdin(Stdio::null()).output().unwrap();
    assert!(started.status.success());
    let line = String::from_utf8(started.stdout).unwrap();
    let address = line.trim().rsplit_once("http://").unwrap().1.trim_end_matches('/').to_owned();
    let mut client = crate::common::Client::new(std::net::TcpStream::connect(address).unwrap());
    assert_eq!(client.ask(GET).status, 200);
    drop(client);
    let pid: u32 = fs::read_to_string(site.path().join("pid")).unwrap().trim().parse().unwrap();
    assert!(ctl(&file, "status").unwrap().contains(&format!("process      {pid}\n")));
    let right = fs::read_to_string(&file).unwrap();
    fs::write(&file, "nonsense").unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid as i32).unwrap(), Signal::HUP).unwrap();
    let report = || fs::read_to_string(site.path().join("report")).unwrap();
    until("a report of the mistake", || report().contains("the server goes on as it was"));
    fs::write(&file, right).unwrap();
    ctl(&file, "stop").unwrap();
    until("the end of the daemon", || !site.path().join("pid").exists());
    // A mistake is told where it was started.
    fs::write(&file, "listen = ['203.0.113.7:80']\ndaemon = true\n[[route]]\ndirectory = '.'\n").unwrap();
    let failed = output(&[path]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(String::from_utf8(failed.stderr).unwrap().contains("Cannot assign requested address"));
}

/// The configuration of a site with three processes in `site`, and its port.
pub(crate) fn three_processes(site: &Path) -> (std::path::PathBuf, u16) {
    let file = site.join("site.toml");
    let port = free_address().port();
    fs::write(
        &file,
        format!(
            "listen = ['127.0.0.1:{port}']\nprocesses = 3\npid_file = 'pid'\n[[route]]\ndirectory = '.'\n"
        ),
    )
    .unwrap();
    (file, port)
}

pub(crate) fn children_of(server: &Server) -> Vec<i32> {
    let parent = server.pid().as_raw_pid();
    let path = format!("/proc/{parent}/task/{parent}/children");
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

pub(crate) fn kill(pid: i32) {
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

/// The program's file is gone when a process dies: the others end with the parent.
#[test]
fn several_processes_of_a_program_that_is_gone() {
    let site = site();
    let (file, port) = three_processes(site.path());
    let program = site.path().join("program");
    fs::copy(env!("CARGO_BIN_EXE_selvedge-httpd"), &program).unwrap();
    let mut command = std::process::Command::new(&program);
    command.arg(&file);
    let server = start(command);
    until("three processes", || children_of(&server).len() == 3);
    std::thread::sleep(ms(1200));
    fs::remove_file(&program).unwrap();
    kill(children_of(&server)[0]);
    assert!(!server.end().success());
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
}

/// Several processes serve one address; one that dies is replaced, also if it has just begun; a
/// signal reaches all. A second server does not share the address.
#[test]
fn several_processes_say_why_they_do_not_start() {
    let site = site();
    let file = site.path().join("site.toml");
    let text = "listen = ['127.0.0.1:0']\nprocesses = 2\nuser = 'no such user'\n[[route]]\ndirectory = '.'\n";
    fs::write(&file, text).unwrap();
    let failed = output(&[file.to_str().unwrap()]);
    let told = String::from_utf8(failed.stderr).unwrap();
    assert!(!failed.status.success() && told.contains("no such user"), "{told}");
}

#[test]
fn several_processes() {
    let site = site();
    let (file, port) = three_processes(site.path());
    let server: Server = start(httpd(&[file.to_str().unwrap()]));
    let children = || children_of(&server);
    until("three processes", || children().len() == 3);
    // All of them have bound the address once they answer.
    std::thread::sleep(ms(1200));
    assert_eq!(server.get("/ten.txt").status, 200);
    let pid = fs::read_to_string(site.path().join("pid")).unwrap();
    let second = output(&[file.to_str().unwrap()]);
    assert_eq!(second.status.code(), Some(1));
    assert!(String::from_utf8(second.stderr).unwrap().contains("Address already in use"));
    assert_eq!(fs::read_to_string(site.path().join("pid")).unwrap(), pid);
    let first = children();
    let replaced = |before: Vec<i32>| {
        until("another process", || children().len() == 3 && children() != before);
        children().into_iter().find(|pid| !before.contains(pid)).unwrap()
    };
    kill(first[0]);
    let later = replaced(first);
    let before = children();
    kill(later);
    replaced(before);
    until("an answer", || {
        let mut client = server.connect();
        client.send(GET);
        client.try_reply(false).is_some_and(|reply| reply.status == 200)
    });
    server.signal(Signal::TERM);
    assert!(server.end().success());
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
    assert!(!site.path().join("pid").exists());
}
