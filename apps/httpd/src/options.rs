//! The command line of `selvedge-httpd`: its help text, `Options`, and the parser.
//!
//! `main.rs` parses it once and starts accordingly; `listeners.rs` binds its `Address`es. Each
//! option is in the help text and has a test that reads it.

use std::ffi::OsString;
use std::fmt;
use std::net::{Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use lexopt::prelude::*;
use selvedge_http::Config;
use selvedge_http::request::Limits;

use crate::configuration::ConfigurationFiles;
use crate::control::COMMANDS;
use crate::stack_choice::StackChoice;
use crate::startup_error::StartupError;

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
      --stack DEVICE,ADDRESS/PREFIX[,ADDRESS/PREFIX][,via=ROUTER]
                         serve at these addresses, which the kernel does not have, over TCP of the program
                         itself. DEVICE is a TAP device, such as tap0, or a packet socket at an interface,
                         such as packet:eth0. The addresses to listen on must be among them; by default
                         port 80 of each. May be given with a configuration. Such a server cannot hand
                         over to a new process.
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

/// Reads the command line, without the program's name.
///
/// # Errors
/// With status 2.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Request, StartupError> {
    let mut paths: Vec<PathBuf> = Vec::new();
    let (mut config, mut stack) = (None, None);
    let mut given = 0;
    let mut options = Options::new(".".into());
    options.listen.clear();
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    match arguments.first().and_then(|first| first.to_str()) {
        Some("check") => return Ok(Request::Check(source(&arguments[1..])?)),
        Some("ctl") => return ctl(&arguments[1..]),
        Some("keys") if arguments.len() == 1 => return Ok(Request::Keys),
        _ => {}
    }
    let mut parser = lexopt::Parser::from_args(arguments);
    while let Some(argument) = parser.next()? {
        if matches!(argument, Long(_) | Short(_)) && argument != Long("stack") {
            given += 1;
        }
        match argument {
            Short('c') | Long("config") => config = Some(PathBuf::from(parser.value()?)),
            Short('h') | Long("help") => return Ok(Request::Help),
            Short('V') | Long("version") => return Ok(Request::Version),
            Long("stack") => stack = Some(value(&mut parser, "--stack", StackChoice::from_str)?),
            Value(path) if paths.len() < 2 => paths.push(path.into()),
            Short(short) => option_of_site(&mut options, &mut parser, Short(short))?,
            Long(long) => {
                let long = long.to_owned();
                option_of_site(&mut options, &mut parser, Long(&long))?;
            }
            argument => return Err(argument.unexpected().into()),
        }
    }
    if let Some(source) = source_of(config, &paths)? {
        // `--config` itself is one.
        let most = usize::from(paths.is_empty());
        return match given <= most {
            true => Ok(Request::Configured(source, stack)),
            false => Err(usage(
                "with a configuration (--config) all other options belong into its file".to_owned(),
            )),
        };
    }
    if let Some(directory) = paths.pop() {
        options.directory = directory;
    }
    if options.listen.is_empty() {
        options.listen.push(match stack {
            Some(_) => Address::Port(80),
            None => Address::Tcp(SocketAddr::from(([127, 0, 0, 1], 8080))),
        });
    }
    Ok(Request::Serve(Box::new(options), stack))
}

/// Reads an option of a site that has no configuration.
fn option_of_site(
    options: &mut Options,
    parser: &mut lexopt::Parser,
    argument: lexopt::Arg<'_>,
) -> Result<(), StartupError> {
    match argument {
        Short('l') | Long("listen") => {
            options.listen.push(value(parser, "--listen", Address::from_str)?);
        }
        Long("unix-mode") => {
            let mode = value(parser, "--unix-mode", |text| match u32::from_str_radix(text, 8) {
                Ok(mode @ 0..=0o777) => Ok(mode),
                _ => Err("not a mode in octal, such as 660"),
            })?;
            options.unix_mode = Some(mode);
        }
        Short('w') | Long("workers") => {
            options.workers = Some(number(parser, "--workers", 1..=1024)?);
        }
        Long("head-bytes") => {
            options.head_bytes = number(parser, "--head-bytes", 512..=1 << 20)?;
        }
        Long("body-bytes") => {
            options.body_bytes = number(parser, "--body-bytes", 0..=u64::MAX)?;
        }
        Long("cache-direct") => {
            options.cache_direct = number(parser, "--cache-direct", 0..=usize::MAX)?;
        }
        Long("log") => {
            let log = parser.value()?;
            options.log = match log.to_str() {
                Some("-") => Log::Stdout,
                Some("off") => Log::Off,
                _ => Log::File(log.into()),
            };
        }
        Long("validity") => options.validity = seconds(parser, "--validity")?,
        Long("idle") => options.idle = seconds(parser, "--idle")?,
        Long("head") => options.head = seconds(parser, "--head")?,
        Long("body") => options.body = seconds(parser, "--body")?,
        Long("write") => options.write = seconds(parser, "--write")?,
        Long("drain") => options.drain = seconds(parser, "--drain")?,
        argument => return Err(argument.unexpected().into()),
    }
    Ok(())
}

/// The configuration that `--config` and the paths name. `None` if they name a directory, or
/// nothing.
fn source_of(config: Option<PathBuf>, paths: &[PathBuf]) -> Result<Option<ConfigurationFiles>, StartupError> {
    Ok(match (config, paths) {
        (Some(config), []) => Some(ConfigurationFiles::Toml(config)),
        (Some(_), [path, ..]) => {
            return Err(usage(format!("{}: with --config no path may be given", path.display())));
        }
        (None, [configuration, routes]) => {
            Some(ConfigurationFiles::Mighty(configuration.clone(), routes.clone()))
        }
        (None, [path]) if is_toml(path) => Some(ConfigurationFiles::Toml(path.clone())),
        (None, _) => None,
    })
}

fn usage(message: String) -> StartupError {
    StartupError { message, status: 2 }
}

fn is_toml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "toml") && !path.is_dir()
}

/// The configuration that one or two files are.
fn source(files: &[OsString]) -> Result<ConfigurationFiles, StartupError> {
    match files {
        [file] => Ok(ConfigurationFiles::Toml(file.into())),
        [configuration, routes] => Ok(ConfigurationFiles::Mighty(configuration.into(), routes.into())),
        _ => Err(usage("give FILE.toml, or FILE.conf and FILE.route".to_owned())),
    }
}

/// What follows `ctl`.
fn ctl(arguments: &[OsString]) -> Result<Request, StartupError> {
    let Some((command, target)) = arguments.split_last() else {
        return Err(usage("ctl: give FILE or --socket PATH, and a command".to_owned()));
    };
    let command = command.to_string_lossy().into_owned();
    if !COMMANDS.iter().any(|(known, _)| *known == command) {
        let known: Vec<&str> = COMMANDS.iter().map(|(known, _)| *known).collect();
        return Err(usage(format!("ctl: {command:?} is no command: there are {}", known.join(", "))));
    }
    let target = match target {
        [option, path] if option == "--socket" => CommandTarget::Socket(path.into()),
        files => CommandTarget::Source(source(files)?),
    };
    Ok(Request::Ctl(target, command))
}

/// The longest time that an option may give: a day.
const SECONDS_MAX: f64 = 86_400.0;

/// The value of the option called `option`, as `read` reads it.
fn value<T>(
    parser: &mut lexopt::Parser,
    option: &str,
    read: impl FnOnce(&str) -> Result<T, &'static str>,
) -> Result<T, StartupError> {
    let text = parser.value()?;
    let text = text.to_string_lossy();
    read(&text).map_err(|why| StartupError { message: format!("{option} {text:?}: {why}"), status: 2 })
}

/// A whole number in `range`.
fn number<N>(parser: &mut lexopt::Parser, option: &str, range: RangeInclusive<N>) -> Result<N, StartupError>
where
    N: FromStr + PartialOrd + fmt::Display,
{
    let text = parser.value()?;
    let text = text.to_string_lossy();
    text.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| StartupError {
        message: format!("{option} {text:?}: not a number from {} to {}", range.start(), range.end()),
        status: 2,
    })
}

fn seconds(parser: &mut lexopt::Parser, option: &str) -> Result<Duration, StartupError> {
    value(parser, option, |text| match text.parse::<f64>() {
        Ok(seconds) if (0.0..=SECONDS_MAX).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("not a number of seconds from 0 to 86400"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Request, StartupError> {
        parse(line.split_whitespace().map(OsString::from))
    }

    fn options(line: &str) -> Options {
        match parsed(line) {
            Ok(Request::Serve(options, None)) => *options,
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
            "--listen :80 -l [::1]:0 --listen=unix:/a/b -w 3 site --log - --validity 0.5 --idle 5 --head 1 --drain 0 \
             --body 2 --write 3 --head-bytes 600 --body-bytes 7 --unix-mode 640 --cache-direct 1000000",
        );
        assert_eq!(options.directory, PathBuf::from("site"));
        let listen: Vec<String> = options.listen.iter().map(Address::to_string).collect();
        assert_eq!(listen, ["[::]:80", "[::1]:0", "unix:/a/b"]);
        assert_eq!((options.workers, options.log), (Some(3), Log::Stdout));
        assert_eq!((options.validity, options.idle), (Duration::from_millis(500), Duration::from_secs(5)));
        assert_eq!((options.head, options.drain), (Duration::from_secs(1), Duration::ZERO));
        assert_eq!((options.body, options.write), (Duration::from_secs(2), Duration::from_secs(3)));
        assert_eq!((options.head_bytes, options.body_bytes), (600, 7));
        assert_eq!(options.cache_direct, 1_000_000);
        assert_eq!(options.unix_mode, Some(0o640));
    }

    #[test]
    fn a_stack_serves_port_80_unless_told_otherwise_also_by_a_configuration() {
        let stack: StackChoice = "tap0,10.0.0.2/24".parse().unwrap();
        match parsed("--stack tap0,10.0.0.2/24 site") {
            Ok(Request::Serve(options, given)) => {
                assert_eq!((&options.listen[..], given), (&[Address::Port(80)][..], Some(stack.clone())));
            }
            other => panic!("{other:?}"),
        }
        let configured = parsed("--config a.toml --stack tap0,10.0.0.2/24").unwrap();
        let source = ConfigurationFiles::Toml("a.toml".into());
        assert_eq!(configured, Request::Configured(source, Some(stack)));
    }

    #[test]
    fn addresses_in_all_their_forms() {
        for (text, address) in [
            ("192.0.2.1:80", Address::Tcp("192.0.2.1:80".parse().unwrap())),
            ("[::1]:80", Address::Tcp("[::1]:80".parse().unwrap())),
            (":80", Address::Port(80)),
            ("*:80", Address::Port(80)),
            ("80", Address::Port(80)),
            ("localhost:0", Address::Name("localhost".into(), 0)),
            ("www2.example.org:80", Address::Name("www2.example.org".into(), 80)),
            ("unix:a", Address::Unix("a".into())),
        ] {
            assert_eq!(text.parse(), Ok(address), "{text}");
        }
    }

    /// The help text names every option, and every default as it is.
    #[test]
    fn the_help_is_complete() {
        let options = options("");
        for (option, default) in [
            ("--validity", options.validity.as_secs()),
            ("--idle", options.idle.as_secs()),
            ("--head", options.head.as_secs()),
            ("--body", options.body.as_secs()),
            ("--write", options.write.as_secs()),
            ("--drain", options.drain.as_secs()),
            ("--head-bytes", options.head_bytes as u64),
            ("--body-bytes", options.body_bytes),
            ("--cache-direct", options.cache_direct as u64),
        ] {
            let start = HELP.find(&format!("      {option} ")).unwrap_or_else(|| panic!("{option}"));
            let text = HELP[start..].replace('\n', " ");
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let said = text.split("by default ").nth(1).unwrap();
            assert!(said.starts_with(&format!("{default}.")), "{option}: {said}");
        }
        assert!(HELP.lines().all(|line| line.len() <= 107));
    }

    #[test]
    fn nonsense_is_refused() {
        for line in [
            "--listen",
            "--listen localhost",
            "--listen 127.0.0.1",
            "--listen 127.0.0.1:",
            "--listen 256.0.0.1:80",
            "--listen 1.2.3:80",
            "--listen [::1]",
            "--listen ::1:80",
            "--listen [::g]:80",
            "--listen a..b:80",
            "--listen a/b:80",
            "--listen :70000",
            "--listen 70000",
            "--listen unix:",
            "--stack tap0",
            "--unix-mode 888",
            "--unix-mode 7777",
            "--workers 0",
            "--workers many",
            "--idle -1",
            "--idle nan",
            "--body x",
            "--write -1",
            "--head-bytes 100",
            "--body-bytes -1",
            "--cache-direct 1G",
            "--validity 1e9",
            "--what",
            "one two three",
            "one two --idle 3",
            "--config a b",
            "--config a --idle 3",
            "ctl a",
            "ctl a nonsense",
            "check",
        ] {
            let error = parsed(line).unwrap_err();
            assert_eq!(error.status, 2, "{line}: {}", error.message);
            assert!(!error.message.contains('\n'));
            let option = line.split(' ').next().unwrap();
            assert!(!option.starts_with("--") || error.message.contains(option), "{line}: {}", error.message);
        }
        assert_eq!(parsed("--help --what").unwrap(), Request::Help);
        assert_eq!(parsed("-V").unwrap(), Request::Version);
    }
}
