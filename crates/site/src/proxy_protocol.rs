//! The PROXY protocol, versions 1 and 2: the head that a load balancer sends in front of a
//! connection, and that names the client's address.
//!
//! [`parse`] does no I/O. A server believes a head only from addresses that its configuration
//! names, because any client can send one.

use std::net::{IpAddr, SocketAddr};

/// The longest line of version 1, with its CRLF.
const LINE_MAX: usize = 107;

/// The bytes with which version 2 begins.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// The longest head of version 2 that is taken: the addresses and some extensions.
pub const HEAD_MAX: usize = 16 + 2048;

/// What a head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyHead {
    /// The client's address; `None` if the balancer itself asks (`LOCAL`), or does not know it
    /// (`UNKNOWN`): then the address of the connection is the client's.
    pub client: Option<SocketAddr>,
    /// Bytes of the head.
    pub len: usize,
}

/// The bytes are no head: the connection is to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoProxyHead;

/// Parses the head at the front of `bytes`. `Ok(None)` asks for more bytes.
///
/// # Errors
/// If the bytes cannot become a head, or it is longer than [`HEAD_MAX`].
///
/// # Examples
/// ```
/// use selvedge_site::proxy_protocol::parse;
/// let head = parse(b"PROXY TCP4 192.0.2.7 10.0.0.1 51000 80\r\nGET / ").unwrap().unwrap();
/// assert_eq!((head.client, head.len), ("192.0.2.7:51000".parse().ok(), 40));
/// ```
pub fn parse(bytes: &[u8]) -> Result<Option<ProxyHead>, NoProxyHead> {
    match bytes.first() {
        None => Ok(None),
        Some(b'P') => line(bytes),
        Some(_) => binary(bytes),
    }
}

fn line(bytes: &[u8]) -> Result<Option<ProxyHead>, NoProxyHead> {
    const START: &[u8] = b"PROXY ";
    let common = bytes.len().min(START.len());
    if bytes[..common] != START[..common] {
        return Err(NoProxyHead);
    }
    let window = &bytes[..bytes.len().min(LINE_MAX)];
    let Some(end) = window.iter().position(|&byte| byte == b'\n') else {
        return if window.len() == LINE_MAX { Err(NoProxyHead) } else { Ok(None) };
    };
    let line = window[START.len()..end].strip_suffix(b"\r").ok_or(NoProxyHead)?;
    let line = std::str::from_utf8(line).map_err(|_| NoProxyHead)?;
    let len = end + 1;
    let mut words = line.split(' ');
    let is_v4 = match words.next() {
        Some("UNKNOWN") => return Ok(Some(ProxyHead { client: None, len })),
        Some("TCP4") => true,
        Some("TCP6") => false,
        _ => return Err(NoProxyHead),
    };
    let mut address = || words.next()?.parse::<IpAddr>().ok().filter(|one| one.is_ipv4() == is_v4);
    let (client, _) = (address().ok_or(NoProxyHead)?, address().ok_or(NoProxyHead)?);
    let mut port = || {
        let digits = words.next().filter(|word| word.bytes().all(|byte| byte.is_ascii_digit()))?;
        digits.parse::<u16>().ok()
    };
    let (port, _) = (port().ok_or(NoProxyHead)?, port().ok_or(NoProxyHead)?);
    match words.next() {
        None => Ok(Some(ProxyHead { client: Some(SocketAddr::new(client, port)), len })),
        Some(_) => Err(NoProxyHead),
    }
}

fn binary(bytes: &[u8]) -> Result<Option<ProxyHead>, NoProxyHead> {
    let common = bytes.len().min(SIGNATURE.len());
    if bytes[..common] != SIGNATURE[..common] {
        return Err(NoProxyHead);
    }
    let Some(&[command, family, high, low]) = bytes.get(12..16).and_then(|four| four.first_chunk()) else {
        return Ok(None);
    };
    let len = 16 + usize::from(u16::from_be_bytes([high, low]));
    if len > HEAD_MAX || command >> 4 != 2 {
        return Err(NoProxyHead);
    }
    let Some(body) = bytes.get(16..len) else { return Ok(None) };
    let client = match (command & 15, family) {
        // LOCAL: the balancer's own check.
        (0, _) => None,
        (1, 0x11 | 0x12) => {
            let address: [u8; 4] = *body.first_chunk().ok_or(NoProxyHead)?;
            let port = *body.get(8..12).and_then(|ports| ports.first_chunk()).ok_or(NoProxyHead)?;
            Some(SocketAddr::new(IpAddr::from(address), u16::from_be_bytes(port)))
        }
        (1, 0x21 | 0x22) => {
            let address: [u8; 16] = *body.first_chunk().ok_or(NoProxyHead)?;
            let port = *body.get(32..36).and_then(|ports| ports.first_chunk()).ok_or(NoProxyHead)?;
            Some(SocketAddr::new(IpAddr::from(address), u16::from_be_bytes(port)))
        }
        // Unspecified, and Unix sockets, which have no address that a log could name.
        (1, 0x00 | 0x31 | 0x32) => None,
        _ => return Err(NoProxyHead),
    };
    Ok(Some(ProxyHead { client, len }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v2(command: u8, family: u8, body: &[u8]) -> Vec<u8> {
        let mut head = SIGNATURE.to_vec();
        head.extend_from_slice(&[command, family]);
        head.extend_from_slice(&(body.len() as u16).to_be_bytes());
        head.extend_from_slice(body);
        head
    }

    #[test]
    fn heads() {
        let v4 = [192, 0, 2, 7, 10, 0, 0, 1, 0xc7, 0x38, 0, 80];
        let mut v6 = [0u8; 36];
        v6[15] = 1;
        v6[33] = 80;
        let extended = [&v4[..], &[0x04, 0, 2, 0, 0]].concat();
        for (head, client) in [
            (b"PROXY TCP4 192.0.2.7 10.0.0.1 51000 80\r\n".to_vec(), Some("192.0.2.7:51000")),
            (b"PROXY TCP6 2001:db8::1 ::1 1 2\r\n".to_vec(), Some("[2001:db8::1]:1")),
            (b"PROXY UNKNOWN\r\n".to_vec(), None),
            (b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n".to_vec(), None),
            (v2(0x21, 0x11, &v4), Some("192.0.2.7:51000")),
            (v2(0x21, 0x11, &extended), Some("192.0.2.7:51000")),
            (v2(0x21, 0x21, &v6), Some("[::1]:80")),
            (v2(0x20, 0x00, &[]), None),
            (v2(0x21, 0x31, &[0; 216]), None),
        ] {
            let client = client.map(|text| text.parse().unwrap());
            let expected = ProxyHead { client, len: head.len() };
            assert_eq!(parse(&[&head[..], b"GET /"].concat()), Ok(Some(expected)));
            for cut in 0..head.len() {
                assert_eq!(parse(&head[..cut]), Ok(None), "{cut} bytes of {}", head.escape_ascii());
            }
        }
    }

    #[test]
    fn what_is_no_head() {
        for bytes in [
            &b"GET / HTTP/1.1\r\n"[..],
            b"PROXX",
            b"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n",
            b"PROXY TCP4 ::1 ::1 1 2\r\n",
            b"PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n",
            b"PROXY TCP4 1.2.3.4 1.2.3.4 1 +2\r\n",
            b"PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3\r\n",
            b"PROXY \r\n",
            &b"PROXY UNKNOWN ".iter().copied().chain([b'x'; 200]).collect::<Vec<_>>(),
            &v2(0x11, 0x11, &[0; 12]),
            &v2(0x22, 0x11, &[0; 12]),
            &v2(0x21, 0x11, &[0; 11]),
            &v2(0x21, 0x11, &[0; 3000]),
        ] {
            assert_eq!(parse(bytes), Err(NoProxyHead), "{}", bytes.escape_ascii());
        }
    }
}
