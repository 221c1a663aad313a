//! The real Mighttpd and this server with the same two files of Mighttpd's format. They serve one
//! after the other at the same port, and get the same requests. The table has every request to
//! which they answer differently, with both answers and the reason.
//!
//! Without Mighttpd on the machine the test says so, and tries nothing.

use crate::common::{PATIENCE, free_address, start};
use crate::configured::httpd;
use crate::peers::{Peer, program};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// The time of all files, as a reply tells it.
const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

/// A request with its fields, and what the two servers answer to it.
struct Case {
    /// `METHOD target`, then fields, one on each line. Without a `Host`, `Host: a.example` is sent.
    request: &'static str,
    body: &'static str,
    difference: Option<Difference>,
}

/// Two answers that differ on purpose.
struct Difference {
    mighttpd: &'static str,
    ours: &'static str,
    /// The reason, which the failing test shows.
    why: &'static str,
}

/// A request that both answer alike.
const fn same(request: &'static str) -> Case {
    Case { request, body: "", difference: None }
}

/// A request that the servers answer differently, because of `why`.
const fn differs(
    request: &'static str,
    mighttpd: &'static str,
    ours: &'static str,
    why: &'static str,
) -> Case {
    Case { request, body: "", difference: Some(Difference { mighttpd, ours, why }) }
}

impl Case {
    const fn with_body(self, body: &'static str) -> Case {
        Case { request: self.request, body, difference: self.difference }
    }

    /// The bytes of the request.
    fn bytes(&self) -> String {
        let (line, fields) = self.request.split_once('\n').unwrap_or((self.request, ""));
        let host = if fields.contains("Host: ") { "" } else { "Host: a.example\r\n" };
        let length = match self.body.len() {
            0 => String::new(),
            length => format!("Content-Length: {length}\r\n"),
        };
        let fields: String = fields.lines().map(|field| format!("{field}\r\n")).collect();
        format!("{line} HTTP/1.1\r\n{host}{fields}{length}Connection: close\r\n\r\n{}", self.body)
    }
}

/// The two files, for the site in `home`, the port of the servers, the port of the server behind
/// them, and a port at which nothing listens.
fn two_files(home: &Path, port: u16, behind: u16, nothing: u16) -> [String; 2] {
    let site = home.display();
    let configuration = format!(
        "# A site\nPort: {port}\nHost: 127.0.0.1\nDebug_Mode: Yes\nLogging: No\nIndex_File: index.html\n\
         Index_Cgi: index.cgi\nStatus_File_Dir: {site}/status # own pages\nConnection_Timeout: 30\n\
         Fd_Cache_Duration: 10\nService: 0\n"
    );
    let routes = format!(
        "# Lists of domains\n[localhost a.example]\n\
         /old/ << www.example.org:81/new/\n\
         /port/ << :8081/x/\n\
         /programs/ => {site}/programs/ # CGI\n\
         /app/ >> 127.0.0.1:{behind}/up/\n\
         /local/ >> :{behind}/\n\
         /dead/ >> 127.0.0.1:{nothing}/\n\
         /manual/ -> {site}/www/docs/\n\
         / -> {site}/www/\n\
         /lang/ -> {site}/www/docs/\n\n\
         [b.example]\n/x/ -> {site}/www/\n\
         [a.example]\n/second/ -> {site}/www/docs/\n"
    );
    let files = [("example.conf", configuration), ("example.route", routes)];
    files.map(|(name, text)| {
        let path = home.join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    })
}

/// The files of the site, and its programs.
fn site_of(home: &Path) {
    let files: &[(&str, &str)] = &[
        ("www/index.html", "<h1>Site</h1>"),
        ("www/ten.txt", "0123456789"),
        ("www/empty.txt", ""),
        ("www/a b.txt", "two words"),
        ("www/a.css", "a {}"),
        ("www/a.js", "a()"),
        ("www/a.json", "{}"),
        ("www/a.png", "png"),
        ("www/a.svg", "<svg/>"),
        ("www/a.xyzzy", "unknown"),
        ("www/noname", "no extension"),
        ("www/ten.txt.gz", "gzip"),
        ("www/docs/index.html", "<h1>Docs</h1>"),
        ("www/bare/file", "file"),
        ("www/lang/index.html.en", "english"),
        ("www/lang/index.html.fr", "french"),
        ("www/lang/index.html.ja", "japanese"),
        ("www/page.html", "plain"),
        ("www/page.html.de", "german"),
        ("www/only.html.en", "only english"),
        ("www/.secret", "secret"),
        ("status/404.html", "own 404"),
        ("programs/index.cgi", "printf 'Content-Type: text/plain\\n\\nindex'"),
        ("programs/status", "printf 'Status: 404 Nothing\\nContent-Type: text/plain\\n\\nnothing'"),
        ("programs/moved", "printf 'Location: http://www.example.org/x\\n\\n'"),
        ("programs/broken", "echo nothing"),
        (
            "programs/told",
            "printf 'Content-Type: text/plain\\nX-Own: 1\\n\\n'\n\
             echo $REQUEST_METHOD $SCRIPT_NAME [$PATH_INFO] [$QUERY_STRING] [$CONTENT_TYPE]\n\
             echo $SERVER_NAME $SERVER_PROTOCOL $GATEWAY_INTERFACE $REMOTE_ADDR [`cat`]",
        ),
    ];
    for (name, text) in files {
        let path = home.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let program = name.starts_with("programs/");
        fs::write(&path, if program { format!("#!/bin/sh\n{text}") } else { text.to_string() }).unwrap();
        if program {
            fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        }
        let modified = UNIX_EPOCH + Duration::from_secs(784_111_777);
        fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    }
    fs::write(home.join("programs/plain"), "no program").unwrap();
}

/// A reply as the bytes had it, without the framing of its body.
struct Received {
    status: u16,
    fields: Vec<(String, String)>,
    body: String,
}

/// Sends `request`, and reads one whole reply. Mighttpd leaves some connections open.
fn received(address: SocketAddr, request: &str) -> Option<Received> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut stream = BufReader::new(stream);
    let mut line = || {
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    };
    let status = line().get(9..12)?.parse().unwrap();
    let mut fields = Vec::new();
    while let Some((name, value)) = line().split_once(": ") {
        fields.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let reply = Received { status, fields, body: String::new() };
    let body = match (reply.field("content-length"), reply.field("transfer-encoding")) {
        _ if request.starts_with("HEAD ") || status == 304 => Vec::new(),
        (Some(length), _) => counted(&mut stream, length.parse().unwrap()),
        (None, Some("chunked")) => unchunked(&mut stream),
        _ => {
            let mut body = Vec::new();
            stream.read_to_end(&mut body).unwrap();
            body
        }
    };
    Some(Received { body: String::from_utf8(body).unwrap(), ..reply })
}

fn counted(stream: &mut impl Read, length: u64) -> Vec<u8> {
    let mut body = Vec::new();
    stream.take(length).read_to_end(&mut body).unwrap();
    body
}

/// The body in chunks that comes next.
fn unchunked(stream: &mut impl BufRead) -> Vec<u8> {
    let (mut body, mut line) = (Vec::new(), String::new());
    loop {
        line.clear();
        stream.read_line(&mut line).unwrap();
        let length = u64::from_str_radix(line.trim_end(), 16).unwrap();
        let chunk = counted(stream, length + 2);
        if length == 0 {
            return body;
        }
        body.extend_from_slice(&chunk[..length as usize]);
    }
}

impl Received {
    fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| &**value)
    }

    /// What a client cares for, as one line. The place of a redirect is that which a client makes
    /// of it when it has asked `host`.
    fn told(&self, host: &str) -> String {
        let mut words = vec![self.status.to_string()];
        let kind = self.field("content-type").filter(|_| matches!(self.status, 200 | 206));
        // This server names the coding of the characters behind a `;`, and Mighttpd does not.
        words.extend(kind.map(|kind| kind.split(';').next().unwrap().to_owned()));
        words.extend(self.field("content-range").map(str::to_owned));
        words.extend(self.field("last-modified").map(|at| match at {
            MODIFIED => "modified".to_owned(),
            other => other.to_owned(),
        }));
        words.extend(self.field("location").map(|place| match place.strip_prefix('/') {
            Some(path) if !path.starts_with('/') => format!("//{host}{place}"),
            _ => place.to_owned(),
        }));
        let own = self.fields.iter().filter(|(name, _)| name.starts_with("x-"));
        words.extend(own.map(|(name, value)| format!("{name}={value}")));
        let in_parts = kind.is_some_and(|kind| kind.starts_with("multipart/"));
        if matches!(self.status, 200 | 206 | 404) && !in_parts {
            words.push(self.body.trim_end().replace('\n', "|"));
        }
        words.join(" ").trim_end().to_owned()
    }
}

/// The answers of the server at `address` to all `cases`.
fn answers(address: SocketAddr, cases: &[Case]) -> Vec<String> {
    let answer = |case: &Case| {
        let bytes = case.bytes();
        let host = bytes.lines().find_map(|line| line.strip_prefix("Host: ")).unwrap_or_default();
        received(address, &bytes).map_or("nothing".to_owned(), |reply| reply.told(host))
    };
    cases.iter().map(answer).collect()
}

/// A server behind the two, which replies with what it has got, to the end of the process. Returns
/// its port.
fn server_behind() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            std::thread::spawn(move || while answered(&mut stream).is_some() {});
        }
    });
    port
}

/// Answers the next request on the connection, if one comes.
fn answered(stream: &mut BufReader<TcpStream>) -> Option<()> {
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        // A client that has gone asks for nothing.
        stream.read_line(&mut line).ok().filter(|&length| length > 0)?;
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_owned()),
        }
    }
    let field = |name: &str| {
        let fields = head.iter().filter_map(|line| line.split_once(": "));
        fields.filter(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    };
    let body = match (field("Content-Length"), field("Transfer-Encoding")) {
        (Some(length), _) => counted(stream, length.parse().unwrap()),
        (None, Some(_)) => unchunked(stream),
        (None, None) => Vec::new(),
    };
    let asked = head[0].trim_end_matches(" HTTP/1.1");
    let host = field("Host").unwrap_or("none");
    let told = format!("{asked} to {host} [{}]", String::from_utf8_lossy(&body));
    let length = told.len();
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-Up: 1\r\nContent-Length: {length}\r\n\r\n");
    let told = if asked.starts_with("HEAD ") { "" } else { &told };
    stream.get_mut().write_all(format!("{head}{told}").as_bytes()).ok()
}

const CASES: &[Case] = &[
    // Files, their kinds and their indices.
    same("GET /"),
    same("GET /index.html"),
    same("GET /ten.txt"),
    same("GET /ten.txt?query"),
    same("GET /empty.txt"),
    same("GET /a%20b.txt"),
    same("GET /a.css"),
    differs(
        "GET /a.js",
        "200 application/javascript modified a()",
        "200 text/javascript modified a()",
        "RFC 9239 has made the other name obsolete",
    ),
    same("GET /a.json"),
    same("GET /a.png"),
    same("GET /a.svg"),
    same("GET /a.xyzzy"),
    same("GET /noname"),
    differs(
        "GET /ten.txt.gz",
        "200 text/plain modified gzip",
        "200 application/gzip modified gzip",
        "the bytes are no text",
    ),
    same("GET /ten.txt\nAccept-Encoding: gzip"),
    same("GET /docs/"),
    same("GET /docs"),
    differs(
        "GET /docs?query",
        "301 //a.example/docs/",
        "301 //a.example/docs/?query",
        "a redirect keeps the query",
    ),
    differs("GET /bare/", "404 own 404", "403", "a directory without an index is there, and is not shown"),
    differs(
        "GET /bare",
        "404 own 404",
        "301 //a.example/bare/",
        "the directory is there: see the line above",
    ),
    same("GET /bare/file"),
    same("GET /nothing"),
    same("GET /nothing/"),
    same("GET /ten.txt/"),
    differs("GET /.secret", "400", "404 own 404", "a hidden file is not told from one that is not there"),
    same("GET //ten.txt"),
    same("GET /docs//index.html"),
    same("GET /../ten.txt"),
    differs(
        "GET /docs/../ten.txt",
        "400",
        "200 text/plain modified 0123456789",
        "the path is resolved as RFC 3986 §5.2.4 says, and refused if it leads out of the root",
    ),
    differs(
        "GET /./ten.txt",
        "400",
        "200 text/plain modified 0123456789",
        "the path is resolved as RFC 3986 §5.2.4 says, and refused if it leads out of the root",
    ),
    differs(
        "GET /%2e%2e/ten.txt",
        "404 own 404",
        "400",
        "the path is resolved as RFC 3986 §5.2.4 says, and refused if it leads out of the root",
    ),
    same("GET /ten%2etxt"),
    differs(
        "GET /docs%2findex.html",
        "200 text/html modified <h1>Docs</h1>",
        "404 own 404",
        "an encoded slash is a part of a name, and no file has it in its name",
    ),
    same("HEAD /"),
    same("HEAD /ten.txt"),
    same("HEAD /docs"),
    same("HEAD /nothing"),
    same("POST /ten.txt").with_body("abc"),
    same("PUT /ten.txt").with_body("abc"),
    same("DELETE /ten.txt"),
    differs("OPTIONS /ten.txt", "405", "204", "the methods are told"),
    differs(
        "UNKNOWN /ten.txt",
        "405",
        "501",
        "RFC 9110 §9.1: 501 for a method that the server does not know",
    ),
    // Conditions and ranges.
    same("GET /ten.txt\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT"),
    same("HEAD /ten.txt\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT"),
    differs(
        "GET /ten.txt\nIf-Modified-Since: Sun, 06 Nov 2005 08:49:37 GMT",
        "200 text/plain modified 0123456789",
        "304",
        "RFC 9110 §13.1.3 and §13.1.4: what counts is which is later, and not whether both are the same",
    ),
    same("GET /ten.txt\nIf-Modified-Since: Fri, 06 Nov 1992 08:49:37 GMT"),
    same("GET /ten.txt\nIf-Modified-Since: yesterday"),
    same("GET /ten.txt\nIf-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT"),
    same("GET /ten.txt\nIf-Unmodified-Since: Fri, 06 Nov 1992 08:49:37 GMT"),
    differs(
        "GET /ten.txt\nIf-Unmodified-Since: Sun, 06 Nov 2005 08:49:37 GMT",
        "412",
        "200 text/plain modified 0123456789",
        "RFC 9110 §13.1.3 and §13.1.4: what counts is which is later, and not whether both are the same",
    ),
    same("GET /ten.txt\nRange: bytes=2-4"),
    same("GET /ten.txt\nRange: bytes=5-"),
    same("GET /ten.txt\nRange: bytes=-3"),
    same("GET /ten.txt\nRange: bytes=3-100"),
    differs(
        "GET /ten.txt\nRange: bytes=0-0,2-3",
        "206 text/plain bytes 0-0/10 modified 0",
        "206 multipart/byteranges modified",
        "all ranges are sent",
    ),
    differs(
        "GET /ten.txt\nRange: bytes=20-30",
        "nothing",
        "416 bytes */10",
        "Mighttpd fails, and closes the connection without a reply",
    ),
    differs(
        "GET /ten.txt\nRange: bytes=5-2",
        "416",
        "200 text/plain modified 0123456789",
        "RFC 9110 §14.2: a range that has no meaning is ignored",
    ),
    differs(
        "GET /ten.txt\nRange: lines=1-2",
        "416",
        "200 text/plain modified 0123456789",
        "RFC 9110 §14.2: a range that has no meaning is ignored",
    ),
    differs(
        "HEAD /ten.txt\nRange: bytes=2-4",
        "206 text/plain bytes 2-4/10 modified",
        "200 text/plain modified",
        "RFC 9110 §14.2: a range has a meaning for GET alone",
    ),
    same("GET /ten.txt\nRange: bytes=2-4\nIf-Range: Sun, 06 Nov 1994 08:49:37 GMT"),
    same("GET /ten.txt\nRange: bytes=2-4\nIf-Range: Fri, 06 Nov 1992 08:49:37 GMT"),
    same("GET /ten.txt\nRange: bytes=2-4\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT"),
    same("GET /ten.txt\nRange: bytes=2-4\nIf-Modified-Since: Fri, 06 Nov 1992 08:49:37 GMT"),
    // Languages.
    same("GET /lang/"),
    same("GET /lang"),
    same("GET /lang/index.html"),
    same("HEAD /lang/\nAccept-Language: fr"),
    same("GET /lang/\nAccept-Language: fr"),
    same("GET /lang/\nAccept-Language: ja"),
    same("GET /lang/\nAccept-Language: de"),
    same("GET /lang/\nAccept-Language: de, fr"),
    same("GET /lang/\nAccept-Language: fr;q=0.5, ja"),
    same("GET /lang/\nAccept-Language: fr-FR,fr;q=0.8"),
    differs(
        "GET /lang/\nAccept-Language: fr-CA",
        "200 text/html modified english",
        "200 text/html modified french",
        "RFC 4647: tags have no case, and a range of a region finds its language",
    ),
    differs(
        "GET /lang/\nAccept-Language: FR",
        "200 text/html modified english",
        "200 text/html modified french",
        "RFC 4647: tags have no case, and a range of a region finds its language",
    ),
    same("GET /lang/\nAccept-Language: *"),
    differs(
        "GET /lang/\nAccept-Language: fr;q=0",
        "200 text/html modified french",
        "200 text/html modified english",
        "RFC 9110 §12.4.2: a weight of 0 is \"not acceptable\"",
    ),
    same("GET /page.html"),
    same("GET /page.html\nAccept-Language: de"),
    same("GET /page.html\nAccept-Language: fr"),
    same("GET /page.html.de"),
    same("GET /lang/index.html.ja\nAccept-Language: fr"),
    same("GET /only.html"),
    same("GET /only.html\nAccept-Language: fr"),
    same("GET /ten.txt\nAccept-Language: gz"),
    // Redirects.
    same("GET /old/page"),
    same("GET /old/"),
    same("GET /old"),
    differs(
        "GET /old/page?query",
        "301 //www.example.org:81/new/page",
        "301 //www.example.org:81/new/page?query",
        "a redirect keeps the query",
    ),
    same("POST /old/page").with_body("abc"),
    same("HEAD /old/page"),
    differs(
        "GET /port/page",
        "301 //:8081/x/page",
        "301 //a.example:8081/x/page",
        "no client can follow a place without a host",
    ),
    // Programs.
    same("GET /programs/told"),
    same("GET /programs/told/more/path?a=b&c"),
    same("GET /programs/told/a%20b"),
    same("POST /programs/told?x\nContent-Type: text/x").with_body("abcde"),
    differs(
        "PUT /programs/told",
        "405",
        "200 text/plain x-own=1 PUT /programs/told [] [] []|a.example HTTP/1.1 CGI/1.1 127.0.0.1 [abcde]",
        "RFC 3875 §4.3: the program learns the method",
    )
    .with_body("abcde"),
    differs(
        "HEAD /programs/told",
        "405",
        "200 text/plain x-own=1",
        "RFC 3875 §4.3: the program learns the method",
    ),
    same("GET /programs/status"),
    differs(
        "GET /programs/moved",
        "500",
        "302 http://www.example.org/x",
        "RFC 3875 §6.2.3: a program may reply with `Location` alone",
    ),
    same("GET /programs/"),
    same("GET /programs"),
    same("GET /programs/broken"),
    differs("GET /programs/plain", "500", "403", "a program that is not there is no fault of the server"),
    differs(
        "GET /programs/nothing",
        "500",
        "404 own 404",
        "a program that is not there is no fault of the server",
    ),
    // Servers behind.
    same("GET /app/page"),
    same("GET /app/page?a=b&c"),
    same("GET /app/a%20b"),
    same("GET /app/"),
    same("GET /app"),
    same("HEAD /app/page"),
    same("POST /app/page").with_body("abcde"),
    same("DELETE /app/page"),
    same("GET /local/page"),
    differs("GET /dead/page", "500", "502", "RFC 9110 §15.6.3: it is the server behind that fails"),
    // The first route that matches, and the first list of domains.
    same("GET /manual/"),
    same("GET /manual"),
    same("GET /manual/nothing"),
    same("GET /second/"),
    same("GET /ten.txt\nHost: localhost"),
    same("GET /ten.txt\nHost: localhost:8080"),
    same("GET /docs\nHost: localhost:8080"),
    same("GET /x/ten.txt\nHost: localhost"),
    same("GET /x/ten.txt\nHost: b.example"),
    same("GET /x\nHost: b.example"),
    same("GET /y\nHost: b.example"),
    same("GET /\nHost: c.example"),
    differs(
        "GET /ten.txt\nHost: A.Example",
        "412",
        "200 text/plain modified 0123456789",
        "RFC 9110 §4.2.3: the case of a host has no meaning",
    ),
];

#[test]
fn mighttpd_and_this_server_answer_alike() {
    let Some(mighty) = program("mighty") else {
        eprintln!("Mighttpd (mighttpd2) is not installed: nothing is compared with it");
        return;
    };
    let home = tempfile::tempdir().unwrap();
    site_of(home.path());
    let (ours, nothing) = (free_address(), free_address());
    let files = two_files(home.path(), ours.port(), server_behind(), nothing.port());
    let theirs = {
        let _mighttpd = Peer::start("Mighttpd", &mighty, &files, home.path(), ours);
        answers(ours, CASES)
    };
    let server = start(httpd(&[&files[0], &files[1]]));
    assert_eq!(server.address, ours, "{}", server.line);
    let ours = answers(server.address, CASES);
    let mut wrong = Vec::new();
    for (case, (theirs, ours)) in CASES.iter().zip(theirs.iter().zip(&ours)) {
        let (expected, why) = match &case.difference {
            None => ((theirs.as_str(), theirs.as_str()), ""),
            Some(Difference { mighttpd, ours, why }) => ((*mighttpd, *ours), *why),
        };
        if (theirs.as_str(), ours.as_str()) != expected {
            wrong.push(format!(
                "{:?}: Mighttpd {theirs:?}, ours {ours:?}, not {expected:?}: {why}",
                case.request
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
