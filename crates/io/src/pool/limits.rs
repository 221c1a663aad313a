//! [`Limits`]: the bounds of a pool.

use std::num::NonZeroUsize;
use std::time::Duration;

/// The bounds of a [`Pool`](super::Pool).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most OS threads at once.
    pub threads_max: NonZeroUsize,
    /// The most jobs that wait for an OS thread. The callers of further jobs wait for room.
    pub queue_max: NonZeroUsize,
    /// How long an OS thread without a job stays.
    pub idle: Duration,
}

impl Default for Limits {
    /// 64 OS threads, 1,024 jobs, 5 seconds.
    fn default() -> Limits {
        const {
            Limits {
                threads_max: NonZeroUsize::new(64).unwrap(),
                queue_max: NonZeroUsize::new(1024).unwrap(),
                idle: Duration::from_secs(5),
            }
        }
    }
}
