//! The fields of a message that passes through: which go on, and which are added. No I/O.
//!
//! `proxy.rs` calls [`cleaned`] for both directions and [`Hop::add_to`] for requests; `cgi` and
//! `fastcgi` call [`cleaned`] for what a program answers.

use bytes::Bytes;
use http::header::{
    CONNECTION, CONTENT_LENGTH, FORWARDED, HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING, UPGRADE, VIA,
};
use http::{StatusCode, Version};
use selvedge_http::response::put_number;
use std::net::IpAddr;
use std::ops::Range;

/// The fields that are about one connection (RFC 9110 §7.6.1), besides what `Connection` names.
/// `Upgrade` and `TE` are among them; [`cleaned`] knows when they go on all the same.
const OF_A_CONNECTION: [HeaderName; 10] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy-authentication-info"),
    HeaderName::from_static("http2-settings"),
];

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The fields in which earlier proxies speak of a client.
const OF_EARLIER_PROXIES: [HeaderName; 4] = [FORWARDED, X_FORWARDED_FOR, X_FORWARDED_HOST, X_FORWARDED_PROTO];

/// The fields that go on to the next connection. `Upgrade` goes on if `Connection` names it, and
/// `TE` as far as it is `trailers`, because the next connection is asked for the same.
///
/// An upgrade to HTTP/2 stays behind: on such a connection a client would send requests that no
/// handler sees.
pub(crate) fn cleaned(mut fields: HeaderMap) -> HeaderMap {
    // Many messages have no such field, and are not touched.
    if !fields.keys().any(|name| OF_A_CONNECTION.contains(name)) {
        return fields;
    }
    let lists = fields.get_all(CONNECTION).into_iter();
    let options = lists.flat_map(|value| value.as_bytes().split(|&byte| byte == b','));
    // An option that is no name of a field names none.
    let named: Vec<_> =
        options.filter_map(|option| HeaderName::from_bytes(option.trim_ascii()).ok()).collect();
    let upgrades =
        named.contains(&UPGRADE) && fields.get_all(UPGRADE).iter().all(|value| !is_http(value.as_bytes()));
    let takes_trailers = fields.get_all(TE).iter().any(|value| {
        let mut codings = value.as_bytes().split(|&byte| byte == b',');
        codings.any(|coding| coding.trim_ascii().eq_ignore_ascii_case(b"trailers"))
    });
    for name in OF_A_CONNECTION.iter().chain(&named) {
        // What frames the message and what it is for is never taken away by a client's word.
        let is_sacred = *name == HOST || *name == CONTENT_LENGTH;
        let goes_on = upgrades && *name == UPGRADE;
        if !is_sacred && !goes_on {
            fields.remove(name);
        }
    }
    if takes_trailers {
        fields.insert(TE, HeaderValue::from_static("trailers"));
    }
    fields
}

/// What becomes of a line of a head that goes on as lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineFate {
    /// The line goes on as it is.
    GoesOn,
    StaysBehind,
    /// The head must be taken apart.
    Unclear,
}

/// What [`cleaned`] does to a field of a message without a body of its own framing, and without an
/// upgrade. Lines that frame a message stay behind, because the writer of the head writes them.
pub(crate) fn fate_of_line(name: &[u8], value: &[u8]) -> LineFate {
    let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
    // By the length, because each line of each message comes here. A test holds it against the
    // list.
    match name.len() {
        2 if is(b"te") => LineFate::Unclear,
        7 if is(b"upgrade") => LineFate::Unclear,
        10 if is(b"connection") => {
            let mut options = value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
            let is_known = |option: &[u8]| {
                [&b"close"[..], b"keep-alive", b""].iter().any(|known| option.eq_ignore_ascii_case(known))
            };
            if options.all(is_known) { LineFate::StaysBehind } else { LineFate::Unclear }
        }
        10 if is(b"keep-alive") => LineFate::StaysBehind,
        14 if is(b"content-length") || is(b"http2-settings") => LineFate::StaysBehind,
        16 if is(b"proxy-connection") => LineFate::StaysBehind,
        17 if is(b"transfer-encoding") => LineFate::Unclear,
        18 if is(b"proxy-authenticate") => LineFate::StaysBehind,
        19 if is(b"proxy-authorization") => LineFate::StaysBehind,
        25 if is(b"proxy-authentication-info") => LineFate::StaysBehind,
        _ => LineFate::GoesOn,
    }
}

/// Appends the line of a field, which lies in `lines`. Most lines are copied in one piece.
pub(crate) fn put_line(lines: &[u8], name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    let start = name.as_ptr().addr() - lines.as_ptr().addr();
    let (colon, end) = (start + name.len(), start + name.len() + ": ".len() + value.len());
    if let Some(line) = lines.get(start..end + "\r\n".len())
        && lines[colon..].starts_with(b": ")
        && line.ends_with(b"\r\n")
        && (value.is_empty() || value.as_ptr() == lines[colon + ": ".len()..].as_ptr())
    {
        out.extend_from_slice(line);
        return;
    }
    for part in [name, b": ", value, b"\r\n"] {
        out.extend_from_slice(part);
    }
}

/// Whether a field says what earlier proxies said of a client.
pub(crate) fn is_of_earlier_proxies(name: &[u8]) -> bool {
    let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
    match name.len() {
        9 => is(b"forwarded"),
        15 => is(b"x-forwarded-for"),
        16 => is(b"x-forwarded-host"),
        17 => is(b"x-forwarded-proto"),
        _ => false,
    }
}

/// Whether a list of protocols has a version of HTTP.
fn is_http(protocols: &[u8]) -> bool {
    protocols.split(|&byte| byte == b',').any(|protocol| {
        let name = protocol.trim_ascii().to_ascii_lowercase();
        name.starts_with(b"h2") || name.starts_with(b"h3") || name.starts_with(b"http/")
    })
}

/// What a proxy says about itself and about its client.
#[derive(Clone, Debug)]
pub(crate) struct Hop {
    /// The element of `Via` for a message that came in HTTP/1.1.
    via: HeaderValue,
    /// Whether what earlier proxies said is kept. Otherwise any client could claim an address.
    pub(crate) trusts: bool,
}

impl Hop {
    /// A proxy that trusts its clients or does not, and names itself so in `Via`. `-` stands for a
    /// name that no field can have.
    pub(crate) fn new(name: &str, trusts: bool) -> Hop {
        let via = HeaderValue::try_from(format!("1.1 {name}"));
        Hop { via: via.unwrap_or(HeaderValue::from_static("1.1 -")), trusts }
    }

    /// Adds `Forwarded`, `X-Forwarded-*` and `Via` to the fields of a request from `peer`.
    pub(crate) fn add_to(&self, fields: &mut HeaderMap, peer: Option<IpAddr>, version: Version) {
        if !self.trusts {
            for name in &OF_EARLIER_PROXIES {
                fields.remove(name);
            }
        }
        let host = fields.get(HOST).cloned();
        let mut address = Vec::with_capacity(ADDRESS_BYTES);
        put_address(peer, &mut address);
        let mut forwarded = Vec::with_capacity(FORWARDED_BYTES);
        let named = host.as_ref().filter(|host| host.to_str().is_ok());
        put_forwarded(peer, named.map(HeaderValue::as_bytes), &mut forwarded);
        append_to_list(fields, FORWARDED, forwarded);
        if peer.is_some() {
            append_to_list(fields, X_FORWARDED_FOR, address);
        }
        if let Some(host) = host
            && !fields.contains_key(X_FORWARDED_HOST)
        {
            fields.insert(X_FORWARDED_HOST, host);
        }
        fields.entry(X_FORWARDED_PROTO).or_insert(HeaderValue::from_static("http"));
        self.add_via(fields, version);
    }

    /// Appends the lines that [`add_to`](Self::add_to) adds to a request of HTTP/1.1 for `host`,
    /// which is one host and in ASCII. The lines before must say nothing of the client.
    pub(crate) fn put_lines(&self, peer: Option<IpAddr>, host: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(b"forwarded: ");
        let address = put_forwarded(peer, Some(host), out);
        if peer.is_some() {
            out.extend_from_slice(b"\r\nx-forwarded-for: ");
            out.extend_from_within(address);
        }
        out.extend_from_slice(b"\r\nx-forwarded-host: ");
        out.extend_from_slice(host);
        out.extend_from_slice(b"\r\nx-forwarded-proto: http\r\n");
        self.put_via(out);
    }

    /// Appends the line `Via` for a message that came in HTTP/1.1. Lines of earlier proxies come
    /// before it.
    pub(crate) fn put_via(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"via: ");
        out.extend_from_slice(self.via.as_bytes());
        out.extend_from_slice(b"\r\n");
    }

    /// Adds `Via` to the fields of a message that came in `version`.
    pub(crate) fn add_via(&self, fields: &mut HeaderMap, version: Version) {
        if version != Version::HTTP_10 && !fields.contains_key(VIA) {
            fields.insert(VIA, self.via.clone());
            return;
        }
        let mut element = self.via.as_bytes().to_vec();
        if version == Version::HTTP_10 {
            element[..3].copy_from_slice(b"1.0");
        }
        append_to_list(fields, VIA, element);
    }
}

/// Room for the text of an address.
pub(crate) const ADDRESS_BYTES: usize = 40;

/// Room for the usual element of `Forwarded`.
const FORWARDED_BYTES: usize = 96;

/// Appends an element of `Forwarded` (RFC 7239). Returns where the address is in `out`.
fn put_forwarded(peer: Option<IpAddr>, host: Option<&[u8]>, out: &mut Vec<u8>) -> Range<usize> {
    let (before, behind) = match peer {
        Some(IpAddr::V6(_)) => ("for=\"[", "]\""),
        Some(IpAddr::V4(_)) => ("for=", ""),
        None => ("for=unknown", ""),
    };
    out.extend_from_slice(before.as_bytes());
    let start = out.len();
    put_address(peer, out);
    let address = start..out.len();
    out.extend_from_slice(behind.as_bytes());
    if let Some(host) = host {
        out.extend_from_slice(b";host=\"");
        for &byte in host {
            if matches!(byte, b'\\' | b'"') {
                out.push(b'\\');
            }
            out.push(byte);
        }
        out.push(b'"');
    }
    out.extend_from_slice(b";proto=http");
    address
}

/// Appends the text of an address, without the machinery of formatting where many clients are.
pub(crate) fn put_address(peer: Option<IpAddr>, out: &mut Vec<u8>) {
    match peer {
        Some(IpAddr::V4(address)) => {
            for (place, octet) in address.octets().into_iter().enumerate() {
                if place > 0 {
                    out.push(b'.');
                }
                put_number(u64::from(octet), out);
            }
        }
        Some(IpAddr::V6(address)) => out.extend_from_slice(address.to_string().as_bytes()),
        None => {}
    }
}

/// Appends an element to the list that is the value of a field.
fn append_to_list(fields: &mut HeaderMap, name: HeaderName, element: Vec<u8>) {
    let mut all = Vec::new();
    for value in fields.get_all(&name) {
        all.extend_from_slice(value.as_bytes());
        all.extend_from_slice(b", ");
    }
    let all = if all.is_empty() { element } else { [all, element].concat() };
    if let Ok(value) = HeaderValue::from_maybe_shared(Bytes::from(all)) {
        fields.insert(name, value);
    }
}

/// Whether an answer with this status may go on as an interim answer.
pub(crate) fn is_passed_on(status: StatusCode) -> bool {
    status.is_informational() && status.as_u16() >= 102
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut fields = HeaderMap::new();
        for (name, value) in lines {
            fields.append(*name, HeaderValue::from_static(value));
        }
        fields
    }

    fn text(fields: &HeaderMap) -> Vec<String> {
        let line =
            |(name, value): (&HeaderName, &HeaderValue)| format!("{name}: {}", value.to_str().unwrap());
        let mut lines: Vec<_> = fields.iter().map(line).collect();
        lines.sort();
        lines
    }

    #[test]
    fn fields_of_one_connection_stay_behind() {
        let got = cleaned(fields(&[
            ("connection", "close, X-Secret , upgrade-insecure, content-length, host"),
            ("connection", "keep-alive"),
            ("keep-alive", "5"),
            ("x-secret", "a"),
            ("te", "gzip"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "websocket"),
            ("proxy-authorization", "b"),
            ("content-length", "5"),
            ("host", "c"),
            ("a", "b"),
            ("a", "c"),
        ]));
        assert_eq!(text(&got), ["a: b", "a: c", "content-length: 5", "host: c"]);
    }

    #[test]
    fn lines_have_the_fate_of_fields() {
        for name in OF_A_CONNECTION.iter().chain([&CONTENT_LENGTH]) {
            let shouted = name.as_str().to_ascii_uppercase();
            for spelled in [name.as_str(), &shouted] {
                let fate = fate_of_line(spelled.as_bytes(), b"close");
                let is_unclear = [TE, TRANSFER_ENCODING, UPGRADE].contains(name);
                let expected = if is_unclear { LineFate::Unclear } else { LineFate::StaysBehind };
                assert_eq!(fate, expected, "{spelled}");
            }
        }
        for name in OF_EARLIER_PROXIES {
            assert!(is_of_earlier_proxies(name.as_str().to_ascii_uppercase().as_bytes()), "{name}");
        }
        for name in ["date", "server", "to", "content-type", "connections", "x-forwarded-foo", "forwarder"] {
            assert_eq!(fate_of_line(name.as_bytes(), b"close"), LineFate::GoesOn, "{name}");
            assert!(!is_of_earlier_proxies(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn an_upgrade_and_trailers_go_on_if_they_are_asked_for() {
        let got = cleaned(fields(&[
            ("connection", "Upgrade, TE"),
            ("upgrade", "websocket"),
            ("te", "gzip, trailers"),
        ]));
        assert_eq!(text(&got), ["te: trailers", "upgrade: websocket"]);
    }

    #[test]
    fn an_upgrade_to_http_2_stays_behind() {
        for protocols in ["h2c", "websocket, H2C", "HTTP/2.0"] {
            let got = cleaned(fields(&[
                ("connection", "Upgrade, HTTP2-Settings"),
                ("upgrade", protocols),
                ("http2-settings", "AAMAAABkAAQCAAAAAAIAAAAA"),
            ]));
            assert!(got.is_empty(), "{got:?}");
        }
    }

    #[test]
    fn a_proxy_names_its_client_and_itself() {
        let hop = Hop::new("loom", true);
        let mut got = fields(&[("host", "a:80"), ("x-forwarded-for", "10.0.0.1"), ("via", "1.0 first")]);
        hop.add_to(&mut got, Some("::1".parse().unwrap()), Version::HTTP_11);
        assert_eq!(
            text(&got),
            [
                "forwarded: for=\"[::1]\";host=\"a:80\";proto=http",
                "host: a:80",
                "via: 1.0 first, 1.1 loom",
                "x-forwarded-for: 10.0.0.1, ::1",
                "x-forwarded-host: a:80",
                "x-forwarded-proto: http",
            ]
        );
        let hop = Hop::new("loom", false);
        let mut got =
            fields(&[("x-forwarded-for", "10.0.0.1"), ("forwarded", "for=a"), ("x-forwarded-host", "b")]);
        hop.add_to(&mut got, None, Version::HTTP_10);
        assert_eq!(
            text(&got),
            ["forwarded: for=unknown;proto=http", "via: 1.0 loom", "x-forwarded-proto: http"]
        );
    }
}
