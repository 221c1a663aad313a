//! How the descriptors that the process may have are shared out: `shares` raises the limit and
//! computes what each worker may use for connections and for cached files.
//!
//! `main.rs` calls it once, before the workers start, and puts the `Shares` into each site's
//! `Config`. A worker that used more would fail to accept or to open a file.

use crate::startup_error::StartupError;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The numbers of descriptors that one worker may use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shares {
    pub(crate) cache_files: usize,
    pub(crate) connections: usize,
}

/// The descriptors that each process has beside its workers: the standard streams, the log,
/// signals.
const PROCESS: u64 = 10;

/// The descriptors of a worker: its event loop, its rings, the root, a file that is being looked
/// up. For each address it has three more: a listener, the same for a process that takes over, and
/// a connection that waits until others have gone.
const WORKER: u64 = 8;

/// One descriptor in this number is kept for files that are sent and no longer cached, and this
/// many at most.
const SPARE: (u64, u64) = (16, 64);

/// If all workers together may have fewer connections, `shares` says so on standard error.
const CONNECTIONS_FEW: usize = 64;

/// Raises the limit of open descriptors as far as the system permits, and shares it out among
/// `workers` workers that listen at `addresses` addresses each, with at most `cache_files` cached
/// files.
///
/// # Errors
/// If the limit leaves no connection to a worker.
pub(crate) fn shares(addresses: usize, workers: usize, cache_files: usize) -> Result<Shares, StartupError> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let limit = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => raised,
        // The system's own maximum is lower. The present limit stays.
        Err(_) => limit,
    };
    let limit = limit.current.unwrap_or(u64::MAX);
    let shares = share(limit, addresses as u64, workers as u64, cache_files).ok_or_else(|| {
        let message = format!("{workers} workers need more open descriptors than {limit} (ulimit -n)");
        StartupError { message, status: 1 }
    })?;
    if shares.connections * workers < CONNECTIONS_FEW {
        eprintln!(
            "selvedge-httpd: with {limit} open descriptors (ulimit -n) there may be {} connections at a time",
            shares.connections * workers
        );
    }
    Ok(shares)
}

/// The share of each worker in `limit` descriptors; `None` if no connection is left to it.
fn share(limit: u64, addresses: u64, workers: u64, cache_files: usize) -> Option<Shares> {
    let spare = (limit / SPARE.0).min(SPARE.1);
    let fixed = PROCESS + workers * (WORKER + 3 * addresses) + spare;
    let each = usize::try_from(limit.saturating_sub(fixed) / workers).unwrap_or(usize::MAX);
    let cache_files = cache_files.min(each / 8);
    (each > cache_files).then(|| Shares { cache_files, connections: each - cache_files })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_back_is_in_proportion() {
        let shared = |limit, workers| share(limit, 1, workers, 1024);
        assert_eq!(shared(64, 1), Some(Shares { cache_files: 4, connections: 35 }));
        assert_eq!(shared(64, 2), Some(Shares { cache_files: 1, connections: 13 }));
        assert_eq!(shared(64, 8), None);
        assert_eq!(shared(1024, 2), Some(Shares { cache_files: 58, connections: 406 }));
        assert_eq!(shared(u64::MAX, 2).map(|shares| shares.cache_files), Some(1024));
        assert!(shared(20_000, 2).is_some_and(|shares| 2 * shares.connections > 17_000));
    }
}
