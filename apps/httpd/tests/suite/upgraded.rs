//! The program's file is replaced while the server runs: one process hands over to the next.

use crate::common::{Client, PATIENCE, Server, log_lines, ms, site, start};
use crate::controlled::{ctl, until};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

const GET: &str = "GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n";

/// A server with a program of its own, a configuration with `control` and `pid_file`, and all the
/// processes that take over one from the other.
pub(crate) struct Line {
    pub(crate) site: tempfile::TempDir,
    pub(crate) first: Server,
}

impl Line {
    /// `more` is added to the configuration, in front of its one route.
    pub(crate) fn new(more: &str, environment: &[(&str, &Path)]) -> Line {
        let site = site();
        fs::set_permissions(site.path(), PermissionsExt::from_mode(0o755)).unwrap();
        install(site.path());
        configure(site.path(), more);
        let mut command = Command::new(site.path().join("httpd"));
        command.arg(site.path().join("site.toml")).envs(environment.iter().copied());
        Line { first: start(command), site }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.site.path().join("site.toml")
    }

    /// The process that serves, by its own file.
    pub(crate) fn process(&self) -> Option<Pid> {
        let number = fs::read_to_string(self.site.path().join("pid")).ok()?;
        Pid::from_raw(number.trim().parse().ok()?)
    }

    pub(crate) fn ctl(&self, command: &str) -> Result<String, String> {
        ctl(&self.file(), command)
    }

    pub(crate) fn connect(&self) -> Client {
        Client::new(TcpStream::connect(self.first.address).unwrap())
    }

    pub(crate) fn stop(&self) {
        self.ctl("stop").unwrap();
        until("no socket", || TcpStream::connect(self.first.address).is_err());
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // A test that has failed has left a process that is no child of it.
        if let Some(process) = self.process() {
            let _ = kill_process(process, Signal::KILL);
        }
    }
}

/// Puts a new file with the program into the place of the old one.
pub(crate) fn install(site: &Path) {
    // Another process writes the file: a descriptor of this one might be in a child of another test
    // when the file is run, and the kernel runs no file that is open for writing.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_selvedge-httpd")).arg(site.join("next")).status();
    assert!(copied.unwrap().success());
    fs::rename(site.join("next"), site.join("httpd")).unwrap();
}

fn configure(site: &Path, more: &str) {
    let listen = if more.contains("listen") { "" } else { "listen = ['127.0.0.1:0']\n" };
    let common = "control = 'control'\npid_file = 'pid'\n";
    fs::write(site.join("site.toml"), format!("{listen}{common}{more}\n[[route]]\ndirectory = '.'\n"))
        .unwrap();
}

/// Asks until `done`, and on a new connection if the server says that it closes the old one.
pub(crate) fn ask_on(address: std::net::SocketAddr, keeps: bool, done: &AtomicBool, served: &AtomicU64) {
    let connect = || Client::new(TcpStream::connect(address).expect("no connection is refused"));
    let mut client = connect();
    while !done.load(Relaxed) {
        let reply = client.ask(GET);
        assert_eq!((reply.status, &reply.body[..]), (200, &b"0123456789"[..]));
        served.fetch_add(1, Relaxed);
        if !keeps || reply.field("Connection") == Some("close") {
            client = connect();
        }
    }
}

#[test]
fn no_request_is_lost_under_load() {
    let line = Line::new("workers = 2\nlog = { access = 'access.log' }", &[]);
    let (done, served) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut download = line.connect();
    download.send("GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n");
    download.wait_for_reply();
    let mut idle = line.connect();
    let mut asked = 1;
    std::thread::scope(|scope| {
        for keeps in [true, true, false, false] {
            let (line, done, served) = (&line, &done, &served);
            scope.spawn(move || ask_on(line.first.address, keeps, done, served));
        }
        let upgrades = || {
            let mut processes = vec![line.process().unwrap()];
            for _ in 0..5 {
                install(line.site.path());
                let said = line.ctl("upgrade").unwrap();
                let process = line.process().unwrap();
                assert!(said.starts_with(&format!("process {} serves;", process.as_raw_pid())), "{said}");
                let running = fs::metadata(format!("/proc/{}/exe", process.as_raw_pid())).unwrap().ino();
                assert_eq!(running, fs::metadata(line.site.path().join("httpd")).unwrap().ino());
                processes.push(process);
                let before = served.load(Relaxed);
                until("requests are served", || served.load(Relaxed) > before + 20);
            }
            processes.dedup();
            processes.len()
        };
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(upgrades));
        done.store(true, Relaxed);
        assert_eq!(result.unwrap(), 6);
    });
    // What the first process had begun it ends, and its idle client has an answer.
    assert_eq!(download.reply().body.len(), 3_000_000);
    let last = idle.ask(GET);
    assert_eq!((last.status, last.field("Connection")), (200, Some("close")));
    asked += 1;
    line.stop();
    let lines = log_lines(&line.site.path().join("access.log"), (served.load(Relaxed) + asked) as usize);
    assert_eq!(lines.len() as u64, served.load(Relaxed) + asked);
    until("no file is left", || line.process().is_none() && !line.site.path().join("control").exists());
}

#[test]
fn a_process_that_cannot_serve_changes_nothing() {
    let line = Line::new("", &[]);
    let (first, right) = (line.process(), fs::read_to_string(line.file()).unwrap());
    let script = |text: &str| {
        // A script that is being written is not run either.
        let write = format!("printf '#!/bin/sh\\n{text}\\n' >next && chmod 755 next && mv next httpd");
        let written = Command::new("sh").args(["-c", &write]).current_dir(line.site.path()).status();
        assert!(written.unwrap().success());
    };
    script("exit 3");
    assert!(line.ctl("upgrade").unwrap_err().contains("ended before it served: exit status: 3"));
    script("kill -9 $$");
    assert!(line.ctl("upgrade").unwrap_err().contains("ended before it served: signal: 9"));
    fs::remove_file(line.site.path().join("httpd")).unwrap();
    assert!(line.ctl("upgrade").unwrap_err().contains("httpd: No such file"));
    install(line.site.path());
    fs::write(line.file(), right.replace("directory", "directroy")).unwrap();
    // `ctl` itself reads where the control socket is, so the command goes to the socket.
    let socket = line.site.path().join("control");
    let told = crate::configured::output(&["ctl", "--socket", socket.to_str().unwrap(), "upgrade"]);
    let told = String::from_utf8(told.stderr).unwrap();
    assert!(told.contains("site.toml:") && told.contains("did you mean `directory`?"), "{told}");
    fs::write(line.file(), right.replace("listen = [", "listen = ['203.0.113.7:80', ")).unwrap();
    assert!(line.ctl("upgrade").unwrap_err().contains("203.0.113.7:80"));
    fs::write(line.file(), &right).unwrap();
    assert_eq!((line.process(), line.connect().ask(GET).status), (first, 200));
    assert!(line.ctl("status").unwrap().contains(&format!("process      {}\n", first.unwrap().as_raw_pid())));
    line.ctl("upgrade").unwrap();
    assert_ne!(line.process(), first);
    assert_eq!(line.connect().ask(GET).status, 200);
    line.stop();
}

/// Workers and addresses change from one process to the next.
#[test]
fn another_number_of_workers_and_other_addresses() {
    let listen = |addresses: &str, workers: u32| format!("listen = [{addresses}]\nworkers = {workers}");
    let line = Line::new(&listen("'127.0.0.1:0', 'unix:a', 'localhost:0'", 1), &[]);
    let directory = line.site.path();
    // A relative path of a socket is that of the directory in which the server was started.
    let _a = Removed(PathBuf::from("a"));
    let _b = Removed(PathBuf::from("b"));
    let on_unix = |path: &str| UnixStream::connect(path).is_ok();
    assert!(on_unix("a"));
    for (workers, addresses, has_b) in [
        (3, "'127.0.0.1:0', 'unix:a', 'localhost:0'", false),
        (1, "'127.0.0.1:0', 'unix:b', 'localhost:0'", true),
        (2, "'localhost:0', 'unix:b', '127.0.0.1:0'", true),
    ] {
        configure(directory, &listen(addresses, workers));
        let before = line.process();
        line.ctl("upgrade").unwrap();
        assert_ne!(line.process(), before);
        for _ in 0..20 {
            assert_eq!(line.connect().ask(GET).status, 200);
        }
        assert_eq!(on_unix("b"), has_b);
        let status = line.ctl("status").unwrap();
        assert!(status.contains(&format!("address      http://{}/\n", line.first.address)), "{status}");
    }
    until("the socket that is served no more", || !on_unix("a"));
    line.stop();
    until("no socket is left", || !Path::new("b").exists());
}

/// A file in the current directory, removed when the test ends.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn systemd_is_told_which_process_serves() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let environment = [("NOTIFY_SOCKET", &*path), ("WATCHDOG_USEC", Path::new("100000"))];
    let line = Line::new("", &environment);
    let heard = || {
        let mut buffer = [0; 100];
        let len = socket.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..len].to_vec()).unwrap()
    };
    assert_eq!([heard(), heard()], ["READY=1", "WATCHDOG=1"]);
    line.first.signal(Signal::USR2);
    let first = line.first.pid();
    until("another process", || line.process().is_some_and(|process| process != first));
    let process = line.process().unwrap().as_raw_pid();
    until("the new process's number", || heard() == format!("MAINPID={process}"));
    // The old one ends, and does not say that the server does.
    until("the end of the first", || !Path::new(&format!("/proc/{}/fd/0", first.as_raw_pid())).exists());
    std::thread::sleep(ms(150));
    socket.set_nonblocking(true).unwrap();
    let mut buffer = [0; 100];
    while let Ok(len) = socket.recv(&mut buffer) {
        assert_eq!(&buffer[..len], b"WATCHDOG=1");
    }
    socket.set_nonblocking(false).unwrap();
    assert_eq!(heard(), "WATCHDOG=1");
    line.stop();
    until("the last word", || heard() == "STOPPING=1");
}

/// The new process has no right to bind the address, or to open the files.
#[test]
fn a_user_without_rights_hands_over() {
    if !rustix::process::getuid().is_root() {
        return;
    }
    let line = Line::new("user = 'nobody'\nlog = { access = 'access.log' }\nreport = 'report'", &[]);
    let open = |name: &str| line.site.path().join(name);
    for name in ["pid", "access.log", "report"] {
        assert_eq!(fs::metadata(open(name)).unwrap().uid(), 0);
    }
    let first = line.process();
    line.ctl("upgrade").unwrap();
    assert_ne!(line.process(), first);
    assert_eq!(line.connect().ask(GET).status, 200);
    let status =
        fs::read_to_string(format!("/proc/{}/status", line.process().unwrap().as_raw_pid())).unwrap();
    assert!(status.contains("\nUid:\t65534\t65534\t65534\t65534\n"), "{status}");
    assert_eq!(log_lines(&open("access.log"), 1).len(), 1);
    line.stop();
}

/// A parent hands over the sockets of all its processes.
#[test]
fn several_processes_lose_no_request() {
    let line = Line::new("processes = 3", &[]);
    let (done, served) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for keeps in [true, false, false] {
            let (line, done, served) = (&line, &done, &served);
            scope.spawn(move || ask_on(line.first.address, keeps, done, served));
        }
        let upgrades = || {
            for _ in 0..3 {
                install(line.site.path());
                let before = line.process().unwrap();
                kill_process(before, Signal::USR2).unwrap();
                until("another parent", || line.process().is_some_and(|process| process != before));
                let count = served.load(Relaxed);
                until("requests are served", || served.load(Relaxed) > count + 50);
                until("the end of the old parent", || {
                    !Path::new(&format!("/proc/{}/fd/0", before.as_raw_pid())).exists()
                });
            }
        };
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(upgrades));
        done.store(true, Relaxed);
        result.unwrap();
    });
    // A parent that cannot serve changes nothing.
    let (right, serving) = (fs::read_to_string(line.file()).unwrap(), line.process().unwrap());
    fs::write(line.file(), right.replace("directory", "directroy")).unwrap();
    kill_process(serving, Signal::USR2).unwrap();
    std::thread::sleep(ms(300));
    assert_eq!((line.process(), line.connect().ask(GET).status), (Some(serving), 200));
    fs::write(line.file(), right).unwrap();
    kill_process(serving, Signal::TERM).unwrap();
    until("the end", || TcpStream::connect(line.first.address).is_err() && line.process().is_none());
}
