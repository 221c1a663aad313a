//! The fields of a message that passes through: which go on, and which are added. No I/O.
//!
//! `proxy.rs` calls [`cleaned`] for both directions and [`Hop::add_to`] for requests; `cgi` and
//! `fastcgi` call [`cleaned`] for what a program answers.

use http::header::{CONNECTION, FORWARDED, HOST, HeaderMap, HeaderName, HeaderValue, TE, UPGRADE, VIA};
use http::{StatusCode, Version};
use std::fmt::Write;
use std::net::IpAddr;

/// The fields that are about one connection (RFC 9110 §7.6.1), besides what `Connection` names.
/// `Upgrade` and `TE` are among them; [`cleaned`] knows when they go on all the same.
const OF_A_CONNECTION: [&str; 10] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-authentication-info",
    "http2-settings",
];

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The fields that go on to the next connection. `Upgrade` goes on if `Connection` names it, and
/// `TE` as far as it is `trailers`, because the next connection is asked for the same.
///
/// An upgrade to HTTP/2 stays behind: on such a connection a client would send requests that no
/// handler sees.
pub(crate) fn cleaned(fields: &HeaderMap) -> HeaderMap {
    let named = |name: &HeaderName| {
        let options = fields.get_all(CONNECTION).into_iter();
        let mut options = options.flat_map(|value| value.as_bytes().split(|&byte| byte == b','));
        options.any(|option| option.trim_ascii().eq_ignore_ascii_case(name.as_str().as_bytes()))
    };
    let names_any = fields.contains_key(CONNECTION);
    let mut kept = HeaderMap::with_capacity(fields.len() + 5);
    for (name, value) in fields {
        let is_kept = if *name == UPGRADE {
            names_any && named(name) && !is_http(value.as_bytes())
        } else {
            // What frames the message and what it is for is never taken away by a client's word.
            let is_sacred = *name == HOST || *name == http::header::CONTENT_LENGTH;
            !OF_A_CONNECTION.contains(&name.as_str()) && (is_sacred || !names_any || !named(name))
        };
        if is_kept {
            kept.append(name, value.clone());
        }
    }
    let takes_trailers = fields.get_all(TE).iter().any(|value| {
        let mut codings = value.as_bytes().split(|&byte| byte == b',');
        codings.any(|coding| coding.trim_ascii().eq_ignore_ascii_case(b"trailers"))
    });
    if takes_trailers {
        kept.insert(TE, HeaderValue::from_static("trailers"));
    }
    kept
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
    /// The name in `Via`.
    pub(crate) name: String,
    /// Whether what earlier proxies said is kept. Otherwise any client could claim an address.
    pub(crate) trusts: bool,
}

impl Hop {
    /// Adds `Forwarded`, `X-Forwarded-*` and `Via` to the fields of a request from `peer`.
    pub(crate) fn add_to(&self, fields: &mut HeaderMap, peer: Option<IpAddr>, version: Version) {
        if !self.trusts {
            for name in [FORWARDED, X_FORWARDED_FOR, X_FORWARDED_HOST, X_FORWARDED_PROTO] {
                fields.remove(name);
            }
        }
        let host = fields.get(HOST).cloned();
        let mut forwarded = String::from("for=");
        match peer {
            Some(IpAddr::V4(address)) => write!(forwarded, "{address}"),
            Some(IpAddr::V6(address)) => write!(forwarded, "\"[{address}]\""),
            None => write!(forwarded, "unknown"),
        }
        .expect("a string takes all text");
        if let Some(host) = host.as_ref().and_then(|host| host.to_str().ok()) {
            let quoted = host.replace('\\', "\\\\").replace('"', "\\\"");
            write!(forwarded, ";host=\"{quoted}\"").expect("a string takes all text");
        }
        forwarded.push_str(";proto=http");
        append_to_list(fields, FORWARDED, &forwarded);
        if let Some(peer) = peer {
            append_to_list(fields, X_FORWARDED_FOR, &peer.to_string());
        }
        if let Some(host) = host
            && !fields.contains_key(X_FORWARDED_HOST)
        {
            fields.insert(X_FORWARDED_HOST, host);
        }
        fields.entry(X_FORWARDED_PROTO).or_insert(HeaderValue::from_static("http"));
        self.add_via(fields, version);
    }

    /// Adds `Via` to the fields of a message that came in `version`.
    pub(crate) fn add_via(&self, fields: &mut HeaderMap, version: Version) {
        let version = if version == Version::HTTP_10 { "1.0" } else { "1.1" };
        append_to_list(fields, VIA, &format!("{version} {}", self.name));
    }
}

/// Appends an element to the list that is the value of a field.
fn append_to_list(fields: &mut HeaderMap, name: HeaderName, element: &str) {
    let mut all = Vec::new();
    for value in fields.get_all(&name) {
        all.extend_from_slice(value.as_bytes());
        all.extend_from_slice(b", ");
    }
    all.extend_from_slice(element.as_bytes());
    if let Ok(value) = HeaderValue::from_bytes(&all) {
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
        let got = cleaned(&fields(&[
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
    fn an_upgrade_and_trailers_go_on_if_they_are_asked_for() {
        let got = cleaned(&fields(&[
            ("connection", "Upgrade, TE"),
            ("upgrade", "websocket"),
            ("te", "gzip, trailers"),
        ]));
        assert_eq!(text(&got), ["te: trailers", "upgrade: websocket"]);
    }

    #[test]
    fn an_upgrade_to_http_2_stays_behind() {
        for protocols in ["h2c", "websocket, H2C", "HTTP/2.0"] {
            let got = cleaned(&fields(&[
                ("connection", "Upgrade, HTTP2-Settings"),
                ("upgrade", protocols),
                ("http2-settings", "AAMAAABkAAQCAAAAAAIAAAAA"),
            ]));
            assert!(got.is_empty(), "{got:?}");
        }
    }

    #[test]
    fn a_proxy_names_its_client_and_itself() {
        let hop = Hop { name: "loom".into(), trusts: true };
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
        let hop = Hop { name: "loom".into(), trusts: false };
        let mut got =
            fields(&[("x-forwarded-for", "10.0.0.1"), ("forwarded", "for=a"), ("x-forwarded-host", "b")]);
        hop.add_to(&mut got, None, Version::HTTP_10);
        assert_eq!(
            text(&got),
            ["forwarded: for=unknown;proto=http", "via: 1.0 loom", "x-forwarded-proto: http"]
        );
    }
}
