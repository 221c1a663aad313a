//! The program `three_ways` behind real servers: nginx and lighttpd ask it by FastCGI, and lighttpd
//! starts it as a CGI program too. Whichever way the application is started, the answer is the
//! same.
//!
//! A server that is not installed is left out, and the test says so.

#[path = "../../apps/httpd/tests/common/free_address.rs"]
mod free_address;

use free_address::free_address;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const APPLICATION: &str = env!("CARGO_BIN_EXE_three_ways");

/// How long a server may take to begin.
const PATIENCE: Duration = Duration::from_secs(20);

/// A process that is ended with this value. A server ends the processes that it has started.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.0.wait();
    }
}

/// Where a program of the system is, if it is installed.
fn installed(name: &str) -> Option<PathBuf> {
    let found = ["/usr/sbin", "/usr/bin"].iter().map(|place| Path::new(place).join(name));
    let found = found.into_iter().find(|path| path.exists());
    if found.is_none() {
        eprintln!("{name} is not installed: it is left out");
    }
    found
}

/// Starts a server with the configuration that `text` makes for a port, and waits until the port
/// takes connections.
fn start(
    program: &Path,
    arguments: &[&str],
    home: &Path,
    text: impl FnOnce(u16) -> String,
) -> (Process, SocketAddr) {
    let address = free_address();
    let file = home.join(format!("{}.conf", program.file_name().unwrap().to_string_lossy()));
    fs::write(&file, text(address.port())).unwrap();
    let mut command = Command::new(program);
    command.args(arguments).arg(&file).stdin(Stdio::null()).stdout(Stdio::null());
    let process = Process(command.spawn().unwrap());
    let begun = Instant::now();
    while TcpStream::connect(address).is_err() {
        assert!(begun.elapsed() < PATIENCE, "{} does not serve", program.display());
        std::thread::sleep(Duration::from_millis(20));
    }
    (process, address)
}

/// Starts the application with a socket that listens for its standard input.
fn application_at(socket: &Path) -> Process {
    let listener = UnixListener::bind(socket).unwrap();
    Process(Command::new(APPLICATION).stdin(OwnedFd::from(listener)).spawn().unwrap())
}

/// The content of the answer to a `POST` of `length` bytes. The request is of HTTP/1.0, so that the
/// content comes without chunks.
fn post(address: SocketAddr, path: &str, length: usize) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!("POST {path} HTTP/1.0\r\nHost: loom\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(&[head.as_bytes(), &vec![b'w'; length]].concat()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, content) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{path}: {answer}"));
    assert!(head.lines().next().is_some_and(|line| line.contains(" 200 ")), "{path}: {head}");
    content.to_owned()
}

/// Asks the application at each of these paths, with content of several lengths.
fn compare(address: SocketAddr, prefixes: &[&str]) {
    for prefix in prefixes {
        for length in [0, 11, 300_000] {
            let answer = post(address, &format!("{prefix}/cloth/linen?width=2"), length);
            let expected = format!("POST /cloth/linen?width=2 with {length} bytes");
            assert_eq!(answer, expected, "{prefix}");
        }
    }
}

#[test]
fn nginx_asks_an_application_by_fastcgi() {
    let Some(nginx) = installed("nginx") else { return };
    let home = tempfile::tempdir().unwrap();
    let (place, socket) = (home.path().display(), home.path().join("socket"));
    let _application = application_at(&socket);
    let user = if rustix::process::getuid().is_root() { "user root;\n" } else { "" };
    let parameters: String = [
        ("REQUEST_METHOD", "$request_method"),
        ("REQUEST_URI", "$request_uri"),
        ("QUERY_STRING", "$query_string"),
        ("CONTENT_TYPE", "$content_type"),
        ("CONTENT_LENGTH", "$content_length"),
        ("SERVER_PROTOCOL", "$server_protocol"),
    ]
    .map(|(name, value)| format!("fastcgi_param {name} {value};\n"))
    .concat();
    let text = |port: u16| {
        format!(
            "daemon off;\n{user}pid {place}/nginx.pid;\nerror_log {place}/nginx.log;\nevents {{}}\nhttp {{\n\
             client_body_temp_path {place}/body; proxy_temp_path {place}/proxy; fastcgi_temp_path {place}/fastcgi;\n\
             uwsgi_temp_path {place}/uwsgi; scgi_temp_path {place}/scgi; access_log off;\n\
             server {{ listen 127.0.0.1:{port}; location / {{\n{parameters}fastcgi_pass unix:{};\n}} }}\n}}\n",
            socket.display()
        )
    };
    let log = home.path().join("nginx.log");
    let log = log.to_string_lossy();
    let (_server, address) = start(&nginx, &["-e", &log, "-c"], home.path(), text);
    compare(address, &["", "/below"]);
}

#[test]
fn lighttpd_starts_an_application_by_fastcgi_and_by_cgi() {
    let Some(lighttpd) = installed("lighttpd") else { return };
    let home = tempfile::tempdir().unwrap();
    let place = home.path().display();
    fs::create_dir_all(home.path().join("root/cgi")).unwrap();
    fs::copy(APPLICATION, home.path().join("root/cgi/app")).unwrap();
    let text = |port: u16| {
        format!(
            "server.modules = (\"mod_cgi\", \"mod_fastcgi\")\nserver.document-root = \"{place}/root\"\n\
             server.bind = \"127.0.0.1\"\nserver.port = {port}\nserver.errorlog = \"{place}/lighttpd.log\"\n\
             server.upload-dirs = (\"{place}\")\n\
             $HTTP[\"url\"] =~ \"^/cgi/\" {{ cgi.assign = (\"\" => \"\") }}\n\
             fastcgi.server = (\"/fast\" => ((\"socket\" => \"{place}/socket\", \"bin-path\" => \"{APPLICATION}\",\n\
             \"max-procs\" => 1, \"check-local\" => \"disable\")))\n"
        )
    };
    let (_server, address) = start(&lighttpd, &["-D", "-f"], home.path(), text);
    compare(address, &["/fast", "/cgi/app"]);
}
