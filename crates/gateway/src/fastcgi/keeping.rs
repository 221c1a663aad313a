//! [`ConnectionKeeping`]: whether a connection is kept for the next request. `fastcgi.rs` says what
//! a request waits for, and `talk.rs` asks when one has ended.
//!
//! An application such as PHP-FPM has a number of processes, and each serves one connection until
//! that is closed. A kept connection holds a process, whether a request is on it or not. So with
//! fewer processes than requests, a request on a new connection would wait for as long as the kept
//! ones are kept. Three rules bound this time:
//!
//! 1. A request on a new connection starves if its answer takes far longer than answers on kept
//!    connections, because those have a process for sure. While one starves, no connection is kept,
//!    so that a process becomes free for it.
//! 2. Once in [`TURN`] a connection is closed all the same, because the request that waits may be
//!    that of another worker or server.
//! 3. A connection without a request is closed when its time is over, and not only when the next
//!    request comes.
//!
//! An application with enough processes keeps all its connections: their number is that of the
//! requests at one time, and no request waits for a new one.

use selvedge_client::{Address, ConnectionPool};
use selvedge_core::{Time, detach_local, now};
use selvedge_io::net::Stream;
use selvedge_io::time::sleep;
use selvedge_scope::{Selected, select};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often a connection is closed although no request of this handler waits.
const TURN: Duration = Duration::from_secs(1);

/// A request on a new connection waits for this time, and for [`USUAL_TIMES`] times the usual time
/// of an answer, before it starves. A second is the most.
const PATIENCE: Duration = Duration::from_millis(10);
const USUAL_TIMES: u32 = 2;

/// What the requests of one handler know of each other.
#[derive(Debug)]
pub(crate) struct ConnectionKeeping {
    pool: ConnectionPool,
    /// How long a connection is kept without a request.
    idle: Duration,
    /// The usual time of an answer on a kept connection, in microseconds.
    usual_micros: AtomicU64,
    /// The requests that starve.
    starving: AtomicUsize,
    /// When a connection was closed last by the second rule, or the first was kept.
    turned: Mutex<Option<Time>>,
    /// Whether a thread closes connections that have been idle.
    is_swept: AtomicBool,
}

/// A request that starves.
struct StarvingRequest<'k>(&'k ConnectionKeeping);

impl Drop for StarvingRequest<'_> {
    fn drop(&mut self) {
        self.0.starving.fetch_sub(1, Relaxed);
    }
}

impl ConnectionKeeping {
    /// At most `most` connections, each for at most `idle` without a request.
    pub(crate) fn new(most: usize, idle: Duration) -> Arc<ConnectionKeeping> {
        Arc::new(ConnectionKeeping {
            pool: ConnectionPool::new(most, idle),
            idle,
            usual_micros: AtomicU64::new(0),
            starving: AtomicUsize::new(0),
            turned: Mutex::default(),
            is_swept: AtomicBool::new(false),
        })
    }

    /// The kept connections.
    pub(crate) fn pool(&self) -> &ConnectionPool {
        &self.pool
    }

    /// Awaits the answer to the request on a kept connection, and learns how long it takes.
    pub(crate) async fn on_kept<T>(&self, answer: impl Future<Output = T>) -> T {
        let begun = now();
        let answered = answer.await;
        self.learn_since(begun);
        answered
    }

    /// Learns how long an answer on a kept connection takes: `begun` is when it was asked for.
    pub(crate) fn learn_since(&self, begun: Time) {
        self.learn(now().since(begun));
    }

    /// Awaits the answer to the first request on a new connection. The request starves when it has
    /// waited for too long.
    pub(crate) async fn on_new<T>(&self, answer: impl Future<Output = T>) -> T {
        let mut answer = pin!(answer);
        if let Selected::First(answered) = select((answer.as_mut(), sleep(self.patience()))).await {
            return answered;
        }
        let _starving = self.starve();
        answer.await
    }

    /// How long a request on a new connection waits before it starves.
    fn patience(&self) -> Duration {
        let usual = Duration::from_micros(self.usual_micros.load(Relaxed));
        (PATIENCE + USUAL_TIMES * usual).min(TURN)
    }

    /// An answer on a kept connection took this time. A new one counts for an eighth; two at one
    /// moment may count for one.
    fn learn(&self, took: Duration) {
        let (took, usual) = (took.min(TURN).as_micros() as u64, self.usual_micros.load(Relaxed));
        let learned = if usual == 0 { took } else { (7 * usual + took) / 8 };
        self.usual_micros.store(learned, Relaxed);
    }

    /// A request starves from now on: the connections without a request are closed.
    fn starve(&self) -> StarvingRequest<'_> {
        self.starving.fetch_add(1, Relaxed);
        self.pool.clear();
        StarvingRequest(self)
    }

    /// Whether the connection of a request that has ended at `now` may be kept.
    fn keeps(&self, now: Time) -> bool {
        if self.starving.load(Relaxed) > 0 {
            return false;
        }
        let mut turned = self.turned.lock().unwrap_or_else(PoisonError::into_inner);
        let is_turn = now.since(*turned.get_or_insert(now)) >= TURN;
        if is_turn {
            *turned = Some(now);
        }
        !is_turn
    }

    /// A request has ended, and the connection is in order: keeps it, if it may be kept. Called in
    /// a thread.
    pub(crate) fn give_back(self: &Arc<Self>, address: &Address, stream: Stream) {
        if self.keeps(now()) {
            stream.set_read_deadline(None);
            stream.set_write_deadline(None);
            self.pool.put(address, stream);
            self.sweep();
        }
    }

    /// A connection was kept: has it closed when its time is over.
    fn sweep(self: &Arc<Self>) {
        // A thread that sweeps is the usual case, and costs one look.
        if self.is_swept.load(Relaxed) || self.pool.is_empty() || self.is_swept.swap(true, Relaxed) {
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
    fn a_connection_is_kept_if_no_request_starves_and_once_a_second_not() {
        let keeping = ConnectionKeeping::new(8, Duration::from_secs(1));
        let at = |millis: u64| Time::default() + Duration::from_millis(millis);
        assert!(keeping.keeps(at(1000)));
        assert!(keeping.keeps(at(1001)));
        let starves = keeping.starve();
        assert!(!keeping.keeps(at(1002)));
        drop(starves);
        assert!(keeping.keeps(at(1999)));
        assert!(!keeping.keeps(at(2000)));
        assert!(keeping.keeps(at(2001)));
    }

    #[test]
    fn the_patience_follows_the_usual_time() {
        let keeping = ConnectionKeeping::new(8, Duration::from_secs(1));
        assert_eq!(keeping.patience(), PATIENCE);
        keeping.learn(Duration::from_millis(50));
        assert_eq!(keeping.patience(), Duration::from_millis(110));
        for _ in 0..100 {
            keeping.learn(Duration::from_millis(2));
        }
        assert!(keeping.patience() < Duration::from_millis(15), "{:?}", keeping.patience());
        keeping.learn(Duration::from_secs(3600));
        assert!(keeping.patience() < TURN);
    }
}
