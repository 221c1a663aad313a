//! The command line of `selvedge-httpd`: its help text, and its types, of which `Options` is the
//! largest.
//!
//! `main.rs` calls [`parse`] once and starts accordingly; `listeners.rs` binds its `Address`es.
//! Each option is in the help text, and in `options/command_line.rs`, which reads it.

mod command_line;

use crate::configuration::ConfigurationFiles;
use crate::stack_choice::StackChoice;
use selvedge_http::Config;
use selvedge_http::request::Limits;
use std::fmt;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

pub(crate) use command_line::parse;

pub(crate) const HELP: &str = "\
selvedge-httpd serves the files of a directory over HTTP.

Usage: selvedge-httpd [OPTIONS] [DIR]
       selvedge-httpd [--config] FILE.toml
       selvedge-httpd FILE.conf FILE.route
       selvedge-httpd check FILE...
       selvedge-httpd ctl FILE... COMMAND
       selvedge-httpd keys

  DIR                    the directory to serve; by default the current one.
                         A request for a directory is answered with its index.html, and with 403 if it
                         has none. Names that begin with a dot are hidden, except .well-known.
                         Relative and absolute symbolic links are followed if they lead to something
                         below DIR.

  FILE.toml              a configuration: virtual hosts, routes and all else. `keys` prints every key.
  FILE.conf FILE.route   a configuration and a route file of Mighttpd.
  check                  reads a configuration and tells the first mistake in it.
  ctl                    sends a COMMAND to the server that runs by this configuration: status, reload,
                         retire, upgrade, stop, threads or counters. In place of FILE it takes
                         --socket PATH.

Options:
  -c, --config FILE      the configuration; no other option may be given with it.
  -l, --listen ADDRESS   the address to listen on; may be given several times. By default
                         127.0.0.1:8080, which only this machine can reach.
                           192.0.2.1:80      an IPv4 address and a port
                           [2001:db8::1]:80  an IPv6 address and a port
                           localhost:8080    a name and a port: all addresses of that name
                           80, :80 or *:80   that port on all addresses of this machine
                           unix:/run/s.sock  a Unix socket
                         Port 0 takes any free port; the one taken is printed.
      --stack DEVICE,ADDRESS/PREFIX[,ADDRESS/PREFIX][,via=ROUTER][,congestion=NAME]
                         serve at these addresses, which the kernel does not have, over TCP of the program
                         itself. DEVICE is a TAP device, such as tap0, or a packet socket at an interface,
                         such as packet:eth0. The addresses to listen on must be among them; by default
                         port 80 of each. NAME is cubic, the default, reno, or bbr, for paths that lose
                         packets without being full. May be given with a configuration. Such a server
                         cannot hand over to a new process.
      --unix-mode MODE   the permissions of Unix sockets in octal, as for chmod. With 660 only the
                         owner and the group of the socket may connect. By default the umask decides.
  -w, --workers N        OS threads that serve, each with a scheduler and an event loop of its own.
                         By default one for each processor.
      --log FILE         append a line for each request to FILE, in the combined format. FILE is opened
                         again on SIGHUP and SIGUSR1. - is the standard output; off is no log, the
                         default. The number of bytes in a line is that of the content that was sent.
      --validity SECONDS how long a file is served before the server looks whether it has changed; by
                         default 2. All options that take seconds allow fractions.
      --cache-direct N   read files past the kernel's page cache, and keep N bytes of them in the server's
                         own, for a site that is larger than memory; by default 0. Then files come from
                         the page cache.
      --idle SECONDS     how long a connection may be open without a request; by default 60.
      --head SECONDS     how long the head of a request may take to arrive; by default 10.
      --body SECONDS     how long the body of a request may take to arrive; by default 30.
      --write SECONDS    how long a client may leave a reply without taking a byte of it; by default 30.
      --head-bytes N     the largest head of a request, 512 to 1048576 bytes; by default 16384. The target
                         may take half of it.
      --body-bytes N     the largest body of a request in bytes; by default 1048576. The server reads
                         bodies and ignores them.
      --drain SECONDS    how long the server waits for requests in flight when it stops; by default 10.
  -h, --help             print this.
  -V, --version          print the version.

When all descriptors (ulimit -n) are in use, the server closes idle connections to make room for new ones.

SIGTERM, SIGQUIT and SIGINT (Ctrl-C) stop the server: it accepts no more connections, finishes the requests
in flight and exits with status 0. A second such signal stops it at once. After SIGHUP the server looks
again at every file that it serves, and opens the log again; it reads its configuration again, if it has
one, and keeps the old one if there is a mistake in the new one. After SIGUSR1 it opens the log again.
After SIGUSR2 it starts the program's file anew, hands its sockets to the new process, and ends when the
last of its own connections has ended; if the new process cannot serve, all stays as it was. Its exit
status is 1 if it cannot start, and 2 if the command line or the configuration has an error.";

/// The command line, parsed.
#[derive(Debug, PartialEq)]
pub(crate) enum Request {
    /// With the files of a directory.
    Serve(Box<Options>, Option<StackChoice>),
    /// Serve by a configuration.
    Configured(ConfigurationFiles, Option<StackChoice>),
    /// Read a configuration and tell its first mistake.
    Check(ConfigurationFiles),
    /// Send a command to the server with this control socket.
    Ctl(CommandTarget, String),
    /// Print the keys of the configuration.
    Keys,
    Help,
    Version,
}

/// The server that a command is for.
#[derive(Debug, PartialEq)]
pub(crate) enum CommandTarget {
    Socket(PathBuf),
    Source(ConfigurationFiles),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) directory: PathBuf,
    pub(crate) listen: Vec<Address>,
    pub(crate) unix_mode: Option<u32>,
    pub(crate) workers: Option<usize>,
    pub(crate) log: Log,
    pub(crate) validity: Duration,
    pub(crate) idle: Duration,
    pub(crate) head: Duration,
    pub(crate) body: Duration,
    pub(crate) write: Duration,
    pub(crate) head_bytes: usize,
    pub(crate) body_bytes: u64,
    pub(crate) drain: Duration,
    pub(crate) cache_files: usize,
    pub(crate) cache_bytes: usize,
    /// The bytes of the cache of blocks; 0 for the kernel's page cache.
    pub(crate) cache_direct: usize,
}

impl Options {
    /// The defaults, for the files of `directory`.
    pub(crate) fn new(directory: PathBuf) -> Options {
        let defaults = Config::default();
        Options {
            directory,
            listen: vec![Address::Tcp(SocketAddr::from(([127, 0, 0, 1], 8080)))],
            unix_mode: None,
            workers: None,
            log: Log::Off,
            validity: defaults.validity,
            idle: defaults.idle,
            head: defaults.head,
            body: defaults.body,
            write: defaults.write,
            head_bytes: Limits::default().head_bytes,
            body_bytes: Limits::default().body_bytes,
            drain: Duration::from_secs(10),
            cache_files: defaults.cache_files,
            cache_bytes: defaults.cache_bytes,
            cache_direct: 0,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Log {
    Off,
    Stdout,
    File(PathBuf),
}

/// An address to listen on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Address {
    Tcp(SocketAddr),
    /// A port on all addresses.
    Port(u16),
    /// A port on all addresses of a host.
    Name(String, u16),
    Unix(PathBuf),
}

impl FromStr for Address {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Address, &'static str> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Address::Unix(path.into()));
        }
        if let Ok(address) = text.parse() {
            return Ok(Address::Tcp(address));
        }
        let (host, port) = text.rsplit_once(':').unwrap_or(("*", text));
        match (host, port.parse()) {
            ("" | "*", Ok(port)) => Ok(Address::Port(port)),
            (host, Ok(port)) if is_host_name(host) => Ok(Address::Name(host.to_owned(), port)),
            _ => {
                Err("no address to listen at: 192.0.2.1:80, [2001:db8::1]:80, localhost:80, 80 or unix:/path")
            }
        }
    }
}

/// Whether `text` may be the name of a host: words of letters, digits and `-` with dots between
/// them, of which the last is no number, as it is in an address.
fn is_host_name(text: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    text.split('.').all(is_word) && !text.rsplit('.').next().is_some_and(is_number)
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(f),
            Address::Port(port) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, *port)).fmt(f),
            Address::Name(host, port) => write!(f, "{host}:{port}"),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}
