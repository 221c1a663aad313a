//! The server over TCP of its own (`--stack`), with the kernel and curl as its clients over a TAP
//! device. The tests need `/dev/net/tun`, the right to make devices, and the programs `ip` and
//! `curl`. Where one of them is missing, they say so and test nothing.

use crate::common::{Client, PATIENCE, Server, bytes, let_settle, log_lines, serve, site, start};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio, id};

/// A device of a test, which goes with this value.
struct Device {
    name: String,
    network: u8,
}

fn ip(words: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(words).output().map_err(|error| format!("ip: {error}"))?;
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(format!("ip {words:?}: {message}")) }
}

impl Device {
    /// A TAP device with one queue or several. The kernel is the host 1 behind it. `None` if the
    /// machine has none.
    fn new(network: u8, queues: bool) -> Option<Device> {
        let device = Device { name: format!("sh{network}x{}", id() % 1_000_000), network };
        device.begin(queues).map_err(|why| println!("there is no TAP device here: {why}")).ok()?;
        if Command::new("curl").arg("--version").stdout(Stdio::null()).status().is_err() {
            println!("there is no curl here");
            return None;
        }
        Some(device)
    }

    fn begin(&self, queues: bool) -> Result<(), String> {
        let mut words = vec!["tuntap", "add", "dev", &self.name, "mode", "tap"];
        words.extend(queues.then_some("multi_queue"));
        ip(&words)?;
        ip(&["addr", "add", &format!("10.214.{}.1/24", self.network), "dev", &self.name])?;
        ip(&["link", "set", &self.name, "up"])
    }

    fn own(&self) -> String {
        format!("10.214.{}.2", self.network)
    }

    /// The server with these words, at port 8000 behind this device.
    fn serve(&self, words: &[&str]) -> Server {
        let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge-httpd"));
        command.arg("--stack").arg(format!("{},{}/24", self.name, self.own())).args(words);
        let server = start(command);
        assert_eq!(server.address, SocketAddr::new(self.own().parse().unwrap(), 8000), "{}", server.line);
        server
    }

    /// The words that make a server listen at its port.
    fn listen(&self) -> [String; 2] {
        ["--listen".to_owned(), format!("{}:8000", self.own())]
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = ip(&["link", "del", &self.name]);
    }
}

/// What curl brings, and the status of the reply.
fn curl(words: &[&str]) -> (Vec<u8>, String) {
    let output = Command::new("curl")
        .args(["-sS", "--max-time", "20", "-w", "%{stderr}%{http_code} %{num_connects}\n"])
        .args(words)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "curl {words:?}: {said}");
    (output.stdout, said)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn files_ranges_and_keep_alive_over_a_stack_of_the_server() {
    let Some(device) = Device::new(1, false) else { return };
    let site = site();
    let_settle();
    let log = site.path().join(".access.log");
    let [option, at] = device.listen();
    let server = device.serve(&[text(site.path()), "--workers", "1", "--log", text(&log), &option, &at]);
    let url = format!("http://{at}");

    assert_eq!(curl(&[&format!("{url}/big.bin")]).0, bytes(3_000_000));
    let (range, said) = curl(&["-r", "2-5", &format!("{url}/ten.txt")]);
    assert_eq!((&range[..], &said[..4]), (&b"2345"[..], "206 "));
    assert_eq!(curl(&[&format!("{url}/docs/")]).0, b"<h1>Docs</h1>");
    assert!(curl(&[&format!("{url}/none")]).1.starts_with("404 "));
    // The second request of two goes over the connection of the first.
    let two = format!("{url}/ten.txt");
    let (both, said) = curl(&[&two, &two]);
    assert_eq!(both, b"01234567890123456789");
    let connects: Vec<&str> = said.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    assert_eq!(connects, ["1", "0"], "{said}");
    // A client that ends its direction gets its reply.
    let mut client = server.connect();
    client.send("GET /ten.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    client.stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.reply().body, b"0123456789");
    client.assert_end();

    // The log has the clients' addresses.
    let lines = log_lines(&log, 7);
    assert!(lines.iter().all(|line| line.starts_with("10.214.1.1 ")), "{lines:?}");
    server.signal(Signal::TERM);
    assert!(server.end().success());
}

#[test]
fn handlers_proxies_and_programs_over_a_stack_of_the_server() {
    let Some(device) = Device::new(2, false) else { return };
    let site = site();
    std::fs::create_dir(site.path().join("behind")).unwrap();
    std::fs::copy(site.path().join("middle.bin"), site.path().join("behind/middle.bin")).unwrap();
    let behind = serve(site.path(), &["--workers", "1"]);
    let program = site.path().join("bin/hello");
    std::fs::create_dir(program.parent().unwrap()).unwrap();
    let script = "#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\nhello %s' \"$REMOTE_ADDR\"\n";
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let configuration = site.path().join("site.toml");
    let lines = format!(
        "listen = ['{}']\nworkers = 1\n\
         [[route]]\npath = '/behind/'\nproxy = '{}'\n\
         [[route]]\npath = '/bin/'\ncgi = 'bin'\n\
         [[route]]\npath = '/d/'\ndirectory = 'behind'\nlisting = 'json'\n",
        device.listen()[1],
        behind.address,
    );
    std::fs::write(&configuration, lines).unwrap();
    let server = device.serve(&["--config", text(&configuration)]);
    let url = format!("http://{}:8000", device.own());
    assert_eq!(curl(&[&format!("{url}/behind/middle.bin")]).0, bytes(16 << 10));
    assert_eq!(curl(&[&format!("{url}/bin/hello")]).0, b"hello 10.214.2.1");
    let listing = String::from_utf8(curl(&[&format!("{url}/d/")]).0).unwrap();
    assert!(listing.contains("\"middle.bin\""), "{listing}");
    server.signal(Signal::TERM);
    assert!(server.end().success());
}

#[test]
fn each_worker_has_a_stack_and_all_serve() {
    for queues in [true, false] {
        let Some(device) = Device::new(3, queues) else { return };
        let site = site();
        let [option, at] = device.listen();
        let server = device.serve(&[text(site.path()), "--workers", "2", &option, &at]);
        let mut clients: Vec<Client> = (0..16).map(|_| server.connect()).collect();
        for round in 0..3 {
            for client in &mut clients {
                let reply = client.ask("GET /middle.bin HTTP/1.1\r\nHost: a\r\n\r\n");
                assert!(reply.body == bytes(16 << 10), "round {round}");
            }
        }
        drop(clients);
        server.signal(Signal::TERM);
        assert!(server.end().success());
    }
}

#[test]
fn a_client_that_goes_away_leaves_nothing() {
    let Some(device) = Device::new(4, false) else { return };
    let site = site();
    let [option, at] = device.listen();
    let server = device.serve(&[text(site.path()), "--workers", "1", "--write", "1", &option, &at]);
    server.get("/big.bin");
    let most = server.descriptors();
    for _ in 0..20 {
        // One asks for much and takes little.
        let mut stream = TcpStream::connect_timeout(&server.address, PATIENCE).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(b"GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        stream.read_exact(&mut [0; 100]).unwrap();
    }
    server.settle(most + 2);
    server.signal(Signal::TERM);
    assert!(server.end().success());
}

#[test]
fn a_device_that_cannot_be_opened_is_named() {
    let output = Command::new(env!("CARGO_BIN_EXE_selvedge-httpd"))
        .args(["--stack", "packet:selvedge-none,10.214.9.2/24", "."])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("--stack: interface selvedge-none"), "{said}");
    assert_eq!(output.status.code(), Some(1));
    let output = Command::new(env!("CARGO_BIN_EXE_selvedge-httpd"))
        .args(["--stack", "tap9,10.214.9.2/24", "--listen", "127.0.0.1:80", "."])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("127.0.0.1:80 is no address of the stack"), "{said}");
}
