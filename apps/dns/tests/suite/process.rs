//! The program as a process: its command line, its files, and `SIGHUP`.

use crate::common::*;
use domain::base::Rtype;
use selvedge_dns::wire::heard::{self, Heard};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_selvedge-dns");

fn run(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_command_line_is_explained() {
    let help = run(&["--help"]);
    assert!(help.status.success());
    let help = text(&help.stdout);
    for option in [
        "--zone",
        "--forward",
        "--iterate",
        "--trust-anchor",
        "--insecure",
        "--no-validation",
        "--listen",
        "--tls",
        "--certificate",
        "--key",
        "--allow",
        "--cache",
        "--rate",
        "--queries",
        "--clients",
        "--idle",
        "--check",
        "--version",
    ] {
        assert!(help.contains(&format!("\n  {option}")), "{option}");
    }
    assert!(help.lines().all(|line| line.len() <= 100));
    assert!(text(&run(&["--version"]).stdout).starts_with("selvedge-dns "));
    let wrong = run(&["--frobnicate"]);
    assert_eq!((wrong.status.code(), wrong.stdout.len()), (Some(2), 0));
    assert!(text(&wrong.stderr).starts_with("selvedge-dns: "), "{}", text(&wrong.stderr));
}

const ZONE: &str = "$TTL 60\n@ SOA ns host 1 2 3 4 5\n@ NS ns\nwww A 192.0.2.1\n";

#[test]
fn zones_are_checked_before_anything_is_served() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("zone");
    let zone = format!("example.org={}", path.display());
    std::fs::write(&path, ZONE).unwrap();
    let right = run(&["--check", "--zone", &zone]);
    assert_eq!((right.status.code(), text(&right.stdout).as_str()), (Some(0), "The zones are right (1).\n"));
    let twice = run(&["--check", "--zone", &zone, "--zone", &zone.replace("example", "EXAMPLE")]);
    assert_eq!(twice.status.code(), Some(1));
    assert_eq!(text(&twice.stderr), "selvedge-dns: the zone EXAMPLE.org. is named twice\n");
    std::fs::write(&path, format!("{ZONE}www A nothing\n")).unwrap();
    let place = format!("selvedge-dns: {}:5:", path.display());
    for arguments in [&["--check", "--zone", &zone][..], &["--zone", &zone, "--listen", "127.0.0.1:1"]] {
        let wrong = run(arguments);
        assert_eq!((wrong.status.code(), wrong.stdout.len()), (Some(1), 0));
        assert!(text(&wrong.stderr).starts_with(&place), "{}", text(&wrong.stderr));
    }
}

/// A server, which ends with this value.
struct Running {
    child: Child,
    address: SocketAddr,
}

impl Running {
    fn start(zone: &Path) -> Running {
        // An address of this host that no other process has.
        let [.., high, low] = std::process::id().to_be_bytes();
        let address = SocketAddr::from(([127, high, low, 53], 5301));
        let zone = format!("example.org={}", zone.display());
        let listen = address.to_string();
        let mut command = Command::new(PROGRAM);
        command.args(["--zone", &zone, "--listen", &listen]).stderr(Stdio::piped());
        Running { child: command.spawn().unwrap(), address }
    }

    /// Asks until an answer comes that is as the test wants it.
    fn ask_until(&self, asked: &str, wanted: impl Fn(&Heard) -> bool) -> Heard {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(self.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let query = heard::question(5, &key(asked), Rtype::A, false, true);
        let mut buffer = [0; 1500];
        loop {
            // Before the server listens, each call may be refused.
            let received = socket.send(&query).and_then(|_| socket.recv(&mut buffer));
            match received {
                Ok(length) => {
                    let heard = heard::read(&buffer[..length], 5, &key(asked), Rtype::A).unwrap();
                    if wanted(&heard) {
                        return heard;
                    }
                }
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    fn hang_up(&self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_zone_is_read_again() {
    use std::io::{BufRead, BufReader};
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("zone");
    std::fs::write(&path, ZONE).unwrap();
    let mut server = Running::start(&path);
    let heard = server.ask_until("www.example.org", |_| true);
    assert_eq!((heard.answer.len(), heard.is_authoritative), (1, true));
    std::fs::write(&path, format!("{ZONE}new A 192.0.2.2\n")).unwrap();
    server.hang_up();
    let heard = server.ask_until("new.example.org", |heard| !heard.answer.is_empty());
    assert_eq!(heard.answer[0].owner(), &name("new.example.org"));
    // A wrong file is told, and changes nothing.
    std::fs::write(&path, "nonsense\n").unwrap();
    server.hang_up();
    let mut lines = BufReader::new(server.child.stderr.take().unwrap()).lines();
    let line = lines.next().unwrap().unwrap();
    assert!(line.starts_with("selvedge-dns: the old zones stay: "), "{line}");
    assert_eq!(server.ask_until("new.example.org", |_| true).answer.len(), 1);
}
