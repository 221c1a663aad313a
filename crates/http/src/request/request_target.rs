//! [`Target`]: the target of a request line, taken apart into authority, path and query (RFC 9112
//! §3.2). `request.rs` calls it for each request, and [`is_authority`] for a `Host` too.
//!
//! The path is still percent-encoded. `crate::target` makes a file name of it.

use crate::status::Status;
use std::net::Ipv6Addr;

/// A request target taken apart (RFC 9112 §3.2).
pub(super) struct Target<'b> {
    pub(super) authority: Option<&'b [u8]>,
    pub(super) path: &'b [u8],
    pub(super) query: Option<&'b [u8]>,
}

impl<'b> Target<'b> {
    pub(super) fn parse(method: &[u8], target: &'b [u8]) -> Result<Target<'b>, Status> {
        if method == b"CONNECT" {
            return Err(Status::NOT_IMPLEMENTED);
        }
        if target[0] == b'/' {
            return Target::path_and_query(None, target);
        }
        if target == b"*" {
            let asterisk = Target { authority: None, path: target, query: None };
            return if method == b"OPTIONS" { Ok(asterisk) } else { Err(Status::BAD_REQUEST) };
        }
        let rest = strip_scheme(target).ok_or(Status::BAD_REQUEST)?;
        let end = rest.iter().position(|byte| b"/?#".contains(byte)).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        if !is_authority(authority) {
            return Err(Status::BAD_REQUEST);
        }
        if rest.is_empty() && method == b"OPTIONS" {
            return Ok(Target { authority: Some(authority), path: b"*", query: None });
        }
        Target::path_and_query(Some(authority), rest)
    }

    #[inline]
    fn path_and_query(authority: Option<&'b [u8]>, target: &'b [u8]) -> Result<Target<'b>, Status> {
        // A client never sends a fragment (RFC 9110 §7.1), so no rule says whether it belongs to
        // the path.
        let mut mark = None;
        for (at, &byte) in target.iter().enumerate() {
            match byte {
                b'#' => return Err(Status::BAD_REQUEST),
                b'?' if mark.is_none() => mark = Some(at),
                _ => {}
            }
        }
        let (path, query) = match mark {
            Some(mark) => (&target[..mark], Some(&target[mark + 1..])),
            None => (target, None),
        };
        Ok(Target { authority, path: if path.is_empty() { b"/" } else { path }, query })
    }
}

fn strip_scheme(target: &[u8]) -> Option<&[u8]> {
    [&b"http://"[..], b"https://"].into_iter().find_map(|scheme| {
        let (found, rest) = target.split_at_checked(scheme.len())?;
        found.eq_ignore_ascii_case(scheme).then_some(rest)
    })
}

/// Whether `value` is `uri-host [":" port]` with a host that is not empty (RFC 9110 §7.2, RFC 3986
/// §3.2). Address literals of a future version of IP are not known here.
pub(super) fn is_authority(value: &[u8]) -> bool {
    let (host_ok, rest) = if let Some(literal) = value.strip_prefix(b"[") {
        let Some(end) = literal.iter().position(|&byte| byte == b']') else { return false };
        let address =
            std::str::from_utf8(&literal[..end]).ok().and_then(|text| text.parse::<Ipv6Addr>().ok());
        (address.is_some(), &literal[end + 1..])
    } else {
        let end = reg_name_len(value);
        (end > 0, &value[end..])
    };
    let port_ok = match rest {
        [] => true,
        [b':', port @ ..] => port.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    host_ok && port_ok
}

/// How many bytes at the front of `value` are a registered name or an address of IPv4.
fn reg_name_len(value: &[u8]) -> usize {
    const ALLOWED: [bool; 256] = {
        let mut allowed = [false; 256];
        let marks = b"-._~!$&'()*+,;=";
        let mut byte = 0;
        while byte < 128 {
            allowed[byte] = (byte as u8).is_ascii_alphanumeric();
            byte += 1;
        }
        let mut mark = 0;
        while mark < marks.len() {
            allowed[marks[mark] as usize] = true;
            mark += 1;
        }
        allowed
    };
    let is_digit = |at: usize| value.get(at).is_some_and(u8::is_ascii_hexdigit);
    let mut at = 0;
    while let Some(&byte) = value.get(at) {
        at += match byte {
            byte if ALLOWED[usize::from(byte)] => 1,
            b'%' if is_digit(at + 1) && is_digit(at + 2) => 3,
            _ => break,
        };
    }
    at
}
