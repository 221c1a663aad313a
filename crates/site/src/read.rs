//! From the text of a configuration in TOML to [`Settings`] and a [`RouteTable`], or to the first
//! [`ConfigError`] in it.
//!
//! What TOML and the types cannot say is checked here: addresses, patterns, templates, one action
//! for each route. The files that a configuration names are not opened, except password files,
//! which a function of the caller's reads.

mod behind;

use crate::error::{ConfigError, meant};
use crate::network::Network;
use crate::password::Users;
use crate::pattern::{Glob, PathPattern};
use crate::rate::Rate;
use crate::rules::{Access, BasicAuth, Cors, HeaderRule, Rules};
use crate::settings::{self, Settings};
use crate::table::{Compression, Host, Listing, Route, RouteAction, RouteTable, ServedDirectory};
use crate::template::Template;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// Reads the configuration `text` of the file called `file`. Relative paths in it are relative to
/// `base`, the directory of the file. `passwords` reads a password file.
///
/// # Errors
/// The first mistake, with its place.
///
/// # Examples
/// ```
/// use selvedge_site::read;
/// let text = "listen = ['8080']\n\n[[route]]\npath = '/docs/'\ndirectroy = 'docs'\n";
/// let mistake = read("site.toml", text, "/srv".as_ref(), |_| unreachable!()).unwrap_err();
/// assert_eq!(
///     mistake.to_string(),
///     "site.toml:5:1: there is no key `directroy` here; did you mean `directory`?"
/// );
/// ```
pub fn read(
    file: &str,
    text: &str,
    base: &Path,
    passwords: impl Fn(&Path) -> std::io::Result<String>,
) -> Result<(Settings, RouteTable), ConfigError> {
    let settings: Settings = toml::from_str(text).map_err(|error| of_toml(file, text, &error))?;
    let reader = Reader { file, text, base, passwords: &passwords };
    reader.check(&settings)?;
    let table = reader.table(&settings)?;
    Ok((settings, table))
}

/// The mistake that the parser or serde has found.
fn of_toml(file: &str, text: &str, error: &toml::de::Error) -> ConfigError {
    let message = error.message();
    let at = error.span().map_or(0, |span| span.start);
    let quoted = |prefix: &str| message.strip_prefix(prefix)?.split('`').next();
    let message = match quoted("unknown field `") {
        Some(word) => {
            let known = message.split('`').skip(3).step_by(2);
            match meant(word, known) {
                Some(meant) => format!("there is no key `{word}` here; did you mean `{meant}`?"),
                None => format!("there is no key `{word}` here{}", elsewhere(word)),
            }
        }
        None => message.trim_end().replace('\n', "; "),
    };
    ConfigError::at(file, text, at, message)
}

/// Where the key `word` belongs, if it is one of another table.
fn elsewhere(word: &str) -> String {
    let section = settings::SECTIONS.iter().find(|one| one.keys.iter().any(|key| key.name == word));
    match section.map(|section| section.head) {
        None => String::new(),
        Some("") => "; it belongs at the top of the file".to_owned(),
        Some(head) => format!("; it belongs into {head}"),
    }
}

struct Reader<'a> {
    file: &'a str,
    text: &'a str,
    base: &'a Path,
    passwords: &'a dyn Fn(&Path) -> std::io::Result<String>,
}

/// The statuses of `answer`: a reply with one of them needs nothing but its page.
const ANSWERS: [u16; 13] = [204, 400, 403, 404, 405, 410, 421, 429, 451, 500, 502, 503, 504];

/// The longest time that a setting may give: a day.
const SECONDS_MAX: f64 = 86_400.0;

impl Reader<'_> {
    fn mistake<T>(&self, place: &Spanned<T>, message: impl Into<String>) -> ConfigError {
        ConfigError::at(self.file, self.text, place.span().start, message)
    }

    /// The value of a text, or the mistake at its place.
    fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(
        &self,
        text: &Spanned<String>,
    ) -> Result<T, ConfigError> {
        text.get_ref().parse().map_err(|error: T::Err| self.mistake(text, error.to_string()))
    }

    fn path(&self, path: &Path) -> PathBuf {
        self.base.join(path)
    }

    /// The place of a key, for a value that has none of its own.
    fn key(&self, name: &str) -> Spanned<()> {
        let at = self.text.lines().scan(0, |start, line| {
            let at = *start;
            *start += line.len() + 1;
            Some((at, line))
        });
        let is_key = |line: &str| {
            line.trim_start().strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with('='))
        };
        let at = at.filter(|(_, line)| is_key(line)).map(|(at, _)| at).next().unwrap_or(0);
        Spanned::new(at..at, ())
    }

    /// The values that concern no route.
    fn check(&self, settings: &Settings) -> Result<(), ConfigError> {
        let in_range = |value: &Spanned<i64>, least: i64, most: i64| match value.get_ref() {
            n if (least..=most).contains(n) => Ok(()),
            _ => Err(self.mistake(value, format!("not a number from {least} to {most}"))),
        };
        in_range(&settings.processes, 1, 1024)?;
        if let Some(workers) = &settings.workers {
            in_range(workers, 1, 1024)?;
        }
        in_range(&settings.limits.head_bytes, 512, 1 << 20)?;
        if let Some(mode) = &settings.unix_mode
            && !matches!(u32::from_str_radix(mode.get_ref(), 8), Ok(0..=0o777))
        {
            return Err(self.mistake(mode, "not a mode in octal, such as \"660\""));
        }
        for network in &settings.proxy_protocol {
            self.parse::<Network>(network)?;
        }
        let limits = &settings.limits;
        for (name, seconds) in [
            ("idle", limits.idle),
            ("head", limits.head),
            ("body", limits.body),
            ("write", limits.write),
            ("drain", limits.drain),
            ("validity", settings.cache.validity),
        ] {
            if !(0.0..=SECONDS_MAX).contains(&seconds) {
                return Err(self.mistake(&self.key(name), "not a number of seconds from 0 to 86400"));
            }
        }
        Ok(())
    }

    fn table(&self, settings: &Settings) -> Result<RouteTable, ConfigError> {
        let mut hosts = Vec::new();
        for host in &settings.host {
            let mut names = Vec::new();
            for name in &host.names {
                names.push(self.host_name(name)?);
            }
            hosts.push(Host { names, routes: self.routes(&host.route)? });
        }
        if !settings.route.is_empty() {
            hosts.push(Host { names: Vec::new(), routes: self.routes(&settings.route)? });
        }
        if hosts.iter().all(|host| host.routes.is_empty()) {
            let message = "there is no route: the server would answer every request with 404";
            return Err(ConfigError {
                file: self.file.to_owned(),
                line: 0,
                column: 0,
                message: message.into(),
            });
        }
        Ok(RouteTable { hosts, unmatched: 404 })
    }

    fn host_name(&self, name: &Spanned<String>) -> Result<String, ConfigError> {
        let text = name.get_ref().to_ascii_lowercase();
        let rest = text.strip_prefix("*.").unwrap_or(if text == "*" { "x" } else { &text });
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_[]:".contains(&byte);
        match !rest.is_empty() && rest.bytes().all(is_name) {
            true => Ok(text),
            false => Err(self.mistake(name, "not a name such as example.org, *.example.org or *")),
        }
    }

    fn routes(&self, routes: &[Spanned<settings::RouteSettings>]) -> Result<Vec<Route>, ConfigError> {
        routes.iter().map(|route| self.route(route)).collect()
    }

    fn route(&self, place: &Spanned<settings::RouteSettings>) -> Result<Route, ConfigError> {
        let route = place.get_ref();
        let pattern = match &route.path {
            Some(path) => self.parse(path)?,
            None => "/".parse::<PathPattern>().expect("a pattern"),
        };
        let action = self.action(place)?;
        self.check_companions(place, &action)?;
        let line = ConfigError::at(self.file, self.text, place.span().start, "").line;
        Ok(Route { pattern, action, rules: self.rules(route)?, line })
    }

    fn action(&self, place: &Spanned<settings::RouteSettings>) -> Result<RouteAction, ConfigError> {
        let route = place.get_ref();
        let mut actions: Vec<(&str, RouteAction)> = Vec::new();
        if let Some(path) = &route.directory {
            actions.push(("directory", RouteAction::Directory(self.directory(route, path)?)));
        }
        if let Some(path) = &route.archive {
            actions.push(("archive", RouteAction::Archive(self.path(path))));
        }
        if let Some(to) = &route.redirect {
            let status = match &route.status {
                None => 301,
                Some(status) if [301, 302, 303, 307, 308].contains(status.get_ref()) => *status.get_ref(),
                Some(status) => return Err(self.mistake(status, "not 301, 302, 303, 307 or 308")),
            };
            actions.push(("redirect", RouteAction::Redirect { to: self.parse(to)?, status }));
        }
        if let Some(servers) = &route.proxy {
            let upstreams = servers.get_ref().as_slice();
            if upstreams.is_empty() {
                return Err(self.mistake(servers, "no server to pass requests to"));
            }
            for upstream in upstreams {
                self.check_address(servers, upstream)?;
            }
            let path = match &route.rewrite {
                Some(rewrite) => self.parse(rewrite)?,
                None => "$path".parse().expect("a template"),
            };
            let action = RouteAction::Proxy {
                upstreams: upstreams.to_vec(),
                path,
                balancing: self.balancing(route)?,
                health: self.health(route)?,
                times: self.times(route)?,
            };
            actions.push(("proxy", action));
        }
        if let Some(directory) = &route.cgi {
            let index = route.index.as_ref().and_then(|index| index.get_ref().first().cloned());
            let (directory, programs) = (self.path(directory), self.programs(route)?);
            actions.push(("cgi", RouteAction::Cgi { directory, index, programs }));
        }
        if let Some(address) = &route.fastcgi {
            self.check_address(address, address.get_ref())?;
            let Some(root) = &route.root else {
                return Err(self.mistake(address, "`fastcgi` needs `root`, the directory of the scripts"));
            };
            let index = route.index.as_ref().and_then(|index| index.get_ref().first().cloned());
            let index = index.unwrap_or_else(|| "index.php".to_owned());
            let (root, times, address) = (self.path(root), self.times(route)?, address.get_ref().clone());
            actions.push(("fastcgi", RouteAction::FastCgi { address, root, index, times }));
        }
        if let Some(page) = &route.page {
            let action = match page.get_ref().as_str() {
                "status" => RouteAction::Status,
                "metrics" => RouteAction::Metrics,
                other => {
                    let meant = meant(other, ["status", "metrics"]);
                    let meant = meant.map_or(String::new(), |meant| format!("; did you mean \"{meant}\"?"));
                    return Err(self.mistake(page, format!("no page \"{other}\"{meant}")));
                }
            };
            actions.push(("page", action));
        }
        if let Some(status) = &route.answer {
            if !ANSWERS.contains(status.get_ref()) {
                let known: Vec<String> = ANSWERS.iter().map(u16::to_string).collect();
                return Err(self.mistake(status, format!("not one of {}", known.join(", "))));
            }
            actions.push(("answer", RouteAction::Answer(*status.get_ref())));
        }
        match actions.len() {
            1 => Ok(actions.remove(0).1),
            0 => Err(self.mistake(
                place,
                "the route has no action: directory, archive, redirect, proxy, cgi, fastcgi, page or answer",
            )),
            _ => Err(self.mistake(
                place,
                format!(
                    "the route has two actions, `{}` and `{}`: it may have one",
                    actions[0].0, actions[1].0
                ),
            )),
        }
    }

    fn check_address<T>(&self, place: &Spanned<T>, address: &str) -> Result<(), ConfigError> {
        let is_one = match address.strip_prefix("unix:") {
            Some(path) => path.starts_with('/'),
            None => address.rsplit_once(':').is_some_and(|(host, port)| {
                !host.is_empty() && !host.contains('/') && port.parse::<u16>().is_ok_and(|port| port > 0)
            }),
        };
        let message =
            format!("{address:?} is no address: 127.0.0.1:3000, localhost:3000 or unix:/run/app.sock");
        if is_one { Ok(()) } else { Err(self.mistake(place, message)) }
    }

    /// Keys that mean nothing without another.
    fn check_companions(
        &self,
        place: &Spanned<settings::RouteSettings>,
        action: &RouteAction,
    ) -> Result<(), ConfigError> {
        let route = place.get_ref();
        let is_directory = matches!(action, RouteAction::Directory(_));
        let start = |span: Option<std::ops::Range<usize>>| span.map(|span| span.start);
        let directory_only = [
            ("listing", start(route.listing.as_ref().map(Spanned::span))),
            ("try_files", start(route.try_files.as_ref().map(Spanned::span))),
            ("language", start(route.language.as_ref().map(Spanned::span))),
            ("compress_types", start(route.compress_types.as_ref().map(Spanned::span))),
            ("precompressed", route.precompressed.then(|| place.span().start)),
            ("compress", route.compress.then(|| place.span().start)),
        ];
        for (key, at) in directory_only {
            if let Some(at) = at
                && !is_directory
            {
                let message = format!("`{key}` belongs to `directory`, which this route does not have");
                return Err(ConfigError::at(self.file, self.text, at, message));
            }
        }
        let others = [
            ("status", "redirect", start(route.status.as_ref().map(Spanned::span)), route.redirect.is_some()),
            ("balance", "proxy", start(route.balance.as_ref().map(Spanned::span)), route.proxy.is_some()),
            ("health", "proxy", start(route.health.as_ref().map(Spanned::span)), route.proxy.is_some()),
            ("programs", "cgi", start(route.programs.as_ref().map(Spanned::span)), route.cgi.is_some()),
            (
                "outlive_client",
                "proxy",
                route.outlive_client.then(|| place.span().start),
                route.proxy.is_some() || route.fastcgi.is_some() || route.cgi.is_some(),
            ),
            (
                "times",
                "proxy",
                start(route.times.as_ref().map(Spanned::span)),
                route.proxy.is_some() || route.fastcgi.is_some(),
            ),
            ("rewrite", "proxy", start(route.rewrite.as_ref().map(Spanned::span)), route.proxy.is_some()),
            ("root", "fastcgi", route.root.as_ref().map(|_| place.span().start), route.fastcgi.is_some()),
            (
                "index",
                "directory",
                start(route.index.as_ref().map(Spanned::span)),
                is_directory || route.fastcgi.is_some() || route.cgi.is_some(),
            ),
        ];
        for (key, needs, at, is_there) in others {
            if let Some(at) = at
                && !is_there
            {
                let message = format!("`{key}` belongs to `{needs}`, which this route does not have");
                return Err(ConfigError::at(self.file, self.text, at, message));
            }
        }
        Ok(())
    }

    fn directory(
        &self,
        route: &settings::RouteSettings,
        path: &Path,
    ) -> Result<ServedDirectory, ConfigError> {
        let mut directory = ServedDirectory::new(self.path(path));
        if let Some(index) = &route.index {
            let is_name = |name: &String| !name.is_empty() && !name.contains('/') && !name.starts_with('.');
            if !index.get_ref().iter().all(is_name) {
                return Err(self.mistake(index, "not the names of files"));
            }
            directory.index = index.get_ref().clone();
        }
        if let Some(listing) = &route.listing {
            directory.listing = match listing.get_ref().as_str() {
                "off" => Listing::Off,
                "html" => Listing::Html,
                "json" => Listing::Json,
                other => {
                    return Err(
                        self.mistake(listing, format!("{other:?} is not \"off\", \"html\" or \"json\""))
                    );
                }
            };
        }
        if let Some(names) = &route.try_files {
            for name in names.get_ref() {
                let template =
                    name.parse::<Template>().map_err(|error| self.mistake(names, error.to_string()))?;
                if !name.starts_with('/') && !name.starts_with("$rest") && !name.starts_with("$path") {
                    return Err(self.mistake(names, format!("{name:?} does not begin with / or $rest")));
                }
                directory.try_files.push(template);
            }
        }
        directory.precompressed = route.precompressed;
        if route.compress {
            let types = match &route.compress_types {
                Some(types) => types.clone(),
                None => settings::spanned(default_types()),
            };
            let globs = types.get_ref().iter().map(|text| text.parse::<Glob>());
            let types =
                globs.collect::<Result<_, _>>().map_err(|error| self.mistake(&types, error.to_string()))?;
            let (bytes_min, bytes_max) = (route.compress_bytes_min, route.compress_bytes_max);
            directory.compression = Some(Compression { types, bytes_min, bytes_max });
        }
        if let Some(language) = &route.language {
            let is_tag = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            if language.get_ref().is_empty() || !language.get_ref().bytes().all(is_tag) {
                return Err(self.mistake(language, "not a language such as \"en\" or \"pt-br\""));
            }
            directory.language = Some(language.get_ref().to_ascii_lowercase());
        }
        Ok(directory)
    }

    fn rules(&self, route: &settings::RouteSettings) -> Result<Rules, ConfigError> {
        let networks = |texts: &[Spanned<String>]| -> Result<Vec<Network>, ConfigError> {
            texts.iter().map(|text| self.parse(text)).collect()
        };
        let access = Access { allow: networks(&route.allow)?, deny: networks(&route.deny)? };
        let mut headers = Vec::new();
        for (name, value) in &route.headers {
            let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            if name.get_ref().is_empty() || !name.get_ref().bytes().all(is_token) {
                return Err(self.mistake(name, "not the name of a field"));
            }
            const FRAMING: [&str; 5] =
                ["content-length", "transfer-encoding", "connection", "date", "content-encoding"];
            if FRAMING.contains(&name.get_ref().to_ascii_lowercase().as_str()) {
                return Err(self.mistake(name, "the server itself writes this field"));
            }
            self.check_value(name, value)?;
            let value = Some(value.clone()).filter(|value| !value.is_empty());
            headers.push(HeaderRule { name: name.get_ref().clone(), value });
        }
        let mut cache_control = Vec::new();
        for rule in &route.cache_control {
            self.check_value(&rule.value, rule.value.get_ref())?;
            let glob = match &rule.path {
                Some(path) => self.parse(path)?,
                None => "**".parse().expect("a glob"),
            };
            cache_control.push((glob, rule.value.get_ref().clone()));
        }
        let error_pages = route.error_pages.as_ref().map(|path| self.path(path));
        if let Some(cors) = &route.cors
            && *cors.credentials.get_ref()
            && cors.origins.iter().any(|origin| origin == "*")
        {
            let message = "with `credentials` every site could read the replies to its visitors: \
                           name the `origins` in place of \"*\"";
            return Err(self.mistake(&cors.credentials, message));
        }
        let cors = route.cors.as_ref().map(|cors| Cors {
            origins: cors.origins.clone(),
            methods: cors.methods.clone(),
            headers: cors.headers.clone(),
            credentials: *cors.credentials.get_ref(),
            max_age: cors.max_age,
        });
        if let Some(cors) = &cors {
            for text in cors.origins.iter().chain(&cors.methods).chain(&cors.headers) {
                self.check_value(&self.key("cors"), text)?;
            }
        }
        let rate = match &route.rate {
            None => None,
            Some(rate) => Some(self.rate(rate)?),
        };
        let auth = match &route.auth {
            None => None,
            Some(auth) => Some(self.auth(auth)?),
        };
        Ok(Rules { access, auth, rate, headers, cache_control, cors, error_pages })
    }

    /// A value that ends up in a field.
    fn check_value<T>(&self, place: &Spanned<T>, value: &str) -> Result<(), ConfigError> {
        match value.chars().any(char::is_control) {
            true => Err(self.mistake(place, "the value has a control character")),
            false => Ok(()),
        }
    }

    fn rate(&self, rate: &settings::RateSettings) -> Result<Rate, ConfigError> {
        let per_second = *rate.per_second.get_ref();
        if !(0.001..=1e6).contains(&per_second) {
            return Err(self.mistake(&rate.per_second, "not a number from 0.001 to 1000000"));
        }
        match *rate.burst.get_ref() {
            0 => Err(self.mistake(&rate.burst, "a burst of 0 would refuse every request")),
            burst => Ok(Rate { per_second, burst }),
        }
    }

    fn auth(&self, auth: &settings::AuthSettings) -> Result<BasicAuth, ConfigError> {
        let Some(users) = &auth.users else {
            return Err(
                self.mistake(&self.key("auth"), "`auth` needs `users`, the file with names and hashes")
            );
        };
        if auth.realm.get_ref().contains(['"', '\\']) {
            return Err(self.mistake(&auth.realm, "the realm has a quotation mark or a backslash"));
        }
        self.check_value(&auth.realm, auth.realm.get_ref())?;
        let path = self.path(users.get_ref());
        let text = (self.passwords)(&path)
            .map_err(|error| self.mistake(users, format!("{}: {error}", path.display())))?;
        let read = Users::read(&text)
            .map_err(|(line, why)| self.mistake(users, format!("{}:{line}: {why}", path.display())))?;
        Ok(BasicAuth { realm: auth.realm.get_ref().clone(), users: read })
    }
}

fn default_types() -> Vec<String> {
    ["text/*", "application/{javascript,json,xml,wasm}*", "image/svg+xml*", "*/*+{json,xml}*"]
        .map(String::from)
        .to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<(Settings, RouteTable), ConfigError> {
        read("f", text, "/base".as_ref(), |_| Ok("a:$6$x$y".to_owned()))
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        let route = |rest: &str| format!("[[route]]\n{rest}\n");
        let directory = |rest: &str| format!("[[route]]\ndirectory = 'd'\n{rest}\n");
        for (text, place, words) in [
            ("lisen = []".to_owned(), (1, 1), "did you mean `listen`?"),
            ("listen = 8080".into(), (1, 10), "expected"),
            ("[limits]\nidle = 'x'".into(), (2, 8), "expected"),
            ("[limits]\nidle = -1".into(), (2, 1), "not a number of seconds"),
            ("a = [".into(), (1, 6), ""),
            ("directory = 'd'".into(), (1, 1), "it belongs into [[route]]"),
            ("".into(), (0, 0), "there is no route"),
            (route("path = 'x'\nanswer = 404"), (2, 8), "does not begin with /"),
            (route("path = '/x'"), (1, 1), "no action"),
            (route("directory = 'd'\ncgi = 'c'"), (1, 1), "two actions, `directory` and `cgi`"),
            (route("redirect = '/$pth'"), (2, 12), "$pth"),
            (route("redirect = '/'\nstatus = 200"), (3, 10), "not 301"),
            (route("proxy = 'http://a'"), (2, 9), "is no address"),
            (route("proxy = 'a:0'"), (2, 9), "is no address"),
            (route("page = 'staus'"), (2, 8), "did you mean \"status\"?"),
            (route("answer = 404\nlisting = 'html'"), (3, 11), "`listing` belongs to `directory`"),
            (route("fastcgi = 'unix:/run/x'"), (2, 11), "needs `root`"),
            (directory("listing = 'yes'"), (3, 11), "is not \"off\""),
            (directory("allow = ['10.0.0.1/8']"), (3, 10), "bits set"),
            (directory("headers = { 'a b' = 'c' }"), (3, 13), "name of a field"),
            (directory("headers = { Date = 'c' }"), (3, 13), "server itself"),
            (directory("rate = { burst = 0 }"), (3, 18), "burst of 0"),
            (directory("auth = { realm = 'x' }"), (3, 1), "needs `users`"),
            (directory("cors = { credentials = true }"), (3, 24), "name the `origins`"),
            (directory("cache_control = [{ path = '{', value = 'x' }]"), (3, 27), "{ without a }"),
            ("[[host]]\nnames = ['a b']\n".into(), (2, 10), "not a name"),
        ] {
            let mistake = parsed(&text).map(|_| ()).unwrap_err();
            assert!(mistake.message.contains(words), "{text}: {mistake}");
            assert_eq!((mistake.line, mistake.column), place, "{text}: {mistake}");
        }
    }

    #[test]
    fn a_whole_configuration() {
        let text = "
            listen = ['80']
            [[host]]
            names = ['Example.org', '*.example.net']
            [[host.route]]
            path = '/old/'
            redirect = '/new$rest'
            [[host.route]]
            path = '/api/'
            proxy = ['127.0.0.1:1', 'unix:/run/x']
            rewrite = '/v1$rest'
            [[host.route]]
            directory = 'www'
            index = ['index.htm']
            listing = 'html'
            try_files = ['$rest', '/index.html']
            compress = true
            language = 'EN'
            error_pages = 'errors'
            auth = { users = 'users' }
            headers = { X-A = 'b', Server = '' }
            [[route]]
            answer = 404
        ";
        let (settings, table) = parsed(text).unwrap();
        assert_eq!(settings.listen.get_ref()[0].get_ref(), "80");
        let matched = table.route(b"EXAMPLE.org:80", b"/old/x").unwrap();
        assert!(matches!(&matched.route.action, RouteAction::Redirect { status: 301, .. }));
        assert_eq!((matched.rest(b"/old/x"), matched.route.line), (&b"/x"[..], 5));
        let matched = table.route(b"a.example.net", b"/x").unwrap();
        let RouteAction::Directory(directory) = &matched.route.action else { panic!() };
        assert_eq!(directory.path, Path::new("/base/www"));
        assert_eq!(directory.language.as_deref(), Some("en"));
        assert_eq!(matched.route.rules.headers.len(), 2);
        assert_eq!(matched.route.rules.auth.as_ref().unwrap().users.len(), 1);
        assert!(matches!(table.route(b"other", b"/x").unwrap().route.action, RouteAction::Answer(404)));
    }
}
