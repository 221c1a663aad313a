//! [`Network`] and [`Networks`]: which clients may use the resolver. `options.rs` reads them from
//! the command line, and the server asks for each query.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// The networks of hosts that are near: this host, private and link-local addresses.
const LOCAL: [&str; 8] = [
    "127.0.0.0/8",
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "169.254.0.0/16",
    "::1/128",
    "fc00::/7",
    "fe80::/10",
];

/// All addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

/// The text is no network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkError(String);

impl fmt::Display for NetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is no network such as 10.0.0.0/8 or fd00::/8", self.0)
    }
}

impl std::error::Error for NetworkError {}

impl FromStr for Network {
    type Err = NetworkError;

    /// `ADDRESS/BITS`, or an address alone.
    fn from_str(text: &str) -> Result<Network, NetworkError> {
        let error = || NetworkError(text.to_string());
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| error())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), |bits| bits.parse().map_err(|_| error()))?;
        if bits > most {
            return Err(error());
        }
        Ok(Network { address, bits })
    }
}

impl Network {
    /// Whether an address is one of the network's. An IPv4 address that an IPv6 socket shows as
    /// `::ffff:a.b.c.d` counts as the IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                same_start(network.to_bits().into(), address.to_bits().into(), 32 - u32::from(self.bits))
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                same_start(network.to_bits(), address.to_bits(), 128 - u32::from(self.bits))
            }
            _ => false,
        }
    }
}

/// Whether two numbers are equal but for their last bits.
fn same_start(one: u128, other: u128, last: u32) -> bool {
    (one ^ other).checked_shr(last).unwrap_or(0) == 0
}

/// Several networks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Networks(Vec<Network>);

impl Networks {
    /// These networks and no others.
    pub fn new(networks: Vec<Network>) -> Networks {
        Networks(networks)
    }

    /// This host, private networks, and hosts on the same link.
    pub fn local() -> Networks {
        Networks(LOCAL.iter().map(|text| text.parse().expect("a network")).collect())
    }

    /// Whether one of the networks has the address.
    pub fn contain(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }
}

/// The part of an address by which clients are counted together: the first 24 bits of an IPv4
/// address, the first 56 of an IPv6 address, which a site usually has as a whole.
pub fn prefix(address: IpAddr) -> Ipv6Addr {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            std::net::Ipv4Addr::new(a, b, c, 0).to_ipv6_mapped()
        }
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 72)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(network: &str, address: &str) -> bool {
        network.parse::<Network>().unwrap().contains(address.parse().unwrap())
    }

    #[test]
    fn the_first_bits_decide() {
        assert!(contains("172.16.0.0/12", "172.31.255.255"));
        assert!(!contains("172.16.0.0/12", "172.32.0.0"));
        assert!(contains("0.0.0.0/0", "203.0.113.9"));
        assert!(contains("::/0", "2001:db8::1"));
        assert!(!contains("::/0", "10.0.0.1"));
        assert!(contains("10.1.2.3", "10.1.2.3") && !contains("10.1.2.3", "10.1.2.2"));
        assert!(contains("fe80::/10", "febf::1") && !contains("fe80::/10", "fec0::1"));
        assert!(contains("10.0.0.0/8", "::ffff:10.9.9.9"));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "10.0.0.0/33", "::/129", "10.0.0/8", "10.0.0.0/-1", "10.0.0.0/8/9"] {
            assert_eq!(text.parse::<Network>(), Err(NetworkError(text.into())), "{text}");
        }
    }

    #[test]
    fn near_hosts_are_local() {
        let local = Networks::local();
        for address in ["127.0.0.53", "10.1.1.1", "192.168.7.7", "::1", "fd12::1", "fe80::1"] {
            assert!(local.contain(address.parse().unwrap()), "{address}");
        }
        for address in ["203.0.113.1", "2001:db8::1", "172.32.0.1", "11.0.0.1"] {
            assert!(!local.contain(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn neighbours_have_one_prefix() {
        let of = |address: &str| prefix(address.parse().unwrap());
        assert_eq!(of("203.0.113.1"), of("203.0.113.254"));
        assert_ne!(of("203.0.113.1"), of("203.0.114.1"));
        assert_eq!(of("2001:db8:0:1::1"), of("2001:db8:0:fe::2"));
        assert_ne!(of("2001:db8:0:100::1"), of("2001:db8:0:200::1"));
    }
}
