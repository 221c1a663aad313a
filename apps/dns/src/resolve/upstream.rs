//! [`Upstream`]: one question to one other server, over UDP, and over TCP if the answer is cut.
//!
//! `forward.rs` and `iterate.rs` call it. Each question has a socket of its own, with a port that
//! the system draws. An answer is taken only if it comes from the server's address to this socket,
//! and repeats the question's id and name. A forger has to guess the port and the id. The socket
//! hears nothing from other addresses, because it is connected. After `STRANGE_MAX` datagrams
//! from the server's address that are no answers, some host is guessing, and the question goes over
//! TCP.

use crate::record::NameKey;
use crate::wire::heard::{self, Heard};
use domain::base::Rtype;
use domain::base::iana::Rcode;
use selvedge::Time;
use selvedge::net::{TcpStream, UdpSocket};
use selvedge_compat::Compat;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};

/// How many datagrams that are no answers one question bears.
const STRANGE_MAX: usize = 8;

/// Room for a datagram. A server sends 1,232 bytes at most, because the question says so.
const DATAGRAM_MAX: usize = 4096;

/// Why a server has not answered.
#[derive(Debug)]
pub enum UpstreamError {
    /// The network refuses, or the time is over.
    Io(io::Error),
    /// The message over TCP is no answer to the question.
    Strange,
}

impl fmt::Display for UpstreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UpstreamError::Io(error) => write!(f, "{error}"),
            UpstreamError::Strange => f.write_str("the message is no answer to the question"),
        }
    }
}

impl std::error::Error for UpstreamError {}

impl From<io::Error> for UpstreamError {
    fn from(error: io::Error) -> UpstreamError {
        UpstreamError::Io(error)
    }
}

/// Asks other servers.
#[derive(Debug, Default)]
pub struct Upstream {
    /// The secret of the ids: SipHash of a number with a key that the system has drawn. The numbers
    /// that a host has seen tell it nothing of the next one.
    secret: RandomState,
    asked: AtomicU64,
    /// Whether the servers are asked for signatures.
    pub(super) wants_signatures: bool,
}

impl Upstream {
    /// A number that no other host can guess.
    pub fn draw(&self) -> u64 {
        // Relaxed: each number is taken once, and it guards nothing else.
        self.secret.hash_one(self.asked.fetch_add(1, Ordering::Relaxed))
    }

    /// Asks a server until a point in time. With `recursive` the server is asked to find the whole
    /// answer. A server that does not understand the extension of the protocol (EDNS) is asked
    /// again without it.
    ///
    /// # Errors
    /// If no answer has come.
    pub async fn ask(
        &self,
        server: SocketAddr,
        name: &NameKey,
        rtype: Rtype,
        recursive: bool,
        until: Time,
    ) -> Result<Heard, UpstreamError> {
        let heard = self.ask_once(server, name, rtype, recursive, true, until).await?;
        if heard.rcode == Rcode::FORMERR {
            return self.ask_once(server, name, rtype, recursive, false, until).await;
        }
        Ok(heard)
    }

    async fn ask_once(
        &self,
        server: SocketAddr,
        name: &NameKey,
        rtype: Rtype,
        recursive: bool,
        with_edns: bool,
        until: Time,
    ) -> Result<Heard, UpstreamError> {
        let id = self.draw() as u16;
        let question = match self.wants_signatures && with_edns {
            true => heard::signed_question(id, name, rtype, recursive),
            false => heard::question(id, name, rtype, recursive, with_edns),
        };
        let read = |bytes: &[u8]| heard::read(bytes, id, name, rtype);
        if let Some(heard) = over_udp(server, &question, read, until).await? {
            return Ok(heard);
        }
        over_tcp(server, &question, read, until).await
    }
}

/// Asks over UDP. `None` if the question has to go over TCP.
async fn over_udp(
    server: SocketAddr,
    question: &[u8],
    read: impl Fn(&[u8]) -> Option<Heard>,
    until: Time,
) -> Result<Option<Heard>, UpstreamError> {
    let any: IpAddr =
        if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
    socket.connect(server)?;
    socket.set_write_deadline(Some(until));
    socket.set_read_deadline(Some(until));
    socket.send(question).await?;
    let mut buffer = vec![0; DATAGRAM_MAX];
    for _ in 0..STRANGE_MAX {
        let length = socket.recv(&mut buffer).await?;
        if let Some(heard) = read(&buffer[..length]) {
            return Ok((!heard.is_truncated).then_some(heard));
        }
    }
    Ok(None)
}

/// Asks over TCP (RFC 7766).
async fn over_tcp(
    server: SocketAddr,
    question: &[u8],
    read: impl Fn(&[u8]) -> Option<Heard>,
    until: Time,
) -> Result<Heard, UpstreamError> {
    let stream = TcpStream::connect_before(server, until).await?;
    stream.set_read_deadline(Some(until));
    stream.set_write_deadline(Some(until));
    let mut link = Compat::new(&*stream);
    crate::frame::write(&mut link, question).await?;
    let message = crate::frame::read(&mut link).await?.ok_or(UpstreamError::Strange)?;
    read(&message).filter(|heard| !heard.is_truncated).ok_or(UpstreamError::Strange)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_do_not_follow_a_line() {
        let (one, other) = (Upstream::default(), Upstream::default());
        let ids = |upstream: &Upstream| (0..1000).map(|_| upstream.draw() as u16).collect::<Vec<u16>>();
        let (first, second) = (ids(&one), ids(&other));
        assert_ne!(first, second, "each resolver has a secret of its own");
        let different: std::collections::HashSet<u16> = first.iter().copied().collect();
        assert!(different.len() > 900, "{} of 1000", different.len());
    }
}
