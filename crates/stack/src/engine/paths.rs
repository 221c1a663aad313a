//! The longest packets of the ways to peers: path MTU discovery by RFC 1191 and RFC 8201.
//!
//! A router that cannot pass a packet on tells how long one may be. smoltcp has one length for all
//! of its sockets, so a connection's segments are divided on their way out
//! ([`OutgoingFrame`](crate::OutgoingFrame)). What the router dropped goes again, divided, when its
//! time is up.

use super::StackEngine;
use crate::flow::SocketPair;
use crate::frames::LONGEST_PACKET;
use smoltcp::wire::TcpSeqNumber;
use std::net::{IpAddr, SocketAddr};

/// The least that a router is believed for each family: less would only cost segments.
const LEAST: (usize, usize) = (552, 1280);
/// The ways that are kept in mind. They are all forgotten when there are more.
const WAYS: usize = 1024;

impl StackEngine {
    /// The longest packet to a peer, as far as a router has told.
    pub(super) fn path_to(&self, peer: SocketAddr) -> u16 {
        self.paths.get(&peer.ip()).copied().unwrap_or(LONGEST_PACKET as u16)
    }

    /// A router tells that a packet of a connection was too long. It is believed if it knows a
    /// segment that the peer has not acknowledged, as no stranger does.
    pub(super) fn path_is_narrow(&mut self, flow: SocketPair, sequence: TcpSeqNumber, most: usize) {
        let Some(connection) = self.connections.get_mut(&flow) else { return };
        let on_its_way = sequence >= connection.wanted && sequence < connection.sent_to;
        let least = if matches!(flow.peer.ip(), IpAddr::V4(_)) { LEAST.0 } else { LEAST.1 };
        let most = most.max(least);
        if !on_its_way || most >= usize::from(connection.path) {
            return;
        }
        connection.path = most as u16;
        if self.paths.len() == WAYS {
            self.paths.clear();
        }
        self.paths.insert(flow.peer.ip(), most as u16);
    }
}
