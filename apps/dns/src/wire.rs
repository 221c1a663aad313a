//! Messages between bytes and what this program knows of them: [`asked`] reads the queries of
//! clients, [`answer`] writes answers to them, and [`heard`] writes questions to other servers and
//! reads their answers.
//!
//! Nothing here does input or output. All parsing is the crate `domain`'s. A message that cannot be
//! parsed is an error or `None`, and never a panic.

pub mod answer;
pub mod asked;
pub mod heard;

use domain::base::Rtype;

/// The longest answer over UDP, in bytes, and the length that the server announces for itself
/// (EDNS): no network on the way has to cut such a datagram.
pub const UDP_MAX: u16 = 1232;

/// The longest answer over UDP to a client that announces nothing (RFC 1035 §2.3.4).
pub const UDP_PLAIN_MAX: u16 = 512;

/// The longest message over TCP.
pub const TCP_MAX: u16 = u16::MAX;

/// Whether the type stands for no records of a zone: a request for a whole zone, or a part of the
/// protocol itself (RFC 6895 §3.1). `ANY` is none of them.
pub fn is_meta(rtype: Rtype) -> bool {
    matches!(rtype.to_int(), 0 | 41 | 128..=254)
}
