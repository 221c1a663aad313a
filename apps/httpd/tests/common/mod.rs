//! A server under test, the real binary, and a client that sees every byte.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

mod free_address;

#[allow(unused_imports, reason = "as above")]
pub(crate) use free_address::free_address;

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A test waits this long for what should come at once.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A directory to serve, with a few files.
pub fn site() -> tempfile::TempDir {
    let site = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| {
        let path = site.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        let old = std::time::UNIX_EPOCH + Duration::from_secs(784_111_777);
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
    };
    write("index.html", b"<h1>Site</h1>");
    write("ten.txt", b"0123456789");
    write("empty.txt", b"");
    write("docs/index.html", b"<h1>Docs</h1>");
    write("empty/.keep", b"");
    write(".secret", b"secret");
    write(".well-known/key", b"key");
    write("middle.bin", &bytes(16 << 10));
    write("big.bin", &bytes(3_000_000));
    site
}

/// Waits until the files of a new site have been left alone long enough for their entity tags to be
/// strong.
pub fn let_settle() {
    std::thread::sleep(ms(2100));
}

/// Bytes that tell where they belong.
pub fn bytes(len: usize) -> Vec<u8> {
    (0..len as u32).map(|n| (n.wrapping_mul(n) >> 9) as u8 ^ (n >> 14) as u8).collect()
}

pub struct Server {
    child: Child,
    pub address: SocketAddr,
    /// The line that it printed.
    pub line: String,
}

/// Starts a server for `directory` at a free port.
pub fn serve(directory: &Path, options: &[&str]) -> Server {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge-httpd"));
    command.arg(directory).args(["--listen", "127.0.0.1:0"]).args(options);
    start(command)
}

/// The lines of a log, when there are `lines` of them.
pub fn log_lines(log: &Path, lines: usize) -> Vec<String> {
    let until = Instant::now() + PATIENCE;
    loop {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        if text.lines().count() >= lines {
            return text.lines().map(String::from).collect();
        }
        assert!(Instant::now() < until, "{text}");
        std::thread::sleep(ms(10));
    }
}

/// Status and bytes of a line of a log.
pub fn logged(line: &str) -> (u16, u64) {
    let after = line.split("\" ").nth(1).unwrap();
    let (status, rest) = after.split_once(' ').unwrap();
    let bytes = rest.split(' ').next().unwrap();
    (status.parse().unwrap(), bytes.parse().unwrap_or(0))
}

/// Starts the server that `command` says, and waits for the line with its first URL.
pub fn start(mut command: Command) -> Server {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let url = line.rsplit_once("http://").map(|(_, address)| address.trim().trim_end_matches('/'));
    let address = url.and_then(|address| address.replace("localhost", "127.0.0.1").parse().ok());
    Server { child, address: address.unwrap_or(SocketAddr::from(([0; 4], 0))), line }
}

impl Server {
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// What it says on the standard error stream, which must have been piped.
    pub fn errors(&mut self) -> Errors {
        Errors(BufReader::new(self.child.stderr.take().unwrap()))
    }

    /// Waits for the end of the process.
    pub fn end(mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            std::thread::sleep(ms(5));
        }
        panic!("the server does not end");
    }

    pub fn connect(&self) -> Client {
        Client::new(TcpStream::connect(self.address).unwrap())
    }

    /// The reply to one request on a connection of its own.
    pub fn ask(&self, request: &str) -> Reply {
        self.connect().ask(request)
    }

    pub fn get(&self, path: &str) -> Reply {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"))
    }

    pub fn descriptors(&self) -> usize {
        self.proc_entries("fd")
    }

    /// The descriptors that are open without any connection, when all workers have served
    /// something.
    pub fn descriptors_at_rest(&self) -> usize {
        let mut counts = Vec::new();
        for _ in 0..40 {
            self.get("/ten.txt");
            self.get("/big.bin");
            std::thread::sleep(ms(2));
            counts.push(self.descriptors());
        }
        counts.into_iter().max().unwrap_or(0)
    }

    fn proc_entries(&self, what: &str) -> usize {
        let path = PathBuf::from(format!("/proc/{}/{what}", self.child.id()));
        std::fs::read_dir(path).unwrap().count()
    }

    /// Resident memory in bytes.
    pub fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() * 1024
    }

    /// Processor time used so far.
    pub fn processor_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        ms(ticks * 10)
    }

    /// Waits until the server has no more descriptors than `most`.
    pub fn settle(&self, most: usize) {
        let until = Instant::now() + PATIENCE;
        while self.descriptors() > most {
            assert!(Instant::now() < until, "{} descriptors are open, not {most}", self.descriptors());
            std::thread::sleep(ms(10));
        }
    }
}

/// What a server says on the standard error stream.
pub struct Errors(BufReader<ChildStderr>);

impl Errors {
    /// The next line.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended; then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One connection.
pub struct Client {
    pub stream: TcpStream,
    read: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Reply {
    /// The value of the first field with this name, in whatever case.
    pub fn field(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields.filter(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }
}

impl Client {
    pub fn new(stream: TcpStream) -> Client {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream, read: Vec::new() }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    pub fn ask(&mut self, request: &str) -> Reply {
        self.send(request);
        let is_head = request.starts_with("HEAD ");
        self.reply_to(is_head)
    }

    /// The next reply, to a request that is not `HEAD`.
    pub fn reply(&mut self) -> Reply {
        self.reply_to(false)
    }

    pub fn reply_to(&mut self, is_head: bool) -> Reply {
        self.try_reply(is_head).expect("a whole reply")
    }

    /// The next reply; `None` if the connection ends before it is complete.
    pub fn try_reply(&mut self, is_head: bool) -> Option<Reply> {
        let end = loop {
            if let Some(at) = self.read.windows(4).position(|end| end == b"\r\n\r\n") {
                break at + 4;
            }
            self.more()?;
        };
        let head = String::from_utf8(self.read[..end].to_vec()).unwrap();
        let status = head[9..12].parse().unwrap();
        let mut reply = Reply { status, head, body: Vec::new() };
        let len = reply.field("Content-Length").map_or(0, |len| len.parse().unwrap());
        let len = if is_head || [100, 204, 304].contains(&status) { 0 } else { len };
        while self.read.len() < end + len {
            self.more()?;
        }
        reply.body = self.read[end..end + len].to_vec();
        self.read.drain(..end + len);
        Some(reply)
    }

    fn more(&mut self) -> Option<usize> {
        let mut buffer = [0; 65536];
        match self.stream.read(&mut buffer) {
            Ok(0) => None,
            Ok(n) => {
                self.read.extend_from_slice(&buffer[..n]);
                Some(n)
            }
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            // The process was stopped and goes on.
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => self.more(),
            Err(error) => panic!("{error}"),
        }
    }

    /// Waits until the next reply has begun.
    pub fn wait_for_reply(&mut self) {
        while self.read.is_empty() {
            self.more().expect("a reply");
        }
    }

    /// Waits until the server has read all bytes that this client has sent. The kernel's table of
    /// sockets has the bytes that wait to be read in the server's row.
    pub fn wait_until_read(&self) {
        let port = |end: std::io::Result<SocketAddr>| format!(":{:04X}", end.unwrap().port());
        let (here, there) = (port(self.stream.local_addr()), port(self.stream.peer_addr()));
        let is_read = || {
            let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
            table.lines().map(|row| row.split_whitespace().collect::<Vec<_>>()).any(|row| {
                row[1].ends_with(&there) && row[2].ends_with(&here) && row[4].ends_with(":00000000")
            })
        };
        while !is_read() {
            std::thread::sleep(ms(5));
        }
    }

    /// Whether a part of a reply has come.
    pub fn is_amid_reply(&self) -> bool {
        !self.read.is_empty()
    }

    /// Everything that comes until the server closes. Fails if the connection is reset.
    pub fn rest(&mut self) -> Vec<u8> {
        self.stream.read_to_end(&mut self.read).unwrap();
        std::mem::take(&mut self.read)
    }

    /// Asserts that the server closes now and has nothing to add.
    pub fn assert_end(&mut self) {
        assert_eq!(String::from_utf8_lossy(&self.rest()), "");
    }
}

/// Raises this process's own limit of descriptors, for a test that opens ten thousand. The limit
/// may be too low for two such tests at once, so a test keeps the value until it has closed them.
pub fn many_descriptors() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
    // A test that has failed is over too.
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}
