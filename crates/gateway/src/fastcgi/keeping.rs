//! [`ConnectionKeeping`]: whether a connection is kept for the next request. `talk.rs` asks when a
//! request has ended, and says while one waits.
//!
//! An application such as PHP-FPM has a number of processes, and each serves one connection until
//! that is closed. A kept connection holds a process, whether a request is on it or not. So with
//! fewer processes than requests, a request on a new connection would wait for as long as the kept
//! ones are kept. Three rules bound this time:
//!
//! 1. While a request waits for the first byte of its answer, connections are closed after their
//!    requests, so that a process becomes free for it.
//! 2. Once in [`TURN`] a connection is closed all the same, because the request that waits may be
//!    that of another worker or server.
//! 3. A connection without a request is closed when its time is over, and not only when the next
//!    request comes.

use selvedge_client::ConnectionPool;
use selvedge_core::{Time, detach_local, now};
use selvedge_io::time::sleep;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often a connection is closed although no request of this handler waits.
const TURN: Duration = Duration::from_secs(1);

/// What the requests of one handler know of each other.
#[derive(Debug)]
pub(crate) struct ConnectionKeeping {
    pool: ConnectionPool,
    /// How long a connection is kept without a request.
    idle: Duration,
    /// The requests of which no byte of the answer has come.
    waiting: AtomicUsize,
    /// When a connection was closed last by the second rule, or the first was kept.
    turned: Mutex<Option<Time>>,
    /// Whether a thread closes connections that have been idle.
    is_swept: AtomicBool,
}

/// A request that waits for the first byte of its answer.
#[derive(Debug)]
pub(crate) struct WaitingRequest(Arc<ConnectionKeeping>);

impl Drop for WaitingRequest {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Relaxed);
    }
}

impl ConnectionKeeping {
    /// At most `most` connections, each for at most `idle` without a request.
    pub(crate) fn new(most: usize, idle: Duration) -> Arc<ConnectionKeeping> {
        Arc::new(ConnectionKeeping {
            pool: ConnectionPool::new(most, idle),
            idle,
            waiting: AtomicUsize::new(0),
            turned: Mutex::default(),
            is_swept: AtomicBool::new(false),
        })
    }

    /// The kept connections.
    pub(crate) fn pool(&self) -> &ConnectionPool {
        &self.pool
    }

    /// A request waits from now on.
    pub(crate) fn wait(self: &Arc<Self>) -> WaitingRequest {
        self.waiting.fetch_add(1, Relaxed);
        WaitingRequest(self.clone())
    }

    /// Whether the connection of a request that has ended at `now` may be kept.
    pub(crate) fn keeps(&self, now: Time) -> bool {
        if self.waiting.load(Relaxed) > 0 {
            return false;
        }
        let mut turned = self.turned.lock().unwrap_or_else(PoisonError::into_inner);
        let is_turn = now.since(*turned.get_or_insert(now)) >= TURN;
        if is_turn {
            *turned = Some(now);
        }
        !is_turn
    }

    /// A connection was kept: has it closed when its time is over. Called in a thread.
    pub(crate) fn sweep(self: &Arc<Self>) {
        if self.pool.is_empty() || self.is_swept.swap(true, Relaxed) {
            return;
        }
        // A connection is closed half of its time too late at most.
        let (period, keeping) = (self.idle / 2, Arc::downgrade(self));
        detach_local(async move {
            loop {
                sleep(period).await;
                // Without a handler there is no connection left.
                let Some(keeping) = keeping.upgrade() else { return };
                keeping.pool.close_idle(now());
                if keeping.pool.is_empty() {
                    return keeping.is_swept.store(false, Relaxed);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_kept_if_no_request_waits_and_once_a_second_not() {
        let keeping = ConnectionKeeping::new(8, Duration::from_secs(1));
        let at = |millis: u64| Time::default() + Duration::from_millis(millis);
        assert!(keeping.keeps(at(1000)));
        assert!(keeping.keeps(at(1001)));
        let waits = keeping.wait();
        assert!(!keeping.keeps(at(1002)));
        drop(waits);
        assert!(keeping.keeps(at(1999)));
        assert!(!keeping.keeps(at(2000)));
        assert!(keeping.keeps(at(2001)));
    }
}
