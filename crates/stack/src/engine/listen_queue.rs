//! The connections that a listener has, and what becomes of a segment that asks for one.

use crate::flow::SocketPair;
use crate::tcp_options::TcpOptions;
use crate::waiters::SocketWaiters;
use std::collections::VecDeque;
use std::sync::Arc;

/// The connections of a listener that no thread has accepted.
pub(super) struct ListenQueue {
    pub(super) options: Arc<TcpOptions>,
    pub(super) half_open: usize,
    pub(super) ready: VecDeque<SocketPair>,
    pub(super) waiters: Arc<SocketWaiters>,
}

impl ListenQueue {
    /// Whether it has as many connections as it may.
    pub(super) fn is_full(&self, backlog: usize) -> bool {
        self.half_open + self.ready.len() >= backlog
    }
}

/// What becomes of a segment for no connection that there is.
pub(super) enum Admission {
    /// There is a connection for it now.
    Begun,
    /// It is dropped, because its listener has no room. Its peer sends it again.
    Full,
    /// It is for no listener, or begins nothing: smoltcp answers it.
    None,
}
