//! A server under test, and a client that sees each byte.

use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, DirEntry};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A test waits this long for what should come at once.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A password's hash, of `openssl passwd -6 -salt saltsalt secret`.
pub(crate) const SECRET: &str = include_str!("../../../../crates/site/tests/suite/six.txt");

/// A directory to serve, with a few files of 1994.
pub(crate) fn files() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let old = std::time::UNIX_EPOCH + Duration::from_secs(784_111_777);
    for (name, content) in [
        ("ten.txt", &b"0123456789"[..]),
        ("lines.txt", b"warp\nweft\n"),
        ("sub/deep.txt", b"deep"),
        (".dot", b""),
    ] {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
    }
    root
}

/// Bytes that tell where they belong, with line ends of all kinds among them.
pub(crate) fn bytes(len: usize) -> Vec<u8> {
    (0..len as u32).map(|n| (n.wrapping_mul(n) >> 9) as u8 ^ (n >> 14) as u8).collect()
}

/// Waits until `is_so`.
pub(crate) fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
}

/// Starts a server for anonymous clients of `directory`.
pub(crate) fn serve(directory: &Path, options: &[&str]) -> Server {
    let mut command = server();
    command.args(options).arg(directory);
    start(command)
}

/// Starts a server with the user `ada`, of the password `secret`, that may do all below
/// `directory`; and with `bob`, that has `rights`. Anonymous clients see the directory too.
pub(crate) fn serve_users(directory: &Path, rights: &str, options: &[&str]) -> Server {
    let users = users(directory, rights);
    serve(directory, &[&["--users", users.path().to_str().unwrap()], options].concat())
}

/// A file of the users `ada` and `bob`.
pub(crate) fn users(directory: &Path, rights: &str) -> tempfile::NamedTempFile {
    let users = tempfile::NamedTempFile::new().unwrap();
    let (root, secret) = (directory.display(), SECRET.trim());
    fs::write(&users, format!("ada:{secret}:{root}:rwd\nbob:{secret}:{root}:{rights}\n")).unwrap();
    users
}

/// The server's program, at a free port.
pub(crate) fn server() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge-ftpd"));
    command.args(AT_A_FREE_PORT);
    command
}

/// What each server under test is told first.
pub(crate) const AT_A_FREE_PORT: [&str; 4] = ["--listen", "127.0.0.1:0", "--login-delay", "0.01"];

/// Starts the server that `command` says, and waits until it listens.
pub(crate) fn start(mut command: Command) -> Server {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("Listening at ftp://").and_then(|rest| rest.strip_suffix('/'));
    let address = address.and_then(|address| address.parse().ok());
    Server { child, address: address.unwrap_or_else(|| panic!("{line:?}")) }
}

impl Server {
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end of the process.
    pub(crate) fn end(mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("the server does not end");
    }

    /// A client that has read the greeting.
    pub(crate) fn connect(&self) -> Client {
        let mut client = self.knock();
        assert_eq!(client.reply().0, 220);
        client
    }

    /// A client that has read nothing.
    pub(crate) fn knock(&self) -> Client {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Client { reader: BufReader::new(stream) }
    }

    pub(crate) fn anonymous(&self) -> Client {
        let mut client = self.connect();
        client.expect(&[("USER anonymous", 331), ("PASS me@example.org", 230), ("TYPE I", 200)]);
        client
    }

    pub(crate) fn user(&self, name: &str) -> Client {
        let mut client = self.connect();
        client.expect(&[(&format!("USER {name}"), 331), ("PASS secret", 230), ("TYPE I", 200)]);
        client
    }

    /// The number of sockets, pipes, files and directories that the server has open.
    ///
    /// Those of a worker do not count (its epoll set, its eventfds, its account of CPU time),
    /// because the OS thread of a worker may begin late when the CPUs are busy.
    pub(crate) fn descriptors(&self) -> usize {
        let open = fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap();
        let target = |entry: io::Result<DirEntry>| fs::read_link(entry.unwrap().path());
        // A descriptor that was closed since the directory was read has no link.
        open.filter_map(|entry| target(entry).ok()).filter(|target| !is_of_a_worker(target)).count()
    }
}

/// Whether a worker has opened what the link of a descriptor shows.
fn is_of_a_worker(target: &Path) -> bool {
    let target = target.to_string_lossy();
    target.starts_with("anon_inode:") || target.ends_with("/schedstat")
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) struct Client {
    reader: BufReader<TcpStream>,
}

impl Client {
    pub(crate) fn stream(&self) -> &TcpStream {
        self.reader.get_ref()
    }

    /// Sends bytes as they are.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.reader.get_mut().write_all(bytes).unwrap();
    }

    /// The next reply: the code, and all of its lines.
    pub(crate) fn reply(&mut self) -> (u16, String) {
        let mut text = String::new();
        loop {
            let start = text.len();
            assert_ne!(self.reader.read_line(&mut text).unwrap(), 0, "the server has closed: {text}");
            assert!(text.ends_with("\r\n"), "{text:?}");
            let line = &text[start..];
            // The last line has a space behind the code, and those between begin with a space.
            if line.as_bytes()[0].is_ascii_digit() && line.as_bytes()[3] == b' ' {
                return (line[..3].parse().unwrap(), text);
            }
        }
    }

    pub(crate) fn say(&mut self, line: &str) -> (u16, String) {
        self.write(format!("{line}\r\n").as_bytes());
        self.reply()
    }

    /// Says each line, and wants the code behind it.
    #[track_caller]
    pub(crate) fn expect(&mut self, exchanges: &[(&str, u16)]) {
        for &(line, code) in exchanges {
            let (said, text) = self.say(line);
            assert_eq!(said, code, "{line}: {text}");
        }
    }

    /// Whether the server has closed the connection.
    pub(crate) fn is_closed(&mut self) -> bool {
        matches!(self.reader.read(&mut [0]), Ok(0) | Err(_))
    }

    /// Makes a data connection by EPSV.
    pub(crate) fn passive(&mut self) -> TcpStream {
        let (code, text) = self.say("EPSV");
        assert_eq!(code, 229, "{text}");
        let port: u16 = text.split('|').nth(3).unwrap().parse().unwrap();
        let data = TcpStream::connect((self.stream().peer_addr().unwrap().ip(), port)).unwrap();
        data.set_read_timeout(Some(PATIENCE)).unwrap();
        data
    }

    /// Offers a data connection by PORT.
    pub(crate) fn active(&mut self) -> TcpListener {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let [high, low] = listener.local_addr().unwrap().port().to_be_bytes();
        self.expect(&[(&format!("PORT 127,0,0,1,{high},{low}"), 200)]);
        listener
    }

    /// What a command sends.
    #[track_caller]
    pub(crate) fn fetch(&mut self, line: &str) -> Vec<u8> {
        let mut data = self.passive();
        self.expect(&[(line, 150)]);
        let mut content = Vec::new();
        data.read_to_end(&mut content).unwrap();
        let (code, text) = self.reply();
        assert_eq!(code, 226, "{text}");
        content
    }

    /// As [`fetch`](Self::fetch), as text.
    #[track_caller]
    pub(crate) fn fetch_text(&mut self, line: &str) -> String {
        String::from_utf8(self.fetch(line)).unwrap()
    }

    /// Stores bytes, and returns the last code and the reply that came first.
    pub(crate) fn store(&mut self, line: &str, content: &[u8]) -> (u16, String) {
        let mut data = self.passive();
        let (code, text) = self.say(line);
        if code != 150 {
            return (code, text);
        }
        data.write_all(content).unwrap();
        data.shutdown(Shutdown::Write).unwrap();
        (self.reply().0, text)
    }
}
