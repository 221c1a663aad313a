//! The options of sockets, in the form that the calls take ([`set_option`](super::set_option) and
//! [`set_datagram_option`](super::set_datagram_option)), and that a simulated kernel gets.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// The options of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SocketOption {
    /// `SO_REUSEADDR`
    ReuseAddress(bool),
    /// `SO_REUSEPORT`
    ReusePort(bool),
    /// `IPV6_V6ONLY`
    OnlyV6(bool),
    /// `TCP_NODELAY`
    NoDelay(bool),
    /// `SO_LINGER`
    Linger(Option<Duration>),
}

/// The options of a datagram socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DatagramOption {
    /// `SO_BROADCAST`
    Broadcast(bool),
    /// `IP_TTL`
    Ttl(u32),
    /// `IP_ADD_MEMBERSHIP`, with the address of the interface.
    JoinV4(Ipv4Addr, Ipv4Addr),
    /// `IP_DROP_MEMBERSHIP`
    LeaveV4(Ipv4Addr, Ipv4Addr),
    /// `IPV6_ADD_MEMBERSHIP`, with the index of the interface.
    JoinV6(Ipv6Addr, u32),
    /// `IPV6_DROP_MEMBERSHIP`
    LeaveV6(Ipv6Addr, u32),
    /// `IP_MULTICAST_TTL`
    MulticastTtlV4(u32),
    /// `IPV6_MULTICAST_HOPS`
    MulticastHopsV6(u32),
    /// `IP_MULTICAST_LOOP`
    MulticastLoopV4(bool),
    /// `IPV6_MULTICAST_LOOP`
    MulticastLoopV6(bool),
}
