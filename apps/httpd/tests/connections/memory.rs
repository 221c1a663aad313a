//! Ten thousand connections and little memory. A control group gives the server 64 MB, where this
//! machine lets the test make one; the kernel then ends a server that needs more. On any machine
//! the server's resident memory is compared with the same bound.

use super::GET;
use super::common::{Client, bytes, many_descriptors, site, start};
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const MEMORY_BYTES: u64 = 64 << 20;

/// What a connection does while all are open.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    /// It has had a reply.
    Idle,
    /// It has sent a part of a head.
    Head,
    /// It has read the begin of a large file.
    Download,
    /// It has asked for many files and read none.
    Deaf,
}

/// The requests of a deaf client.
const DEAF_REQUESTS: usize = 256;
/// The length of a file that no socket's buffer holds.
const HUGE_BYTES: usize = 16 << 20;
/// What a slow client's socket holds. With less the kernel sends a page at a time.
const HELD_BYTES: usize = 64 << 10;
const MIDDLE: &str = "GET /middle.bin HTTP/1.1\r\nHost: a\r\n\r\n";

/// A control group with the bound, removed when dropped.
struct Group(PathBuf);

impl Group {
    fn new() -> Option<Group> {
        let path = Path::new("/sys/fs/cgroup/memory").join(format!("selvedge-test-{}", std::process::id()));
        fs::create_dir(&path).ok()?;
        let group = Group(path);
        fs::write(group.0.join("memory.limit_in_bytes"), MEMORY_BYTES.to_string()).ok()?;
        Some(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A server that has ended leaves the group a little later.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(super::ms(10));
        }
    }
}

fn begin(stage: Stage, stream: TcpStream) -> Client {
    if matches!(stage, Stage::Download | Stage::Deaf) {
        rustix::net::sockopt::set_socket_recv_buffer_size(&stream, HELD_BYTES).unwrap();
    }
    let mut client = Client::new(stream);
    match stage {
        Stage::Idle => assert_eq!(client.ask(GET).body, b"0123456789"),
        Stage::Head => client.send(format!("{}X: {}", &GET[..GET.len() - 2], "x".repeat(1000))),
        Stage::Download => {
            client.send("GET /huge.bin HTTP/1.1\r\nHost: a\r\n\r\n");
            client.wait_for_reply();
        }
        Stage::Deaf => client.send(MIDDLE.repeat(DEAF_REQUESTS)),
    }
    client
}

/// What was promised to the connection is kept.
fn end(stage: Stage, client: &mut Client, huge: &[u8], middle: &[u8]) {
    match stage {
        Stage::Idle => assert_eq!(client.ask(GET).body, b"0123456789"),
        Stage::Head => assert_eq!(client.ask("\r\n\r\n").body, b"0123456789"),
        Stage::Download => assert!(client.reply().body == huge),
        Stage::Deaf => (0..DEAF_REQUESTS).for_each(|_| assert!(client.reply().body == middle)),
    }
}

#[test]
fn ten_thousand_connections_in_64_mb() {
    let _descriptors = many_descriptors();
    let site = site();
    let (huge, middle) = (bytes(HUGE_BYTES), bytes(16 << 10));
    fs::write(site.path().join("huge.bin"), &huge).unwrap();
    let group = Group::new();
    let mut command = Command::new("sh");
    let enter = match &group {
        Some(Group(path)) => format!("echo $$ >{}/cgroup.procs && ", path.display()),
        None => String::new(),
    };
    // No connection is closed while the test opens the others.
    let options = "--listen 127.0.0.1:0 --workers 2 --head 600 --idle 600 --write 600";
    let program = env!("CARGO_BIN_EXE_selvedge-httpd");
    let script = format!("{enter}exec {program} {} {options}", site.path().display());
    command.args(["-c", &script]).stderr(Stdio::inherit());
    let mut server = start(command);
    let stage = |number: usize| match number % 200 {
        0 => Stage::Download,
        1 => Stage::Deaf,
        other if other % 2 == 0 => Stage::Idle,
        _ => Stage::Head,
    };
    let mut open: Vec<(Stage, Client)> = Vec::new();
    for number in 0..10_000 {
        let stream = TcpStream::connect(server.address).unwrap();
        open.push((stage(number), begin(stage(number), stream)));
    }
    let resident = server.resident();
    assert!(resident < MEMORY_BYTES, "{resident} bytes");
    for (stage, client) in &mut open {
        end(*stage, client, &huge, &middle);
    }
    assert!(server.is_running());
    println!("{resident} bytes are resident; a control group bounds them: {}", group.is_some());
    drop(open);
    drop(server);
}
