//! The meta-variables of a request (RFC 3875 §4.1): made without I/O.
//!
//! `cgi.rs` puts them into the environment of a program, and `fastcgi` into the parameters of a
//! request.

use crate::forwarding::{ADDRESS_BYTES, put_address};
use http::HeaderValue;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST};
use http::request::Parts;
pub use selvedge_handler::Authenticated;
use selvedge_handler::PlainRequest;
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The program that a path names, and the rest of the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProgramTarget {
    /// The three texts, one behind the other.
    texts: Vec<u8>,
    file_bytes: usize,
    name_bytes: usize,
}

impl ProgramTarget {
    /// The target with the concatenations of the parts of each text.
    pub(crate) fn new(file: [&[u8]; 3], name: [&[u8]; 3], info: [&[u8]; 2]) -> ProgramTarget {
        let bytes = |parts: &[&[u8]]| parts.iter().map(|part| part.len()).sum::<usize>();
        let (file_bytes, name_bytes) = (bytes(&file), bytes(&name));
        let mut texts = Vec::with_capacity(file_bytes + name_bytes + bytes(&info));
        for part in file.iter().chain(&name).chain(&info) {
            texts.extend_from_slice(part);
        }
        ProgramTarget { texts, file_bytes, name_bytes }
    }

    /// The program's file, below the directory.
    pub(crate) fn file(&self) -> &[u8] {
        &self.texts[..self.file_bytes]
    }

    /// The part of the path that names the program, decoded: `SCRIPT_NAME`.
    pub(crate) fn name(&self) -> &[u8] {
        &self.texts[self.file_bytes..][..self.name_bytes]
    }

    /// The part behind it, decoded: `PATH_INFO`. Empty if there is none.
    pub(crate) fn info(&self) -> &[u8] {
        &self.texts[self.file_bytes + self.name_bytes..]
    }
}

/// What the variables say about the server.
#[derive(Clone, Debug)]
pub(crate) struct ServerNames {
    /// The port; `None` for the port that the client names.
    pub(crate) port: Option<u16>,
    pub(crate) software: String,
    /// Variables that stand in the place of those of the same name.
    own: Vec<(String, String)>,
}

impl ServerNames {
    /// Adds a variable to those of all requests, or replaces one.
    pub(crate) fn set(&mut self, name: String, value: String) {
        self.own.retain(|(other, _)| *other != name);
        self.own.push((name, value));
    }

    /// Calls `set` for the variables that have no value of the server's own: a program would see
    /// two values otherwise, one of them the client's.
    fn unless_own(&self, mut set: impl FnMut(&str, &[u8])) -> impl FnMut(&str, &[u8]) {
        move |name, value| {
            if self.own.iter().all(|(own, _)| own != name) {
                set(name, value);
            }
        }
    }
}

impl Default for ServerNames {
    fn default() -> ServerNames {
        let software = concat!("selvedge/", env!("CARGO_PKG_VERSION")).into();
        ServerNames { port: None, software, own: Vec::new() }
    }
}

/// A request as the variables tell it.
pub(crate) struct ToldRequest<'r> {
    method: &'r str,
    protocol: &'static str,
    /// Path and query.
    target: &'r str,
    query: &'r str,
    host: &'r [u8],
    peer: Option<IpAddr>,
    authenticated: Option<&'r Authenticated>,
    content_type: Option<&'r [u8]>,
    /// The length of the body, if it is told.
    length: Option<u64>,
    fields: ToldFields<'r>,
}

enum ToldFields<'r> {
    Owned(&'r Parts),
    Lines(&'r PlainRequest<'r>),
}

/// The names of fields that were seen, as far as 64 bits can tell them apart.
#[derive(Default)]
struct SeenNames(u64);

impl SeenNames {
    /// Whether a name may have been seen before. It is seen from now on.
    fn may_have(&mut self, name: &[u8]) -> bool {
        // Names of one length differ in their last letter more often than in their first.
        let last = name.last().map_or(0, |byte| usize::from(byte | 0x20));
        let mark = 1 << ((name.len() * 7 + last) % 64);
        let may_have = self.0 & mark != 0;
        self.0 |= mark;
        may_have
    }
}

impl<'r> ToldRequest<'r> {
    /// A request from `peer` with a body of `length` bytes, or without one.
    pub(crate) fn of(parts: &'r Parts, peer: Option<IpAddr>, length: Option<u64>) -> ToldRequest<'r> {
        let is_old = parts.version == http::Version::HTTP_10;
        ToldRequest {
            method: parts.method.as_str(),
            protocol: if is_old { "HTTP/1.0" } else { "HTTP/1.1" },
            target: parts.uri.path_and_query().map_or("/", |target| target.as_str()),
            query: parts.uri.query().unwrap_or_default(),
            host: parts.headers.get(HOST).map_or(&b"localhost"[..], HeaderValue::as_bytes),
            peer,
            authenticated: parts.extensions.get(),
            content_type: parts.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes),
            length: length.filter(|&length| length > 0 || parts.headers.contains_key(CONTENT_LENGTH)),
            fields: ToldFields::Owned(parts),
        }
    }

    /// A request that stays bytes and has this query, if each name of its fields comes once.
    pub(crate) fn of_plain(request: &'r PlainRequest<'r>, query: Option<&'r str>) -> Option<ToldRequest<'r>> {
        let (mut content_type, mut names_length) = (None, false);
        let mut seen = SeenNames::default();
        for (at, (name, value)) in request.fields().enumerate() {
            let mut before = request.fields().take(at);
            if seen.may_have(name) && before.any(|(other, _)| other.eq_ignore_ascii_case(name)) {
                return None;
            }
            match name.len() {
                12 if name.eq_ignore_ascii_case(b"content-type") => content_type = Some(value),
                14 if name.eq_ignore_ascii_case(b"content-length") => names_length = true,
                _ => {}
            }
        }
        let length = request.content().len() as u64;
        Some(ToldRequest {
            method: request.method().as_str(),
            protocol: "HTTP/1.1",
            target: std::str::from_utf8(request.target()).ok()?,
            query: query.unwrap_or_default(),
            host: request.host(),
            peer: request.peer(),
            authenticated: None,
            content_type,
            length: (length > 0 || names_length).then_some(length),
            fields: ToldFields::Lines(request),
        })
    }
}

impl ToldRequest<'_> {
    /// About the number of bytes that the variables of the request for `target` take.
    pub(crate) fn variable_bytes(&self, target: &ProgramTarget) -> usize {
        let lines = if let ToldFields::Lines(plain) = self.fields { plain.lines().len() } else { 0 };
        USUAL_VARIABLE_BYTES + 2 * (self.target.len() + target.file().len() + self.host.len()) + lines
    }
}

/// The number of bytes that the variables of a request take besides its own parts.
const USUAL_VARIABLE_BYTES: usize = 448;

/// The variables of a request for the program that `target` names in the directory `root`: `set`
/// is called with the name and the value of each.
pub(crate) fn each_variable(
    request: &ToldRequest<'_>,
    target: &ProgramTarget,
    root: &Path,
    server: &ServerNames,
    mut set: impl FnMut(&str, &[u8]),
) {
    each_fixed_variable(root, server, &mut set);
    each_variable_of(request, target, root, server, set);
}

/// The variables that all requests for the directory `root` share.
pub(crate) fn each_fixed_variable(root: &Path, server: &ServerNames, mut set: impl FnMut(&str, &[u8])) {
    for (name, value) in &server.own {
        set(name, value.as_bytes());
    }
    let mut set = server.unless_own(set);
    set("GATEWAY_INTERFACE", b"CGI/1.1");
    set("SERVER_SOFTWARE", server.software.as_bytes());
    if let Some(port) = server.port {
        set("SERVER_PORT", port.to_string().as_bytes());
    }
    set("REQUEST_SCHEME", b"http");
    set("DOCUMENT_ROOT", root.as_os_str().as_bytes());
    // PHP runs nothing without it, if it was built to be careful.
    set("REDIRECT_STATUS", b"200");
}

/// The variables of one request, besides the [variables of all](each_fixed_variable).
pub(crate) fn each_variable_of(
    request: &ToldRequest<'_>,
    target: &ProgramTarget,
    root: &Path,
    server: &ServerNames,
    set: impl FnMut(&str, &[u8]),
) {
    let mut set = server.unless_own(set);
    set("SERVER_PROTOCOL", request.protocol.as_bytes());
    let (name, named_port) = split_host(request.host);
    set("SERVER_NAME", name);
    if server.port.is_none() {
        set("SERVER_PORT", named_port.unwrap_or(b"80"));
    }
    set("REQUEST_METHOD", request.method.as_bytes());
    set("REQUEST_URI", request.target.as_bytes());
    set("QUERY_STRING", request.query.as_bytes());
    set("SCRIPT_NAME", target.name());
    set("SCRIPT_FILENAME", target.file());
    if !target.info().is_empty() {
        set("PATH_INFO", target.info());
        set("PATH_TRANSLATED", &[root.as_os_str().as_bytes(), target.info()].concat());
    }
    let mut address = Vec::with_capacity(ADDRESS_BYTES);
    match request.peer {
        Some(_) => put_address(request.peer, &mut address),
        None => address.extend_from_slice(b"unix:"),
    }
    set("REMOTE_ADDR", &address);
    // The name is not looked up, because that takes time; the standard allows the address.
    set("REMOTE_HOST", &address);
    if let Some(Authenticated { scheme, user }) = request.authenticated {
        set("AUTH_TYPE", scheme.as_bytes());
        set("REMOTE_USER", user.as_bytes());
    }
    if let Some(length) = request.length {
        set("CONTENT_LENGTH", length.to_string().as_bytes());
    }
    if let Some(kind) = request.content_type {
        set("CONTENT_TYPE", kind);
    }
    match request.fields {
        ToldFields::Owned(parts) => each_field(parts, set),
        ToldFields::Lines(plain) => each_line(plain, set),
    }
}

/// Whether no variable tells the field `name`, which is in lower case.
///
/// A name with `_` would be mistaken for another with `-`. A program takes `HTTP_PROXY` for a
/// setting of its own. Secrets are the server's.
fn is_hidden(name: &str) -> bool {
    name.contains('_')
        || matches!(
            name,
            "proxy"
                | "connection"
                | "content-length"
                | "content-type"
                | "keep-alive"
                | "te"
                | "transfer-encoding"
                | "upgrade"
                | "trailer"
        )
        || name.starts_with("proxy-")
}

/// As [`each_field`] for a request that stays bytes, in which each name comes once.
fn each_line(request: &PlainRequest<'_>, mut set: impl FnMut(&str, &[u8])) {
    let (mut name, mut variable) = (String::new(), String::new());
    for (token, value) in request.fields() {
        if token.eq_ignore_ascii_case(b"host") {
            continue;
        }
        // A parser has found that it is a token.
        let Ok(token) = std::str::from_utf8(token) else { continue };
        name.clear();
        name.push_str(token);
        name.make_ascii_lowercase();
        if !is_hidden(&name) {
            put_variable(&name, &mut variable);
            set(&variable, value);
        }
    }
    // What the client asked for, whatever the field says.
    set("HTTP_HOST", request.host());
}

/// Makes `variable` the name of the variable for a field.
fn put_variable(name: &str, variable: &mut String) {
    variable.clear();
    variable.push_str("HTTP");
    for part in name.split('-') {
        variable.push('_');
        variable.push_str(part);
    }
    variable.make_ascii_uppercase();
}

/// Calls `set` with `HTTP_*`: one variable for each name of a field.
fn each_field(parts: &Parts, mut set: impl FnMut(&str, &[u8])) {
    let mut variable = String::new();
    for name in parts.headers.keys() {
        let is_proof = *name == AUTHORIZATION && parts.extensions.get::<Authenticated>().is_some();
        if is_proof || is_hidden(name.as_str()) {
            continue;
        }
        put_variable(name.as_str(), &mut variable);
        let mut values = parts.headers.get_all(name).iter().map(HeaderValue::as_bytes);
        let (first, rest) = (values.next().unwrap_or_default(), values);
        let mut rest = rest.peekable();
        if rest.peek().is_none() {
            set(&variable, first);
            continue;
        }
        let between: &[u8] = if *name == COOKIE { b"; " } else { b", " };
        let all: Vec<_> = std::iter::once(first).chain(rest).collect();
        set(&variable, &all.join(between));
    }
}

/// Host and port of `host [":" port]`.
fn split_host(host: &[u8]) -> (&[u8], Option<&[u8]>) {
    let colon = host.iter().rposition(|&byte| byte == b':');
    match colon {
        // A colon within the brackets of an IPv6 address separates no port.
        Some(colon) if !host[colon..].contains(&b']') => {
            let port = &host[colon + 1..];
            (&host[..colon], Some(port).filter(|port| !port.is_empty()))
        }
        _ => (host, None),
    }
}

/// The words of a query without `=` (RFC 3875 §4.4), which are a program's arguments. There are
/// none if one of them cannot be an argument, or could be taken for an option.
pub(crate) fn search_words(query: Option<&str>) -> Vec<Vec<u8>> {
    let Some(query) = query.filter(|query| !query.is_empty() && !query.contains('=')) else {
        return Vec::new();
    };
    let words: Option<Vec<_>> = query.split('+').map(decoded).collect();
    let is_argument = |word: &Vec<u8>| !word.is_empty() && word[0] != b'-' && !word.contains(&0);
    words.filter(|words| words.iter().all(is_argument)).unwrap_or_default()
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let mut digit = || char::from(bytes.next()?).to_digit(16);
            let (high, low) = (digit()?, digit()?);
            decoded.push((high << 4 | low) as u8);
        } else {
            decoded.push(byte);
        }
    }
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn of(request: http::request::Builder, length: Option<u64>) -> Vec<String> {
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let target = ProgramTarget::new([b"/srv", b"/", b"a b"], [b"/cgi", b"/", b"a b"], [b"", b"/i"]);
        let peer = Some("10.0.0.9".parse().unwrap());
        let mut lines = Vec::new();
        let server = ServerNames::default();
        let told = ToldRequest::of(&parts, peer, length);
        each_variable(&told, &target, Path::new("/srv"), &server, |name, value| {
            if name != "SERVER_SOFTWARE" {
                lines.push(format!("{name}={}", std::str::from_utf8(value).unwrap()));
            }
        });
        lines.sort();
        lines
    }

    #[test]
    fn all_variables() {
        let request = Request::post("/cgi/a%20b/i?x=y&z")
            .header("Host", "[::1]:8080")
            .header("Content-Type", "text/plain")
            .header("Content-Length", "3")
            .header("Accept", "a")
            .header("Accept", "b")
            .header("Cookie", "c")
            .header("Cookie", "d")
            .header("Proxy", "evil")
            .header("X_Y", "ambiguous")
            .header("Connection", "close")
            .header("Authorization", "secret")
            .extension(Authenticated { scheme: "Basic".into(), user: "ada".into() });
        assert_eq!(
            of(request, Some(3)),
            [
                "AUTH_TYPE=Basic",
                "CONTENT_LENGTH=3",
                "CONTENT_TYPE=text/plain",
                "DOCUMENT_ROOT=/srv",
                "GATEWAY_INTERFACE=CGI/1.1",
                "HTTP_ACCEPT=a, b",
                "HTTP_COOKIE=c; d",
                "HTTP_HOST=[::1]:8080",
                "PATH_INFO=/i",
                "PATH_TRANSLATED=/srv/i",
                "QUERY_STRING=x=y&z",
                "REDIRECT_STATUS=200",
                "REMOTE_ADDR=10.0.0.9",
                "REMOTE_HOST=10.0.0.9",
                "REMOTE_USER=ada",
                "REQUEST_METHOD=POST",
                "REQUEST_SCHEME=http",
                "REQUEST_URI=/cgi/a%20b/i?x=y&z",
                "SCRIPT_FILENAME=/srv/a b",
                "SCRIPT_NAME=/cgi/a b",
                "SERVER_NAME=[::1]",
                "SERVER_PORT=8080",
                "SERVER_PROTOCOL=HTTP/1.1",
            ]
        );
    }

    #[test]
    fn what_is_not_there_is_not_set_or_empty() {
        let lines = of(Request::get("/").header("Host", "a"), Some(0));
        assert!(lines.contains(&"QUERY_STRING=".to_owned()) && lines.contains(&"SERVER_PORT=80".to_owned()));
        for absent in ["CONTENT_LENGTH", "CONTENT_TYPE", "AUTH_TYPE", "REMOTE_USER", "REMOTE_IDENT"] {
            assert!(!lines.iter().any(|line| line.starts_with(absent)), "{absent}");
        }
    }

    #[test]
    fn words_of_a_search() {
        let words = |query: &str| {
            let words = search_words(Some(query));
            words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(words("warp+weft%20loom"), ["warp", "weft loom"]);
        for none in ["a=b", "", "-s", "a+-s", "a+%2ds", "a++b", "%4", "%zz", "a%00"] {
            assert!(words(none).is_empty(), "{none}");
        }
        assert!(search_words(None).is_empty());
    }
}
