//! Addresses of data connections as commands and replies have them: PORT and 227 of RFC 959, EPRT
//! and 229 of RFC 2428.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Why the argument of EPRT or EPSV names no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressError {
    Syntax,
    /// A network protocol that the control connection does not use: reply 522.
    Protocol,
}

/// The number of an address's protocol in EPRT and EPSV.
pub(crate) fn protocol(address: IpAddr) -> u8 {
    if address.is_ipv4() { 1 } else { 2 }
}

/// A number in decimal digits alone: no sign, no space.
fn number<N: std::str::FromStr>(text: &str) -> Option<N> {
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_digits)
}

/// The address in `h1,h2,h3,h4,p1,p2`.
pub(crate) fn parse_port(argument: &[u8]) -> Option<SocketAddr> {
    let text = std::str::from_utf8(argument).ok()?;
    let numbers: Vec<u8> = text.split(',').map(number).collect::<Option<_>>()?;
    let &[a, b, c, d, high, low] = &numbers[..] else { return None };
    Some((Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([high, low])).into())
}

/// The address in `|1|192.0.2.1|5282|` or `|2|2001:db8::1|5282|`, with any printable character in
/// place of `|`.
///
/// # Errors
/// See [`AddressError`].
pub(crate) fn parse_eprt(argument: &[u8]) -> Result<SocketAddr, AddressError> {
    let text = std::str::from_utf8(argument).map_err(|_| AddressError::Syntax)?;
    let delimiter = text.chars().next().filter(char::is_ascii_graphic).ok_or(AddressError::Syntax)?;
    let parts: Vec<&str> = text.split(delimiter).collect();
    let &["", family, host, port, ""] = &parts[..] else { return Err(AddressError::Syntax) };
    let family: u16 = number(family).ok_or(AddressError::Syntax)?;
    if !matches!(family, 1 | 2) {
        return Err(AddressError::Protocol);
    }
    let host: IpAddr = host.parse().map_err(|_| AddressError::Syntax)?;
    let port = number(port).ok_or(AddressError::Syntax)?;
    if u16::from(protocol(host)) != family {
        return Err(AddressError::Syntax);
    }
    Ok(SocketAddr::new(host, port))
}

/// The text of the reply 227.
pub(crate) fn passive(host: Ipv4Addr, port: u16) -> String {
    let [a, b, c, d] = host.octets();
    let [high, low] = port.to_be_bytes();
    format!("Entering Passive Mode ({a},{b},{c},{d},{high},{low}).")
}

/// The text of the reply 229.
pub(crate) fn extended_passive(port: u16) -> String {
    format!("Entering Extended Passive Mode (|||{port}|)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_of_port() {
        assert_eq!(parse_port(b"192,0,2,1,20,162"), Some("192.0.2.1:5282".parse().unwrap()));
        for wrong in [
            "",
            "192,0,2,1,20",
            "192,0,2,1,20,162,1",
            "192,0,2,256,1,1",
            "+1,0,2,1,1,1",
            "1, 0,2,1,1,1",
            "1,,2,1,1,1",
        ] {
            assert_eq!(parse_port(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(passive(Ipv4Addr::new(192, 0, 2, 1), 5282), "Entering Passive Mode (192,0,2,1,20,162).");
    }

    #[test]
    fn addresses_of_eprt() {
        assert_eq!(parse_eprt(b"|1|192.0.2.1|5282|"), Ok("192.0.2.1:5282".parse().unwrap()));
        assert_eq!(parse_eprt(b"!2!2001:db8::1!5282!"), Ok("[2001:db8::1]:5282".parse().unwrap()));
        assert_eq!(parse_eprt(b"|3|x|1|"), Err(AddressError::Protocol));
        for wrong in [
            "",
            "|",
            "|1|192.0.2.1|5282",
            "|1|::1|1|",
            "|2|1.2.3.4|1|",
            "|1|1.2.3.4|65536|",
            "|1|1.2.3.4|1|x",
            " 1 1.2.3.4 1 ",
        ] {
            assert_eq!(parse_eprt(wrong.as_bytes()), Err(AddressError::Syntax), "{wrong}");
        }
        assert_eq!(extended_passive(5282), "Entering Extended Passive Mode (|||5282|)");
    }

    proptest! {
        #[test]
        fn any_bytes(argument in prop::collection::vec(prop_oneof![Just(b'|'), Just(b','), 0x30u8..0x3a, any::<u8>()], 0..30)) {
            // Neither fails, and what they accept is an address.
            let _ = (parse_port(&argument), parse_eprt(&argument));
        }

        #[test]
        fn a_port_that_was_printed_is_read(host: [u8; 4], port: u16) {
            let text = passive(host.into(), port);
            let inner = text.split(['(', ')']).nth(1).unwrap();
            prop_assert_eq!(parse_port(inner.as_bytes()), Some((Ipv4Addr::from(host), port).into()));
        }
    }
}
