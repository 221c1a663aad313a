//! [`Shared`]: what the clones of a client, and the bodies of its answers, share.

use crate::address::Address;
use crate::pool::ConnectionPool;
use std::time::Duration;

/// What the clones of a client share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) pool: ConnectionPool,
    pub(crate) limits: Limits,
    /// The server of all requests, whatever their URIs say.
    pub(crate) via: Option<Address>,
    pub(crate) redirects: u32,
}

/// The limits of one exchange.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub(crate) connect: Duration,
    pub(crate) send: Duration,
    pub(crate) answer: Duration,
    pub(crate) read: Duration,
    pub(crate) head_bytes: usize,
}
