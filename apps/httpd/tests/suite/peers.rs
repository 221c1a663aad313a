//! The same bytes, malformed or ambiguous, sent to nginx, lighttpd, haproxy and this server. This
//! server never sees more requests in them than the strictest of the others, so it is never the
//! reader that takes the body of one request for another request.
//!
//! A peer that is not installed is left out, and the test says so.

use crate::common::{Server, free_address, serve, site};
use crate::controlled::until;
use std::ffi::OsStr;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A whole request, which a reader may find behind or within another one.
const NEXT: &str = "GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n";

/// A server says nothing for this long when it has said all.
const SILENCE: Duration = Duration::from_millis(700);

/// Heads, each without the empty line at its end. A body of five bytes and [`NEXT`] follow.
const HEADS: &[&str] = &[
    "POST /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6",
    "POST /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: +5",
    "POST /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: -5",
    "POST /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5",
    "POST /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 5 5",
    "POST /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 6",
    "POST /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 5;x",
    "POST /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: five",
    "POST /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length:",
    "POST /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999999",
    "POST /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length : 5",
    "POST /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length\t: 5",
    "POST /ten.txt HTTP/1.1\r\nHost: a\r\n Content-Length: 5",
    "POST /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n folded: 1",
    "POST /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 5\x0b",
    "POST /ten.txt HTTP/1.1\r\nHost: a\r\nX: \rContent-Length: 5",
    "POST /ten.txt HTTP/1.1\r\nHost: a\r\nX: a\0b\r\nContent-Length: 5",
    "POST /ten.txt HTTP/1.1\r\nHost: a\r\n: x\r\nContent-Length: 5",
    "POST /ten.txt HTTP/1.1\r\nHost: a\r\nno colon\r\nContent-Length: 5",
    "POST /ten.txt HTTP/1.1\r\nHost: a\r\nX y: z\r\nContent-Length: 5",
    "POST /ten.txt HTTP/1.1\r\nHost: a\r\nX(y): z\r\nContent-Length: 5",
    "POST /ten.txt HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 5",
    "POST /ten.txt HTTP/1.1\r\nContent-Length: 5",
    "POST /ten.txt HTTP/1.1\r\nHost: a b\r\nContent-Length: 5",
    "POST /ten.txt HTTP/1.1\r\nHost: a/b\r\nContent-Length: 5",
    "POST  /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 5",
    "POST /ten.txt  HTTP/1.1\r\nHost: a\r\nContent-Length: 5",
    "POST /ten.txt x HTTP/1.1\r\nHost: a\r\nContent-Length: 5",
    "POST\t/ten.txt\tHTTP/1.1\r\nHost: a\r\nContent-Length: 5",
    " POST /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 5",
    "POST /ten.txt HTTP/1.1 \r\nHost: a\r\nContent-Length: 5",
    "POST /ten.txt http/1.1\r\nHost: a\r\nContent-Length: 5",
    "POST /ten.txt HTTP/1.10\r\nHost: a\r\nContent-Length: 5",
    "POST /ten.txt HTTP/2.0\r\nHost: a\r\nContent-Length: 5",
    "POST /ten.txt HTTP/1\r\nHost: a\r\nContent-Length: 5",
    "POST /ten.txt HTP/1.1\r\nHost: a\r\nContent-Length: 5",
    "POST /ten.txt\r\nHost: a\r\nContent-Length: 5",
    "P(ST /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 5",
    "POST /ten\0.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 5",
    "POST ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 5",
    "POST /ten.txt HTTP/1.1\nHost: a\nContent-Length: 5",
    "POST /ten.txt HTTP/1.1\rHost: a\rContent-Length: 5",
];

/// Fields of framing with a body in chunks behind them.
const CHUNKED: &[&str] = &[
    "Content-Length: 3\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: chunked\r\nContent-Length: 3",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
    "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: chunked, chunked",
    "Transfer-Encoding: chunked, identity",
    "Transfer-Encoding: identity, chunked",
    "Transfer-Encoding: xchunked",
    "Transfer-Encoding: chunkedx",
    "Transfer-Encoding: \"chunked\"",
    "Transfer-Encoding: chunked;q=1",
    "Transfer-Encoding: \x0bchunked",
    "Transfer-Encoding: chu\0nked",
    "Transfer-Encoding:\r\n chunked",
    "Transfer-Encoding : chunked",
    "Transfer_Encoding: chunked\r\nTransfer-Encoding: gzip",
    "Transfer-Encoding: gzip",
    "Transfer-Encoding:",
    "X: y\rTransfer-Encoding: chunked",
];

/// Bodies that are framed in chunks and have a mistake.
const BODIES: &[&str] = &[
    "0x1\r\nx\r\n0\r\n\r\n",
    "+1\r\nx\r\n0\r\n\r\n",
    "-1\r\nx\r\n0\r\n\r\n",
    "\r\nx\r\n0\r\n\r\n",
    "g\r\nx\r\n0\r\n\r\n",
    "1 x\r\nx\r\n0\r\n\r\n",
    "FFFFFFFFFFFFFFFFF\r\nx\r\n0\r\n\r\n",
    "10000000000000001\r\nx\r\n0\r\n\r\n",
    "1\nx\n0\n\n",
    "1\r\nxy\r\n0\r\n\r\n",
    "1\r\nx0\r\n\r\n",
    "1\r\n\r\n0\r\n\r\n",
    "1;a\nb\r\nx\r\n0\r\n\r\n",
    "1;a\rb\r\nx\r\n0\r\n\r\n",
    "1;\0\r\nx\r\n0\r\n\r\n",
    "1\r\nx\r\n0\r\nno colon\r\n\r\n",
    "1\r\nx\r\n0\r\nX y: z\r\n\r\n",
    "1\r\nx\r\n0\r\n folded\r\n\r\n",
];

/// Bytes with a mistake in them.
struct Malformed {
    bytes: String,
    /// The requests in front of the mistake, which every server may see.
    before: usize,
}

/// All messages, each with a whole request behind it.
fn messages() -> Vec<Malformed> {
    let heads = HEADS.iter().map(|head| {
        let end = if head.contains("\r\n") || !head.contains('\n') { "\r\n\r\n" } else { "\n\n" };
        Malformed { bytes: format!("{head}{end}abcde{NEXT}"), before: 0 }
    });
    let start = "POST /ten.txt HTTP/1.1\r\nHost: a\r\n";
    let one = "1\r\nx\r\n0\r\n\r\n";
    let chunked = CHUNKED
        .iter()
        .map(|fields| Malformed { bytes: format!("{start}{fields}\r\n\r\n{one}{NEXT}"), before: 0 });
    let old = "POST /ten.txt HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n";
    let old = format!("{old}Transfer-Encoding: chunked\r\n\r\n{one}{NEXT}");
    // The server has answered when it finds the mistake: it needs no body for its answer.
    let bodies = BODIES.iter().map(|body| Malformed {
        bytes: format!("{start}Transfer-Encoding: chunked\r\n\r\n{body}{NEXT}"),
        before: 1,
    });
    heads.chain(chunked).chain([Malformed { bytes: old, before: 0 }]).chain(bodies).collect()
}

/// The statuses of a server that has taken the bytes for a request and has understood it.
const UNDERSTOOD: [&str; 6] = ["200", "301", "403", "404", "405", "412"];

/// The number of requests that the server at `address` sees in `message`: of the replies that are
/// no refusal of malformed bytes.
fn seen(address: SocketAddr, message: &str) -> usize {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(SILENCE)).unwrap();
    // A server that has refused it already may have closed.
    let _ = stream.write_all(message.as_bytes());
    let mut replies = Vec::new();
    let mut piece = [0; 4096];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => replies.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Silence, or the connection was reset.
            Err(_) => break,
        }
    }
    let replies = String::from_utf8_lossy(&replies);
    let statuses = replies.match_indices("HTTP/1.").filter_map(|(at, _)| replies.get(at + 9..at + 12));
    statuses.filter(|status| UNDERSTOOD.contains(status)).count()
}

/// The numbers for all messages, which are sent at once.
fn all_seen(address: SocketAddr, messages: &[Malformed]) -> Vec<usize> {
    std::thread::scope(|scope| {
        let sent: Vec<_> =
            messages.iter().map(|message| scope.spawn(move || seen(address, &message.bytes))).collect();
        sent.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

/// Another server, which ends with its value.
pub(crate) struct Peer {
    name: &'static str,
    address: SocketAddr,
    process: Child,
}

impl Peer {
    /// Starts `program` in the directory `home`. It serves when `address` takes connections.
    pub(crate) fn start<S: AsRef<OsStr>>(
        name: &'static str,
        program: &Path,
        arguments: &[S],
        home: &Path,
        address: SocketAddr,
    ) -> Peer {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(home);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let peer = Peer { name, address, process: command.spawn().unwrap() };
        until(name, || TcpStream::connect(address).is_ok());
        peer
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.process);
        // nginx ends its workers when it is asked to end.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.process.wait();
    }
}

/// Where a program of the system is.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let places = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"];
    places.iter().map(|place| Path::new(place).join(name)).find(|path| path.exists())
}

/// Starts `name` with the configuration that `configuration` makes for a port; `None` if it is not
/// installed. It serves when its port takes connections.
fn peer(
    name: &'static str,
    home: &Path,
    arguments: &[&str],
    configuration: impl FnOnce(u16) -> String,
) -> Option<Peer> {
    let Some(program) = program(name) else {
        eprintln!("{name} is not installed: it is left out");
        return None;
    };
    let address = free_address();
    let file = home.join(format!("{name}.conf"));
    fs::write(&file, configuration(address.port())).unwrap();
    let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).chain([file.as_os_str()]).collect();
    Some(Peer::start(name, &program, &arguments, home, address))
}

/// The peers that are installed, for the files of `site`. `behind` is the server behind haproxy.
fn peers(site: &Path, home: &Path, behind: &Server) -> Vec<Peer> {
    let (root, place) = (site.display(), home.display());
    let user = if rustix::process::getuid().is_root() { "user root;\n" } else { "" };
    let nginx = |port: u16| {
        format!(
            "daemon off;\n{user}pid {place}/nginx.pid;\nerror_log {place}/nginx.log;\nevents {{}}\nhttp {{\n\
             client_body_temp_path {place}/body; proxy_temp_path {place}/proxy; fastcgi_temp_path {place}/fastcgi;\n\
             uwsgi_temp_path {place}/uwsgi; scgi_temp_path {place}/scgi; access_log off;\n\
             server {{ listen 127.0.0.1:{port}; root {root}; }}\n}}\n"
        )
    };
    let lighttpd = |port: u16| {
        format!(
            "server.document-root = \"{root}\"\nserver.bind = \"127.0.0.1\"\nserver.port = {port}\n\
             server.errorlog = \"{place}/lighttpd.log\"\nserver.max-keep-alive-requests = 100\n"
        )
    };
    let haproxy = |port: u16| {
        format!(
            "defaults\nmode http\ntimeout connect 5s\ntimeout client 5s\ntimeout server 5s\n\
             frontend all\nbind 127.0.0.1:{port}\ndefault_backend ours\nbackend ours\nserver ours {}\n",
            behind.address
        )
    };
    let peers = [
        peer("nginx", home, &["-c"], nginx),
        peer("lighttpd", home, &["-D", "-f"], lighttpd),
        peer("haproxy", home, &["-db", "-q", "-f"], haproxy),
    ];
    peers.into_iter().flatten().collect()
}

#[test]
fn no_peer_sees_fewer_requests_in_malformed_bytes() {
    let (site, home) = (site(), tempfile::tempdir().unwrap());
    let server = serve(site.path(), &["--workers", "1"]);
    let peers = peers(site.path(), home.path(), &server);
    let whole = format!("{NEXT}{NEXT}");
    for address in peers.iter().map(|peer| peer.address).chain([server.address]) {
        assert_eq!(seen(address, &whole), 2, "{address} does not serve");
    }
    let messages = messages();
    let ours = all_seen(server.address, &messages);
    let theirs: Vec<Vec<usize>> = peers.iter().map(|peer| all_seen(peer.address, &messages)).collect();
    let mut more = Vec::new();
    for (at, Malformed { bytes, before }) in messages.iter().enumerate() {
        for (peer, seen) in peers.iter().zip(&theirs) {
            if ours[at] > seen[at].max(*before) {
                more.push(format!("{} sees {} requests, ours {}: {bytes:?}", peer.name, seen[at], ours[at]));
            }
        }
        assert!(ours[at] <= 1, "two requests in {bytes:?}");
    }
    assert!(more.is_empty(), "{more:#?}");
    // The peers do not refuse everything.
    assert!(theirs.iter().all(|seen| seen.iter().any(|&seen| seen > 0)), "{theirs:?}");
}
