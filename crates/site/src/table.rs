//! [`RouteTable`]: which route a request takes, and what the route does.
//!
//! Both front ends (`read.rs`, `mighty.rs`) make one. A server asks it for each request, with the
//! host that the request names and the canonical path (`path.rs`). The host is selected first, then
//! the first route of that host with a pattern that matches.

use crate::behind::{Balancing, GatewayTerms, HealthRule, ProgramRule};
use crate::pattern::{Glob, PathPattern};
use crate::rules::Rules;
use crate::template::Template;
use std::fmt;
use std::path::PathBuf;

/// The routes of a server.
#[derive(Clone, Debug, Default)]
pub struct RouteTable {
    /// The hosts, in the order in which they are asked.
    pub hosts: Vec<Host>,
    /// The status for a request that no route takes: 404, and 412 with Mighttpd's files.
    pub unmatched: u16,
}

/// The routes of one or several host names.
#[derive(Clone, Debug, Default)]
pub struct Host {
    /// Names in lower case; `*` for every name, `*.example.org` for every name below
    /// `example.org`. Without a name it is every host.
    pub names: Vec<String>,
    /// The routes, in the order in which they are asked.
    pub routes: Vec<Route>,
}

/// One route.
#[derive(Clone, Debug)]
pub struct Route {
    /// The paths that it takes.
    pub pattern: PathPattern,
    /// What is done with their requests.
    pub action: RouteAction,
    /// What holds besides.
    pub rules: Rules,
    /// The line of the configuration on which it begins, for messages.
    pub line: usize,
}

/// What is done with a request.
#[derive(Clone, Debug, PartialEq)]
pub enum RouteAction {
    /// A file of a directory is sent.
    Directory(ServedDirectory),
    /// A file of this zip archive is sent.
    Archive(PathBuf),
    /// The client is sent elsewhere.
    Redirect {
        /// Where to.
        to: Template,
        /// The status: 301, 302, 303, 307 or 308.
        status: u16,
    },
    /// The request is passed to one of these servers, each `host:port` or `unix:path`.
    Proxy {
        /// The servers.
        upstreams: Vec<String>,
        /// The path at the server.
        path: Template,
        /// How one of them is chosen.
        balancing: Balancing,
        /// Which of them get requests.
        health: HealthRule,
        /// How long one may take.
        times: GatewayTerms,
    },
    /// A program of this directory is run.
    Cgi {
        /// The directory of the programs.
        directory: PathBuf,
        /// The program for the path of a directory.
        index: Option<String>,
        /// How many run at once, and for how long.
        programs: ProgramRule,
    },
    /// The request is passed to a FastCGI server at this address, `host:port` or `unix:path`.
    FastCgi {
        /// The address.
        address: String,
        /// The directory of the scripts.
        root: PathBuf,
        /// The script for the path of a directory.
        index: String,
        /// How long the server may take.
        times: GatewayTerms,
    },
    /// The live page of the server's state.
    Status,
    /// The counters for Prometheus.
    Metrics,
    /// The reply is this status with its page.
    Answer(u16),
}

/// How the files of a directory are sent.
#[derive(Clone, Debug, PartialEq)]
pub struct ServedDirectory {
    /// The directory.
    pub path: PathBuf,
    /// The names that stand for a directory, in the order in which they are tried.
    pub index: Vec<String>,
    /// Whether a directory without such a name is listed.
    pub listing: Listing,
    /// The names to try for a path, in this order; the path itself if it is empty. The variables
    /// are those of a template: `$rest` is the path below the directory.
    pub try_files: Vec<Template>,
    /// Whether `name.br`, `name.zst` and `name.gz` are sent for `name` to clients that accept them.
    pub precompressed: bool,
    /// How files are compressed that have no such neighbour.
    pub compression: Option<Compression>,
    /// The language of the files without a suffix: `name.html.ja` is sent to a client that prefers
    /// Japanese. Without it no file is selected by language.
    pub language: Option<String>,
}

impl ServedDirectory {
    /// The directory at `path`, with `index.html` and nothing else.
    pub fn new(path: PathBuf) -> ServedDirectory {
        ServedDirectory {
            path,
            index: vec!["index.html".to_owned()],
            listing: Listing::Off,
            try_files: Vec::new(),
            precompressed: false,
            compression: None,
            language: None,
        }
    }
}

/// How a directory is listed that has no index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Listing {
    /// It is not: 403.
    #[default]
    Off,
    /// As a page; as JSON for a client that prefers it.
    Html,
    /// As JSON.
    Json,
}

/// Which files are compressed before they are sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Compression {
    /// Media types, as globs.
    pub types: Vec<Glob>,
    /// Shorter files are sent as they are.
    pub bytes_min: u64,
    /// Longer files are sent as they are.
    pub bytes_max: u64,
}

/// The route of a request.
#[derive(Clone, Copy, Debug)]
pub struct RouteMatch<'t> {
    /// The route.
    pub route: &'t Route,
    /// The places of host and route in the table.
    pub place: (usize, usize),
    /// Whether the path is the route's directory without its `/`: the reply is a redirect.
    pub lacks_slash: bool,
}

impl RouteMatch<'_> {
    /// The part of `path` that the route's pattern leaves, with a `/` in front.
    pub fn rest<'p>(&self, path: &'p [u8]) -> &'p [u8] {
        &path[self.route.pattern.prefix_len().min(path.len())..]
    }
}

impl RouteTable {
    /// The route that a request takes. `host` is the host that it names, with or without a port,
    /// and `path` is canonical.
    ///
    /// # Complexity
    /// Linear in the number of hosts, and of the routes of the host. No allocation.
    ///
    /// # Paper
    /// \[Mighty\] "Using Mighttpd 2": a path-routing file.
    pub fn route(&self, host: &[u8], path: &[u8]) -> Option<RouteMatch<'_>> {
        let host = without_port(host);
        let place = self.hosts.iter().position(|one| one.is_named(host))?;
        let routes = &self.hosts[place].routes;
        let found = routes
            .iter()
            .position(|route| route.pattern.is_match(path) || route.pattern.lacks_slash(path))?;
        let route = &routes[found];
        Some(RouteMatch { route, place: (place, found), lacks_slash: route.pattern.lacks_slash(path) })
    }

    /// All routes, with the names of their hosts.
    pub fn routes(&self) -> impl Iterator<Item = (&Host, &Route)> {
        self.hosts.iter().flat_map(|host| host.routes.iter().map(move |route| (host, route)))
    }
}

impl Host {
    /// Whether a request for `host`, without a port, is for it.
    fn is_named(&self, host: &[u8]) -> bool {
        self.names.is_empty()
            || self.names.iter().any(|name| match name.strip_prefix('*') {
                Some("") => true,
                Some(end) => {
                    host.len() > end.len()
                        && host[host.len() - end.len()..].eq_ignore_ascii_case(end.as_bytes())
                }
                None => host.eq_ignore_ascii_case(name.as_bytes()),
            })
    }
}

impl fmt::Display for RouteAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RouteAction::Directory(directory) => write!(f, "directory {}", directory.path.display()),
            RouteAction::Redirect { to, status } => write!(f, "redirect {status} to {}", to.as_str()),
            RouteAction::Archive(path) => write!(f, "archive {}", path.display()),
            RouteAction::Proxy { upstreams, path, .. } => {
                write!(f, "proxy to {} {}", upstreams.join(" "), path.as_str())
            }
            RouteAction::Cgi { directory, .. } => write!(f, "CGI in {}", directory.display()),
            RouteAction::FastCgi { address, root, .. } => {
                write!(f, "FastCGI at {address}, {}", root.display())
            }
            RouteAction::Status => f.write_str("status page"),
            RouteAction::Metrics => f.write_str("metrics"),
            RouteAction::Answer(status) => write!(f, "answer {status}"),
        }
    }
}

/// `host` without a port and without a dot at its end.
pub fn without_port(host: &[u8]) -> &[u8] {
    let digits = host.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let name = match host[..host.len() - digits].strip_suffix(b":") {
        Some(name) => name,
        None => host,
    };
    name.strip_suffix(b".").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn route(pattern: &str, status: u16) -> Route {
        let action = RouteAction::Answer(status);
        Route { pattern: pattern.parse().unwrap(), action, rules: Rules::default(), line: 0 }
    }

    fn answer(table: &RouteTable, host: &str, path: &str) -> Option<(u16, bool)> {
        let matched = table.route(host.as_bytes(), path.as_bytes())?;
        let RouteAction::Answer(status) = matched.route.action else { unreachable!() };
        Some((status, matched.lacks_slash))
    }

    #[test]
    fn hosts() {
        let host = |names: &[&str], status| Host {
            names: names.iter().map(|name| name.to_string()).collect(),
            routes: vec![route("/", status)],
        };
        let hosts = vec![host(&["a.example", "b.example"], 1), host(&["*.example"], 2), host(&[], 3)];
        let table = RouteTable { hosts, unmatched: 404 };
        for (name, status) in [
            ("A.Example", 1),
            ("b.example:8080", 1),
            ("b.example.", 1),
            ("c.example", 2),
            ("c.d.example", 2),
            ("example", 3),
            ("", 3),
            ("[::1]:80", 3),
        ] {
            assert_eq!(answer(&table, name, "/"), Some((status, false)), "{name}");
        }
    }

    /// The slow obvious version: what the documentation of patterns says, in its words.
    fn obvious(routes: &[(String, u16)], path: &str) -> Option<(u16, bool)> {
        for (pattern, status) in routes {
            if pattern.ends_with('/') {
                if path.starts_with(pattern.as_str()) {
                    return Some((*status, false));
                }
                if format!("{path}/") == *pattern {
                    return Some((*status, true));
                }
            } else if path == pattern {
                return Some((*status, false));
            }
        }
        None
    }

    proptest! {
        #[test]
        fn the_first_match_wins(
            patterns in prop::collection::vec("(/[ab]{1,2}){0,2}/?", 0..6),
            path in "(/[ab]{1,2}){0,3}/?",
        ) {
            let with_slash = |text: String| if text.is_empty() { "/".to_owned() } else { text };
            let path = with_slash(path);
            let routes: Vec<(String, u16)> =
                patterns.into_iter().map(with_slash).zip(1..).collect();
            let host = Host {
                names: vec![],
                routes: routes.iter().map(|(pattern, status)| route(pattern, *status)).collect(),
            };
            let table = RouteTable { hosts: vec![host], unmatched: 404 };
            prop_assert_eq!(answer(&table, "a", &path), obvious(&routes, &path));
        }
    }
}
