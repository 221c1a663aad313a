//! [`ConnectionGate`]: what a connection passes before its first request: the head of the PROXY protocol, and
//! the limit on the connections of one address.
//!
//! `site.rs` has each accepted connection pass the gate, if the site has one. All workers of a
//! process share it.

use rustix::net::{RecvFlags, recv};
use selvedge_core::now;
use selvedge_io::net::Stream;
use selvedge_io::nonblocking::PollState;
use selvedge_site::Network;
use selvedge_site::proxy_protocol::{HEAD_MAX, parse};
use selvedge_site::rate::OpenCounts;
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The most addresses that have connections at a time, if their connections are counted.
const ADDRESSES_MAX: usize = 64 << 10;

/// What a connection passes before its first request.
#[derive(Debug)]
pub struct ConnectionGate {
    balancers: Vec<Network>,
    counts: Option<Arc<Mutex<OpenCounts>>>,
}

/// A connection that has passed. When it is dropped, its address may have another one.
#[derive(Debug)]
pub(crate) struct GatePass {
    gate: Arc<ConnectionGate>,
    counted: Option<IpAddr>,
}

impl Drop for GatePass {
    fn drop(&mut self) {
        if let (Some(counts), Some(address)) = (&self.gate.counts, self.counted) {
            counts.lock().unwrap_or_else(PoisonError::into_inner).close(address);
        }
    }
}

impl ConnectionGate {
    /// A gate where connections of `balancers` begin with the PROXY protocol, and an address has at
    /// most `connections` connections at a time, if that is not 0. `None` if neither is asked for.
    pub fn new(balancers: Vec<Network>, connections: u32) -> Option<Arc<ConnectionGate>> {
        ConnectionGate::after(None, balancers, connections)
    }

    /// As [`new`](Self::new), for a gate that takes the place of `former`. The connections that
    /// have passed that one count here too, if it counted them. An address that has more
    /// connections than it may have now keeps them.
    pub fn after(
        former: Option<&ConnectionGate>,
        balancers: Vec<Network>,
        connections: u32,
    ) -> Option<Arc<ConnectionGate>> {
        let counts = (connections > 0).then(|| match former.and_then(|former| former.counts.clone()) {
            Some(counts) => {
                counts.lock().unwrap_or_else(PoisonError::into_inner).set_most(connections);
                counts
            }
            None => Arc::new(Mutex::new(OpenCounts::new(connections, ADDRESSES_MAX))),
        });
        (counts.is_some() || !balancers.is_empty()).then(|| Arc::new(ConnectionGate { balancers, counts }))
    }

    /// Lets a connection of `peer` through, and returns the address of its client.
    ///
    /// # Errors
    /// A balancer's connection does not begin with a head within `patience`, or the address has as
    /// many connections as it may.
    pub(crate) async fn pass(
        self: &Arc<ConnectionGate>,
        stream: &Stream,
        peer: Option<IpAddr>,
        patience: Duration,
    ) -> io::Result<(GatePass, Option<IpAddr>)> {
        let is_balancer = peer.is_some_and(|peer| self.balancers.iter().any(|one| one.contains(peer)));
        let client = if is_balancer { read_head(stream, patience).await?.or(peer) } else { peer };
        let counted = match (&self.counts, client) {
            (Some(counts), Some(address)) => {
                if !counts.lock().unwrap_or_else(PoisonError::into_inner).open(address) {
                    return Err(io::ErrorKind::QuotaExceeded.into());
                }
                Some(address)
            }
            _ => None,
        };
        Ok((GatePass { gate: self.clone(), counted }, client))
    }
}

/// Takes the head of the PROXY protocol off the front of `stream`, and not a byte more.
async fn read_head(stream: &Stream, patience: Duration) -> io::Result<Option<IpAddr>> {
    stream.set_read_deadline(Some(now() + patience));
    let mut seen = vec![0; HEAD_MAX];
    let mut least = 1;
    loop {
        let mut state = PollState::default();
        let count = poll_fn(|cx| {
            stream.poll_read_with(&mut state, cx, |_| {
                let count = recv(stream, &mut seen[..], RecvFlags::PEEK)?.0;
                // With no more bytes than last time, it is the next edge that tells of more.
                if (1..least).contains(&count) { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(count) }
            })
        })
        .await?;
        match parse(&seen[..count]) {
            Ok(Some(head)) => {
                let mut taken = vec![0; head.len];
                stream.read_exact(&mut taken).await?;
                return Ok(head.client.map(|client| client.ip()));
            }
            Ok(None) if count > 0 => least = count + 1,
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
}
