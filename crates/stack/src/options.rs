//! What a stack is made with.

use crate::tcp_options::TcpOptions;
use smoltcp::wire::{EthernetAddress, IpCidr};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Addresses and limits of a [`Stack`](crate::Stack).
#[derive(Clone, Debug)]
pub struct StackOptions {
    pub(crate) hardware: EthernetAddress,
    pub(crate) addresses: Vec<IpCidr>,
    pub(crate) gateways: Vec<IpAddr>,
    pub(crate) tcp: Arc<TcpOptions>,
    pub(crate) linger: Duration,
    pub(crate) backlog: usize,
    pub(crate) half_open: usize,
    pub(crate) seed: u64,
    /// The key of the cookies.
    pub(crate) secret: u64,
}

impl Default for StackOptions {
    fn default() -> StackOptions {
        StackOptions::new()
    }
}

impl StackOptions {
    /// No address; connections as [`TcpOptions::new`] says; 128 connections that no thread has
    /// accepted, and 64 that are half open, for each listener; ten seconds to end.
    pub fn new() -> StackOptions {
        StackOptions {
            hardware: EthernetAddress([2, 0, 0, 0, 0, 1]),
            addresses: Vec::new(),
            gateways: Vec::new(),
            tcp: Arc::default(),
            linger: Duration::from_secs(10),
            backlog: 128,
            half_open: 64,
            seed: RandomState::new().hash_one(0),
            secret: RandomState::new().hash_one(1),
        }
    }

    /// The Ethernet address; `02:00:00:00:00:01` unless this is called.
    pub fn hardware(mut self, address: [u8; 6]) -> StackOptions {
        self.hardware = EthernetAddress(address);
        self
    }

    /// One more address, with the length of its network's prefix. A stack has four at most.
    ///
    /// # Errors
    /// `InvalidInput` if the prefix is too long, if the address is no address of one host, or if
    /// there are four already.
    pub fn address(mut self, address: IpAddr, prefix: u8) -> io::Result<StackOptions> {
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let one_host = !address.is_multicast() && !address.is_unspecified();
        if prefix > longest || !one_host || self.addresses.len() == 4 {
            let message = format!("{address}/{prefix} cannot be an address of the stack");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        self.addresses.push(IpCidr::new(address.into(), prefix));
        Ok(self)
    }

    /// The router for addresses outside of the stack's networks; the last one of each family
    /// counts.
    pub fn gateway(mut self, address: IpAddr) -> StackOptions {
        self.gateways.push(address);
        self
    }

    /// What a connection is made with, and a listener's connections, unless the program gives them
    /// options of their own.
    pub fn tcp(mut self, options: TcpOptions) -> StackOptions {
        self.tcp = Arc::new(options);
        self
    }

    /// How long a stack goes on that the program has dropped, to send what was written. A stack
    /// with nothing to send ends at once.
    pub fn linger(mut self, limit: Duration) -> StackOptions {
        self.linger = limit;
        self
    }

    /// The connections of a listener that no thread has accepted. What asks for one more is
    /// dropped, and asks again.
    pub fn backlog(mut self, connections: usize) -> StackOptions {
        self.backlog = connections;
        self
    }

    /// The connections of a listener that have begun their handshake and not ended it. When there
    /// are more, as in a flood of first segments from addresses that do not exist, the stack keeps
    /// nothing of those: it answers each with a cookie, and makes the connection of a client that
    /// acknowledges the cookie. With 0 it does so from the first one on.
    pub fn half_open(mut self, connections: usize) -> StackOptions {
        self.half_open = connections;
        self
    }

    /// What determines the sequence numbers and the cookies, for tests. It is random unless this is
    /// called, and a stack with a known seed must not stand in a network of strangers.
    pub fn seed(mut self, seed: u64) -> StackOptions {
        self.seed = seed;
        self.secret = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self
    }
}
