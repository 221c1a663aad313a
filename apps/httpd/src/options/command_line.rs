//! [`parse`]: from the words of the command line to a [`Request`]. `options.rs` has the types and
//! the help text. Each option has a test here that reads it.

use super::{Address, CommandTarget, Log, Options, Request};
use crate::configuration::ConfigurationFiles;
use crate::control::COMMANDS;
use crate::stack_choice::StackChoice;
use crate::startup_error::StartupError;
use lexopt::prelude::*;
use selvedge_options::{number, seconds, value};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

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

#[cfg(test)]
mod tests {
    use super::super::HELP;
    use super::*;
    use std::time::Duration;

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
