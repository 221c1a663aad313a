//! [`ConnectionPool`]: connections that wait for another request.
//!
//! `exchange.rs` takes a connection and brings it back when the answer is complete and nothing else
//! has come. A connection that waited too long, that the server has closed, or on which unasked
//! bytes have come, is dropped when it is taken: bytes that came before the request must not be
//! read as its answer.

use crate::address::Address;
use selvedge_core::{Time, now};
use selvedge_io::net::Stream;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Connections that wait for another request, by the address of their server. A
/// [`Client`](crate::Client) has one; a client of another protocol can have one too.
///
/// # Examples
/// ```
/// use selvedge::client::{Address, ConnectionPool};
/// use std::time::Duration;
///
/// let pool = ConnectionPool::new(8, Duration::from_secs(30));
/// assert!(pool.take(&Address::tcp("127.0.0.1:9000")).is_none());
/// ```
#[derive(Debug)]
pub struct ConnectionPool {
    /// The most idle connections to one address.
    per_address: usize,
    /// The longest time that a connection may wait.
    idle: Duration,
    /// A tree, because most clients have a few servers, and comparing two addresses costs a
    /// fraction of a hash.
    waiting: Mutex<BTreeMap<Address, VecDeque<Waiting>>>,
}

#[derive(Debug)]
struct Waiting {
    stream: Stream,
    since: Time,
}

impl ConnectionPool {
    /// A pool of at most `per_address` connections to each server, which wait for at most `idle`.
    pub fn new(per_address: usize, idle: Duration) -> ConnectionPool {
        ConnectionPool { per_address, idle, waiting: Mutex::default() }
    }

    /// The connection that waited for the shortest time. The server has not closed it, as far as
    /// this host knows.
    pub fn take(&self, address: &Address) -> Option<Stream> {
        loop {
            let waiting = self.waiting().get_mut(address)?.pop_back()?;
            let is_fresh = now().since(waiting.since) < self.idle;
            if is_fresh && is_silent(&waiting.stream) {
                return Some(waiting.stream);
            }
        }
    }

    /// Keeps a connection for the next request, if there is room.
    pub fn put(&self, address: &Address, stream: Stream) {
        if self.per_address == 0 {
            return;
        }
        let now = now();
        let mut dropped = Vec::new();
        let mut all = self.waiting();
        let queue = match all.get_mut(address) {
            Some(queue) => queue,
            None => {
                // A new server: look after servers that are used no more.
                all.retain(|_, queue| {
                    let is_used = queue.back().is_some_and(|last| now.since(last.since) < self.idle);
                    if !is_used {
                        dropped.extend(queue.drain(..));
                    }
                    is_used
                });
                all.entry(address.clone()).or_default()
            }
        };
        queue.push_back(Waiting { stream, since: now });
        while queue.len() > self.per_address
            || queue.front().is_some_and(|first| now.since(first.since) >= self.idle)
        {
            dropped.extend(queue.pop_front());
        }
        // The connections are closed when the lock is free.
        drop(all);
    }

    /// Closes the connections that have waited too long at `now`. A pool that is not used closes
    /// none by itself.
    pub fn close_idle(&self, now: Time) {
        let is_old = |waiting: &Waiting| now.since(waiting.since) >= self.idle;
        let mut old = Vec::new();
        let mut all = self.waiting();
        for queue in all.values_mut() {
            while queue.front().is_some_and(is_old) {
                old.extend(queue.pop_front());
            }
        }
        all.retain(|_, queue| !queue.is_empty());
        // As above.
        drop(all);
    }

    /// Closes all connections that wait.
    pub fn clear(&self) {
        let all = std::mem::take(&mut *self.waiting());
        // As above.
        drop(all);
    }

    /// The number of idle connections.
    pub fn len(&self) -> usize {
        self.waiting().values().map(VecDeque::len).sum()
    }

    /// Whether no connection waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<Address, VecDeque<Waiting>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether nothing has come on a connection, not even its end.
fn is_silent(stream: &Stream) -> bool {
    stream.try_read(&mut [0]).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}
