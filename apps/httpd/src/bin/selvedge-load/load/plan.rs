//! `Plan`: what a run is to do: the command line, turned into addresses and requests.
//!
//! `selvedge-load`'s `main` makes it, and `client.rs` runs it. All names are looked up and all
//! requests are written here, so that a run itself does neither.

use lexopt::prelude::*;
use std::fs;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

/// The help text.
pub(crate) const HELP: &str = "\
Asks a web server for pages as fast as it answers, and reports how fast that is.

usage: selvedge-load URL [OPTIONS]

  -c, --connections N   keep-alive connections, each a thread of its own (64)
  -d, --duration S      seconds to run; fractions are allowed (10)
      --pipeline N      requests in flight on each connection (1)
      --files FILE      ask for a random one of the paths in FILE, one per line; - reads
                        them from standard input
      --post FILE       send POST requests with the content of FILE in place of GET
      --timeout S       seconds a reply may take (10)
      --busy-poll       never sleep in the kernel: takes a CPU of its own, and spares the
                        server the cost of waking this program
      --json            one JSON object instead of text
  -h, --help            this text

Every reply must have status 200, a Content-Length, and a body as long as that of the page's
first reply. The exit status is 0 if all had, 1 if not, 2 for a wrong command line.
";

/// A run.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The URL as given.
    pub(crate) url: String,
    /// Where the server is.
    pub(crate) address: SocketAddr,
    /// One request for each page.
    pub(crate) requests: Vec<Box<[u8]>>,
    /// Connections.
    pub(crate) connections: usize,
    /// Requests in flight on each connection.
    pub(crate) pipeline: usize,
    /// How long to run.
    pub(crate) duration: Duration,
    /// How long a reply may take.
    pub(crate) timeout: Duration,
    /// Whether the event loop never sleeps.
    pub(crate) busy_poll: bool,
    /// Whether the report is for a program.
    pub(crate) json: bool,
}

/// The command line's values, before names are looked up and files are read.
#[derive(Debug, PartialEq)]
struct Words {
    url: String,
    connections: usize,
    pipeline: usize,
    duration: Duration,
    timeout: Duration,
    files: Option<String>,
    post: Option<String>,
    busy_poll: bool,
    json: bool,
}

/// Why there is no run.
#[derive(Debug, PartialEq)]
pub(crate) enum NoPlan {
    /// Help was asked for.
    Help,
    /// The command line is wrong.
    Usage(String),
    /// A name or a file cannot be resolved.
    Unavailable(String),
}

impl Plan {
    /// Reads the command line.
    ///
    /// # Errors
    /// See [`NoPlan`].
    pub(crate) fn from_command_line() -> Result<Plan, NoPlan> {
        Plan::new(words(lexopt::Parser::from_env())?)
    }

    fn new(words: Words) -> Result<Plan, NoPlan> {
        let (host, path) = split(&words.url)?;
        let with_port = if has_port(host) { host.to_owned() } else { format!("{host}:80") };
        let unavailable = |error: std::io::Error| NoPlan::Unavailable(format!("{host}: {error}"));
        let address = with_port.to_socket_addrs().map_err(unavailable)?.next();
        let address = address.ok_or_else(|| NoPlan::Unavailable(format!("{host} has no address")))?;
        let paths = match &words.files {
            None => vec![path.to_owned()],
            Some(file) => {
                let text = if file == "-" {
                    std::io::read_to_string(std::io::stdin())
                } else {
                    fs::read_to_string(file)
                };
                let text = text.map_err(|error| NoPlan::Unavailable(format!("{file}: {error}")))?;
                listed(&text).map_err(|what| NoPlan::Unavailable(format!("{file}: {what}")))?
            }
        };
        let content = match &words.post {
            None => None,
            Some(file) => {
                Some(fs::read(file).map_err(|error| NoPlan::Unavailable(format!("{file}: {error}")))?)
            }
        };
        let request = |path: &String| {
            let fields = format!("Host: {host}\r\nUser-Agent: selvedge-load\r\n");
            let (method, length) = match &content {
                None => ("GET", String::new()),
                Some(content) => (
                    "POST",
                    format!("Content-Type: application/json\r\nContent-Length: {}\r\n", content.len()),
                ),
            };
            let head = format!("{method} {path} HTTP/1.1\r\n{fields}{length}\r\n");
            [head.as_bytes(), content.as_deref().unwrap_or_default()].concat().into()
        };
        Ok(Plan {
            address,
            requests: paths.iter().map(request).collect(),
            connections: words.connections,
            pipeline: words.pipeline,
            duration: words.duration,
            timeout: words.timeout,
            busy_poll: words.busy_poll,
            json: words.json,
            url: words.url,
        })
    }
}

fn words(mut parser: lexopt::Parser) -> Result<Words, NoPlan> {
    let usage = |error: lexopt::Error| NoPlan::Usage(error.to_string());
    let mut words = Words {
        url: String::new(),
        connections: 64,
        pipeline: 1,
        duration: Duration::from_secs(10),
        timeout: Duration::from_secs(10),
        files: None,
        post: None,
        busy_poll: false,
        json: false,
    };
    while let Some(argument) = parser.next().map_err(usage)? {
        match argument {
            Short('c') | Long("connections") => words.connections = number(&mut parser).map_err(usage)?,
            Short('d') | Long("duration") => words.duration = seconds(&mut parser).map_err(usage)?,
            Long("pipeline") => words.pipeline = number(&mut parser).map_err(usage)?,
            Long("timeout") => words.timeout = seconds(&mut parser).map_err(usage)?,
            Long("files") => words.files = Some(parser.value().and_then(|v| v.string()).map_err(usage)?),
            Long("post") => words.post = Some(parser.value().and_then(|v| v.string()).map_err(usage)?),
            Long("busy-poll") => words.busy_poll = true,
            Long("json") => words.json = true,
            Short('h') | Long("help") => return Err(NoPlan::Help),
            Value(url) if words.url.is_empty() => words.url = url.string().map_err(usage)?,
            other => return Err(usage(other.unexpected())),
        }
    }
    if words.url.is_empty() {
        return Err(NoPlan::Usage("which URL?".to_owned()));
    }
    Ok(words)
}

/// A whole number above zero.
fn number(parser: &mut lexopt::Parser) -> Result<usize, lexopt::Error> {
    let number: usize = parser.value()?.parse()?;
    if number == 0 { Err("a number above zero is needed".into()) } else { Ok(number) }
}

/// A length of time above zero, in seconds.
fn seconds(parser: &mut lexopt::Parser) -> Result<Duration, lexopt::Error> {
    let seconds: f64 = parser.value()?.parse()?;
    let duration = Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())?;
    if duration.is_zero() { Err("a time above zero is needed".into()) } else { Ok(duration) }
}

/// The authority and the path of a URL.
fn split(url: &str) -> Result<(&str, &str), NoPlan> {
    let wrong = |what: &str| NoPlan::Usage(format!("{url}: {what}"));
    let rest = url.strip_prefix("http://").ok_or_else(|| wrong("only http:// URLs can be asked for"))?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    if host.is_empty() {
        return Err(wrong("it has no host"));
    }
    let path = if path.is_empty() { "/" } else { path };
    if !path.starts_with('/') || !is_path(path) || !host.bytes().all(is_plain) {
        return Err(wrong("it has characters that must be percent-encoded"));
    }
    Ok((host, path))
}

/// Whether an authority ends with a port: a colon that is not within the brackets of an IPv6
/// address.
fn has_port(host: &str) -> bool {
    host.rsplit_once(':')
        .is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether a path can stand in a request as it is.
fn is_path(path: &str) -> bool {
    path.starts_with('/') && path.bytes().all(is_plain) && !path.contains('#')
}

/// Visible ASCII that needs no escape in a request line or in JSON.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\')
}

/// The paths of a list, one per line; empty lines are passed over.
fn listed(text: &str) -> Result<Vec<String>, String> {
    let paths: Vec<String> =
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
    if let Some(wrong) = paths.iter().find(|path| !is_path(path)) {
        return Err(format!("{wrong:?} is no path that begins with / and is percent-encoded"));
    }
    if paths.is_empty() { Err("it lists no path".to_owned()) } else { Ok(paths) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(arguments: &[&str]) -> Result<Plan, NoPlan> {
        let parser = lexopt::Parser::from_iter(["selvedge-load"].iter().chain(arguments));
        Plan::new(words(parser)?)
    }

    #[test]
    fn a_command_line() {
        let plan =
            plan(&["http://127.0.0.1:8080/a.html?b", "-c", "3", "-d", "0.5", "--pipeline=16", "--json"])
                .unwrap();
        assert_eq!(plan.address, "127.0.0.1:8080".parse().unwrap());
        assert_eq!((plan.connections, plan.pipeline), (3, 16));
        assert_eq!(plan.duration, Duration::from_millis(500));
        assert!(plan.json && !plan.busy_poll);
        let request = std::str::from_utf8(&plan.requests[0]).unwrap();
        assert!(request.starts_with("GET /a.html?b HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n"), "{request}");
    }

    #[test]
    fn a_body_is_sent() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("body");
        fs::write(&file, "[1,2]").unwrap();
        let plan = plan(&["http://127.0.0.1/sum", "--post", file.to_str().unwrap()]).unwrap();
        let request = std::str::from_utf8(&plan.requests[0]).unwrap();
        assert!(request.starts_with("POST /sum HTTP/1.1\r\n"), "{request}");
        assert!(request.ends_with("Content-Length: 5\r\n\r\n[1,2]"), "{request}");
    }

    #[test]
    fn a_url_may_lack_port_and_path() {
        let plan = plan(&["http://[::1]"]).unwrap();
        assert_eq!(plan.address, "[::1]:80".parse().unwrap());
        assert!(plan.requests[0].starts_with(b"GET / HTTP/1.1\r\n"));
    }

    #[test]
    fn what_cannot_be_done_is_said() {
        for arguments in [
            &[][..],
            &["https://localhost/"],
            &["http:///x"],
            &["http://localhost/a b"],
            &["http://localhost/\"", "-c", "1"],
            &["http://localhost/", "-c", "0"],
            &["http://localhost/", "-d", "-1"],
            &["http://localhost/", "--fast"],
            &["http://localhost/", "http://localhost/"],
        ] {
            assert!(matches!(plan(arguments), Err(NoPlan::Usage(_))), "{arguments:?}");
        }
        assert_eq!(plan(&["--help"]).unwrap_err(), NoPlan::Help);
        let missing = plan(&["http://127.0.0.1/", "--files", "/no/such/list"]).unwrap_err();
        assert!(matches!(missing, NoPlan::Unavailable(what) if what.starts_with("/no/such/list: ")));
    }

    #[test]
    fn a_list_of_paths() {
        assert_eq!(listed("/a\n\n /b%20c \n").unwrap(), ["/a", "/b%20c"]);
        assert!(listed("\n").is_err());
        assert!(listed("a\n").is_err());
    }
}
