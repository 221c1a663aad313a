//! Mighttpd's configuration and route file, read as they are.
//!
//! [`configuration`] reads the lines `Key: value` into [`Settings`] and tells which keys have no
//! meaning here. [`routes`] reads the route file into a [`RouteTable`]:
//!
//! ```text
//! [localhost www.example.com]
//! /~alice/cgi-bin/ => /srv/alice/public_html/cgi-bin/    # CGI
//! /~alice/         -> /srv/alice/public_html/            # files
//! /app/cal/        >> example.net/calendar/               # reverse proxy
//! /old/            << www.example.org/new/                # redirect
//! ```
//!
//! # Paper
//! \[Mighty\] "Using Mighttpd 2": a configuration file and a path routing file are specified.

use crate::behind::{Balancing, GatewayTerms, HealthRule, ProgramRule};
use crate::error::{ConfigError, meant};
use crate::pattern::PathPattern;
use crate::rules::Rules;
use crate::settings::{Settings, spanned};
use crate::table::{Host, Route, RouteAction, RouteTable, ServedDirectory};
use crate::template::Template;
use std::path::PathBuf;

/// What becomes of a key.
enum Meaning {
    /// It sets something.
    Used,
    /// It is read and warned about, with this reason, if its value is not the default.
    Unused(&'static str),
}

use Meaning::{Unused, Used};

const TLS: &str = "this server speaks HTTP without TLS: put a server in front of it that does";
const QUIC: &str = "this server does not speak HTTP/3";

/// The keys, their defaults, and what becomes of them.
const KEYS: [(&str, &str, Meaning); 26] = [
    ("Port", "8080", Used),
    ("Host", "*", Used),
    ("Debug_Mode", "Yes", Used),
    ("User", "root", Used),
    ("Group", "root", Used),
    ("Pid_File", "/var/run/mighty.pid", Used),
    ("Report_File", "/tmp/mighty_report", Used),
    ("Logging", "Yes", Used),
    ("Log_File", "/var/log/mighty", Used),
    ("Log_File_Size", "16777216", Used),
    ("Log_Backup_Number", "10", Used),
    ("Index_File", "index.html", Used),
    ("Index_Cgi", "index.cgi", Used),
    ("Status_File_Dir", "/usr/local/share/mighty/status", Used),
    ("Connection_Timeout", "30", Used),
    ("Proxy_Timeout", "0", Unused("the proxy has a time limit for each phase of its own")),
    ("Fd_Cache_Duration", "10", Used),
    ("Service", "0", Unused(TLS)),
    ("Tls_Port", "443", Unused(TLS)),
    ("Tls_Cert_File", "cert.pem", Unused(TLS)),
    ("Tls_Chain_Files", "chain.pem", Unused(TLS)),
    ("Tls_Key_File", "key.pem", Unused(TLS)),
    ("Quic_Addr", "127.0.0.1", Unused(QUIC)),
    ("Quic_Port", "443", Unused(QUIC)),
    ("Quic_Debug_Dir", "", Unused(QUIC)),
    ("Quic_Qlog_Dir", "", Unused(QUIC)),
];

/// What the configuration says for the routes.
#[derive(Clone, Debug, Default)]
pub struct Defaults {
    /// `Index_File`; `index.html` if it is empty.
    pub index_file: String,
    /// `Index_Cgi`; `index.cgi` if it is empty.
    pub index_cgi: String,
    /// `Status_File_Dir`.
    pub status_directory: Option<PathBuf>,
}

/// Reads the configuration `text` of the file called `file`. The third result is a warning for each
/// key that has no meaning here.
///
/// # Errors
/// The first mistake: a line without a colon, an unknown key, or a value of the wrong kind.
pub fn configuration(file: &str, text: &str) -> Result<(Settings, Defaults, Vec<ConfigError>), ConfigError> {
    let mut values: [Option<(usize, &str)>; KEYS.len()] = [None; KEYS.len()];
    let mut warnings = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let mistake =
            |message: String| ConfigError { file: file.to_owned(), line: number, column: 1, message };
        let Some((key, value)) = line.split_once(':') else {
            return Err(mistake(format!("{line:?} is no line of the form Key: value")));
        };
        let (key, value) = (key.trim(), value.trim());
        let Some(at) = KEYS.iter().position(|(known, ..)| *known == key) else {
            let meant = meant(key, KEYS.iter().map(|(known, ..)| *known));
            let meant = meant.map_or(String::new(), |meant| format!("; did you mean {meant}?"));
            return Err(mistake(format!("there is no key {key}{meant}")));
        };
        if value.is_empty() {
            return Err(mistake(format!("{key} has no value")));
        }
        if let (_, default, Unused(why)) = &KEYS[at]
            && value != *default
        {
            warnings.push(mistake(format!("{key} has no meaning here: {why}")));
        }
        values[at] = Some((number, value));
    }
    let values = KeyValues { file, values };
    let (settings, defaults) = values.settings()?;
    if values.yes("Debug_Mode")? && values.given("Pid_File").is_some() {
        warnings
            .push(values.mistake("Debug_Mode", "with Debug_Mode the server stays in the foreground".into()));
    }
    Ok((settings, defaults, warnings))
}

struct KeyValues<'t> {
    file: &'t str,
    values: [Option<(usize, &'t str)>; KEYS.len()],
}

impl<'t> KeyValues<'t> {
    fn at(key: &str) -> usize {
        KEYS.iter().position(|(known, ..)| *known == key).expect("a key of the table")
    }

    fn given(&self, key: &str) -> Option<&'t str> {
        self.values[Self::at(key)].map(|(_, value)| value)
    }

    fn text(&self, key: &str) -> &'t str {
        self.given(key).unwrap_or(KEYS[Self::at(key)].1)
    }

    fn mistake(&self, key: &str, message: String) -> ConfigError {
        let line = self.values[Self::at(key)].map_or(0, |(line, _)| line);
        ConfigError { file: self.file.to_owned(), line, column: usize::from(line > 0), message }
    }

    fn number(&self, key: &str, most: u64) -> Result<u64, ConfigError> {
        let text = self.text(key);
        let number = text.parse().ok().filter(|number| *number <= most);
        number.ok_or_else(|| self.mistake(key, format!("{key}: {text:?} is no number from 0 to {most}")))
    }

    fn yes(&self, key: &str) -> Result<bool, ConfigError> {
        match self.text(key).to_ascii_lowercase().as_str() {
            "yes" | "true" => Ok(true),
            "no" | "false" => Ok(false),
            other => Err(self.mistake(key, format!("{key}: {other:?} is neither Yes nor No"))),
        }
    }

    fn settings(&self) -> Result<(Settings, Defaults), ConfigError> {
        let mut settings = Settings::default();
        let port = self.number("Port", 65_535)?;
        let listen = match self.text("Host") {
            "*" => port.to_string(),
            host if host.contains(':') && !host.starts_with('[') => format!("[{host}]:{port}"),
            host => format!("{host}:{port}"),
        };
        settings.listen = spanned(vec![spanned(listen)]);
        let debug = self.yes("Debug_Mode")?;
        settings.daemon = !debug;
        // Mighttpd, started by another user than root, keeps the user.
        settings.user =
            self.given("User").filter(|user| *user != "root").map(|user| spanned(user.to_owned()));
        settings.group =
            self.given("Group").filter(|group| *group != "root").map(|group| spanned(group.to_owned()));
        let with_port = |file: &str| match port {
            80 => PathBuf::from(file),
            port => PathBuf::from(format!("{file}{port}")),
        };
        settings.pid_file = match debug {
            true => None,
            false => Some(with_port(self.text("Pid_File"))),
        };
        settings.report = match debug {
            true => None,
            false => Some(with_port(self.text("Report_File"))),
        };
        if self.yes("Logging")? {
            settings.log.access = if debug { "-".to_owned() } else { self.text("Log_File").to_owned() };
        }
        settings.log.rotate_bytes = self.number("Log_File_Size", u64::MAX)?;
        settings.log.backups = self.number("Log_Backup_Number", 10_000)? as u32;
        settings.limits.idle = self.number("Connection_Timeout", 86_400)? as f64;
        settings.cache.validity = self.number("Fd_Cache_Duration", 86_400)? as f64;
        let defaults = Defaults {
            index_file: self.text("Index_File").to_owned(),
            index_cgi: self.text("Index_Cgi").to_owned(),
            status_directory: self.given("Status_File_Dir").map(PathBuf::from),
        };
        Ok((settings, defaults))
    }
}

/// Reads the route file `text` called `file`.
///
/// # Errors
/// The first mistake, with its line.
///
/// # Examples
/// ```
/// use selvedge_site::mighty::{Defaults, routes};
/// let table = routes("r", "[*]\n/a/ -> /srv/a/\n/ << example.org:8080/\n", &Defaults::default())?;
/// assert!(table.route(b"anything", b"/a/x").is_some());
/// let mistake = routes("r", "[*]\n/a/ - /srv\n", &Defaults::default()).unwrap_err();
/// assert_eq!(mistake.to_string(), "r:2:5: \"-\" is none of ->, =>, >> and <<");
/// # Ok::<(), selvedge_site::ConfigError>(())
/// ```
pub fn routes(file: &str, text: &str, defaults: &Defaults) -> Result<RouteTable, ConfigError> {
    let mut hosts: Vec<Host> = Vec::new();
    for (number, whole) in (1..).zip(text.lines()) {
        let line = whole.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let mistake = |word: &str, message: String| {
            let offset = word.as_ptr() as usize - whole.as_ptr() as usize;
            let column = whole[..offset.min(whole.len())].chars().count() + 1;
            ConfigError { file: file.to_owned(), line: number, column, message }
        };
        if let Some(rest) = line.strip_prefix('[') {
            let Some(names) = rest.strip_suffix(']') else {
                return Err(mistake(line, "the list of domains has no ]".into()));
            };
            let names: Vec<String> = names.split_whitespace().map(str::to_ascii_lowercase).collect();
            if names.is_empty() {
                return Err(mistake(line, "the list of domains is empty; * is every domain".into()));
            }
            hosts.push(Host { names, routes: Vec::new() });
            continue;
        }
        let mut words = line.split_whitespace();
        let (Some(source), Some(operator), Some(target)) = (words.next(), words.next(), words.next()) else {
            return Err(mistake(line, "a route is a path, an operator and a target".into()));
        };
        if let Some(word) = words.next() {
            return Err(mistake(word, format!("{word:?} is one word too many")));
        }
        let pattern: PathPattern = match source.contains(['*', '{', '?']) {
            // Mighttpd knows no patterns.
            true => return Err(mistake(source, format!("the path {source:?} has one of * ? {{"))),
            false => source.parse().map_err(|error| mistake(source, format!("{error}")))?,
        };
        let pattern = match pattern {
            // Mighttpd takes all paths that begin with the source.
            PathPattern::Exact(path) => PathPattern::Below([&path[..], b"/"].concat().into()),
            pattern => pattern,
        };
        let action = match operator {
            "->" => RouteAction::Directory(files(target, defaults)),
            "=>" => {
                let index = Some(defaults.index_cgi.clone()).filter(|index| !index.is_empty());
                RouteAction::Cgi { directory: target.into(), index, programs: ProgramRule::default() }
            }
            ">>" => proxy(target).map_err(|why| mistake(target, why))?,
            "<<" => redirect(target).map_err(|why| mistake(target, why))?,
            other => return Err(mistake(operator, format!("{other:?} is none of ->, =>, >> and <<"))),
        };
        let Some(host) = hosts.last_mut() else {
            return Err(mistake(
                line,
                "a list of domains in brackets comes first; [*] is every domain".into(),
            ));
        };
        let rules = Rules { error_pages: defaults.status_directory.clone(), ..Rules::default() };
        host.routes.push(Route { pattern, action, rules, line: number });
    }
    if hosts.iter().all(|host| host.routes.is_empty()) {
        let message = "there is no route".to_owned();
        return Err(ConfigError { file: file.to_owned(), line: 0, column: 0, message });
    }
    Ok(RouteTable { hosts, unmatched: 412 })
}

fn files(target: &str, defaults: &Defaults) -> ServedDirectory {
    let mut directory = ServedDirectory::new(target.into());
    if !defaults.index_file.is_empty() {
        directory.index = vec![defaults.index_file.clone()];
    }
    // Mighttpd tries the client's languages, the name alone, and then English.
    directory.language = Some("en".to_owned());
    directory
}

/// The parts of `[http://][host][:port][/path]`, with a path that begins with `/`.
fn parts(target: &str) -> Result<(&str, Option<u16>, String), String> {
    let rest = target.strip_prefix("http://").unwrap_or(target);
    let (authority, path) = match rest.find('/') {
        Some(slash) => (&rest[..slash], rest[slash..].to_owned()),
        None => (rest, "/".to_owned()),
    };
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) => {
            let number = port.parse().ok().filter(|port| *port > 0);
            (host, Some(number.ok_or_else(|| format!("{port:?} is no port"))?))
        }
        None => (authority, None),
    };
    if host.is_empty() && port.is_none() {
        return Err("the target has neither a host nor a port".to_owned());
    }
    Ok((host, port, path))
}

fn template(text: &str) -> Result<Template, String> {
    text.parse().map_err(|error| format!("{error}"))
}

/// The path of a target with the rest of the request's path behind it, as a template.
fn with_rest(path: &str) -> String {
    format!("{}$rest", path.trim_end_matches('/').replace('$', "$$"))
}

fn proxy(target: &str) -> Result<RouteAction, String> {
    let (host, port, path) = parts(target)?;
    let host = if host.is_empty() { "127.0.0.1" } else { host };
    let upstream = format!("{host}:{}", port.unwrap_or(80));
    Ok(RouteAction::Proxy {
        upstreams: vec![upstream],
        path: template(&with_rest(&path))?,
        balancing: Balancing::default(),
        health: HealthRule::default(),
        times: GatewayTerms::default(),
    })
}

/// A redirect, which as Mighttpd's names no scheme if the target names none. So a client that came
/// by https, through a server in front of this one, stays with it.
fn redirect(target: &str) -> Result<RouteAction, String> {
    let (host, port, path) = parts(target)?;
    let host = if host.is_empty() { "$host".to_owned() } else { host.replace('$', "$$") };
    let scheme = if target.starts_with("http://") { "http:" } else { "" };
    let port = port.map_or(String::new(), |port| format!(":{port}"));
    let to = template(&format!("{scheme}//{host}{port}{}", with_rest(&path)))?;
    Ok(RouteAction::Redirect { to, status: 301 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::Variables;

    #[test]
    fn the_configuration() {
        let text = "# comment\nPort: 80\nHost: * # all\nDebug_Mode: No\nUser: www-data\nGroup: www-data\n\
            Pid_File: /run/m.pid\nLogging: Yes\nLog_File: /var/log/m\nLog_File_Size: 100\nLog_Backup_Number: 3\n\
            Index_File: main.html\nConnection_Timeout: 7\nFd_Cache_Duration: 5\nService: 1\nProxy_Timeout: 0\n";
        let (settings, defaults, warnings) = configuration("c", text).unwrap();
        assert_eq!(settings.listen.get_ref()[0].get_ref(), "80");
        assert_eq!(settings.user.as_ref().unwrap().get_ref(), "www-data");
        assert_eq!((settings.limits.idle, settings.cache.validity), (7.0, 5.0));
        assert_eq!((settings.log.access.as_str(), settings.log.rotate_bytes), ("/var/log/m", 100));
        assert_eq!((settings.daemon, settings.pid_file), (true, Some("/run/m.pid".into())));
        assert_eq!((defaults.index_file.as_str(), defaults.index_cgi.as_str()), ("main.html", "index.cgi"));
        let warnings: Vec<String> = warnings.iter().map(ConfigError::to_string).collect();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].starts_with("c:15:1: Service has no meaning here: "), "{warnings:?}");
        for (text, words) in [
            ("Prot: 80", "c:1:1: there is no key Prot; did you mean Port?"),
            ("Port 80", "no line of the form"),
            ("Port: x", "c:1:1: Port: \"x\" is no number"),
            ("Logging: maybe", "neither Yes nor No"),
            ("Host:", "Host has no value"),
        ] {
            let mistake = configuration("c", text).map(|_| ()).unwrap_err().to_string();
            assert!(mistake.contains(words), "{text}: {mistake}");
        }
    }

    /// Every key is read, and one without a meaning is warned about.
    #[test]
    fn all_keys() {
        assert_eq!(KEYS.len(), 26);
        for (key, default, meaning) in &KEYS {
            let value = if default.is_empty() { "/x" } else { default };
            let text = format!("{key}: {value}");
            let (.., warnings) = configuration("c", &text).unwrap();
            let is_unused = matches!(meaning, Unused(_)) && value != *default;
            assert_eq!(!warnings.is_empty(), is_unused || *key == "Pid_File", "{key}: {warnings:?}");
        }
    }

    #[test]
    fn the_route_file() {
        let text = "# Domain lists\n[localhost www.example.com]\n/~alice/cgi-bin/ => /srv/alice/cgi-bin/\n\
            /~alice/ -> /srv/alice/public_html/\n/app/cal/ >> example.net/calendar/\n\
            /app/wiki/ >> :3000/\n/old/ << www.example.org:8080/new/ # moved\n/here/ << :81/\n\
            /plain/ << http://www.example.org/\n/ -> /export/www/\n\
            [*]\n/ << www.example.com/\n";
        let table = routes("r", text, &Defaults::default()).unwrap();
        let action = |host: &str, path: &str| {
            let matched = table.route(host.as_bytes(), path.as_bytes()).unwrap();
            let rest = matched.rest(path.as_bytes());
            let request = Variables { path: path.as_bytes(), rest, host: host.as_bytes(), query: None };
            let filled = |template: &Template| String::from_utf8(template.fill(&request)).unwrap();
            match &matched.route.action {
                RouteAction::Directory(directory) => {
                    format!("-> {} {}", directory.path.display(), String::from_utf8_lossy(rest))
                }
                RouteAction::Cgi { directory, .. } => format!("=> {}", directory.display()),
                RouteAction::Proxy { upstreams, path, .. } => format!(">> {}{}", upstreams[0], filled(path)),
                RouteAction::Redirect { to, .. } => format!("<< {}", filled(to)),
                _ => unreachable!(),
            }
        };
        for (host, path, expected) in [
            ("localhost", "/~alice/cgi-bin/x", "=> /srv/alice/cgi-bin/"),
            ("localhost", "/~alice/x", "-> /srv/alice/public_html/ /x"),
            ("www.example.com", "/app/cal/2026", ">> example.net:80/calendar/2026"),
            ("www.example.com", "/app/wiki/p", ">> 127.0.0.1:3000/p"),
            ("localhost", "/old/x/y", "<< //www.example.org:8080/new/x/y"),
            ("localhost", "/here/x", "<< //localhost:81/x"),
            ("localhost", "/plain/x", "<< http://www.example.org/x"),
            ("localhost", "/x", "-> /export/www/ /x"),
            ("other", "/x", "<< //www.example.com/x"),
        ] {
            assert_eq!(action(host, path), expected, "{host} {path}");
        }
        assert_eq!(table.unmatched, 412);
        assert!(table.route(b"localhost", b"/~alice").unwrap().lacks_slash);
        for (text, words) in [
            ("/ -> /a/", "r:1:1: a list of domains"),
            ("[a\n", "no ]"),
            ("[]\n", "is empty"),
            ("[*]\n/ ->\n", "r:2:1: a route is a path"),
            ("[*]\n/ -> /a /b\n", "one word too many"),
            ("[*]\na/ -> /b/\n", "does not begin with /"),
            ("[*]\n/a/ >> /b/\n", "neither a host nor a port"),
            ("[*]\n/a/ >> h:x/\n", "is no port"),
            ("[*]\n", "r: there is no route"),
        ] {
            let mistake = routes("r", text, &Defaults::default()).map(|_| ()).unwrap_err().to_string();
            assert!(mistake.contains(words), "{text}: {mistake}");
        }
    }
}
