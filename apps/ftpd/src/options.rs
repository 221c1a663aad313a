//! The command line of `selvedge-ftpd`: its help text, and [`Options`].
//!
//! `main.rs` parses it once. Each option is in the help text and has a test that reads it.

use crate::accounts::Rights;
use lexopt::prelude::*;
use selvedge_options::{UsageError, number, seconds, value};
use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) const HELP: &str = "\
selvedge-ftpd serves the files of a directory over FTP.

Usage: selvedge-ftpd [OPTIONS] [DIR]

  DIR                    the directory that anonymous clients see; by default the current one. They read, and
                         change nothing. Symbolic links are followed if they are relative and stay below DIR.

Options:
  -l, --listen ADDRESS   the address to listen on; may be given several times. By default 127.0.0.1:2121,
                         which only this machine can reach.
                           192.0.2.1:21      an IPv4 address and a port
                           [2001:db8::1]:21  an IPv6 address and a port
                           localhost:2121    a name and a port: the first address of that name
                           21                that port on all addresses of this machine
                         Port 0 takes any free port; the one taken is printed.
  -u, --users FILE       users that log in with a password: lines of name:hash:root:rights. Hashes are Argon2,
                         bcrypt or SHA-crypt (htpasswd -B, openssl passwd -6). The root is the absolute path
                         of the directory that the user sees. Rights are some of the letters r (read), w
                         (store new files, append, make directories) and d (delete, rename, replace).
      --anonymous RIGHTS what anonymous clients may do, as for users; by default r. off lets none in.
      --certificate FILE the certificate that the server shows over TLS, with its issuers, as PEM. Clients go over
                         to TLS with AUTH TLS.
      --key FILE         the private key of the certificate, as PEM.
      --require-tls      lets clients log in and transfer files over TLS only.
      --clients N        the most clients at once; by default 100.
      --clients-per-address N
                         the most clients from one address, or from one /64 of IPv6; by default 8.
      --login-tries N    after this number of wrong passwords the server closes the connection; by default 3.
      --login-delay SECONDS
                         how long the answer to a wrong password takes, times the number of wrong ones; by
                         default 1. All options that take seconds allow fractions.
      --idle SECONDS     how long a client may send no command; by default 300.
      --stall SECONDS    how long a client may take or send no byte of a transfer or a reply; by default 60.
      --connect SECONDS  how long a data connection may take to be made; by default 30.
      --passive-ports FIRST-LAST
                         the ports for passive data connections, such as 50000-50099; by default any.
      --passive-address IPV4
                         the address that PASV tells, where a router translates addresses; by default that
                         of the control connection.
      --no-active        refuses PORT and EPRT: the server makes no connection itself.
      --log FILE         append a line for each file that was sent or stored to FILE, in the form of xferlog.
                         FILE is opened again on SIGHUP. - is the standard output; off is no log, the default.
  -w, --workers N        OS threads that serve. By default one for each processor, or as SELVEDGE_WORKERS
                         says.
      --drain SECONDS    how long the server waits for transfers when it stops; by default 10.
  -h, --help             print this.
  -V, --version          print the version.

Data connections are made with the client's own address only, and never to a port below 1024.

SIGTERM, SIGQUIT and SIGINT (Ctrl-C) stop the server: it accepts no more clients, lets transfers come to their
end and exits with status 0. A second such signal stops it at once. After SIGHUP it reads the users and the
certificate again, and keeps the old ones if there is a mistake in the new ones. Its exit status is 1 if it cannot start, and 2 if the
command line has an error.
";

/// What the command line asks for.
#[derive(Debug, PartialEq)]
pub(crate) enum Request {
    Serve(Box<Options>),
    Help,
    Version,
}

/// How the server runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) directory: PathBuf,
    /// Each with a port.
    pub(crate) listen: Vec<String>,
    pub(crate) users: Option<PathBuf>,
    /// `None` lets no anonymous client in.
    pub(crate) anonymous: Option<Rights>,
    /// The certificate and its key.
    pub(crate) identity: Option<(PathBuf, PathBuf)>,
    pub(crate) requires_tls: bool,
    pub(crate) clients: u32,
    pub(crate) clients_per_address: u32,
    pub(crate) login_tries: u32,
    pub(crate) login_delay: Duration,
    pub(crate) idle: Duration,
    pub(crate) stall: Duration,
    pub(crate) connect: Duration,
    pub(crate) passive_ports: Option<RangeInclusive<u16>>,
    pub(crate) passive_address: Option<Ipv4Addr>,
    pub(crate) has_active: bool,
    pub(crate) log: LogTarget,
    pub(crate) workers: Option<usize>,
    pub(crate) drain: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            directory: ".".into(),
            listen: Vec::new(),
            users: None,
            anonymous: Some(Rights { read: true, write: false, delete: false }),
            identity: None,
            requires_tls: false,
            clients: 100,
            clients_per_address: 8,
            login_tries: 3,
            login_delay: Duration::from_secs(1),
            idle: Duration::from_secs(300),
            stall: Duration::from_secs(60),
            connect: Duration::from_secs(30),
            passive_ports: None,
            passive_address: None,
            has_active: true,
            log: LogTarget::Off,
            workers: None,
            drain: Duration::from_secs(10),
        }
    }
}

/// Where the log of transfers goes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LogTarget {
    Off,
    Stdout,
    File(PathBuf),
}

/// Reads the command line, without the program's name.
///
/// # Errors
/// See [`UsageError`].
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Request, UsageError> {
    let mut options = Options::default();
    let mut directory = None;
    let (mut certificate, mut key) = (None, None);
    let mut parser = lexopt::Parser::from_args(arguments);
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Request::Help),
            Short('V') | Long("version") => return Ok(Request::Version),
            Short('l') | Long("listen") => options.listen.push(value(&mut parser, "--listen", address)?),
            Short('u') | Long("users") => options.users = Some(parser.value()?.into()),
            Short('w') | Long("workers") => {
                options.workers = Some(number(&mut parser, "--workers", 1..=1024)?)
            }
            Long("anonymous") => options.anonymous = value(&mut parser, "--anonymous", anonymous)?,
            Long("certificate") => certificate = Some(PathBuf::from(parser.value()?)),
            Long("key") => key = Some(PathBuf::from(parser.value()?)),
            Long("require-tls") => options.requires_tls = true,
            Long("clients") => options.clients = number(&mut parser, "--clients", 1..=1_000_000)?,
            Long("clients-per-address") => {
                options.clients_per_address = number(&mut parser, "--clients-per-address", 1..=1_000_000)?;
            }
            Long("login-tries") => options.login_tries = number(&mut parser, "--login-tries", 1..=1000)?,
            Long("login-delay") => options.login_delay = seconds(&mut parser, "--login-delay")?,
            Long("idle") => options.idle = seconds(&mut parser, "--idle")?,
            Long("stall") => options.stall = seconds(&mut parser, "--stall")?,
            Long("connect") => options.connect = seconds(&mut parser, "--connect")?,
            Long("drain") => options.drain = seconds(&mut parser, "--drain")?,
            Long("passive-ports") => {
                options.passive_ports = Some(value(&mut parser, "--passive-ports", ports)?)
            }
            Long("passive-address") => {
                let read = |text: &str| text.parse().map_err(|_| "no IPv4 address");
                options.passive_address = Some(value(&mut parser, "--passive-address", read)?);
            }
            Long("no-active") => options.has_active = false,
            Long("log") => options.log = log_target(parser.value()?),
            Value(path) if directory.is_none() => directory = Some(PathBuf::from(path)),
            argument => return Err(argument.unexpected().into()),
        }
    }
    if directory.is_some() && options.anonymous.is_none() {
        return Err(UsageError::together("DIR is for anonymous clients, and --anonymous off lets none in"));
    }
    if options.users.is_none() && options.anonymous.is_none() {
        return Err(UsageError::together("without --users and anonymous clients no client can log in"));
    }
    options.identity = match (certificate, key) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) if !options.requires_tls => None,
        _ => return Err(UsageError::together("TLS needs --certificate and --key")),
    };
    options.directory = directory.unwrap_or(options.directory);
    if options.listen.is_empty() {
        options.listen.push("127.0.0.1:2121".to_owned());
    }
    Ok(Request::Serve(Box::new(options)))
}

fn address(text: &str) -> Result<String, &'static str> {
    if text.parse::<u16>().is_ok() {
        return Ok(format!("[::]:{text}"));
    }
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(text.to_owned()),
        _ => Err("no address to listen at: 192.0.2.1:21, [2001:db8::1]:21, localhost:2121 or 21"),
    }
}

fn anonymous(text: &str) -> Result<Option<Rights>, &'static str> {
    if text == "off" { Ok(None) } else { text.parse().map(Some) }
}

fn ports(text: &str) -> Result<RangeInclusive<u16>, &'static str> {
    let range = text.split_once('-').and_then(|(first, last)| Some(first.parse().ok()?..=last.parse().ok()?));
    range
        .filter(|range: &RangeInclusive<u16>| !range.is_empty() && *range.start() >= 1024)
        .ok_or("no range of ports from 1024 on, such as 50000-50099")
}

fn log_target(text: OsString) -> LogTarget {
    match text.to_str() {
        Some("-") => LogTarget::Stdout,
        Some("off") => LogTarget::Off,
        _ => LogTarget::File(text.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Request, UsageError> {
        parse(line.split_whitespace().map(OsString::from))
    }

    fn options(line: &str) -> Options {
        match parsed(line) {
            Ok(Request::Serve(options)) => *options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn without_anything_the_current_directory_is_read_from_this_machine() {
        let options = options("");
        assert_eq!(options, Options { listen: vec!["127.0.0.1:2121".into()], ..Options::default() });
        assert_eq!(options.anonymous, Some(Rights { read: true, write: false, delete: false }));
    }

    #[test]
    fn everything_at_once() {
        let options = options(
            "-l 21 --listen=[::1]:0 -u users --anonymous rw --clients 5 --clients-per-address 2 --login-tries 1 \
             --login-delay 0.5 --idle 1 --stall 2 --connect 3 --passive-ports 50000-50001 --passive-address 192.0.2.1 \
             --no-active --log - -w 3 --drain 4 --certificate a.pem --key b.pem --require-tls files",
        );
        let expected = Options {
            directory: "files".into(),
            listen: vec!["[::]:21".into(), "[::1]:0".into()],
            users: Some("users".into()),
            anonymous: Some(Rights { read: true, write: true, delete: false }),
            identity: Some(("a.pem".into(), "b.pem".into())),
            requires_tls: true,
            clients: 5,
            clients_per_address: 2,
            login_tries: 1,
            login_delay: Duration::from_millis(500),
            idle: Duration::from_secs(1),
            stall: Duration::from_secs(2),
            connect: Duration::from_secs(3),
            passive_ports: Some(50_000..=50_001),
            passive_address: Some(Ipv4Addr::new(192, 0, 2, 1)),
            has_active: false,
            log: LogTarget::Stdout,
            workers: Some(3),
            drain: Duration::from_secs(4),
        };
        assert_eq!(options, expected);
        assert_eq!(parsed("-V"), Ok(Request::Version));
        assert_eq!(parsed("--help"), Ok(Request::Help));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (line, word) in [
            ("--listen 1.2.3.4", "--listen"),
            ("--clients 0", "--clients"),
            ("--idle -1", "--idle"),
            ("--anonymous x", "letters"),
            ("--passive-ports 20-21", "1024"),
            ("--passive-ports 5000-4000", "range"),
            ("--passive-address ::1", "IPv4"),
            ("--anonymous off", "no client"),
            ("--anonymous off -u u files", "DIR"),
            ("--key b.pem", "--certificate"),
            ("--require-tls", "--certificate"),
            ("--nonsense", "--nonsense"),
            ("a b", "b"),
        ] {
            let message = parsed(line).unwrap_err().to_string();
            assert!(message.contains(word), "{line}: {message}");
        }
        assert_eq!(options("--anonymous off -u u").anonymous, None);
        assert_eq!(options("--log off").log, LogTarget::Off);
        assert_eq!(options("--log a").log, LogTarget::File("a".into()));
    }

    #[test]
    fn the_help_text_names_each_option() {
        let source = include_str!("options.rs");
        for option in source.split("Long(\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(HELP.contains(&format!("--{option}")), "{option}");
        }
    }
}
