//! The command line.

use std::ffi::OsString;
use std::fmt;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use lexopt::prelude::*;

pub(crate) const HELP: &str = "\
selvedge-httpd serves the files of a directory over HTTP.

Usage: selvedge-httpd [OPTIONS] [DIR]

  DIR                    the directory to serve; by default the current one.
                         A request for a directory is answered with its index.html. Files and
                         directories whose names begin with a dot are hidden (but for .well-known),
                         and symbolic links are followed only within DIR.

Options:
  -l, --listen ADDRESS   where to listen; may be given several times. By default 127.0.0.1:8080, which
                         only this machine can reach.
                           192.0.2.1:80      an IPv4 address and a port
                           [2001:db8::1]:80  an IPv6 address and a port
                           :80               that port on all addresses of this machine
                           unix:/run/s.sock  a Unix socket
                         Port 0 takes any free port; the one taken is printed.
  -w, --workers N        OS threads that serve, each with a scheduler and an event loop of its own.
                         By default one for each processor.
      --log FILE         log each request in the combined format: to FILE (appended to; opened anew on
                         SIGUSR1), to the standard output with -, or nowhere with off, the default.
      --validity SECONDS for how long a file is served without looking whether it has changed;
                         by default 2. Fractions are allowed, as in all options that take seconds.
      --idle SECONDS     how long a connection may be open without a request; by default 60.
      --head SECONDS     how long the head of a request may take to arrive; by default 10.
      --drain SECONDS    how long requests in flight may take when the server is to stop; by default 10.
  -h, --help             print this.
  -V, --version          print the version.

SIGTERM or SIGINT (Ctrl-C) stop the server: it accepts no more, finishes the requests in flight and
exits with status 0. A second one stops it at once. It exits with status 1 if it cannot start, and with 2
if the command line makes no sense.";

/// What the command line asks for.
#[derive(Debug, PartialEq)]
pub(crate) enum Request {
    Serve(Options),
    Help,
    Version,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) directory: PathBuf,
    pub(crate) listen: Vec<Address>,
    pub(crate) workers: Option<usize>,
    pub(crate) log: Log,
    pub(crate) validity: Duration,
    pub(crate) idle: Duration,
    pub(crate) head: Duration,
    pub(crate) drain: Duration,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Log {
    Off,
    Stdout,
    File(PathBuf),
}

/// Where to listen.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Address {
    Tcp(SocketAddr),
    /// A port on all addresses.
    Port(u16),
    Unix(PathBuf),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Address::Unix(path.into()));
        }
        if let Some(port) = text.strip_prefix(':').and_then(|port| port.parse().ok()) {
            return Ok(Address::Port(port));
        }
        text.parse().map(Address::Tcp).map_err(|_| {
            format!("{text:?} is no address to listen at: 192.0.2.1:80, [2001:db8::1]:80, :80 or unix:/path")
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(f),
            Address::Port(port) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, *port)).fmt(f),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Why the server does not run: a line for the user, and the exit status.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) message: String,
    pub(crate) status: u8,
}

impl From<lexopt::Error> for Refusal {
    fn from(error: lexopt::Error) -> Refusal {
        Refusal { message: format!("{error}; --help tells what can be said"), status: 2 }
    }
}

impl From<std::io::Error> for Refusal {
    fn from(error: std::io::Error) -> Refusal {
        Refusal { message: error.to_string(), status: 1 }
    }
}

/// Reads the command line, without the program's name.
///
/// # Errors
/// With status 2, and 1 for a bad address.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Request, Refusal> {
    let mut directory = None;
    let mut options = Options {
        directory: ".".into(),
        listen: Vec::new(),
        workers: None,
        log: Log::Off,
        validity: Duration::from_secs(2),
        idle: Duration::from_secs(60),
        head: Duration::from_secs(10),
        drain: Duration::from_secs(10),
    };
    let mut parser = lexopt::Parser::from_args(arguments);
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Request::Help),
            Short('V') | Long("version") => return Ok(Request::Version),
            Short('l') | Long("listen") => {
                let address = parser.value()?.string()?.parse();
                options.listen.push(address.map_err(|message| Refusal { message, status: 1 })?);
            }
            Short('w') | Long("workers") => {
                options.workers = Some(parser.value()?.parse_with(|text| match text.parse() {
                    Ok(workers @ 1..=1024) => Ok(workers),
                    _ => Err("not a number from 1 to 1024"),
                })?);
            }
            Long("log") => {
                let log = parser.value()?;
                options.log = match log.to_str() {
                    Some("-") => Log::Stdout,
                    Some("off") => Log::Off,
                    _ => Log::File(log.into()),
                };
            }
            Long("validity") => options.validity = seconds(&mut parser)?,
            Long("idle") => options.idle = seconds(&mut parser)?,
            Long("head") => options.head = seconds(&mut parser)?,
            Long("drain") => options.drain = seconds(&mut parser)?,
            Value(path) if directory.is_none() => directory = Some(path.into()),
            argument => return Err(argument.unexpected().into()),
        }
    }
    if let Some(directory) = directory {
        options.directory = directory;
    }
    if options.listen.is_empty() {
        options.listen.push(Address::Tcp(SocketAddr::from(([127, 0, 0, 1], 8080))));
    }
    Ok(Request::Serve(options))
}

/// The longest time that an option may give: a day.
const SECONDS_MAX: f64 = 86_400.0;

fn seconds(parser: &mut lexopt::Parser) -> Result<Duration, lexopt::Error> {
    parser.value()?.parse_with(|text| match text.parse::<f64>() {
        Ok(seconds) if (0.0..=SECONDS_MAX).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("not a number of seconds from 0 to 86400"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Request, Refusal> {
        parse(line.split_whitespace().map(OsString::from))
    }

    fn options(line: &str) -> Options {
        match parsed(line) {
            Ok(Request::Serve(options)) => options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn without_anything_the_current_directory_is_served_to_this_machine() {
        let options = options("");
        assert_eq!(options.directory, PathBuf::from("."));
        assert_eq!(options.listen, [Address::Tcp("127.0.0.1:8080".parse().unwrap())]);
        assert_eq!((options.workers, options.log), (None, Log::Off));
    }

    #[test]
    fn everything_at_once() {
        let options = options(
            "--listen :80 -l [::1]:0 --listen=unix:/a/b -w 3 site --log - --validity 0.5 --idle 5 --head 1 --drain 0",
        );
        assert_eq!(options.directory, PathBuf::from("site"));
        let listen: Vec<String> = options.listen.iter().map(Address::to_string).collect();
        assert_eq!(listen, ["[::]:80", "[::1]:0", "unix:/a/b"]);
        assert_eq!((options.workers, options.log), (Some(3), Log::Stdout));
        assert_eq!((options.validity, options.idle), (Duration::from_millis(500), Duration::from_secs(5)));
        assert_eq!((options.head, options.drain), (Duration::from_secs(1), Duration::ZERO));
    }

    #[test]
    fn nonsense_is_refused() {
        for (line, status) in [
            ("--listen", 2),
            ("--listen localhost", 1),
            ("--listen 127.0.0.1", 1),
            ("--listen :70000", 1),
            ("--listen unix:", 1),
            ("--workers 0", 2),
            ("--workers many", 2),
            ("--idle -1", 2),
            ("--idle nan", 2),
            ("--validity 1e9", 2),
            ("--what", 2),
            ("one two", 2),
        ] {
            let refusal = parsed(line).unwrap_err();
            assert_eq!(refusal.status, status, "{line}: {}", refusal.message);
            assert!(!refusal.message.contains('\n'));
        }
        assert_eq!(parsed("--help --what").unwrap(), Request::Help);
        assert_eq!(parsed("-V").unwrap(), Request::Version);
    }
}
