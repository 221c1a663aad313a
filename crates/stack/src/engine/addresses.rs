//! The addresses and ports of a stack: which are bound, and which are free.

use super::StackEngine;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};

/// The ports of sockets that asked for none.
pub(super) const EPHEMERAL: std::ops::RangeInclusive<u16> = PICKED_PORT..=65535;
/// The first of them.
pub(crate) const PICKED_PORT: u16 = 49152;

fn in_use(address: SocketAddr) -> io::Error {
    io::Error::new(io::ErrorKind::AddrInUse, format!("{address} is in use"))
}

impl StackEngine {
    /// The address at which `address` is served: itself, or that of all addresses.
    pub(super) fn bound<T>(
        &self,
        table: &BTreeMap<SocketAddr, T>,
        address: SocketAddr,
    ) -> Option<SocketAddr> {
        let all = SocketAddr::new(all_addresses(address), address.port());
        [address, all].into_iter().find(|address| table.contains_key(address))
    }

    /// `address` with a port, if it is the stack's and free.
    pub(super) fn free_address(
        &mut self,
        address: SocketAddr,
        taken: impl Fn(&StackEngine, SocketAddr) -> bool,
    ) -> io::Result<SocketAddr> {
        if !address.ip().is_unspecified() && !self.interface.has_ip_addr(address.ip()) {
            let message = format!("{address} is no address of the stack");
            return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, message));
        }
        if address.port() == 0 {
            return self.free_port(address.ip(), taken);
        }
        if taken(self, address) { Err(in_use(address)) } else { Ok(address) }
    }

    /// The address from which the stack talks to a peer: the peer's own if it is the stack, that in
    /// the peer's network, or that which smoltcp finds.
    pub(crate) fn source_for(&self, peer: SocketAddr) -> io::Result<IpAddr> {
        let to = peer.ip().into();
        let mut networks = self.options.addresses.iter();
        if self.interface.has_ip_addr(to) {
            return Ok(peer.ip());
        }
        if let Some(network) = networks.find(|network| network.contains_addr(&to)) {
            return Ok(network.address().into());
        }
        let source = self.interface.get_source_address(&to);
        let Some(source) = source.filter(|source| self.interface.has_ip_addr(*source)) else {
            let message = format!("{peer}: the stack has no address of this family");
            return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, message));
        };
        let ip = peer.ip();
        let for_many = ip.is_multicast() || ip == IpAddr::V4(std::net::Ipv4Addr::BROADCAST);
        if !for_many && !self.options.gateways.iter().any(|gateway| gateway.is_ipv4() == peer.is_ipv4()) {
            let message = format!("{peer}: the stack has no gateway to its network");
            return Err(io::Error::new(io::ErrorKind::NetworkUnreachable, message));
        }
        Ok(source.into())
    }

    pub(super) fn free_port(
        &mut self,
        address: IpAddr,
        taken: impl Fn(&StackEngine, SocketAddr) -> bool,
    ) -> io::Result<SocketAddr> {
        for _ in EPHEMERAL {
            let at = SocketAddr::new(address, self.next_port);
            self.next_port = self.next_port.checked_add(1).unwrap_or(*EPHEMERAL.start());
            if !taken(self, at) {
                return Ok(at);
            }
        }
        Err(in_use(SocketAddr::new(address, 0)))
    }
}

fn all_addresses(address: SocketAddr) -> IpAddr {
    match address {
        SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    }
}
