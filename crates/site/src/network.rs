//! [`Network`]: a range of addresses such as `192.0.2.0/24`. `rules.rs` and the PROXY protocol ask
//! whether an address lies in one.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// The addresses that begin with the same bits.
///
/// An IPv4 address and the same address mapped to IPv6 (`::ffff:192.0.2.7`) are one address,
/// because a socket of both families reports the second form.
///
/// # Examples
/// ```
/// use selvedge_site::Network;
/// let inside: Network = "10.0.0.0/8".parse()?;
/// assert!(inside.contains("10.9.8.7".parse().unwrap()));
/// assert!(inside.contains("::ffff:10.9.8.7".parse().unwrap()));
/// assert!(!inside.contains("11.0.0.0".parse().unwrap()));
/// # Ok::<(), selvedge_site::NetworkError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Network {
    bits: u128,
    len: u32,
    is_v4: bool,
}

/// A text that is no network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkError(String);

impl fmt::Display for NetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NetworkError {}

/// The address as the 128 bits of an IPv6 address.
pub(crate) fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().into(),
        IpAddr::V6(address) => address.into(),
    }
}

impl Network {
    /// Whether `address` lies in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        (bits(address) ^ self.bits) & mask(self.len) == 0
    }
}

fn mask(len: u32) -> u128 {
    if len == 0 { 0 } else { u128::MAX << (128 - len) }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Network, NetworkError> {
        let wrong = |why: &str| NetworkError(format!("{text:?} {why}"));
        if text == "all" {
            return Ok(Network { bits: 0, len: 0, is_v4: false });
        }
        let (address, len) = match text.split_once('/') {
            Some((address, len)) => (address, Some(len)),
            None => (text, None),
        };
        let address: IpAddr = address
            .parse()
            .map_err(|_| wrong("is no address, no network such as 192.0.2.0/24, and not \"all\""))?;
        let own = if address.is_ipv4() { 32 } else { 128 };
        let len = match len {
            None => own,
            Some(len) => len
                .parse()
                .ok()
                .filter(|len| *len <= own)
                .ok_or_else(|| wrong(&format!("has no number from 0 to {own} behind the /")))?,
        };
        let len = len + (128 - own);
        let bits = bits(address);
        match bits & !mask(len) {
            0 => Ok(Network { bits, len, is_v4: address.is_ipv4() }),
            _ => Err(wrong("has bits set behind the length of the network")),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = Ipv6Addr::from(self.bits);
        match address.to_ipv4_mapped().filter(|_| self.is_v4) {
            Some(address) => write!(f, "{address}/{}", self.len - 96),
            None => write!(f, "{address}/{}", self.len),
        }
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts() {
        for text in ["192.0.2.0/24", "2001:db8::/32", "127.0.0.1/32", "::1/128", "0.0.0.0/0", "::/0"] {
            assert_eq!(text.parse::<Network>().unwrap().to_string(), text);
        }
        assert_eq!("127.0.0.1".parse::<Network>().unwrap().to_string(), "127.0.0.1/32");
        for wrong in ["", "localhost", "1.2.3.4/33", "1.2.3.4/24", "::1/129", "1.2.3.0/", "::/x"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
        let v4: Network = "0.0.0.0/0".parse().unwrap();
        assert!(
            !v4.contains("2001:db8::1".parse().unwrap()) && v4.contains("::ffff:1.2.3.4".parse().unwrap())
        );
        assert!("all".parse::<Network>().unwrap().contains("2001:db8::1".parse().unwrap()));
    }

    proptest! {
        #[test]
        fn an_address_lies_in_it_if_its_first_bits_are_equal(a: u32, b: u32, len in 0u32..=32) {
            let kept = if len == 0 { 0 } else { a >> (32 - len) << (32 - len) };
            let network: Network =
                format!("{}/{len}", std::net::Ipv4Addr::from(kept)).parse().unwrap();
            let equal = (0..len).all(|bit| a >> (31 - bit) & 1 == b >> (31 - bit) & 1);
            prop_assert_eq!(network.contains(std::net::Ipv4Addr::from(b).into()), equal);
        }
    }
}
