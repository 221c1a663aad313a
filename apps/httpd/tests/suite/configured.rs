//! Sites by their configuration: routes, rules, listings, languages, codings, passwords.

use super::DIRECT;
use crate::common::{Client, Reply, Server, free_address, let_settle, site, start};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};

pub(crate) fn httpd(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge-httpd"));
    command.args(arguments);
    command
}

pub(crate) fn output(arguments: &[&str]) -> Output {
    httpd(arguments).output().unwrap()
}

/// Starts a server by this configuration, of which the file lies in `directory`.
pub(crate) fn configured(directory: &Path, configuration: &str) -> Server {
    let file = directory.join("site.toml");
    let cache = if DIRECT == "0" { String::new() } else { format!("cache.direct = {DIRECT}\n") };
    fs::write(&file, format!("listen = ['127.0.0.1:0']\nworkers = 1\n{cache}{configuration}")).unwrap();
    start(httpd(&[file.to_str().unwrap()]))
}

fn get(server: &Server, host: &str, path: &str, fields: &str) -> Reply {
    ask(server, "GET", host, path, fields)
}

fn ask(server: &Server, method: &str, host: &str, path: &str, fields: &str) -> Reply {
    let fields: String = fields.lines().map(|field| format!("{field}\r\n")).collect();
    server.ask(&format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n"))
}

fn text(reply: &Reply) -> String {
    String::from_utf8_lossy(&reply.body).into_owned()
}

#[test]
fn hosts_and_routes() {
    let site = site();
    let server = configured(
        site.path(),
        "
        [[host]]
        names = ['a.example', '*.b.example']
        [[host.route]]
        path = '/old/'
        redirect = 'https://$host/new$rest'
        status = 308
        [[host.route]]
        path = '/gone.html'
        answer = 410
        [[host.route]]
        path = '/manual/'
        directory = 'docs'
        [[host.route]]
        path = '/app/'
        proxy = '127.0.0.1:9'
        [[host.route]]
        directory = '.'
        [[route]]
        path = '/only'
        redirect = '/else'
        ",
    );
    let moved = get(&server, "a.example", "/old/x?y=1", "");
    assert_eq!((moved.status, moved.field("Location")), (308, Some("https://a.example/new/x?y=1")));
    assert_eq!(get(&server, "x.b.example:81", "/%6fld/./x", "").status, 308);
    assert_eq!(get(&server, "a.example", "/gone.html", "").status, 410);
    assert_eq!(text(&get(&server, "a.example", "/manual/", "")), "<h1>Docs</h1>");
    let slash = get(&server, "a.example", "/manual?q", "");
    assert_eq!((slash.status, slash.field("Location")), (301, Some("/manual/?q")));
    let below = get(&server, "a.example", "/docs", "");
    assert_eq!((below.status, below.field("Location")), (301, Some("/docs/")));
    assert_eq!(get(&server, "a.example", "/ten.txt", "").body, b"0123456789");
    assert_eq!(get(&server, "a.example", "/empty/", "").status, 403);
    assert_eq!(get(&server, "a.example", "/.secret", "").status, 404);
    assert_eq!(get(&server, "a.example", "/%2e%2e/x", "").status, 400);
    assert_eq!(ask(&server, "POST", "a.example", "/ten.txt", "Content-Length: 0").status, 405);
    assert_eq!(get(&server, "other", "/ten.txt", "").status, 404);
    assert_eq!(get(&server, "other", "/only", "").field("Location"), Some("/else"));
    let options = server.ask("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(options.status, 204);
    // Many requests on one connection, in order.
    let mut client = server.connect();
    client.send("GET /ten.txt HTTP/1.1\r\nHost: a.example\r\n\r\nGET /big.bin HTTP/1.1\r\nHost: a.example\r\n\r\nGET /x HTTP/1.1\r\nHost: a\r\n\r\n");
    let lens: Vec<usize> = (0..2).map(|_| client.reply().body.len()).collect();
    assert_eq!((lens, client.reply().status), (vec![10, 3_000_000], 404));
}

#[test]
fn fields_and_rules() {
    let site = site();
    fs::create_dir(site.path().join("errors")).unwrap();
    fs::write(site.path().join("errors/404.html"), "<p>not here").unwrap();
    fs::write(site.path().join("errors/403.html"), "<p>not you").unwrap();
    let server = configured(
        site.path(),
        "
        [[route]]
        path = '/closed/'
        directory = '.'
        deny = ['127.0.0.0/8']
        error_pages = 'errors'
        [[route]]
        path = '/slow/'
        directory = '.'
        rate = { per_second = 0.01, burst = 2 }
        [[route]]
        directory = '.'
        error_pages = 'errors'
        headers = { X-Frame-Options = 'DENY', Server = '' }
        cache_control = [{ path = '/**.txt', value = 'max-age=60' }, { value = 'no-store' }]
        cors = { origins = ['https://a.example'], methods = ['GET', 'PUT'] }
        ",
    );
    let whole = get(&server, "a", "/ten.txt", "");
    assert_eq!(whole.field("X-Frame-Options"), Some("DENY"));
    // A handler answers for files past the page cache.
    assert_eq!((whole.field("Server"), whole.field("Cache-Control")), (None, Some("max-age=60")));
    assert_eq!((whole.field("Vary"), &whole.body[..]), (Some("Origin"), &b"0123456789"[..]));
    assert_eq!(get(&server, "a", "/", "").field("Cache-Control"), Some("no-store"));
    let etag = whole.field("ETag").unwrap();
    let unchanged = get(&server, "a", "/ten.txt", &format!("If-None-Match: {etag}"));
    assert_eq!((unchanged.status, unchanged.field("Cache-Control")), (304, Some("max-age=60")));
    let missing = get(&server, "a", "/missing", "");
    assert_eq!((missing.status, text(&missing)), (404, "<p>not here".into()));
    assert_eq!((missing.field("X-Frame-Options"), missing.field("Cache-Control")), (Some("DENY"), None));
    assert_eq!(missing.field("Content-Type"), Some("text/html; charset=utf-8"));
    // The same name in two directories: the page for errors is not a file of the route.
    let same = get(&server, "a", "/404.html", "");
    assert_eq!((same.status, text(&same)), (404, "<p>not here".into()));
    let closed = get(&server, "a", "/closed/ten.txt", "");
    assert_eq!((closed.status, text(&closed)), (403, "<p>not you".into()));
    let statuses: Vec<u16> = (0..3).map(|_| get(&server, "a", "/slow/ten.txt", "").status).collect();
    assert_eq!(statuses, [200, 200, 429]);
    assert!(get(&server, "a", "/slow/", "").field("Retry-After").is_some());
    let own = get(&server, "a", "/ten.txt", "Origin: https://a.example");
    assert_eq!(own.field("Access-Control-Allow-Origin"), Some("https://a.example"));
    let other = get(&server, "a", "/ten.txt", "Origin: https://b.example");
    assert_eq!(other.field("Access-Control-Allow-Origin"), None);
    let preflight = "Origin: https://a.example\nAccess-Control-Request-Method: PUT";
    let preflight = ask(&server, "OPTIONS", "a", "/ten.txt", preflight);
    assert_eq!((preflight.status, preflight.field("Access-Control-Allow-Methods")), (204, Some("GET, PUT")));
}

#[test]
fn passwords() {
    let site = site();
    let hash = include_str!("../../../../crates/site/tests/suite/six.txt").trim();
    fs::write(site.path().join("users"), format!("ada:{hash}\n")).unwrap();
    let server = configured(
        site.path(),
        "[[route]]\ndirectory = '.'\nauth = { realm = 'the mill', users = 'users' }\n",
    );
    let refused = get(&server, "a", "/ten.txt", "");
    let challenge = "Basic realm=\"the mill\", charset=\"UTF-8\"";
    assert_eq!((refused.status, refused.field("WWW-Authenticate")), (401, Some(challenge)));
    // ada:secret, twice: the second time it is known. ada:Secret. bob:secret.
    for (credentials, status) in [
        ("YWRhOnNlY3JldA==", 200),
        ("YWRhOnNlY3JldA==", 200),
        ("YWRhOlNlY3JldA==", 401),
        ("Ym9iOnNlY3JldA==", 401),
        ("not base64", 401),
    ] {
        let reply = get(&server, "a", "/ten.txt", &format!("Authorization: Basic {credentials}"));
        assert_eq!(reply.status, status, "{credentials}");
    }
}

/// Clients that guess passwords keep two OS threads busy, and no other request waits for them.
#[test]
fn guesses_wait_for_each_other() {
    let site = site();
    let hash = include_str!("../../../../crates/site/tests/suite/six.txt").trim();
    fs::write(site.path().join("users"), format!("ada:{hash}\n")).unwrap();
    let server = configured(
        site.path(),
        "[[route]]\npath = '/docs/'\ndirectory = 'docs'\nauth = { users = 'users' }\n[[route]]\ndirectory = '.'\n",
    );
    let threads = || fs::read_dir(format!("/proc/{}/task", server.pid().as_raw_pid())).unwrap().count();
    let before = threads();
    let mut guessing: Vec<Client> = (0..40).map(|_| server.connect()).collect();
    for client in &mut guessing {
        client.send("GET /docs/ HTTP/1.1\r\nHost: a\r\nAuthorization: Basic YWRhOlNlY3JldA==\r\n\r\n");
    }
    // The file is not in the server's cache, so it takes a blocking call.
    assert_eq!(get(&server, "a", "/ten.txt", "").status, 200);
    let mut most = 0;
    for client in &mut guessing {
        most = most.max(threads());
        assert_eq!(client.reply().status, 401);
    }
    // Two for the passwords, and a few for the file.
    assert!(most <= before + 6, "{before} OS threads, and {most} meanwhile");
}

/// A program gets a chunked body that does not fit into memory.
#[test]
fn a_long_body_for_a_program() {
    let site = site();
    fs::create_dir(site.path().join("bin")).unwrap();
    let program = site.path().join("bin/count");
    fs::write(&program, "#!/bin/sh\necho 'Content-Type: text/plain'\necho\necho $CONTENT_LENGTH $(wc -c)\n")
        .unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let server = configured(
        site.path(),
        "limits = { body_bytes = 10_000_000 }\n[[route]]\npath = '/bin/'\ncgi = 'bin'\n",
    );
    let mut client = server.connect();
    let post =
        "POST /bin/count HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
    client.send(post);
    let chunk = [b"186a0\r\n", &[b'x'; 100_000][..], b"\r\n"].concat();
    for _ in 0..50 {
        client.send(&chunk);
    }
    client.send("0\r\n\r\n");
    let reply = String::from_utf8(client.rest()).unwrap();
    assert!(reply.contains("\r\n5000000 5000000\n"), "{reply}");
    // Beyond the limit it is refused.
    let mut client = server.connect();
    client.send(post);
    for _ in 0..101 {
        if client.stream.write_all(&chunk).is_err() {
            break;
        }
    }
    assert_eq!(client.reply().status, 413);
}

#[test]
fn listings() {
    let site = site();
    fs::create_dir_all(site.path().join("docs/deep/er")).unwrap();
    fs::write(site.path().join("docs/deep/a <b>.txt"), "x").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", site.path().join("docs/deep/out")).unwrap();
    let server = configured(
        site.path(),
        "[[route]]\npath = '/d/'\ndirectory = 'docs'\nlisting = 'html'\n[[route]]\npath = '/j/'\ndirectory = 'docs'\nlisting = 'json'\n",
    );
    let page = get(&server, "a", "/d/deep/", "");
    assert_eq!((page.status, page.field("Content-Type")), (200, Some("text/html; charset=utf-8")));
    let html = text(&page);
    assert!(html.contains("<a href=\"er/\">er/</a>"), "{html}");
    assert!(html.contains("a%20%3Cb%3E.txt\">a &lt;b&gt;.txt</a>") && !html.contains("out"), "{html}");
    let json = get(&server, "a", "/d/deep/", "Accept: application/json");
    assert_eq!(json.field("Content-Type"), Some("application/json"));
    assert!(text(&json).contains("{\"name\":\"a <b>.txt\",\"type\":\"file\",\"size\":1,"), "{}", text(&json));
    assert_eq!(text(&get(&server, "a", "/j/deep/", "")), text(&json));
    assert_eq!(text(&get(&server, "a", "/d/", "")), "<h1>Docs</h1>");
    assert_eq!(get(&server, "a", "/d/nothing/", "").status, 404);
    let head = ask(&server, "HEAD", "a", "/d/deep/", "");
    assert_eq!((head.status, head.field("Content-Length")), (200, page.field("Content-Length")));
}

#[test]
fn names_to_try() {
    let site = site();
    fs::write(site.path().join("about.html"), "about").unwrap();
    let server = configured(
        site.path(),
        "[[route]]\npath = '/app/'\ndirectory = '.'\ntry_files = ['$rest', '$rest.html', '/docs/index.html']\n",
    );
    for (path, body) in [
        ("/app/ten.txt", "0123456789"),
        ("/app/about", "about"),
        ("/app/any/where", "<h1>Docs</h1>"),
        ("/app/", "<h1>Site</h1>"),
    ] {
        let reply = get(&server, "a", path, "");
        assert_eq!((reply.status, text(&reply)), (200, body.into()), "{path}");
    }
    assert_eq!(get(&server, "a", "/app/.secret", "").status, 404);
}

#[test]
fn languages() {
    let site = site();
    fs::write(site.path().join("index.html.ja"), "ja").unwrap();
    fs::write(site.path().join("only.html.en"), "en").unwrap();
    let server = configured(site.path(), "[[route]]\ndirectory = '.'\nlanguage = 'en'\n");
    for (path, accepted, body, language) in [
        ("/", "ja, en;q=0.5", "ja", Some("ja")),
        ("/", "ja-JP", "ja", Some("ja")),
        ("/", "en, ja;q=0.5", "<h1>Site</h1>", Some("en")),
        ("/", "fr", "<h1>Site</h1>", None),
        ("/only.html", "fr", "en", Some("en")),
        // A page in one language by its own name is a page too.
        ("/only.html.en", "fr", "en", Some("en")),
        ("/ten.txt", "ja", "0123456789", None),
    ] {
        let reply = get(&server, "a", path, &format!("Accept-Language: {accepted}"));
        assert_eq!((reply.status, text(&reply)), (200, body.into()), "{path} {accepted}");
        assert_eq!(reply.field("Content-Language"), language, "{path} {accepted}");
        assert_eq!(reply.field("Vary"), Some("Accept-Language"));
        let kind = if path == "/ten.txt" { "text/plain; charset=utf-8" } else { "text/html; charset=utf-8" };
        assert_eq!(reply.field("Content-Type"), Some(kind), "{path} {accepted}");
    }
}

/// What `program -d` makes of `bytes`.
fn unpacked(program: &str, bytes: &[u8]) -> Vec<u8> {
    let mut child = Command::new(program)
        .arg("-dc")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    let mut out = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut out).unwrap();
    child.wait().unwrap();
    out
}

#[test]
fn codings() {
    let site = site();
    let long = "warp and weft ".repeat(1000);
    fs::write(site.path().join("long.txt"), &long).unwrap();
    fs::write(site.path().join("site.css"), "plain").unwrap();
    fs::write(site.path().join("site.css.br"), "brotli").unwrap();
    fs::write(site.path().join("site.css.gz"), "gzip").unwrap();
    fs::write(site.path().join("site.js"), "plain").unwrap();
    fs::write(site.path().join("site.js.zst"), "zstandard").unwrap();
    let_settle();
    let server = configured(
        site.path(),
        "[[route]]\npath = '/metrics'\npage = 'metrics'\n\
         [[route]]\ndirectory = '.'\nprecompressed = true\ncompress = true\n",
    );
    // How often a file was compressed, and how often it had been before.
    let compressions = || {
        let metrics = text(&get(&server, "a", "/metrics", ""));
        ["compressions_total ", "compressed_hits_total "].map(|name| {
            let value = metrics.lines().find_map(|line| line.strip_prefix("selvedge_")?.strip_prefix(name));
            value.unwrap().parse::<u64>().unwrap()
        })
    };
    for (accepted, body, coding) in [
        ("br, gzip", "brotli", Some("br")),
        ("gzip", "gzip", Some("gzip")),
        ("zstd", "plain", None),
        ("br;q=0", "plain", None),
    ] {
        let reply = get(&server, "a", "/site.css", &format!("Accept-Encoding: {accepted}"));
        assert_eq!((text(&reply), reply.field("Content-Encoding")), (body.into(), coding), "{accepted}");
        assert_eq!(reply.field("Content-Type"), Some("text/css; charset=utf-8"));
        assert_eq!(reply.field("Vary"), Some("Accept-Encoding"));
    }
    assert_eq!(get(&server, "a", "/site.css.gz", "").field("Content-Encoding"), None);
    // Also of a neighbour, tag and ranges are those of the bytes that are sent.
    let neighbour = get(&server, "a", "/site.js", "Accept-Encoding: gzip, zstd");
    assert_eq!((text(&neighbour), neighbour.field("Content-Encoding")), ("zstandard".into(), Some("zstd")));
    assert_ne!(neighbour.field("ETag"), get(&server, "a", "/site.js", "").field("ETag"));
    let range = get(&server, "a", "/site.js", "Accept-Encoding: zstd\nRange: bytes=1-3");
    assert_eq!((range.status, &*text(&range), range.field("Content-Encoding")), (206, "sta", Some("zstd")));
    let plain = get(&server, "a", "/long.txt", "");
    assert_eq!((plain.field("Content-Encoding"), plain.body.len()), (None, long.len()));
    let packed = get(&server, "a", "/long.txt", "Accept-Encoding: gzip");
    assert_eq!(packed.field("Content-Encoding"), Some("gzip"));
    assert!(packed.body.len() < 1000 && unpacked("gzip", &packed.body) == long.as_bytes());
    // The second reply is the same bytes, and nothing is compressed for it.
    assert_eq!(compressions(), [1, 0]);
    assert_eq!(get(&server, "a", "/long.txt", "Accept-Encoding: gzip").body, packed.body);
    assert_eq!(compressions(), [1, 1]);
    // The tag belongs to the bytes, and so do ranges.
    let etag = packed.field("ETag").unwrap();
    assert_ne!(Some(etag), plain.field("ETag"));
    let again = get(&server, "a", "/long.txt", &format!("Accept-Encoding: gzip\nIf-None-Match: {etag}"));
    assert_eq!(again.status, 304);
    let range = get(&server, "a", "/long.txt", "Accept-Encoding: gzip\nRange: bytes=0-9");
    assert_eq!((range.status, &range.body[..]), (206, &packed.body[..10]));
    assert_eq!(range.field("Content-Encoding"), Some("gzip"));
    let brotli = get(&server, "a", "/long.txt", "Accept-Encoding: gzip, br");
    assert_eq!(brotli.field("Content-Encoding"), Some("br"));
    assert!(brotli.body.len() < packed.body.len());
    assert_eq!(compressions()[0], 2, "once for each coding");
    let zstd = get(&server, "a", "/long.txt", "Accept-Encoding: gzip, zstd");
    assert_eq!(zstd.field("Content-Encoding"), Some("zstd"));
    assert_eq!(zstd.field("Vary"), Some("Accept-Encoding"));
    assert!(zstd.body.len() < packed.body.len() && unpacked("zstd", &zstd.body) == long.as_bytes());
    assert_eq!(compressions()[0], 3);
    // The client's weights decide, and then the order of this server: br, zstd, gzip.
    for (accepted, coding) in [
        ("zstd", Some("zstd")),
        ("gzip, zstd;q=0.5", Some("gzip")),
        ("gzip;q=0.5, zstd;q=0.6, br;q=0.4", Some("zstd")),
        ("zstd;q=0, gzip", Some("gzip")),
        ("br;q=0, *", Some("zstd")),
        ("gzip, br, zstd", Some("br")),
        ("zstd;q=0", None),
        ("identity, zstd;q=0.9", None),
    ] {
        let reply = get(&server, "a", "/long.txt", &format!("Accept-Encoding: {accepted}"));
        assert_eq!(reply.field("Content-Encoding"), coding, "{accepted}");
        if coding == Some("zstd") {
            assert_eq!(reply.body, zstd.body, "{accepted}");
        }
    }
    // Nothing was compressed for these replies.
    assert_eq!(compressions()[0], 3);
    // Of the same file each coding has a tag of its own.
    let tag = |reply: &Reply| reply.field("ETag").unwrap().to_owned();
    let (etag, others) = (tag(&zstd), [tag(&plain), tag(&packed), tag(&brotli)]);
    assert!(!others.contains(&etag), "{etag} {others:?}");
    for (fields, status) in [
        (format!("Accept-Encoding: zstd\nIf-None-Match: {etag}"), 304),
        (format!("Accept-Encoding: gzip\nIf-None-Match: {etag}"), 200),
        (format!("Accept-Encoding: zstd\nIf-None-Match: {}", others[1]), 200),
    ] {
        assert_eq!(get(&server, "a", "/long.txt", &fields).status, status, "{fields}");
    }
    let fields = format!("Accept-Encoding: zstd\nRange: bytes=4-9\nIf-Range: {etag}");
    let again = get(&server, "a", "/long.txt", &fields);
    assert_eq!((again.status, &again.body[..]), (206, &zstd.body[4..10]));
    // Too short, and of no such type.
    assert_eq!(get(&server, "a", "/ten.txt", "Accept-Encoding: gzip").field("Content-Encoding"), None);
    assert_eq!(get(&server, "a", "/middle.bin", "Accept-Encoding: gzip").field("Content-Encoding"), None);
    // A file that changes is compressed anew.
    fs::write(site.path().join("long.txt"), long.to_uppercase()).unwrap();
    let_settle();
    let changed = get(&server, "a", "/long.txt", "Accept-Encoding: gzip");
    assert!(unpacked("gzip", &changed.body) == long.to_uppercase().as_bytes());
    assert_eq!(compressions()[0], 4);
}

#[test]
fn pages_of_the_server() {
    let site = site();
    let server = configured(
        site.path(),
        "[[route]]\npath = '/status'\npage = 'status'\nallow = ['127.0.0.1']\n[[route]]\npath = '/metrics'\npage = 'metrics'\n\
         [[route]]\npath = '/app/'\nproxy = '127.0.0.1:1'\nhealth = { failures = 1, pause = 600 }\n\
         [[route]]\npath = '/bin/'\ncgi = '.'\n[[route]]\ndirectory = '.'\n",
    );
    get(&server, "a", "/ten.txt", "");
    get(&server, "a", "/ten.txt", "");
    get(&server, "a", "/missing", "");
    // No server is there, so it is out of order from then on.
    assert_eq!(get(&server, "a", "/app/", "").status, 502);
    let metrics = text(&get(&server, "a", "/metrics", ""));
    for line in [
        "selvedge_requests_total{class=\"2xx\"} 2",
        "selvedge_requests_total{class=\"4xx\"} 1",
        "selvedge_connections_total 5",
        "selvedge_connections_waiting{for=\"message\"} 0",
        "selvedge_file_cache_hits_total 1",
        "selvedge_file_cache_files 1",
        "selvedge_upstream_up{route=\"/app\",server=\"127.0.0.1:1\"} 0",
        "selvedge_upstream_requests{route=\"/app\",server=\"127.0.0.1:1\"} 0",
        "selvedge_programs{route=\"/bin\",state=\"running\"} 0",
    ] {
        assert!(metrics.lines().any(|one| one == line), "{line}\n{metrics}");
    }
    let page = get(&server, "a", "/status", "");
    assert_eq!(page.field("Content-Type"), Some("text/html; charset=utf-8"));
    for part in ["<td>/metrics<td>metrics", "<td>/app 127.0.0.1:1<td class=\"n\">0", "<td>a handler<td"] {
        assert!(text(&page).contains(part), "{part}\n{}", text(&page));
    }
}

/// The PROXY protocol is believed from the balancer, and only from it.
#[test]
fn behind_a_balancer() {
    let site = site();
    let routes = "[[route]]\ndirectory = '.'\nallow = ['192.0.2.7']\n";
    let server = configured(site.path(), &format!("proxy_protocol = ['127.0.0.1']\n{routes}"));
    let ask = |head: &[u8]| {
        let mut client = Client::new(TcpStream::connect(server.address).unwrap());
        client.send([head, b"GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n"].concat());
        client.try_reply(false).map(|reply| reply.status)
    };
    assert_eq!(ask(b"PROXY TCP4 192.0.2.7 10.0.0.1 51000 80\r\n"), Some(200));
    assert_eq!(ask(b"PROXY TCP4 192.0.2.8 10.0.0.1 51000 80\r\n"), Some(403));
    assert_eq!(ask(b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x07\x0a\0\0\x01\xc7\x38\0\x50"), Some(200));
    // Version 2: another address is refused, an extension is passed over, and what the balancer
    // asks for itself (`LOCAL`) has its own address.
    let binary = |command: u8, family: u8, rest: &[u8]| {
        let len = [0, rest.len() as u8];
        [&b"\r\n\r\n\0\r\nQUIT\n"[..], &[0x20 | command, family], &len, rest].concat()
    };
    let known = b"\xc0\0\x02\x07\x0a\0\0\x01\xc7\x38\0\x50";
    assert_eq!(ask(&binary(1, 0x11, b"\xc0\0\x02\x08\x0a\0\0\x01\xc7\x38\0\x50")), Some(403));
    assert_eq!(ask(&binary(1, 0x11, &[&known[..], b"\x04\0\x02xy"].concat())), Some(200));
    assert_eq!(ask(&binary(0, 0, b"")), Some(403));
    assert_eq!(ask(&binary(1, 0x21, &[0; 36])), Some(403), "another family");
    assert_eq!(ask(&binary(7, 0x11, known)), None, "no such command");
    assert_eq!(ask(&binary(1, 0x11, &known[..8])), None, "too short for its family");
    let whole = binary(1, 0x11, known);
    for cut in [1, 12, 15, 20, whole.len() - 1] {
        let mut client = server.connect();
        client.send(&whole[..cut]);
        std::thread::sleep(std::time::Duration::from_millis(10));
        client.send([&whole[cut..], b"GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n"].concat());
        assert_eq!(client.reply().status, 200, "{cut}");
    }
    // In two pieces.
    let mut client = server.connect();
    client.send("PROXY TCP4 192.0");
    std::thread::sleep(std::time::Duration::from_millis(30));
    client.send(".2.7 10.0.0.1 1 2\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.reply().status, 200);
    // A server that ends waits for a head that is on its way.
    let mut late = server.connect();
    late.send("PROXY TCP4 192.0");
    std::thread::sleep(std::time::Duration::from_millis(30));
    server.signal(rustix::process::Signal::TERM);
    let until = std::time::Instant::now() + crate::common::PATIENCE;
    while TcpStream::connect(server.address).is_ok() {
        assert!(std::time::Instant::now() < until);
    }
    std::thread::sleep(std::time::Duration::from_millis(30));
    late.send(".2.7 10.0.0.1 1 2\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(late.reply().status, 200);
    let server = configured(site.path(), routes);
    let mut client = server.connect();
    client.send("PROXY TCP4 192.0.2.7 10.0.0.1 51000 80\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.reply().status, 400, "any client can write such a line");
}

#[test]
fn connections_of_one_address() {
    let site = site();
    let server =
        configured(site.path(), "[limits]\nconnections_per_address = 2\n[[route]]\ndirectory = '.'\n");
    let request = "GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut held: Vec<Client> = (0..2).map(|_| server.connect()).collect();
    held.iter_mut().for_each(|client| assert_eq!(client.ask(request).status, 200));
    let mut third = server.connect();
    // The server may close before the request comes, and reset then.
    let _ = third.stream.write_all(request.as_bytes());
    assert!(third.try_reply(false).is_none());
    held.pop();
    let until = std::time::Instant::now() + crate::common::PATIENCE;
    loop {
        let mut client = server.connect();
        let _ = client.stream.write_all(request.as_bytes());
        if client.try_reply(false).is_some() {
            break;
        }
        assert!(std::time::Instant::now() < until);
    }
}

/// Mighttpd's own two files.
#[test]
fn files_of_mighttpd() {
    let site = site();
    let dir = site.path().display().to_string();
    let (conf, route) = (site.path().join("example.conf"), site.path().join("example.route"));
    let port = free_address().port();
    fs::write(&conf, format!("# Example\nPort: {port}\nHost: 127.0.0.1\nDebug_Mode: Yes\nLogging: No\nIndex_File: index.html\nStatus_File_Dir: {dir}/empty\nService: 0\nTls_Port: 444 # unused\n")).unwrap();
    fs::write(site.path().join("empty/404.html"), "mighty 404").unwrap();
    fs::write(
        &route,
        format!("[localhost a.example]\n/old/ << www.example.org:81/new/\n/manual/ -> {dir}/docs/\n/ -> {dir}/\n[b.example]\n/x/ -> {dir}/\n"),
    )
    .unwrap();
    let paths = [conf.to_str().unwrap(), route.to_str().unwrap()];
    let check = output(&["check", paths[0], paths[1]]);
    assert!(check.status.success());
    let warning = String::from_utf8(check.stderr).unwrap();
    assert!(warning.contains("example.conf:9:1: Tls_Port has no meaning here: "), "{warning}");
    let server = start(httpd(&paths));
    let moved = get(&server, "a.example", "/old/p", "");
    assert_eq!((moved.status, moved.field("Location")), (301, Some("//www.example.org:81/new/p")));
    assert_eq!(text(&get(&server, "localhost:80", "/manual/", "")), "<h1>Docs</h1>");
    assert_eq!(get(&server, "a.example", "/manual", "").field("Location"), Some("/manual/"));
    assert_eq!(text(&get(&server, "a.example", "/nothing", "")), "mighty 404");
    assert_eq!(get(&server, "b.example", "/y", "").status, 412);
    assert_eq!(get(&server, "c.example", "/", "").status, 412);
}

/// Other programs answer: a server behind this one, and a program. The rules of the route hold.
/// The kernel takes long to load a program, because another process has a lease on its file. The
/// only worker serves other clients meanwhile, with other programs too.
#[test]
fn a_program_that_loads_slowly_stalls_no_other_client() {
    let site = site();
    let directory = site.path().join("bin");
    fs::create_dir_all(&directory).unwrap();
    for name in ["slow", "quick"] {
        let script = format!("#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n{name}'\n");
        fs::write(directory.join(name), script).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(directory.join(name), mode).unwrap();
    }
    let routes = "[[route]]\npath = '/bin/'\ncgi = 'bin'\n[[route]]\ndirectory = '.'\n";
    let server = configured(site.path(), routes);
    let script = "import fcntl, os, signal, sys\n\
        signal.signal(signal.SIGIO, lambda *_: print('asked', flush=True))\n\
        file = os.open(sys.argv[1], os.O_RDONLY)\n\
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)\n\
        print('leased', flush=True)\n\
        sys.stdin.readline()\n\
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)\n";
    let mut holder = Command::new("python3")
        .args(["-c", script])
        .arg(directory.join("slow"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(holder.stdout.take().unwrap()).lines();
    let mut heard = || told.next().and_then(Result::ok);
    if heard().as_deref() != Some("leased") {
        eprintln!("not tried: the file system gives no leases");
        holder.wait().unwrap();
        return;
    }
    let mut first = server.connect();
    first.send("GET /bin/slow HTTP/1.0\r\nHost: a\r\n\r\n");
    // The kernel asks the holder to give up the lease, and waits.
    assert_eq!(heard().as_deref(), Some("asked"));
    for _ in 0..3 {
        assert_eq!(text(&get(&server, "a", "/ten.txt", "")).len(), 10);
        let mut quick = server.connect();
        quick.send("GET /bin/quick HTTP/1.0\r\nHost: a\r\n\r\n");
        assert!(quick.rest().ends_with(b"\r\n\r\nquick"));
    }
    assert!(holder.try_wait().unwrap().is_none(), "the lease was held all the time");
    holder.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert!(first.rest().ends_with(b"\r\n\r\nslow"));
    holder.wait().unwrap();
}

#[test]
fn other_programs() {
    let site = site();
    let back = crate::common::serve(site.path(), &["--workers", "1"]);
    let program = site.path().join("bin/say");
    fs::create_dir_all(site.path().join("bin")).unwrap();
    fs::write(
        &program,
        "#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n%s %s' \"$PATH_INFO\" \"$QUERY_STRING\"\n",
    )
    .unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let server = configured(
        site.path(),
        &format!(
            "
            [[route]]
            path = '/app/'
            proxy = '{}'
            rewrite = '$rest'
            headers = {{ X-Frame-Options = 'DENY', Server = '' }}
            [[route]]
            path = '/closed/'
            proxy = '{}'
            deny = ['all']
            [[route]]
            path = '/cgi-bin/'
            cgi = 'bin'
            [[route]]
            path = '/metrics'
            page = 'metrics'
            ",
            back.address, back.address
        ),
    );
    let proxied = get(&server, "a", "/app/ten.txt", "");
    assert_eq!((proxied.status, &proxied.body[..]), (200, &b"0123456789"[..]));
    let field = |name: &str| {
        let lines = proxied.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).next()
    };
    assert_eq!(field("X-Frame-Options").as_deref(), Some("DENY"), "{}", proxied.head);
    assert_eq!(field("Server"), None, "{}", proxied.head);
    assert_eq!(get(&server, "a", "/app", "").status, 301);
    assert_eq!(get(&server, "a", "/app/docs/../ten.txt", "").body, b"0123456789");
    assert_eq!(get(&server, "a", "/closed/ten.txt", "").status, 403);
    let said = server.ask("GET /cgi-bin/say/x/y?q=1 HTTP/1.0\r\nHost: a\r\n\r\n");
    assert_eq!(said.status, 200);
    let mut client = server.connect();
    client.send("GET /cgi-bin/say/x/y?q=1 HTTP/1.0\r\nHost: a\r\n\r\n");
    let said = String::from_utf8(client.rest()).unwrap();
    assert!(said.ends_with("\r\n\r\n/x/y q=1"), "{said}");
    let metrics = text(&get(&server, "a", "/metrics", ""));
    assert!(metrics.contains("selvedge_requests_total{class=\"2xx\"} 4\n"), "{metrics}");
    assert!(metrics.contains("selvedge_refused_total{reason=\"access\"} 1\n"), "{metrics}");
}

/// The server's own pages for what other programs do not answer, and the reports that say why.
#[test]
fn own_pages_for_failures() {
    let site = site();
    for (name, text) in [
        ("errors/502.html", "<p>nothing there"),
        ("errors/403.html", "<p>not you"),
        ("errors/500.html", "<p>broken"),
    ] {
        fs::create_dir_all(site.path().join("errors")).unwrap();
        fs::write(site.path().join(name), text).unwrap();
    }
    fs::create_dir_all(site.path().join("bin")).unwrap();
    for (name, text) in
        [("bad", "#!/bin/sh\necho nonsense\n"), ("own", "#!/bin/sh\nprintf 'Status: 502 No\\n\\nmine'\n")]
    {
        let program = site.path().join("bin").join(name);
        fs::write(&program, text).unwrap();
        fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let route =
        |path: &str, action: &str| format!("[[route]]\npath = '{path}'\n{action}\nerror_pages = 'errors'\n");
    let server = configured(
        site.path(),
        &[
            "report = 'report'\n".to_owned(),
            route("/app/", "proxy = '127.0.0.1:9'"),
            route("/bin/", "cgi = 'bin'"),
            route("/php/", "fastcgi = '127.0.0.1:9'\nroot = '.'\nindex = ['ten.txt']"),
            route("/closed/", "proxy = '127.0.0.1:9'\ndeny = ['all']"),
            "[[route]]\nproxy = '127.0.0.1:9'\n".to_owned(),
        ]
        .concat(),
    );
    for (path, status, page) in [
        ("/app/", 502, "<p>nothing there"),
        ("/php/ten.txt", 502, "<p>nothing there"),
        ("/closed/", 403, "<p>not you"),
        ("/bin/bad", 500, "<p>broken"),
    ] {
        let reply = get(&server, "a", path, "");
        let kind = reply.head.to_ascii_lowercase();
        assert_eq!((reply.status, &text(&reply)[..]), (status, page), "{path}");
        assert!(kind.contains("content-type: text/html; charset=utf-8\r\n"), "{kind}");
        assert_eq!(ask(&server, "HEAD", "a", path, "").status, status);
    }
    // Without pages there are words, and a program's own page is its own.
    assert_eq!(text(&get(&server, "a", "/other", "")), "502 Bad Gateway\n");
    let mut client = server.connect();
    client.send("GET /bin/own HTTP/1.0\r\n\r\n");
    assert!(String::from_utf8(client.rest()).unwrap().ends_with("\r\n\r\nmine"));
    let report = fs::read_to_string(site.path().join("report")).unwrap();
    for words in [" error ", "127.0.0.1:9: ", "refused", "bad: it ended without an answer"] {
        assert!(report.contains(words), "{report}");
    }
}

/// Which reports are written.
#[test]
fn levels_of_reports() {
    for (level, notices) in [("notice", 1), ("warning", 0), ("error", 0)] {
        let site = site();
        let server = configured(
            site.path(),
            &format!(
                "report = 'report'\ncontrol = 'control'\nlog = {{ level = '{level}' }}\n[[route]]\ndirectory = '.'\n"
            ),
        );
        let file = site.path().join("site.toml");
        let reload = || output(&["ctl", "--socket", site.path().join("control").to_str().unwrap(), "reload"]);
        assert!(reload().status.success());
        let right = fs::read_to_string(&file).unwrap();
        fs::write(&file, right.replace("directory", "directroy")).unwrap();
        assert!(!reload().status.success());
        let report = fs::read_to_string(site.path().join("report")).unwrap();
        assert_eq!(report.matches("] notice ").count(), notices, "{report}");
        assert_eq!(report.matches("] error ").count(), 1, "{report}");
        drop(server);
    }
}

/// A program ends when its client has left, before its answer and amid it, and not because the
/// client has asked for more in advance.
#[test]
fn clients_that_leave() {
    let site = site();
    fs::create_dir_all(site.path().join("bin")).unwrap();
    let place = site.path().display().to_string();
    // Each says that it has begun, then waits for a file, and says how it has ended.
    let script = |name: &str, head: &str| {
        let program = site.path().join("bin").join(name);
        let text = format!(
            "#!/bin/sh\ntrap 'echo >{place}/$QUERY_STRING.ended; exit' TERM\n{head}\necho >{place}/$QUERY_STRING.begun\n\
            while [ ! -e {place}/go ]; do sleep 0.02; done\nprintf 'Content-Type: text/plain\\n\\nwhole'\n"
        );
        fs::write(&program, text).unwrap();
        fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    };
    script("silent", "");
    script("amid", "printf 'Content-Type: text/plain\\n\\nbegin'");
    let server = configured(
        site.path(),
        "log = { access = 'access.log' }\n[[route]]\npath = '/bin/'\ncgi = 'bin'\n[[route]]\npath = '/stay/'\ncgi = 'bin'\noutlive_client = true\n[[route]]\ndirectory = '.'\n",
    );
    let is_there = |name: &str| site.path().join(name).exists();
    let until = |what: &str, name: &str| crate::controlled::until(what, || is_there(name));
    let request = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let begin = |path: &str, name: &str| {
        let mut client = server.connect();
        client.send(request(path));
        until("the program has begun", &format!("{name}.begun"));
        client
    };
    // It stays, and asks for a file in advance.
    let mut stays = server.connect();
    stays.send("GET /bin/silent?stays HTTP/1.1\r\nHost: a\r\n\r\n");
    until("the program has begun", "stays.begun");
    std::thread::sleep(std::time::Duration::from_millis(100));
    stays.send(request("/ten.txt"));
    drop(begin("/bin/silent?gone", "gone"));
    until("the end of a silent program", "gone.ended");
    let mut amid = begin("/bin/amid?half", "half");
    amid.wait_for_reply();
    drop(amid);
    until("the end of a program amid its answer", "half.ended");
    // A client that closes its direction has left, unless the route says otherwise.
    let shut = |client: &Client| client.stream.shutdown(std::net::Shutdown::Write).unwrap();
    let closed = begin("/bin/silent?closed", "closed");
    shut(&closed);
    until("the end of a program without a client", "closed.ended");
    let mut waits = begin("/stay/silent?waits", "waits");
    shut(&waits);
    std::thread::sleep(std::time::Duration::from_millis(200));
    fs::write(site.path().join("go"), "").unwrap();
    assert!(String::from_utf8(waits.rest()).unwrap().contains("whole"));
    let rest = String::from_utf8(stays.rest()).unwrap();
    assert!(rest.contains("whole") && rest.ends_with("0123456789"), "{rest}");
    assert!(!is_there("stays.ended") && !is_there("waits.ended"));
    let lines = crate::common::log_lines(&site.path().join("access.log"), 5);
    let of = |name: &str| lines.iter().find(|line| line.contains(name)).unwrap();
    assert!(of("?gone ").contains("\" 499 ") && of("?waits ").contains("\" 200 "), "{lines:?}");
}

/// Of two servers behind this one, a server that says that it is out of order gets no requests.
#[test]
fn servers_that_are_out_of_order() {
    let [site, other] = [site(), site()];
    for (directory, name) in [(&site, "first"), (&other, "second")] {
        fs::write(directory.path().join("name.txt"), name).unwrap();
        fs::write(directory.path().join("up"), "").unwrap();
    }
    let [first, second] =
        [&site, &other].map(|site| crate::common::serve(site.path(), &["--validity", "0.01"]));
    let server = configured(
        site.path(),
        &format!(
            "control = 'control'\n[[route]]\nproxy = ['{}', '{}']\nbalance = 'least_connections'\n\
            health = {{ path = '/up', seconds = 0.05 }}\ntimes = {{ connect = 1.0 }}\n",
            first.address, second.address
        ),
    );
    let names = || -> std::collections::BTreeSet<String> {
        (0..8).map(|_| text(&get(&server, "a", "/name.txt", ""))).collect()
    };
    let both: std::collections::BTreeSet<String> = ["first", "second"].map(String::from).into();
    assert_eq!(names(), both);
    drop(second);
    crate::controlled::until("no requests for a server that is gone", || {
        let names = names();
        names.len() == 1 && names.contains("first")
    });
    // A reload keeps what is known.
    let socket = site.path().join("control");
    assert!(output(&["ctl", "--socket", socket.to_str().unwrap(), "reload"]).status.success());
    for _ in 0..4 {
        assert_eq!(names().len(), 1);
    }
}

/// The files of an archive, which a reload replaces.
#[test]
fn an_archive() {
    let site = site();
    let zip = |content: &str| {
        let make = format!(
            "import zipfile\nz = zipfile.ZipFile('new.zip', 'w', zipfile.ZIP_DEFLATED)\n\
            z.writestr('index.html', '{content}')\nz.writestr('css/loom.css', 'h1 {{}}' * 100)\n\
            z.writestr(zipfile.ZipInfo('raw.txt'), '0123456789')\nz.close()\nimport os\nos.rename('new.zip', 'a.zip')\n"
        );
        let made = Command::new("python3").args(["-c", &make]).current_dir(site.path()).status();
        assert!(made.unwrap().success());
    };
    zip("first");
    let server = configured(
        site.path(),
        "control = 'control'\n[[route]]\npath = '/manual/'\narchive = 'a.zip'\nheaders = { X-Frame-Options = 'DENY', Server = '' }\n\
        [[route]]\ndirectory = '.'\n",
    );
    let page = get(&server, "a", "/manual/", "");
    let field = page.head.to_ascii_lowercase();
    assert_eq!((page.status, &page.body[..]), (200, &b"first"[..]));
    assert!(!field.contains("\r\nserver:"), "{field}");
    assert!(
        field.contains("x-frame-options: deny\r\n") && field.contains("content-type: text/html"),
        "{field}"
    );
    assert_eq!(get(&server, "a", "/manual/css/loom.css", "").body.len(), 500);
    assert_eq!(&get(&server, "a", "/manual/raw.txt", "Range: bytes=3-5").body, b"345");
    let moved = get(&server, "a", "/manual/css", "");
    assert!(moved.head.to_ascii_lowercase().contains("location: /manual/css/\r\n"), "{}", moved.head);
    assert_eq!(get(&server, "a", "/manual/nothing", "").status, 404);
    let etag = field.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap().to_owned();
    assert_eq!(get(&server, "a", "/manual/", &format!("If-None-Match: {etag}")).status, 304);
    zip("second");
    assert_eq!(&get(&server, "a", "/manual/", "").body, b"first");
    let socket = site.path().join("control");
    let reload = || output(&["ctl", "--socket", socket.to_str().unwrap(), "reload"]);
    assert!(reload().status.success());
    crate::controlled::until("the new archive", || get(&server, "a", "/manual/", "").body == b"second");
    fs::write(site.path().join("new.zip"), "no archive").unwrap();
    fs::rename(site.path().join("new.zip"), site.path().join("a.zip")).unwrap();
    let told = String::from_utf8(reload().stderr).unwrap();
    assert!(told.contains("site.toml:") && told.contains("a.zip: "), "{told}");
    assert_eq!(&get(&server, "a", "/manual/css/loom.css", "").body[..6], b"h1 {}h");
}

/// A program behind a password gets the name that was proved, and not the password.
#[test]
fn a_program_behind_a_password() {
    let site = site();
    let hash = include_str!("../../../../crates/site/tests/suite/six.txt").trim();
    fs::write(site.path().join("users"), format!("ada:{hash}\n")).unwrap();
    let program = site.path().join("bin/say");
    fs::create_dir_all(site.path().join("bin")).unwrap();
    let script = "#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n%s %s %s.' \
        \"$AUTH_TYPE\" \"$REMOTE_USER\" \"$HTTP_AUTHORIZATION\"\n";
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let server =
        configured(site.path(), "[[route]]\npath = '/bin/'\ncgi = 'bin'\nauth = { users = 'users' }\n");
    assert_eq!(get(&server, "a", "/bin/say", "").status, 401);
    // The second time the password is known.
    for _ in 0..2 {
        let mut client = server.connect();
        client.send("GET /bin/say HTTP/1.0\r\nHost: a\r\nAuthorization: Basic YWRhOnNlY3JldA==\r\n\r\n");
        let said = String::from_utf8(client.rest()).unwrap();
        assert!(said.ends_with("\r\n\r\nBasic ada ."), "{said}");
    }
}
