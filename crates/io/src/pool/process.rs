//! The pools of the process: [`blocking`] runs a call of the program on the [`shared`] pool, and
//! [`load`] tells the work of this pool and of the [lanes](super::lane) together.

use super::{Blocking, Lane, Limits, Load, Pool};
use selvedge_core::internal::PerProcess;

/// Runs `f` on an OS thread of the process's blocking pool and returns what it returned.
///
/// The pool has at most 64 OS threads and 1,024 jobs in its queue; beyond that the caller waits for
/// room. A `selvedge::Runner` and [`Pool::set_limits`] change these bounds. (The calls that this
/// crate itself makes on OS threads, above all on files, have OS threads of their own, and do not
/// wait behind `f`.) Dropping the future before `f` has started removes the job; afterwards `f`
/// runs to its end and its result is dropped.
///
/// # Errors
///
/// [`BlockingError`](super::BlockingError) when `f` panicked, with the payload, or when no OS
/// thread could be started: then `f` has been dropped, and was not run.
///
/// # Examples
///
/// ```
/// # futures::executor::block_on(async {
/// let length = selvedge::blocking(|| std::fs::metadata("Cargo.toml").map(|m| m.len())).await??;
/// assert!(length > 0);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
///
/// # Complexity
///
/// Two allocations and, on an idle pool, two switches between OS threads: some 10 µs.
///
/// # Paper
/// [LZ07 §4.2]; [HMP05 §2.2]: a call that blocks does so on another OS thread, so that threads run
/// on.
#[doc(alias = "spawn_blocking")]
pub fn blocking<T, F>(f: F) -> Blocking<T, F>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    shared().run(f)
}

/// The process's blocking pool, which [`blocking`] runs on. The child of a `fork(2)` has a pool of
/// its own.
pub fn shared() -> &'static Pool {
    static POOL: PerProcess<Pool> = PerProcess::new();
    POOL.get(|| Pool::new(Limits::default()))
}

/// The work of all pools that belong to the process: of the pool of [`blocking`], and of the pools
/// for the calls that this crate makes itself.
pub fn load() -> Load {
    let lanes = [Lane::Files, Lane::Lookups].map(|lane| lane.pool().load());
    lanes.into_iter().fold(shared().load(), |sum, load| Load {
        threads: sum.threads + load.threads,
        idle: sum.idle + load.idle,
        queued: sum.queued + load.queued,
        in_line: sum.in_line + load.in_line,
        taken: sum.taken + load.taken,
        threads_most: sum.threads_most + load.threads_most,
    })
}
